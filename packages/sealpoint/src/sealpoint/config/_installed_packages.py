# SPDX-License-Identifier: Apache-2.0
"""The installed distributions that Python finds, and which of them a file belongs to.

A distribution counts by its version, with the distributions that it requires. If it was installed
from a folder or a URL, its version does not identify its content, so its files count. Python's own
library counts by the version of Python.
"""

import importlib.util
import re
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path

import msgspec

from sealpoint.config._code_cache import CodeCache
from sealpoint.config._code_identity import is_module_file

OWN = {
    "sealpoint": "sealpoint",
    "sealpoint_agent_framework": "sealpoint-agent-framework",
    "sealpoint_console": "sealpoint-console",
    "sealpoint_langgraph": "sealpoint-langgraph",
    "sealpoint_models": "sealpoint-models",
    "sealpoint_openclaw": "sealpoint-openclaw",
    "sealpoint_postgres": "sealpoint-postgres",
    "sealpoint_testing": "sealpoint-testing",
}
"""Our distributions by their modules: they count by their version, however they were installed."""
_REMEMBERED_MAX = 8_192
_REQUIRED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DASHES = re.compile(r"[-_.]+")


@lru_cache(maxsize=_REMEMBERED_MAX)
def is_application_file(file: str) -> bool:
    """Whether a file belongs to the application: not to Python, nor installed by its version."""
    path = Path(file).absolute()  # a program that was started by its path may have a relative one
    if any(map(path.is_relative_to, _own_folders())) or not (
        Path(file).is_absolute() or path.exists()
    ):
        return False
    return installed().is_own(path)


@cache
def _own_folders() -> tuple[Path, ...]:
    """Return the folders of our own modules."""
    specs = (importlib.util.find_spec(name) for name in OWN)
    places = (spec.submodule_search_locations or () for spec in specs if spec is not None)
    return tuple(Path(place) for found in places for place in found)


class _Distribution(msgspec.Struct, array_like=True, frozen=True):
    """One installed distribution."""

    name: str
    version: str
    requires: list[str]
    """The distributions that it always requires."""
    tops: list[str]
    """Its outermost modules."""
    by_files: bool
    """Whether its version does not identify its content: it came from a folder or a URL."""


class Installed:
    """The installed distributions in Python's directories for them.

    Args:
        places: These directories.
        standard: The directories of Python's own library.
    """

    def __init__(self, places: Sequence[Path], standard: Sequence[Path]) -> None:
        self._places = places
        self._standard = standard
        self._distributions: dict[str, _Distribution] = {}
        kept = CodeCache(" ".join(map(str, places)), _Distribution)
        for folder in (each for place in places for each in _folders(place)):
            changed = f"{folder} {folder.stat().st_mtime_ns}".encode()
            found = kept.get(changed) or _read_distribution(folder)
            kept.put(changed, found)
            self._distributions.setdefault(_normalized(found.name), found)
        kept.close()
        self._owners: dict[str, list[_Distribution]] = {}
        for _, each in sorted(self._distributions.items()):
            for top in each.tops:
                self._owners.setdefault(top, []).append(each)

    def is_foreign(self, path: Path) -> bool:
        """Whether a file belongs to Python's own library, or is installed."""
        return self._is_installed(path) or self.is_standard(path)

    def is_standard(self, path: Path) -> bool:
        """Whether a file belongs to Python's own library."""
        return not self._is_installed(path) and any(map(path.is_relative_to, self._standard))

    def is_own(self, path: Path) -> bool:
        """Whether a file counts by its content."""
        for place in self._places:
            if path.is_relative_to(place):
                top = path.relative_to(place).parts[0].partition(".")[0]
                owners = self.owners(top, path)
                return not owners or any(owner.by_files for owner in owners)
        return not self.is_standard(path)

    def _is_installed(self, path: Path) -> bool:
        return any(map(path.is_relative_to, self._places))

    def owners(self, top: str, path: Path) -> list[_Distribution]:
        """Return the distributions that own part of an outermost module; empty: not installed."""
        if self._is_installed(path):
            return self._owners.get(top, [])
        own = self._distributions.get(OWN.get(top, ""))
        return [] if own is None else [own]

    def versions(self, names: Iterable[str]) -> dict[str, str]:
        """Return the versions of some distributions, and of all that these require."""
        found: dict[str, str] = {}
        waiting = [_normalized(name) for name in names]
        while waiting:
            each = self._distributions.get(waiting.pop())
            if each is not None and each.name not in found:
                found[each.name] = each.version
                waiting += each.requires
        return dict(sorted(found.items()))


def installed() -> Installed:
    return _installed_in(tuple(sys.path))


@cache
def _installed_in(searched: tuple[str, ...]) -> Installed:
    paths = sysconfig.get_paths()
    # In the order of the import search: the first one has the version that is imported.
    known = dict.fromkeys(map(Path, (*searched, paths["purelib"], paths["platlib"])))
    standard = sorted({Path(paths[name]) for name in ("stdlib", "platstdlib")})
    return Installed([place for place in known if _folders(place)], standard)


def _folders(place: Path) -> list[Path]:
    try:
        return sorted(each for each in place.iterdir() if each.name.endswith(".dist-info"))
    except OSError:
        return []


def _read_distribution(folder: Path) -> _Distribution:
    """Read the metadata of a distribution."""
    given, _, version = folder.name.removesuffix(".dist-info").partition("-")
    requires = list[str]()
    for line in _lines(folder / "METADATA"):
        key, _, value = line.partition(": ")
        if not key:
            break  # the description follows
        if key == "Name":
            given = value
        elif key == "Requires-Dist" and "extra ==" not in value:
            named = _REQUIRED.match(value)
            requires += [_normalized(named[0])] if named else []
    firsts = (line.partition(",")[0].split("/") for line in _lines(folder / "RECORD"))
    tops = {
        parts[0].partition(".")[0] for parts in firsts if len(parts) > 1 or is_module_file(parts[0])
    }
    by_files = (folder / "direct_url.json").exists()
    return _Distribution(given, version, requires, sorted(tops), by_files)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _normalized(name: str) -> str:
    return _DASHES.sub("-", name).lower()
