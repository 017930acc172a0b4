# SPDX-License-Identifier: Apache-2.0
"""Files that somebody prepared for whoever imports them: nothing in them is executed."""

import asyncio
import base64
import json
import os
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any, Self

import pytest
from agent_framework import FileCheckpointStorage, WorkflowEvent

from sealpoint.api import Store
from sealpoint.errors import NeedsApproval
from sealpoint.limits import IMPORT_FILE_BYTES_MAX
from sealpoint_agent_framework import (
    Fate,
    FileFate,
    SealedCheckpointStorage,
    guard,
    import_checkpoints,
)
from tests.adapters.agent_framework import stock_files as files
from tests.adapters.agent_framework.payments import Payment, Payments
from tests.adapters.agent_framework.stores import opened

_SECONDS_MAX = 30
RAN: list[str] = []


@dataclass
class Reviving:
    """Has a `__setstate__` of its own."""

    a: int

    def __setstate__(self, state: object) -> None:
        RAN.append(f"__setstate__ {state}")


@dataclass
class Hashing:
    """Has a `__hash__` and an `__eq__` of its own."""

    a: int

    def __hash__(self) -> int:
        RAN.append("__hash__")
        return 1

    def __eq__(self, other: object) -> bool:
        RAN.append("__eq__")
        return True


@dataclass
class Loud:
    """Runs something whenever one is made by its class."""

    a: int

    def __new__(cls, *_: object) -> Self:  # noqa: D102
        RAN.append("__new__")
        return super().__new__(cls)

    def __init__(self, a: int) -> None:
        RAN.append("__init__")
        self.a = a

    def __setattr__(self, name: str, value: object) -> None:
        RAN.append("__setattr__")
        super().__setattr__(name, value)

    def __post_init__(self) -> None:
        RAN.append("__post_init__")


class Paired:
    """Is stored by functions of the application."""


