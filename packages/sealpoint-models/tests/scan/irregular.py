# SPDX-License-Identifier: Apache-2.0
"""Files in which every name is known, and something is called as its own type never does it.

Python makes each of these calls: some take memory without end, some give another value than the
bytes say, some read beyond a storage. Here they are bytes, and none is ever unpickled.
"""

import struct
from collections.abc import Iterator

from tests.pt_files import (
    EMPTY,
    call,
    dictionary,
    integer,
    listed,
    named,
    pickled,
    storage,
    tensor,
    text,
    tupled,
)
from tests.scan.assembler import pickle
from tests.scan.malicious import Sample

_HUGE = integer(1 << 62)
_ONE, _LETTER = integer(1), text("a")
_ORDERED_DICT = named("collections", "OrderedDict")
_MADE_EMPTY = (tupled(integer(0)), text("b"))

_CALLS: dict[str, bytes] = {
    "a byte array of a length": call("builtins", "bytearray", _HUGE),
    "bytes of a length": call("builtins", "bytes", _HUGE),
    "a list of a range": call("builtins", "list", call("builtins", "range", _HUGE)),
    "a set of a text": call("builtins", "set", _LETTER),
    "a complex number of a text": call("builtins", "complex", text("1j")),
    "an int of a text": call("builtins", "int", text("9" * 200)),
    "a dict of pairs": call("builtins", "dict", b"]"),
    "a text of a class": call("builtins", "str", named("builtins", "int")),
    "a text in another encoding": call("_codecs", "encode", _LETTER, text("zlib")),
    "a text in no encoding": call("_codecs", "encode", _LETTER),
    "an ordered dict of a text": call("collections", "OrderedDict", text("ab")),
    "an ordered dict with attributes": EMPTY + dictionary((text("move_to_end"), b"N")) + b"b",
    "an ordered dict with slots": EMPTY
    + tupled(b"N", dictionary((text("__class__"), b"N")))
    + b"b",
    "a counter of a text": call("collections", "Counter", text("abc")),
    "a queue of negative length": call("collections", "deque", b"]", integer(-1)),
    "a queue that forgets": call("collections", "deque", listed(_ONE, _ONE), _ONE),
    "a default of a class that is none": call(
        "collections", "defaultdict", named("collections", "Counter")
    ),
    "a default of a result": call("collections", "defaultdict", EMPTY),
    "a namespace with arguments": call("argparse", "Namespace", _LETTER),
    "a namespace with a list": call("argparse", "Namespace") + listed(_ONE) + b"b",
    "a date of texts": call("datetime", "date", _LETTER, _ONE, _ONE),
    "a date out of range": call("datetime", "date", integer(0), _ONE, _ONE),
    "a duration without end": call("datetime", "timedelta", _HUGE, _ONE, _ONE),
    "a decimal of a class": call("decimal", "Decimal", named("builtins", "int")),
    "a fraction over zero": call("fractions", "Fraction", _ONE, integer(0)),
    "an id of no number": named("uuid", "UUID") + b")\x81" + dictionary((_LETTER, b"N")) + b"b",
    "a path of a number": call("pathlib", "PosixPath", _ONE),
    "a size of texts": call("torch", "Size", tupled(_LETTER)),
    "a device that is none": call("torch", "device", text("no such")),
    "a type that is called": call("torch", "float32"),
    "a storage that is called": call("torch", "FloatStorage", _HUGE),
    "a layout that is none": call("torch.serialization", "_get_layout", text("os.system")),
    "a tensor of nothing": call("torch._utils", "_rebuild_tensor_v2"),
    "a tensor of numbers": call("torch._utils", "_rebuild_tensor_v2", *[_ONE] * 6),
    "an array of another class": call(
        "numpy.core.multiarray", "_reconstruct", _ORDERED_DICT, *_MADE_EMPTY
    ),
    "an array without a state": call(
        "numpy.core.multiarray", "_reconstruct", named("numpy", "ndarray"), *_MADE_EMPTY
    ),
    "an array that is called": call("numpy", "ndarray", tupled(_HUGE)),
    "a type of arrays by a text": call("numpy", "dtype", text("O,O")),
    "a number begun as an object": call(
        "copyreg", "_reconstructor", named("builtins", "int"), named("builtins", "object"), b"N"
    ),
    "an object begun of nothing": call("copyreg", "_reconstructor"),
    "a class as a value": _ORDERED_DICT,
    "a function as a value": named("torch._utils", "_rebuild_tensor_v2"),
    "a class as a key": dictionary((_ORDERED_DICT, b"N")),
    "a list as a key": dictionary((b"]", b"N")),
    "a key twice": dictionary((_LETTER, b"N"), (_LETTER, b"N")),
    "a reference to nothing": _LETTER + b"Q",
    "a set of a list that grows then": tupled(
        b"]q\x00", named("builtins", "set") + b"h\x00\x85R", b"h\x00" + _ONE + b"a"
    ),
}

