# SPDX-License-Identifier: Apache-2.0
"""Opening a store: what can be wrong, each said in one clear sentence, and nothing left behind."""

import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sealpoint
from sealpoint import api
from sealpoint.errors import (
    AnchorUnavailable,
    ConfigError,
    KeyFileUnsafe,
    KeyMissing,
    NameInvalid,
    NotTrusted,
    ReadOnly,
    RolledBack,
    SchemaUnknown,
    SealpointError,
    Unanchored,
    UrlInvalid,
    UsageError,
)
from tests.application import Message, make_registry
from tests.unit.api.place import Place


def _remove(pattern: str) -> Callable[[Place], object]:
    def damage(place: Place) -> None:
        for path in list(place.folder.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    return damage


def _overwrite(pattern: str, data: bytes) -> Callable[[Place], object]:
    def damage(place: Place) -> None:
        for path in list(place.folder.glob(pattern)):
            path.write_bytes(data)

    return damage


def _readable_for_all(pattern: str) -> Callable[[Place], object]:
    def damage(place: Place) -> None:
        for path in place.folder.glob(pattern):
            path.chmod(stat.S_IRUSR | stat.S_IWUSR | stat.S_IROTH)

    return damage


_KEY = "config/stores/*/keys/worker.key"
_WRONG: dict[str, tuple[Callable[[Place], object], dict[str, Any], type[SealpointError]]] = {
    "no store": (_remove("disk/agents.db*"), {}, RolledBack),
    "neither store nor anchor": (_remove("[ds][it]*"), {}, RolledBack),
    "no sqlite file": (_overwrite("disk/agents.db", b"x" * 5000), {}, SchemaUnknown),
    "an empty file": (_overwrite("disk/agents.db", b""), {}, SchemaUnknown),
    "no pin": (_remove("config/stores/*/pin.json"), {}, NotTrusted),
    "no configuration": (_remove("config"), {}, NotTrusted),
    "a damaged pin": (_overwrite("config/stores/*/pin.json", b"{}"), {}, NotTrusted),
    "no key": (_remove(_KEY), {}, KeyMissing),
    "a damaged key": (_overwrite(_KEY, b"{}"), {}, KeyFileUnsafe),
    "a key that others can read": (_readable_for_all(_KEY), {}, KeyFileUnsafe),
    "another identity": (lambda _: None, {"identity": "nobody"}, KeyMissing),
    "no identity": (lambda _: None, {"identity": "../worker"}, NameInvalid),
    "no namespace": (lambda _: None, {"namespace": ""}, NameInvalid),
    "no anchor": (_remove("state"), {}, Unanchored),
    "a damaged anchor": (
        _overwrite("state/anchors/*/anchor.slots", b"x" * 4096),
        {},
        AnchorUnavailable,
    ),
    "an empty anchor": (_overwrite("state/anchors/*/anchor.slots", b""), {}, AnchorUnavailable),
    "no directory": (lambda _: None, {"config_dir": ""}, ConfigError),
}


@pytest.mark.parametrize(("damage", "options", "error"), _WRONG.values(), ids=_WRONG)
@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_wrong_is_said_in_one_sentence(
    made: Place,
    damage: Callable[[Place], object],
    options: dict[str, Any],
    error: type[SealpointError],
    read_only: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """The class says what it is, the message what is wrong, the hint what to do."""
    damage(made)
    needs_key = error in {KeyMissing, KeyFileUnsafe} or "identity" in options
    if read_only and needs_key:
        with made.open(read_only=True, **options) as store:
            assert store.threads().complete
        return
    with pytest.raises(error) as caught:
        made.open(read_only=read_only, **options)

    message = caught.value.message
    assert "\n" not in message
    assert len(message) < 400
    assert caught.value.hint


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system does not tell")
def test_a_failed_open_leaves_nothing_open(made: Place) -> None:
    """Descriptors do not pile up, whatever failed."""
    shutil.rmtree(made.folder / "state")
    with pytest.raises(Unanchored):
        made.open()
    before = _descriptors()
    for _ in range(20):
        with pytest.raises(Unanchored):
            made.open()

    assert _descriptors() <= before + 2


@pytest.mark.parametrize("url", ["", "agents.db", "mysql://x", "sqlite://host/x", "memory:x"])
def test_other_urls_are_refused(place: Place, url: str) -> None:
    """A URL that is none of ours is not guessed at."""
    with pytest.raises(UrlInvalid):
        sealpoint.open_store(url, **place.directories)


def test_memory_needs_nothing() -> None:
    """A store in memory works at once, verifies, and is gone when it is closed."""
    events: list[sealpoint.Event] = []
    with sealpoint.open_store("memory:", on_event=events.append) as store:
        store.thread("t").save({"a": (1, 2)}, metadata={"n": 1})
        assert store.thread("t").load().state == {"a": (1, 2)}
        assert store.thread("t").load().ref.writer == "worker"
        assert store.verify().ok
        assert store.threads().names == ("t",)
    with sealpoint.open_store("memory:") as store:
        assert store.threads().names == ()

    assert [event.code for event in events][:2] == ["session-opened", "saved"]


@pytest.mark.parametrize("identity", ["operator", "someone"])
def test_memory_takes_an_identity_and_a_namespace(identity: str) -> None:
    """Whoever is named writes there."""
    with sealpoint.open_store("memory:", identity=identity, namespace="billing") as store:
        assert store.thread("t").save(1).writer == identity
        assert store.namespace == "billing"


@pytest.mark.parametrize("options", [{"read_only": True}, {"trust": "pin.json"}])
def test_memory_takes_no_options_that_mean_nothing(options: dict[str, Any]) -> None:
    """What would be ignored is refused."""
    with pytest.raises(UsageError, match="memory: trust= and read_only= do not apply"):
        sealpoint.open_store("memory:", **options)


def test_a_registry_decides_which_types_are_saved(made: Place) -> None:
    """The registry given on opening is the one that encodes and decodes."""
    state = {"message": Message(text="hello")}
    with made.open(registry=make_registry()) as store:
        store.thread("t").save(state)
        assert store.thread("t").load().state == state
    with made.open() as store, pytest.raises(SealpointError) as caught:
        store.thread("t").load()

    assert caught.value.code == "unknown-type"


def test_read_only_changes_no_file(made: Place) -> None:
    """Reading, listing and verifying leave every byte of store, keys and anchor as it was."""
    with made.open() as store:
        store.thread("t").save({"n": 1})
    before = made.everything()
    with made.open(read_only=True) as store:
        assert store.thread("t").load().state == {"n": 1}
        assert store.threads().complete
        assert store.verify().ok
        assert [ref.seq for ref in store.thread("t").history()] == [2]
        with pytest.raises(ReadOnly):
            store.thread("t").save(2)
    after = {name: data for name, data in made.everything().items() if "-shm" not in name}

    assert {name: data for name, data in after.items() if data} == {
        name: data for name, data in before.items() if data
    }


def test_edited_rows_are_noticed(made: Place) -> None:
    """Whoever edits the file with any tool is found out by the next read."""
    with made.open() as store:
        for number in range(3):
            store.thread("t").save({"n": number})
    with made.rows() as rows:
        rows.execute("UPDATE entries SET body = replace(body, 'root', 'rooT') WHERE seq = 4")
    with made.open() as store:
        with pytest.raises(SealpointError) as caught:
            store.thread("t").load()
        assert caught.value.code == "edited"
        assert [finding.code for finding in store.verify().findings] == ["edited"]


def test_the_whole_of_the_face_is_exported() -> None:
    """Every name of the package is real and documented."""
    for module in (sealpoint, api):
        for name in module.__all__:
            assert getattr(module, name).__doc__
