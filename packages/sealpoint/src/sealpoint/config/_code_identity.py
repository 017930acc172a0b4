# SPDX-License-Identifier: Apache-2.0
"""The identity of running code: package version, module sources, and repository revision.

Nothing is imported and no program is started to find it out: the search looks for modules where an
import would find them, and reads the files of git. Missing information is an error, because a world
that contains less than requested would look unchanged. Only a directory outside any git repository
has no revision. A revision does not include uncommitted changes. The sources of modules are read
from the disk and count by their syntax: comments and formatting make no difference. In a package,
compiled modules count too, by their bytes; files that Python caches in `__pycache__` are ignored.

For git, this supports directories, work trees and submodules, with loose and packed references; it
is an error if a reference exists there and cannot be resolved. The main program gets the name that
an import would give it: Python calls it `__main__` only in its own process.
"""

import hashlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path

from sealpoint.errors import WorldInvalid
from sealpoint.world import Code, read_syntax

_FILE_BYTES_MAX = 16 * 1024
_PACKED_BYTES_MAX = 64 * 1024 * 1024
_REFERENCES_MAX = 5
_REVISION = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


def git_revision(directory: Path) -> str | None:
    """Return the revision checked out in a directory; None if it is in no repository.

    Raises:
        WorldInvalid: There is a repository, but its revision cannot be determined.
    """
    try:
        start = directory.resolve(strict=True)
        found = [place / ".git" for place in (start, *start.parents) if (place / ".git").exists()]
    except (OSError, RuntimeError) as exc:
        raise WorldInvalid(f"repository {directory}: there is no such directory") from exc
    if not found:
        return None
    own = _own_directory(found[0])
    # A work tree has its own HEAD and shares the rest.
    common = own / _line(own / "commondir") if (own / "commondir").exists() else own
    reference = "HEAD"
    for _ in range(_REFERENCES_MAX):
        text = _look_up(own, common, reference)
        if _REVISION.fullmatch(text):
            return text
        if not text.startswith("ref: "):
            break
        reference = text.removeprefix("ref: ").strip()
        _check_reference(own, reference)
    raise WorldInvalid(
        f"{own}: expected a revision for {reference!r}, found a text that is not one"
    )


def _own_directory(git: Path) -> Path:
    if git.is_dir():
        return git
    text = _line(git)
    if not text.startswith("gitdir: "):
        raise WorldInvalid(f"{git}: expected gitdir: and a path, found a file without them")
    return git.parent / text.removeprefix("gitdir: ")


def _check_reference(own: Path, reference: str) -> None:
    parts = reference.split("/")
    if parts[0] != "refs" or not all(part and part.strip(".") for part in parts):
        raise WorldInvalid(f"{own}: expected a reference below refs/, found {reference[:64]!r}")


def _look_up(own: Path, common: Path, reference: str) -> str:
    for directory in (own, common):
        if (directory / reference).is_file():
            return _line(directory / reference)
    packed = common / "packed-refs"
    if reference != "HEAD" and packed.is_file():
        for line in _read_text(packed, _PACKED_BYTES_MAX).splitlines():
            revision, _, name = line.partition(" ")
            if name == reference:
                return revision
    raise WorldInvalid(
        f"{own}: the reference {reference!r} is not there",
        hint="A repository without a commit has no revision, nor one with references in tables.",
    )


def _line(path: Path) -> str:
    return _read_text(path, _FILE_BYTES_MAX).strip()


def _read_text(path: Path, bytes_max: int) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(bytes_max + 1)
        text = data.decode()
    except (OSError, ValueError) as exc:
        raise WorldInvalid(f"{path}: it cannot be read as text") from exc
    if len(data) > bytes_max:
        raise WorldInvalid(f"{path}: it is larger than {bytes_max} bytes")
    return text


