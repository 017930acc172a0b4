# SPDX-License-Identifier: Apache-2.0
"""`sealpoint prune`, `erase` and `gc`: what would go is said, and nothing goes by accident."""

import json
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from sealpoint.cli.options import parse_time
from sealpoint.errors import StorageUnavailable, UsageError
from sealpoint.views.words import size_text
from sealpoint_testing.faults import Step, inject, storage_error
from tests.cli.machine import Machine

_NOW = datetime(2026, 6, 1, tzinfo=UTC)
_SECRET = "a secret that nobody may find again"  # noqa: S105 - what is to be erased


@pytest.fixture
def saved(machine: Machine) -> Machine:
    """A machine whose thread `t` has four checkpoints, at the positions 2 to 5."""
    with machine.open() as store:
        for step in range(4):
            lines = [f"line {number} of step {step}: {_SECRET}" for number in range(100)]
            store.thread("t").save(lines, id=f"step-{step}", metadata={"step": step})
    return machine


def _states(machine: Machine, thread: str = "t") -> dict[str, bool]:
    """Every checkpoint by its id, and whether its state is there."""
    found = machine.json("log", thread, "--limit", "0")["checkpoints"]
    return {each["id"]: not each["pruned"] for each in found}


def _entries(machine: Machine) -> int:
    return int(machine.json("verify")["entries"])


# ---------------------------------------------------------------------- prune


def test_a_dry_run_says_what_would_be_pruned(saved: Machine) -> None:
    """Checkpoints, blobs and bytes; no key is needed, and nothing changes."""
    before = _entries(saved)
    lines = saved.done("prune", "t", "--keep-last", "2", "--dry-run").splitlines()

    assert lines[0] == "To lose their state for good:"
    assert lines[1].split() == ["seq", "time", "writer", "id"]
    assert [line.split()[0] for line in lines[2:4]] == ["3", "2"]
    assert lines[4] == ""
    assert lines[5].startswith("2 states and ")
    assert " kB would go." in lines[5]
    assert lines[6:] == ["Nothing was pruned: this was a dry run."]
    assert _entries(saved) == before
    assert all(_states(saved).values())


def test_what_was_pruned_is_shown_as_such(saved: Machine) -> None:
    """The table has a column for it, JSON a field, and the states themselves are refused."""
    printed = saved.done("prune", "t", "--keep-last", "1", "--keep", "step-1", "--yes")
    log = [line.split() for line in saved.done("log", "t").splitlines()]
    result = saved.run("show", "t", "step-0")

    assert printed.splitlines()[-1].startswith("Pruned: 2 states and ")
    assert log[0] == ["seq", "time", "writer", "id", "state", "metadata"]
    assert [(row[4], row[5]) for row in log[1:]] == [
        *(("step-3", "kept"), ("step-2", "pruned"), ("step-1", "kept"), ("step-0", "pruned"))
    ]
    assert _states(saved) == {"step-3": True, "step-2": False, "step-1": True, "step-0": False}
    for verb, name in (("show", "step-0"), ("load", "seq:2"), ("load", "step-2")):
        assert saved.refused(verb, "t", name) == (44, "pruned")
    assert "sealpoint log THREAD shows which" in result.stderr
    assert saved.refused("diff", "t") == (44, "pruned")
    assert saved.json("show", "t", "step-1")["pruned"] is False
    assert saved.json("verify")["ok"] is True


def test_a_thread_without_pruned_states_is_listed_as_ever(saved: Machine) -> None:
    """No column for what is not there."""
    assert saved.done("log", "t").splitlines()[0].split() == [
        *("seq", "time", "writer", "id", "metadata")
    ]


def test_prune_as_json(saved: Machine) -> None:
    """The same document for the plan and for what was done."""
    rule = ("prune", "t", "--keep", "seq:3", "--reason", "thirty days are over")
    planned = saved.json(*rule, "--dry-run")
    done = saved.json(*rule, "--yes")

    assert list(done) == ["thread", "checkpoints", "blobs", "size_bytes", "entry", "done"]
    assert [each["id"] for each in done["checkpoints"]] == ["step-2", "step-0"]
    assert [each["pruned"] for each in done["checkpoints"]] == [True, True]
    assert (planned["done"], planned["entry"]) == (False, None)
    assert (done["done"], done["entry"]) == (True, 6)
    assert (planned["blobs"], planned["size_bytes"]) == (done["blobs"], done["size_bytes"])
    ((body,),) = saved.sql("SELECT body FROM entries WHERE seq = 6")
    assert json.loads(body)["reason"] == "thirty days are over"


