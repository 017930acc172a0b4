# SPDX-License-Identifier: Apache-2.0
"""A body is read only if it is the one that its header names, in its one spelling."""

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from sealpoint.errors import Edited
from sealpoint.ledger import (
    AdoptBody,
    Body,
    CheckpointBody,
    EraseBody,
    GenesisBody,
    IdTable,
    Kind,
    Origin,
    PruneBody,
    ResultsBody,
    ResumeBody,
    RosterBody,
    encode_body,
    parse_body,
)
from sealpoint.limits import BODY_BYTES_MAX
from tests.ledgers import SALT, identity, roster

_DIGEST = "ab" * 32
_WRITTEN = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
_ORIGIN = Origin(thread="11" * 16, entry=_DIGEST, at=_WRITTEN)
_BODIES: dict[Kind, Body] = {
    Kind.GENESIS: GenesisBody(salt=SALT, name="Rechnung №7 \U0001f4c4", owner="worker"),
    Kind.RESUME: ResumeBody(salt=SALT, owner="worker", basis=4, reason="again"),
    Kind.CHECKPOINT: CheckpointBody(
        salt=SALT,
        id="c1",
        root=_DIGEST,
        fresh=(_DIGEST,),
        fresh_list=_DIGEST,
        parent="c0",
        metadata={"step": 1, "nested": {"list": [1.5, None, True, "ü"]}},
        world=_DIGEST,
        prune=7,
        question=["sure?"],
        lane="sub|1",
        again=3,
        since=2,
        origin=_ORIGIN,
        ids=IdTable(first=4, prints="00000000" + "80abcdef"),
    ),
    Kind.HELD: CheckpointBody(salt=SALT, id="c2", root=_DIGEST, fresh=(_DIGEST,), parent="c1"),
    Kind.PRUNE: PruneBody(
        salt=SALT, before=9, kept=(2, 5), reason="thirty days are over", earlier=8
    ),
    Kind.RESULTS: ResultsBody(
        salt=SALT,
        checkpoint="c1",
        task="t1",
        root=_DIGEST,
        lane="sub|1",
        path="~pull, node",
        fresh=(_DIGEST,),
        fresh_list=_DIGEST,
        question={"pay": 5},
        answers=True,
        origin=_ORIGIN,
    ),
    Kind.DELETE: PruneBody(salt=SALT, before=9, kept=(2, 5), reason="x", deleted=((2, 4), (7, 7))),
    Kind.ERASE: EraseBody(salt=SALT, reason="as was asked for"),
    Kind.ADOPT: AdoptBody(salt=SALT, reason="moved"),
    Kind.ROSTER: RosterBody(salt=SALT, roster=roster(identity("worker")), reason="init"),
}
_every_body = pytest.mark.parametrize(("kind", "body"), _BODIES.items(), ids=list(_BODIES))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _parse(kind: Kind, data: bytes) -> Body:
    """Parse as if the header named exactly these bytes."""
    body: Body = parse_body(kind, _digest(data), data)
    return body


@_every_body
def test_what_is_written_is_read_back(kind: Kind, body: Body) -> None:
    """Every kind of body is a round trip, and its salt comes first."""
    data = encode_body(body)

    assert _parse(kind, data) == body
    assert next(iter(json.loads(data))) == "salt"


def test_defaults_are_not_written() -> None:
    """A body keeps its bytes when a later version adds a field with a default."""
    plain = encode_body(CheckpointBody(salt=SALT, id="c1", root=_DIGEST))

    assert list(json.loads(plain)) == ["salt", "id", "root"]
    assert _parse(Kind.CHECKPOINT, plain) == CheckpointBody(salt=SALT, id="c1", root=_DIGEST)


@_every_body
def test_another_body_than_the_header_names_is_refused(kind: Kind, body: Body) -> None:
    """Every single changed byte makes another digest."""
    data = encode_body(body)

    for place in range(len(data)):
        changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with pytest.raises(Edited, match="expected the one with digest"):
            parse_body(kind, _digest(data), changed)


@pytest.mark.parametrize("data", [b"", b"{}", b"null"])
def test_an_erased_body_is_no_body(data: bytes) -> None:
    """Nothing in the place of a body is refused, with its own digest and with the right one."""
    with pytest.raises(Edited):
        parse_body(Kind.GENESIS, _digest(b"the body"), data)
    with pytest.raises(Edited, match="expected the fields of a genesis"):
        _parse(Kind.GENESIS, data)


