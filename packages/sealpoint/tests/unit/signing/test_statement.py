# SPDX-License-Identifier: Apache-2.0
"""Statements: one spelling, every field in the digest, and nothing that makes no sense."""

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.errors import Edited, UsageError
from sealpoint.limits import NAME_BYTES_MAX
from sealpoint.signing import STATEMENT_TYPE, Action, Statement
from tests.repo._tree import ROOT
from tests.unit.signing.statements import handoff, rollout, statement

_REASON_BYTES_MAX = 4096
_ORDER = [
    *("v", "store", "ns", "thread", "epoch", "gen", "basis", "action", "checkpoint"),
    *("release", "world_from", "world_to", "answer", "to", "differences", "requester", "actor"),
    *("policy", "needed", "nonce", "expires", "reason"),
]

_CHANGES: dict[str, Any] = {
    "store": "ab" * 16,
    "ns": "billing",
    "thread": "ab" * 16,
    "epoch": 1,
    "gen": 1,
    "basis": "ab" * 32,
    "checkpoint": "ab" * 32,
    "release": "ab" * 32,
    "world_from": None,
    "world_to": None,
    "answer": "ab" * 32,
    "requester": "operator",
    "actor": "Alice",
    "policy": None,
    "needed": 2,
    "nonce": "ab" * 16,
    "expires": datetime(2026, 1, 2, 3, 4, 5, 1, tzinfo=UTC),
    "reason": "the new release can read invoices.",
}


def test_the_type_carries_its_version() -> None:
    """A signature on another version of the format is none on this one."""
    assert STATEMENT_TYPE == b"application/vnd.sealpoint.statement.v1+json"


def test_the_bytes_are_those_of_the_specification() -> None:
    """The worked example of the format page is what the code writes, field by field."""
    page = (ROOT / "docs" / "formats" / "statement.md").read_text(encoding="utf-8")
    data = statement().encode()

    assert data == (
        b'{"v":4,"store":"000102030405060708090a0b0c0d0e0f","ns":"default",'
        b'"thread":"101112131415161718191a1b1c1d1e1f","epoch":0,"gen":0,"basis":"' + b"11" * 32
        + b'","action":"resume","checkpoint":"' + b"22" * 32
        + b'","release":"' + b"77" * 32
        + b'","world_from":"' + b"33" * 32 + b'","world_to":"' + b"44" * 32
        + b'","answer":null,"to":null,"differences":[],"requester":"worker","actor":null,"policy":"'
        + b"55" * 32
        + b'","needed":1,"nonce":"' + b"66" * 16
        + b'","expires":"2026-01-02T03:04:05Z","reason":"the new release can read invoices"}'
    )  # fmt: skip
    assert statement().digest == hashlib.sha256(data).hexdigest()
    assert statement().digest == "5ae11efafc610ea653171e5dd5b8029506c729994b78827defbd133a368bf471"
    assert f"digest     {statement().digest}\n" in page
    assert f"statement  {len(data)} bytes\n" in page


def test_a_statement_has_expired_from_its_expiry_on() -> None:
    """At that instant and after it; with a slack, that much later."""
    at, slack = statement().expires, timedelta(minutes=5)
    just_before = timedelta(microseconds=1)

    assert statement().expired_at(at)
    assert not statement().expired_at(at - just_before)
    assert statement().expired_at(at + slack, slack=slack)
    assert not statement().expired_at(at + slack - just_before, slack=slack)


def test_a_statement_that_expires_at_the_last_datetime_can_be_compared() -> None:
    """The requester chooses the expiry, and nothing can be added to the last datetime."""
    last = datetime.max.replace(tzinfo=UTC)
    made = statement(expires=last)

    assert not made.expired_at(datetime(2026, 1, 1, tzinfo=UTC), slack=timedelta(minutes=5))
    assert made.expired_at(last)


@pytest.mark.parametrize(
    "made", [statement(), handoff(), handoff(checkpoint=None, policy=None), rollout()]
)
def test_every_field_is_written_in_its_order(made: Statement) -> None:
    """Null is written too, so that nothing can be left out and mean the same."""
    assert list(json.loads(made.encode())) == _ORDER
    assert Statement.parse(made.encode()) == made
    made.check()


