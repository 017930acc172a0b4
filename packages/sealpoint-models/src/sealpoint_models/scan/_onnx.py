# SPDX-License-Identifier: Apache-2.0
"""An ONNX model, walked as a protocol buffer, without building it.

A graph of ONNX calls operators of a runtime; it brings no code, unless a runtime compiled a part of
it and saved that, which is not analyzed. Two things refer out of the file: tensors whose elements
are in another file, named by a path, and operators of domains that a runtime has to load from
elsewhere. A path that leads out of the folder is a finding, and the others are notes.

Every message that can hold a node or a tensor is walked, with an explicit stack; each field is
counted, but for long lists of numbers and short texts. A field that ONNX does not define is
malformed, and so is a text or message that is spelled as a number. Of a field that is there twice,
readers of protocol buffers take the last: the entry that names a path has to have its key and its
value once, in this order.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from sealpoint.errors import ModelLimitExceeded
from sealpoint.limits import MODEL_NAME_BYTES_MAX
from sealpoint_models.scan._byte_source import Budget, Cursor, Source
from sealpoint_models.scan._report import ScanFinding
from sealpoint_models.scan._torch_zip import shown

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_DEPTH_MAX = 64
_OWN_DOMAINS = frozenset(
    ["", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft"]
)
_DOMAINS_SHOWN = 20
_COMPILED = "EPContext"
"""The nodes that ONNX Runtime has compiled: bytes for a driver, or a path to them."""
_FIELD_STEPS = 3
_LISTS = (7, 8, 9)
"""Numbers and texts of an attribute: each of them is a field."""
_SHORT_TEXT = b"|".join(rb"\x%02x[\s\S]{%d}" % (length, length) for length in range(128))
_RUN = re.compile(
    rb"(?:\x3d[\s\S]{4}|\x40[\x80-\xff]{0,9}[\x00-\x7f]|\x4a(?:" + _SHORT_TEXT + rb"))++"
)
_RUN_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    """The fields of a message."""

    known: frozenset[int]
    inner: dict[int, str]
    """The fields with messages that are walked."""


def _message(fields: str, inner: str = "") -> _Message:
    walked = {int(each.partition(":")[0]): each.partition(":")[2] for each in inner.split()}
    return _Message(known=frozenset(map(int, fields.split())) | walked.keys(), inner=walked)


_MESSAGES = {
    "model": _message("1 2 3 4 5 6 14 26", "7:graph 8:opset 20:training 25:function"),
    "graph": _message("2 10 11 12 13 14 16", "1:node 5:tensor 15:sparse"),
    "node": _message("1 2 3 4 6 7 8 9 10", "5:attribute"),
    "attribute": _message(
        "1 2 3 4 7 8 9 13 14 15 20 21", "5:tensor 6:graph 10:tensor 11:graph 22:sparse 23:sparse"
    ),
    "tensor": _message("1 2 3 4 5 6 7 8 9 10 11 12 14 16", "13:entry"),
    "sparse": _message("3", "1:tensor 2:tensor"),
    "function": _message("1 4 5 6 8 10 12 13 14", "7:node 9:opset 11:attribute"),
    "training": _message("3 4", "1:graph 2:graph"),
    "opset": _message("1 2"),
    "entry": _message("1 2"),
}
_OPERATOR_FIELDS = {"node": (7, 4), "function": (10, 1)}
"""Where a message keeps the domain and the name of the operator that it calls or defines."""


@dataclass(slots=True)
class _OpenMessage:
    """A message that is being walked."""

    kind: str
    end: int
    texts: dict[int, str] = field(default_factory=dict)
    """The texts of fields with a meaning here."""


def scan_onnx(source: Source, budget: Budget, what: str) -> Iterator[ScanFinding]:
    """Walk a model; yields its references out of the file.

    Raises:
        ModelMalformed: It is not a model of ONNX.
        ModelLimitExceeded: It has more nesting than it may, or the budget is used up.
    """
    cursor = Cursor(source, what)
    walk = _OnnxWalk(cursor, budget)
    yield from walk.run()
    if not walk.has_graph or not walk.has_version:
        raise cursor.fault("a model with a version and a graph")
    if any(name == _COMPILED for _, name in walk.called):
        message = f"a part of the graph is a program for a device, in a node {_COMPILED}"
        yield ScanFinding(rule="holds-code", message=message)
    foreign = sorted({domain for domain, _ in walk.called - walk.defined} - _OWN_DOMAINS)
    for domain in foreign[:_DOMAINS_SHOWN]:
        yield ScanFinding(
            rule="custom-operators",
            message=f"operators of the domain {shown(domain)}, which a runtime has to bring",
        )


class _OnnxWalk:
    """One walk over one model."""

    def __init__(self, cursor: Cursor, budget: Budget) -> None:
        self._cursor = cursor
        self._budget = budget
        self._stack = [_OpenMessage("model", cursor.source.size)]
        self._noted: set[str] = set()
        self.called: set[tuple[str, str]] = set()
        """Domain and name of each operator that a node calls."""
        self.defined: set[tuple[str, str]] = set()
        """Those that the model brings as functions of other operators."""
        self.has_graph = False
        self.has_version = False

    def run(self) -> Iterator[ScanFinding]:
        cursor = self._cursor
        while self._stack:
            message = self._stack[-1]
            if cursor.at == message.end:
                self._close(self._stack.pop())
                continue
            self._budget.step(_FIELD_STEPS, cursor.what)
            at = cursor.at
            tag = self._varint()
            number, wire = tag >> 3, tag & 7
            if number not in _MESSAGES[message.kind].known:
                raise cursor.fault(f"a field of {message.kind} that ONNX has, found {number}")
            length = self._length(wire, message.end)
            if wire == _BYTES:
                yield from self._bytes(message, number, length, at)
            elif _is_text(message.kind, number):
                raise cursor.fault(f"bytes in field {number} of {message.kind}, found a number")
            else:
                self.has_version |= (message.kind, number) == ("model", 1)
            if message.kind == "attribute" and number in _LISTS:
                self._skip_list(message.end)

    def _skip_list(self, end: int) -> None:
        """Skip the rest of a list: those of a forest of decisions have millions."""
        cursor = self._cursor
        while run := _RUN.match(cursor.source.read(cursor.at, min(end - cursor.at, _RUN_BYTES))):
            cursor.skip(run.end())

    def _close(self, message: _OpenMessage) -> None:
        """Record the operator that a node calls, or that a function defines."""
        if message.kind in _OPERATOR_FIELDS:
            domain, name = (message.texts.get(each, "") for each in _OPERATOR_FIELDS[message.kind])
            (self.called if message.kind == "node" else self.defined).add((domain, name))

    def _length(self, wire: int, end: int) -> int:
        """Skip a number, or return the length of the bytes that follow."""
        length = 0
        if wire == _VARINT:
            self._varint()
        elif wire in {_EIGHT, _FOUR}:
            self._cursor.skip(8 if wire == _EIGHT else 4)
        elif wire == _BYTES:
            length = self._varint()
        else:
            raise self._cursor.fault(f"a wire type of protocol buffers, found {wire}")
        if self._cursor.at + length > end:
            raise self._cursor.fault("a field that ends inside of its message")
        return length

    def _bytes(
        self, message: _OpenMessage, number: int, length: int, at: int
    ) -> Iterator[ScanFinding]:
        inner = _MESSAGES[message.kind].inner.get(number)
        if inner is not None:
            if len(self._stack) > _DEPTH_MAX:
                raise ModelLimitExceeded(
                    f"{self._cursor.what}: expected graphs nested at most {_DEPTH_MAX} deep"
                )
            self._stack.append(_OpenMessage(inner, self._cursor.at + length))
            self.has_graph |= (message.kind, inner) == ("model", "graph")
        elif message.kind == "entry":
            yield from self._entry(message, number, length, at)
        elif number in _OPERATOR_FIELDS.get(message.kind, ()):
            message.texts[number] = self._text(length)
        else:
            self._cursor.skip(length)

    def _entry(
        self, entry: _OpenMessage, number: int, length: int, at: int
    ) -> Iterator[ScanFinding]:
        if len(entry.texts) != number - 1:
            raise self._cursor.fault("an entry of one key and then one value")
        entry.texts[number] = self._text(length)
        if number == 2 and entry.texts[1] == "location":
            yield from self._location(entry.texts[2], at)

    def _location(self, path: str, at: int) -> Iterator[ScanFinding]:
        if path in self._noted:
            return
        self._noted.add(path)
        if leaves_folder(path):
            message = f"the elements of a tensor are taken from {shown(path)}"
            yield ScanFinding(rule="path-escapes", message=message, offset=at)
        else:
            message = f"the elements of tensors are in {shown(path)}, in the same folder"
            yield ScanFinding(rule="external-data", message=message, offset=at)

    def _text(self, length: int) -> str:
        if length > MODEL_NAME_BYTES_MAX:
            raise self._cursor.fault(f"a name of at most {MODEL_NAME_BYTES_MAX} bytes")
        try:
            return self._cursor.take(length).decode("utf-8")
        except UnicodeDecodeError as exc:
            raise self._cursor.fault("a name in UTF-8") from exc

    def _varint(self) -> int:
        value = self._cursor.take(1)[0]
        if value < 0x80:
            return value
        value &= 0x7F
        for shift in range(7, 70, 7):
            byte = self._cursor.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise self._cursor.fault("a number of at most 64 bits")


def _is_text(message: str, number: int) -> bool:
    """Whether a field that is a text or a message has a meaning here."""
    inner = number in _MESSAGES[message].inner
    return inner or message == "entry" or number in _OPERATOR_FIELDS.get(message, ())


def leaves_folder(path: str) -> bool:
    """Whether a path leads out of the folder that it is relative to, on any system."""
    parts = path.replace("\\", "/").split("/")
    # To ONNX Runtime, a path that begins with a star is an address of its own memory.
    return parts[0] in {"", "*"} or ".." in parts or ":" in parts[0] or "\x00" in path


def is_saved_model(head: bytes) -> bool:
    """Whether bytes begin as a TensorFlow SavedModel: version 1, then a graph with its metadata."""
    return head[:3] == b"\x08\x01\x12" and b"\x0a" in head[4:10]
