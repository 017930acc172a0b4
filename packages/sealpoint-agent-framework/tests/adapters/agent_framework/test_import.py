# SPDX-License-Identifier: Apache-2.0
"""Files of the framework's own storage, imported into a sealed store."""

import asyncio
import collections
import datetime as dt
import decimal
import fractions
import ipaddress
import json
import os
import pathlib
import typing
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    AgentExecutorRequest,
    AgentExecutorResponse,
    AgentResponse,
    AgentSession,
    Content,
    FileCheckpointStorage,
    Message,
    SubWorkflowRequestMessage,
    WorkflowEvent,
    WorkflowMessage,
)

import sealpoint
from sealpoint.api import Store
from sealpoint.codec import Registry
from sealpoint.errors import ReadOnly, ResumeRefused, UsageError
from sealpoint_agent_framework import (
    Fate,
    ImportReport,
    SealedCheckpointStorage,
    guard,
    import_checkpoints,
)
from tests.adapters.agent_framework import stock_files as files
from tests.adapters.agent_framework.payments import SHAPES, Payment, Payments
from tests.adapters.agent_framework.programs import (
    PROGRAMS,
    Bill,
    Colour,
    Decision,
    Verdict,
    answer_to,
)
from tests.adapters.agent_framework.stores import BACKENDS, opened
from tests.unit.adapters.agent_framework.samples import same_parts


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store on each backend, which knows the application's types."""
    with opened(request.param, tmp_path / "home") as made:
        files.allow_all(made.registry)
        yield made


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Store]:
    """A store where the backend does not matter."""
    with opened("sqlite", tmp_path / "home") as made:
        files.allow_all(made.registry)
        yield made


def _told(report: ImportReport) -> dict[str, tuple[str, str | None]]:
    return {each.file: (str(each.fate), each.why) for each in report.files}


def _fates(report: ImportReport) -> set[Fate]:
    return {each.fate for each in report.files}


def _same(directory: Path, store: Store, report: ImportReport) -> None:
    """What was imported is what the framework itself loads."""

    async def compare() -> None:
        theirs, ours = files.stock(directory), SealedCheckpointStorage(store)
        for each in report.files:
            assert each.checkpoint is not None
            found = await ours.load(each.checkpoint)
            assert _text(found) == _text(await theirs.load(each.checkpoint))

    asyncio.run(compare())


def _text(value: Any) -> str:
    """A value with all that is in it, as text."""
    if isinstance(value, dict):
        return f"{type(value)}{[(key, _text(each)) for key, each in value.items()]}"
    if isinstance(value, list | tuple | collections.deque):
        return f"{type(value)}{[_text(each) for each in value]}"
    attributes = getattr(value, "__dict__", None)
    if type(value).__module__.startswith("agent_framework") and attributes:
        return f"{type(value)}{_text(dict(sorted(attributes.items())))}"
    slots = getattr(type(value), "__slots__", ())
    if type(value).__module__.startswith("agent_framework") and slots:
        return f"{type(value)}{_text({name: getattr(value, name) for name in slots})}"
    return f"{type(value)}{value!r}"


# ---------------------------------------------------------------------- what arrives