def test_every_changed_field_changes_the_digest() -> None:
    """What is approved is all of it: no two of these statements share a digest."""
    changed = [statement(**{name: value}) for name, value in _CHANGES.items()]
    others = [
        *(handoff(), handoff(to="others"), handoff(checkpoint=None)),
        *(rollout(), rollout(differences=[("tool.pay", None, "44" * 32)])),
    ]
    digests = {made.digest for made in (statement(), *changed, *others)}

    assert len(digests) == 1 + len(_CHANGES) + len(others)
    assert _CHANGES.keys() | {"v", "action", "to", "differences"} == set(_ORDER)
    for made in changed:
        made.check()
        assert Statement.parse(made.encode()) == made


_texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
_digests = st.binary(min_size=32, max_size=32).map(bytes.hex)
_times = st.datetimes(timezones=st.just(UTC))
_statements = st.builds(
    statement,
    ns=_texts,
    epoch=st.integers(0, 2**53 - 1),
    basis=_digests,
    world_to=st.none() | _digests,
    answer=st.none() | _digests,
    requester=_texts,
    actor=st.none() | _texts,
    expires=_times,
    reason=_texts,
)


@given(_statements)
def test_a_statement_is_read_as_it_was_written(made: Statement) -> None:
    """Encoding and parsing are a round trip, and the same fields give the same bytes."""
    assert Statement.parse(made.encode()) == made
    assert Statement.parse(made.encode()).digest == made.digest


@given(st.binary(max_size=200), st.integers(0, 777), st.integers(0, 20))
def test_what_parses_is_the_one_spelling(junk: bytes, place: int, taken: int) -> None:
    """Whatever is accepted is what would be written, and nothing but Edited is ever raised."""
    good = statement().encode()
    for data in (junk, good[:place] + junk + good[place + taken :]):
        try:
            found = Statement.parse(data)
        except Edited:
            continue
        assert found.encode() == data


def _spelt(**changes: Any) -> bytes:
    """The bytes that would say this, whether or not they may."""
    fields = json.loads(statement().encode()) | changes
    return json.dumps(fields, separators=(",", ":")).encode()


def test_other_spellings_are_refused() -> None:
    """Spaces, escapes, another order, a repeated field or another offset are edits."""
    good = statement().encode()
    fields = json.loads(good)
    backwards = json.dumps(dict(reversed(fields.items())), separators=(",", ":")).encode()
    spellings = [
        *(good + b" ", b"\n" + good, good.replace(b",", b", ", 1), backwards),
        good.replace(b'"worker"', b'"\\u0077orker"'),
        good.replace(b'"v":4,', b'"v":4,"v":4,'),
        good.replace(b'"answer":null', b'"answer":"' + b"ab" * 32 + b'","answer":null'),
        good.replace(b'"epoch":0', b'"epoch":0.0'),
        good.replace(b'"epoch":0', b'"epoch":-0'),
        good.replace(b"04:05Z", b"04:05+00:00"),
        good.replace(b"03:04:05Z", b"05:04:05+02:00"),
        good.replace(b"04:05Z", b"04:05.000Z"),
        good.replace(b"04:05Z", b"04:05z"),
        good.replace(b"T03", b" 03"),
    ]

    assert Statement.parse(_spelt()) == statement()
    for spelling in spellings:
        assert spelling != good
        with pytest.raises(Edited, match=r"not in canonical form|fields of version 4"):
            Statement.parse(spelling)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"v":4}',
        b"\xff",
        b"[" * 60_000,
        _spelt(v=1),
        _spelt(v=2),
        _spelt(v=3),
        _spelt(v=5),
        _spelt(v="4"),
        _spelt(differences=None),
        _spelt(differences=["tool.pay"]),
        _spelt(differences=[["tool.pay", None]]),
        _spelt(differences=[["tool.pay", None, "ab" * 32, None]]),
        _spelt(differences=[[None, None, "ab" * 32]]),
        _spelt(differences=[["tool.pay", 1, "ab" * 32]]),
        _spelt(needed=-1),
        _spelt(needed=17),
        _spelt(needed=True),
        _spelt(needed=1.5),
        _spelt(needed="1"),
        _spelt(needed=None),
        _spelt(more=1),
        _spelt(action="erase"),
        _spelt(action="Resume"),
        _spelt(epoch=-1),
        _spelt(gen=2**53),
        _spelt(epoch=True),
        _spelt(epoch=None),
        _spelt(basis=None),
        _spelt(requester=None),
        _spelt(nonce=None),
        _spelt(reason=["x"]),
        _spelt(expires=None),
        _spelt(expires=1),
        _spelt(expires="2026-01-02T03:04:05"),
        _spelt(expires="2026-02-30T03:04:05Z"),
        _spelt(reason="\ud800"),
        *(
            json.dumps(
                {key: value for key, value in json.loads(_spelt()).items() if key != name},
                separators=(",", ":"),
            ).encode()
            for name in _ORDER[1:]
        ),
    ],
    ids=lambda data: repr(data[-40:]),
)
def test_other_fields_are_refused(data: bytes) -> None:
    """A field that is missing, unknown, or of another type or range is an edit."""
    with pytest.raises(Edited, match="fields of version 4"):
        Statement.parse(data)


