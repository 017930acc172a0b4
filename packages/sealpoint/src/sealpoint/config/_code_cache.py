# SPDX-License-Identifier: Apache-2.0
"""What earlier processes found in files, kept in the user's cache directory.

To read a line of code takes 10 to 20 us. So the result is kept by keys that say exactly from what
it was made. Whoever can write there runs as this user.
"""

import hashlib
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import platformdirs

from sealpoint.config._secret_files import read_file, replace_file
from sealpoint.errors import SealpointError

_T = TypeVar("_T")
_APPLICATION = "sealpoint"
_BYTES_MAX = 64 * 1024 * 1024
_FILES_MAX = 256
_FORMAT = 1
"""Changes with the form of what is kept, and with whatever `read_syntax` gives."""


class CodeCache(Generic[_T]):
    """What an earlier process has found, by keys that say exactly from what.

    Without it everything is read anew; a cache that cannot be written is none.

    Args:
        name: What it is of.
        kind: What it keeps.
    """

    def __init__(self, name: str, kind: type[_T]) -> None:
        version = f"{_FORMAT} {sys.version_info[:2]} {name}"
        self._name = f"code-{hashlib.sha256(version.encode()).hexdigest()[:32]}"
        self._before: dict[bytes, _T] = {}
        self._now: dict[bytes, _T] = {}
        with suppress(SealpointError, OSError, RuntimeError, msgspec.MsgspecError):
            data = read_file(self._path(), bytes_max=_BYTES_MAX, secret=True)
            if data is not None:
                kept: Any = dict[bytes, kind]  # type: ignore[valid-type]
                self._before = msgspec.msgpack.decode(data, type=kept)

    def _path(self) -> Path:
        return platformdirs.user_cache_path(_APPLICATION) / self._name

    def get(self, key: bytes) -> _T | None:
        """What was found."""
        return self._before.get(key)

    def put(self, key: bytes, found: _T) -> None:
        """Keep what is still so."""
        self._now[key] = found

    def close(self) -> None:
        """Keep what was found, where something is new."""
        if all(self._before.get(key) == found for key, found in self._now.items()):
            return
        with suppress(SealpointError, OSError, RuntimeError):
            path = self._path()
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(path, msgspec.msgpack.encode(self._now))
            kept = sorted(path.parent.glob("code-*"), key=lambda each: each.stat().st_mtime_ns)
            for oldest in kept[:-_FILES_MAX]:
                oldest.unlink(missing_ok=True)