@pytest.mark.parametrize("shape", SHAPES)
def test_a_run_that_waits_for_an_approval_goes_on_after_it_was_imported(
    shape: str, store: Store, tmp_path: Path
) -> None:
    """Through guard, with the reason that a copy needs, and only with one."""
    old = tmp_path / "old"
    waits = files.paused_run(old, shape)

    report = import_checkpoints(store, old)

    assert _fates(report) == {Fate.IMPORTED}
    assert len({each.thread for each in report.files}) == 1
    _same(old, store, report)

    async def go_on() -> None:
        payments = Payments(shape)
        storage = SealedCheckpointStorage(store)
        found = await storage.get_latest(workflow_name="payments")
        assert found is not None
        assert found.checkpoint_id == waits
        (request,) = found.pending_request_info_events
        guarded = guard(payments.build(), storage, actor="clerk")
        answer = {"checkpoint_id": waits, "responses": {request: True}}
        with pytest.raises(ResumeRefused, match="imported from a file"):
            await guarded.run(**answer)
        assert payments.did == []
        result = await guarded.run(**answer, deliberate="looked at it when it was moved")
        assert result.get_outputs() == ["paid 42 to bob: True"]

    asyncio.run(go_on())


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore::FutureWarning")  # the framework calls some experimental
def test_every_kind_of_workflow_arrives_as_the_framework_loads_it(
    name: str, tmp_path: Path
) -> None:
    """With the types that the workflow declares: all checkpoints of a run, to its end."""
    old, (make, message) = tmp_path / "old", PROGRAMS[name]
    keys = [files.key_of(each) for each in (Bill, Colour, Decision, Verdict)]
    theirs = FileCheckpointStorage(old, allowed_checkpoint_types=keys)

    async def run() -> None:
        made = make()
        result = await made.run(message, checkpoint_storage=theirs)
        while asked := result.get_request_info_events():
            answers = {each.request_id: answer_to(each.data) for each in asked}
            result = await made.run(responses=answers, checkpoint_storage=theirs)

    asyncio.run(run())
    store = opened("memory", tmp_path)
    store.registry.allow(Decision, name="tests.decision")

    report = import_checkpoints(store, old, workflows=[make()])

    assert _fates(report) == {Fate.IMPORTED}

    async def compare() -> None:
        ours = SealedCheckpointStorage(store)
        for each in report.files:
            id_ = str(each.checkpoint)
            assert same_parts(await ours.load(id_), await theirs.load(id_))

    asyncio.run(compare())


_VALUES: dict[str, Any] = {
    "scalars": (None, True, 0, -1, 255, 1 << 40, -(1 << 70), 1 << 3000, 1.5, "ü", b"x", 2j),
    "long": ("x" * 70_000, b"y" * 70_000, list(range(3000)), "z" * 300, {"a": "é" * 5}),
    "sets": ({1, "a", (2, 3)}, frozenset({4}), {frozenset({1})}, set()),
    "keys": ({1: "a", "1": "b"}, {(1, 2): {None: 3}}, {uuid.UUID(int=7): 1}),
    "times": (
        dt.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC),
        dt.datetime(2026, 10, 25, 2, 30, fold=1),  # noqa: DTZ001
        dt.datetime.now(dt.timezone(dt.timedelta(hours=2), "x")),
        dt.date(1, 1, 1),
        dt.time(23, 59, 59, 999_999, fold=1),
        dt.timedelta(days=-3, microseconds=7),
        dt.UTC,
    ),
    "numbers": (decimal.Decimal("1.50"), decimal.Decimal("NaN"), fractions.Fraction(-1, 3)),
    "collections": (
        collections.deque([1, 2], 5),
        collections.deque([3]),
        collections.OrderedDict(b=1, a=2),
        collections.defaultdict(list, a=[1]),
        range(1, 9, 2),
        slice(1, None, 2),
    ),
    "places": (
        pathlib.PurePosixPath("/a/b"),
        pathlib.PureWindowsPath("c:\\x"),
        Path("some/where"),
        ipaddress.ip_address("10.0.0.1"),
        ipaddress.ip_address("::1"),
        ipaddress.ip_network("10.0.0.0/8"),
        ipaddress.ip_interface("10.1.2.3/8"),
        uuid.uuid1(),
    ),
    "enums": (
        files.Colour.RED,
        files.Colour.PAIR,
        files.Level.LOW,
        files.Rights.READ,
        files.Rights.READ | files.Rights.WRITE,
    ),
    "objects": (
        Payment(1, "a"),
        files.Point(1, 2),
        files.Frozen(1, ["x"]),
        files.Slotted(1),
        files.Plain(files.Slotted(2, "c"), files.Colour.PAIR, {"k": (1,)}),
        files.Attrs(1),
        files.AttrsDict(2),
        files.Struct(4, "s"),
        files.Model(name="n"),
        files.Model.model_validate({"name": "n", "size": 3, "extra": [1]}),
    ),
    "framework": (
        Message("user", ["hello"], author_name="ann", additional_properties={"a": 1}),
        Content.from_function_call("c", "pay", arguments={"amount": 1}),
        AgentSession(session_id="s"),
        AgentExecutorRequest([Message("user", ["x"])], should_respond=False),
        AgentExecutorResponse("e", AgentResponse(messages=[Message("assistant", ["y"])]), []),
        SubWorkflowRequestMessage(WorkflowEvent.request_info("r", "e", Payment(1, "b"), bool), "e"),
    ),
}


