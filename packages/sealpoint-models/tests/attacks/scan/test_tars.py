# SPDX-License-Identifier: Apache-2.0
"""Tars whose members are other ones to Python's `tarfile`, which unpacks them for most programs.

Each holds pickles that are data, to whoever reads it as these bytes can be read; and Python finds
another pickle in it, or none.
"""

import io
import random
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sealpoint.errors import FormatRefused, SealpointError
from sealpoint_models import load_checkpoint
from sealpoint_models.scan import ScanVerdict, scan_bytes
from sealpoint_models.scan._byte_source import Budget, Source
from sealpoint_models.scan._compressed_streams import tar_members
from tests.pt_files import dictionary, integer, listed, text
from tests.scan.assembler import pickle, tarred

_END = bytes(1024)
_PAYLOAD = b"cos\nsystem\n(Vtouch marker\ntR."
"""By the first protocol, so that it is a text as well."""


def _header(name: bytes, size: int, kind: bytes = b"0", **fields: tuple[int, bytes]) -> bytes:
    """The header of a member; `fields` are other bytes at their places."""
    block = bytearray(512)
    block[: len(name)] = name
    block[100:148] = b"0000644\0" + b"0000000\0" * 2 + b"%011o\0" % size + b"00000000000\0"
    block[148:157] = b" " * 8 + kind
    block[257:265] = b"ustar\00000"
    for at, field in fields.values():
        block[at : at + len(field)] = field
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def _member(name: bytes, data: bytes, kind: bytes = b"0", **fields: tuple[int, bytes]) -> bytes:
    return _header(name, len(data), kind, **fields) + data + bytes(-len(data) % 512)


def _posix(key: bytes, value: bytes, kind: bytes = b"x") -> bytes:
    """A header with one field about the next member, or about all."""
    length = len(key) + len(value) + 3
    length += len(str(length + 1))
    return _member(b"././@PaxHeader", b"%d %s=%s\n" % (length, key, value), kind)


_ABOUT = pickle(dictionary((text("protocol"), integer(2))))
_PARTS = {
    b"about": _ABOUT,
    b"model": pickle(listed(integer(1), integer(2))),
    b"first": pickle(integer(1)),
    b"second": pickle(integer(2)),
}


def _tar(**before: bytes) -> bytes:
    """The honest file, with other bytes before members or instead of them."""
    parts = {name.decode(): _member(name, data) for name, data in _PARTS.items()}
    return b"".join(before.get(f"to_{name}", b"") + before.get(name, parts[name]) for name in parts)


def _behind_a_filled_block() -> bytes:
    """What fills up the block of a header says that the next member is shorter than it is.

    Python finds more members in the rest of it, which is a text to others.
    """
    hidden = _member(b"first", b"I0\n.") + _member(b"second", b"I0\n.")
    hidden += _member(b"model", _PAYLOAD) + _END
    begin = _ABOUT[:-2]
    key = b"a" * (512 - len(begin) - 5) + hidden
    about = begin + b"X" + struct.pack("<L", len(key)) + key + b"K\x01u."
    header = _posix(b"mtime", b"1480000000").rstrip(b"\0") + b"12 size=512\n"
    return _tar(to_about=header.ljust(1024, b"\0"), about=_member(b"about", about))


def _by_two_names() -> bytes:
    named = {name: _posix(b"path", name) for name in _PARTS}
    return _tar(
        about=named[b"model"] + named[b"about"] + _member(b"a", _PARTS[b"about"]),
        model=named[b"about"] + named[b"model"] + _member(b"b", _PARTS[b"model"]),
    )


def _by_one_name_for_all() -> bytes:
    named = {f"to_{name}": _posix(b"path", name.encode()) for name in ("first", "second")}
    return _posix(b"path", b"a", b"g") + _tar(**named)


def _with_model(**fields: tuple[int, bytes]) -> bytes:
    return _tar(model=_member(b"model", _PARTS[b"model"], b"0", **fields))


_TARS: dict[str, Callable[[], bytes]] = {
    "a field behind the end of a header": _behind_a_filled_block,
    "two names of one member": _by_two_names,
    "one name for all members": _by_one_name_for_all,
    "an empty name": lambda: _tar(to_model=_posix(b"path", b"")),
    "a folder of the same name": lambda: _tar() + _member(b"model/", b"", b"5"),
    "a name without a member": lambda: _tar() + _posix(b"path", b"a"),
    "a folder before a name, in the form of GNU": lambda: _with_model(
        magic=(257, b"ustar  \0"), prefix=(345, b"a")
    ),
    "a mode that is no number": lambda: _with_model(mode=(100, b"zzz")),
    "an owner that is no number": lambda: _with_model(owner=(108, b"8")),
    "a device that is no number": lambda: _with_model(device=(329, b"-")),
}