def test_nothing_to_prune_is_no_question(saved: Machine) -> None:
    """A cron job that finds nothing ends well, without --yes."""
    words = saved.done("prune", "t", "--keep-last", "9")
    document = saved.json("prune", "t", "--keep-last", "9")

    assert words == "Nothing to prune: every checkpoint is kept.\n"
    assert (document["done"], document["checkpoints"]) == (False, [])


def test_pruning_without_a_terminal_needs_yes(saved: Machine) -> None:
    """Nobody is there to ask, so nothing is done, and the hint says how."""
    result = saved.run("prune", "t", "--keep-last", "1")

    assert saved.refused("prune", "t", "--keep-last", "1") == (2, "usage")
    assert "this needs --yes, or a terminal to ask on" in result.stderr
    assert "--dry-run" in result.stderr
    assert all(_states(saved).values())


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_pruning_asks_at_a_terminal(saved: Machine, answer: str, status: int) -> None:
    """What would go is shown before the question; no answer is no."""
    pytest.importorskip("pty")
    found, printed = saved.at_a_terminal("prune", "t", "--keep-last", "1", answer=answer)

    assert found == status
    assert printed.index("step-0") < printed.index("Shall they be pruned?")
    assert ("Nothing was pruned." in printed) == (status == 1)
    assert _states(saved)["step-0"] == (status == 1)


def test_a_prune_needs_a_rule_that_makes_sense(saved: Machine) -> None:
    """No rule, none of a number, a checkpoint or a thread that is not there, another's thread."""
    assert saved.refused("prune", "t", "--yes") == (2, "usage")
    assert saved.run("prune", "t", "--keep-last", "0", "--yes").exit_code == 2
    assert saved.refused("prune", "t", "--keep", "step-9", "--yes") == (44, "unknown-checkpoint")
    assert saved.refused("prune", "t", "--keep", "seq:9", "--yes") == (44, "unknown-checkpoint")
    assert saved.refused("prune", "nobody", "--keep-last", "1", "--yes") == (44, "unknown-thread")
    by_operator = ("prune", "t", "--keep-last", "1", "--yes", "--identity", "operator")
    assert saved.refused(*by_operator) == (39, "no-right")
    assert all(_states(saved).values())


def test_many_checkpoints_are_counted_and_not_all_shown(machine: Machine) -> None:
    """The table ends after twenty, and JSON has all of them."""
    with machine.open() as store:
        for number in range(25):
            store.thread("t").save(number)
    rule = ("prune", "t", "--keep-last", "1", "--dry-run")

    assert "... and 4 older ones; --json lists all." in machine.done(*rule)
    assert "\n24 states would go." in machine.done(*rule)
    assert len(machine.json(*rule)["checkpoints"]) == 24


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T09:30Z", datetime(2026, 1, 31, 9, 30, tzinfo=UTC)),
        ("2026-01-31T09:30:15Z", datetime(2026, 1, 31, 9, 30, 15, tzinfo=UTC)),
        ("2026-01-31T09:30:15.5+01:00", datetime(2026, 1, 31, 8, 30, 15, 500000, tzinfo=UTC)),
    ],
)
def test_a_time_is_a_day_or_a_moment_with_a_zone(text: str, expected: datetime) -> None:
    """A day begins at midnight in UTC."""
    assert parse_time(text, _NOW, "--keep-since", past=True) == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45s", 45), ("90m", 5400), ("12h", 43_200), ("30d", 2_592_000), ("2w", 1_209_600)],
)
def test_a_time_is_also_an_age(text: str, seconds: int) -> None:
    """As a cron job writes it."""
    assert _NOW - parse_time(text, _NOW, "--keep-since", past=True) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "30", "0d", "-3d", "1y", "1.5h", "٣d", "9999999d", "20260131"),
        *("2026-02-31", "2026-01-31T09:30", "2026-01-31 09:30Z", "2026-W05-6", "2026-1-1"),
        *("2026-01-31T25:00Z", "2026-01-31T09:30+25:00", "999999w"),
    ],
)
def test_other_times_are_refused(text: str) -> None:
    """A time that could mean two things means none."""
    with pytest.raises(UsageError, match="expected a day, a time with a zone or an age"):
        parse_time(text, _NOW, "--keep-since", past=True)


def test_keep_since_keeps_what_is_younger(saved: Machine) -> None:
    """An hour ago there was nothing; tomorrow all but the newest is too old."""
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%d")

    assert "Nothing to prune" in saved.done("prune", "t", "--keep-since", "1h", "--yes")
    assert saved.refused("prune", "t", "--keep-since", "soon", "--yes") == (2, "usage")
    saved.done("prune", "t", "--keep-since", tomorrow, "--yes", "--no-compact")
    assert _states(saved) == {"step-3": True, "step-2": False, "step-1": False, "step-0": False}


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        *((0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1.0 kB"), (1550, "1.6 kB")),
        *((2_500_000, "2.5 MB"), (7 * 10**9, "7.0 GB"), (3 * 10**12, "3.0 TB")),
        (5 * 10**16, "50,000.0 TB"),
    ],
)
def test_sizes_are_said_as_people_say_them(size_bytes: int, text: str) -> None:
    """In steps of a thousand, with one digit behind the point."""
    assert size_text(size_bytes) == text


