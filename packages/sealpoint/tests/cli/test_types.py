# SPDX-License-Identifier: Apache-2.0
"""`sealpoint types`: what it prints, and how it ends."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import sealpoint
from sealpoint.cli import main
from sealpoint.codec import BUILTINS, PLAIN_REASONS
from sealpoint.errors import EncodeError, ObjectNotFound

_ROOT = Path(__file__).resolve().parents[4]
_SHOP = "tests.cli.shop"


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(_ROOT)
    monkeypatch.setenv("COLUMNS", "200")


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["types", *arguments])


@pytest.mark.parametrize("name", ["good", "make", "Wide.state"])
def test_a_value_that_can_be_saved_ends_with_0(name: str) -> None:
    """A value, a function's result or an object's attribute, by the module's own registry."""
    result = _run("explain", f"{_SHOP}:{name}")

    assert result.exit_code == 0
    assert f"{_SHOP}.Order" in result.stdout
    assert "Everything in it can be saved." in result.stdout
    assert result.stderr == ""


def test_a_value_that_cannot_be_saved_ends_with_11_and_the_line_to_write() -> None:
    """The table has type, count and path; below it stands the line that allows the type."""
    result = _run("explain", f"{_SHOP}:bad")
    (row,) = [line for line in result.stdout.splitlines() if f"{_SHOP}.Coupon " in line]

    assert result.exit_code == EncodeError.exit_status == 10
    assert row.split() == ["NO", f"{_SHOP}.Coupon", "3", 'state["orders"][0].items[0]']
    assert 'registry.allow(Coupon, name="shop.coupon")' in result.stdout


def test_json_is_one_document_and_nothing_else() -> None:
    """`--json` gives the whole explanation to programs."""
    result = _run("explain", f"{_SHOP}:bad", "--json")
    document = json.loads(result.stdout)

    assert result.exit_code == 10
    assert document["allowed"] is False
    assert document["types"][0] == {
        "type": f"{_SHOP}.Coupon",
        "allowed": False,
        "count": 3,
        "path": 'state["orders"][0].items[0]',
        "detail": f'registry.allow(Coupon, name="shop.coupon")  # from {_SHOP} import Coupon',
    }
    assert json.loads(_run("explain", f"{_SHOP}:good", "--json").stdout)["allowed"] is True


def test_another_registry_can_be_named() -> None:
    """`--registry` chooses whose rules count."""
    result = _run("explain", f"{_SHOP}:good", "--registry", f"{_SHOP}:empty")

    assert result.exit_code == 10
    assert "registry.allow(Order" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (f"{_SHOP}:missing",),
        (f"{_SHOP}:Wide.missing",),
        ("no_such_module:x",),
        ("tests.cli.broken_module:x",),
        (_SHOP,),
        (":x",),
        (f"{_SHOP}:",),
        ("",),
        (f"{_SHOP}:fail",),
        (f"{_SHOP}:good", "--registry", f"{_SHOP}:good"),
        (f"{_SHOP}:good", "--registry", f"{_SHOP}:missing"),
    ],
    ids=" ".join,
)
def test_an_object_that_does_not_exist_ends_with_2(arguments: tuple[str, ...]) -> None:
    """The message and the hint go to standard error, in words or as JSON."""
    words, document = _run("explain", *arguments), _run("explain", *arguments, "--json")
    error: dict[str, Any] = json.loads(document.stderr)["error"]

    assert words.exit_code == document.exit_code == ObjectNotFound.exit_status == 2
    assert words.stdout == document.stdout == ""
    assert words.stderr.startswith("sealpoint: ")
    assert "[object-not-found]" in words.stderr
    assert "hint: " in words.stderr
    assert "Traceback" not in words.stderr
    assert (error["code"], error["exit_status"]) == ("object-not-found", 2)


def test_control_characters_of_data_do_not_reach_the_terminal() -> None:
    """A key with an escape sequence is printed visibly."""
    for result in (
        _run("explain", f"{_SHOP}:strange"),
        _run("explain", f"{_SHOP}:strange", "--json"),
    ):
        assert "\x1b" not in result.output
        assert "red" in result.output


def test_list_names_every_built_in_type_with_its_reason() -> None:
    """The table and the JSON form hold the whole closed list."""
    table, document = _run("list"), json.loads(_run("list", "--json").stdout)
    names = [each["type"] for each in document]
    expected = {kind.__qualname__ for builtin in BUILTINS for kind in builtin.types}
    expected |= {kind.__qualname__ for kind in PLAIN_REASONS}

    assert table.exit_code == 0
    assert len(set(names)) == len(names)
    assert {name.rpartition(".")[2] for name in names} >= expected
    assert all(each["reason"] for each in document)
    assert all(name in table.stdout for name in names)


@pytest.mark.parametrize("arguments", [(), ("explain",), ("nonsense",), ("list", "--nonsense")])
def test_a_wrong_command_line_ends_with_2(arguments: tuple[str, ...]) -> None:
    """Missing and unknown arguments are usage errors."""
    assert _run(*arguments).exit_code == 2


def test_help_and_version_end_with_0() -> None:
    """Every command explains itself."""
    runner = CliRunner()

    for arguments in (
        ["--help"],
        ["types", "-h"],
        ["types", "explain", "--help"],
        ["types", "list", "-h"],
    ):
        result = runner.invoke(main, arguments)
        assert result.exit_code == 0
        assert "Usage:" in result.stdout
    assert sealpoint.__version__ in runner.invoke(main, ["--version"]).stdout


def test_the_command_works_as_a_process() -> None:
    """`python -m sealpoint` ends with the same statuses, in any directory that holds the module."""
    command = [sys.executable, "-m", "sealpoint", "types", "explain"]
    good = subprocess.run(
        [*command, f"{_SHOP}:good"], check=False, capture_output=True, text=True, cwd=_ROOT
    )
    bad = subprocess.run(
        [*command, f"{_SHOP}:bad", "--json"], check=False, capture_output=True, text=True, cwd=_ROOT
    )
    missing = subprocess.run(
        [*command, "nowhere:x", "--json"], check=False, capture_output=True, text=True, cwd=_ROOT
    )

    assert (good.returncode, bad.returncode, missing.returncode) == (0, 10, 2)
    assert json.loads(bad.stdout)["allowed"] is False
    assert json.loads(missing.stderr)["error"]["code"] == "object-not-found"
    assert good.stderr == bad.stderr == ""
