# SPDX-License-Identifier: Apache-2.0
"""An operator of all namespaces takes rosters away and puts entries of its own in their place.

The store chain is longer than before, every entry is genuine, and the anchor was moved to its end.
"""

import hashlib
import shutil
from pathlib import Path

import msgspec
import pytest

from sealpoint.anchor import Position
from sealpoint.errors import Forked, KeyNotInForce, NotTrusted, SealpointError, UsageError
from sealpoint.ledger import (
    STORE_CHAIN,
    AdoptBody,
    Kind,
    encode_body,
    encode_header,
    link_hash,
    parse_header,
    skip_seq,
)
from sealpoint.signing import PrivateKey
from sealpoint.storage import Record
from sealpoint.store import Core
from tests.ledgers import SALT, seals
from tests.unit.api.place import Place

_KEPT = 2
"""The rosters that stay: the key that was revoked later is in the second."""
_ADOPTED = encode_body(AdoptBody(salt=SALT, reason="x"))


def _revoked(folder: Path) -> tuple[Place, Path]:
    """A store in which a writer was revoked, and the workers' configuration from before that."""
    place = Place(folder)
    place.init()
    place.admin.keys.create("mallory")
    place.admin.keys.add("mallory", person="mallory", roles=["writer"], namespaces=["*"])
    with place.open() as store:
        store.thread("t").save({"n": 1})
    workers = folder / "workers"
    shutil.copytree(folder / "config", workers)
    place.admin.keys.revoke("mallory", reason="left the company")
    return place, workers


def _is_roster(record: Record) -> bool:
    return parse_header(record.header).kind is Kind.ROSTER


def _adopt(core: Core, rows: list[Record], data: bytes = _ADOPTED) -> Record:
    """What an operator may add to the store chain."""
    signer = core.parts.signer
    assert isinstance(signer, PrivateKey)
    seq = len(rows)
    header = msgspec.structs.replace(
        parse_header(rows[-1].header),
        seq=seq,
        prev=link_hash(rows[-1].header).hex(),
        skip=link_hash(rows[skip_seq(seq)].header).hex(),
        kind=Kind.ADOPT,
        by=signer.key,
        body=hashlib.sha256(data).hexdigest(),
        roster=max(at for at, row in enumerate(rows) if _is_roster(row)),
    )
    raw = encode_header(header)
    return Record(raw, seals(raw, signer), data, None)


def _replace_rosters(place: Place, workers: Path) -> list[Position]:
    """Put entries in the place of the newest rosters, and give where the anchor might move to."""
    with place.open(identity="operator", config_dir=workers) as store:
        core = store._checkpoints.core
        before = core.anchor.get(core._slot)
        assert before is not None
        rows = [record for _, record in core.storage.scan(STORE_CHAIN, 0)]
        length, rows = len(rows), rows[:_KEPT]
        with place.rows() as database:
            database.execute(
                "DELETE FROM entries WHERE thread = zeroblob(16) AND seq >= ?", (_KEPT,)
            )
        while len(rows) <= length:
            rows.append(_adopt(core, rows))
            core.storage.append(STORE_CHAIN, len(rows) - 1, rows[-1:], blobs={})
        kept = msgspec.structs.replace(
            before, seq=length, entry=link_hash(rows[-1].header), epoch=before.epoch
        )
        left_out = msgspec.structs.replace(
            kept, owner=_KEPT - 1, owner_entry=link_hash(rows[_KEPT - 1].header)
        )
        with pytest.raises(UsageError):
            core.anchor.advance(core._slot, before, left_out)
        return [before, kept, msgspec.structs.replace(left_out, epoch=before.epoch + 1)]


@pytest.mark.parametrize("epoch", [0, 1], ids=["the marks kept", "an epoch that never began"])
def test_a_roster_is_not_replaced_by_what_an_operator_adds(tmp_path: Path, epoch: int) -> None:
    """Nobody opens the store, also with a pin from before the revocation."""
    place, workers = _revoked(tmp_path)
    with pytest.raises(KeyNotInForce):
        place.open(identity="mallory", config_dir=workers).thread("new").save({"x": 1})
    with place.open(identity="operator", config_dir=workers) as store:
        core = store._checkpoints.core
        before, *claims = _replace_rosters(place, workers)
        core.anchor.advance(core._slot, before, claims[epoch])
    found: list[SealpointError] = []
    for who in ("worker", "mallory"):
        with pytest.raises((Forked, NotTrusted)) as caught:
            place.open(identity=who, config_dir=workers)
        found.append(caught.value)

    assert [type(each) for each in found] == [(Forked, NotTrusted)[epoch]] * 2


def test_nonsense_on_the_store_chain_stops_nobody(tmp_path: Path) -> None:
    """An entry that only says why counts although nobody can read it, there as on a thread."""
    place, _ = _revoked(tmp_path)
    with place.open(identity="operator") as store:
        core = store._checkpoints.core
        rows = [record for _, record in core.storage.scan(STORE_CHAIN, 0)]
        core.storage.append(STORE_CHAIN, len(rows), [_adopt(core, rows, b"{}")], blobs={})

    with place.open() as store:
        assert store.thread("t").load().state == {"n": 1}
        store.thread("t").save({"n": 2})
        assert store.verify().ok
    place.admin.keys.create("next")
    place.admin.keys.add("next", person="next", roles=["writer"], namespaces=["*"])
