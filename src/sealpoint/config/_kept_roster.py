# SPDX-License-Identifier: Apache-2.0
"""The newest roster that this machine has verified, kept beside its keys.

A backup of the store may be older than its roster, and no restore is accepted without the newest
one. So it is kept here by itself, as the document that `roster export` writes, under a name that
says how far it goes: `roster-<entries>-<start of the newest entry's hash>.json`. It is a copy and
no authority: whoever takes it back verifies it from the pin, as any other export. Keeping it is
never a reason to fail: where the directory cannot be written, there is no copy.
"""

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path

from sealpoint.config._disk import read_file, replace_file
from sealpoint.errors import ConfigError, SealpointError
from sealpoint.limits import ROSTER_COPY_BYTES_MAX

__all__ = ["keep_roster", "kept_roster"]

_NAME = re.compile(r"roster-([0-9]{1,9})-[0-9a-f]{16}\.json")
_HASH_BYTES = 8


def keep_roster(directory: Path, seq: int, newest: bytes, make: Callable[[], bytes]) -> bool:
    """Keep a roster, unless it is kept already.

    Args:
        directory: That of the store's pin and keys.
        seq: The position of the newest entry of the store chain.
        newest: The hash of that entry.
        make: Gives the document.

    Returns:
        Whether it, or one that goes further, is there now.
    """
    path = directory / f"roster-{seq + 1}-{newest[:_HASH_BYTES].hex()}.json"
    try:
        if os.path.lexists(path):
            return True
        # One that goes further stays: an older store may have been adopted.
        known = _found(directory)
        if all(count <= seq + 1 for count, _ in known):
            replace_file(path, make())
            for count, other in known:
                if count <= seq:
                    other.unlink(missing_ok=True)
    except (OSError, SealpointError):
        return False  # a copy for bad days: the store is as good without it
    return True


def kept_roster(directory: Path) -> bytes | None:
    """The roster that goes furthest, or None if there is none that may be read.

    Raises:
        KeyFileUnsafe: Others can change it.
    """
    found = sorted(_found(directory))
    if not found:
        return None
    return read_file(found[-1][1], bytes_max=ROSTER_COPY_BYTES_MAX, secret=False)


def _found(directory: Path) -> list[tuple[int, Path]]:
    with contextlib.suppress(OSError, ConfigError):
        return [
            (int(match[1]), path)
            for path in directory.iterdir()
            if (match := _NAME.fullmatch(path.name)) is not None
        ]
    return []
