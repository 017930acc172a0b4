# SPDX-License-Identifier: Apache-2.0
"""The bodies of the gate's entries: read strictly, with what is inside them."""

import hashlib
import json
from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.errors import Edited
from sealpoint.ledger import (
    Body,
    CheckpointBody,
    ExpiryBody,
    HandoffBody,
    Kind,
    PauseBody,
    RequestBody,
    ResultsBody,
    ResumeBody,
    UnpauseBody,
    Unreadable,
    VerdictBody,
    encode_body,
    parse_body,
    read_body,
)
from sealpoint.limits import BODY_BYTES_MAX, JSON_DEPTH_MAX
from sealpoint.signing import Action
from tests.ledgers import SALT
from tests.unit.ledger.gating import approve, begun, break_glass, deny, stated

_DIGEST = "ab" * 32
_NO_DIGESTS = ("", "ab" * 31, "AB" * 32, "zz" * 32, "ab " * 21 + "a", _DIGEST + "ab")
_ABOUT = stated(begun())
_YES, _NO = approve(_ABOUT, "ann")[0], deny(_ABOUT, "ann")[0]
_GLASS = break_glass(_ABOUT, "marked")[0]

_BODIES: dict[Kind, Body] = {
    Kind.RESUME: ResumeBody(
        salt=SALT,
        owner="worker",
        basis=4,
        reason="the new release",
        checkpoint=_DIGEST,
        release="cd" * 32,
        world=_DIGEST,
        leaves={"tools": [{"name": "read_file"}]},
        policy=_DIGEST,
        rules=("tools", "answer"),
        request=_DIGEST,
        answer=_DIGEST,
        actor="Ann",
    ),
    Kind.CHECKPOINT: CheckpointBody(
        salt=SALT, id="c1", root=_DIGEST, question={"pay": [1.5, None, "ü"]}
    ),
    Kind.HANDOFF: HandoffBody(
        salt=SALT,
        owner="second",
        reason="gone",
        statement=_ABOUT,
        attestations=(_YES, _NO),
        actor="Zoë",
    ),
    Kind.PAUSE: PauseBody(salt=SALT, reason="look first", actor="Zoë"),
    Kind.UNPAUSE: UnpauseBody(salt=SALT, reason="go on", actor="Zoë"),
    Kind.REQUEST: RequestBody(
        salt=SALT, statement=_ABOUT, reasons=("wider", "old"), answer=[True], world={"model": {}}
    ),
    Kind.APPROVAL: VerdictBody(salt=SALT, attestation=_YES, actor="Zoë"),
    Kind.DENIAL: VerdictBody(salt=SALT, attestation=_NO, actor="Zoë"),
    Kind.EXPIRY: ExpiryBody(salt=SALT, request=_DIGEST),
    Kind.BREAK_GLASS: VerdictBody(salt=SALT, attestation=_GLASS, actor="ann"),
}
_FIELDS = {
    Kind.RESUME: [
        *("salt", "owner", "basis", "reason", "checkpoint", "release", "world", "leaves"),
        *("policy", "rules", "request", "answer", "actor"),
    ],
    Kind.CHECKPOINT: ["salt", "id", "root", "question"],
    Kind.HANDOFF: ["salt", "owner", "reason", "statement", "attestations", "actor"],
    Kind.PAUSE: ["salt", "reason", "actor"],
    Kind.UNPAUSE: ["salt", "reason", "actor"],
    Kind.REQUEST: ["salt", "statement", "reasons", "answer", "world"],
    Kind.APPROVAL: ["salt", "attestation", "actor"],
    Kind.DENIAL: ["salt", "attestation", "actor"],
    Kind.EXPIRY: ["salt", "request"],
    Kind.BREAK_GLASS: ["salt", "attestation", "actor"],
}
_OPTIONAL: dict[Kind, list[str]] = {
    Kind.RESUME: _FIELDS[Kind.RESUME][3:],
    Kind.CHECKPOINT: ["question"],
    Kind.HANDOFF: ["statement", "attestations", "actor"],
    Kind.PAUSE: ["actor"],
    Kind.UNPAUSE: ["actor"],
    Kind.APPROVAL: ["actor"],
    Kind.DENIAL: ["actor"],
    Kind.BREAK_GLASS: ["actor"],
    Kind.REQUEST: ["reasons", "answer", "world"],
}
_TOGETHER = ("checkpoint", "release")
"""Of a resume: both or neither."""
_every_body = pytest.mark.parametrize(("kind", "body"), _BODIES.items(), ids=list(_BODIES))