_SOURCE_BYTES_MAX = 64 * 1024 * 1024
_SOURCE_FILES_MAX = 20_000
_LENGTH_BYTES = 8
# In the order in which an import prefers them: a compiled module hides its source file.
_LOADERS = (
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (SourceFileLoader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)
_SUFFIXES = tuple(suffix for _, suffixes in _LOADERS for suffix in suffixes)


def code_of(
    package: str | None = None,
    modules: Sequence[str] = (),
    repository: str | os.PathLike[str] | None = None,
) -> Code:
    """Determine which code runs.

    Args:
        package: An installed distribution, for its version.
        modules: Modules and packages by their full names, for the digests of their sources.
        repository: A directory in a git repository, for its revision.

    Raises:
        WorldInvalid: Something that was requested cannot be determined.
    """
    if isinstance(modules, str):
        raise WorldInvalid(
            "modules: expected a list of names, found one text; write [...] around it"
        )
    return Code(
        version=None if package is None else _version(package),
        modules={name: _source_digest(name) for name in modules},
        revision=None if repository is None else git_revision(Path(repository)),
    )


def _version(package: str) -> str:
    # Imported here: it takes long to load, and few worlds name a package.
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        found: object = version(package)
    except (PackageNotFoundError, KeyError, ValueError, OSError) as exc:
        raise WorldInvalid(f"package {package!r}: it is not installed") from exc
    if not isinstance(found, str):
        raise WorldInvalid(f"package {package!r}: its metadata has no version")
    return found


def _source_digest(name: str) -> str:
    """Return the digest of a module's file, or of all files of a package with their names."""
    spec = find_module(name)
    if spec.submodule_search_locations is None:
        path = _source_path(spec)
        return _file_digest(path, read_source(path, name, _SOURCE_BYTES_MAX)).hex()
    if spec.origin is not None:
        _source_path(spec)
    places = [Path(place) for place in spec.submodule_search_locations]
    files = sorted(
        (
            os.fsencode(path.removeprefix(f"{place}{os.sep}").replace(os.sep, "/")),
            number,
            Path(path),
        )
        for number, place in enumerate(places)
        for path in files_below(str(place), name)
    )
    if not files:
        raise WorldInvalid(f"module {name!r}: it has no source files")
    digest = hashlib.sha256()
    left = _SOURCE_BYTES_MAX
    for relative, _, path in files:
        data = read_source(path, name, left)
        left -= len(data)
        # Framed, so that no byte can move from one file, or from a name, to another.
        for part in (relative, _file_digest(path, data)):
            digest.update(len(part).to_bytes(_LENGTH_BYTES, "big"))
            digest.update(part)
    return digest.hexdigest()


def _file_digest(path: Path, data: bytes) -> bytes:
    """Return the digest of a file's syntax, or of its bytes if Python cannot parse it."""
    syntax = read_syntax(data) if path.suffix in SOURCE_SUFFIXES else None
    return hashlib.sha256(data).digest() if syntax is None else bytes.fromhex(syntax.digest)


def find_module(name: str) -> ModuleSpec:
    """Find a module as an import would, without importing it or its package.

    Raises:
        WorldInvalid: There is no such module.
    """
    if not all(part.isidentifier() for part in name.split(".")):
        raise WorldInvalid(f"module {name!r}: give a full name such as app.tools")
    top, *rest = name.split(".")
    try:
        spec = _find_top(top)
        # find_spec() would import the enclosing package, so this follows the path itself.
        walked = top
        for part in rest:
            walked = f"{walked}.{part}"
            spec = _find_in(spec, walked)
    except (ImportError, ValueError, AttributeError, OSError) as exc:
        raise WorldInvalid(f"module {name!r}: looking for it raised an error") from exc
    if spec is None:
        raise WorldInvalid(
            f"module {name!r}: an import would not find it",
            hint="Name modules as they are imported, in the environment that runs them.",
        )
    return spec


def _find_top(name: str) -> ModuleSpec | None:
    """Find an outermost module as a new process would, ignoring what was loaded by a path."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = None if find is None else find(name, None)
        if spec is not None:
            return spec
    return None


def _find_in(parent: ModuleSpec | None, name: str) -> ModuleSpec | None:
    places = None if parent is None else parent.submodule_search_locations
    namespaces: list[str] = []
    for place in places or ():
        spec = FileFinder(place, *_LOADERS).find_spec(name)
        if spec is not None and spec.loader is not None:
            return spec
        if spec is not None:
            namespaces += spec.submodule_search_locations or ()
    if not namespaces:
        return None
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = namespaces
    return spec


def _source_path(spec: ModuleSpec) -> Path:
    if not spec.has_location or spec.origin is None or not spec.origin.endswith(".py"):
        raise WorldInvalid(
            f"module {spec.name!r}: it has no source file",
            hint="Name modules that are .py files; for others give the package's version.",
        )
    return Path(spec.origin)


def files_below(place: str, name: str) -> Iterator[str]:
    """Yield the files of all modules in the directory of a package.

    Hidden directories and virtual environments are not part of it and are left out.

    Raises:
        WorldInvalid: One cannot be read, or there are too many.
    """
    count = 0
    real: dict[str, str] = {}
    # Follow links, as an import does; a circular link would have no end.
    for folder, folders, files in os.walk(place, followlinks=True, onerror=_fail):
        folders[:] = [each for each in folders if not each.startswith(".")]
        if "pyvenv.cfg" in files and folder != place and "__init__.py" not in files:
            folders.clear()
            continue
        real[folder] = os.path.realpath(folder)
        around = folder.rpartition(os.sep)[0]
        while around in real:
            if real[around] == real[folder]:
                raise WorldInvalid(f"module {name!r}: the directory {real[folder]} is in itself")
            around = around.rpartition(os.sep)[0]
        for file in files:
            if is_module_file(file) and not _is_cache(folder, file):
                count += 1
                if count > _SOURCE_FILES_MAX:
                    raise WorldInvalid(
                        f"module {name!r}: it has more than {_SOURCE_FILES_MAX} files"
                    )
                yield f"{folder}{os.sep}{file}"


def is_module_file(name: str) -> bool:
    """Whether an import could find a module in a file of this name; editors leave other files."""
    return name.endswith(_SUFFIXES) and not name.startswith(".")


def module_name(file: str) -> tuple[str, bool]:
    """Return the module name of a file below a package, and whether it is a package itself."""
    # Use text operations: an application may have thousands of files.
    folder, _, last = file.rpartition(os.sep)
    inner, is_package = folder.replace(os.sep, "."), last.startswith("__init__.")
    name = "" if is_package else last.partition(".")[0]
    return ".".join(part for part in (inner, name) if part), is_package


def _is_cache(folder: str, file: str) -> bool:
    """Whether a file is in Python's cache, where no import finds it by its name."""
    cached = folder.endswith(f"{os.sep}__pycache__") and file.endswith(tuple(BYTECODE_SUFFIXES))
    return cached and "." in file.rpartition(".")[0]


def _fail(error: OSError) -> None:
    raise WorldInvalid(f"{error.filename}: it cannot be read: {error.strerror}") from error


def read_source(path: str | Path, name: str, bytes_max: int) -> bytes:
    """Read the bytes of a module's file.

    Raises:
        WorldInvalid: It cannot be read, or is too large.
    """
    try:
        # Non-blocking, because opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            size = os.fstat(descriptor).st_size
            data = os.read(descriptor, min(size, bytes_max) + 1)
        finally:
            os.close(descriptor)
    except OSError as exc:
        raise WorldInvalid(f"module {name!r}: {path} cannot be read: {exc.strerror}") from exc
    if len(data) != size:
        raise WorldInvalid(f"module {name!r}: {path} is too large, or it changed while it was read")
    return data


# The second is the same program in a process that multiprocessing started.
_STARTED = ("__main__", "__mp_main__")


def imported_name(module: str) -> str:
    """Return the import name of a module.

    For the main program that is the name after `-m`, or the name of its file without `.py`. If
    there is neither, as in an interactive session, it stays `__main__`.
    """
    if module not in _STARTED:
        return module
    started = sys.modules.get(module)
    spec = getattr(started, "__spec__", None)
    if spec is not None and spec.name not in _STARTED:
        return str(spec.name)
    file = getattr(started, "__file__", None)
    return Path(file).stem if isinstance(file, str) else _STARTED[0]
