# SPDX-License-Identifier: Apache-2.0
"""Requests and answers that are carried by somebody who edits, swaps or keeps them.

Whoever carries an export can show an approver something else only by making another thing out of
it, and whoever carries an answer can bring it only where it belongs.
"""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sealpoint
from sealpoint import api
from sealpoint.errors import (
    BundleInvalid,
    Forged,
    NotTrusted,
    RequestClosed,
    SealpointError,
    UnknownRequest,
)
from sealpoint.signing import Verdict
from tests.cli.machine import Machine
from tests.cli.team import READ, ask, make_team


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A store of a team with a thread that waits for an answer."""
    made = make_team(tmp_path_factory.mktemp("team"))
    with made.open() as store:
        store.thread("t").save({"n": 1}, world=READ, question={"pay": 17})
    return made


@pytest.fixture(scope="module")
def request_id(team: Machine) -> str:
    """What is asked."""
    return ask(team, answer={"pay": True, "to": "acme"})


@pytest.fixture(scope="module")
def exported(team: Machine, request_id: str) -> bytes:
    """The request, as it is carried."""
    with team.open() as store:
        return api.export_request(store, request_id)


def _places(machine: Machine) -> dict[str, Any]:
    return {"config_dir": machine.home / "config", "state_dir": machine.home / "state"}


def _open(machine: Machine, data: bytes, identity: str = "ann") -> api.ExportedRequest:
    return api.open_request(data, machine.url, identity=identity, **_places(machine))


def _shown(machine: Machine, data: bytes) -> Any:
    """Everything that an approver is shown, or the error that they get."""
    try:
        with _open(machine, data) as opened:
            found = opened.examine()
            if found.fault is not None:
                return found.fault
            return found.request, found.shown, found.diff
    except SealpointError as error:
        return error


def _bytes_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a document has bytes: headers, signatures, bodies, blobs."""
    if isinstance(value, list):
        for place, each in enumerate(value):
            yield from _bytes_of(each, (*path, place))
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _bytes_of(each, (*path, key))
    elif isinstance(value, str) and len(path) > 1:
        yield path


def _edited(data: bytes, path: tuple[Any, ...], change: Callable[[bytes], bytes]) -> bytes:
    document = json.loads(data)
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    raw = base64.b64decode(holder[path[-1]])
    holder[path[-1]] = base64.b64encode(change(raw)).decode()
    return json.dumps(document).encode()


def _flipped(place: float) -> Callable[[bytes], bytes]:
    def flip(raw: bytes) -> bytes:
        at = min(int(len(raw) * place), len(raw) - 1)
        return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]

    return flip


def test_an_export_shows_what_the_store_shows(
    team: Machine, exported: bytes, request_id: str
) -> None:
    """The honest twin of every edit below."""
    with team.open() as store:
        found = api.examine(store, store.request(request_id))

    request, shown, diff = _shown(team, exported)

    assert (request.id, request.answer, request.world, request.reasons) == (
        found.request.id,
        found.request.answer,
        found.request.world,
        found.request.reasons,
    )
    assert (shown, diff) == (found.shown, found.diff)


@pytest.mark.parametrize("place", [0.0, 0.3, 0.6, 0.999])
def test_an_edited_byte_anywhere_is_refused_or_shows_nothing_else(
    team: Machine, exported: bytes, place: float
) -> None:
    """In every header, signature, body, blob and pending result, one after another."""
    honest = _shown(team, exported)
    paths = list(_bytes_of(json.loads(exported)))
    for path in paths:
        found = _shown(team, _edited(exported, path, _flipped(place)))
        assert isinstance(found, SealpointError) or found == honest, path

    assert len(paths) > 20


_WORDS = {
    "the answer": (b'"to":"acme"', b'"to":"evil"'),
    "the question": (b'"pay":17', b'"pay":99'),
    "the reason": (b"a new tool", b"a new fool"),
    "the tool that is new": (b'"shell"', b'"touch"'),
    "the requester": (b'"worker"', b'"second"'),
    "the action": (b'"resume"', b'"handoff"'),
    "the name of the thread": (b'"t"', b'"u"'),
    "a role in the roster": (b'"approver"', b'"operator"'),
}


@pytest.mark.parametrize("what", _WORDS)
def test_an_edited_field_is_refused(team: Machine, exported: bytes, what: str) -> None:
    """Everywhere where it stands at once, as somebody would who wants it to look whole."""
    before, after = _WORDS[what]
    data, changed = exported, 0
    for path in _bytes_of(json.loads(exported)):
        edited = _edited(data, path, lambda raw: raw.replace(before, after))
        changed += edited != json.dumps(json.loads(data)).encode()
        data = edited

    assert changed
    assert isinstance(_shown(team, data), SealpointError)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "u"),
        ("ns", "other"),
        ("store", "0" * 32),
        ("thread", "0" * 32),
        ("request", "0" * 64),
        ("entries", []),
        ("chain", []),
        ("v", 2),
        ("sealpoint", "answer"),
        ("more", 1),
    ],
)
def test_an_edited_frame_is_refused(
    team: Machine, exported: bytes, field: str, value: object
) -> None:
    """What stands around the entries is not signed, and believed nowhere."""
    document = json.loads(exported)
    document[field] = value

    assert isinstance(_shown(team, json.dumps(document).encode()), SealpointError)


