# SPDX-License-Identifier: Apache-2.0
"""The vectors of passkeys: one of each algorithm, what was said with them, and what is refused.

A store chain of one roster, and a thread that is handed off three times by an operator, each time
approved with a passkey of another algorithm. A refused case is one entry in the place of the next
one of either chain. Keys and signatures are fixed, so every byte is.
"""

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric import utils
from msgspec.structs import replace

from sealpoint.ledger import (
    AdoptBody,
    Body,
    HandoffBody,
    Kind,
    RestoreBody,
    RootBody,
    RosterBody,
    encode_body,
    encode_header,
)
from sealpoint.signing import (
    ENTRY_TYPE,
    Attestation,
    Identity,
    Passkey,
    PasskeyAssertion,
    PasskeyBinding,
    PrivateKey,
    Role,
    Root,
    RosterDocument,
    RosterKey,
    Seal,
    Verdict,
    challenge,
    encode_seals,
    pae,
)
from sealpoint.storage import Record
from tests.ledgers import SALT, StoreLedger, ThreadLedger, identity, key, pin, roster
from tests.unit.ledger.gating import record, stated
from tests.unit.signing.authenticator import BE, BS, ED, UP, UV, Authenticator, encode_challenge
from tests.vectors.ledger import vector_entry, vector_row

__all__ = ["passkey_vectors"]

_AT = "https://console.example.com"
_MADE = {
    "es256": Authenticator(1, "es256", "example.com", _AT),
    "eddsa": Authenticator(2, "eddsa", "example.com", _AT, backup_eligible=True),
    "rs256": Authenticator(3, "rs256", "localhost", "http://localhost:8080"),
}
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_REASON = "read it"


def _holder(name: str, *keys: RosterKey, roles: tuple[Role, ...] = (Role.APPROVER,)) -> Identity:
    return Identity(name, f"person of {name}", roles, ("*",), keys)


def _people(**changes: RosterKey) -> tuple[Identity, ...]:
    """Workers, an operator, and whoever has a passkey, which may do everything by its roles."""
    keys = {name: RosterKey.of(made.passkey) for name, made in _MADE.items()} | changes
    return (
        identity("worker"),
        identity("second"),
        identity("operator", Role.OPERATOR),
        *(_holder(name, each, roles=tuple(Role)) for name, each in keys.items()),
    )


@cache
def _store() -> StoreLedger:
    ledger = StoreLedger(pin())
    # One operator of all namespaces may accept a restore: none of those with a passkey does.
    ledger.add(ledger.roster_record(replace(roster(*_people()), restore_quorum=1)))
    return ledger


def _begun() -> ThreadLedger:
    return ThreadLedger(_store().chain).begun()


def _handoff(ledger: ThreadLedger, *words: Attestation, to: str = "second") -> Record:
    about = stated(ledger, to=to)
    body = HandoffBody(
        salt=SALT, owner=to, reason="the worker is gone", statement=about, attestations=words
    )
    return ledger.record(Kind.HANDOFF, body, signer="operator")


@cache
def _thread() -> ThreadLedger:
    """Begun, and handed off to and fro."""
    ledger = _begun()
    for to, made in zip(("second", "worker", "second"), _MADE.values(), strict=True):
        word = made.say(stated(ledger, to=to).digest, Verdict.APPROVE, _REASON)
        entry = _handoff(ledger, word, to=to)
        ledger.tip = ledger.follow(entry)
        ledger.records.append(entry)
        ledger.writer = ledger.owner = to
        ledger.add(Kind.RESUME)
    return ledger


# ---------------------------------------------------------------------- refused


def _hostile_members() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "of a new credential", {"type": "webauthn.create"}
    yield "of another challenge", {"challenge": encode_challenge(bytes(32))}
    yield "of another origin", {"origin": "https://console.example.com.evil.example"}
    yield "of another port", {"origin": f"{_AT}:8443"}
    yield "of a plain origin", {"origin": "http://console.example.com"}
    yield "in a frame", {"crossOrigin": True}
    yield "in no frame, as a number", {"crossOrigin": 0}
    yield "below another page", {"topOrigin": "https://evil.example"}


def _hostile_texts(good: str) -> Iterator[tuple[str, str]]:
    yield "with a name twice", good[:-1] + f',"origin":"{_AT}"}}'
    yield "with another name first", '{"origin":"https://evil.example",' + good[1:]
    yield "with a name twice further in", good[:-1] + ',"x":{"a":1,"a":2}}'
    yield "with no number", good[:-1] + ',"x":NaN}'
    yield "after a byte order mark", "\ufeff" + good
    yield "in a list", f"[{good}]"
    yield "that is too long", good[:-1] + ',"x":"' + "x" * 1024 + '"}'