def decode_paired(form: object) -> Paired:
    """Would be given what it never wrote."""
    RAN.append(f"decode {form}")
    return Paired()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store whose registry allows the classes above."""
    RAN.clear()
    with opened("memory", tmp_path) as made:
        files.allow_all(made.registry)
        made.registry.allow(Reviving, name="tests.reviving")
        made.registry.allow(Hashing, name="tests.hashing")
        made.registry.allow(Loud, name="tests.loud")
        made.registry.allow(Paired, name="tests.paired", encode=lambda _: 1, decode=decode_paired)
        yield made


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return b"X" + len(data).to_bytes(4, "little") + data


def _named(module: str, name: str) -> bytes:
    return _text(module) + _text(name) + b"\x93"


def _of(cls: type) -> bytes:
    return _named(cls.__module__, cls.__qualname__)


def _imported(store: Store, old: Path) -> FileFate:
    (fate,) = import_checkpoints(store, old).files
    assert RAN == []
    return fate


_MARK = "touch marker"

_PROGRAMS: dict[str, Callable[[], bytes]] = {
    "a call": lambda: _named("os", "system") + _text(_MARK) + b"\x85R",
    "a call by another module": lambda: _named("posix", "system") + _text(_MARK) + b"\x85R",
    "a dotted name": lambda: (
        _named("agent_framework", "_workflows.os.system") + _text(_MARK) + b"\x85R"
    ),
    "a dotted module": lambda: _named("datetime.sys.modules", "x") + b")R",
    "a name as a value": lambda: _named("os", "system"),
    "a class as a value": lambda: _of(Payment),
    "a class of the framework that is no data": lambda: (
        _named("agent_framework._workflows._checkpoint", "FileCheckpointStorage")
        + _text("made")
        + b"\x85R"
    ),
    "the framework's own class called": lambda: (
        _named("agent_framework._types", "Message") + _text("user") + b"\x85R"
    ),
    "getattr": lambda: (
        _named("builtins", "getattr")
        + _named("agent_framework._types", "Message")
        + _text("__init__")
        + b"\x86R"
    ),
    "getattr of a result": lambda: (
        _named("builtins", "getattr")
        + _named("builtins", "getattr")
        + _named("builtins", "str")
        + _text("join")
        + b"\x86R"
        + _text("__call__")
        + b"\x86R"
    ),
    "eval": lambda: _named("builtins", "eval") + _text("1") + b"\x85R",
    "a call of a result": lambda: _named("builtins", "range") + b"K\x01K\x01K\x01\x87R)R",
    "a state on a call": lambda: _named("decimal", "Decimal") + _text("1") + b"\x85R}b",
    "a state of a class": lambda: _of(Payment) + b"}b",
    "items in an object": lambda: _of(Payment) + b")\x81K\x01K\x02s",
    "a named instance": lambda: b"(ios\nsystem\n",
    "an object on the stack": lambda: b"(" + _named("os", "system") + b"o",
    "a line name": lambda: b"cos\nsystem\n)R",
    "an extension": lambda: b"\x82\x01",
    "a persistent id": lambda: b"Phello\n",
    "a persistent id on the stack": lambda: b"K\x01Q",
    "a buffer from outside": lambda: b"\x97",
    "a constructor with names": lambda: _of(Payment) + b")}\x92",
    "arguments for a bare object": lambda: _of(Payment) + b"K\x01K\x02\x86\x81",
    "a memo of what is not there": lambda: b"h\x07",
    "a memo put twice": lambda: b"N\x94\x94",
    "a memo put by a number": lambda: b"Nq\x00",
    "a list in itself": lambda: b"]\x94h\x00a",
    "an object in itself": lambda: (
        _of(Payment) + b")\x81\x94}(" + _text("amount") + b"h\x00" + _text("to") + b"K\x01ub"
    ),
    "a container that changes after its use": lambda: b"]\x94h\x00\x85h\x00K\x01a\x86",
    "two values": lambda: b"NN",
    "no end of a mark": lambda: b"(N",
    "another protocol": lambda: b"\x80\x02N",
    "a pickle in a pickle": lambda: _named("pickle", "loads") + b"C\x02N.\x85R",
    "a class with a __setstate__": lambda: _of(Reviving) + b")\x81}" + _text("a") + b"K\x01sb",
    "a class that is called": lambda: _of(Loud) + b"K\x01\x85R",
    "a class with functions of its own": lambda: _of(Paired) + b")\x81",
    "an attribute that is no field": lambda: (
        _of(Payment)
        + b")\x81}("
        + _text("amount")
        + b"K\x01"
        + _text("to")
        + b"K\x01"
        + _text("__class__")
        + b"K\x01ub"
    ),
    "an attribute that is no text": lambda: _of(Payment) + b")\x81}K\x01K\x02sb",
    "a missing field": lambda: _of(Payment) + b")\x81}b",
    "a key of the application": lambda: b"}" + _of(Hashing) + b")\x81}" + _text("a") + b"K\x01sbNs",
    "a member of the application": lambda: (
        b"\x8f(" + _of(Hashing) + b")\x81}" + _text("a") + b"K\x01sb\x90"
    ),
    "a list as a key": lambda: b"}]Ns",
    "a key twice": lambda: b"}(K\x01NK\x01Nu",
    "one value twice in a set": lambda: b"\x8f(K\x01K\x01\x90",
    "a member that an enum has not": lambda: _of(files.Colour) + _text("blue") + b"\x85R",
    "a flag that is none": lambda: _of(files.Rights) + b"K\x08\x85R",
    "an enum by an attribute": lambda: (
        _named("builtins", "getattr") + _of(files.Colour) + _text("mro") + b"\x86R"
    ),
    "a day that is none": lambda: (
        _named("datetime", "datetime") + b"C\x0a\x07\xea\x01\x63\x00\x00\x00\x00\x00\x00\x85R"
    ),
    "a time that is short": lambda: _named("datetime", "time") + b"C\x01\x00\x85R",
    "a number that prints otherwise": lambda: (
        _named("decimal", "Decimal") + _text("1_0") + b"\x85R"
    ),
    "a range without a step": lambda: _named("builtins", "range") + b"K\x00K\x01K\x00\x87R",
    "a fraction by zero": lambda: _named("fractions", "Fraction") + b"K\x01K\x00\x86R",
    "a default that is code": lambda: (
        _named("collections", "defaultdict") + _named("os", "getcwd") + b"\x85R"
    ),
    "a deque of too many": lambda: _named("collections", "deque") + b")K\x01\x86R(K\x01K\x02e",
    "an object of another class beside it": lambda: (
        _of(files.Slotted) + b")\x81N}" + _text("a") + b"K\x01s\x86b"
    ),
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_a_prepared_pickle_is_refused_and_runs_nothing(
    name: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it names, calls, sets or refers to; the file is named and left out."""
    monkeypatch.chdir(tmp_path)
    old = tmp_path / "old"
    program = _PROGRAMS[name]()
    data = program if program.startswith(b"\x80") else b"\x80\x05" + program
    files.forge(old, files.pickled(data + b".", files.key_of(Payment)))

    fate = _imported(store, old)

    assert fate.fate is Fate.REFUSED, fate
    assert fate.why
    assert fate.hint
    assert list(tmp_path.iterdir()) == [old]
    assert store.threads().names == ()