def test_an_export_that_leaves_entries_out_is_refused(team: Machine, exported: bytes) -> None:
    """In the middle a link is missing; without its end, the request is not there."""
    for leave in range(len(json.loads(exported)["entries"])):
        document = json.loads(exported)
        del document["entries"][leave]
        assert isinstance(_shown(team, json.dumps(document).encode()), SealpointError)


def test_an_older_roster_than_the_pin_says_is_refused(tmp_path: Path) -> None:
    """A pin that was exported later believes no export from before."""
    team = make_team(tmp_path)
    with team.open() as store:
        store.thread("t").save({"n": 1}, world=READ)
    request = ask(team)
    with team.open() as store:
        data = api.export_request(store, request)
    assert not isinstance(_shown(team, data), SealpointError)
    team.done("keys", "new", "late")
    rights = ("--person", "late", "--role", "approver", "--namespace", "*")
    team.done("keys", "add", "late", *rights)
    pin = api.admin(team.url, **_places(team)).trust.export_pin()
    with pytest.raises(sealpoint.SealpointError) as caught:
        api.open_request(data, team.url, trust=pin, read_only=True, **_places(team))

    assert caught.value.code == "rolled-back"


def test_nobody_signs_offline_what_they_may_not(team: Machine, exported: bytes) -> None:
    """The roster in the export is the root's: no role, or the requester's own person."""
    for identity in ("chief", "worker", "operator"):
        with _open(team, exported, identity) as opened, pytest.raises(NotTrusted):
            opened.answer(Verdict.APPROVE, reason="fine")
    with _open(team, exported, "ann") as opened:
        assert opened.answer(Verdict.APPROVE, reason="fine")


# ---------------------------------------------------------------------- answers


@pytest.fixture(scope="module")
def answer(team: Machine, exported: bytes) -> bytes:
    """What ann says, as it is carried back."""
    with _open(team, exported) as opened:
        return opened.answer(Verdict.APPROVE, reason="fine")


def _relay(machine: Machine, data: bytes, **options: Any) -> Any:
    with sealpoint.open_store(machine.url, **_places(machine), **options) as store:
        return api.relay_answer(store, data)


def test_an_answer_counts_for_its_own_request_alone(
    team: Machine, answer: bytes, request_id: str
) -> None:
    """Turned to another open request of the same thread, its proof is none."""
    other = ask(team, answer={"pay": False})
    document = json.loads(answer)
    document["attestation"]["statement"] = other
    with pytest.raises(Forged):
        _relay(team, json.dumps(document).encode())
    _relay(team, answer)
    with team.open() as store:
        assert store.request(request_id).approved_by == ("ann",)
        assert store.request(other).approved_by == ()


@pytest.mark.parametrize(
    ("field", "value"), [("verdict", "deny"), ("reason", "more"), ("credential", "0" * 64)]
)
def test_an_edited_answer_is_refused(team: Machine, answer: bytes, field: str, value: str) -> None:
    """Verdict and reason are signed, and the key is named."""
    document = json.loads(answer)
    document["attestation"][field] = value
    with pytest.raises((Forged, NotTrusted)):
        _relay(team, json.dumps(document).encode())


def test_an_answer_of_another_store_is_refused(tmp_path: Path, answer: bytes) -> None:
    """Also if somebody writes this store's id and namespace over its own."""
    other = make_team(tmp_path)
    with other.open() as store:
        store.thread("t").save({"n": 1}, world=READ, question={"pay": 17})
        store_id = store.id.raw.hex()
    ask(other, answer={"pay": True, "to": "acme"})
    with pytest.raises(NotTrusted, match="another store"):
        _relay(other, answer)
    document = json.loads(answer) | {"store": store_id}
    with pytest.raises(UnknownRequest):
        _relay(other, json.dumps(document).encode())


def test_an_answer_of_another_namespace_is_refused(team: Machine, answer: bytes) -> None:
    """The request is not there; and the frame says so before."""
    with pytest.raises(NotTrusted, match="namespace 'default'"):
        _relay(team, answer, namespace="other")
    document = json.loads(answer) | {"ns": "other"}
    with pytest.raises(UnknownRequest):
        _relay(team, json.dumps(document).encode(), namespace="other")


def test_an_answer_that_was_kept_back_is_refused_when_it_is_too_late(tmp_path: Path) -> None:
    """Denied meanwhile, or gone on: the approval that was carried fits nothing any more."""
    team = make_team(tmp_path)
    with team.open() as store:
        store.thread("t").save({"n": 1}, world=READ)
    request = ask(team)
    with team.open() as store:
        data = api.export_request(store, request)
    with _open(team, data) as opened:
        kept = opened.answer(Verdict.APPROVE, reason="fine")
    team.done("deny", request, "--identity", "bob", "--reason", "no")
    with pytest.raises(RequestClosed):
        _relay(team, kept)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\xff", b"[" * 100_000, b"x" * 100_000])
def test_what_is_no_answer_and_no_export_is_refused(team: Machine, data: bytes) -> None:
    """By an error of ours, whatever it is."""
    with pytest.raises(BundleInvalid):
        _relay(team, data)
    with pytest.raises(BundleInvalid):
        _open(team, data)
