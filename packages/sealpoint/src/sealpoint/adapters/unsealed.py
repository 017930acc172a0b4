# SPDX-License-Identifier: Apache-2.0
"""What a run reads that Sealpoint does not seal: refused by `guard` unless it was accepted."""

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
    """A kind of what is not sealed, in the words of a refusal."""

    why: str
    """What somebody who writes it decides."""
    without: str
    """How to do without it."""


UNSEALED = "unsealed"
"""What it is called in the topology of a world."""


def check_kinds(accepted: Collection[str], kinds: Mapping[str, UnsealedKind]) -> frozenset[str]:
    """The kinds that somebody accepts.

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
    """Refuse what nobody has sealed, unless it was accepted.

    Args:
        noun: What is guarded.
        found: For each kind what there is of it, by name.
        accepted: The kinds that were accepted.
        kinds: All kinds.

    Raises:
        UsageError: There is something that was not accepted.
    """
    for kind, held in found.items():
        if kind not in accepted:
            what = ", ".join(sorted(set(held.values())))
            raise UsageError(
                f"guard: the {noun} has a {kind} that is not sealed ({what}): {kinds[kind].why}",
                hint=f"Either {kinds[kind].without}, or say that you accept it: guard(..., "
                f"accept_unsealed=[{kind!r}]). Then the {noun}'s world says so.",
            )
