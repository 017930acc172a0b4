# SPDX-License-Identifier: Apache-2.0
"""A cache of analyzed files, kept between processes in the user's cache directory.

Reading a line of code takes 10 to 20 us. So the cache stores results under keys that exactly
identify their inputs. Only code that runs as this user can write there.
"""

import hashlib
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import platformdirs

from sealpoint.config._protected_files import read_file, replace_file
from sealpoint.errors import SealpointError

_T = TypeVar("_T")
_APPLICATION = "sealpoint"
_BYTES_MAX = 64 * 1024 * 1024
_FILES_MAX = 256
_FORMAT = 1
"""Increase this when the stored form or the result of `read_syntax` changes."""


class CodeCache(Generic[_T]):
    """Results of earlier processes, by keys that exactly identify their inputs.

    Without a cache file, everything is read again; a cache that cannot be written is ignored.

    Args:
        name: The subject of the cache.
        kind: The type of its values.
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
        """Return the result of an earlier process, or None."""
        return self._before.get(key)

    def put(self, key: bytes, found: _T) -> None:
        """Record a result that is still current."""
        self._now[key] = found

    def close(self) -> None:
        """Write the results, if there are new ones."""
        if all(self._before.get(key) == found for key, found in self._now.items()):
            return
        with suppress(SealpointError, OSError, RuntimeError):
            path = self._path()
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(path, msgspec.msgpack.encode(self._now))
            kept = sorted(path.parent.glob("code-*"), key=lambda each: each.stat().st_mtime_ns)
            for oldest in kept[:-_FILES_MAX]:
                oldest.unlink(missing_ok=True)