@pytest.mark.parametrize("name", _VALUES)
def test_values_are_those_that_the_framework_loads(name: str, one: Store, tmp_path: Path) -> None:
    """Of every type that Python, the framework or the application brings."""
    old, value = tmp_path / "old", _VALUES[name]
    shared = list(value)
    files.saved(
        old,
        state={"value": value, "twice": (shared, shared)},
        messages={"a": [WorkflowMessage(data=value, source_id="a")]},
        metadata={"plain": {"deep": [1, 2.5, None, "x", float("inf")]}},
    )

    report = import_checkpoints(one, old)

    assert _told(report).popitem()[1] == ("imported", None)
    _same(old, one, report)


_REFERENCES: tuple[Any, ...] = (
    *(bool, str, type(None), Payment, files.Colour, Message, list[str], dict[str, list[Payment]]),
    *(str | None, typing.Optional[Payment], typing.Union[int, str], typing.List[int]),  # noqa: UP006, UP007, UP045
    *(typing.Literal["yes", "no"], typing.Literal["one"], typing.Any, tuple[int, ...]),
    *(collections.abc.Sequence[str], files.Box[int]),
)


def test_types_that_requests_refer_to_are_found_in_tables(one: Store, tmp_path: Path) -> None:
    """Built-in, generic and made of others, of the framework and of the application."""
    old = tmp_path / "old"
    events = {
        f"r{place}": WorkflowEvent.request_info(f"r{place}", "clerk", Payment(1, "a"), reference)
        for place, reference in enumerate(_REFERENCES)
    }
    asked = files.saved_unchecked(old, pending_request_info_events=events)

    report = import_checkpoints(one, old)

    assert _fates(report) == {Fate.IMPORTED}

    async def compare() -> None:
        found = await SealedCheckpointStorage(one).load(asked.checkpoint_id)
        for (id_, event), reference in zip(events.items(), _REFERENCES, strict=True):
            loaded = found.pending_request_info_events[id_]
            assert loaded.response_type == reference
            assert loaded.request_type is Payment
            assert loaded.data == event.data

    asyncio.run(compare())


def test_an_object_that_was_made_before_its_class_got_a_field_has_the_default(
    one: Store, tmp_path: Path
) -> None:
    """As with stored objects: what the class says, and nothing else."""
    old = tmp_path / "old"
    made = b"\x80\x05\x8c" + _short(files.Slotted.__module__) + b"\x8c\x07Slotted\x93)\x81"
    data = made + b"N}\x8c\x01aK\x05s\x86b."
    name = files.forge(old, files.pickled(data, files.key_of(files.Slotted)))

    report = import_checkpoints(one, old)

    assert _fates(report) == {Fate.IMPORTED}

    async def look() -> None:
        found = await SealedCheckpointStorage(one).load(name.removesuffix(".json"))
        assert found.state["forged"] == files.Slotted(5, "b")

    asyncio.run(look())


def _short(text: str) -> bytes:
    return bytes((len(text),)) + text.encode()


# ---------------------------------------------------------------------- a thousand files


def test_of_a_thousand_files_the_malicious_ones_are_named_and_the_rest_arrives(
    tmp_path: Path,
) -> None:
    """Each file's fate is told, no payload ran, and doing it again imports nothing."""
    one = opened("memory", tmp_path)
    files.allow_all(one.registry)
    old, marker = tmp_path / "old", tmp_path / "marker"
    files.paused_run(old)
    files.replicate(old, 494)
    honest = {path.name for path in old.iterdir()}
    files.forge(old, _Evil(marker), name="evil")
    files.forge(old, b"\x80\x05cos\nsystem\n.", name="named")
    files.forge(old, b"\x80\x05N", name="cut")
    files.forge(old, {"fine": True}, name="other", checkpoint_id="another")
    (old / "broken.json").write_text("{")
    (old / "linked.json").symlink_to(tmp_path / "elsewhere.json")
    (old / ".maf-ckpt-1.tmp").write_text("left over")
    (old / "deeper").mkdir()
    (old / "many.json").write_bytes(b"x" * 100)
    (old / "notes.txt").write_text("mine")

    report = import_checkpoints(one, old)

    assert len(honest) == 990
    assert len(report.files) == 1000
    fates = {each.file: each for each in report.files}
    assert {name for name, each in fates.items() if each.fate is Fate.IMPORTED} == honest
    refused = {name for name, each in fates.items() if each.fate is Fate.REFUSED}
    assert refused == {
        f"{name}.json" for name in ("evil", "named", "cut", "other", "broken", "linked", "many")
    }
    assert "posix.system" in str(fates["evil.json"].why)
    assert all(fates[name].why and fates[name].hint and fates[name].code for name in refused)
    assert not marker.exists()
    assert len(one.threads().names) == 495
    again = import_checkpoints(one, old)
    assert again.counts[Fate.IMPORTED] == 0
    assert again.counts[Fate.PRESENT] == 990


