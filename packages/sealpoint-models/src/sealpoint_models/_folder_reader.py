# SPDX-License-Identifier: Apache-2.0
"""A folder of model files that is open for reading: its exact list of files, and their digests.

Every access goes through the descriptor of the folder and follows no link, so that listing, hashing
and reading stay in this folder even if an attacker renames things around it. Links, pipes, devices,
names that another system would read differently, and two names that some system treats as one are
refused: a folder means the same wherever it is copied.

A safetensors file has the digests of its header and tensors, so that one tensor is verified
alone; any other file is hashed as one tensor of its bytes would be. `docs/formats/model-file.md`
has the details.
"""

import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self

from sealpoint import disk
from sealpoint.errors import ModelError, ModelLimitExceeded, ModelMalformed, ModelUnreadable
from sealpoint.limits import (
    MODEL_FOLDER_DEPTH_MAX,
    MODEL_FOLDER_FILES_MAX,
    MODEL_NAME_BYTES_MAX,
)
from sealpoint_models._file_reader import (
    FileDigests,
    Nowhere,
    Progress,
    ReadFile,
    folder_hasher,
    unreadable,
)
from sealpoint_models._model_file import digests_of_file
from sealpoint_models.scan._safetensors import Tensor

SAFETENSORS = ".safetensors"

_DIRECTORY = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_LINKED = "Put the files themselves there, as cp -rL FOLDER COPY does, and use the copy."
_RENAME = "Rename it, or take it away, and do the same again."
_DEVICE = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9¹²³])(\.|$)", re.IGNORECASE)
"""Names that Windows reads as a device, with any extension."""
_IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2065\u3164\ufe00-\ufe0f\uffa0"
    "\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
