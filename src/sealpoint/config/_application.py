# SPDX-License-Identifier: Apache-2.0
"""The code of an application, counted by its modules: all of them, imported yet or not.

It begins with the modules that hold the functions and classes of a graph or a workflow. The package
of such a module counts whole, and so do the modules in the folder of that package, or of a module
that lies in none: one of them may build the graph. What all of these import belongs to the
application as well, unless it is installed: that counts by distribution and version, with what the
distribution requires. If a distribution was installed from a folder or an address, no version says
what is in it, so its files count. Python's own library counts by the version of Python.

Each module counts by its syntax. The modules that hold the graph, and those that they lead to by
their imports, are its *code*; the others are the rest of the *application*. Nothing is imported and
nothing runs here. An application is read once in a process: a file that is replaced later is not
what runs.

To read a line takes 10 to 20 us. So the result is kept in the user's cache directory, by the
digests of the contents of all files. Whoever can write there runs as this user.
"""

import hashlib
import re
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.machinery import SOURCE_SUFFIXES
from pathlib import Path, PurePath
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import platformdirs

from sealpoint.config._code import (
    files_below,
    find_module,
    is_module_file,
    module_name,
    read_source,
)
from sealpoint.config._secret_files import read_file, replace_file
from sealpoint.errors import SealpointError, WorldInvalid
from sealpoint.world import read_imports, read_syntax

_T = TypeVar("_T")
_FILES_MAX = 20_000
_BYTES_MAX = 256 * 1024 * 1024
_CACHE_BYTES_MAX = 64 * 1024 * 1024
_CACHES_MAX = 256
_CACHE_FORMAT = 1
"""Changes with the form of what is kept, and with whatever `read_syntax` gives."""
_WHOLE = b"application"
_CONTENT_BYTES = 32
_LISTS_MAX = 64
_DATA_BYTES_MAX = 16 * 1024 * 1024
_DATA_TEXT_MAX = 4_096
_REMEMBERED_MAX = 8_192
_OWN = "sealpoint"
"""Counts by its version, however it was installed."""
_OWN_FOLDER = Path(__file__).parents[1]
_REQUIRED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SOURCES = tuple(SOURCE_SUFFIXES)
_DASHES = re.compile(r"[-_.]+")


class Module(msgspec.Struct, array_like=True, frozen=True):
    """A module of the application."""

    digest: str
    """The SHA-256 of what it says."""
    encoded: msgspec.Raw

    @property
    def definitions(self) -> dict[str, str]:
        """The beginnings of the digests of what it defines."""
        return msgspec.msgpack.decode(self.encoded, type=dict[str, str])


@dataclass(frozen=True, slots=True)
class Application:
    """The code that an application consists of."""

    code: Mapping[str, Module]
    """The modules that hold it, and those that they lead to by their imports."""
    rest: Mapping[str, Module]
    """The other modules of its packages."""
    versions: Mapping[str, str]
    """The installed distributions that it uses."""


class ModuleOrigin(NamedTuple):
    """A module that holds something of a graph."""

    module: str
    """Its name, as an import gives it."""
    file: str | None
    """Where it lies; None: that is not known."""


_LOCK = threading.Lock()
_READ: dict[frozenset[ModuleOrigin], Application] = {}


def read_application(origins: Iterable[ModuleOrigin]) -> Application:
    """Find the code of an application.

    Args:
        origins: The modules that hold its functions and classes. Those of Python's own library, and
            those that have no file, are left out.

    Raises:
        WorldInvalid: A file cannot be read, or there are too many.
    """
    key = frozenset(origins)
    with _LOCK:
        found = _READ.get(key)
        if found is None:
            if len(_READ) >= _LISTS_MAX:
                _READ.clear()
            found = _READ[key] = _read(sorted(key, key=str))
        return found


