# SPDX-License-Identifier: Apache-2.0
"""Genuine chains to test with: keys, a pin, rosters, and entries with any header, validly signed.

Everything is the same in every run. A ledger follows its chain as a writer would, and every field
of the next header can be changed before it is signed: what a test breaks is one rule, never the
signature by accident.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from sealpoint.ids import StoreId
from sealpoint.ledger import (
    KINDS,
    STORE_CHAIN,
    AdoptBody,
    Body,
    CheckpointBody,
    Entry,
    EraseBody,
    GenesisBody,
    Header,
    Kind,
    Marks,
    Place,
    PositionList,
    PositionLists,
    PruneBody,
    ResumeBody,
    RootBody,
    RosterBody,
    StoreChain,
    Tip,
    begin,
    encode_body,
    encode_header,
    extend,
    link_hash,
    parse_body,
    parse_header,
    skip_seq,
    verify_entry,
)
from sealpoint.signing import (
    ENTRY_TYPE,
    Cutoff,
    Identity,
    Pool,
    PrivateKey,
    Role,
    Root,
    RosterDocument,
    RosterKey,
    Seal,
    TrustPin,
    encode_seals,
    pae,
)
from sealpoint.storage import Record

__all__ = [
    "NOW",
    "SALT",
    "STORE",
    "THREAD",
    "StoreLedger",
    "ThreadLedger",
    "cut",
    "genesis_body",
    "identity",
    "key",
    "pin",
    "resume_body",
    "roster",
    "sealed",
    "seals",
    "session_world",
    "solo",
]

STORE = StoreId(bytes(range(16)))
THREAD = bytes(range(16, 32))
NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
SALT = "5a" * 32


def key(name: str) -> PrivateKey:
    """The key of an identity; its secret is the digest of its name."""
    return PrivateKey(name, hashlib.sha256(name.encode()).digest())


def pin(*roots: str, threshold: int = 1, roster_seq_min: int = 0) -> TrustPin:
    """The pin of a store whose root keys have these names; `root` alone if none are given."""
    keys = [key(name).public for name in roots or ("root",)]
    root = Root(version=1, threshold=threshold, keys=keys)
    return TrustPin(store=STORE, root=root, roster_seq_min=roster_seq_min)


def identity(
    name: str,
    *roles: Role,
    namespaces: Sequence[str] = ("*",),
    keys: Sequence[str] | None = None,
) -> Identity:
    """A roster's line; a writer unless roles are given, with the keys of these names."""
    held = [RosterKey("ed25519", str(key(each).public)) for each in keys or (name,)]
    return Identity(name, name, roles or (Role.WRITER,), tuple(namespaces), tuple(held))


def roster(
    *identities: Identity, pools: Sequence[Pool] = (), cutoffs: Sequence[Cutoff] = ()
) -> RosterDocument:
    """A roster of these identities."""
    return RosterDocument(identities=identities, pools=tuple(pools), cutoffs=tuple(cutoffs))


def cut(name: str, positions: PositionList) -> Cutoff:
    """The end of the key of this name."""
    return Cutoff(key=key(name).key, positions=positions.digest.hex())


def seals(header: bytes, *signers: PrivateKey, payload_type: bytes = ENTRY_TYPE) -> bytes:
    """The stored seals of these keys on a header."""
    message = pae(payload_type, header)
    return encode_seals([Seal(signer.public.id, signer.sign(message)) for signer in signers])


def sealed(header: Header, body: bytes | None, *signers: PrivateKey) -> Record:
    """A header as it is, signed by these keys."""
    raw = encode_header(header)
    return Record(raw, seals(raw, *signers), body)


def _bytes(body: Body | bytes) -> bytes:
    return body if isinstance(body, bytes) else encode_body(body)