def test_an_object_is_made_without_any_code_of_its_class(store: Store, tmp_path: Path) -> None:
    """No constructor, no `__setattr__`: its fields are set on a bare object."""
    old = tmp_path / "old"
    data = b"\x80\x05" + _of(Loud) + b")\x81}" + _text("a") + b"K\x05sb."
    name = files.forge(old, files.pickled(data, files.key_of(Loud)))

    assert _imported(store, old).fate is Fate.IMPORTED
    found = asyncio.run(SealedCheckpointStorage(store).load(name.removesuffix(".json")))
    assert RAN == []
    assert vars(found.state["forged"]) == {"a": 5}


def test_every_pickle_of_the_stock_gadgets_is_refused(store: Store, tmp_path: Path) -> None:
    """What the framework's default allowlist lets construct makes a directory there, none here."""
    old, made = tmp_path / "old", tmp_path / "made"
    module = FileCheckpointStorage.__module__
    call = _named(module, "FileCheckpointStorage") + _text(str(made)) + b"\x85R."
    files.forge(old, files.pickled(b"\x80\x05" + call, f"{module}:FileCheckpointStorage"), name="a")

    assert _imported(store, old).fate is Fate.REFUSED
    assert not made.exists()

    asyncio.run(FileCheckpointStorage(old).list_checkpoint_ids(workflow_name="orders"))

    assert made.exists()


# ---------------------------------------------------------------------- what costs too much


def _nested(count: int) -> bytes:
    return b"]" * count + b"a" * (count - 1)


def _doubling(steps: int) -> bytes:
    """Two of two of two: a few bytes for more values than anybody can walk."""
    return (
        b"("
        b")\x94"
        + b"".join(
            b"h" + bytes((place,)) + b"h" + bytes((place,)) + b"\x86\x94" for place in range(steps)
        )
        + b"t"
    )


def _shared_text() -> bytes:
    """One long text, named again and again."""
    text = _text("x" * 1_000_000) + b"\x94"
    return b"](" + text + b"h\x00" * 100_000 + b"e"


def _colliding() -> bytes:
    """Ints of one hash."""
    modulus = (1 << 61) - 1
    numbers = (number * modulus for number in range(1, 20_000))
    return (
        b"\x8f("
        + b"".join(
            b"\x8a" + bytes((len(data),)) + data
            for data in (
                (n).to_bytes(n.bit_length() // 8 + 1, "little", signed=True) for n in numbers
            )
        )
        + b"\x90"
    )


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(lambda: _nested(100_000), id="nesting"),
        pytest.param(lambda: _doubling(39), id="values that double"),
        pytest.param(_shared_text, id="one text many times"),
        pytest.param(_colliding, id="hashes that collide"),
        pytest.param(lambda: b"\x8c\xff" * 10, id="a length beyond the end"),
        pytest.param(lambda: b"\x95" + b"\xff" * 8 + b"N", id="a frame beyond the end"),
        pytest.param(lambda: b"\x8e" + b"\xff" * 8, id="bytes beyond the end"),
        pytest.param(lambda: b"(" * 100_000, id="marks"),
    ],
)
def test_a_file_that_costs_too_much_is_refused_in_time(
    program: Callable[[], bytes], store: Store, tmp_path: Path
) -> None:
    """Bombs of nesting, of sharing and of hashes are seen before anything is built from them."""
    old = tmp_path / "old"
    files.forge(old, files.pickled(b"\x80\x05" + program() + b".", "builtins:list"))
    begun = time.process_time()

    fate = _imported(store, old)

    assert fate.fate is Fate.REFUSED
    assert time.process_time() - begun < _SECONDS_MAX