def _parse(kind: Kind, data: bytes) -> Body:
    """Parse as if the header named exactly these bytes."""
    body: Body = parse_body(kind, hashlib.sha256(data).hexdigest(), data)
    return body


def _spelled(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def _refused(kind: Kind, data: bytes) -> None:
    """It is refused, and is nonsense of its writer where damage is told from that."""
    with pytest.raises(Edited):
        _parse(kind, data)
    with pytest.raises(Unreadable):
        read_body(kind, hashlib.sha256(data).hexdigest(), data)


@_every_body
def test_what_is_written_is_read_back(kind: Kind, body: Body) -> None:
    """Every body is a round trip, with its fields in the order of the specification."""
    data = encode_body(body)

    assert _parse(kind, data) == body
    assert list(json.loads(data)) == _FIELDS[kind]


@_every_body
def test_a_field_too_many_or_too_few_is_refused(kind: Kind, body: Body) -> None:
    """Only what has a default may be left out; nothing is added."""
    fields = json.loads(encode_body(body))
    _refused(kind, _spelled({**fields, "x": 1}))
    for name in fields:
        less = _spelled({key: value for key, value in fields.items() if key != name})
        if name in _TOGETHER:
            _refused(kind, less)
        elif name in _OPTIONAL.get(kind, []):
            assert name not in json.loads(encode_body(_parse(kind, less)))
        else:
            _refused(kind, less)


@pytest.mark.parametrize(
    ("kind", "name"), [(k, n) for k, names in _OPTIONAL.items() for n in names]
)
def test_a_default_that_is_written_is_refused(kind: Kind, name: str) -> None:
    """There is one spelling for what is not said."""
    fields = json.loads(encode_body(_BODIES[kind]))
    empty: list[Any] | None = [] if name in {"rules", "attestations", "reasons"} else None
    _refused(kind, _spelled({**fields, name: empty}))


@pytest.mark.parametrize("text", _NO_DIGESTS)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((Kind.RESUME, name) for name in (*_TOGETHER, "world", "policy", "request", "answer")),
        (Kind.EXPIRY, "request"),
    ],
)
def test_what_names_a_digest_is_one(kind: Kind, name: str, text: str) -> None:
    """Even its signer may have signed nonsense."""
    _refused(kind, encode_body(replace(_BODIES[kind], **{name: text})))


def test_a_resume_has_a_checkpoint_with_its_release_or_neither() -> None:
    """What ran is told whole; a session that begins a thread releases nothing."""
    both = _BODIES[Kind.RESUME]
    neither = replace(both, checkpoint=None, release=None)

    for body in (both, neither):
        assert _parse(Kind.RESUME, encode_body(body)) == body
    for name in _TOGETHER:
        _refused(Kind.RESUME, encode_body(replace(both, **{name: None})))


@pytest.mark.parametrize("field", ["released", "decided"])
def test_a_resume_without_a_checkpoint_names_no_position(field: str) -> None:
    """Neither of the checkpoint, nor of the session whose world it keeps."""
    both = _BODIES[Kind.RESUME]
    neither = replace(both, checkpoint=None, release=None)
    named: dict[str, Any] = {field: 0}

    assert _parse(Kind.RESUME, encode_body(replace(both, **named))) == replace(both, **named)
    _refused(Kind.RESUME, encode_body(replace(neither, **named)))


def test_a_resume_names_as_little_as_it_can() -> None:
    """One without what the gate decided begins a thread, which holds nothing yet."""
    plain = ResumeBody(salt=SALT, owner="worker", basis=4)

    assert _parse(Kind.RESUME, encode_body(plain)) == plain
    assert list(json.loads(encode_body(plain))) == ["salt", "owner", "basis"]


@pytest.mark.parametrize(
    ("kind", "attestation"), [(Kind.APPROVAL, _NO), (Kind.DENIAL, _YES)], ids=["approval", "denial"]
)
def test_a_verdict_is_what_its_kind_says(kind: Kind, attestation: Any) -> None:
    """A denial cannot be relayed as an approval, nor the other way."""
    _refused(kind, encode_body(VerdictBody(salt=SALT, attestation=attestation)))


@pytest.mark.parametrize("verdict", ["", "Approve", "yes", None, 1])
def test_an_unknown_verdict_is_refused(verdict: Any) -> None:
    """There are two words."""
    fields = json.loads(encode_body(_BODIES[Kind.APPROVAL]))
    fields["attestation"]["verdict"] = verdict
    _refused(Kind.APPROVAL, _spelled(fields))


