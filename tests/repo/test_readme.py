# SPDX-License-Identifier: Apache-2.0
"""What the documentation tells a reader to type works.

The rules for a page that is tested, which `_PAGES` lists:

- a `python` block is a whole program: it runs by itself, in a directory of its own;
- a `text` block right after it is what it prints, in which `...` stands for anything;
- a `python` block whose first line is a comment with a file name, such as `# app.py`, is also that
  file for the other blocks of the page;
- in a `console` block a line that starts with `$ ` is a command and the lines after it are its
  output, in which `...` stands for anything; `# exits 3` at its end is the expected exit status;
- `sealpoint` and `python` commands run; of `make` and `pip install` the targets and extras must
  exist; `git clone` and `cd` are taken as they are; any other command is refused.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.repo._markdown import Block, blocks
from tests.repo._tree import ROOT

_PAGES = (
    "README.md",
    "docs/quickstart.md",
    "docs/design/architecture.md",
    "docs/guides/allow-your-types.md",
    "docs/reference/api.md",
    "docs/reference/cli.md",
    "docs/reference/errors.md",
    "docs/reference/limits.md",
)
_README_LINES_MAX = 149
_SECONDS_MAX = 60
_EXITS = re.compile(r"\s+# exits (?P<status>\d+)$")
_FILE_NAME = re.compile(r"^# (?P<name>\w+\.py)$")
_EXTRA = re.compile(r"sealpoint\[(?P<extras>[a-z0-9,-]+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of a console block with what the page says about it."""

    line: str
    output: str
    status: int


def _page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _page_blocks(language: str) -> list[tuple[str, Block]]:
    """List the blocks of one language with the page each is on."""
    return [
        (name, block)
        for name in _PAGES
        for block in blocks(_page(name))
        if block.language == language
    ]


def _commands(block: Block) -> list[Command]:
    """Split a console block into commands and their outputs."""
    found: list[Command] = []
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, output = part.replace("\\\n", "").partition("\n")
        status = 0
        if exits := _EXITS.search(line):
            status = int(exits["status"])
            line = line[: exits.start()]
        found.append(Command(line=line.strip(), output=output.rstrip(), status=status))
    return found


def _run(words: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of this environment in a directory, without colour and on a wide terminal."""
    scripts = str(Path(sys.executable).parent)
    return subprocess.run(
        words,
        cwd=directory,
        env={**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
        | {"NO_COLOR": "1", "COLUMNS": "100", "PYTHONWARNINGS": "error"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS_MAX,
        check=False,
    )


def _matches(expected: str, found: str) -> bool:
    """Compare output with what a page shows, line ends apart; `...` stands for anything."""
    parts = [re.escape(part.strip("\n")) for part in _plain(expected).split("...")]
    return re.fullmatch(r"\s*" + ".*".join(parts) + r"\s*", _plain(found), re.DOTALL) is not None


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


def _check_words(words: list[str]) -> None:
    """Check a command that is not run: what it names must exist."""
    match words:
        case ["make", *targets] if targets:
            makefile = _page("Makefile")
            for target in targets:
                assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), target
        case ["pip" | "python", *rest] if "install" in rest:
            project = tomllib.loads(_page("pyproject.toml"))["project"]
            for extra in _EXTRA.finditer(" ".join(rest)):
                unknown = set(extra["extras"].split(",")) - set(project["optional-dependencies"])
                assert not unknown, unknown
        case ["git", "clone", *_] | ["cd", _]:
            pass
        case _:
            pytest.fail(f"a page shows a command that no test checks: {shlex.join(words)}")


def test_readme_is_short() -> None:
    """The README has fewer than 150 lines."""
    assert len(_page("README.md").splitlines()) <= _README_LINES_MAX


def test_readme_shows_code() -> None:
    """The README has at least one Python block, so that the tests below have something to run."""
    assert any(name == "README.md" for name, _ in _page_blocks("python"))


def test_every_block_has_a_language() -> None:
    """No tested page has a fenced block without a language, which would escape the tests."""
    bare = [
        f"{name}:{block.line}"
        for name in _PAGES
        for block in blocks(_page(name))
        if not block.language
    ]

    assert not bare


def _write_files(page: str, directory: Path) -> None:
    """Write the blocks of a page that are files."""
    for block in blocks(_page(page)):
        if block.language == "python" and (name := _FILE_NAME.match(block.text.split("\n")[0])):
            (directory / name["name"]).write_text(block.text, encoding="utf-8")


def _printed(page: str, block: Block) -> str | None:
    """What the page says that a block prints: the text block right after it, if there is one."""
    after = [other for other in blocks(_page(page)) if other.line > block.line][:1]
    return after[0].text if after and after[0].language == "text" else None


@pytest.mark.parametrize(
    ("page", "block"),
    [
        pytest.param(name, block, id=f"{name}:{block.line}")
        for name, block in _page_blocks("python")
    ],
)
def test_python_block_runs(page: str, block: Block, tmp_path: Path) -> None:
    """A Python block runs by itself, exits with status 0, and prints what the page shows."""
    _write_files(page, tmp_path)
    program = tmp_path / "block.py"
    program.write_text(block.text, encoding="utf-8")
    printed = _printed(page, block)

    result = _run([sys.executable, program.name], tmp_path)

    assert result.returncode == 0, result.stdout
    assert printed is None or _matches(printed, result.stdout), result.stdout


@pytest.mark.parametrize(
    ("page", "block"),
    [
        pytest.param(name, block, id=f"{name}:{block.line}")
        for name, block in _page_blocks("console")
    ],
)
def test_console_block_does_what_it_shows(page: str, block: Block, tmp_path: Path) -> None:
    """The commands of a console block exist, exit as told, and print what the page shows."""
    _write_files(page, tmp_path)
    if (ROOT / "examples").is_dir():
        shutil.copytree(ROOT / "examples", tmp_path / "examples")

    commands = _commands(block)

    assert commands
    for command in commands:
        words = shlex.split(command.line, comments=True)
        if words[0] not in {"python", "sealpoint"} or "install" in words:
            _check_words(words)
            continue
        result = _run(words, tmp_path)
        assert result.returncode == command.status, f"{command.line}\n{result.stdout}"
        if command.output:
            assert _matches(command.output, result.stdout), f"{command.line}\n{result.stdout}"