@pytest.mark.parametrize("name", ["epoch", "gen"])
def test_counts_have_53_bits(name: str) -> None:
    """The largest one that every reader of JSON keeps is taken, and one more is not."""
    largest = statement(**{name: 2**53 - 1})

    assert Statement.parse(largest.encode()) == largest
    with pytest.raises(Edited):
        Statement.parse(statement(**{name: 2**53}).encode())


def test_a_missing_version_is_refused() -> None:
    """The one field with a default is written nevertheless."""
    with pytest.raises(Edited, match="canonical form"):
        Statement.parse(statement().encode().replace(b'"v":4,', b""))


_DIGITS = {
    **dict.fromkeys(("store", "thread", "nonce"), 32),
    **dict.fromkeys(("basis", "checkpoint", "release", "world_from", "world_to"), 64),
    **dict.fromkeys(("answer", "policy"), 64),
}


@pytest.mark.parametrize(("name", "digits"), _DIGITS.items())
def test_hexadecimal_is_of_its_length_and_lower_case(name: str, digits: int) -> None:
    """Two spellings of one digest would be two digests of one request."""
    wrong = [
        "",
        "a" * (digits - 1),
        "a" * (digits + 1),
        "A" * digits,
        "g" * digits,
        "0x" + "a" * (digits - 2),
        "a" * (digits - 1) + "\n",
        " " + "a" * (digits - 1),
        "\u0661" * digits,
        "\uff41" * digits,
    ]

    statement(**{name: "a" * digits}).check()
    for text in wrong:
        made = statement(**{name: text})
        with pytest.raises(Edited, match=f"statement: {name}: expected {digits} lower-case"):
            Statement.parse(made.encode())
        with pytest.raises(UsageError, match=f"statement: {name}: expected {digits} lower-case"):
            made.check()