@_every_body
def test_an_unknown_field_is_refused(kind: Kind, body: Body) -> None:
    """A field that this version does not know may mean something: it is not skipped."""
    with pytest.raises(Edited, match=f"expected the fields of a {kind.word}"):
        _parse(kind, encode_body(body)[:-1] + b',"note":1}')


@_every_body
def test_another_spelling_is_refused(kind: Kind, body: Body) -> None:
    """Spaces, escapes, duplicates, order and written defaults make another body."""
    data = encode_body(body)
    fields = json.loads(data)
    first = next(iter(fields))
    spellings = [
        b" " + data,
        data + b"\n",
        data.replace(b'":', b'": ', 1),
        data.replace(b'"salt"', b'"s\\u0061lt"'),
        data[:-1] + b',"salt":"%s"}' % SALT.encode(),
        json.dumps(dict(reversed(fields.items())), separators=(",", ":")).encode(),
    ]

    assert first == "salt"
    for spelling in spellings:
        with pytest.raises(Edited, match="canonical form"):
            _parse(kind, spelling)


def test_a_written_default_is_another_spelling() -> None:
    """There is one way to say that a checkpoint has no parent."""
    data = encode_body(CheckpointBody(salt=SALT, id="c1", root=_DIGEST))

    for more in (b',"parent":null}', b',"fresh":[]}', b',"metadata":null}', b',"prune":null}'):
        with pytest.raises(Edited, match="canonical form"):
            _parse(Kind.CHECKPOINT, data[:-1] + more)


@pytest.mark.parametrize("number", ["1.0e0", "-0", "1e3", "0.10", "NaN", "1e999"])
def test_a_number_of_metadata_has_one_spelling(number: str) -> None:
    """Numbers in metadata are held to their one spelling too."""
    body = CheckpointBody(salt=SALT, id="c1", root=_DIGEST, metadata={"n": 7})
    data = encode_body(body).replace(b":7}", f":{number}}}".encode())

    with pytest.raises(Edited):
        _parse(Kind.CHECKPOINT, data)


@pytest.mark.parametrize(
    "data",
    [b"[" * 100_000, b'{"salt":' * 2000, b"\xff", b'{"salt":"' + b"9" * 100],
    ids=["deep lists", "deep objects", "no UTF-8", "cut off"],
)
def test_other_bytes_are_no_body(data: bytes) -> None:
    """Whatever else was sealed in the place of a body is refused as one."""
    with pytest.raises(Edited, match="expected the fields"):
        _parse(Kind.CHECKPOINT, data)


@pytest.mark.parametrize("kind", sorted(Kind))
def test_a_salt_alone_is_no_body(kind: Kind) -> None:
    """Every kind says something, and what it must say is not left out."""
    with pytest.raises(Edited, match=f"expected the fields of a {kind.word}"):
        _parse(kind, encode_body(Body(salt=SALT)))


def test_a_body_of_another_kind_is_refused() -> None:
    """The kind in the header decides what the body must be."""
    with pytest.raises(Edited, match="expected the fields of a genesis"):
        _parse(Kind.GENESIS, encode_body(_BODIES[Kind.RESUME]))


def test_a_body_has_a_bound() -> None:
    """The longest body is read; one byte more is refused before it is hashed or parsed."""
    body = CheckpointBody(salt=SALT, id="c1", root=_DIGEST, metadata={"x": ""})
    spare = BODY_BYTES_MAX - len(encode_body(body))
    longest = encode_body(msgspec.structs.replace(body, metadata={"x": "y" * spare}))

    assert len(longest) == BODY_BYTES_MAX
    assert encode_body(_parse(Kind.CHECKPOINT, longest)) == longest
    with pytest.raises(Edited, match="at most 1048576 bytes, found 1048577"):
        _parse(Kind.CHECKPOINT, longest + b" ")


@pytest.mark.parametrize("field", ["root", "fresh", "fresh_list", "world"])
@pytest.mark.parametrize(
    "name",
    ["", "ab", "AB" * 32, "ab" * 31, "ab" * 33, "zz" * 32, "ab " * 21 + "a", "../" * 21 + "x"],
    ids=["none", "short", "capitals", "31 bytes", "33 bytes", "no digits", "spaces", "a path"],
)
def test_blobs_are_named_by_digests_alone(field: str, name: str) -> None:
    """Even what its owner signed is refused if it names a blob by anything else."""
    body = CheckpointBody(salt=SALT, id="c1", root=_DIGEST, fresh=(_DIGEST,))
    changes: dict[str, object] = {field: (_DIGEST, name) if field == "fresh" else name}
    data = encode_body(msgspec.structs.replace(body, **changes))

    with pytest.raises(Edited, match="expected the fields of a checkpoint"):
        _parse(Kind.CHECKPOINT, data)