@lru_cache(maxsize=_REMEMBERED_MAX)
def is_application_file(file: str) -> bool:
    """Whether a file is the application's: neither Python's own nor installed by its version."""
    path = Path(file).absolute()  # a program that was run by its path may have a relative one
    if path.is_relative_to(_OWN_FOLDER) or not (Path(file).is_absolute() or path.exists()):
        return False
    return _installed().is_own(path)


def read_data_files(files: Iterable[str | PurePath]) -> dict[str, str]:
    """Data files by name: their texts, or digests of what is long or no text.

    Args:
        files: Files, and folders with all that is in them. Each is called by the last part of its
            path, so that it makes no difference where an application lies.

    Raises:
        WorldInvalid: One is not there, or two have one name.
    """
    found: dict[str, str] = {}
    for given in map(Path, files):
        for path in _files_below(given) if given.is_dir() else [given]:
            name = Path(given.name, path.relative_to(given)).as_posix()
            if name in found:
                raise WorldInvalid(f"files: expected each name once, found {name!r} twice")
            found[name] = _data_text(read_source(path, name, _DATA_BYTES_MAX))
    return found


def _files_below(folder: Path) -> list[Path]:
    """The files in a folder, but for hidden ones, which editors and systems leave there."""
    inside = (path for path in folder.rglob("*") if path.is_file())
    return sorted(
        path
        for path in inside
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def _data_text(data: bytes) -> str:
    with suppress(ValueError):
        if len(data) <= _DATA_TEXT_MAX:
            return data.decode()
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


# ---------------------------------------------------------------------- modules


_Imports = list[tuple[str, int, list[str]]]
_NO_DEFINITIONS = msgspec.Raw(msgspec.msgpack.encode({}))
_NO_IMPORTS = msgspec.Raw(msgspec.msgpack.encode([]))


class _FoundFile(msgspec.Struct, array_like=True, frozen=True):
    """What was found in a file; the form in which it is kept."""

    digest: str
    tops: list[str] = []
    """The outermost modules of those that it imports by their full names."""
    definitions: msgspec.Raw = _NO_DEFINITIONS
    """As `Module` has them; encoded, because few of them are looked at."""
    imports: msgspec.Raw = _NO_IMPORTS
    """Each by its name, how many levels up it is looked for, and what is imported from it."""


class _FoundApplication(msgspec.Struct, array_like=True, frozen=True):
    """What was found in all files of an application; the form in which it is kept."""

    contents: bytes
    """The digest of these files."""
    tops: list[str]
    """The outermost modules that it may import."""
    code: dict[str, Module]
    rest: dict[str, Module]


class _File(NamedTuple):
    path: str
    is_package: bool


def _read(origins: Sequence[ModuleOrigin]) -> Application:
    names = " ".join(sorted({origin.module for origin in origins}))
    cache = _Cache(f"application {names}", _FoundApplication)
    known = cache.get(_WHOLE)
    if known is not None:
        # With the files that it had, it imports what it imported.
        files = _ApplicationFiles(origins, known.tops)
        if files.contents() == known.contents:
            return files.application(known)
    files = _ApplicationFiles(origins)
    found = files.read()
    cache.put(_WHOLE, found)
    cache.close()
    return files.application(found)


class _ApplicationFiles:
    """The files of one application.

    Args:
        origins: The modules that it begins with.
        tops: The outermost modules that it is known to import.
    """

    def __init__(self, origins: Sequence[ModuleOrigin], tops: Iterable[str] = ()) -> None:
        self._installed = _installed()
        self._tops: set[str] = set()
        self._files: dict[str, list[_File]] = {}
        self._folders: dict[str, list[Path]] = {}
        """Where own outermost modules and packages lie."""
        self._used: set[str] = set()
        self._bytes = 0
        self._digests: dict[str, bytes] = {}
        self._held = [name for name in map(self._begin, origins) if name is not None]
        for top in tops:
            self._add(top)

    def application(self, found: _FoundApplication) -> Application:
        """The application whose code was found in these files."""
        return Application(found.code, found.rest, self._installed.versions(self._used))

    def contents(self) -> bytes:
        """A digest of the names of all modules and of the contents of their files."""
        digest = hashlib.blake2b(" ".join(self._held).encode(), digest_size=_CONTENT_BYTES)
        for name, files in sorted(self._files.items()):
            for path, is_package in files:
                if path not in self._digests:
                    self._read(name, path)
                told = f"\n{name} {is_package} ".encode("utf-8", "surrogateescape")
                digest.update(told + self._digests[path])
        return digest.digest()

    def _read(self, name: str, path: str) -> bytes:
        data = read_source(path, name, _BYTES_MAX - self._bytes)
        self._bytes += len(data)
        self._digests[path] = hashlib.blake2b(data, digest_size=_CONTENT_BYTES).digest()
        return data

    def read(self) -> _FoundApplication:
        """Read all files, and those of what they import."""
        found: dict[str, _FoundFile] = {}
        caches: dict[str, _Cache[_FoundFile]] = {}
        while waiting := sorted(self._files.keys() - found.keys()):
            for name in waiting:
                top = name.partition(".")[0]
                if top not in caches:
                    caches[top] = _Cache(f"package {top}", _FoundFile)
                files = [self._find_in(name, file.path, caches[top]) for file in self._files[name]]
                # A compiled module beside its source, or the parts of a namespace.
                found[name] = _joined(files) if files[1:] else files[0]
                for imported in found[name].tops:
                    self._add(imported)
        for each in caches.values():
            each.close()
        modules = {name: Module(file.digest, file.definitions) for name, file in found.items()}
        reached = self._reached(found)
        return _FoundApplication(
            self.contents(),
            sorted(self._tops),
            {name: modules[name] for name in sorted(reached)},
            {name: modules[name] for name in sorted(modules.keys() - reached)},
        )

    def _begin(self, origin: ModuleOrigin) -> str | None:
        """Take the module that an application begins with; its name, if that is read."""
        top = origin.module.partition(".")[0]
        self._add(top)
        for folder in self._folders.get(top, ()):
            self._add_folder(folder)
        if origin.module in self._files:
            return origin.module
        if origin.file is None or not is_module_file(origin.file):
            return None
        path = Path(origin.file)
        if self._installed.is_foreign(path) or not path.is_file():
            return None
        # A program that was started, or that somebody loaded by its path.
        name = path.stem if origin.module.rpartition(".")[2] != path.stem else origin.module
        self._add_file(name, path)
        self._add_folder(path.parent)
        return name

    def _add_folder(self, folder: Path) -> None:
        """Take the modules that lie beside one that is in no package."""
        if not self._installed.is_foreign(folder):
            for path in _files_in(folder):
                self._add_file(path.stem, path)

    def _add_file(self, name: str, path: Path) -> None:
        """Take a module; another one of its name, loaded by a path, counts with it."""
        files = self._files.setdefault(name, [])
        if all(file.path != str(path) for file in files):
            files.append(_File(str(path), is_package=False))

    def _add(self, top: str) -> None:
        """Take an outermost module or package, if it is the application's own."""
        if top in self._tops:
            return
        self._tops.add(top)
        try:
            spec = find_module(top)
        except WorldInvalid:
            return  # it is not installed here, and an import of it would fail
        places = [Path(place) for place in spec.submodule_search_locations or ()]
        if places:
            for place in places:
                if self._is_own(top, place):
                    self._add_package(top, place)
        elif spec.has_location and spec.origin and self._is_own(top, Path(spec.origin)):
            self._add_file(top, _existing(Path(spec.origin)))
            self._folders.setdefault(top, []).append(Path(spec.origin).parent)

    def _is_own(self, top: str, place: Path) -> bool:
        """Whether a place of an outermost module counts by its files; note whose it is."""
        if self._installed.is_standard(place):
            return False
        owners = self._installed.owners(top, place)
        self._used.update(owner.name for owner in owners)
        return top != _OWN and (not owners or any(owner.by_files for owner in owners))

    def _add_package(self, top: str, folder: Path) -> None:
        if not folder.is_dir():
            archive = _existing(folder)
            if archive.is_file():  # it lies in one; a finder may also have made up its place
                self._add_file(top, archive)
            return
        self._folders.setdefault(top, []).append(folder.parent)
        place = str(folder)
        for file in files_below(place, top):
            inner, is_package = module_name(file[len(place) + 1 :])
            name = f"{top}.{inner}" if inner else top
            self._files.setdefault(name, []).append(_File(file, is_package))
        if len(self._files) > _FILES_MAX:
            raise WorldInvalid(
                f"package {top!r}: the application has more than {_FILES_MAX} modules",
                hint="Give the world yourself, with code=code_of(modules=[...]).",
            )

    def _find_in(self, name: str, path: str, cache: "_Cache[_FoundFile]") -> _FoundFile:
        data = self._read(name, path)
        # Only of a program the syntax is read.
        key = self._digests[path] + path.endswith(_SOURCES).to_bytes()
        found = cache.get(key) or _find_in(path, data)
        cache.put(key, found)
        return found

    def _reached(self, found: Mapping[str, _FoundFile]) -> set[str]:
        """The modules that those which hold the graph lead to, by the imports in them."""
        reached, waiting = set[str](), deque(self._held)
        while waiting:
            name = waiting.popleft()
            if name in reached:
                continue
            if name in found:
                reached.add(name)
                waiting += self._imported_by(name, found[name])
            if "." in name:  # what a module lies in is imported first
                waiting.append(name.rpartition(".")[0])
        return reached

    def _imported_by(self, name: str, found: _FoundFile) -> Iterator[str]:
        """The modules that one may import; not all of these need be there."""
        package = name if self._files[name][0].is_package else name.rpartition(".")[0]
        for given, level, names in _imports(found):
            module = _absolute(given, level, package)
            yield module
            yield from (f"{module}.{each}" for each in names)


def _joined(files: Sequence[_FoundFile]) -> _FoundFile:
    """What several files of one module say."""
    digests = "".join(sorted(each.digest for each in files))
    return _FoundFile(
        hashlib.sha256(digests.encode()).hexdigest(),
        [top for each in files for top in each.tops],
        _NO_DEFINITIONS,
        msgspec.Raw(msgspec.msgpack.encode([it for each in files for it in _imports(each)])),
    )


def _imports(found: _FoundFile) -> _Imports:
    return msgspec.msgpack.decode(found.imports, type=_Imports)


def _existing(path: Path) -> Path:
    """The file, or the archive that it lies in."""
    return next((place for place in (path, *path.parents) if place.is_file()), path)


def _files_in(folder: Path) -> list[Path]:
    """The programs that lie in a folder itself."""
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if path.suffix in _SOURCES and is_module_file(path.name) and path.is_file()
        )
    except OSError:
        return []  # it lies in an archive


