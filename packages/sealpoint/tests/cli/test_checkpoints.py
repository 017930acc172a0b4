# SPDX-License-Identifier: Apache-2.0
"""`sealpoint log` and `sealpoint show`: checkpoints as people see them."""

from pathlib import Path
from typing import Any

import pytest

from sealpoint.store import ResultsDraft, SaveDraft
from sealpoint.views.nodes import finished_nodes, step_text
from tests.cli import shop
from tests.cli.machine import Machine

_ROOT = Path(__file__).resolve().parents[4]
_SHOP = "tests.cli.shop:registry"


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(_ROOT)


@pytest.fixture
def saved(machine: Machine) -> Machine:
    """A machine whose thread `t` has three checkpoints, at the positions 2, 3 and 4."""
    with machine.open() as store:
        for step in range(3):
            metadata = {"step": step, "source": "loop"}
            store.thread("t").save(
                {"step": step},
                id=f"step-{step}",
                metadata=metadata,
                world={"model": {"name": "one"}},
            )
    return machine


def test_log_lists_the_newest_first(saved: Machine) -> None:
    """Position, time, writer, id and metadata of each."""
    heading, *rows = [line.split() for line in saved.done("log", "t").splitlines()]
    first, second, third = rows

    assert heading == ["seq", "time", "writer", "id", "metadata"]
    assert [row[0] for row in rows] == ["4", "3", "2"]
    assert first[3:] == ["worker", "step-2", "step=2", 'source="loop"']
    assert (second[4], third[4]) == ("step-1", "step-0")


def test_log_begins_with_what_tells_checkpoints_apart(machine: Machine) -> None:
    """What all of them say comes last, where a narrow terminal leaves it out."""
    with machine.open() as store:
        for step in range(2):
            said = {"workflow_name": "payments", "step": step}
            store.thread("t").save(step, id=f"step-{step}", metadata=said)
    rows = [line.split()[5:] for line in machine.done("log", "t").splitlines()[1:]]

    assert rows == [["step=1", 'workflow_name="payments"'], ["step=0", 'workflow_name="payments"']]


def test_log_as_json_has_everything(saved: Machine) -> None:
    """References with their whole metadata, and whether there are more."""
    document = saved.json("log", "t")

    assert document["thread"] == "t"
    assert document["more"] is False
    assert [each["id"] for each in document["checkpoints"]] == ["step-2", "step-1", "step-0"]
    assert document["checkpoints"][0]["metadata"] == {"step": 2, "source": "loop"}
    assert set(document["checkpoints"][0]) == {
        *("id", "seq", "time", "writer", "metadata", "entry", "pruned", "question", "lane"),
        *("parent", "held"),
    }


def test_a_limit_says_that_there_are_more(saved: Machine) -> None:
    """What is left out is never left out silently; 0 leaves out nothing."""
    limited = saved.done("log", "t", "--limit", "2")

    assert "... and older ones below entry 3; --limit 0 lists all." in limited
    assert "step-0" not in limited
    assert saved.json("log", "t", "--limit", "2")["more"] is True
    assert saved.json("log", "t", "--limit", "3")["more"] is False
    assert "... and" not in saved.done("log", "t", "--limit", "0")


def test_random_ids_are_shortened_and_it_says_so(machine: Machine) -> None:
    """The table has the first digits; `show` has the whole id."""
    ref = machine.json("save", "t", stdin="1")
    printed = machine.done("log", "t")

    assert ref["id"] not in printed
    assert f"{ref['id'].removeprefix('checkpoint:')[:12]}..." in printed
    assert "Ids are shortened" in printed
    assert ref["id"] in machine.done("show", "t")


def test_long_metadata_is_cut_and_counted(machine: Machine) -> None:
    """The table stays a table; what is left out is counted."""
    long = ", ".join(f'"key{number}": "a value of some length"' for number in range(12))
    machine.done("save", "t", "--metadata", f"{{{long}}}", stdin="1")
    lines = machine.done("log", "t").splitlines()

    assert any("more" in line and "... and " in line for line in lines)
    assert all(len(line) <= 100 for line in lines)