class StoreLedger:
    """A store chain in the making."""

    def __init__(self, trusted: TrustPin | None = None) -> None:
        self.blobs: dict[bytes, bytes] = {}
        self.chain = StoreChain(trusted or pin(), lists=PositionLists(self.blobs.get))
        self.records: list[Record] = []

    def header(self, kind: Kind, body: bytes, signer: PrivateKey, **changes: Any) -> Header:
        """The next header, with some fields changed."""
        seq, hashes = self.chain.seq + 1, self.chain.hashes
        header = Header(
            store=self.chain.pin.store.raw.hex(),
            epoch=0,
            ns="",
            thread=STORE_CHAIN.hex(),
            gen=0,
            seq=seq,
            prev=hashes[-1].hex() if seq else None,
            skip=hashes[skip_seq(seq)].hex() if seq else None,
            kind=kind,
            fence=0,
            pause=0,
            owner=0,
            roster=self.chain.rosters[-1].seq if self.chain.rosters else 0,
            at=NOW + timedelta(seconds=seq),
            by=signer.public.id.raw.hex(),
            body=hashlib.sha256(body).hexdigest(),
        )
        return msgspec.structs.replace(header, **changes)

    def record(self, kind: Kind, body: Body | bytes, *signers: str, **changes: Any) -> Record:
        """The next record, signed by the keys of these names."""
        keys, data = [key(name) for name in signers], _bytes(body)
        return sealed(self.header(kind, data, keys[0], **changes), data, *keys)

    def roster_record(
        self,
        document: RosterDocument,
        *signers: str,
        positions: PositionList | None = None,
        **changes: Any,
    ) -> Record:
        """The next record with a roster; by `root` unless others are named.

        One that changes a policy lists no thread, unless positions are given.
        """
        rosters = self.chain.rosters
        if positions is None and rosters and rosters[-1].document.policies != document.policies:
            positions = self.cut_list()
        listed = None if positions is None else positions.digest.hex()
        body = RosterBody(salt=SALT, roster=document, positions=listed)
        return self.record(Kind.ROSTER, body, *(signers or ("root",)), **changes)

    def root_record(self, root: Root, *signers: str, **changes: Any) -> Record:
        """The next record with a new root, by the keys of these names."""
        body = RootBody(salt=SALT, root=root.document)
        return self.record(Kind.ROOT, body, *signers, **changes)

    def cut_list(self, *positions: tuple[bytes, int, bytes]) -> PositionList:
        """A list of last positions, which the chain finds from now on."""
        made = PositionList.of(positions)
        self.blobs[made.digest] = made.data
        return made

    def adopt_record(self, *signers: str, **changes: Any) -> Record:
        """The next record with an adoption."""
        return self.record(Kind.ADOPT, AdoptBody(salt=SALT, reason="moved"), *signers, **changes)

    def add(self, record: Record) -> StoreChain:
        """Let the chain follow to a record."""
        self.chain = self.chain.extended(record.header, record.seals, record.body)
        self.records.append(record)
        return self.chain


def solo(*identities: Identity, pools: Sequence[Pool] = ()) -> StoreChain:
    """A store chain of one roster; with a `worker` and an `operator` unless others are given."""
    everybody = identities or (identity("worker"), identity("operator", Role.OPERATOR))
    ledger = StoreLedger()
    return ledger.add(ledger.roster_record(roster(*everybody, pools=pools)))


def genesis_body(owner: str = "worker", name: str = "invoice-7") -> GenesisBody:
    """The body of a genesis."""
    return GenesisBody(salt=SALT, name=name, owner=owner)


def resume_body(owner: str = "worker", basis: int = 0, **fields: Any) -> ResumeBody:
    """The body of a resume."""
    return ResumeBody(salt=SALT, owner=owner, basis=basis, **fields)


def _body(kind: Kind, owner: str, seq: int, earlier: int | None) -> Body:
    if kind is Kind.GENESIS:
        return genesis_body(owner)
    if kind is Kind.RESUME:
        return resume_body(owner, max(seq - 1, 0))
    if kind in (Kind.CHECKPOINT, Kind.HELD):
        root = hashlib.sha256(b"state %d" % seq).hexdigest()
        return CheckpointBody(salt=SALT, id=f"c{seq}", root=root, fresh=(root,))
    if kind is Kind.ADOPT:
        return AdoptBody(salt=SALT, reason="moved")
    if kind is Kind.PRUNE:
        return PruneBody(salt=SALT, before=max(seq - 1, 0), earlier=earlier)
    if kind is Kind.ERASE:
        return EraseBody(salt=SALT, reason="asked for")
    return Body(salt=SALT)