@pytest.mark.parametrize(
    "changes",
    [
        *({"credential": text} for text in _NO_DIGESTS),
        *({"statement": text} for text in _NO_DIGESTS),
        {"credential": "\u0660" * 64},
        {"proof": "zz" * 64},
        {"proof": "abc"},
        {"proof": "00" * 2049},
        {"reason": ""},
        {"reason": "x" * 4097},
    ],
    ids=range(18),
)
def test_what_is_relayed_has_the_form_of_an_attestation(changes: dict[str, Any]) -> None:
    """Junk is nonsense of whoever relayed it; a word that proves nothing is still a word."""
    for kind, word in ((Kind.APPROVAL, _YES), (Kind.DENIAL, _NO)):
        _refused(kind, encode_body(VerdictBody(salt=SALT, attestation=replace(word, **changes))))
        unproven = VerdictBody(salt=SALT, attestation=replace(word, proof="00", credential=_DIGEST))
        assert _parse(kind, encode_body(unproven)) == unproven


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Kind.REQUEST, "answer"),
        (Kind.CHECKPOINT, "question"),
        (Kind.CHECKPOINT, "metadata"),
        (Kind.RESULTS, "question"),
    ],
)
@pytest.mark.parametrize("levels", [1, 900, 200_000])
def test_json_is_read_as_deep_as_it_is_written_and_no_deeper(
    kind: Kind, name: str, levels: int
) -> None:
    """On every version of Python, whatever its parser could do."""
    bodies = {
        **_BODIES,
        Kind.RESULTS: ResultsBody(salt=SALT, checkpoint="c", task="t", root=_DIGEST),
    }
    flat = encode_body(replace(bodies[kind], **{name: {"x": 0}}))

    def nested(depth: int) -> bytes:
        return flat.replace(b'{"x":0}', b'{"x":' * depth + b"[]" + b"}" * depth)

    assert encode_body(_parse(kind, nested(JSON_DEPTH_MAX - 1))) == nested(JSON_DEPTH_MAX - 1)
    _refused(kind, nested(JSON_DEPTH_MAX - 1 + levels)[:BODY_BYTES_MAX])


@pytest.mark.parametrize("kind", [Kind.REQUEST, Kind.HANDOFF])
@pytest.mark.parametrize(
    "changes",
    [
        {"basis": "xx"},
        {"store": "ab" * 15},
        {"ns": ""},
        {"requester": "x" * 513},
        {"reason": ""},
        {"to": None},
        {"release": _DIGEST},
        {"answer": _DIGEST},
        {"action": Action.RESUME},
        {"nonce": "AB" * 16},
    ],
    ids=str,
)
def test_a_statement_inside_a_body_makes_sense(kind: Kind, changes: dict[str, Any]) -> None:
    """It is read as strictly there as alone."""
    body = replace(_BODIES[kind], statement=replace(_ABOUT, **changes))
    _refused(kind, encode_body(body))


@pytest.mark.parametrize("kind", [Kind.REQUEST, Kind.HANDOFF])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"v":4', b'"v":2'),
        (b'"v":4', b'"v":5'),
        (b'"v":4,', b""),
        (b'"differences":[],', b""),
        (b'"needed":1,', b""),
        (b'"needed":1', b'"needed":17'),
        (b'Z","reason"', b'+00:00","reason"'),
        (b'"gen":0', b'"gen":0.0'),
        (b'"epoch":0', b'"epoch":-1'),
        (b'"checkpoint":null,', b""),
        (b'"release":null,', b""),
        (b'"checkpoint":null', b'"checkpoint":null,"x":1'),
    ],
)
def test_a_statement_inside_a_body_has_one_spelling(kind: Kind, old: bytes, new: bytes) -> None:
    """Its digest is that of the bytes that lie in the body."""
    data = encode_body(_BODIES[kind])
    changed = data.replace(old, new, 1)

    assert _ABOUT.encode() in data
    assert changed != data
    _refused(kind, changed)


def test_the_bodies_of_two_kinds_do_not_pass_for_one_another() -> None:
    """Except where both have the same fields: there the kind is in the signed header."""
    alike = {(Kind.PAUSE, Kind.UNPAUSE), (Kind.UNPAUSE, Kind.PAUSE)}
    for kind in _BODIES:
        for other, body in _BODIES.items():
            if kind is not other and (kind, other) not in alike:
                _refused(kind, encode_body(body))
