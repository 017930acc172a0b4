# SPDX-License-Identifier: Apache-2.0
"""The hidden values of a state: those under keys that look like names of secrets.

Masking only affects display: signed, stored, encoded and compared values are never masked, and no
digest covers a masked value. It hides the whole value under a key or field with a certain name. It
does not search texts, and a secret under a harmless name is shown: masking keeps secrets off
screens, but is not a reason to put them into a state.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sealpoint.errors import UsageError

__all__ = ["MASKED", "REVEALED", "SECRETS", "SECRET_NAMES", "Masked", "Masking"]

SECRET_NAMES: Final = (
    *(
        "*password*",
        "*passwd*",
        "*passphrase*",
        "*secret*",
        "*token",
        "*apikey*",
        "*authorization*",
    ),
    *("*bearer*", "*credential*", "*cookie*", "*privatekey*", "*accesskey*", "*signingkey*"),
)
"""The names that are masked by default: they match `api_token`, but not `max_tokens`.

Approvers must see everything else. A world leaves out more names, which are listed in
`adapters/world_parts.py`."""

_SEPARATORS = re.compile(r"[\W_]+")
_CACHED_CHARS_MAX = 64
_PATTERN = re.compile(r"(\*?)([^*]+)(\*?)")


class Masked:
    """The placeholder for a hidden value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "masked"


MASKED: Final = Masked()


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """The names of keys and fields whose values are hidden.

    Case and separators between words do not matter: `apikey` also matches `api_key`, `apiKey` and
    `API-Key`. A star at either end matches any other letters.

    Raises:
        UsageError: A name is invalid.
    """

    names: tuple[str, ...] = SECRET_NAMES

    def __post_init__(self) -> None:
        for name in self.names:
            found = _PATTERN.fullmatch(name)
            if found is None or not _folded(found[2]):
                raise UsageError(
                    f"masking: expected the name of a key, found {name[:64]!r}",
                    hint="Write a name such as password, with a star at either end for any others.",
                )

    def hides(self, key: Any) -> bool:
        """Whether the value under a key or in a field is hidden."""
        if not self.names or not isinstance(key, str):
            return False
        return (_hides if len(key) <= _CACHED_CHARS_MAX else _hides.__wrapped__)(self.names, key)


@lru_cache(maxsize=4096)
def _hides(names: tuple[str, ...], key: str) -> bool:
    folded = _folded(key)
    return any(_fits(name, folded) for name in names)


def _fits(name: str, folded: str) -> bool:
    word = _folded(name)
    match name.startswith("*"), name.endswith("*"):
        case True, True:
            return word in folded
        case True, False:
            return folded.endswith(word)
        case False, True:
            return folded.startswith(word)
        case _:
            return folded == word


def _folded(name: str) -> str:
    return _SEPARATORS.sub("", unicodedata.normalize("NFKC", name).casefold())


REVEALED: Final = Masking(names=())
"""Masks nothing."""
SECRETS: Final = Masking()
"""Masks the names in `SECRET_NAMES`."""
