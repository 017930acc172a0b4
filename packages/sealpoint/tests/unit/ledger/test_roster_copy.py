# SPDX-License-Identifier: Apache-2.0
"""A copy of the store chain: one document, verified by the pin alone."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from sealpoint.errors import Edited, Misplaced, NotTrusted, SealpointError, UsageError
from sealpoint.ids import StoreId
from sealpoint.ledger import CopiedEntry, Kind, PositionList, RestoreBody, RosterCopy
from sealpoint.ledger import _roster_copy as module
from sealpoint.signing import Role, TrustPin
from tests.ledgers import SALT, StoreLedger, identity, pin, roster


def _store() -> StoreLedger:
    """Two rosters and a restore with two lists."""
    store = StoreLedger()
    people = [identity("worker"), identity("operator", Role.OPERATOR)]
    store.add(store.roster_record(roster(*people)))
    store.add(store.roster_record(roster(*people, identity("späte"))))
    kept, lost = store.cut_list((b"t" * 16, 4, b"h" * 32)), store.cut_list()
    body = RestoreBody(salt=SALT, reason="x", **_names(kept, lost))
    store.add(store.record(Kind.RESTORE, body, "root", epoch=1))
    return store


def _names(kept: PositionList, lost: PositionList) -> dict[str, str]:
    """What a restore that releases nothing calls its lists."""
    lists = {"kept": kept, "lost": lost, "released": PositionList(b"")}
    return {name: listed.digest.hex() for name, listed in lists.items()}


def _entries(store: StoreLedger) -> list[CopiedEntry]:
    return [
        CopiedEntry(record.header.decode(), record.seals.decode(), (record.body or b"").decode())
        for record in store.records
    ]


def _copy(store: StoreLedger) -> RosterCopy:
    return RosterCopy.verified(pin(), _entries(store), store.blobs)


def test_a_copy_is_read_back_as_it_was_written() -> None:
    """Entries, lists and the verified chain."""
    store = _store()
    data = _copy(store).encode()
    found = RosterCopy.parse(data, pin())

    assert found.chain.hashes == store.chain.hashes
    assert list(found.entries) == _entries(store)
    assert dict(found.blobs) == store.blobs
    assert found.encode() == data


def test_the_document_can_be_read_by_people() -> None:
    """Names are text; lists are in base 64 under their digests."""
    store = _store()
    document = json.loads(_copy(store).encode())

    assert list(document) == ["v", "store", "entries", "blobs"]
    assert document["v"] == 1
    assert document["store"] == str(pin().store)
    assert '"name":"späte"' in document["entries"][1]["body"]
    assert list(document["blobs"]) == sorted(digest.hex() for digest in store.blobs)
    assert sorted(map(base64.b64decode, document["blobs"].values())) == sorted(store.blobs.values())


def _changed(change: Callable[[Any], object]) -> bytes:
    document = json.loads(_copy(_store()).encode())
    change(document)
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def test_the_tests_write_as_the_encoder_does() -> None:
    """A document that was not changed is taken, so what refuses the others is the change."""
    RosterCopy.parse(_changed(lambda _document: None), pin())


def _forge(document: Any) -> None:
    body = document["entries"][1]["body"]
    document["entries"][1]["body"] = body.replace("späte", "spade")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda found: found.update(v=2), NotTrusted),
        (lambda found: found.update(more=1), NotTrusted),
        (lambda found: found.pop("blobs"), NotTrusted),
        (lambda found: found.update(store="store:12"), NotTrusted),
        (lambda found: found.update(store="store:" + "ab" * 16), NotTrusted),
        (lambda found: found.update(entries=[]), NotTrusted),
        (lambda found: found["entries"].pop(0), Misplaced),
        (lambda found: found["entries"].reverse(), Misplaced),
        (lambda found: found["entries"][0].update(header="{}"), Edited),
        (lambda found: found["entries"][1].update(body="{}"), Edited),
        (_forge, Edited),
        (lambda found: found["entries"][0].update(seals="[]"), Edited),
        (lambda found: found["entries"][0].update(payload=""), NotTrusted),
        (lambda found: found["entries"].pop(), NotTrusted),
        (lambda found: found["blobs"].popitem(), NotTrusted),
        (lambda found: found["blobs"].update({"00" * 32: ""}), NotTrusted),
        (lambda found: found["blobs"].update({"zz": ""}), NotTrusted),
        (lambda found: found["blobs"].update(dict.fromkeys(found["blobs"], "AAAA")), NotTrusted),
        (lambda found: found.update(blobs=dict(reversed(found["blobs"].items()))), NotTrusted),
        (lambda found: found.update(entries=1), NotTrusted),
    ],
)
def test_a_changed_document_is_refused(
    change: Callable[[Any], object], error: type[SealpointError]
) -> None:
    """Whatever was added, removed, moved or edited."""
    with pytest.raises(error):
        RosterCopy.parse(_changed(change), pin())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"null",
        b"\xff",
        b"[" * 2000,
        b'{"v":1,"store":"\\ud800","entries":[],"blobs":{}}',
    ],
)
def test_something_else_is_refused(data: bytes) -> None:
    """It is not what was exported."""
    with pytest.raises(NotTrusted):
        RosterCopy.parse(data, pin())


def test_another_spelling_is_refused() -> None:
    """Spaces, escapes and the end of the last line are part of it."""
    data = _copy(_store()).encode()
    for other in (data[:-1], data + b"\n", data.replace(b'"v": 1', b'"v":1'), data.upper()):
        with pytest.raises(NotTrusted):
            RosterCopy.parse(other, pin())
    with pytest.raises(NotTrusted, match="byte for byte"):
        RosterCopy.parse(data.replace("ä".encode(), b"\\u00e4"), pin())


def test_a_copy_is_verified_by_the_pin_alone() -> None:
    """Another root, and another store, did not sign it."""
    data = _copy(_store()).encode()
    other = TrustPin(store=StoreId(bytes(16)), root=pin().root)

    with pytest.raises(NotTrusted, match="expected one of store"):
        RosterCopy.parse(data, other)
    with pytest.raises(SealpointError):
        RosterCopy.parse(data, pin("other"))


def test_a_copy_without_a_roster_is_none() -> None:
    """An empty chain proves nothing."""
    with pytest.raises(NotTrusted, match="expected a roster, found none"):
        RosterCopy.verified(pin(), [], {})


def test_a_copy_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before it is parsed, and not written if nobody would take it."""
    copy = _copy(_store())
    data = copy.encode()
    monkeypatch.setattr(module, "ROSTER_COPY_BYTES_MAX", len(data))
    RosterCopy.parse(copy.encode(), pin())
    monkeypatch.setattr(module, "ROSTER_COPY_BYTES_MAX", len(data) - 1)

    with pytest.raises(NotTrusted, match="expected at most"):
        RosterCopy.parse(data, pin())
    with pytest.raises(UsageError, match="expected at most"):
        copy.encode()