@pytest.mark.parametrize("name", ["step-1", "seq:3", "#3"])
def test_a_checkpoint_is_named_by_id_or_position(saved: Machine, name: str) -> None:
    """All three names mean the same checkpoint, for `show` and for `load`."""
    document = saved.json("show", "t", name)

    assert (document["id"], document["seq"]) == ("step-1", 3)
    assert document["state"] == {"step": 1}
    assert saved.json("load", "t", name) == {"step": 1}


def test_show_shows_everything(saved: Machine) -> None:
    """Without a name, the newest: who, when, metadata, world and state."""
    lines = saved.done("show", "t").splitlines()

    assert [line.split(None, 1)[0] for line in lines[:5]] == [
        *("thread", "id", "seq", "time", "writer")
    ]
    assert lines[5:] == [
        "",
        'state: {"step": 2}',
        "",
        'metadata: {"step": 2, "source": "loop"}',
        "",
        'world: {"model": {"name": "one"}}',
        "",
        "What would be resumed with it:",
        f"  checkpoint step-2, seq:{lines[2].split()[1]}, the newest",
        f"  saved {' '.join(lines[3].split()[1:])} by worker",
        "  no results of tasks are pending on it",
    ]


@pytest.mark.parametrize(
    "name", ["step-9", "seq:0", "seq:1", "seq:99", "#99", "seq:-1", "seq:03", "x" * 512]
)
def test_a_checkpoint_that_does_not_exist_is_unknown(saved: Machine, name: str) -> None:
    """Neither do entries of other kinds, which have positions too, count as checkpoints."""
    assert saved.refused("show", "t", name) == (44, "unknown-checkpoint")
    assert saved.refused("load", "t", name) == (44, "unknown-checkpoint")


@pytest.mark.parametrize("verb", ["log", "show", "load", "diff"])
def test_a_thread_that_does_not_exist_is_unknown(saved: Machine, verb: str) -> None:
    """The status is 44, whatever was asked."""
    assert saved.refused(verb, "nobody") == (44, "unknown-thread")


@pytest.mark.parametrize("name", ["\x1b[31mred", "", "a\nb", "x" * 513, "\u202eevil", "\udcff"])
@pytest.mark.parametrize("verb", ["log", "show", "load", "diff", "save"])
def test_a_name_that_does_not_print_is_refused_visibly(
    saved: Machine, verb: str, name: str
) -> None:
    """No control character reaches the terminal, not even in the error."""
    assert saved.refused(verb, name, **({"stdin": "1"} if verb == "save" else {})) == (
        2,
        "name-invalid",
    )


def test_control_characters_in_what_was_saved_are_shown_visibly(machine: Machine) -> None:
    """State, metadata and world cannot paint on the terminal of whoever looks at them."""
    evil = "\x1b[2J\x1b]0;title\x07\r\u202e\u2028"
    with machine.open() as store:
        world, first = {evil: evil}, {evil: evil, "text": f"a\n{evil}"}
        store.thread("t").save(first, metadata={evil: evil}, world=world)
        store.thread("t").save({"text": f"a\n{evil}x"}, metadata={}, world=world)

    for arguments in (
        *(("log", "t"), ("show", "t", "seq:2"), ("show", "t"), ("diff", "t")),
        *(("load", "t"), ("load", "t", "seq:2")),
    ):
        for json in ((), ("--json",)):
            output = machine.done(*arguments, *json)
            assert not {"\x1b", "\x07", "\r", "\u202e", "\u2028"} & set(output), arguments
            assert "title" in output


def test_types_of_the_application_need_its_registry(machine: Machine) -> None:
    """With `--typed`, the error says how to name it; with it, fields are shown by name."""
    with machine.open(shop.registry) as store:
        store.thread("t").save({"orders": [shop.Order(["tea"])]})
    result = machine.run("show", "t", "--typed")
    document = machine.json("show", "t", "--registry", _SHOP)

    assert result.exit_code == 20
    assert "--registry MODULE:OBJECT" in result.stderr
    assert machine.refused("diff", "t") == (44, "unknown-checkpoint")
    assert 'Order(items=["tea"])' in machine.done("show", "t", "--registry", _SHOP)
    assert document["state"] is None
    assert document["state_is_json"] is False
    assert any("Order(" in line for line in document["rendering"])
    assert machine.refused("show", "t", "--registry", "tests.cli.shop:good") == (
        2,
        "object-not-found",
    )