def _absolute(name: str, level: int, package: str) -> str:
    """The whole name of a module that is imported from so many levels up; empty beyond the top."""
    if not level:
        return name
    parts = package.split(".") if package else []
    above = parts[: max(0, len(parts) + 1 - level)]
    return ".".join([*above, name] if name else above) if above else ""


# ---------------------------------------------------------------------- what was found before


class _Cache(Generic[_T]):
    """What an earlier process has found, by keys that say exactly from what.

    Without it everything is read anew; a cache that cannot be written is none.

    Args:
        name: What it is of.
        kind: What it keeps.
    """

    def __init__(self, name: str, kind: type[_T]) -> None:
        version = f"{_CACHE_FORMAT} {sys.version_info[:2]} {name}"
        self._name = f"code-{hashlib.sha256(version.encode()).hexdigest()[:32]}"
        self._before: dict[bytes, _T] = {}
        self._now: dict[bytes, _T] = {}
        with suppress(SealpointError, OSError, RuntimeError, msgspec.MsgspecError):
            data = read_file(self._path(), bytes_max=_CACHE_BYTES_MAX, secret=True)
            if data is not None:
                kept: Any = dict[bytes, kind]  # type: ignore[valid-type]
                self._before = msgspec.msgpack.decode(data, type=kept)

    def _path(self) -> Path:
        return platformdirs.user_cache_path(_OWN) / self._name

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
            for oldest in kept[:-_CACHES_MAX]:
                oldest.unlink(missing_ok=True)


