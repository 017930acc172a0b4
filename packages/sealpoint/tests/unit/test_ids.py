# SPDX-License-Identifier: Apache-2.0
"""Ids: text and bytes are a round trip, and nothing else is an id."""

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint import ids
from sealpoint.errors import IdMalformed, UsageError
from sealpoint.ids import CheckpointId, Digest, KeyId, ThreadId, namespace_tag

_KINDS: list[Any] = [CheckpointId, Digest, KeyId, ThreadId]
_every_kind = pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.__name__)


def _some(kind: Any) -> Any:
    return kind(bytes(range(0xA0, 0xA0 + kind.size_bytes)))


@given(st.sampled_from(_KINDS), st.data())
def test_an_id_prints_and_parses_back(kind: Any, data: st.DataObject) -> None:
    """Every id is equal to what its text parses to."""
    raw = data.draw(st.binary(min_size=kind.size_bytes, max_size=kind.size_bytes))
    made = kind(raw)

    assert kind.parse(str(made)) == made
    assert kind.parse(str(made)).raw == raw
    assert str(made) == f"{kind.prefix}:{raw.hex()}"
    assert made.short() == raw.hex()[:12]


@given(st.sampled_from(_KINDS), st.text(max_size=90))
def test_a_text_that_parses_prints_back_to_itself(kind: Any, text: str) -> None:
    """Whatever parses is exactly what the id prints."""
    try:
        found = kind.parse(text)
    except IdMalformed:
        return

    assert str(found) == text


@_every_kind
def test_other_spellings_are_refused(kind: Any) -> None:
    """Upper case, spaces, other digits, other lengths and other prefixes are no ids."""
    text = str(_some(kind))
    digits = text.partition(":")[2]
    spellings = [
        *("", ":", digits, text.upper(), kind.prefix + ":" + digits.upper(), " " + text),
        *(text + " ", text + "\n", text[:-1], text + "0", text[:-2], text.replace(":", "::")),
        *(text.replace(":", ": "), text[:-1] + "g", text[:-2] + "  ", text[:-1] + "\u0661"),
        *(text.replace(":", "-"), "0x" + text, text[:-4] + " " + text[-3:], kind.prefix + ":"),
        *(text.replace("a", "A", 1), text + ":" + digits, text.replace(kind.prefix, "md5")),
    ]

    for spelling in spellings:
        if spelling != text:
            with pytest.raises(IdMalformed):
                kind.parse(spelling)


@_every_kind
@pytest.mark.parametrize("other", _KINDS, ids=lambda kind: kind.__name__)
def test_an_id_of_one_kind_is_never_one_of_another(kind: Any, other: Any) -> None:
    """Texts of one kind do not parse as another, and ids of different kinds are never equal."""
    if kind is other:
        return

    with pytest.raises(IdMalformed):
        kind.parse(str(_some(other)))
    assert _some(kind) != _some(other)


@_every_kind
@pytest.mark.parametrize("raw", [b"", bytes(8), bytes(64), "text", None, 7, bytearray(32), [1]])
def test_an_id_is_bytes_of_its_length(kind: Any, raw: Any) -> None:
    """Bytes of another length, and anything that is not bytes, make no id."""
    with pytest.raises(IdMalformed):
        kind(raw)


@_every_kind
def test_ids_are_ordered_hashable_and_frozen(kind: Any) -> None:
    """Ids of a kind sort by their bytes, work as keys, and do not change."""
    low, high = kind(bytes(kind.size_bytes)), _some(kind)

    assert low < high
    assert {low: 1, kind(low.raw): 2} == {low: 2}
    with pytest.raises(AttributeError):
        low.raw = high.raw


def test_digests_and_key_ids_are_sha_256() -> None:
    """A digest and a key id name bytes by their SHA-256."""
    expected = hashlib.sha256(b"data").digest()

    assert Digest.of(b"data").raw == expected
    assert KeyId.of(b"data").raw == expected


def test_random_ids_come_from_the_source_that_is_given() -> None:
    """Randomness is an argument: the same source gives the same id."""
    asked: list[int] = []

    def source(size: int) -> bytes:
        asked.append(size)
        return bytes(size)

    assert ThreadId.draw(source, "a").raw[4:] == bytes(12)
    assert CheckpointId.draw(source) == CheckpointId(bytes(16))
    assert asked == [12, 16]


def test_ids_of_threads_begin_with_the_tag_of_their_namespace() -> None:
    """Threads of one namespace share four bytes that those of another do not have."""
    tags = {name: namespace_tag(name) for name in ("default", "billing", "b\xe4r")}

    assert all(ThreadId.draw(bytes, name).raw[:4] == tag for name, tag in tags.items())
    assert len(set(tags.values())) == 3
    assert tags["default"].hex() == "b8050579"


def test_a_source_that_gives_too_little_is_refused() -> None:
    """A short read of randomness makes no id."""
    with pytest.raises(IdMalformed):
        ThreadId.draw(lambda _: b"short", "default")


def test_malformed_ids_are_usage_errors_that_show_little() -> None:
    """The message says what was expected and shows at most the beginning of what was found."""
    with pytest.raises(UsageError, match="expected sha256: and 64 lower-case") as caught:
        Digest.parse("x" * 5000)

    assert len(caught.value.message) < 200
    assert sorted(ids.__all__) == ids.__all__
