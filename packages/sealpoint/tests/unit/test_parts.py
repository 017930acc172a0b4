# SPDX-License-Identifier: Apache-2.0
"""Parts are found by their entry points, and one that is missing is answered with its command."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from sealpoint import _parts
from sealpoint.cli import main
from sealpoint.config import StoreUrl, parse_anchor_url
from sealpoint.errors import ConfigError, ExtraMissing, UrlInvalid


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Entry points are read anew by each test, and by what follows."""
    found = _parts._entry_points  # which a test may replace
    found.cache_clear()
    yield
    found.cache_clear()


def _install(folder: Path, name: str, lines: str) -> None:
    """Install a distribution that has entry points and nothing else."""
    made = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (made / "entry_points.txt").write_text(lines)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which distributions are installed."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_part_of_anybody_is_found_by_its_name(place: Path) -> None:
    """What another distribution registers is loaded when its name is asked for."""
    (place / "tables_part.py").write_text("BACKEND = 'a backend'\n", encoding="utf-8")
    _install(place, "tables-part", "[sealpoint.storages]\ntables = tables_part:BACKEND\n")

    assert "tables_part" not in sys.modules
    assert "tables" in _parts.installed_names(_parts.STORAGES)
    assert "tables_part" not in sys.modules
    assert _parts.load(_parts.STORAGES, "tables") == "a backend"


def test_a_part_of_ours_that_is_missing_is_answered_with_its_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name is known, so the error says which distribution brings it."""
    monkeypatch.setattr(_parts, "_entry_points", lambda _: {})

    with pytest.raises(ExtraMissing, match=r"pip install sealpoint-postgres\n") as caught:
        StoreUrl.parse("postgresql://app@db/agents")

    assert "expected sealpoint-postgres, found it missing" in caught.value.message
    with pytest.raises(ExtraMissing, match=r"pip install sealpoint-postgres\n"):
        parse_anchor_url("postgresql://app@db/agents")
    assert "scan" in _parts.names(_parts.VERBS)


def test_a_part_whose_package_is_missing_says_which(place: Path) -> None:
    """An import of another package that fails is no traceback."""
    (place / "lame_part.py").write_text("import nowhere_at_all\n", encoding="utf-8")
    _install(place, "lame-part", "[sealpoint.storages]\nlame = lame_part:BACKEND\n")

    with pytest.raises(ExtraMissing, match=r"expected nowhere_at_all.*: pip install lame-part\n"):
        StoreUrl.parse("lame:here")


def test_a_part_that_is_broken_itself_is_not_called_missing(place: Path) -> None:
    """An entry point that leads nowhere is an error of the installation."""
    _install(place, "broken-part", "[sealpoint.storages]\nbroken = broken_part:BACKEND\n")

    with pytest.raises(ModuleNotFoundError, match=r"broken_part"):
        _parts.load(_parts.STORAGES, "broken")


def test_two_parts_with_one_name_are_refused(place: Path) -> None:
    """Which of the two would be meant is not guessed."""
    for name in ("one-part", "other-part"):
        _install(place, name, "[sealpoint.anchors]\nshared = somewhere:ANCHOR\n")

    with pytest.raises(ConfigError, match=r"one-part and other-part both bring it"):
        _parts.load(_parts.ANCHORS, "shared")


def test_no_part_takes_the_place_of_what_the_core_has(place: Path) -> None:
    """A scheme of the core leads to its own backend, whatever is registered under it."""
    _install(place, "greedy-part", "[sealpoint.storages]\nsqlite = somewhere:BACKEND\n")

    assert StoreUrl.parse("sqlite:///store.db").backend.lies_as == "file"


def test_a_name_that_nobody_knows_is_none() -> None:
    """It is for the caller to say what was expected."""
    assert _parts.load(_parts.STORAGES, "nothing") is None
    with pytest.raises(UrlInvalid, match=r"expected one with the scheme postgresql"):
        parse_anchor_url("https://example.com/anchor")


_VERB = '''
import click


@click.command("greet")
def greet() -> None:
    """Greet somebody. And more."""
    click.echo("hello")
'''


def test_a_verb_of_anybody_is_listed_and_runs(place: Path) -> None:
    """A part adds a verb, and one to a group of verbs, as ours do."""
    (place / "greet_part.py").write_text(_VERB, encoding="utf-8")
    lines = "[sealpoint.verbs]\ngreet = greet_part:greet\nimport.greet = greet_part:greet\n"
    _install(place, "greet-part", lines)

    listed = CliRunner().invoke(main, ["--help"]).stdout
    assert "Other parts:\n  greet           Greet somebody.\n" in listed
    assert "greet            Greet somebody.\n" in CliRunner().invoke(main, ["import", "-h"]).stdout
    assert CliRunner().invoke(main, ["greet"]).stdout == "hello\n"
    assert CliRunner().invoke(main, ["import", "greet"]).stdout == "hello\n"
    assert CliRunner().invoke(main, ["import.greet"]).exit_code == 2


def test_a_verb_whose_part_is_missing_is_listed_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Help lists it, and calling it ends with the status and the command of the error."""
    monkeypatch.setattr(_parts, "_entry_points", lambda _: {})

    assert "\n  scan  " in CliRunner().invoke(main, ["--help"]).stdout
    found = CliRunner().invoke(main, ["scan", "model.pt"])
    assert found.exit_code == ExtraMissing.exit_status
    assert "pip install sealpoint-models" in " ".join(found.stderr.split())
    inside = CliRunner().invoke(main, ["import", "--help"])
    assert "pip install sealpoint-agent-framework" in " ".join(inside.stdout.split())