@pytest.mark.parametrize(
    ("name", "bytes_max"),
    [
        ("ns", NAME_BYTES_MAX),
        ("requester", NAME_BYTES_MAX),
        ("actor", NAME_BYTES_MAX),
        ("to", NAME_BYTES_MAX),
        ("reason", _REASON_BYTES_MAX),
    ],
)
def test_texts_are_bounded_in_bytes(name: str, bytes_max: int) -> None:
    """The bound itself is inside, counts bytes and not characters, and nothing is empty."""
    for text in ("x", "x" * bytes_max, "\u00e9" * (bytes_max // 2)):
        made = handoff(**{name: text})
        made.check()
        assert Statement.parse(made.encode()) == made
    for text, found in (
        ("", "none"),
        ("x" * (bytes_max + 1), "others"),
        ("\u00e9" * (bytes_max // 2) + "x", "others"),
    ):
        made = handoff(**{name: text})
        with pytest.raises(Edited, match=f"{name}: expected 1 to {bytes_max} bytes, found {found}"):
            Statement.parse(made.encode())
        with pytest.raises(UsageError, match="statement: "):
            made.check()


_MANY = tuple((f"code.module.m{number:04}", None, "ff" * 32) for number in range(1024))


def test_the_largest_statement_fits_its_bound() -> None:
    """Every text at its bound and escaped at its longest is still fewer bytes than the whole."""
    name = "\x01" * NAME_BYTES_MAX
    reason = "\x01" * (_REASON_BYTES_MAX - 1) + "x"
    made = handoff(ns=name, requester=name, actor=name, to=name, reason=reason)
    many = rollout(ns=name, requester=name, actor=name, differences=_MANY, reason=reason)
    made.check()
    many.check()

    assert 32_000 < len(made.encode()) < 64 * 1024
    assert 128_000 < len(many.encode()) < 192 * 1024


def test_more_bytes_than_the_bound_are_refused_unread() -> None:
    """The length is checked before anything is parsed: the bytes need not be JSON."""
    with pytest.raises(Edited, match="statement: expected at most 196608 bytes, found 196609"):
        Statement.parse(b"x" * (192 * 1024 + 1))
    with pytest.raises(Edited, match="expected the fields"):
        Statement.parse(b"x" * (192 * 1024))


_ONE = (("tool.pay", "33" * 32, "44" * 32),)


@pytest.mark.parametrize(
    "made",
    [
        statement(checkpoint=None),
        statement(release=None),
        statement(checkpoint=None, release=None),
        statement(to="pods"),
        statement(action=Action.HANDOFF),
        handoff(to=None),
        handoff(release="ab" * 32),
        handoff(world_from="ab" * 32),
        handoff(world_to="ab" * 32),
        handoff(answer="ab" * 32),
        handoff(action=Action.RESUME),
        statement(differences=_ONE),
        handoff(differences=_ONE),
    ],
)
def test_each_action_has_what_it_needs_and_no_more(made: Statement) -> None:
    """A resume is of a checkpoint in a release and changes no owner; a handoff releases nothing."""
    with pytest.raises(Edited, match=f"a {made.action} has a"):
        Statement.parse(made.encode())
    with pytest.raises(UsageError, match=f"statement: a {made.action} has a"):
        made.check()


@pytest.mark.parametrize(
    "changes",
    [
        {"to": "pods"},
        {"checkpoint": "22" * 32},
        {"release": "77" * 32},
        {"world_from": "33" * 32},
        {"world_to": "44" * 32},
        {"answer": "ab" * 32},
        {"differences": ()},
        {"differences": (*_MANY, ("~", None, "44" * 32))},
        {"differences": (*_ONE, *_ONE)},
        {"differences": (("tool.pay", "33" * 32, None), ("tool.pay", None, "44" * 32))},
        {"differences": (("tool.pay", None, "44" * 32), ("tool.mail", None, "44" * 32))},
        {"differences": (("tool.pay", "33" * 32, "33" * 32),)},
        {"differences": (("tool.pay", None, None),)},
        {"differences": (("tool.pay", "AB" * 32, "44" * 32),)},
        {"differences": (("tool.pay", "33" * 32, "4" * 63),)},
        {"differences": (("tool.pay", "", "44" * 32),)},
        {"differences": (("", None, "44" * 32),)},
    ],
    ids=range(17),
)
def test_a_rollout_is_of_differences_alone(changes: dict[str, Any]) -> None:
    """Each difference once, sorted, of two values, in bounds, and nothing that is executed."""
    made = rollout(**changes)

    with pytest.raises(Edited, match=r"statement: (differences: expected|a rollout has)"):
        Statement.parse(made.encode())
    with pytest.raises(UsageError, match=r"statement: (differences: expected|a rollout has)"):
        made.check()


def test_a_rollout_may_be_of_1024_differences() -> None:
    """The bound itself is inside."""
    made = rollout(differences=_MANY)
    made.check()

    assert Statement.parse(made.encode()) == made


@pytest.mark.parametrize(
    "reason", ["", " ", "\n\t", "\u200b", "\u00a0 \u2003", "\x00\x1b", "\u202e"]
)
def test_a_writer_gives_a_reason_that_can_be_seen(reason: str) -> None:
    """Spaces and characters that show nothing say nothing."""
    with pytest.raises(UsageError, match=r"^statement: a reason is needed"):
        statement(reason=reason).check()


@pytest.mark.parametrize(
    "made",
    [
        statement(reason=None),
        statement(reason=b"bytes"),
        statement(reason="a \ud800"),
        statement(ns="\ud800"),
        statement(requester=None),
        statement(requester=object()),
        statement(actor=1),
        statement(actor=""),
        statement(epoch=-1),
        statement(epoch=2**70),
        statement(epoch=1.0),
        statement(gen=True),
        statement(v=2),
        statement(action="erase"),
        statement(expires=datetime(2026, 1, 1)),  # noqa: DTZ001 # the fault to find
        statement(expires=datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
        statement(expires="soon"),
        statement(basis=None),
    ],
    ids=range(18),
)
def test_a_writer_is_told_what_no_reader_would_accept(made: Statement) -> None:
    """Whatever is wrong with a field, the writer learns it as a wrong call, before it is asked."""
    with pytest.raises(UsageError, match=r"^statement: "):
        made.check()


def test_a_statement_cannot_be_changed() -> None:
    """What was digested stays what it was."""
    with pytest.raises(AttributeError):
        statement().reason = "another"  # type: ignore[misc] # the point of the test

    assert msgspec.structs.replace(statement(), reason="another").digest != statement().digest
