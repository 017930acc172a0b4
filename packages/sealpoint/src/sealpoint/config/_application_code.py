# SPDX-License-Identifier: Apache-2.0
"""The code of an application, counted by its modules: all of them, imported yet or not.

The search starts from the modules that define the functions and classes of a graph or a workflow.
The whole package of such a module counts, and so do the modules in the package's folder, or in the
folder of a module without a package: one of them may build the graph. Everything that these modules
import also belongs to the application, except installed modules. These count by distribution and
version, together with the distributions that they require. If a distribution was installed from a
folder or a URL, its version does not identify its content, so its files count. Python's own library
counts by the version of Python.

Each module counts by its syntax. The modules that define the graph, and those that they lead to by
their imports, are its *code*; the others are the rest of the *application*. This module imports
nothing and runs nothing. A process reads an application once: a file that is replaced later is not
the code that runs.

A cache keeps the result for the next process, by the digests of the contents of all files.
"""

import hashlib
import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import SOURCE_SUFFIXES
from pathlib import Path, PurePath
from typing import NamedTuple

import msgspec

from sealpoint.config._code_cache import CodeCache
from sealpoint.config._code_identity import (
    files_below,
    find_module,
    is_module_file,
    module_name,
    read_source,
)
from sealpoint.config._installed_packages import OWN, installed
from sealpoint.errors import WorldInvalid
from sealpoint.world import read_imports, read_syntax

_FILES_MAX = 20_000
_BYTES_MAX = 256 * 1024 * 1024
_WHOLE = b"application"
_CONTENT_BYTES = 32
_LISTS_MAX = 64
_DATA_BYTES_MAX = 16 * 1024 * 1024
_DATA_TEXT_MAX = 4_096
_SOURCES = tuple(SOURCE_SUFFIXES)


class Module(msgspec.Struct, array_like=True, frozen=True):
    """A module of the application."""

    digest: str
    """The SHA-256 of its meaning."""
    encoded: msgspec.Raw

    @property
    def definitions(self) -> dict[str, str]:
        """Prefixes of the digests of its definitions."""
        return msgspec.msgpack.decode(self.encoded, type=dict[str, str])


@dataclass(frozen=True, slots=True)
class Application:
    """The code of an application."""

    code: Mapping[str, Module]
    """The modules that define it, and those that they lead to by their imports."""
    rest: Mapping[str, Module]
    """The other modules of its packages."""
    versions: Mapping[str, str]
    """The versions of the installed distributions that it uses."""


class ModuleOrigin(NamedTuple):
    """A module that defines a part of a graph."""

    module: str
    """Its import name."""
    file: str | None
    """Its file; None: unknown."""


_LOCK = threading.Lock()
_READ: dict[frozenset[ModuleOrigin], Application] = {}


def read_application(origins: Iterable[ModuleOrigin]) -> Application:
    """Find the code of an application.

    Args:
        origins: The modules that define its functions and classes. Modules of Python's own library,
            and modules without a file, are ignored.

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


_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_PACKAGE = "__init__.py"


def place_in_project(text: str) -> str | None:
    """Return a path relative to the project or package that contains it; None if there is none.

    The result is the same in every checkout of a project.
    """
    if not text.startswith(os.sep):
        return None
    path = Path(text)
    for folder in (path, *path.parents):
        if _has(folder, _PACKAGE):
            while _has(folder, _PACKAGE):
                folder = folder.parent  # noqa: PLW2901 - the folder above the outermost package
        elif not _has(folder, *_PROJECT):
            continue
        return path.relative_to(folder).as_posix()
    return None


def _has(folder: Path, *names: str) -> bool:
    # Not the method of Path, which raises if access is denied or a name is too long.
    return any(os.path.exists(folder / name) for name in names)  # noqa: PTH110


def read_data_files(files: Iterable[str | PurePath]) -> dict[str, str]:
    """Read data files by name: as text, or as a digest if long or not text.

    Args:
        files: Files, and folders with everything in them. The name of each is the last part of its
            path, so that the location of the application does not matter.

    Raises:
        WorldInvalid: A file is missing, or two have the same name.
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
    """Return the files in a folder, except hidden ones, which editors and systems leave there."""
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
    """The result for one file, as the cache stores it."""

    digest: str
    tops: list[str] = []
    """The outermost modules of its absolute imports."""
    definitions: msgspec.Raw = _NO_DEFINITIONS
    """As in `Module`; encoded, because few of them are read."""
    imports: msgspec.Raw = _NO_IMPORTS
    """For each import the module, the number of levels up, and the imported names."""