# ---------------------------------------------------------------------- erase


def _raw(machine: Machine) -> bytes:
    return b"".join(path.read_bytes() for path in machine.path.parent.glob("store.db*"))


def test_a_dry_run_says_what_would_be_erased(saved: Machine) -> None:
    """Every checkpoint, and how much; nothing changes."""
    before = _entries(saved)
    lines = saved.done("erase", "t", "--reason", "x", "--dry-run").splitlines()

    assert lines[0] == "To be removed for good, with everything else in the thread:"
    assert [line.split()[-1] for line in lines[2:6]] == ["step-3", "step-2", "step-1", "step-0"]
    assert lines[7].startswith("6 bodies and ")
    assert lines[8:] == ["Nothing was erased: this was a dry run."]
    assert _entries(saved) == before
    assert saved.json("load", "t")


def test_an_erased_thread_is_gone_and_known_to_be(saved: Machine) -> None:
    """Reads say erased, the list is complete without it, and the files do not hold it."""
    assert _SECRET.encode() in _raw(saved)
    printed = saved.done("erase", "t", "--reason", "as was asked for", "--yes")
    result = saved.run("load", "t")

    assert printed.splitlines()[-1].startswith("Erased: 6 bodies and ")
    assert printed.splitlines()[-1].endswith("; entry 6 records it.")
    for arguments in (("load", "t"), ("show", "t"), ("show", "t", "step-0"), ("load", "t", "x")):
        assert saved.refused(*arguments) == (44, "erased")
    assert "a new save starts a new generation" in result.stderr
    assert saved.refused("load", "t", "seq:2") == (44, "unknown-checkpoint")
    assert "all that the thread held was erased" in saved.done("log", "t")
    assert saved.json("log", "t")["checkpoints"] == []
    assert saved.json("threads")["threads"] == []
    assert saved.json("threads")["complete"] is True
    assert saved.json("verify")["ok"] is True
    for part in (_SECRET, "step-0", '"step":'):
        assert part.encode() not in _raw(saved)


def test_a_name_begins_anew_after_an_erasure(saved: Machine) -> None:
    """The next save is a new generation, which is listed and loaded like any thread."""
    saved.done("erase", "t", "--reason", "x", "--yes")
    assert saved.json("save", "t", stdin='"anew"')["seq"] == 9

    assert saved.json("load", "t") == "anew"
    assert saved.json("threads")["threads"] == ["t"]
    assert saved.json("verify")["ok"] is True


def test_erase_as_json(saved: Machine) -> None:
    """The same document for the plan, for what was done, and for nothing left to do."""
    erase = ("erase", "t", "--reason", "x")
    planned, done = saved.json(*erase, "--dry-run"), saved.json(*erase, "--yes")
    again = saved.json(*erase)

    assert list(done) == ["thread", "entries", "blobs", "size_bytes", "entry", "done"]
    assert (planned["entries"], planned["entry"], planned["done"]) == (6, None, False)
    assert (done["entries"], done["entry"], done["done"]) == (6, 6, True)
    assert (planned["blobs"], planned["size_bytes"]) == (done["blobs"], done["size_bytes"])
    assert (again["entries"], again["blobs"], again["entry"]) == (0, 0, 6)
    assert "Nothing is left to erase" in saved.done(*erase)


def test_erasing_needs_the_role_a_reason_and_an_answer(saved: Machine) -> None:
    """A worker may not, an empty reason is none, and without a terminal --yes is needed."""
    erase = ("erase", "t", "--yes")

    assert saved.refused(*erase, "--reason", "x", "--identity", "worker") == (39, "no-right")
    assert saved.refused(*erase, "--reason", "  ") == (2, "usage")
    assert saved.run(*erase).exit_code == 2
    assert saved.refused("erase", "t", "--reason", "x") == (2, "usage")
    assert saved.refused("erase", "nobody", "--reason", "x", "--yes") == (44, "unknown-thread")
    assert saved.json("load", "t")


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1)])
def test_erasing_asks_at_a_terminal(saved: Machine, answer: str, status: int) -> None:
    """What would go is shown before the question, which names the thread."""
    pytest.importorskip("pty")
    found, printed = saved.at_a_terminal("erase", "t", "--reason", "x", answer=answer)

    assert found == status
    assert printed.index("step-0") < printed.index("thread 't' ever held be erased for good?")
    assert saved.run("load", "t").exit_code == (44 if status == 0 else 0)