_FLOATS = storage("FloatStorage", "0", 4)
_TENSORS: dict[str, bytes] = {
    "longer than its storage": tensor(_FLOATS, [5], [1]),
    "behind its storage": tensor(_FLOATS, [1], [1], offset=4),
    "before its storage": tensor(_FLOATS, [1], [1], offset=-1),
    "with wide strides": tensor(_FLOATS, [2], [4]),
    "with negative strides": tensor(_FLOATS, [4], [-1], offset=3),
    "that repeats one element without end": tensor(_FLOATS, [1 << 40], [0]),
    "of a storage longer than its record": tensor(storage("FloatStorage", "0", 8), [4], [1]),
    "of a storage of a longer type": tensor(storage("DoubleStorage", "0", 4), [4], [1]),
    "of a storage that is not there": tensor(storage("FloatStorage", "1", 4), [4], [1]),
    "that is not there, for a storage": b"}",
    "of a storage that is of two types": listed(
        tensor(_FLOATS, [4], [1]), tensor(storage("IntStorage", "0", 4), [4], [1])
    ),
}


def irregular_calls() -> Iterator[Sample]:
    """Known names with other arguments than are ever written, as pickles and as files of torch."""
    for label, program in _CALLS.items():
        yield Sample("irregular", label, "m.pkl", pickle(program))
        yield Sample("irregular", f"{label}, of torch", "m.pt", pickled(program))


_HIDING_PLACES: dict[str, tuple[bytes, bytes]] = {
    "dropped": (b"", b"0N"),
    "dropped with a mark": (b"N(N", b"1"),
    "kept in the memo alone": (b"N", b"q\xc80"),
    "as a key of a pair that is replaced": (b"}" + _LETTER, b"s0N"),
    "as the state of a text of a version": (
        named("torch.torch_version", "TorchVersion") + _LETTER + b"\x85\x81",
        b"b",
    ),
    "beside the number of an id": (
        named("uuid", "UUID") + b")\x81}(" + text("int") + _ONE + text("is_safe"),
        b"ub",
    ),
}
_NAMES_ALONE = frozenset({"a class as a value", "a function as a value"})


def hidden_calls() -> Iterator[Sample]:
    """The same, where the result is no part of the value: an unpickler makes each call."""
    for label, program in _CALLS.items():
        for place, (before, after) in _HIDING_PLACES.items():
            # To name something of the table and to drop it does nothing.
            if label not in _NAMES_ALONE:
                hidden = before + program + after
                yield Sample("irregular", f"{label}, {place}", "m.pkl", pickle(hidden))
        yield Sample(
            "irregular", f"{label}, in a number of a stream", "m.pt", _with_number(program)
        )


def _with_number(program: bytes) -> bytes:
    """A stream that does something beside the number of its version."""
    good = stream(tensor(_FLOATS, [4], [1]))
    return good.replace(pickle(b"M\xe9\x03"), pickle(program + b"0M\xe9\x03"), 1)


def irregular_tensors() -> Iterator[Sample]:
    """Tensors that do not fit their storages, in a zip and in a stream of torch before 1.6."""
    elements = bytes(16)
    for label, program in _TENSORS.items():
        held = pickled(program, {"0": elements})
        yield Sample("irregular", f"a tensor {label}", "m.pt", held)
        yield Sample("irregular", f"a tensor {label}, in a stream", "m.pt", stream(program))


def stream(program: bytes, count: int = 4, tail: bytes = b"") -> bytes:
    """A stream as of torch before 1.6, with one storage of so many floats, which are four."""
    # The parts of a reference are of the older form: they end with the metadata of a view.
    program = program.replace(b"tQ", b"NtQ")
    machine = dictionary((text("protocol_version"), b"M\xe9\x03"), (text("little_endian"), b"\x88"))
    head = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + pickle(b"M\xe9\x03") + pickle(machine)
    keys = pickle(listed(text("0")))
    return head + pickle(program) + keys + struct.pack("<q", count) + bytes(16) + tail


def given(data: bytes, *, latin: bool = False) -> bytes:
    """A storage as a pickle has it that `torch.save` did not write: in bytes of its own."""
    held = b"B" + struct.pack("<I", len(data)) + data
    if latin:
        held = call("_codecs", "encode", text(data.decode("latin-1")), text("latin1"))
    return call("torch.storage", "_load_from_bytes", held)


