# SPDX-License-Identifier: Apache-2.0
"""Tars whose members are other ones to Python's `tarfile`, which torch asks for them.

Each holds a file of torch before 0.1.10 that is data, to whoever reads it as these bytes can be
read; and Python finds another pickle in it, or none.
"""

import io
import pickle
import random
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sealpoint.errors import SealpointError
from sealpoint.models import load_checkpoint
from sealpoint.scan import ScanVerdict, scan_bytes
from sealpoint.scan._source import Budget, Source
from sealpoint.scan._streams import tar_members
from tests.pt_files import integer, listed, named, text, tupled
from tests.scan.assembler import tarred
from tests.scan.irregular import framed
from tests.scan.torch_tar import MACHINE, TarParts, TarTensor, reference

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


def _parts() -> dict[bytes, bytes]:
    with tarfile.open(fileobj=io.BytesIO(bytes(TarParts()))) as tar:
        found = {each.name.encode(): tar.extractfile(each) for each in tar.getmembers()}
    return {name: file.read() for name, file in found.items() if file is not None}


def _tar(**before: bytes) -> bytes:
    """The honest file, with other bytes before members or instead of them."""
    parts = {name.decode(): _member(name, data) for name, data in _parts().items()}
    return b"".join(before.get(f"to_{name}", b"") + before.get(name, parts[name]) for name in parts)


def _behind_a_filled_block() -> bytes:
    """What fills up the block of a header says that the next member is shorter than it is.

    Python finds more members in the rest of it, which is a text to others.
    """
    hidden = _member(b"storages", b"I0\n.(l.") + _member(b"tensors", b"I0\n.")
    hidden += _member(b"pickle", _PAYLOAD) + _END
    begin = MACHINE[:-2]
    key = b"a" * (512 - len(begin) - 5) + hidden
    machine = begin + b"X" + struct.pack("<L", len(key)) + key + b"K\x01u."
    header = _posix(b"mtime", b"1480000000").rstrip(b"\0") + b"12 size=512\n"
    return _tar(to_sys_info=header.ljust(1024, b"\0"), sys_info=_member(b"sys_info", machine))


def _by_two_names() -> bytes:
    parts = _parts()
    named = {name: _posix(b"path", name) for name in parts}
    return _tar(
        sys_info=named[b"pickle"] + named[b"sys_info"] + _member(b"a", parts[b"sys_info"]),
        pickle=named[b"sys_info"] + named[b"pickle"] + _member(b"b", parts[b"pickle"]),
    )


def _by_one_name_for_all() -> bytes:
    named = {f"to_{name}": _posix(b"path", name.encode()) for name in ("storages", "tensors")}
    return _posix(b"path", b"a", b"g") + _tar(**named)


def _with_pickle(**fields: tuple[int, bytes]) -> bytes:
    return _tar(pickle=_member(b"pickle", _parts()[b"pickle"], b"0", **fields))


_TARS: dict[str, Callable[[], bytes]] = {
    "a field behind the end of a header": _behind_a_filled_block,
    "two names of one member": _by_two_names,
    "one name for all members": _by_one_name_for_all,
    "an empty name": lambda: _tar(to_pickle=_posix(b"path", b"")),
    "a folder of the same name": lambda: _tar() + _member(b"pickle/", b"", b"5"),
    "a name without a member": lambda: _tar() + _posix(b"path", b"a"),
    "a folder before a name, in the form of GNU": lambda: _with_pickle(
        magic=(257, b"ustar  \0"), prefix=(345, b"a")
    ),
    "a mode that is no number": lambda: _with_pickle(mode=(100, b"zzz")),
    "an owner that is no number": lambda: _with_pickle(owner=(108, b"8")),
    "a device that is no number": lambda: _with_pickle(device=(329, b"-")),
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


def test_the_honest_twin_is_safe(tmp_path: Path) -> None:
    """The builder of these files makes one that everybody reads in the same way."""
    data = _tar() + _END
    path = tmp_path / "m.pt"
    path.write_bytes(data)

    assert scan_bytes(data, "m.pt").verdict is ScanVerdict.SAFE
    assert load_checkpoint(path).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert _as_python_reads(data)["pickle"] == _parts()[b"pickle"]


@pytest.mark.parametrize("build", _TARS.values(), ids=_TARS)
def test_a_tar_that_python_reads_in_another_way_is_refused(
    build: Callable[[], bytes], tmp_path: Path
) -> None:
    """It is not safe, and not loaded: `torch.load` would take another pickle for the value."""
    data = build() + _END
    path = tmp_path / "m.pt"
    path.write_bytes(data)

    assert _as_python_reads(data).get("pickle") != _parts()[b"pickle"]
    assert scan_bytes(data, "m.pt").verdict is not ScanVerdict.SAFE
    with pytest.raises(SealpointError):
        load_checkpoint(path)


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
    report = scan_bytes(twice + _tar() + _END, "m.pt")

    assert [finding.rule for finding in report.findings] == ["archive-irregular"]


def test_files_in_one_archive_share_what_they_may_take() -> None:
    """Each of them is quickly read, and a thousand of them are not."""
    numbers = range(20, 1020)
    each = TarParts(
        value=listed(*map(reference, numbers)),
        tensors=[TarTensor(number, size=(), stride=()) for number in numbers],
    )
    many = tarred({f"{number}.pt": bytes(each) for number in range(10)})

    assert scan_bytes(bytes(each), "m.pt").findings == ()
    assert {finding.rule for finding in scan_bytes(many, "m.tar").findings} == {"limit"}


def test_a_frame_that_reaches_over_its_pickle_is_refused(tmp_path: Path) -> None:
    """Python goes on behind the frame, where elements are to others: a pickle may lie there."""
    hidden = struct.pack("<q", 4) + bytes(4) + b"\x80\x02" + _PAYLOAD
    about = tupled(integer(10), text("cpu"), named("torch", "ByteStorage"))
    entry = framed(about, 8) + struct.pack("<q", len(hidden)) + hidden
    storages = tmp_path / "storages"
    storages.write_bytes(entry.replace(_PAYLOAD, b"N."))
    with storages.open("rb", buffering=0) as file:
        pickle.load(file)
        end = file.tell()
    tensors = b"\x80\x02K\x01." + bytes(
        TarTensor(kind=named("torch", "ByteTensor"), size=(4,), stride=(1,))
    )
    data = _tar(
        storages=_member(b"storages", b"\x80\x02K\x01." + entry + b"\x80\x02]."),
        tensors=_member(b"tensors", tensors),
    )

    assert entry[end:] == hidden
    assert scan_bytes(data + _END, "m.pt").verdict is not ScanVerdict.SAFE


def test_what_only_python_finds_in_a_tar_can_be_a_payload() -> None:
    """Why it matters: the first of these files would run code, and was data to a scan."""
    found = _as_python_reads(_behind_a_filled_block() + _END)

    assert found["pickle"] == _PAYLOAD
