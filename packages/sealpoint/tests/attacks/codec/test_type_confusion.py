# SPDX-License-Identifier: Apache-2.0
"""A tag that was flipped, an unknown tag or a foreign body builds nothing that is not allowed."""

from typing import Any

import pytest

from sealpoint.codec._wire_format import Tag
from sealpoint.errors import DecodeError, UnknownType
from tests.allowed import foreign_types
from tests.application import make_registry
from tests.attacks.codec import samples
from tests.wire import array, extension

REGISTRY = make_registry()
_KNOWN = {int(tag) for tag in Tag}


def _tag_places(data: bytes) -> list[int]:
    """Where the tags of the leading extensions of an encoding, or of its first member, lie."""
    places = []
    for start in range(min(len(data), 4)):
        first = data[start]
        if 0xD4 <= first <= 0xD8:
            places.append(start + 1)
        elif first in (0xC7, 0xC8, 0xC9):
            places.append(start + 1 + {0xC7: 1, 0xC8: 2, 0xC9: 4}[first])
    return [place for place in places if place < len(data)]


def _decodes_to_allowed(data: bytes) -> bool:
    try:
        decoded = REGISTRY.decode(data)
    except DecodeError:
        return True
    return not foreign_types(decoded, REGISTRY)


@pytest.mark.parametrize("tag", [tag for tag in range(256) if tag not in _KNOWN and tag != 255])
def test_an_unknown_extension_is_refused(tag: int) -> None:
    """A tag outside of the closed table is an unknown type, alone and inside of containers."""
    for data in (extension(tag, b"\x90"), b"\x91" + extension(tag, b"")):
        with pytest.raises(UnknownType):
            REGISTRY.decode(data)
    with pytest.raises(UnknownType):
        REGISTRY.decode(extension(6, array(extension(tag, bytes(70_000)))))


@pytest.mark.parametrize("sample", samples.ALL, ids=lambda value: type(value).__name__)
def test_a_flipped_tag_is_refused_or_gives_an_allowed_value(sample: Any) -> None:
    """Every tag of a genuine encoding, replaced with each other tag."""
    for data in (REGISTRY.encode(sample), REGISTRY.encode([sample])):
        for place in _tag_places(data):
            for tag in range(256):
                flipped = data[:place] + bytes((tag,)) + data[place + 1 :]

                assert _decodes_to_allowed(flipped)


@pytest.mark.parametrize("sample", samples.APPLICATION, ids=lambda value: type(value).__name__)
def test_the_body_of_one_type_is_refused_by_every_other(sample: Any) -> None:
    """A head put in front of another type's body gives an error, unless the bodies are alike."""
    body = _body(REGISTRY.encode(sample))

    for rule in REGISTRY.rules:
        if rule.cls is type(sample):
            continue
        try:
            decoded = REGISTRY.decode(extension(1, rule.label + body))
        except DecodeError:
            continue
        assert type(decoded) is rule.cls
        assert not foreign_types(decoded, REGISTRY)


def _body(data: bytes) -> bytes:
    start = {0xC7: 3, 0xC8: 4, 0xC9: 6, 0xD8: 2}[data[0]]
    return data[start + 11 + data[start] :]


@pytest.mark.parametrize("sample", samples.ALL, ids=lambda value: type(value).__name__)
def test_every_single_changed_byte_is_refused_or_gives_an_allowed_value(sample: Any) -> None:
    """Each byte of a genuine encoding with eight other values."""
    data = REGISTRY.encode(sample)

    for place in range(min(len(data), 120)):
        for flip in (0x01, 0x02, 0x10, 0x40, 0x55, 0x7F, 0x80, 0xFF):
            assert _decodes_to_allowed(
                data[:place] + bytes((data[place] ^ flip,)) + data[place + 1 :]
            )


def test_a_reference_outside_of_a_tree_is_refused() -> None:
    """A flat encoding cannot refer to blobs."""
    for data in (extension(2, bytes(46)), array(extension(2, bytes(46)))):
        with pytest.raises(UnknownType, match="reference"):
            REGISTRY.decode(data)


@pytest.mark.parametrize(
    "path",
    [b"\x03C:\\x", b"\x04a", b"\xffa"],
)
def test_a_path_class_that_cannot_be_built_here_is_refused(path: bytes) -> None:
    """A concrete path of the other system is refused, not renamed."""
    with pytest.raises(UnknownType):
        REGISTRY.decode(extension(17, path))


def test_what_decodes_on_its_own_can_be_encoded_again() -> None:
    """A zone of pydantic's class on its own is refused, since no encoder writes one."""
    hostile = extension(24, b"p" + (3_600_000_000).to_bytes(8, "big"))

    try:
        decoded = REGISTRY.decode(hostile)
    except DecodeError:
        return
    assert REGISTRY.encode(decoded)


@pytest.mark.parametrize(
    "extra", [b"\x92\x01\x02", b"\x92\xc0\x02", b"\x92\xc4\x01a\x02"], ids=["int", "None", "bytes"]
)
def test_extra_fields_of_a_model_have_names_that_are_text(extra: bytes) -> None:
    """A model that allows extra fields is not built with extra names that are no strings."""
    rule = next(rule for rule in REGISTRY.rules if rule.name == "app.open")
    body = b"\x94\x81\xa5known\x01\x01" + extension(5, extra) + b"\xc0"

    with pytest.raises(DecodeError):
        REGISTRY.decode(extension(1, rule.label + body))
