# SPDX-License-Identifier: Apache-2.0
"""A machine that reads a pickle as symbols: it runs the program and calls nothing.

It knows the opcodes that Python's pickler writes in protocol 2 for what torch saves, which are
among those of torch's own restricted unpickler. What it accepts has one reading: a value is named
for later only where it was made and under a new number, and a container that was used is never
changed again. So both machines see the same values, nothing can be inside itself, and sizes are
known when a value is made. Time and memory are linear in the pickle; nothing recurses.

It refuses every other opcode, a stack or a number that does not add up, and bytes after the end.
It leaves to others which names may be called with what.

What it gives is a tree of symbols. None, bool, int, float and str stand for themselves; all else is
one of the classes below. A node knows how many values it holds, counted wherever they are used, and
how deep they are nested, so that a small program for a huge tree is seen before anybody walks it.
After `run_pickle` returned, nobody changes a node.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, Union

from sealpoint.errors import ModelLimitExceeded, ModelMalformed
from sealpoint.limits import MODEL_DEPTH_MAX, MODEL_NODES_MAX, MODEL_PICKLE_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Global:
    """The name of something in a module, never looked up."""

    module: str
    name: str

    def __str__(self) -> str:
        """The dotted name."""
        return f"{self.module}.{self.name}"


class Node:
    """What holds other values."""

    __slots__ = ()
    nodes: int
    """How many values it is, itself included."""
    depth: int
    """How deep it is nested."""


@dataclass(slots=True, eq=False)
class Tuple(Node):
    """A tuple."""

    values: tuple["Value", ...]
    nodes: int
    depth: int


@dataclass(slots=True, eq=False)
class List(Node):
    """A list."""

    values: list["Value"] = field(default_factory=list)
    nodes: int = 1
    depth: int = 1
    sealed: bool = False


@dataclass(slots=True, eq=False)
class Dict(Node):
    """A dict, as the pairs that are put into it one after the other."""

    pairs: list[tuple["Value", "Value"]] = field(default_factory=list)
    nodes: int = 1
    depth: int = 1
    sealed: bool = False


@dataclass(slots=True, eq=False)
class Call(Node):
    """The call of a named function, then pairs put into the result, then a state set on it."""

    function: Global
    arguments: Tuple
    nodes: int
    depth: int
    pairs: list[tuple["Value", "Value"]] = field(default_factory=list)
    state: Union["Value", None] = None
    built: bool = False
    sealed: bool = False


@dataclass(slots=True, eq=False)
class New(Node):
    """An instance of a named class made without its `__init__`, then as for a call."""

    function: Global
    arguments: Tuple
    nodes: int
    depth: int
    pairs: list[tuple["Value", "Value"]] = field(default_factory=list)
    state: Union["Value", None] = None
    built: bool = False
    sealed: bool = False


@dataclass(slots=True, eq=False)
class Persistent(Node):
    """A reference to something beside the pickle: in a `.pt` file, a storage."""

    identity: "Value"
    nodes: int
    depth: int


Value: TypeAlias = (
    bool | int | float | str | Global | Tuple | List | Dict | Call | New | Persistent | None
)


_PROTOCOL = b"\x80\x02"
_STOP = ord(".")
_PUTS = frozenset(b"qr")
# After these the top of the stack is not a new value.
_NOT_MAKERS = _PUTS | frozenset(b"hj(aesub")
_LINE_BYTES_MAX = 512


def run_pickle(data: bytes, what: str) -> Value:
    """Run a pickle of protocol 2 and return the one value it leaves, as symbols.

    Args:
        data: The pickle, all of it.
        what: The file and record, for messages.

    Raises:
        ModelLimitExceeded: More bytes, values or nesting than a model file may have.
        ModelMalformed: It is not such a pickle.
    """
    if len(data) > MODEL_PICKLE_BYTES_MAX:
        raise ModelLimitExceeded(
            f"{what}: expected at most {MODEL_PICKLE_BYTES_MAX} bytes, found {len(data)}"
        )
    if data[:2] != _PROTOCOL:
        found = f"protocol {data[1]}" if data[:1] == b"\x80" and len(data) > 1 else "none"
        raise ModelMalformed(
            f"{what}: expected a pickle of protocol 2, found {found}",
            hint="If it is yours, save it again without pickle_protocol=, or with save_checkpoint.",
        )
    return _Machine(data, what).run()


class _Input:
    """The bytes of one pickle, taken from the first to the last."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._what = what
        self.at = len(_PROTOCOL)

    def fault(self, expected: str) -> ModelMalformed:
        return ModelMalformed(f"{self._what}: expected {expected}, at byte {self.at}")

    def is_at_end(self) -> bool:
        return self.at >= len(self._data)

    def take(self, length: int) -> bytes:
        data = self._data[self.at : self.at + length]
        if len(data) != length:
            raise self.fault(f"{length} bytes more")
        self.at += length
        return data

    def byte(self) -> int:
        if self.at >= len(self._data):
            raise self.fault("1 byte more")
        self.at += 1
        return self._data[self.at - 1]

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "little")

    def line(self) -> str:
        end = self._data.find(b"\n", self.at, self.at + _LINE_BYTES_MAX)
        if end < 0:
            raise self.fault(f"a name of at most {_LINE_BYTES_MAX} bytes")
        try:
            line = self._data[self.at : end].decode("utf-8")
        except UnicodeDecodeError as exc:
            raise self.fault("a name in UTF-8") from exc
        self.at = end + 1
        return line


