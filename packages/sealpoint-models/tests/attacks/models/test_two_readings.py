# SPDX-License-Identifier: Apache-2.0
"""Archives that two readers read differently: a scanner sees one file, torch loads another."""

import struct
from collections.abc import Callable

import pytest

from sealpoint.errors import ModelMalformed
from tests.pt_files import archive, entry, ours, pickled, saved, stock, text

_HONEST = b"\x80\x02" + text("honest") + b"."
_OTHER = b"\x80\x02" + text("other!") + b"."
_NOTES = {"byteorder": b"little", "version": b"3\n"}


def _twice() -> bytes:
    return archive([("data.pkl", _HONEST), ("data.pkl", _OTHER), *_NOTES.items()])


def _in_another_case() -> bytes:
    """Torch compares names without case, and finds the one that comes first in its own order."""
    return archive([("DATA.PKL", _OTHER), ("data.pkl", _HONEST), *_NOTES.items()])


def _another_local_name() -> bytes:
    data = archive({"data.pkl": _HONEST, **_NOTES})
    return data.replace(b"archive/data.pkl", b"archive/other.pk", 1)


def _another_local_size() -> bytes:
    data = bytearray(archive({"data.pkl": _HONEST, **_NOTES}))
    data[22:26] = struct.pack("<L", 3)
    return bytes(data)


def _flags(bits: int) -> Callable[[], bytes]:
    return lambda: archive({"data.pkl": _HONEST, **_NOTES}, changes={"data.pkl": {"flags": bits}})


def _hidden_before_the_directory() -> bytes:
    return archive({"data.pkl": _HONEST, **_NOTES}, gap=_OTHER)


def _hidden_in_the_padding() -> bytes:
    return archive({"data.pkl": _HONEST, **_NOTES}).replace(b"ZZZZ", b"evil", 1)


def _after_the_end() -> bytes:
    return saved("honest") + b"\0"


def _with_a_comment() -> bytes:
    return saved("honest")[:-2] + b"\x04\x00evil"


def _another_count() -> bytes:
    data = bytearray(saved("honest"))
    data[-14:-10] = struct.pack("<2H", 1, 1)
    return bytes(data)


def _overlapping() -> bytes:
    """Two entries for the same bytes."""
    return archive({"data.pkl": _HONEST, **_NOTES}, changes={"version": {"offset": 0}})


def _checksum() -> bytes:
    return archive({"data.pkl": _HONEST, **_NOTES}, changes={"data.pkl": {"crc": 1}})


def _attributes() -> bytes:
    return archive({"data.pkl": _HONEST, **_NOTES}, changes={"data.pkl": {"outer": 0o120777 << 16}})


def _two_folders() -> bytes:
    data = archive({"data.pkl": _HONEST, **_NOTES})
    return data.replace(b"archive/version", b"another/version")


def _record_before_the_first() -> bytes:
    """A record that the directory does not list."""
    first, _ = entry(b"archive/data.pkl", _OTHER, 0)
    return first + archive({"data.pkl": _HONEST, **_NOTES})


_ACCEPTED_BY_TORCH = {
    "a name twice": _twice,
    "a name in another case": _in_another_case,
    "hidden before the directory": _hidden_before_the_directory,
    "hidden in the padding": _hidden_in_the_padding,
    "another local name": _another_local_name,
    "another local size": _another_local_size,
    "another checksum": _checksum,
    "a link by its attributes": _attributes,
    "a comment": _with_a_comment,
    "bytes after the end": _after_the_end,
}
_REFUSED_BY_BOTH = {
    "encrypted": _flags(0x0809),
    "patched": _flags(0x0828),
    "strongly encrypted": _flags(0x0849),
    "another count": _another_count,
    "overlapping": _overlapping,
}
_REFUSED = (
    _ACCEPTED_BY_TORCH
    | _REFUSED_BY_BOTH
    | {
        "two folders": _two_folders,
        "a record that is not listed": _record_before_the_first,
    }
)


@pytest.mark.parametrize("make", _ACCEPTED_BY_TORCH.values(), ids=_ACCEPTED_BY_TORCH)
def test_torch_takes_one_of_the_readings(make: Callable[[], bytes]) -> None:
    """Torch loads each of these, one way or the other."""
    assert stock(make()) in {"honest", "other!"}


@pytest.mark.parametrize("make", _REFUSED.values(), ids=_REFUSED)
def test_archive_with_two_readings_is_refused(make: Callable[[], bytes]) -> None:
    """Every byte of an accepted archive has one meaning."""
    with pytest.raises(ModelMalformed, match=r"^m\.pt: "):
        ours(make())


def test_honest_twin_loads() -> None:
    """The control: the same archive without the second reading loads with both."""
    data = archive({"data.pkl": _HONEST, **_NOTES})

    assert ours(data) == stock(data) == "honest"


_PROGRAMS = {
    "values left on the stack": text("left") + text("honest"),
    "a memo written twice": text("left") + b"q\x00" + b"\x85q\x00" + b"h\x00\x86",
    "another protocol": b"\x80\x02" + text("honest"),
    "an int with a longer form": b"\x8a\x02\x01\x00",
    "zero in a byte": b"\x8a\x01\x00",
}


@pytest.mark.parametrize("program", _PROGRAMS.values(), ids=_PROGRAMS)
def test_pickle_with_two_readings_is_refused(program: bytes) -> None:
    """Torch runs each of these; no pickler writes them."""
    stock(pickled(program))
    with pytest.raises(ModelMalformed, match=r"record 'data\.pkl': expected"):
        ours(pickled(program))


def test_bytes_after_the_pickle_are_refused() -> None:
    """Torch stops at the first end; a second pickle behind it has no place."""
    data = archive({"data.pkl": _HONEST + _OTHER, **_NOTES})

    assert stock(data) == "honest"
    with pytest.raises(ModelMalformed, match="nothing after the end"):
        ours(data)


def test_archive_without_its_version_is_refused() -> None:
    """Every torch wrote one."""
    with pytest.raises(ModelMalformed, match="the record 'version' is missing"):
        ours(archive({"data.pkl": _HONEST, "byteorder": b"little"}))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("byteorder", b"middle"),
        ("version", b"0"),
        ("version", b"99\n"),
        (".format_version", b"2"),
        (".storage_alignment", b"-1"),
        (".storage_alignment", b"9" * 64),
        (".data/serialization_id", b"x" * 64),
    ],
)
def test_note_that_torch_does_not_write_is_refused(name: str, content: bytes) -> None:
    """The small records that torch parses are exactly what it writes."""
    data = archive({"data.pkl": _HONEST, **_NOTES, name: content})

    with pytest.raises(ModelMalformed, match="its bytes are not what torch writes there"):
        ours(data)