def _hostile_flags(made: Authenticator) -> Iterator[tuple[str, bytes]]:
    yield "without a user", made.authenticator_data(UV)
    yield "without verification", made.authenticator_data(UP)
    yield "that may be backed up, unlike before", made.authenticator_data(UP | UV | BE)
    yield "that is backed up and may not be", made.authenticator_data(UP | UV | BS)
    yield "with a credential", made.authenticator_data(UP | UV | 0x40)
    yield "without its extensions", made.authenticator_data(UP | UV | ED)
    yield "with more than it says", made.authenticator_data(after=b"\xa0")
    other = Authenticator(1, relying_party="evil.example")
    yield "for another relying party", other.authenticator_data()


def _word(made: Authenticator, digest: str, proof: bytes, **changes: Any) -> Attestation:
    word = Attestation(
        "webauthn",
        made.passkey.id.raw.hex(),
        digest,
        Verdict.APPROVE,
        _REASON,
        proof.hex(),
    )
    return replace(word, **changes)


def _raw(assertion: PasskeyAssertion) -> bytes:
    """The proof, whatever its lengths."""
    parts = (assertion.client_data, assertion.authenticator_data)
    return b"".join(len(part).to_bytes(2) + part for part in parts) + assertion.signature


def _words(digest: str) -> Iterator[tuple[str, Attestation]]:
    """Words that count for nothing, each with a genuine signature unless its name says more."""
    made = _MADE["es256"]
    asked = challenge(digest, Verdict.APPROVE, _REASON)
    good, data = made.get(asked), made.authenticator_data()
    text = made.client_data(asked).decode()
    for name, extra in _hostile_members():
        spelt = json.dumps(json.loads(text) | extra, separators=(",", ":"))
        yield f"an answer {name}", _word(made, digest, _raw(made.answer(spelt.encode(), data)))
    for name, spelt in _hostile_texts(text):
        yield f"an answer {name}", _word(made, digest, _raw(made.answer(spelt.encode(), data)))
    for name, other in _hostile_flags(made):
        yield f"an answer {name}", _word(made, digest, _raw(made.answer(text.encode(), other)))
    r, s = utils.decode_dss_signature(good.signature)
    signatures = {
        "the other of two signatures": utils.encode_dss_signature(r, _ORDER - s),
        "a signature in another spelling": b"\x30\x81" + good.signature[1:],
        "a signature with a byte more": good.signature + b"\x00",
        "a signature of another message": made.sign(b"another"),
        "no signature": b"",
    }
    for name, signature in signatures.items():
        yield name, _word(made, digest, _raw(replace(good, signature=signature)))
    yield "a proof that is cut", _word(made, digest, good.encode()[:100])
    yield (
        "the proof of a denial",
        _word(made, digest, made.get(challenge(digest, Verdict.DENY, _REASON)).encode()),
    )
    yield "the proof of another reason", _word(made, digest, good.encode(), reason="read it.")
    yield (
        "the proof of another statement",
        _word(made, digest, made.get(challenge("ab" * 32, Verdict.APPROVE, _REASON)).encode()),
    )
    yield "the proof of another passkey", _word(_MADE["eddsa"], digest, good.encode())
    yield "a passkey's word as a key's", _word(made, digest, good.encode(), scheme="ed25519")
    eddsa = _MADE["eddsa"]
    payload = {"statement": digest, "verdict": "approve", "reason": _REASON}
    kind = b"application/vnd.sealpoint.statement.v1+json"
    plain = eddsa.sign(pae(kind, msgspec.json.encode(payload)))
    yield "a signature without a browser", _word(eddsa, digest, plain)
    yield "the same as a key's", _word(eddsa, digest, plain, scheme="ed25519")


def _sealed_by_passkey(ledger: ThreadLedger | StoreLedger, kind: Kind, body: bytes) -> Record:
    """The next entry of a chain, by the private key of a passkey whose holder has every role."""
    made = _MADE["eddsa"]
    signer = PrivateKey("eddsa", bytes([made.number]) * 32)
    changes: dict[str, Any] = {"epoch": 1} if kind is Kind.RESTORE else {}
    header = ledger.header(kind, body, signer, by=made.passkey.id.raw.hex(), **changes)
    raw = encode_header(header)
    seal = Seal(made.passkey.id, signer.sign(pae(ENTRY_TYPE, raw)))
    return Record(raw, encode_seals([seal]), body)


def _entries() -> Iterator[tuple[str, Record]]:
    """An entry of each kind that a passkey signed."""
    ledger = _begun()
    for kind in Kind:
        if kind in {Kind.ROSTER, Kind.ROOT, Kind.RESTORE}:
            continue
        usual = record(ledger, kind)
        yield f"a {kind} by a passkey", _sealed_by_passkey(ledger, kind, usual.body or b"")