class _FoundApplication(msgspec.Struct, array_like=True, frozen=True):
    """The result for all files of an application, as the cache stores it."""

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
    cache = CodeCache(f"application {names}", _FoundApplication)
    known = cache.get(_WHOLE)
    if known is not None:
        # With the same files, it imports the same modules.
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
        origins: The modules that the search starts from.
        tops: The outermost modules that it is known to import.
    """

    def __init__(self, origins: Sequence[ModuleOrigin], tops: Iterable[str] = ()) -> None:
        self._installed = installed()
        self._tops: set[str] = set()
        self._files: dict[str, list[_File]] = {}
        self._folders: dict[str, list[Path]] = {}
        """The folders that contain the application's outermost modules and packages."""
        self._used: set[str] = set()
        self._bytes = 0
        self._digests: dict[str, bytes] = {}
        self._held = [name for name in map(self._begin, origins) if name is not None]
        for top in tops:
            self._add(top)

    def application(self, found: _FoundApplication) -> Application:
        """Return the application whose code was found in these files."""
        return Application(found.code, found.rest, self._installed.versions(self._used))

    def contents(self) -> bytes:
        """Return a digest of the names of all modules and of the contents of their files."""
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
        """Read all files, and those of the modules that they import."""
        found: dict[str, _FoundFile] = {}
        caches: dict[str, CodeCache[_FoundFile]] = {}
        while waiting := sorted(self._files.keys() - found.keys()):
            for name in waiting:
                top = name.partition(".")[0]
                if top not in caches:
                    caches[top] = CodeCache(f"package {top}", _FoundFile)
                files = [self._find_in(name, file.path, caches[top]) for file in self._files[name]]
                # There are several files for a compiled module with its source, or for a namespace.
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
        """Take a module that the search starts from; return its name if its file is read."""
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
        # The main program, or a file that was loaded by its path.
        name = path.stem if origin.module.rpartition(".")[2] != path.stem else origin.module
        self._add_file(name, path)
        self._add_folder(path.parent)
        return name

    def _add_folder(self, folder: Path) -> None:
        """Take the modules in the folder of a module without a package."""
        if not self._installed.is_foreign(folder):
            for path in _files_in(folder):
                self._add_file(path.stem, path)

    def _add_file(self, name: str, path: Path) -> None:
        """Take a module; another file with the same name, loaded by its path, counts with it."""
        files = self._files.setdefault(name, [])
        if all(file.path != str(path) for file in files):
            files.append(_File(str(path), is_package=False))

    def _add(self, top: str) -> None:
        """Take an outermost module or package, if it belongs to the application."""
        if top in self._tops:
            return
        self._tops.add(top)
        try:
            spec = find_module(top)
        except WorldInvalid:
            return  # not installed here, so an import of it would fail
        places = [Path(place) for place in spec.submodule_search_locations or ()]
        if places:
            for place in places:
                if self._is_own(top, place):
                    self._add_package(top, place)
        elif spec.has_location and spec.origin and self._is_own(top, Path(spec.origin)):
            self._add_file(top, _existing(Path(spec.origin)))
            self._folders.setdefault(top, []).append(Path(spec.origin).parent)

    def _is_own(self, top: str, place: Path) -> bool:
        """Whether a place of an outermost module counts by its files; also records the owner."""
        if self._installed.is_standard(place):
            return False
        owners = self._installed.owners(top, place)
        self._used.update(owner.name for owner in owners)
        return top not in OWN and (not owners or any(owner.by_files for owner in owners))

    def _add_package(self, top: str, folder: Path) -> None:
        if not folder.is_dir():
            archive = _existing(folder)
            # the package is in an archive; a finder may also have invented the place
            if archive.is_file():
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

    def _find_in(self, name: str, path: str, cache: "CodeCache[_FoundFile]") -> _FoundFile:
        data = self._read(name, path)
        # Only source files are parsed.
        key = self._digests[path] + path.endswith(_SOURCES).to_bytes()
        found = cache.get(key) or _find_in(path, data)
        cache.put(key, found)
        return found

    def _reached(self, found: Mapping[str, _FoundFile]) -> set[str]:
        """Return the modules that the modules of the graph lead to, by their imports."""
        reached, waiting = set[str](), deque(self._held)
        while waiting:
            name = waiting.popleft()
            if name in reached:
                continue
            if name in found:
                reached.add(name)
                waiting += self._imported_by(name, found[name])
            if "." in name:  # Python imports the enclosing package first
                waiting.append(name.rpartition(".")[0])
        return reached

    def _imported_by(self, name: str, found: _FoundFile) -> Iterator[str]:
        """Yield the modules that a module may import; not all of them need exist."""
        package = name if self._files[name][0].is_package else name.rpartition(".")[0]
        for given, level, names in _imports(found):
            module = _absolute(given, level, package)
            yield module
            yield from (f"{module}.{each}" for each in names)


def _joined(files: Sequence[_FoundFile]) -> _FoundFile:
    """Combine the results for several files of one module."""
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
    """Return the file, or the archive that contains it."""
    return next((place for place in (path, *path.parents) if place.is_file()), path)


def _files_in(folder: Path) -> list[Path]:
    """Return the source files directly in a folder."""
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if path.suffix in _SOURCES and is_module_file(path.name) and path.is_file()
        )
    except OSError:
        return []  # the folder is in an archive


def _absolute(name: str, level: int, package: str) -> str:
    """Resolve a relative import to a full module name; empty beyond the outermost package."""
    if not level:
        return name
    parts = package.split(".") if package else []
    above = parts[: max(0, len(parts) + 1 - level)]
    return ".".join([*above, name] if name else above) if above else ""


def _find_in(path: str, data: bytes) -> _FoundFile:
    """Return the result for a file: a source file by its syntax, any other file by its bytes."""
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