def test_lists_of_other_bytes_are_refused() -> None:
    """A list is what its name says."""
    store = _store()
    lists = {digest: PositionList(b"").data + b"x" for digest in store.blobs}

    with pytest.raises(NotTrusted, match="bytes of another hash"):
        RosterCopy.verified(pin(), _entries(store), lists)


def test_lists_are_taken_in_any_order_and_written_in_one() -> None:
    """Whoever makes a copy need not sort; the document and the chain do."""
    store = _store()
    for epoch in range(2, 6):
        kept = store.cut_list((b"t" * 16, 10 + epoch, b"h" * 32))
        lost = store.cut_list((b"u" * 16, epoch, b"h" * 32))
        body = RestoreBody(salt=SALT, reason="x", **_names(kept, lost))
        store.add(store.record(Kind.RESTORE, body, "root", epoch=epoch))
    rising = dict(sorted(store.blobs.items()))
    falling = dict(sorted(store.blobs.items(), reverse=True))

    assert store.chain.blobs == tuple(rising)
    assert len(rising) == 10
    copies = [RosterCopy.verified(pin(), _entries(store), each) for each in (rising, falling)]
    assert copies[0].encode() == copies[1].encode()


def test_a_copy_of_another_version_is_told_to_be_one() -> None:
    """Its version is named, whatever else of it could not be read either."""
    with pytest.raises(NotTrusted, match="expected version 1, found 2"):
        RosterCopy.parse(_changed(lambda found: found.update(v=2)), pin())
