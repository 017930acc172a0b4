# SPDX-License-Identifier: Apache-2.0
"""Seals: one spelling, one to sixteen of them, by different keys."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.errors import Edited
from sealpoint.ids import KeyId
from sealpoint.limits import SEALS_BYTES_MAX, SEALS_MAX
from sealpoint.signing import Seal, encode_seals, parse_seals
from tests.unit.signing.samples import seal, signer


def _some(count: int) -> list[Seal]:
    return [seal(signer(number), b"m") for number in range(1, count + 1)]


_seals = st.lists(
    st.builds(Seal, st.binary(min_size=32, max_size=32).map(KeyId), st.binary(max_size=64)),
    min_size=1,
    max_size=SEALS_MAX,
    unique_by=lambda seal: seal.key,
)


@given(_seals)
def test_seals_are_read_as_they_were_written(seals: list[Seal]) -> None:
    """Encoding and parsing are a round trip that keeps the order."""
    assert parse_seals(encode_seals(seals)) == tuple(seals)


@given(st.binary(max_size=300))
def test_what_parses_is_the_one_spelling(data: bytes) -> None:
    """Whatever is accepted is what would be written, and nothing else is ever raised."""
    try:
        found = parse_seals(data)
    except Edited:
        return

    assert encode_seals(found) == data


@pytest.mark.parametrize("count", [1, SEALS_MAX])
def test_one_to_sixteen_seals_are_read(count: int) -> None:
    """Both ends of the range are inside, and fit the bound in bytes."""
    assert len(parse_seals(encode_seals(_some(count)))) == count


@pytest.mark.parametrize("count", [0, SEALS_MAX + 1])
def test_no_seal_or_seventeen_are_refused(count: int) -> None:
    """No seal means that nobody signed; too many would cost too much."""
    with pytest.raises(Edited, match=f"1 to {SEALS_MAX}"):
        parse_seals(encode_seals(_some(count)))


def test_two_seals_by_one_key_are_refused() -> None:
    """One key never counts twice, whether or not the signatures are alike."""
    first, second = seal(signer(1), b"m"), seal(signer(1), b"n")

    for seals in ([first, first], [first, second]):
        with pytest.raises(Edited, match="different keys"):
            parse_seals(encode_seals(seals))


def test_other_spellings_are_refused() -> None:
    """Spaces, upper case and other ways to write the same pairs are edits."""
    good = encode_seals(_some(2))
    key, signature = json.loads(good)[0]
    spellings = [
        *(good + b" ", b" " + good, good + b"\n", good.replace(b",", b", "), good[:-1] + b" ]"),
        *(json.dumps([[key.upper(), signature]], separators=(",", ":")).encode(),),
        *(json.dumps([[key, signature.upper()]], separators=(",", ":")).encode(),),
        *(json.dumps([[key, signature + " "]], separators=(",", ":")).encode(),),
        *(json.dumps([[key[:2] + " " + key[2:], signature]], separators=(",", ":")).encode(),),
        good.replace(b'"' + key[:1].encode(), b'"\\u%04x' % ord(key[0]), 1),
    ]

    for spelling in spellings:
        assert spelling != good
        with pytest.raises(Edited, match="canonical form"):
            parse_seals(spelling)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"{}",
        b"[",
        b"[[]]",
        b'[["00"]]',
        b'["00","00"]',
        b'[["00","00"]]',
        b'[["' + b"00" * 33 + b'","00"]]',
        b'[["' + b"00" * 32 + b'","0"]]',
        b'[["' + b"00" * 32 + b'","zz"]]',
        b'[["' + b"00" * 32 + b'","00","00"]]',
        b'[["' + b"00" * 32 + b'",["00"]]]',
        b'[[["' + b"00" * 32 + b'","00"]]]',
        b'[["' + b"00" * 32 + b'",1]]',
        b'[["' + b"00" * 32 + b'",null]]',
        b'[{"key":"' + b"00" * 32 + b'"}]',
        b'[["' + b"00" * 32 + b'","00"]][]',
        b"\xff\xfe",
        b'[["\xff","00"]]',
        '[["\u0661\u0661","00"]]'.encode(),
        b"[" * SEALS_BYTES_MAX,
        b"[" * 4000 + b"]" * 4000,
        b'[["' + b"00" * 32 + b'",' + b"[" * 4000 + b"]" * 4000 + b"]]",
    ],
    ids=lambda data: repr(data[:40]),
)
def test_other_bytes_are_refused(data: bytes) -> None:
    """Whatever else lies in the place of seals is an edit, never another error."""
    with pytest.raises(Edited, match="pairs of key id and signature"):
        parse_seals(data)


def test_more_bytes_than_the_bound_are_refused_unread() -> None:
    """The length is checked before anything is parsed: the bytes need not be JSON."""
    with pytest.raises(Edited, match=f"at most {SEALS_BYTES_MAX} bytes"):
        parse_seals(b"x" * (SEALS_BYTES_MAX + 1))