def _store_entries() -> Iterator[tuple[str, Record]]:
    """The same for the store chain, where its holder is an operator of all namespaces."""
    ledger, digest = _store(), hashlib.sha256(b"").hexdigest()
    root = Root(version=2, threshold=1, keys=[key("root-2").public])
    bodies: dict[Kind, Body] = {
        Kind.ADOPT: AdoptBody(salt=SALT, reason="moved"),
        Kind.ROSTER: RosterBody(salt=SALT, roster=ledger.chain.roster.document),
        Kind.ROOT: RootBody(salt=SALT, root=root.document),
        Kind.RESTORE: RestoreBody(
            salt=SALT, reason="disk", kept=digest, lost=digest, released=digest
        ),
    }
    for kind, body in bodies.items():
        name = f"a {kind} of the store chain by a passkey"
        yield name, _sealed_by_passkey(ledger, kind, encode_body(body))


def _rosters() -> Iterator[tuple[str, RosterDocument]]:
    made = _MADE["es256"].passkey

    def bound(**changes: Any) -> RosterKey:
        return replace(RosterKey.of(made), passkey=replace(made.binding, **changes))

    keys: dict[str, RosterKey] = {
        "of a plain origin": bound(origin="http://console.example.com"),
        "of an origin with a slash": bound(origin=f"{_AT}/"),
        "of an origin with its usual port": bound(origin=f"{_AT}:443"),
        "of an origin in capitals": bound(origin=_AT.upper()),
        "of an address": bound(origin="https://127.0.0.1", relying_party="127.0.0.1"),
        "of another relying party": bound(relying_party="evil.example"),
        "of part of a name": bound(relying_party="ample.com"),
        "of no relying party": bound(relying_party=""),
        "with no credential": bound(credential=""),
        "with a credential in capitals": bound(credential="AB"),
        "with the credential of another": bound(credential=_MADE["eddsa"].credential.hex()),
        "without a binding": replace(RosterKey.of(made), passkey=msgspec.UNSET),
        "as a key": replace(RosterKey.of(made), scheme="ed25519"),
        "of another scheme": replace(RosterKey.of(made), scheme="u2f"),
        "of another algorithm": replace(RosterKey.of(made), public=made.public.replace("s", "d")),
        "off the curve": replace(RosterKey.of(made), public=f"{made.public[:-2]}00"),
        "with a short RSA key": replace(RosterKey.of(made), public=f"rs256:{'ff' * 128}"),
        "with an even RSA key": replace(RosterKey.of(made), public=f"rs256:{'fe' * 256}"),
    }
    for name, each in keys.items():
        yield f"a passkey {name}", roster(*_people(es256=each))
    twice = roster(*_people(), _holder("again", RosterKey.of(made)))
    yield "a passkey of two people", twice
    other = Passkey(made.public, PasskeyBinding("ab", "example.com", _AT, False))  # noqa: FBT003
    yield "a public key in two passkeys", roster(*_people(), _holder("again", RosterKey.of(other)))
    raw = PrivateKey("eddsa", bytes([_MADE["eddsa"].number]) * 32)
    beside = _holder("again", RosterKey.of(raw.public))
    yield "a passkey whose key signs entries", roster(*_people(), beside)


def _refused() -> Iterator[dict[str, Any]]:
    def case(chain: str, after: int, name: str, made: Record) -> dict[str, Any]:
        return {"name": name, "chain": chain, "after": after, **vector_row(made)}

    ledger = _begun()
    for name, word in _words(stated(ledger).digest):
        yield case("thread", 3, f"a handoff with {name}", _handoff(ledger, word))
    for name, made in _entries():
        yield case("thread", 3, name, made)
    store = StoreLedger(pin())
    for name, document in _rosters():
        yield case("store", 0, f"a roster with {name}", store.roster_record(document))
    for name, made in _store_entries():
        yield case("store", 1, name, made)
    moved = Authenticator(1, "es256", "example.com", "https://other.example.com")
    again = roster(*_people(es256=RosterKey.of(moved.passkey)))
    yield case("store", 1, "a roster with a passkey that moved", _store().roster_record(again))
    gone = roster(*(each for each in _people() if each.name != "rs256"))
    yield case("store", 1, "a roster without a passkey", _store().roster_record(gone))


def passkey_vectors() -> str:
    """The text of the frozen file."""
    store, thread = _store(), _thread()
    enrolments = {name: made.passkey.encode().decode() for name, made in _MADE.items()}
    head = {
        "pin": json.loads(pin().encode()),
        "place": msgspec.to_builtins(thread.place),
        "enrolments": enrolments,
        "ids": {name: made.passkey.id.raw.hex() for name, made in _MADE.items()},
        "operator": hashlib.sha256(key("operator").public.raw).hexdigest(),
    }
    lists = {
        "store_chain": [vector_entry(each) for each in store.records],
        "thread": [vector_entry(each) for each in thread.records],
        "refused": list(_refused()),
    }
    parts = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    for name, vectors in lists.items():
        lines = ",\n".join(json.dumps(vector) for vector in vectors)
        parts.append(f"{json.dumps(name)}: [\n{lines}\n]")
    return "{\n" + ",\n".join(parts) + "\n}\n"
