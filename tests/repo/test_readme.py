# SPDX-License-Identifier: Apache-2.0
"""What the documentation tells a reader to type works.

The rules for a page that is tested, which `_PAGES` lists:

- a `python` block is a whole program: it runs by itself, in a directory of its own, with a
  configuration and a state directory of its own beside it; if it opens a store on disk and makes
  none, it finds the one that the first `sealpoint init` of the page makes;
- a `text` block right after it is what it prints on standard output, in which `...` stands for
  anything; on standard error there may be log lines of refusals and nothing else;
- a `python` block whose first line is a comment with a file name, such as `# app.py`, is also that
  file for the other blocks of the page; so is a block that begins with ```` ```json NAME ````;
- in a `console` block a line that starts with `$ ` is a command and the lines after it are its
  output, in which `...` stands for anything and a time such as 2026-01-05 09:30:00Z for any time;
  `# exits 3` at the end of a command is the expected exit status;
- a `console` block goes on where the one before it on the page ended, in the same directories,
  unless its first command is `sealpoint init`: that one begins a session of its own;
- `sealpoint`, `python`, `cp`, `ln`, `mkdir` and `mv` commands run, `sqlite3 FILE STATEMENT` is
  done by Python, and `export NAME=VALUE` holds for the rest of the session; `> FILE` at the end of
  a command writes a file; of `make` and `pip install` the targets and extras must exist; `git
  clone`, `cd`, and the making and activating of a virtual environment are taken as they are; any
  other command is refused.

The programs of `_FIRST_PAGES`, which a newcomer runs more than once, run twice.
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
from tests.warm import run_command

_PAGES = (
    "README.md",
    "docs/quickstart.md",
    "docs/console/notifications.md",
    "docs/design/architecture.md",
    "docs/design/durability-files.md",
    "docs/design/durability-sqlite.md",
    "docs/design/model-loading.md",
    "docs/formats/anchor.md",
    "docs/formats/entry.md",
    "docs/formats/model-file.md",
    "docs/formats/passkey.md",
    "docs/formats/signing.md",
    "docs/formats/statement.md",
    "docs/formats/storage.md",
    "docs/formats/trust.md",
    "docs/formats/world.md",
    "docs/guides/agent-framework.md",
    "docs/guides/allow-your-types.md",
    "docs/guides/async.md",
    "docs/guides/backup-and-restore.md",
    "docs/guides/deployment.md",
    "docs/guides/deploys-and-rollouts.md",
    "docs/guides/from-filecheckpointstorage.md",
    "docs/guides/from-sqlitesaver.md",
    "docs/guides/keys-and-trust.md",
    "docs/guides/keys-elsewhere.md",
    "docs/guides/langgraph.md",
    "docs/guides/move-to-another-machine.md",
    "docs/guides/observability.md",
    "docs/guides/resume-safely.md",
    "docs/guides/lost-anchor.md",
    "docs/guides/passkeys.md",
    "docs/guides/retention.md",
    "docs/guides/revoke-a-key.md",
    "docs/guides/share-a-store.md",
    "docs/guides/rollouts-in-a-pipeline.md",
    "docs/guides/set-up-a-team.md",
    "docs/guides/step-in.md",
    "docs/guides/upgrade.md",
    "docs/guides/write-a-backend.md",
    "docs/guides/write-an-adapter.md",
    "docs/models/checkpoint-safety.md",
    "docs/models/from-torch-load.md",
    "docs/models/scan.md",
    "docs/models/moving-old-runs.md",
    "docs/models/training-frameworks.md",
    "docs/models/training-loops.md",
    "docs/reference/agent-framework.md",
    "docs/reference/api.md",
    "docs/reference/cli.md",
    "docs/reference/errors.md",
    "docs/reference/langgraph.md",
    "docs/reference/langgraph-types.md",
    "docs/reference/limits.md",
    "docs/reference/restore.md",
    "docs/reference/settings.md",
    "docs/reference/types.md",
    "docs/reference/worlds.md",
    "docs/security/checkpoint-storage.md",
    "docs/security/threat-model.md",
)
_FIRST_PAGES = ("README.md", "docs/quickstart.md")
_README_LINES_MAX = 149
_SECONDS_MAX = 60
_EXITS = re.compile(r"\s+# exits (?P<status>\d+)$")
_FILE_NAME = re.compile(r"^# (?P<name>\w+\.py)$")
_JSON_NAME = re.compile(r"json (?P<name>[\w-]+\.json)")
_RUN = frozenset({"cp", "ln", "mkdir", "mv", "python", "sealpoint", "sqlite3"})
_SQLITE3 = """
import contextlib, sqlite3, sys
with contextlib.closing(sqlite3.connect(sys.argv[1])) as database, database:
    for row in database.execute(sys.argv[2]):
        print(*row, sep="|")
