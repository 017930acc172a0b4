# SPDX-License-Identifier: Apache-2.0
"""A machine that reads a pickle as symbols: it runs the program and calls nothing.

It knows two dialects, and a caller says which: `TORCH_PICKLE`, the opcodes that Python's pickler
writes in protocol 2 for what torch saves, which are among those of torch's own restricted
unpickler; and `OBJECT_PICKLE`, what it writes in protocol 5 for objects. What it accepts has one
reading: a value is named for later only where it was made and under a new number, and a container
that was used is never changed again. So both machines see the same values, nothing can be inside
itself, and sizes are known when a value is made. Time and memory are linear in the pickle; nothing
recurses.

It refuses every other opcode, a stack or a number that does not add up, and bytes after the end.
It leaves to others which names may be called with what.

What it gives is a tree of symbols. None, bool, int, float, str and byte strings stand for
themselves; all else is one of the classes below. A node knows how many values it holds, counted
wherever they are used, and how deep they are nested, so that a small program for a huge tree is
seen before anybody walks it. After `run_pickle` returned, nobody changes a node.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, Union

from sealpoint.errors import FileRefused, ModelLimitExceeded, ModelMalformed, SealpointError
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
class Set(Node):
    """A set, as the members that are put into it one after the other, or a frozenset."""

    values: list["Value"] = field(default_factory=list)
    nodes: int = 1
    depth: int = 1
    frozen: bool = False
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
    """The call of a named function, then items put into the result, then a state set on it."""

    function: Global
    arguments: Tuple
    nodes: int
    depth: int
    pairs: list[tuple["Value", "Value"]] = field(default_factory=list)
    values: list["Value"] = field(default_factory=list)
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
    values: list["Value"] = field(default_factory=list)
    state: Union["Value", None] = None
    built: bool = False
    sealed: bool = False


@dataclass(slots=True, eq=False)
class Persistent(Node):
    """A reference to something beside the pickle: in a `.pt` file, a storage."""

    identity: "Value"
    nodes: int
    depth: int


Scalar: TypeAlias = bool | int | float | str | bytes | bytearray | None
Value: TypeAlias = Scalar | Global | Tuple | List | Set | Dict | Call | New | Persistent

_PROTO = b"\x80"
_STOP = ord(".")
_FRAME = 0x95
# After these the top of the stack is not a new value.
_NOT_MAKERS = frozenset(b"qr\x94hj(aesub\x90")
_LINE_BYTES_MAX = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Which pickles a machine takes, and how it refuses all others."""

    protocol: int
    words: str
    """What its opcodes are for."""
    steps: Mapping[int, Callable[["_Machine"], None]] = field(repr=False)
    malformed: type[SealpointError]
    exceeded: type[SealpointError]
    hint: str | None
    """What to do with a pickle of another protocol."""


def run_pickle(data: bytes, what: str, dialect: Dialect) -> Value:
    """Run a pickle and return the one value it leaves, as symbols.

    Args:
        data: The pickle, all of it.
        what: The file and record, for messages.
        dialect: Which pickles are taken.

    Raises:
        SealpointError: It is not such a pickle, or has more bytes, values or nesting than it may
            have; the dialect says of which class the error is.
    """
    if len(data) > MODEL_PICKLE_BYTES_MAX:
        raise dialect.exceeded(
            f"{what}: expected at most {MODEL_PICKLE_BYTES_MAX} bytes, found {len(data)}"
        )
    if data[:2] != _PROTO + bytes((dialect.protocol,)):
        found = f"protocol {data[1]}" if data[:1] == _PROTO and len(data) > 1 else "none"
        raise dialect.malformed(
            f"{what}: expected a pickle of protocol {dialect.protocol}, found {found}",
            hint=dialect.hint,
        )
    return _Machine(data, what, dialect).run()