def _find_in(path: str, data: bytes) -> _FoundFile:
    """What a file says: a program by its syntax, all else by its bytes."""
    is_program = path.endswith(_SOURCES)
    syntax = read_syntax(data) if is_program else None
    found = syntax.imports if syntax is not None else read_imports(data) if is_program else ()
    imports = [(each.module, each.level, list(each.names)) for each in found]
    tops = {name.partition(".")[0] for name, level, _ in imports if not level}
    encode = msgspec.msgpack.encode
    return _FoundFile(
        hashlib.sha256(data).hexdigest() if syntax is None else syntax.digest,
        sorted(tops),
        msgspec.Raw(encode({} if syntax is None else syntax.definitions)),
        msgspec.Raw(encode(imports)),
    )


# ---------------------------------------------------------------------- what is installed


class _Distribution(msgspec.Struct, array_like=True, frozen=True):
    """One that is installed."""

    name: str
    version: str
    requires: list[str]
    """The distributions that it always requires."""
    tops: list[str]
    """Its outermost modules."""
    by_files: bool
    """Whether its version does not say what is in it: it came from a folder or an address."""


class _Installed:
    """What is installed, in the directories that Python has for it.

    Args:
        places: These directories.
        standard: Those of Python's own library.
    """

    def __init__(self, places: Sequence[Path], standard: Sequence[Path]) -> None:
        self._places = places
        self._standard = standard
        self._distributions: dict[str, _Distribution] = {}
        kept = _Cache(" ".join(map(str, places)), _Distribution)
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
        """Whether a file is of Python's own library, or installed."""
        return self._is_installed(path) or self.is_standard(path)

    def is_standard(self, path: Path) -> bool:
        """Whether a file is of Python's own library."""
        return not self._is_installed(path) and any(map(path.is_relative_to, self._standard))

    def is_own(self, path: Path) -> bool:
        """Whether a file counts by what is in it."""
        for place in self._places:
            if path.is_relative_to(place):
                top = path.relative_to(place).parts[0].partition(".")[0]
                owners = self.owners(top, path)
                return not owners or any(owner.by_files for owner in owners)
        return not self.is_standard(path)

    def _is_installed(self, path: Path) -> bool:
        return any(map(path.is_relative_to, self._places))

    def owners(self, top: str, path: Path) -> list[_Distribution]:
        """The distributions that have a part of an outermost module; none: it is not installed."""
        if self._is_installed(path):
            return self._owners.get(top, [])
        own = self._distributions.get(top) if top == _OWN else None
        return [] if own is None else [own]

    def versions(self, names: Iterable[str]) -> dict[str, str]:
        """The versions of some, and of all that these require."""
        found: dict[str, str] = {}
        waiting = [_normalized(name) for name in names]
        while waiting:
            each = self._distributions.get(waiting.pop())
            if each is not None and each.name not in found:
                found[each.name] = each.version
                waiting += each.requires
        return dict(sorted(found.items()))


def _installed() -> _Installed:
    return _installed_in(tuple(sys.path))


@cache
def _installed_in(searched: tuple[str, ...]) -> _Installed:
    paths = sysconfig.get_paths()
    # In the order in which an import looks: the first has the version that is imported.
    known = dict.fromkeys(map(Path, (*searched, paths["purelib"], paths["platlib"])))
    standard = sorted({Path(paths[name]) for name in ("stdlib", "platstdlib")})
    return _Installed([place for place in known if _folders(place)], standard)


def _folders(place: Path) -> list[Path]:
    try:
        return sorted(each for each in place.iterdir() if each.name.endswith(".dist-info"))
    except OSError:
        return []


def _read_distribution(folder: Path) -> _Distribution:
    """What a distribution says of itself."""
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
