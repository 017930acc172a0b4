# SPDX-License-Identifier: Apache-2.0
"""`sealpoint save` and `sealpoint load`: JSON in, the same JSON out, or a refusal."""

import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.cli._input_files import parse_json
from sealpoint.errors import UsageError
from sealpoint.views.values import json_fault
from tests.cli.machine import Machine

_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "state",
    [
        {"messages": [{"role": "user", "content": "häl\u0007lo"}], "n": 2**70, "x": -0.0},
        [],
        None,
        "text",
        1e-300,
        {"b": 1, "a": [True, None, {"": ""}]},
    ],
)
def test_what_was_saved_is_loaded(machine: Machine, state: Any, tmp_path: Path) -> None:
    """From standard input or a file, to standard output or a file."""
    file, out = tmp_path / "state.json", tmp_path / "out.json"
    file.write_text(json.dumps(state), encoding="utf-8")
    machine.done("save", "a", stdin=json.dumps(state))
    machine.done("save", "b", "--file", str(file))
    machine.done("save", "c", "--file", "-", stdin=json.dumps(state))
    machine.done("load", "b", "--output", str(out))

    for thread in "abc":
        assert json.loads(machine.done("load", thread)) == state
        assert repr(machine.json("load", thread)) == repr(state)
    assert repr(json.loads(out.read_text(encoding="utf-8"))) == repr(state)


def test_save_prints_the_reference(machine: Machine) -> None:
    """Id, position, time and writer, in words and as JSON."""
    printed = machine.done("save", "t", "--id", "first", stdin="1")
    document = machine.json("save", "t", "--metadata", '{"a": [1]}', stdin="2")

    assert printed.splitlines()[0] == "Saved."
    assert printed.split()[1:7] == ["thread", "t", "id", "first", "seq", "2"]
    assert document["metadata"] == {"a": [1]}
    assert document["seq"] == 4
    assert document["writer"] == "worker"


def test_the_same_id_again_changes_nothing(machine: Machine) -> None:
    """A repeated save returns the checkpoint that is there; another state is refused."""
    arguments = ("save", "t", "--id", "once", "--metadata", '{"n": 1}')
    first = machine.json(*arguments, stdin='{"a": 1}')
    again = machine.json(*arguments, stdin='{"a": 1}')

    assert first == again
    assert len(machine.json("log", "t")["checkpoints"]) == 1
    assert machine.refused(*arguments, stdin='{"a": 2}') == (41, "id-reused")
    assert machine.refused("save", "t", "--id", "once", stdin='{"a": 1}') == (41, "id-reused")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "[Infinity]",
        '{"a": -Infinity}',
        "1e999",
        '{"a": 1, "a": 1}',
        '[{"x": {"b": 1, "b": 2}}]',
        "[1,]",
        "{'a': 1}",
        "1 2",
        "01",
        "\ufeff1",
        "[" * 100_000,
        "9" * 10_000,
    ],
    ids=lambda text: text[:12],
)
def test_what_is_not_strict_json_is_refused(machine: Machine, text: str) -> None:
    """Nothing is saved, and the message says what is wrong."""
    assert machine.refused("save", "t", stdin=text) == (2, "usage")
    assert machine.refused("save", "t", "--metadata", text, stdin="1") == (2, "usage")
    assert machine.json("threads")["threads"] == []


def test_bytes_that_are_no_text_are_refused(machine: Machine) -> None:
    """The state must be UTF-8."""
    assert machine.refused("save", "t", stdin=b'"\xff"') == (2, "usage")


def test_half_of_a_surrogate_pair_is_kept(machine: Machine, tmp_path: Path) -> None:
    """JSON can hold one, so it is saved, shown visibly, and loaded to wherever is asked."""
    out = tmp_path / "out.json"
    machine.done("save", "t", stdin='["\\ud800"]')
    machine.done("load", "t", "--output", str(out))

    assert machine.json("load", "t") == json.loads(out.read_bytes()) == ["\ud800"]
    assert "\\u{d800}" in machine.done("show", "t")


@pytest.mark.parametrize("text", ["[]", "1", "null", '"x"'])
def test_metadata_is_an_object(machine: Machine, text: str) -> None:
    """Any other JSON value is a usage error."""
    assert machine.refused("save", "t", "--metadata", text, stdin="1") == (2, "usage")


def test_a_file_that_cannot_be_read_is_a_usage_error(machine: Machine, tmp_path: Path) -> None:
    """The message names the file."""
    assert machine.refused("save", "t", "--file", str(tmp_path / "none")) == (2, "usage")
    assert machine.refused("save", "t", "--file", str(tmp_path)) == (2, "usage")
    assert machine.refused("save", "t", "--file", "a\0b") == (2, "usage")


@pytest.mark.parametrize(
    ("state", "where"),
    [
        ({"a": [1, (2,)]}, 'state["a"][1]: expected a JSON value, found tuple'),
        ({"a": math.nan}, 'state["a"]: expected a JSON value, found a number'),
        ({1: "x"}, "state: expected keys that are text, found int"),
        (b"bytes", "state: expected a JSON value, found bytes"),
        (
            {"x": {"when": datetime(2026, 1, 5, tzinfo=UTC)}},
            'state["x"]["when"]: expected a JSON value',
        ),
        ([Decimal("1.5")], "state[0]: expected a JSON value, found Decimal"),
        ({1, 2}, "state: expected a JSON value, found set"),
    ],
)
def test_a_state_beyond_json_is_never_converted(
    machine: Machine, state: Any, where: str, tmp_path: Path
) -> None:
    """It is shown in words with a note; for programs it is an error that names the place."""
    with machine.open() as store:
        store.thread("t").save(state)
    out = tmp_path / "out.json"
    words = machine.run("load", "t")
    failed = machine.run("load", "t", "--json")

    assert words.exit_code == 0
    assert f"Not JSON: {where}" in words.stderr
    assert words.stdout.startswith("state: ")
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert where in json.loads(failed.stderr)["error"]["message"]
    assert machine.refused("load", "t", "--output", str(out)) == (2, "usage")
    assert not out.exists()


def test_saving_at_a_terminal_without_a_file_is_a_usage_error(machine: Machine) -> None:
    """Nobody is left waiting for input that they do not know about."""
    pytest.importorskip("pty")
    status, printed = machine.at_a_terminal("save", "t")

    assert status == 2
    assert "--file" in printed


@given(_JSON)
def test_strict_json_reads_what_json_writes(value: Any) -> None:
    """Every JSON value passes through unchanged and is found expressible."""
    assert repr(parse_json(json.dumps(value).encode(), "value")) == repr(value)
    assert json_fault(value) is None


def test_nesting_is_bounded() -> None:
    """A state that Python's own JSON writer could not print is not called JSON."""
    deep: list[Any] = []
    for _ in range(600):
        deep = [deep]

    assert "more than 500 lists" in (json_fault(deep) or "")
    with pytest.raises(UsageError, match="too deeply"):
        parse_json(b"[" * 100_000 + b"]" * 100_000, "state")
