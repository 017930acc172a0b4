# SPDX-License-Identifier: Apache-2.0
"""Inputs of a run that Sealpoint does not seal: `guard` refuses them unless the caller accepts."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sealpoint.errors import UsageError

__all__ = [
    "UNSEALED",
    "UnsealedKind",
    "check_kinds",
    "refuse_unsealed",
]


class UnsealedKind(NamedTuple):
    """A kind of unsealed input, in the words of the error message."""

    why: str
    """The things that an attacker who writes this input controls."""
    without: str
    """How to avoid this input."""


UNSEALED = "unsealed"
"""The key for unsealed inputs in the topology of a world."""


def check_kinds(accepted: Collection[str], kinds: Mapping[str, UnsealedKind]) -> frozenset[str]:
    """Return the kinds of unsealed input that the caller accepts.

    Raises:
        UsageError: There is no such kind.
    """
    names = [accepted] if isinstance(accepted, str) else list(accepted)
    for name in names:
        if name not in kinds:
            raise UsageError(
                f"guard: accept_unsealed= expects some of {', '.join(kinds)}, found {name!r}"
            )
    return frozenset(names)


def refuse_unsealed(
    noun: str,
    found: Mapping[str, Mapping[str, str]],
    accepted: frozenset[str],
    kinds: Mapping[str, UnsealedKind],
) -> None:
    """Refuse unsealed inputs that the caller did not accept.

    Args:
        noun: The guarded object, in words.
        found: The unsealed inputs of each kind, by name.
        accepted: The kinds that the caller accepted.
        kinds: All kinds.

    Raises:
        UsageError: There is an input of a kind that was not accepted.
    """
    for kind, held in found.items():
        if kind not in accepted:
            what = ", ".join(sorted(set(held.values())))
            raise UsageError(
                f"guard: the {noun} has a {kind} that is not sealed ({what}): {kinds[kind].why}",
                hint=f"Either {kinds[kind].without}, or say that you accept it: guard(..., "
                f"accept_unsealed=[{kind!r}]). Then the {noun}'s world says so.",
            )