def test_defaults_of_results_are_not_written() -> None:
    """Those that a framework mostly writes are short."""
    plain = encode_body(ResultsBody(salt=SALT, checkpoint="c1", task="t1", root=_DIGEST))

    assert list(json.loads(plain)) == ["salt", "checkpoint", "task", "root"]


@pytest.mark.parametrize(
    "change",
    [
        {"root": "ab"},
        {"fresh": ("AB" * 32,)},
        {"fresh_list": "zz" * 32},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("kind", [Kind.RESULTS, Kind.CHECKPOINT, Kind.HELD])
def test_digests_of_results_are_digests(kind: Kind, change: dict[str, Any]) -> None:
    """As those of a checkpoint are, even where the owner signed others."""
    body = msgspec.structs.replace(_BODIES[kind], **change)
    with pytest.raises(Edited):
        _parse(kind, encode_body(body))


# ---------------------------------------------------------------------- what a copy is of


@pytest.mark.parametrize(
    "change",
    [
        *({"entry": text} for text in ("", "short", "AB" * 32, "zz" * 32, "ab" * 33)),
        *({"thread": text} for text in ("", "11" * 15, "11" * 17, "AB" * 16, "zz" * 16)),
        *({"at": _WRITTEN.astimezone(timezone(timedelta(hours=hours)))} for hours in (2, -7)),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [Kind.RESULTS, Kind.CHECKPOINT])
def test_an_origin_names_a_thread_an_entry_and_a_time(kind: Kind, change: dict[str, Any]) -> None:
    """Each in its one spelling, even where the owner signed another."""
    body = msgspec.structs.replace(_BODIES[kind], origin=msgspec.structs.replace(_ORIGIN, **change))
    with pytest.raises(Edited, match=f"expected the fields of a {kind.word}"):
        _parse(kind, encode_body(body))


@pytest.mark.parametrize(
    "at",
    [
        "2026-01-02T03:04:05.678901+00:00",
        "2026-01-02T03:04:05.678901",
        "2026-01-02T03:04:05.6789010Z",
        "2026-01-02T03:04:05.500Z",
        "2026-01-02 03:04:05.678901Z",
        "2026-01-02T03:04:05.678901z",
    ],
)
@pytest.mark.parametrize("kind", [Kind.RESULTS, Kind.CHECKPOINT])
def test_the_time_of_an_origin_has_one_spelling(kind: Kind, at: str) -> None:
    """The same instant with another offset, precision or letter is another body."""
    data = encode_body(_BODIES[kind])
    changed = data.replace(b"2026-01-02T03:04:05.678901Z", at.encode())

    assert b'"at":"2026-01-02T03:04:05.678901Z"' in data
    assert changed != data
    with pytest.raises(Edited):
        _parse(kind, changed)


@pytest.mark.parametrize(
    "origin",
    [
        f'["{"11" * 16}","{_DIGEST}"]',
        f'{{"thread":"{"11" * 16}","entry":"{_DIGEST}"}}',
        f'{{"entry":"{_DIGEST}","thread":"{"11" * 16}","at":"2026-01-02T03:04:05Z"}}',
        f'{{"thread":"{"11" * 16}","entry":"{_DIGEST}","at":null}}',
        f'{{"thread":"{"11" * 16}","entry":"{_DIGEST}","at":"2026-01-02T03:04:05Z","x":1}}',
        "null",
        '"11"',
    ],
    ids=["a pair", "no time", "another order", "a null time", "more", "null", "text"],
)
@pytest.mark.parametrize("kind", [Kind.RESULTS, Kind.CHECKPOINT])
def test_an_origin_has_its_three_fields(kind: Kind, origin: str) -> None:
    """Nothing is left out, added, or in another order; none is not written."""
    body = msgspec.structs.replace(_BODIES[kind], origin=None)
    data = encode_body(body)[:-1] + f',"origin":{origin}}}'.encode()

    with pytest.raises(Edited):
        _parse(kind, data)


def test_what_is_not_said_is_not_stored() -> None:
    """Bodies from before there were lanes have neither lane nor path, and mean the main one."""
    checkpoint = CheckpointBody(salt=SALT, id="c1", root=_DIGEST)
    results = ResultsBody(salt=SALT, checkpoint="c1", task="t1", root=_DIGEST)

    for body, names in ((checkpoint, {"lane"}), (results, {"lane", "path"})):
        assert names.isdisjoint(json.loads(encode_body(body)))
        assert {getattr(body, name) for name in names} == {""}