def test_a_long_state_is_cut_unless_all_of_it_is_asked_for(machine: Machine) -> None:
    """What is left out is counted, and `--full` leaves out nothing."""
    state: dict[str, Any] = {"numbers": list(range(1000, 1100)), "text": "x" * 5000}
    with machine.open() as store:
        store.thread("t").save(state)
    short, full = machine.done("show", "t"), machine.done("show", "t", "--full")

    assert "... and 60 more" in short
    assert "... and 4,400 more characters" in short
    assert "--full shows everything" in short
    assert "... and" not in full
    assert "[99]: 1099" in full
    assert "x" * 5000 in full


def test_types_that_are_not_known_here_are_shown_as_plain_data(machine: Machine) -> None:
    """People see fields and the name of their type; programs only if they ask for that."""
    with machine.open(shop.registry) as store:
        thread = store.thread("t")
        thread.save({"orders": [shop.Order(["tea"])]})
        thread.save({"orders": [shop.Order(["tea", "milk"])]})
    shown = machine.done("show", "t")
    loaded = machine.json("load", "t", "--untyped")
    changes = machine.json("diff", "t", "--untyped")["changes"]
    diff, read = machine.done("diff", "t"), machine.done("load", "t")
    refused = machine.run("diff", "t", "--typed")
    programs = machine.run("load", "t", "--json")

    assert 'shop.order(items=["tea", "milk"])' in shown
    assert loaded == {"orders": [{"type": "shop.order", "fields": {"items": ["tea", "milk"]}}]}
    assert [(each["kind"], each["path"]) for each in changes] == [
        ("added", 'state["orders"][0].items[1]')
    ]
    assert "milk" in diff
    assert '"type": "shop.order"' in read
    assert "--untyped" in refused.stderr
    assert "--untyped" in programs.stderr


def test_a_log_names_subgraphs_and_nodes(machine: Machine) -> None:
    """Nobody has to find out which node is behind an id."""
    asks = "~__pregel_pull, refund"
    with machine.open() as store:
        outcomes = store.thread("t").adapter.commit(
            [
                SaveDraft({}, "a", None, {"step": 0}, None),
                ResultsDraft([], checkpoint="a", task="1", path="~__pregel_pull, classify"),
                SaveDraft({}, "b", "a", {"step": 1}, None),
                SaveDraft({}, "c", None, None, None, lane="support:1|inner:2"),
                ResultsDraft([], checkpoint="b", task="2", path=asks, question="Refund?"),
            ]
        )
        assert not [each for each in outcomes if isinstance(each, Exception)]
        entries = store.watch().timeline("t").entries
    headings, inner, second, first = machine.done("log", "t").splitlines()
    steps = [step_text(each, finished_nodes(entries)) for each in entries]

    assert headings.split()[4:6] == ["lane", "after"]
    assert "support / inner" in inner
    assert "classify" in second
    assert "classify" not in first
    assert "Node refund asks" in steps
    assert "Node classify finished" in steps
    assert "Step 1, after classify" in steps
    assert "Step 0" in steps


def test_a_shortened_id_names_a_checkpoint(machine: Machine) -> None:
    """What `log` prints can be given back, with or without its dots."""
    for state in ("1", "2"):
        machine.done("save", "t", stdin=state)
    newest, oldest = machine.json("log", "t")["checkpoints"]
    short = oldest["id"].partition(":")[2][:12]
    printed = machine.done("log", "t")

    assert f"{short}..." in printed
    assert machine.json("load", "t", short) == 1
    assert machine.json("load", "t", f"{short}...") == 1
    assert machine.json("diff", "t", short)["to"]["id"] == newest["id"]
    assert machine.refused("load", "t", "0" * 12) == (44, "unknown-checkpoint")
