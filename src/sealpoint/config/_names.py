# SPDX-License-Identifier: Apache-2.0
"""Which names an identity may have: those that are safe as the name of a file everywhere.

Lower case only, so that two names never meet in one file where case does not count; no
separator and no leading dot, so that a name never leaves its directory or hides in it.
"""

import re

from sealpoint.errors import NameInvalid

__all__ = ["check_identity_name"]

_IDENTITY = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_FOUND_CHARS_MAX = 80


def check_identity_name(name: str) -> str:
    """Return a name that an identity may have.

    Raises:
        NameInvalid: It may not have this one.
    """
    if _IDENTITY.fullmatch(name) is None:
        raise NameInvalid(
            "identity name: expected 1 to 64 of a-z, 0-9, dot, underscore and hyphen, beginning "
            f"with a letter or digit, found {name[:_FOUND_CHARS_MAX]!r}",
            hint="Choose a name such as worker, alice or billing-2.",
        )
    return name