class _Machine:
    """One run over one pickle."""

    def __init__(self, data: bytes, what: str) -> None:
        self.input = _Input(data, what)
        self._what = what
        self._pushed = 0
        self._stack: list[Value] = []
        self._below: list[list[Value]] = []
        self._memo: dict[int, Value] = {}
        self._globals: dict[tuple[str, str], Global] = {}
        self._made = False

    def run(self) -> Value:
        source = self.input
        while not source.is_at_end():
            opcode = source.byte()
            if opcode == _STOP:
                return self.stop()
            step = _STEPS.get(opcode)
            if step is None:
                raise ModelMalformed(
                    f"{self._what}: expected an opcode of tensors and plain data, "
                    f"found {opcode:#04x} at byte {source.at - 1}"
                )
            step(self)
            self._made = opcode not in _NOT_MAKERS
        raise self.input.fault("the pickle to end with its last opcode")

    # What every step uses.

    def push(self, value: Value) -> None:
        # Each value pushed ends in the result, since nothing is ever dropped.
        self.count()
        self._stack.append(value)

    def count(self) -> None:
        self._pushed += 1
        if self._pushed > MODEL_NODES_MAX:
            raise self.too_many()

    def pop(self) -> Value:
        if not self._stack:
            raise self.input.fault("a value on the stack")
        return self._stack.pop()

    def pop_mark(self) -> list[Value]:
        if not self._below:
            raise self.input.fault("a mark on the stack")
        values, self._stack = self._stack, self._below.pop()
        return values

    def too_many(self) -> ModelLimitExceeded:
        return ModelLimitExceeded(
            f"{self._what}: it has more than {MODEL_NODES_MAX} values, each counted where it is "
            "used"
        )

    def measured(self, values: Sequence[Value], nodes: int = 1) -> tuple[int, int]:
        """Count and depth of something that holds `values`, and has `nodes` already."""
        depth = 0
        nodes += len(values)
        for value in values:
            if isinstance(value, Node):
                nodes += value.nodes - 1
                depth = max(depth, value.depth)
        if nodes > MODEL_NODES_MAX:
            raise self.too_many()
        if depth >= MODEL_DEPTH_MAX:
            raise self.too_deep()
        return nodes, depth + 1

    def too_deep(self) -> ModelLimitExceeded:
        return ModelLimitExceeded(
            f"{self._what}: its values are nested more than {MODEL_DEPTH_MAX} deep"
        )

    def grow(self, target: List | Dict | Call | New, values: Sequence[Value]) -> None:
        if not values:
            # Python writes one after every thousand items; a program of nothing else is too long.
            self.count()
        if target.sealed:
            raise self.input.fault("no change of a container that was used already, and no cycle")
        nodes, depth = self.measured(values, target.nodes)
        target.nodes, target.depth = nodes, max(target.depth, depth)

    # Steps: the end, the memo, and marks.

    def stop(self) -> Value:
        if len(self._stack) != 1 or self._below:
            raise self.input.fault("exactly one value at the end")
        if not self.input.is_at_end():
            raise self.input.fault("nothing after the end")
        return self._stack[0]

    def put(self, index: int) -> None:
        if not self._made or not self._stack:
            raise self.input.fault("a value to be remembered only where it was made")
        if index in self._memo:
            raise self.input.fault("each number to be remembered once")
        self._memo[index] = self._stack[-1]

    def get(self, index: int) -> None:
        if index not in self._memo:
            raise self.input.fault("a value that was remembered")
        value = self._memo[index]
        if isinstance(value, List | Dict | Call | New):
            value.sealed = True
        self.push(value)

    def mark(self) -> None:
        # An open mark is an open container.
        if len(self._below) > MODEL_DEPTH_MAX:
            raise self.too_deep()
        self._below.append(self._stack)
        self._stack = []

    # Steps: scalars and names.

    def long(self) -> None:
        data = self.input.take(self.input.byte())
        value = int.from_bytes(data, "little", signed=True)
        bits = value.bit_length() if value >= 0 else (value + 1).bit_length()
        if len(data) != bits // 8 + 1:
            raise self.input.fault("an int in its shortest form")
        self.push(value)

    def text(self, length_bytes: int) -> None:
        data = self.input.take(self.input.number(length_bytes))
        try:
            self.push(data.decode("utf-8"))
        except UnicodeDecodeError as exc:
            raise self.input.fault("a text in UTF-8") from exc

    def named(self) -> None:
        key = self.input.line(), self.input.line()
        self.push(self._globals.setdefault(key, Global(*key)))

    # Steps: containers.

    def pack(self, values: list[Value]) -> None:
        nodes, depth = self.measured(values)
        self.push(Tuple(tuple(values), nodes, depth))

    def last(self, count: int) -> list[Value]:
        if len(self._stack) < count:
            raise self.input.fault(f"{count} values on the stack")
        values = self._stack[-count:]
        del self._stack[-count:]
        return values

    def append(self, values: list[Value]) -> None:
        target = self._stack[-1] if self._stack else None
        if not isinstance(target, List):
            raise self.input.fault("a list to append to")
        self.grow(target, values)
        target.values += values

    def set(self, values: list[Value]) -> None:
        target = self._stack[-1] if self._stack else None
        if not isinstance(target, Dict | Call | New) or (
            not isinstance(target, Dict) and target.built
        ):
            raise self.input.fault("a dict to put items into")
        if len(values) % 2:
            raise self.input.fault("keys and values in pairs")
        self.grow(target, values)
        target.pairs += zip(values[::2], values[1::2], strict=True)

    def call(self, made: type[Call] | type[New]) -> None:
        arguments, function = self.pop(), self.pop()
        if not isinstance(function, Global) or not isinstance(arguments, Tuple):
            raise self.input.fault("a named function and a tuple of its arguments")
        self.push(made(function, arguments, *self.measured((function, arguments))))

    def build(self) -> None:
        state = self.pop()
        target = self._stack[-1] if self._stack else None
        if not isinstance(target, Call | New) or target.built:
            raise self.input.fault("a state for something that was just made")
        self.grow(target, (state,))
        target.state, target.built = state, True

    def persistent(self) -> None:
        identity = self.pop()
        self.push(Persistent(identity, *self.measured((identity,))))