def _as_python_reads(data: bytes) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            for each in tar.getmembers():
                file = tar.extractfile(each)
                found[each.name] = None if file is None else file.read()
    except tarfile.TarError:
        return {}
    return found


def test_the_honest_twin_is_safe() -> None:
    """The builder of these files makes one that everybody reads in the same way."""
    data = _tar() + _END

    assert scan_bytes(data, "m.tar").verdict is ScanVerdict.SAFE
    assert _as_python_reads(data)["model"] == _PARTS[b"model"]


@pytest.mark.parametrize("build", _TARS.values(), ids=_TARS)
def test_a_tar_that_python_reads_in_another_way_is_refused(build: Callable[[], bytes]) -> None:
    """It is not safe: whoever unpacks it with Python loads another pickle."""
    data = build() + _END

    assert _as_python_reads(data).get("model") != _PARTS[b"model"]
    assert scan_bytes(data, "m.tar").is_refused(ScanVerdict.UNREADABLE)


def _changed(rng: random.Random) -> bytes:
    """A tar of a few members, with bytes that were changed and checksums that are right."""
    kinds = (b"0", b"\0", b"5", b"x", b"g", b"L", b"K", b"1", b"7", b"S")
    contents = (
        b"",
        b"a",
        b"b\0",
        b"7 a=b\n",
        b"10 path=z\n",
        b"9 size=1\n",
        bytes(511),
        bytes(512),
    )
    data = b"".join(
        _member(
            rng.choice((b"a", b"b", b"a/", b"./a", b"c" * 100)),
            rng.choice(contents),
            rng.choice(kinds[: rng.choice((1, 2, 6, 10))]),
            **{"": (rng.choice((0, 99, 100, 124, 156, 257, 329, 345, 499)), rng.choice(_FIELDS))},
        )
        for _ in range(rng.randrange(1, 5))
    )
    return data + rng.choice((_END, _END[:512], b"", _END * 9, b"x" * 512 + _END))


_FIELDS = (b"", b"", b"", b"", b"7", b" 1", b"\x80\0\0\0", b"ustar  \0", b"a", b"\0", b"-", b"\x1c")


def test_members_of_any_tar_are_those_that_python_finds() -> None:
    """Whatever is in its headers: we refuse it, or see the same names and bytes."""
    rng = random.Random(1)  # noqa: S311 - the same ones each time
    accepted = 0
    for data in (_changed(rng) for _ in range(1500)):
        try:
            found = list(tar_members(Source.of(data), Budget(len(data)), "a tar"))
        except SealpointError:
            continue
        accepted += 1
        ours = {each.name: each.source.read(0, each.source.size) for each in found}
        theirs = {name: held for name, held in _as_python_reads(data).items() if held is not None}

        assert ours == theirs, data
    assert accepted > 100


def test_a_field_of_a_header_is_there_once() -> None:
    """Whose last or first one counts; and thousands of them in each header take no time."""
    twice = _member(b"a", b"8 uid=1\n8 uid=2\n", b"x")
    report = scan_bytes(twice + _tar() + _END, "m.tar")

    assert [finding.rule for finding in report.findings] == ["archive-irregular"]


@pytest.mark.parametrize(
    "others", [{}, {"sys_info": _ABOUT}, {"notes": b""}], ids=["three", "four", "more"]
)
@pytest.mark.parametrize("name", ["m.pt", "m.pth.tar", "m.tar", "model"])
def test_a_tar_that_torch_wrote_is_not_read(
    name: str, others: dict[str, bytes], tmp_path: Path
) -> None:
    """Whatever its pickle says: no version of torch since 2017 writes it, and no reader here."""
    data = tarred({"pickle": pickle(b"N"), "storages": b"I0\n.(l.", "tensors": b"I0\n."} | others)
    path = tmp_path / name
    path.write_bytes(data)
    report = scan_bytes(data, name)

    assert (report.format, report.verdict) == ("tar", ScanVerdict.UNREADABLE)
    assert [finding.rule for finding in report.findings] == ["format-unknown"]
    with pytest.raises(FormatRefused, match=r"torch wrote before 0\.1\.10") as caught:
        load_checkpoint(path)
    assert "weights_only=False" in str(caught.value.hint)


def test_what_only_python_finds_in_a_tar_can_be_a_payload() -> None:
    """Why it matters: the first of these files would run code, and was data to a scan."""
    found = _as_python_reads(_behind_a_filled_block() + _END)

    assert found["model"] == _PAYLOAD
