# SPDX-License-Identifier: Apache-2.0
"""`sealpoint diff`: what changed between two checkpoints."""

from pathlib import Path

import pytest

from tests.cli import shop
from tests.cli.machine import Machine

_ROOT = Path(__file__).resolve().parents[4]
_REGISTRY = ("--registry", "tests.cli.shop:registry")


@pytest.fixture
def saved(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine whose thread `t` has three checkpoints, at the positions 2, 4 and 6."""
    monkeypatch.chdir(_ROOT)
    with machine.open(shop.registry) as store:
        thread = store.thread("t")
        first = {"orders": [shop.Order(["tea"])]}
        second = {"orders": [shop.Order(["tea", "cake"])]}
        wide = {"tools": ["read", "shell"]}
        thread.save(first, id="one", metadata={"n": 1})
        thread.resume(world=wide)
        thread.save(second, id="two", metadata={"n": 2})
        thread.resume(world={"tools": ["read"]})
        thread.save({"orders": []}, id="three", metadata={"n": 2})
    return machine


def test_the_newest_is_compared_with_the_one_before(saved: Machine) -> None:
    """State and world, in words; the same with both named."""
    printed = saved.done("diff", "t", *_REGISTRY)
    _, _, *lines = printed.splitlines()

    assert lines == [
        "",
        "2 removed",
        "",
        'removed state["orders"][0]',
        '  - Order(items=["tea", "cake"])',
        "",
        'removed world["tools"][1]',
        '  - {"name": "shell"}',
    ]
    assert printed.split()[:3] == ["from", "seq:4", "two"]
    for names in (("two",), ("two", "three"), ("seq:4", "#6"), ("#4",)):
        assert saved.done("diff", "t", *names, *_REGISTRY) == printed


def test_from_is_the_one_before_to(saved: Machine) -> None:
    """With both names given, any two can be compared, in either direction, or one with itself."""
    forth = saved.json("diff", "t", "one", "two", *_REGISTRY)
    back = saved.json("diff", "t", "two", "one", *_REGISTRY)

    assert (forth["from"]["id"], forth["to"]["id"]) == ("one", "two")
    assert [(each["kind"], each["path"]) for each in forth["changes"]] == [
        ("added", 'state["orders"][0].items[1]'),
        ("changed", 'metadata["n"]'),
        ("changed", "world"),
    ]
    assert [each["kind"] for each in back["changes"]] == ["removed", "changed", "changed"]
    assert "Nothing changed." in saved.done("diff", "t", "two", "two", *_REGISTRY)
    assert saved.json("diff", "t", "two", "two", *_REGISTRY)["changes"] == []


def test_changes_beyond_the_limit_are_counted(saved: Machine) -> None:
    """The last line says how many are not shown; JSON has all."""
    limited = saved.done("diff", "t", "one", "three", "--limit", "1", *_REGISTRY)
    unlimited = saved.done("diff", "t", "one", "three", "--limit", "0", *_REGISTRY)

    assert limited.endswith("... and 2 more; --limit 0 shows all.\n")
    assert "more" not in unlimited
    assert len(saved.json("diff", "t", "one", "three", "--limit", "1", *_REGISTRY)["changes"]) == 3


@pytest.mark.parametrize("names", [("nine",), ("one", "nine"), ("seq:1",), ("one", "seq:99")])
def test_an_unknown_checkpoint_is_named(saved: Machine, names: tuple[str, ...]) -> None:
    """Which of the two it is, the message says."""
    result = saved.run("diff", "t", *names, *_REGISTRY)

    assert result.exit_code == 44
    assert "[unknown-checkpoint]" in result.stderr
    assert repr(names[-1]) in result.stderr


def test_the_first_checkpoint_has_none_before_it(machine: Machine) -> None:
    """There is nothing to compare it with."""
    machine.done("save", "t", stdin="1")

    assert machine.refused("diff", "t") == (44, "unknown-checkpoint")