def irregular_storages() -> Iterator[Sample]:
    """Pickles that give torch other bytes than those of one storage, or in another way."""
    load = named("torch.storage", "_load_from_bytes")
    good = stream(_FLOATS)
    held = b"B" + struct.pack("<I", len(good)) + good
    changed = {
        "bytes of no stream": given(b"abc"),
        "bytes of a zip of torch": given(pickled(_FLOATS, {"0": bytes(16)})),
        "bytes of a pickle": given(pickle(b"N")),
        "a text": call("torch.storage", "_load_from_bytes", text("a")),
        "an array of bytes": load + b"\x96" + struct.pack("<Q", len(good)) + good + b"\x85R",
        "a reference": call("torch.storage", "_load_from_bytes", _FLOATS),
        "two arguments": call("torch.storage", "_load_from_bytes", held, b"N"),
        "one text of a wrong encoding": given(good, latin=True).replace(b"latin1", b"latin2"),
        "the same bytes twice": listed(load + held + b"q\x05\x85R", load + b"h\x05\x85R"),
        "an object": load + held + b"\x85\x81",
        "items behind it": given(good) + b"Na",
        "a state": given(good) + b"Nb",
        "a key of a dict": b"}" + given(good) + b"Ns",
        "a reference by its key": listed(given(good), _FLOATS),
        "nothing, but its name": load,
        "nothing that is used": given(good) + b"0N",
        "a tensor": given(stream(tensor(_FLOATS, [4], [1]))),
        "a list of a storage": given(stream(listed(_FLOATS))),
        "plain data": given(stream(b"N")[:-36] + pickle(b"]")),
        "two storages": given(stream(tensor(_FLOATS, [4], [1]) + b"0" + _FLOATS)),
        "a part of a storage": given(stream(stream_part("1", 0, 2))),
        "a call that is dropped": given(stream(EMPTY + b"0" + _FLOATS)),
        "a name that is dropped": given(stream(named("torch", "float32") + b"0" + _FLOATS)),
        "more elements than there are": given(stream(_FLOATS, 1 << 40)),
        "bytes after the storage": given(stream(_FLOATS, 4, b"\0")),
        "too little for its tensor": tensor(given(good), [5], [1]),
        "a storage on no device": given(stream(_FLOATS.replace(b"\3\0\0\0cpu", b"\4\0\0\0meta"))),
    }
    for label, program in changed.items():
        yield Sample("irregular", f"a storage in bytes: {label}", "m.pkl", pickle(program, 5))


def stream_part(key: str, begin: int, count: int) -> bytes:
    """A reference to a part of the storage of a stream."""
    whole = text("storage") + named("torch", "FloatStorage") + text("0") + text("cpu") + integer(4)
    part = tupled(text(key), integer(begin), integer(count))
    return b"(" + whole + part + b"tN0Q"  # it has its view, which `stream` does not put there


def framed(program: bytes, over: int = 0) -> bytes:
    """A pickle of the fourth protocol in one frame, which reaches over so many bytes after it."""
    return b"\x80\x04\x95" + struct.pack("<Q", len(program) + 1 + over) + program + b"."


def _stream_over(hidden: bytes) -> bytes:
    """A stream whose facts about the machine lie in a frame that reaches into the value.

    Python goes on behind that frame if it is longer than what Python reads ahead.
    """
    machine = dictionary((text("protocol_version"), b"M\xe9\x03"), (text("little_endian"), b"\x88"))
    held = b"\x80\x03B" + struct.pack("<L", (1 << 18) + len(hidden)) + bytes(1 << 18)
    head = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + pickle(b"M\xe9\x03")
    return head + framed(machine, len(held)) + held + hidden + b"." + pickle(b"]")


def irregular_streams() -> Iterator[Sample]:
    """Streams of torch before 1.6 whose storages are not what their pickles say."""
    good = tensor(_FLOATS, [4], [1])
    changed = {
        "a value behind a frame that reaches into another": _stream_over(
            pickle(text("other")) + pickle(b"]")
        ),
        "two parts of one key": stream(listed(stream_part("1", 0, 2), stream_part("1", 2, 2))),
        "a part by the key of its storage": stream(stream_part("0", 2, 2)),
        "more elements than there are": stream(good, 1 << 40),
        "fewer elements than there are": stream(good, 2),
        "a negative number of elements": stream(good, -1),
        "bytes after the storages": stream(good, 4, b"\0"),
        "another pickle after the storages": stream(good, 4, pickle(b"N")),
        "no storages": stream(good)[:-24],
        "a storage that is cut off": stream(good)[:-1],
    }
    for label, data in changed.items():
        yield Sample("irregular", label, "m.pth", data)
