# SPDX-License-Identifier: Apache-2.0
"""A header has one spelling; every other one is refused before anybody looks at its signature."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.errors import Edited
from sealpoint.ledger import Header, Kind, encode_header, parse_header
from sealpoint.limits import HEADER_BYTES_MAX
from tests.ledgers import ThreadLedger

_LEDGER = ThreadLedger().begun()
_GOOD = _LEDGER.records[2].header
_HEADER = parse_header(_GOOD)
_AT = b'"at":"2026-01-02T03:04:07.678901Z"'
_COUNTS = st.integers(0, 2**53 - 1)
_TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)

_FIELDS = [
    *("v", "store", "epoch", "ns", "thread", "gen", "seq", "prev", "skip", "kind", "fence"),
    *("pause", "owner", "roster", "at", "by", "enc", "body"),
]


def test_fields_have_the_order_of_the_format() -> None:
    """The order is part of the format: it is what is signed."""
    assert list(json.loads(_GOOD)) == _FIELDS
    assert _AT in _GOOD


def test_a_header_has_no_spaces_and_is_short() -> None:
    """The bytes are compact JSON, far below their bound."""
    assert json.dumps(json.loads(_GOOD), separators=(",", ":")).encode() == _GOOD
    assert len(_GOOD) < HEADER_BYTES_MAX / 4


@given(
    st.builds(
        Header,
        store=_TEXTS,
        epoch=_COUNTS,
        ns=_TEXTS,
        thread=_TEXTS,
        gen=_COUNTS,
        seq=_COUNTS,
        prev=st.none() | _TEXTS,
        skip=st.none() | _TEXTS,
        kind=st.sampled_from(list(Kind)),
        fence=_COUNTS,
        pause=_COUNTS,
        owner=_COUNTS,
        roster=_COUNTS,
        at=st.datetimes(timezones=st.just(UTC)),
        by=_TEXTS,
        body=_TEXTS,
    )
)
def test_what_is_written_is_read_back(header: Header) -> None:
    """Encoding and parsing are a round trip for every header that a writer can make."""
    assert parse_header(encode_header(header)) == header


def _reordered() -> bytes:
    fields = json.loads(_GOOD)
    return json.dumps(dict(reversed(fields.items())), separators=(",", ":")).encode()


def _without(field: str) -> bytes:
    fields = json.loads(_GOOD)
    del fields[field]
    return json.dumps(fields, separators=(",", ":")).encode()


def _with(field: str, text: str) -> bytes:
    """The good header with other JSON for one field."""
    fields = {name: json.dumps(value) for name, value in json.loads(_GOOD).items()}
    fields[field] = text
    return ("{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}").encode()


def test_the_changes_below_are_made_to_a_good_header() -> None:
    """Putting the same value back gives the same bytes, so each case below differs in one thing."""
    assert _with("seq", "2") == _GOOD
    assert parse_header(_with("seq", "3")).seq == 3


_SPELLINGS: dict[str, bytes] = {
    "a duplicate key, the same": _GOOD.replace(b'"seq":2', b'"seq":2,"seq":2'),
    "a duplicate key, the last good": _GOOD.replace(b'"seq":2', b'"seq":9,"seq":2'),
    "a duplicate key, the first good": _GOOD.replace(b'"seq":2', b'"seq":2,"seq":9'),
    "a duplicate behind an escape": _GOOD.replace(b'"seq":2', b'"seq":2,"s\\u0065q":2'),
    "a space after a colon": _GOOD.replace(b'"seq":', b'"seq": '),
    "a space after a comma": _GOOD.replace(b',"seq"', b', "seq"'),
    "a space in front": b" " + _GOOD,
    "a line end behind": _GOOD + b"\n",
    "a line end inside": _GOOD.replace(b"{", b"{\n"),
    "a zero byte behind": _GOOD + b"\0",
    "a second header behind": _GOOD + _GOOD,
    "a comma behind the last field": _GOOD[:-1] + b",}",
    "a byte order mark": b"\xef\xbb\xbf" + _GOOD,
    "another encoding": _GOOD.decode().encode("utf-16"),
    "bytes that are no UTF-8": _GOOD.replace(b'"ns":"default"', b'"ns":"\xff"'),
    "an overlong UTF-8 form": _GOOD.replace(b'"ns":"default"', b'"ns":"\xc1\xa1"'),
    "a lone surrogate": _with("ns", '"\\ud800"'),
    "fields in another order": _reordered(),
    "a key with an escape": _GOOD.replace(b'"seq"', b'"s\\u0065q"'),
    "a value with an escape": _GOOD.replace(b'"default"', b'"d\\u0065fault"'),
    "an escaped slash": _with("ns", '"a\\/b"'),
    "a float": _with("seq", "2.0"),
    "a fraction": _with("seq", "2.5"),
    "an exponent": _with("seq", "1e3"),
    "a capital exponent": _with("seq", "1E3"),
    "a minus zero": _with("epoch", "-0"),
    "a plus sign": _with("seq", "+2"),
    "a leading zero": _with("seq", "02"),
    "hexadecimal digits": _with("seq", "0x2"),
    "NaN": _with("seq", "NaN"),
    "Infinity": _with("seq", "Infinity"),
    "a number as text": _with("seq", '"2"'),
    "a truth value as number": _with("epoch", "false"),
    "a negative number": _with("seq", "-1"),
    "one more than 53 bits": _with("seq", str(2**53)),
    "one more than 64 bits": _with("seq", str(2**64)),
    "a huge number": _with("seq", "9" * 3000),
    "a null position": _with("seq", "null"),
    "a null pause": _with("pause", "null"),
    "a negative owner": _with("owner", "-1"),
    "a list instead of a text": _with("ns", '["default"]'),
    "an unknown field": _GOOD[:-1] + b',"note":"x"}',
    "an unknown field in front": b'{"note":1,' + _GOOD[1:],
    "an empty key": _GOOD[:-1] + b',"":0}',
    "an unknown kind": _with("kind", '"snapshot"'),
    "a kind in capitals": _with("kind", '"CHECKPOINT"'),
    "no kind": _with("kind", "null"),
    "version 0": _with("v", "0"),
    "version 1": _with("v", "1"),
    "version 2": _with("v", "2"),
    "version 4": _with("v", "4"),
    "version 3 as a float": _with("v", "3.0"),
    "version 3 as text": _with("v", '"3"'),
    "version true": _with("v", "true"),
    "an encryption": _with("enc", '"aes"'),
    "no encryption said": _with("enc", "null"),
    "none in capitals": _with("enc", '"None"'),
    "a time without zone": _with("at", '"2026-01-02T03:04:07.678901"'),
    "a time with +00:00": _with("at", '"2026-01-02T03:04:07.678901+00:00"'),
    "a time with -00:00": _with("at", '"2026-01-02T03:04:07.678901-00:00"'),
    "a time of another zone": _with("at", '"2026-01-02T04:04:07.678901+01:00"'),
    "a time with a small z": _with("at", '"2026-01-02T03:04:07.678901z"'),
    "a time with a small t": _with("at", '"2026-01-02t03:04:07.678901Z"'),
    "a time with a space": _with("at", '"2026-01-02 03:04:07.678901Z"'),
    "a time with fewer digits": _with("at", '"2026-01-02T03:04:07.5Z"'),
    "a time with zeros": _with("at", '"2026-01-02T03:04:07.000000Z"'),
    "a time with more digits": _with("at", '"2026-01-02T03:04:07.6789010Z"'),
    "a leap second": _with("at", '"2026-01-02T03:04:60Z"'),
    "a day that is none": _with("at", '"2026-02-30T03:04:05Z"'),
    "a time as number": _with("at", "1767323047"),
    "a date": _with("at", '"2026-01-02"'),
    "deep nesting": _with("ns", "[" * 1900 + "]" * 1900),
    "deep nesting in an unknown field": _GOOD[:-1] + b',"x":' + b'{"a":' * 600 + b"1" + b"}" * 601,
    "too many bytes": _with("ns", '"' + "x" * HEADER_BYTES_MAX + '"'),
    "nothing": b"",
    "null": b"null",
    "an empty object": b"{}",
    "a list": b"[" + _GOOD + b"]",
    "the fields as a list": json.dumps(list(json.loads(_GOOD).values())).encode(),
    "a quoted header": json.dumps(_GOOD.decode()).encode(),
    "a broken end": _GOOD[:-1],
    **{f"no {field}": _without(field) for field in _FIELDS},
}


@pytest.mark.parametrize("data", _SPELLINGS.values(), ids=_SPELLINGS)
def test_another_spelling_is_refused(data: bytes) -> None:
    """Bytes that the writer would not have written are no header, whatever they would mean."""
    with pytest.raises(Edited, match=r"^entry header: "):
        parse_header(data)


def test_the_bound_is_checked_before_parsing() -> None:
    """A header of exactly the bound is read; one byte more is refused by its length alone."""
    spare = HEADER_BYTES_MAX - len(_GOOD) + len(_HEADER.ns)
    longest = encode_header(msgspec.structs.replace(_HEADER, ns="x" * spare))

    assert len(longest) == HEADER_BYTES_MAX
    assert parse_header(longest).ns == "x" * spare
    with pytest.raises(Edited, match="at most 4096 bytes, found 4097"):
        parse_header(b"{" * (HEADER_BYTES_MAX + 1))


@pytest.mark.parametrize("version", ["1", "2"])
def test_an_entry_of_an_earlier_format_is_refused_in_words(version: str) -> None:
    """Who opens a store from before learns that, and what to do, by the error of an edit."""
    with pytest.raises(Edited, match="expected format version 3, found an earlier one") as caught:
        parse_header(_with("v", version))

    assert "which this release does not read" in str(caught.value)
    assert "sealpoint init" in caught.value.hint
    assert "restore a good copy" in caught.value.hint
    assert caught.value.exit_status == Edited.exit_status


@pytest.mark.parametrize(
    "data",
    [
        *(_with("v", text) for text in ("0", "4", '"1"', "null", "true", "[1]")),
        b"null",
        b"[1]",
        b'{"v":1',
        b'{"v":1,"x":' + b"[" * 3000,
        b'{"x":{"v":1}}',
        _without("v"),
    ],
    ids=lambda data: repr(data[:24]),
)
def test_other_bytes_are_not_taken_for_an_earlier_format(data: bytes) -> None:
    """The words about a version are for bytes that say it themselves."""
    with pytest.raises(Edited) as caught:
        parse_header(data)

    assert "earlier" not in str(caught.value)
    assert caught.value.hint == Edited.hint


@pytest.mark.parametrize("end", [0, 1, 2**53 - 1])
def test_numbers_of_53_bits_are_read(end: int) -> None:
    """Every number that any JSON reader keeps exactly may be a position."""
    assert parse_header(_with("seq", str(end))).seq == end


def test_no_message_carries_what_was_found() -> None:
    """A refused header is not quoted: its bytes are an attacker's."""
    with pytest.raises(Edited) as caught:
        parse_header(_with("kind", '"secret-payload"'))

    assert "secret-payload" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [{"at": datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=2)))}, {"seq": -1}, {"v": 4}],
    ids=str,
)
def test_a_header_that_must_not_be_written_is_not_read(change: dict[str, Any]) -> None:
    """Whatever a faulty writer encodes, a reader checks."""
    with pytest.raises(Edited):
        parse_header(encode_header(msgspec.structs.replace(_HEADER, **change)))