def test_many_small_bombs_of_one_file_count_together(store: Store, tmp_path: Path) -> None:
    """Each of them would be let pass."""
    old = tmp_path / "old"
    bomb = files.pickled(b"\x80\x05" + _doubling(12) + b".", "builtins:tuple")
    files.forge(old, [bomb], name="one")
    files.forge(old, [bomb] * 600, name="many")

    told = {each.file: each.fate for each in import_checkpoints(store, old).files}

    assert told == {"one.json": Fate.IMPORTED, "many.json": Fate.REFUSED}


def test_a_file_is_not_read_beyond_its_bound(store: Store, tmp_path: Path) -> None:
    """A sparse file of a terabyte is refused at once, and JSON that nests too deeply."""
    old = tmp_path / "old"
    old.mkdir()
    with (old / "huge.json").open("wb") as file:
        file.truncate(IMPORT_FILE_BYTES_MAX * 1000)
    (old / "deep.json").write_text("[" * 200_000)

    report = import_checkpoints(store, old)

    assert {each.fate for each in report.files} == {Fate.REFUSED}


# ---------------------------------------------------------------------- the directory


def test_only_regular_files_of_the_directory_are_opened(store: Store, tmp_path: Path) -> None:
    """No link is followed, no pipe waited for."""
    old, secret = tmp_path / "old", tmp_path / "secret"
    name = files.forge(secret, {}, name="linked")
    old.mkdir()
    (old / name).symlink_to(secret / name)
    os.mkfifo(old / "pipe.json")
    (old / "directory.json").mkdir()

    report = import_checkpoints(store, old)

    assert {each.fate for each in report.files} == {Fate.REFUSED}
    assert store.threads().names == ()


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 2}', "[]", "null", '"x"', "\ufeff{}", "{", "", "{}", '{"checkpoint_id": 1}'],
)
def test_what_is_no_checkpoint_is_refused(text: str, store: Store, tmp_path: Path) -> None:
    """Also a document of which two readers could see different things."""
    old = tmp_path / "old"
    old.mkdir()
    (old / "a.json").write_text(text)

    assert _imported(store, old).fate is Fate.REFUSED


@pytest.mark.parametrize(
    "fields",
    [
        {"state": []},
        {"state": "x"},
        {"messages": {"a": "x"}},
        {"pending_request_info_events": {"r": {"amount": 1}}},
        {"iteration_count": "many"},
        {"previous_checkpoint_id": 7},
        {"timestamp": "yesterday"},
        {"more": 1},
        {"workflow_name": "a\u202eb"},
        {"state": {"x": {"__pickled__": "!!", "__type__": "builtins:str"}}},
        {"state": {"x": {"__pickled__": "Ti4=", "__type__": 1}}},
        {"state": {"x": {"__pickled__": "gAVOLg==", "__type__": "builtins:str"}}},
        {"state": {"x": {"__pickled__": "gAVOLh==", "__type__": "builtins:NoneType"}}},
        {"state": {"x": {"__pickled__": "gAVOLg==", "__type__": "builtins:NoneType", "y": 1}}},
    ],
)
def test_a_field_that_is_not_what_it_is_said_to_be_is_refused(
    fields: dict[str, Any], store: Store, tmp_path: Path
) -> None:
    """Also one that the framework itself would let through."""
    old = tmp_path / "old"
    files.forge(old, {}, **fields)

    assert _imported(store, old).fate is Fate.REFUSED


def _tuples(count: int) -> dict[str, Any]:
    data = b"\x80\x05)" + b"\x85" * count + b"."
    return {"state": {"x": files.pickled(data, "builtins:tuple")}}


def _asking(text: str) -> dict[str, Any]:
    event = WorkflowEvent.request_info("r", "clerk", text, bool)
    data = pickle.dumps(event, protocol=5)
    key = files.key_of(WorkflowEvent)
    return {"pending_request_info_events": {"r": files.pickled(data, key)}}


