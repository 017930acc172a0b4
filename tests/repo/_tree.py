# SPDX-License-Identifier: Apache-2.0
"""Where the files of this repository are, for the tests that read them."""

import ast
import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = {path.name: path.name.replace("-", "_") for path in sorted((ROOT / "packages").iterdir())}
"""The distributions, each with its module."""
SOURCES = tuple(ROOT / "packages" / name / "src" for name in PARTS)
PACKAGE = ROOT / "packages" / "sealpoint" / "src" / "sealpoint"
REFERENCE = ROOT / "docs" / "reference"

# Made by tools, never committed; .gitignore names the same.
_MADE = {".git", ".hypothesis", ".venv", "__pycache__", "build", "dist", "htmlcov"}


def _is_made(part: str) -> bool:
    return part in _MADE or part.endswith(("_cache", ".egg-info")) or part.startswith(".coverage")


def committed_texts() -> Iterator[tuple[Path, str]]:
    """Yield every text file that belongs to the repository, with its text."""
    for folder, folders, files in os.walk(ROOT):
        here = Path(folder)
        folders[:] = [
            name
            for name in sorted(folders)
            if not _is_made(name) and (here.name, name) != ("fuzz", "corpus")
        ]
        for name in sorted(files):
            if not _is_made(name):
                with contextlib.suppress(UnicodeDecodeError):
                    yield here / name, (here / name).read_text(encoding="utf-8")


def source_files() -> list[Path]:
    """List every module of every part."""
    return sorted(path for source in SOURCES for path in source.rglob("*.py"))


def below_source(path: Path) -> Path:
    """The path of a module below the `src` of its part."""
    return next(path.relative_to(each) for each in SOURCES if path.is_relative_to(each))


@functools.cache
def source_tree(path: Path) -> ast.Module:
    """Parse one module of a part, once in each process."""
    return parsed(path)


def parsed(path: Path) -> ast.Module:
    """Parse any module; together, those of the tests are too large to be kept."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def shown(path: Path) -> str:
    """Name a file as a reader would: relative to the root, with forward slashes."""
    return path.relative_to(ROOT).as_posix()