_STEPS: dict[int, Callable[[_Machine], None]] = {
    ord(opcode): step
    for opcode, step in {
        "(": _Machine.mark,
        "q": lambda m: m.put(m.input.byte()),
        "r": lambda m: m.put(m.input.number(4)),
        "h": lambda m: m.get(m.input.byte()),
        "j": lambda m: m.get(m.input.number(4)),
        "N": lambda m: m.push(None),
        "\x88": lambda m: m.push(value=True),
        "\x89": lambda m: m.push(value=False),
        "K": lambda m: m.push(m.input.byte()),
        "M": lambda m: m.push(m.input.number(2)),
        "J": lambda m: m.push(int.from_bytes(m.input.take(4), "little", signed=True)),
        "\x8a": _Machine.long,
        "G": lambda m: m.push(struct.unpack(">d", m.input.take(8))[0]),
        "X": lambda m: m.text(4),
        "U": lambda m: m.text(1),
        "c": _Machine.named,
        ")": lambda m: m.pack([]),
        "t": lambda m: m.pack(m.pop_mark()),
        "\x85": lambda m: m.pack(m.last(1)),
        "\x86": lambda m: m.pack(m.last(2)),
        "\x87": lambda m: m.pack(m.last(3)),
        "]": lambda m: m.push(List()),
        "}": lambda m: m.push(Dict()),
        "a": lambda m: m.append([m.pop()]),
        "e": lambda m: m.append(m.pop_mark()),
        "s": lambda m: m.set(m.last(2)),
        "u": lambda m: m.set(m.pop_mark()),
        "R": lambda m: m.call(Call),
        "\x81": lambda m: m.call(New),
        "b": _Machine.build,
        "Q": _Machine.persistent,
    }.items()
}