_AWKWARD: dict[str, dict[str, Any]] = {
    "a huge count": {"iteration_count": 10**4000},
    "half of a surrogate pair in a name": {"workflow_name": "\ud800"},
    "half of a surrogate pair in a version": {"version": "\ud800"},
    "half of a surrogate pair in a timestamp": {"timestamp": "2026-01-01T00:00:00\ud800"},
    "a time before all times": {"timestamp": "0001-01-01T00:00:00+14:00"},
    "a time after all times": {"timestamp": "9999-12-31T23:59:59-14:00"},
    "the first time": {"timestamp": "0001-01-01T00:00:00Z"},
    "a time of digits alone": {"timestamp": "20260101T000000,5"},
    "a name that is too long": {"workflow_name": "x" * 10_000},
    "a previous one that is too long": {"previous_checkpoint_id": "x" * 10_000},
    "a previous one that shows nothing": {"previous_checkpoint_id": ""},
    "a long question": _asking("x" * 3_000_000),
    "a question with half of a surrogate pair": _asking("\ud800"),
    "a deep question": _asking("x") | _tuples(30),
    "a long hash": {"graph_signature_hash": "x" * 3_000_000},
    "deep tuples": _tuples(100),
    "deeper lists": {"state": {"x": json.loads("[" * 400 + "]" * 400)}},
    "not a number": {"state": {"x": float("nan"), "y": 1e308 * 10}},
    "a zone that prints long": {
        "state": {
            "x": files.pickled(
                pickle.dumps(timezone(timedelta(hours=1), "z" * 5000), protocol=5),
                files.key_of(timezone),
            )
        }
    },
}


@pytest.mark.parametrize("name", _AWKWARD)
def test_no_file_ends_the_import_of_the_others(name: str, store: Store, tmp_path: Path) -> None:
    """Whatever it says where the ledger itself has to take it; its neighbours arrive."""
    old = tmp_path / "old"
    files.forge(old, {}, name="first")
    files.forge(old, {}, name="awkward", **{"previous_checkpoint_id": "first"} | _AWKWARD[name])
    files.forge(old, {}, name="last", previous_checkpoint_id="awkward")

    told = {each.file: each for each in import_checkpoints(store, old).files}

    assert told["first.json"].fate is told["last.json"].fate is Fate.IMPORTED
    awkward = told["awkward.json"]
    assert awkward.fate in (Fate.IMPORTED, Fate.REFUSED)
    if awkward.fate is Fate.REFUSED:
        assert "was refused" in str(told["last.json"].why)
    assert store.verify().ok
    assert {each.fate for each in import_checkpoints(store, old).files} <= {
        Fate.PRESENT,
        Fate.REFUSED,
    }


def test_a_name_that_hides_is_shown_as_it_is_spelled(store: Store, tmp_path: Path) -> None:
    """Neither a file nor what it names can change the lines around it."""
    old = tmp_path / "old"
    data = b"\x80\x05" + _named("a\x1b[2J\nb", "\u202ex") + b")R."
    files.forge(old, files.pickled(data), name="a\nb")

    fate = _imported(store, old)

    assert fate.file == "a\\u{a}b.json"
    assert fate.why is not None
    assert fate.why.isprintable()
    assert fate.why.isascii()


# ---------------------------------------------------------------------- what was changed before


def test_an_amount_that_was_edited_on_disk_is_shown_to_whoever_approves(tmp_path: Path) -> None:
    """An import cannot tell; people are asked before it goes on, about what would be paid."""
    old = tmp_path / "old"
    waits = files.paused_run(old)
    path = old / f"{waits}.json"
    document = json.loads(path.read_text())
    ((request, event),) = document["pending_request_info_events"].items()
    data = base64.b64decode(event["__pickled__"])
    edited = data.replace(b"amount\x94K\x2a", b"amount\x94K\x63")
    assert edited != data
    event["__pickled__"] = base64.b64encode(edited).decode()
    path.write_text(json.dumps(document))

    with opened("sqlite", tmp_path / "home", policy="strict") as store:
        files.allow_all(store.registry)
        import_checkpoints(store, old)
        storage, payments = SealedCheckpointStorage(store), Payments()
        guarded = guard(payments.build(), storage, actor="clerk")

        async def go_on() -> NeedsApproval:
            with pytest.raises(NeedsApproval) as refused:
                await guarded.run(checkpoint_id=waits, responses={request: True})
            return refused.value

        asked = asyncio.run(go_on())
        assert payments.did == []
        assert "imported from a file" in str(asked)
        (question,) = store.thread(asyncio.run(storage.thread_of(waits))).release().question
        assert "99" in json.dumps(question)