"""
_SETTING_PREFIX = "SEALPOINT_"
_TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"
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
        lines = iter(part.split("\n"))
        line = next(lines)
        while line.endswith("\\"):
            line = line.removesuffix("\\") + next(lines)
        output = "\n".join(lines)
        status = 0
        if exits := _EXITS.search(line):
            status = int(exits["status"])
            line = line[: exits.start()]
        found.append(Command(line=line.strip(), output=output.rstrip(), status=status))
    return found


def _environment(home: Path) -> dict[str, str]:
    """The environment of a page: settings of its own, no colour, a wide terminal."""
    scripts = str(Path(sys.executable).parent)
    kept = {name: text for name, text in os.environ.items() if not name.startswith(_SETTING_PREFIX)}
    return kept | {
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "PYTHONWARNINGS": "error",
        "SEALPOINT_CONFIG_DIR": str(home / "config"),
        "SEALPOINT_STATE_DIR": str(home / "state"),
    }


def _directory(home: Path, page: str) -> Path:
    """Make the directory that the blocks of a page run in, with the files that they name."""
    directory = home / "page"
    directory.mkdir()
    _write_files(page, directory)
    return directory


def _run(
    words: list[str],
    directory: Path,
    environment: dict[str, str],
    *,
    apart: bool = False,
    warm: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a program of this environment in a directory."""
    if words[0] == "sqlite3":
        words = [sys.executable, "-c", _SQLITE3, *words[1:]]
    *words, mark, target = words if words[-2:-1] == [">"] else (*words, "", "")
    apart = apart or bool(mark)
    is_program = words[0] in ("python", sys.executable) and words[1] != "-m"
    if warm and (words[0] == "sealpoint" or is_program):
        result = run_command(words, directory, environment, _SECONDS_MAX, apart=apart)
    else:
        result = subprocess.run(
            words,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if apart else subprocess.STDOUT,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
        )
    if mark:
        (directory / target).write_text(result.stdout, encoding="utf-8")
        result.stdout = ""
    return result


def _matches(expected: str, found: str) -> bool:
    """Compare output with what a page shows, line ends apart."""
    parts = [_pattern(part.strip("\n")) for part in _plain(expected).split("...")]
    return re.fullmatch(r"\s*" + ".*".join(parts) + r"\s*", _plain(found), re.DOTALL) is not None


def _pattern(text: str) -> str:
    """The text itself, in which any time may stand in the place of a time."""
    return _TIME.join(re.escape(part) for part in re.split(_TIME, text))


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
            project = tomllib.loads(_page("packages/sealpoint/pyproject.toml"))["project"]
            for extra in _EXTRA.finditer(" ".join(rest)):
                unknown = set(extra["extras"].split(",")) - set(project["optional-dependencies"])
                assert not unknown, unknown
        case ["git", "clone", *_] | ["cd", _]:
            pass
        case ["python3", "-m", "venv", ".venv"] | [".", ".venv/bin/activate"]:
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
        if name := _JSON_NAME.fullmatch(block.language):
            (directory / name["name"]).write_text(block.text, encoding="utf-8")


def _printed(page: str, block: Block) -> str | None:
    """What the page says that a block prints: the text block right after it, if there is one."""
    after = [other for other in blocks(_page(page)) if other.line > block.line][:1]
    return after[0].text if after and after[0].language == "text" else None


def _prepare(page: str, block: Block, directory: Path, environment: dict[str, str]) -> None:
    """Make the store of the page, if the block opens one and makes none."""
    opens = "open_store(" in block.text and "sqlite:///" in block.text
    if not opens or "init(" in block.text:
        return
    for command in (each for other in blocks(_page(page)) for each in _commands(other)):
        if command.line.startswith("sealpoint init"):
            words = shlex.split(command.line, comments=True)
            assert _run(words, directory, environment).returncode == 0
            return


@pytest.mark.parametrize(
    ("page", "block"),
    [
        pytest.param(name, block, id=f"{name}:{block.line}")
        for name, block in _page_blocks("python")
    ],
)
def test_python_block_runs(page: str, block: Block, tmp_path: Path) -> None:
    """A Python block runs by itself, exits with status 0, and prints what the page shows."""
    directory = _directory(tmp_path, page)
    environment = _environment(tmp_path)
    program = directory / "block.py"
    program.write_text(block.text, encoding="utf-8")
    printed = _printed(page, block)
    _prepare(page, block, directory, environment)

    # What was imported before matters to a program that looks at it.
    how = {"apart": True, "warm": "sys.modules" not in block.text}
    result = again = _run([sys.executable, program.name], directory, environment, **how)
    if page in _FIRST_PAGES:
        again = _run([sys.executable, program.name], directory, environment, **how)

    assert result.returncode == 0, result.stderr
    assert again.returncode == 0, again.stderr
    # Without a handler, Python itself shows the warnings of a logger.
    assert all(line.startswith("refused code=") for line in result.stderr.splitlines())
    assert printed is None or _matches(printed, result.stdout), result.stdout


def _sessions() -> list[tuple[str, int, list[Command]]]:
    """List the commands of the console blocks, session by session, with page and line."""
    found: list[tuple[str, int, list[Command]]] = []
    for page, block in _page_blocks("console"):
        commands = _commands(block)
        begins = not commands or commands[0].line.startswith("sealpoint init")
        if begins or not found or found[-1][0] != page:
            found.append((page, block.line, []))
        found[-1][2].extend(commands)
    return found


@pytest.mark.parametrize(
    ("page", "commands"),
    [pytest.param(page, commands, id=f"{page}:{line}") for page, line, commands in _sessions()],
)
def test_console_session_does_what_it_shows(
    page: str, commands: list[Command], tmp_path: Path
) -> None:
    """The commands of a session exist, exit as told, and print what the page shows."""
    directory = _directory(tmp_path, page)
    environment = _environment(tmp_path)
    shutil.copytree(ROOT / "examples", directory / "examples")

    assert commands
    for command in commands:
        words = shlex.split(command.line, comments=True)
        if words[0] == "export":
            environment |= dict(word.split("=", 1) for word in words[1:])
            continue
        if words[0] not in _RUN or "install" in words:
            _check_words(words)
            continue
        result = _run(words, directory, environment)
        shown = result.stdout or result.stderr or ""
        assert result.returncode == command.status, f"{command.line}\n{shown}"
        if command.output:
            assert _matches(command.output, shown), f"{command.line}\n{shown}"