class ThreadLedger:
    """A thread's chain in the making, as its writer and its verifier see it."""

    def __init__(
        self,
        chain: StoreChain | None = None,
        *,
        writer: str = "worker",
        owner: str = "worker",
        namespace: str = "default",
        thread: bytes = THREAD,
    ) -> None:
        self.chain = chain or solo()
        self.place = Place(STORE.raw.hex(), namespace, thread.hex())
        self.writer = writer
        self.owner = owner
        self.records: list[Record] = []
        self.tip: Tip | None = None

    @property
    def seq(self) -> int:
        """The next position."""
        return len(self.records)

    @property
    def gen(self) -> int:
        """The generation of the next entry."""
        return 0 if self.tip is None else self.tip.entry.header.gen + self.tip.fence.erased

    @property
    def retention_seq(self) -> int | None:
        """The position of the newest prune or hide of the generation."""
        for seq, record in reversed(list(enumerate(self.records))):
            kind = parse_header(record.header).kind
            if KINDS[kind].gives_up:
                return None if kind is Kind.ERASE else seq
        return None

    def header(self, kind: Kind, body: bytes, signer: PrivateKey, **changes: Any) -> Header:
        """The next header, with some fields changed."""
        seq = self.seq
        hashes = [link_hash(record.header) for record in self.records]
        before = Marks(0, 0, 0) if self.tip is None else Marks.of(self.tip.entry.header)
        marks = before.after(Kind.GENESIS if self.tip is None else kind, seq)
        header = Header(
            store=self.place.store,
            epoch=0,
            ns=self.place.ns,
            thread=self.place.thread,
            gen=self.gen,
            seq=seq,
            prev=hashes[-1].hex() if seq else None,
            skip=hashes[skip_seq(seq)].hex() if seq else None,
            kind=kind,
            fence=marks.fence,
            pause=marks.pause,
            owner=marks.owner,
            roster=self.chain.roster.seq,
            at=NOW + timedelta(seconds=seq),
            by=signer.public.id.raw.hex(),
            body=hashlib.sha256(body).hexdigest(),
        )
        return msgspec.structs.replace(header, **changes)

    def record(
        self, kind: Kind, body: Body | bytes | None = None, *, signer: str = "", **changes: Any
    ) -> Record:
        """The next record, by the writer unless another is named."""
        if body is None:
            body = _body(kind, self.owner, self.seq, self.retention_seq)
        if isinstance(body, CheckpointBody) and body.world is None and self.tip is not None:
            body = msgspec.structs.replace(body, world=self.tip.fence.world)
        data = _bytes(body)
        signed = key(signer or self.writer)
        return sealed(self.header(kind, data, signed, **changes), data, signed)

    def verify(self, record: Record, seq: int | None = None) -> Entry:
        """Verify a record on its own, at the next position unless another is named."""
        seq = self.seq if seq is None else seq
        return verify_entry(
            record.header, record.seals, place=self.place, seq=seq, chain=self.chain
        )

    def follow(self, record: Record) -> Tip:
        """Verify a record as the next of the chain; the chain stays as it is."""
        entry = self.verify(record)
        if self.tip is None:
            return begin(entry, record.body, self.chain)
        return extend(self.tip, entry, record.body, self.chain)

    def forget(self, *positions: int) -> "ThreadLedger":
        """The same chain as a reader meets it that lacks the bodies at these positions."""
        again = ThreadLedger(self.chain, namespace=self.place.ns)
        for seq, record in enumerate(self.records):
            body = None if seq in positions else record.body
            kept = Record(record.header, record.seals, body)
            again.tip = again.follow(kept)
            again.records.append(kept)
        return again

    def add(
        self, kind: Kind, body: Body | bytes | None = None, *, signer: str = "", **changes: Any
    ) -> Record:
        """Let the chain follow to a next record."""
        record = self.record(kind, body, signer=signer, **changes)
        self.tip = self.follow(record)
        self.records.append(record)
        return record

    def begun(self) -> "ThreadLedger":
        """The same ledger with a genesis, a session and a checkpoint."""
        for kind in (Kind.GENESIS, Kind.RESUME, Kind.CHECKPOINT):
            self.add(kind)
        return self


def session_world(rows: Mapping[int, Record]) -> str | None:
    """The world of the newest session."""
    session = parse_header(rows[len(rows) - 1].header).fence
    header = parse_header(rows[session].header)
    if header.kind is not Kind.RESUME or rows[session].body is None:
        return None
    found: str | None = parse_body(header.kind, header.body, rows[session].body or b"").world
    return found