class _Evil:
    """Leaves a mark when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self._marker}",)


# ---------------------------------------------------------------------- lineages


def test_a_lineage_is_a_thread_in_its_order_and_the_newest_is_the_last(
    one: Store, tmp_path: Path
) -> None:
    """Whatever the files are called; a branch stays in the thread of what it came from."""
    old = tmp_path / "old"

    def save(name: str, previous: str | None, minute: int) -> None:
        files.saved(
            old,
            checkpoint_id=name,
            previous_checkpoint_id=previous,
            timestamp=f"2026-01-01T00:{minute:02}:00+00:00",
        )

    save("z", None, 0)
    save("a", "z", 1)
    save("branch", "z", 3)
    save("b", "a", 2)
    save("alone", "gone", 5)

    report = import_checkpoints(one, old)

    assert _fates(report) == {Fate.IMPORTED}
    threads = {each.checkpoint: each.thread for each in report.files}
    assert {threads[name] for name in ("z", "a", "b", "branch")} == {"orders/z"}
    assert threads["alone"] == "orders/alone"
    history = [ref.id for ref in one.thread("orders/z").history()]
    assert history == ["branch", "b", "a", "z"]


def test_what_goes_on_from_a_refused_checkpoint_says_so_and_begins_a_thread(
    one: Store, tmp_path: Path
) -> None:
    """And a lineage that leads back to itself is refused as a whole."""
    old = tmp_path / "old"
    files.forge(old, b"\x80\x05cos\nsystem\n.", name="bad")
    files.saved(old, checkpoint_id="next", previous_checkpoint_id="bad")
    files.forge(old, {}, name="egg", previous_checkpoint_id="hen")
    files.forge(old, {}, name="hen", previous_checkpoint_id="egg")

    report = import_checkpoints(one, old)

    told = _told(report)
    assert told["next.json"] == (
        "imported",
        "checkpoint 'bad' before it was refused: it begins a thread",
    )
    assert told["egg.json"] == told["hen.json"] == ("refused", "its lineage leads back to itself")
    assert one.threads().names == ("orders/next",)


def test_what_is_sealed_stays_although_a_file_of_its_id_says_something_else(
    one: Store, tmp_path: Path
) -> None:
    """A file that was edited after its import is named; nothing is imported over what is there."""
    old = tmp_path / "old"
    files.forge(old, {"amount": 42}, name="a")
    import_checkpoints(one, old)
    files.forge(old, {"amount": 99999}, name="a")

    report = import_checkpoints(one, old)

    ((fate, why),) = _told(report).values()
    assert fate == "refused"
    assert "another checkpoint of this id" in str(why)
    found = asyncio.run(SealedCheckpointStorage(one).load("a"))
    assert found.state == {"forged": {"amount": 42}}


def test_what_was_deleted_since_its_import_does_not_come_back(one: Store, tmp_path: Path) -> None:
    """Importing again is no way around a deletion."""
    old = tmp_path / "old"
    files.forge(old, {}, name="a")
    files.forge(old, {}, name="b", previous_checkpoint_id="a", timestamp="2026-01-02T00:00:00Z")
    import_checkpoints(one, old)
    storage = SealedCheckpointStorage(one)
    asyncio.run(storage.delete("b"))

    report = import_checkpoints(one, old)

    assert _told(report)["b.json"][0] == "left out"
    assert asyncio.run(storage.list_checkpoint_ids(workflow_name="orders")) == ["a"]
    for again in ("a", "b"):
        asyncio.run(storage.delete(again))
    assert {each.fate for each in import_checkpoints(one, old).files} == {Fate.LEFT_OUT}


def test_more_of_a_lineage_is_added_to_its_thread(tmp_path: Path) -> None:
    """What the old storage saved after a first import comes with the next, in another process."""
    old = tmp_path / "old"
    files.forge(old, {}, name="a")
    with opened("sqlite", tmp_path / "home") as store:
        import_checkpoints(store, old)
    files.forge(old, {}, name="b", previous_checkpoint_id="a", timestamp="2026-01-02T00:00:00Z")

    with opened("sqlite", tmp_path / "home") as store:
        report = import_checkpoints(store, old)

    assert {each.fate for each in report.files} == {Fate.IMPORTED, Fate.PRESENT}
    assert {each.thread for each in report.files} == {"orders/a"}


# ---------------------------------------------------------------------- what is told and looked at


def test_a_dry_run_says_the_same_and_writes_nothing(one: Store, tmp_path: Path) -> None:
    """What would be imported, and what would be refused."""
    old = tmp_path / "old"
    files.paused_run(old)
    files.forge(old, b"\x80\x05cos\nsystem\n.", name="bad")

    dry = import_checkpoints(one, old, dry_run=True)

    assert one.threads().names == ()
    assert dry.files == import_checkpoints(one, old).files


def test_a_store_that_is_open_for_reading_only_refuses_the_import_itself(tmp_path: Path) -> None:
    """The error is of the store; no file is reported as refused."""
    files.paused_run(tmp_path / "old")
    (tmp_path / "disk").mkdir()
    url = f"sqlite:///{tmp_path / 'disk' / 'store.db'}"
    home: dict[str, Any] = {"config_dir": tmp_path / "config", "state_dir": tmp_path / "state"}
    registry = Registry()
    files.allow_all(registry)
    sealpoint.init(url, **home)

    with (
        sealpoint.open_store(url, read_only=True, registry=registry, **home) as store,
        pytest.raises(ReadOnly),
    ):
        import_checkpoints(store, tmp_path / "old")


def test_the_ledger_says_what_was_imported_from_which_bytes(one: Store, tmp_path: Path) -> None:
    """The metadata, the release that people are shown, and the trail."""
    old = tmp_path / "old"
    files.forge(old, {}, name="a", timestamp="2020-01-01T00:00:00Z")

    (told,) = import_checkpoints(one, old).files

    thread = one.thread("orders/a")
    release = thread.release()
    assert release.origin is not None
    assert release.origin.is_file
    assert release.origin.entry == told.sha256
    assert release.time.year == 2020
    assert release.copied
    (ref,) = thread.history()
    assert ref.metadata["imported"] == told.sha256
    assert any("imported from a file" in str(event) for event in one.audit())


def test_a_directory_that_others_can_write_is_told(one: Store, tmp_path: Path) -> None:
    """Nobody can tell what they did; a link in its place, or a file, is refused."""
    old = tmp_path / "old"
    files.forge(old, {}, name="a")
    old.chmod(0o777)

    report = import_checkpoints(one, old)

    assert "found 0777" in report.notes[0]
    (tmp_path / "link").symlink_to(old)
    for wrong in (tmp_path / "link", tmp_path / "none", old / "a.json"):
        with pytest.raises(UsageError):
            import_checkpoints(one, wrong)


def test_types_of_a_program_are_found_by_the_module_it_was(one: Store, tmp_path: Path) -> None:
    """Who ran `python agent.py` has pickled types of `__main__`."""
    old = tmp_path / "old"
    made = b"\x80\x05\x8c\x08__main__\x8c\x07Payment\x93)\x81"
    data = made + b"}(\x8c\x06amountK\x2a\x8c\x02to\x8c\x01aub."
    files.forge(old, files.pickled(data, "__main__:Payment"), name="a")

    (refused,) = import_checkpoints(one, old).files
    (found,) = import_checkpoints(one, old, main=Payment.__module__).files

    assert "--main MODULE" in str(refused.hint)
    assert found.fate is Fate.IMPORTED
    assert json.loads((old / "a.json").read_text())["state"]["forged"]["__type__"].startswith("__")
