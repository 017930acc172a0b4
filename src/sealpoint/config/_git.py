# SPDX-License-Identifier: Apache-2.0
"""The revision of a git repository, read from its files; git itself is not started.

It knows directories, work trees and submodules, loose and packed references. What lies there and
cannot be resolved is an error; only no repository at all is None.
"""

import re
from pathlib import Path

from sealpoint.errors import WorldInvalid

__all__ = ["git_revision"]

_FILE_BYTES_MAX = 16 * 1024
_PACKED_BYTES_MAX = 64 * 1024 * 1024
_REFERENCES_MAX = 5
_REVISION = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


def git_revision(directory: Path) -> str | None:
    """The revision that is checked out in a directory; None if it is in no repository.

    Raises:
        WorldInvalid: There is a repository and its revision cannot be found out.
    """
    try:
        start = directory.resolve(strict=True)
        found = [place / ".git" for place in (start, *start.parents) if (place / ".git").exists()]
    except (OSError, RuntimeError) as exc:
        raise WorldInvalid(f"repository {directory}: expected a directory, found none") from exc
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
    raise WorldInvalid(f"{own}: expected a revision for {reference!r}, found none")


def _own_directory(git: Path) -> Path:
    if git.is_dir():
        return git
    text = _line(git)
    if not text.startswith("gitdir: "):
        raise WorldInvalid(f"{git}: expected gitdir: and a path, found something else")
    return git.parent / text.removeprefix("gitdir: ")


def _check_reference(own: Path, reference: str) -> None:
    parts = reference.split("/")
    if parts[0] != "refs" or not all(part and part.strip(".") for part in parts):
        raise WorldInvalid(f"{own}: expected references below refs/, found another")


def _look_up(own: Path, common: Path, reference: str) -> str:
    for directory in (own, common):
        if (directory / reference).is_file():
            return _line(directory / reference)
    packed = common / "packed-refs"
    if reference != "HEAD" and packed.is_file():
        for line in _read(packed, _PACKED_BYTES_MAX).splitlines():
            revision, _, name = line.partition(" ")
            if name == reference:
                return revision
    raise WorldInvalid(
        f"{own}: expected {reference!r} to be there, found none",
        hint="A repository without a commit has no revision, nor one with references in tables.",
    )


def _line(path: Path) -> str:
    return _read(path, _FILE_BYTES_MAX).strip()


def _read(path: Path, bytes_max: int) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(bytes_max + 1)
        text = data.decode()
    except (OSError, ValueError) as exc:
        raise WorldInvalid(f"{path}: expected to read text, found an error") from exc
    if len(data) > bytes_max:
        raise WorldInvalid(f"{path}: expected at most {bytes_max} bytes, found more")
    return text
