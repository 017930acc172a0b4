# SPDX-License-Identifier: Apache-2.0
"""What every body of an entry has."""

import msgspec

__all__ = ["Body"]


class Body(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """What every body has."""

    salt: str
    """32 random bytes in hexadecimal."""