"""Characters that case-insensitive file systems also ignore, and `_is_part` does not refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentDigest:
    """The digest of a file that is not safetensors."""

    size: int
    root: bytes


@dataclass(frozen=True, kw_only=True)
class FolderDigests:
    """The content of a folder: the digests of each file, and its directories."""

    files: Mapping[str, FileDigests | ContentDigest]
    """By path relative to the folder, with slashes, sorted by code points."""
    directories: tuple[str, ...]
    """All directories in it, in the same way."""

    @property
    def size(self) -> int:
        """The total number of bytes of its files."""
        return sum(each.size for each in self.files.values())

    @cached_property
    def root(self) -> bytes:
        """The digest of the whole folder."""
        hasher = folder_hasher()
        for names in (self.files, self.directories):
            hasher.update(len(names).to_bytes(8, "little"))
            for name in names:
                raw = name.encode()
                hasher.update(len(raw).to_bytes(8, "little") + raw)
        for each in self.files.values():
            hasher.update(each.root)
        return bytes(hasher.digest())


class FolderList(NamedTuple):
    """The names in a folder, each kind sorted by code points."""

    files: tuple[str, ...]
    directories: tuple[str, ...]


class ReadFolder:
    """A folder, open for reading.

    Args:
        path: Its path; the folder itself may be reached by a link, but its content may not.

    Raises:
        ModelUnreadable: It cannot be opened, or is not a directory.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.what = str(self.path)
        try:
            self.fd = os.open(self.path, _DIRECTORY)
        except (OSError, ValueError) as exc:
            raise unreadable(self.what, exc) from exc

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder. Closing twice is allowed."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def names(self) -> FolderList:
        """The current content of the folder.

        Raises:
            ModelMalformed: A link, a special file, or a name that is refused.
            ModelLimitExceeded: Too many files, or too deep.
            ModelUnreadable: It cannot be read.
        """
        files: list[str] = []
        directories: list[str] = []
        # Opened again: readers of one descriptor share the position in the list.
        with self._directory(".", self.fd, "") as fd:
            self._list(fd, "", files, directories)
        _refuse_alike([*files, *directories], self.what)
        return FolderList(tuple(sorted(files)), tuple(sorted(directories)))

    def _list(self, fd: int, before: str, files: list[str], directories: list[str]) -> None:
        if before.count("/") > MODEL_FOLDER_DEPTH_MAX:
            raise ModelLimitExceeded(
                f"{self.what}: expected at most {MODEL_FOLDER_DEPTH_MAX} directories in one another"
            )
        try:
            with os.scandir(fd) as entries:
                few = islice(entries, MODEL_FOLDER_FILES_MAX + 1)
                found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in few]
        except OSError as exc:
            raise unreadable(f"{self.what}/{before}", exc) from exc
        for part, status in found:
            name = _checked(before + part, part, self.what)
            if stat.S_ISREG(status.st_mode):
                files.append(name)
            elif stat.S_ISDIR(status.st_mode):
                directories.append(name)
                with self._directory(part, fd, name) as inner:
                    self._list(inner, f"{name}/", files, directories)
            else:
                kind = disk.kind_of(status)
                linked = stat.S_ISLNK(status.st_mode)
                raise ModelMalformed(
                    f"{self.what}: expected files, found {kind}: {name!r}",
                    hint=_LINKED if linked else _RENAME,
                )
            if len(files) + len(directories) > MODEL_FOLDER_FILES_MAX:
                raise ModelLimitExceeded(
                    f"{self.what}: expected at most {MODEL_FOLDER_FILES_MAX} files"
                )

    @contextmanager
    def _directory(self, part: str, within: int, name: str) -> Iterator[int]:
        try:
            fd = os.open(part, _DIRECTORY | _NO_FOLLOW, dir_fd=within)
        except OSError as exc:
            raise unreadable(f"{self.what}/{name}", exc) from exc
        try:
            yield fd
        finally:
            os.close(fd)

    def open(self, name: str) -> ReadFile:
        """A file in it, by a name from `names`.

        Raises:
            ModelUnreadable: It cannot be opened, or is not a regular file.
        """
        return self._open(name.split("/"), self.fd, name)

    def _open(self, parts: list[str], within: int, name: str) -> ReadFile:
        if len(parts) == 1:
            return ReadFile(self.path / name, within=within)
        with self._directory(parts[0], within, name) as inner:
            return self._open(parts[1:], inner, name)

    def sizes(self, names: FolderList) -> dict[str, int]:
        """How many bytes each file has."""
        sizes = {}
        for name in names.files:
            with self.open(name) as file:
                sizes[name] = file.size
        return sizes

    def digests(
        self,
        *,
        durable: bool = False,
        progress: Progress | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> FolderDigests:
        """The digests of everything in it, from the bytes.

        Args:
            durable: Also write the hashed bytes to the disk.
            progress: Called occasionally with the number of bytes done so far, and their total.
            sizes: Files of another size than this are not read, and have no digest: an attacker may
                have made them too large to finish.

        Raises:
            ModelMalformed: The folder changed during the read, or `names` refuses it.
            ModelUnreadable: A file or directory cannot be read.
        """
        names = self.names()
        report = FolderProgress(sum(self.sizes(names).values()), progress)
        found: dict[str, FileDigests | ContentDigest] = {}
        for name in names.files:
            with self.open(name) as file:
                if sizes is not None and sizes.get(name) != file.size:
                    found[name] = ContentDigest(size=file.size, root=b"")
                    continue
                before = _identity(file)
                found[name] = digests_of_part(file, name, report.of_file)
                report.next_file(file.size)
                if durable:
                    self._sync(file.fd, name)
                if _identity(file) != before:
                    raise self.changed(name)
        if durable:
            self._sync_directories(names.directories)
        if self.names() != names:
            raise self.changed("its list of files")
        return FolderDigests(files=found, directories=names.directories)

    def _sync(self, fd: int, name: str) -> None:
        try:
            disk.sync(fd)
        except OSError as exc:
            raise unreadable(f"{self.what}/{name}", exc) from exc

    def _sync_directories(self, directories: tuple[str, ...]) -> None:
        for name in directories:
            try:
                disk.sync_directory(self.path / name)
            except OSError as exc:
                raise unreadable(f"{self.what}/{name}", exc) from exc
        self._sync(self.fd, "")

    def changed(self, name: str) -> ModelMalformed:
        """The error for a folder that another process wrote to during the read."""
        return ModelMalformed(
            f"{self.what}: expected a folder that nobody writes to, found a change while it was "
            f"read: {name}",
            hint="Wait until the program that writes it is done, and do the same again.",
        )


class FolderProgress:
    """The progress over several files, reported as one."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._done = 0
        self._progress = progress

    def next_file(self, size: int) -> None:
        """A file of so many bytes is done."""
        self._done += size
        if self._progress is not None:
            self._progress(self._done, self._total)

    @property
    def of_file(self) -> Callable[[int, int], object] | None:
        """The callback for a part of the current file."""
        progress, done, total = self._progress, self._done, self._total
        if progress is None:
            return None
        return lambda part, _: progress(min(done + part, total), total)


def digests_of_part(
    file: ReadFile, name: str, progress: Progress | None = None
) -> FileDigests | ContentDigest:
    """The digests of one file of a folder: a safetensors file by its parts, any other as a whole.

    A file that has the name of the former and breaks a rule of it is any other file.
    """
    if name.endswith(SAFETENSORS):
        try:
            return digests_of_file(file, progress)
        except ModelUnreadable:
            raise
        except ModelError:
            pass
    return content_digest(file, progress)


def content_digest(file: ReadFile, progress: Progress | None = None) -> ContentDigest:
    """The digest of all bytes of a file."""
    whole = Tensor(name="", element="U8", shape=(file.size,), begin=0, end=file.size)
    found = file.read_tensors([whole], Nowhere(), hashing=True, progress=progress)
    return ContentDigest(size=file.size, root=found[""])


def _identity(file: ReadFile) -> tuple[int, int, int]:
    found = os.fstat(file.fd)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def is_folder_name(name: str) -> bool:
    """Whether a path may be that of a file in a sealed folder."""
    try:
        raw = name.encode()
    except UnicodeEncodeError:
        return False
    return len(raw) <= MODEL_NAME_BYTES_MAX and all(map(_is_part, name.split("/")))


_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp"})


def _is_part(part: str) -> bool:
    # Some systems interpret a backslash, a colon or a dot at the end differently.
    return (
        part not in ("", ".", "..")
        and not set(part) & set('\\:*?"<>|')
        and part[-1] not in ". "
        and not _DEVICE.match(part)
        and all(unicodedata.category(each) not in _INVISIBLE for each in part)
    )


def _checked(name: str, part: str, what: str) -> str:
    if not (is_folder_name(name) and "/" not in part):
        raise ModelMalformed(
            f"{what}: expected names that every system reads alike, found {name!a}",
            hint=_RENAME,
        )
    return name


def _refuse_alike(names: list[str], what: str) -> None:
    """Refuse two names that a system which ignores case or Unicode forms treats as one."""
    seen: dict[str, str] = {}
    for name in sorted(names):
        plain = unicodedata.normalize("NFC", _IGNORED.sub("", name))
        folded = unicodedata.normalize("NFC", plain.casefold())
        if folded in seen:
            raise ModelMalformed(
                f"{what}: expected names that every system tells apart, found {seen[folded]!r} "
                f"and {name!r}",
                hint=_RENAME,
            )
        seen[folded] = name