class _Input:
    """The bytes of one pickle, taken from the first to the last."""

    def __init__(self, data: bytes, what: str, dialect: Dialect) -> None:
        self._data = data
        self._what = what
        self._dialect = dialect
        self.at = 2  # after the opcode of the protocol

    def fault(self, expected: str) -> SealpointError:
        return self._dialect.malformed(f"{self._what}: expected {expected}, at byte {self.at}")

    def is_at_end(self) -> bool:
        return self.at >= len(self._data)

    def has(self, length: int) -> bool:
        return length <= len(self._data) - self.at

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

    def __init__(self, data: bytes, what: str, dialect: Dialect) -> None:
        self.input = _Input(data, what, dialect)
        self._what = what
        self._dialect = dialect
        self._pushed = 0
        self._stack: list[Value] = []
        self._below: list[list[Value]] = []
        self._memo: dict[int, Value] = {}
        self._globals: dict[tuple[str, str], Global] = {}
        self._made = False

    def run(self) -> Value:
        source, dialect = self.input, self._dialect
        steps = dialect.steps
        while not source.is_at_end():
            opcode = source.byte()
            if opcode == _STOP:
                return self.stop()
            step = steps.get(opcode)
            if step is None:
                raise dialect.malformed(
                    f"{self._what}: expected an opcode of {dialect.words}, "
                    f"found {opcode:#04x} at byte {source.at - 1}"
                )
            step(self)
            if opcode != _FRAME:  # one may begin between a long text and its number
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

    def too_many(self) -> SealpointError:
        return self._dialect.exceeded(
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

    def too_deep(self) -> SealpointError:
        return self._dialect.exceeded(
            f"{self._what}: its values are nested more than {MODEL_DEPTH_MAX} deep"
        )

    def grow(self, target: List | Set | Dict | Call | New, values: Sequence[Value]) -> None:
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

    def put(self, index: int | None = None) -> None:
        index = len(self._memo) if index is None else index
        if not self._made or not self._stack:
            raise self.input.fault("a value to be remembered only where it was made")
        if index in self._memo:
            raise self.input.fault("each number to be remembered once")
        self._memo[index] = self._stack[-1]

    def get(self, index: int) -> None:
        if index not in self._memo:
            raise self.input.fault("a value that was remembered")
        value = self._memo[index]
        if isinstance(value, List | Set | Dict | Call | New):
            value.sealed = True
        self.push(value)

    def mark(self) -> None:
        # An open mark is an open container.
        if len(self._below) > MODEL_DEPTH_MAX:
            raise self.too_deep()
        self._below.append(self._stack)
        self._stack = []

    # Steps: scalars and names.

    def long(self, length_bytes: int = 1) -> None:
        data = self.input.take(self.input.number(length_bytes))
        value = int.from_bytes(data, "little", signed=True)
        bits = value.bit_length() if value >= 0 else (value + 1).bit_length()
        if len(data) != bits // 8 + 1:
            raise self.input.fault("an int in its shortest form")
        self.push(value)

    def text(self, length_bytes: int, errors: str = "strict") -> None:
        data = self.input.take(self.input.number(length_bytes))
        try:
            self.push(data.decode("utf-8", errors))
        except UnicodeDecodeError as exc:
            raise self.input.fault("a text in UTF-8") from exc

    def named(self, module: str, name: str) -> None:
        key = module, name
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

    def append(self, values: list[Value], targets: tuple[type, ...] = (List,)) -> None:
        target = self._stack[-1] if self._stack else None
        if not isinstance(target, List | Set | Call | New) or not isinstance(target, targets):
            raise self.input.fault("something to append to")
        if isinstance(target, Call | New) and target.built:
            raise self.input.fault("nothing to be appended after a state")
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


def _frame(machine: _Machine) -> None:
    length = machine.input.number(8)
    if not machine.input.has(length):
        raise machine.input.fault(f"a frame of {length} bytes")


def _named_on_stack(machine: _Machine) -> None:
    name, module = machine.pop(), machine.pop()
    if type(name) is not str or type(module) is not str:
        raise machine.input.fault("the texts of a module and a name")
    if max(len(name), len(module)) > _LINE_BYTES_MAX:
        raise machine.input.fault(f"a name of at most {_LINE_BYTES_MAX} characters")
    machine.named(module, name)


def _freeze(machine: _Machine) -> None:
    values = machine.pop_mark()
    nodes, depth = machine.measured(values)
    machine.push(Set(values, nodes, depth, frozen=True, sealed=True))


_APPENDED = (List, Call, New)
_SURROGATES = "surrogatepass"  # Python's pickler writes half of a surrogate pair, too
_Steps = dict[str, Callable[[_Machine], None]]

# Of both dialects.
_SHARED: _Steps = {
    "(": _Machine.mark,
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
    ")": lambda m: m.pack([]),
    "t": lambda m: m.pack(m.pop_mark()),
    "\x85": lambda m: m.pack(m.last(1)),
    "\x86": lambda m: m.pack(m.last(2)),
    "\x87": lambda m: m.pack(m.last(3)),
    "]": lambda m: m.push(List()),
    "}": lambda m: m.push(Dict()),
    "s": lambda m: m.set(m.last(2)),
    "u": lambda m: m.set(m.pop_mark()),
    "R": lambda m: m.call(Call),
    "\x81": lambda m: m.call(New),
    "b": _Machine.build,
}
_TORCH: _Steps = {
    "q": lambda m: m.put(m.input.byte()),
    "r": lambda m: m.put(m.input.number(4)),
    "X": lambda m: m.text(4),
    "U": lambda m: m.text(1),
    "c": lambda m: m.named(m.input.line(), m.input.line()),
    "a": lambda m: m.append([m.pop()]),
    "e": lambda m: m.append(m.pop_mark()),
    "Q": _Machine.persistent,
}
_OBJECTS: _Steps = {
    "\x95": _frame,
    "\x94": lambda m: m.put(),
    "\x8b": lambda m: m.long(4),
    "\x8c": lambda m: m.text(1, _SURROGATES),
    "X": lambda m: m.text(4, _SURROGATES),
    "\x8d": lambda m: m.text(8, _SURROGATES),
    "C": lambda m: m.push(m.input.take(m.input.byte())),
    "B": lambda m: m.push(m.input.take(m.input.number(4))),
    "\x8e": lambda m: m.push(m.input.take(m.input.number(8))),
    "\x96": lambda m: m.push(bytearray(m.input.take(m.input.number(8)))),
    "\x93": _named_on_stack,
    "a": lambda m: m.append([m.pop()], _APPENDED),
    "e": lambda m: m.append(m.pop_mark(), _APPENDED),
    "\x8f": lambda m: m.push(Set()),
    "\x90": lambda m: m.append(m.pop_mark(), (Set,)),
    "\x91": _freeze,
}


def _steps(own: _Steps) -> dict[int, Callable[[_Machine], None]]:
    return {ord(opcode): step for opcode, step in (_SHARED | own).items()}


TORCH_PICKLE = Dialect(
    protocol=2,
    words="tensors and plain data",
    steps=_steps(_TORCH),
    malformed=ModelMalformed,
    exceeded=ModelLimitExceeded,
    hint="If it is yours, save it again without pickle_protocol=, or with save_checkpoint.",
)
"""What torch writes."""

OBJECT_PICKLE = Dialect(
    protocol=5,
    words="plain data and objects",
    steps=_steps(_OBJECTS),
    malformed=FileRefused,
    exceeded=FileRefused,
    hint=None,
)
"""What Python's pickler writes for an object, by its highest protocol."""
