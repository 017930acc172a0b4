# SPDX-License-Identifier: Apache-2.0
"""`sealpoint anchor`: positions against the store, and adoption."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealpoint.api import admin
from sealpoint.errors import NotTrusted, UnknownThread, UsageError
from sealpoint.ledger import STORE_CHAIN
from tests.cli.machine import Machine
from tests.postgres_server import PostgresServer

_NOTHING = "Nothing to adopt: the anchor knows everything in this namespace."


@pytest.fixture
def saved(machine: Machine) -> Machine:
    """A machine with the threads `a` and `b`."""
    machine.done("save", "a", stdin="1")
    machine.done("save", "b", stdin="1")
    return machine


@pytest.fixture
def newcomer(saved: Machine, other: Machine) -> Machine:
    """A machine that trusts the store and whose anchor does not know it."""
    other.done("trust", "import", "-", stdin=saved.run("trust", "export").stdout_bytes)
    (mine,) = (other.home / "config" / "stores").iterdir()
    (theirs,) = (saved.home / "config" / "stores").iterdir()
    shutil.copytree(theirs / "keys", mine / "keys")
    return other


def _standings(machine: Machine, *arguments: str) -> dict[str | None, str]:
    return {each["name"]: each["standing"] for each in machine.json("anchor", "show", *arguments)}


def test_a_store_in_use_is_in_step(saved: Machine) -> None:
    """The table has the store chain first, then threads by name."""
    lines = [line.split() for line in saved.done("anchor", "show").splitlines()]

    assert lines == [
        ["thread", "anchor", "store", "standing"],
        ["(store", "chain)", "0", "0", "in", "step"],
        ["a", "2", "2", "in", "step"],
        ["b", "2", "2", "in", "step"],
    ]


def test_one_thread_can_be_asked_for(saved: Machine) -> None:
    """The store chain and that thread; a name that nobody knows is an error."""
    assert _standings(saved, "b") == {None: "in-step", "b": "in-step"}
    assert saved.refused("anchor", "show", "nobody") == (44, "unknown-thread")


def test_a_newer_store_is_ahead_until_somebody_loads(saved: Machine, newcomer: Machine) -> None:
    """What another machine wrote is not in this anchor yet."""
    newcomer.done("anchor", "adopt", "--reason", "second machine", "--yes")
    newcomer.done("save", "a", stdin="2")

    assert _standings(saved)["a"] == "anchor-behind"
    assert "anchor behind" in saved.done("anchor", "show", "a")
    saved.done("save", "a", stdin="3")
    assert _standings(saved)["a"] == "in-step"


def test_an_older_store_is_behind(saved: Machine) -> None:
    """The newest entry of every thread was cut off."""
    saved.sql("DELETE FROM entries WHERE seq = 2")

    assert _standings(saved) == {None: "in-step", "a": "store-behind", "b": "store-behind"}
    assert "STORE BEHIND" in saved.done("anchor", "show")


def test_a_thread_that_is_gone_is_missing(saved: Machine) -> None:
    """Its name is known only to whoever asks for it by name."""
    saved.sql("DELETE FROM entries WHERE thread != ?", [STORE_CHAIN])
    found = saved.json("anchor", "show")

    assert [each["name"] for each in found] == [None, None, None]
    assert {each["standing"] for each in found[1:]} == {"missing"}
    assert found[1]["thread"][:12] in saved.done("anchor", "show")
    assert _standings(saved, "a") == {None: "in-step", "a": "missing"}


def test_another_entry_at_the_anchored_position_is_a_fork(saved: Machine) -> None:
    """The hash is compared, not the number alone."""
    saved.sql("UPDATE entries SET header = CAST(header || x'20' AS BLOB) WHERE seq = 2")

    assert set(_standings(saved).values()) == {"in-step", "forked"}


def test_what_cannot_be_read_is_named_by_its_id(saved: Machine) -> None:
    """A damaged genesis hides the name and nothing else."""
    saved.sql("UPDATE entries SET body = x'00' WHERE seq = 0 AND thread != ?", [STORE_CHAIN])
    found = saved.json("anchor", "show")

    assert [each["name"] for each in found] == [None, None, None]
    assert all(each["thread"] for each in found)
    assert saved.run("anchor", "show").exit_code == 0


def test_threads_of_other_namespaces_are_left_out(saved: Machine) -> None:
    """They are neither listed nor taken for missing."""
    saved.done("save", "c", "--namespace", "billing", stdin="1")

    assert set(_standings(saved)) == {None, "a", "b"}
    assert set(_standings(saved, "--namespace", "billing")) == {None, "c"}


def test_adoption_teaches_a_new_anchor(newcomer: Machine) -> None:
    """Before it nothing is read; a dry run shows what it would do; then all is in step."""
    assert newcomer.refused("load", "a") == (30, "unanchored")
    assert set(_standings(newcomer).values()) == {"unanchored"}
    dry = newcomer.done("anchor", "adopt", "--reason", "new machine", "--dry-run")
    assert dry.splitlines() == [
        "To be believed from now on as the newest copy:",
        "  the store chain",
        "  thread a",
        "  thread b",
        "",
        "Nothing was adopted: this was a dry run.",
    ]
    assert newcomer.refused("load", "a") == (30, "unanchored")
    document = newcomer.json("anchor", "adopt", "a", "--reason", "new machine", "--yes")
    assert document == {
        "store_chain": True,
        "threads": ["a"],
        "adopted": True,
        "reason": "new machine",
    }
    assert newcomer.json("load", "a") == 1
    assert newcomer.refused("load", "b") == (30, "unanchored")
    assert "Adopted" in newcomer.done("anchor", "adopt", "--reason", "the rest", "--yes")
    assert newcomer.json("load", "b") == 1
    assert "Nothing to adopt" in newcomer.done("anchor", "adopt", "--reason", "again", "--yes")
    assert newcomer.json("verify")["ok"] is True


def test_adoption_says_what_it_does_not_mend(saved: Machine) -> None:
    """Threads that are behind or missing are none of its business; a line says where to look."""
    adopt = ("anchor", "adopt", "--reason", "x", "--yes")
    assert saved.done(*adopt).splitlines() == [_NOTHING]
    saved.sql("DELETE FROM entries WHERE seq = 2 AND thread != ?", [STORE_CHAIN])
    behind = saved.done(*adopt).splitlines()
    saved.sql(
        "DELETE FROM entries WHERE thread = (SELECT min(thread) FROM entries WHERE thread != ?)",
        [STORE_CHAIN],
    )

    assert behind[0] == _NOTHING
    assert behind[1].startswith("2 threads are behind the anchor, diverged or missing")
    assert behind[1].endswith("sealpoint anchor show")
    standings = [each["standing"] for each in saved.json("anchor", "show")]
    assert sorted(standings) == ["in-step", "missing", "store-behind"]
    assert saved.done(*adopt).splitlines() == behind
    assert saved.json(*adopt)["adopted"] is False


def test_adoption_without_a_terminal_needs_yes(newcomer: Machine) -> None:
    """Nobody is there to ask, so nothing is done."""
    assert newcomer.refused("anchor", "adopt", "--reason", "x") == (2, "usage")
    assert set(_standings(newcomer).values()) == {"unanchored"}


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_adoption_asks_at_a_terminal(newcomer: Machine, answer: str, status: int) -> None:
    """What would be adopted is shown before the question; no answer is no."""
    pytest.importorskip("pty")
    found, printed = newcomer.at_a_terminal("anchor", "adopt", "--reason", "x", answer=answer)

    assert found == status
    assert printed.index("thread a") < printed.index("newest copy there is")
    assert newcomer.run("load", "a").exit_code == (0 if status == 0 else 30)


def test_adoption_of_a_thread_that_is_known_or_unknown_is_refused(newcomer: Machine) -> None:
    """Only what the store has and the anchor has not can be adopted."""
    newcomer.done("anchor", "adopt", "a", "--reason", "x", "--yes")

    for name in ("a", "nobody"):
        assert newcomer.refused("anchor", "adopt", name, "--reason", "x", "--yes") == (
            44,
            "unknown-thread",
        )


def test_adoption_needs_an_operator_and_a_reason(newcomer: Machine) -> None:
    """A worker may not do it, and an empty reason is none."""
    adopt = ("anchor", "adopt", "--yes")

    assert newcomer.refused(*adopt, "--reason", "x", "--identity", "worker") == (39, "no-right")
    assert newcomer.refused(*adopt, "--reason", " ") == (2, "usage")
    assert newcomer.run(*adopt).exit_code == 2


def test_a_damaged_thread_is_not_adopted(newcomer: Machine) -> None:
    """Every entry is verified from the first on before its thread is believed."""
    newcomer.sql(
        "UPDATE entries SET header = CAST(replace(header, 'checkpoint', 'resume') AS BLOB) "
        "WHERE seq = 2 AND thread = "
        "(SELECT min(thread) FROM entries WHERE thread != ?)",
        [STORE_CHAIN],
    )
    result = newcomer.run("anchor", "adopt", "--reason", "x", "--yes")

    assert result.exit_code == 30
    assert "[forged]" in result.stderr
    assert "unanchored" in _standings(newcomer).values()
    assert newcomer.run("verify").exit_code == 30


def test_positions_are_an_api_as_well(saved: Machine, tmp_path: Path) -> None:
    """The function refuses what it cannot know about."""
    config, state = saved.home / "config", saved.home / "state"
    found = admin(saved.url, config_dir=config, state_dir=state).anchor.positions()

    assert [each.name for each in found] == [None, "a", "b"]
    with pytest.raises(UnknownThread):
        admin(saved.url, config_dir=config, state_dir=state).anchor.positions(
            threads=["a", "nobody"]
        )
    with pytest.raises(NotTrusted):
        admin(
            saved.url, config_dir=tmp_path / "none", state_dir=tmp_path / "none2"
        ).anchor.positions()


@pytest.fixture
def shared(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The URL of an anchor that machines may share; the password is in a file."""
    path, schema = tmp_path / "password", postgres.new_schema()
    path.write_text(f"{postgres.password}\n")
    path.chmod(0o600)
    monkeypatch.setenv("SEALPOINT_ANCHOR_PASSWORD_FILE", str(path))
    yield postgres.url(schema=schema)
    postgres.drop_schema(schema)