def test_the_anchor_remembers_an_erasure(saved: Machine) -> None:
    """Its standing is shown, by name only to whoever knows the name; a rollback is still one."""
    saved.done("save", "u", stdin="1")
    with sqlite3.connect(saved.path) as database:
        rows = database.execute("SELECT * FROM entries").fetchall()
    database.close()
    saved.done("erase", "t", "--reason", "x", "--yes")
    found = saved.json("anchor", "show")
    (named,) = [each for each in saved.json("anchor", "show", "t") if not each["is_store_chain"]]

    assert [(each["name"], each["standing"]) for each in found] == [
        *((None, "in-step"), ("u", "in-step"), (None, "erased"))
    ]
    assert (named["name"], named["standing"]) == ("t", "erased")
    assert "erased on purpose" in saved.done("anchor", "show")
    saved.sql("DELETE FROM entries")
    for row in rows:
        saved.sql("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    (behind,) = [each for each in saved.json("anchor", "show", "t") if not each["is_store_chain"]]
    assert behind["standing"] == "store-behind"


# ---------------------------------------------------------------------- gc


def _cut_short(machine: Machine) -> None:
    """Let a prune fail after its entry and before its sweep."""
    with machine.open() as store:
        inject(store).at(Step.BEFORE_DROP, storage_error)
        with pytest.raises(StorageUnavailable):
            store.thread("t").prune(keep_last=1)


def test_gc_finishes_what_was_cut_short(saved: Machine) -> None:
    """It says what would go, then what went, and then that there is nothing."""
    _cut_short(saved)
    size = saved.path.stat().st_size
    dry = saved.done("gc", "--dry-run").splitlines()
    done = saved.done("gc")
    nothing = saved.done("gc", "--no-compact")

    assert dry[0].startswith("1 thread looked at: ")
    assert dry[0].endswith(" kB would go.")
    assert dry[1:] == ["Nothing was removed: this was a dry run."]
    assert done.startswith("Removed: ")
    assert done.endswith(" kB; 1 thread looked at.\n")
    assert nothing == "1 thread looked at: nothing to remove.\n"
    assert saved.path.stat().st_size < size
    assert saved.json("verify")["ok"] is True


def test_prune_finishes_what_was_cut_short(saved: Machine) -> None:
    """Where no checkpoint goes any more, what is left over is said to."""
    _cut_short(saved)
    lines = saved.done("prune", "t", "--keep-last", "1", "--yes").splitlines()

    assert lines[0] == "Every checkpoint is kept; something that none of them needs can go."
    assert lines[2].startswith("Pruned: 0 states and ")
    assert saved.json("gc", "--dry-run")["blobs"] == 0


def test_gc_as_json(saved: Machine) -> None:
    """The same document for the plan and for what was done."""
    _cut_short(saved)
    planned, done = saved.json("gc", "--dry-run"), saved.json("gc")

    assert list(done) == ["threads", "blobs", "size_bytes", "failures", "done"]
    assert (planned["done"], done["done"]) == (False, True)
    assert planned["blobs"] == done["blobs"] > 0
    assert planned["size_bytes"] == done["size_bytes"]
    assert (done["threads"], done["failures"]) == (1, [])


def test_gc_leaves_what_does_not_verify_and_says_so(saved: Machine) -> None:
    """The exit status is that of a store that is not as it was."""
    saved.done("save", "u", stdin="1")
    saved.sql("DELETE FROM entries WHERE seq = 3")
    words, document = saved.run("gc"), saved.run("gc", "--json")
    (failure,) = json.loads(document.stdout)["failures"]

    assert words.exit_code == document.exit_code == 30
    assert "entry 3" in words.stdout
    assert "1 thread does not verify: sealpoint verify says more." in words.stdout
    assert set(failure) == {"thread", "message"}
    assert failure["thread"][:12] in words.stdout


def test_gc_at_a_terminal(saved: Machine) -> None:
    """Nobody is asked: what nothing needs is missed by nobody."""
    pytest.importorskip("pty")
    _cut_short(saved)
    status, printed = saved.at_a_terminal("gc")

    assert status == 0
    assert "Removed" in printed


@pytest.mark.parametrize("verb", ["prune", "erase", "gc"])
def test_a_store_that_is_not_there_is_said(saved: Machine, verb: str) -> None:
    """Verbs that take away refuse a store without a pin like all others."""
    other = Machine(saved.path, saved.home.parent / "nowhere")
    arguments = {"prune": ("t", "--keep-last", "1"), "erase": ("t", "--reason", "x"), "gc": ()}

    for more in (("--dry-run",), ()):
        assert other.refused(verb, *arguments[verb], *more) == (39, "no-pin")