def test_machines_share_an_anchor(saved: Machine, other: Machine, shared: str) -> None:
    """The first takes along what it saw, the second needs no adoption, and either may leave."""
    refused = saved.run("anchor", "join", shared)
    assert refused.exit_code == UsageError.exit_status
    assert "--reason" in refused.stderr
    printed = saved.done("anchor", "join", shared, "--reason", "a fleet")
    assert f"anchor   {shared}" in printed
    assert "of 3 chains, with the reason 'a fleet'" in printed
    other.done("trust", "import", "-", stdin=saved.run("trust", "export").stdout_bytes)
    assert other.json("anchor", "join", shared) == {"url": shared, "taken": 0, "threads": 2}

    assert other.json("load", "a") == 1
    assert other.json("doctor", "--quick")["facts"]["shared_anchor"] == shared
    assert f"shared anchor  {shared}" in other.done("doctor", "--quick")
    header, *rows = saved.done("anchor", "show").splitlines()
    assert header.split() == ["thread", "here", "shared", "store", "standing"]
    assert [row.split()[-5:] for row in rows[1:]] == [
        ["2", "2", "2", "in", "step"],
        ["2", "2", "2", "in", "step"],
    ]
    assert saved.json("pause", "a", "--reason", "odd")["anchor"] == "shared"
    assert other.run("anchor", "leave").exit_code == UsageError.exit_status
    assert other.json("anchor", "leave", "--yes") == {"left": shared}
    assert other.json("doctor", "--quick")["facts"]["shared_anchor"] is None
    assert other.run("anchor", "leave", "--yes").exit_code == UsageError.exit_status


def test_new_store_shares_its_anchor_from_the_start(other: Machine, shared: str) -> None:
    """What the other machines have to do is printed, without a password."""
    printed = other.done("init", "--anchor", shared)

    assert f"sealpoint trust import PIN && sealpoint anchor join '{shared}'" in printed
    other.done("save", "a", stdin="1")
    assert {each["shared"] for each in other.json("anchor", "show")} == {0, 2}
