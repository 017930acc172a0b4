# SPDX-License-Identifier: Apache-2.0
"""The machine of a pickle program: a stack, marks, a memo, names and calls, as symbols.

It guarantees that nothing is looked up or called, that every name and every call is kept with its
place, and that time and memory are linear in the pickle. Its callers bring the table of opcodes:
`_pickle_reader.py` says what is refused.
"""

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TypeAlias

from sealpoint.errors import SealpointError
from sealpoint.limits import (
    MODEL_PICKLE_BYTES_MAX,
    MODEL_SYMBOLS_BYTES_LEAST,
    MODEL_SYMBOLS_BYTES_MAX,
)
from sealpoint_models.scan._pickle_symbols import (
    Call,
    Dict,
    Global,
    List,
    Made,
    Mentions,
    New,
    Node,
    Persistent,
    Program,
    Set,
    Tuple,
    Value,
)

FRAME = 0x95
_STOP = 0x2E
_LONG_TEXT_BYTES = 64
_COPIED_BYTES_LEAST = 32 << 20

_GETS = frozenset(b"ghj")
_PUTS = frozenset(b"pqr\x94")
_GROWS = frozenset(b"aesub\x90")
# After these the top of the stack is not a new value.
_NOT_MAKERS = _GETS | _PUTS | _GROWS | frozenset(b"(")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The accepted pickles, and the errors for all others."""

    protocol: int | None = None
    """The only accepted one; None: any."""
    words: str
    """The purpose of its opcodes, for messages."""
    opcodes: frozenset[int] = field(repr=False)
    habits: bool
    """Whether a value is memoized only where it was created, and nothing changes after its use:
    Python's pickler writes this form for values that do not contain themselves.
    """
    malformed: type[SealpointError]
    exceeded: type[SealpointError]
    hint: str | None = None
    """The hint for a pickle of another protocol."""


Skip: TypeAlias = Callable[[Made, int], int]
"""Takes the object that got a state, and the position after it; returns the next position."""


@dataclass(slots=True)
class Work:
    """The budget of all pickles of one file, in memory and in time.

    A small file cannot use much, however often it repeats the same data.
    """

    file_bytes: int
    left: int
    copies_left: int = _COPIED_BYTES_LEAST
    """The bytes that may be copied from texts and bytes, in addition to each pickle's own size."""

    @classmethod
    def of(cls, file_bytes: int) -> "Work":
        """The budget of a file of this size."""
        by_size = MODEL_SYMBOLS_BYTES_LEAST + file_bytes
        return cls(file_bytes, min(by_size, MODEL_SYMBOLS_BYTES_MAX))

    def fault(self, what: str) -> str:
        """The message about a file that exceeds its budget."""
        return (
            f"{what}: it has more values and calls than a file of {self.file_bytes} bytes may have"
        )


class Machine:
    """One run over one pickle.

    A step gets the position after its opcode and returns the position of the next one. It need not
    check that its argument is complete: the loop sees that the next opcode would be beyond the end.
    """

    def __init__(
        self,
        data: bytes,
        what: str,
        dialect: Dialect,
        mentions: Mentions,
        *,
        table: Sequence["Step | None"],
        costs: Sequence[int],
        work: Work | None,
    ) -> None:
        self.data = data
        self._steps = table
        self._costs = costs
        self._what = what
        self.dialect = dialect
        self.mentions = mentions
        self.stack: list[Value] = []
        self.below: list[list[Value]] = []
        self.memo: list[Value | object] = []
        self.holes = 0
        self.globals: dict[tuple[str, str], Global] = {}
        self._work = Work.of(len(data)) if work is None else work
        # The approximate memory of the symbols, which may grow with the file and not beyond.
        self.room = self._work.left
        self.acts: list[Call | New | Persistent | Dict | Set] = []
        """Calls, references and tables, in order: dropping one from the stack does not undo it."""
        self.texts: list[str | bytes | bytearray] = []
        self._made = False
        self._used: set[int] = set()
        self.skip: Skip | None = None
        self._frame_end = 0
        self._resumed = -1

    def fault(self, expected: str, at: int) -> SealpointError:
        return self.dialect.malformed(f"{self._what}: expected {expected}, at byte {at}")

    def run(self, at: int, size: int) -> Program:
        """Run from a position up to the end of a pickle, which is before `size`."""
        data, habits = self.data, self.dialect.habits
        steps, costs = self._steps, self._costs
        spent, end = 0, size
        try:
            while True:
                if at >= end:
                    end = self._next_end(at, end, size)
                opcode = data[at]
                spent += costs[opcode]
                if spent > self.room:
                    raise self.exceeded()
                step = steps[opcode]
                if step is not None:
                    at = step(self, at + 1)
                    if habits:
                        self._check_habits(opcode, at)
                elif opcode == _STOP:
                    return self._stop(at + 1)
                elif opcode == FRAME and opcode in self.dialect.opcodes:
                    at, end = self._frame(at + 1, end, size)
                else:
                    raise self.dialect.malformed(
                        f"{self._what}: expected an opcode of {self.dialect.words}, "
                        f"found {opcode:#04x} at byte {at}"
                    )
        except (IndexError, struct.error) as exc:
            raise self.fault("enough values on the stack, and bytes in the pickle", at) from exc
        finally:
            self._work.left = self.room - spent

    def exceeded(self) -> SealpointError:
        return self.dialect.exceeded(self._work.fault(self._what))

    # Frames and the end. Python's unpicklers differ in what they do at the end of a frame: here
    # each opcode with its argument is inside of one frame, or of none.

    def _next_end(self, at: int, end: int, size: int) -> int:
        if at not in (end, self._resumed):
            raise self.fault("each argument to end inside of its frame and the pickle", at)
        if end == size:
            raise self.fault("the pickle to end with its last opcode", at)
        return size

    def _frame(self, at: int, end: int, size: int) -> tuple[int, int]:
        length = int.from_bytes(self.data[at : at + 8], "little")
        if at + 8 > end or at <= self._frame_end:
            raise self.fault("no frame inside of a frame", at)
        if length > size - at - 8:
            raise self.fault(f"a frame of {length} bytes", at)
        self._frame_end = at + 8 + length
        return at + 8, at + 8 + length if length else end

    def after_build(self, made: Made, at: int) -> int:
        """The next position after a state was set: `skip` may leave bytes out.

        A reader that takes bytes from the file does so after the current frame, so that this is
        only possible where a frame ends, or outside of frames.
        """
        if self.skip is None:
            return at
        left = self._work.left
        after = self.skip(made, at)
        self.room -= left - self._work.left  # what lies there may be a pickle itself
        if after != at:
            if at < self._frame_end:
                raise self.fault("bytes next to a pickle to begin where a frame ends", at)
            self._resumed = after
        return after

    def _stop(self, at: int) -> Program:
        if len(self.stack) != 1 or self.below:
            raise self.fault("exactly one value at the end", at)
        # Python's unpickler either loses the rest of a frame, or the next pickle of the file begins
        # there: that depends on the reader of the file.
        if at < self._frame_end:
            raise self.fault("the last frame to end with the pickle", at)
        return Program(value=self.stack[0], end=at, mentions=self.mentions)

    def _check_habits(self, opcode: int, at: int) -> None:
        """Refuse forms that Python's pickler does not write: see `Dialect.habits`."""
        if opcode in _PUTS:
            if not self._made:
                raise self.fault("a value to be remembered only where it was made", at)
        elif opcode in _GETS:
            if isinstance(self.stack[-1], Node | Made):
                self._used.add(id(self.stack[-1]))
        elif opcode in _GROWS and id(self.stack[-1]) in self._used:
            raise self.fault("no change of a container that was used already, and no cycle", at)
        self._made = opcode not in _NOT_MAKERS

    # Arguments.

    def line(self, at: int, most: int = MODEL_PICKLE_BYTES_MAX) -> tuple[bytes, int]:
        """The bytes up to the end of a line, and the place after it."""
        end = self.data.find(b"\n", at, at + most)
        if end < 0:
            raise self.fault(f"a line of at most {most} bytes", at)
        self._take_long(end - at)
        return self.data[at:end], end + 1

    def content(self, at: int, length_bytes: int) -> tuple[bytes, int]:
        """The bytes after their length, and the position after them."""
        begin = at + length_bytes
        end = begin + int.from_bytes(self.data[at:begin], "little")
        self._take_long(end - begin)
        return self.data[begin:end], end

    def _take_long(self, size: int) -> None:
        if size > _LONG_TEXT_BYTES:
            self.room -= size

    def decoded(self, data: bytes, at: int, errors: str = "strict") -> str:
        try:
            text = data.decode("utf-8", errors)
        except UnicodeDecodeError as exc:
            raise self.fault("a text in UTF-8", at) from exc
        if len(data) > _LONG_TEXT_BYTES and not text.isascii():
            self.room -= 3 * len(data)
        return text

    # The stack.

    def marked(self) -> list[Value]:
        """The values above the last mark, which are removed with it."""
        values = self.stack
        self.stack = self.below.pop()
        return values

    def last(self, count: int) -> list[Value]:
        """The topmost values, which are removed."""
        values = self.stack[-count:]
        if len(values) != count:
            raise IndexError
        del self.stack[-count:]
        return values


Step: TypeAlias = Callable[[Machine, int], int]


# The steps on the stack, the memo, names, containers and calls.

_LINE_BYTES_MAX = 512
_INDEX = re.compile(rb"0|[1-9][0-9]{0,9}")
_EXTENSION_MAX = (1 << 31) - 1
_PAIR_BYTES = 192
_MEMBER_BYTES = 112
_ITEMS_BYTES = 512
"""The cost of the first item that is put into the result of a call."""
_ARGUMENTS_BYTES = 640
"""The cost of a call with arguments, in addition to that of each call."""
_UINT4 = struct.Struct("<I")
_HOLE = object()
_HOLE_BYTES = 64

UNNAMED = Global("", "a value other than a name")
"""The callee where a pickle calls the result of another call, or sets a state on a name."""


def mark(machine: Machine, at: int) -> int:
    machine.below.append(machine.stack)
    machine.stack = []
    return at


def pop(machine: Machine, at: int) -> int:
    if machine.stack:
        machine.stack.pop()
    else:
        machine.stack = machine.below.pop()
    return at


def pop_mark(machine: Machine, at: int) -> int:
    machine.marked()
    return at


def duplicate(machine: Machine, at: int) -> int:
    machine.stack.append(machine.stack[-1])
    return at


# The memo.


def put(machine: Machine, index: int, at: int) -> int:
    value = machine.stack[-1]
    memo = machine.memo
    gap = index - len(memo)
    if gap < 0:
        if memo[index] is not _HOLE:
            raise machine.fault("each number to be remembered once", at)
        memo[index] = value
        machine.holes -= 1
        return at
    if gap:
        # An unpickler allocates room up to the number; so does this, from its budget.
        machine.room -= _HOLE_BYTES * gap
        if machine.room < 0:
            raise machine.exceeded()
        memo.extend(repeat(_HOLE, gap))
        machine.holes += gap
    memo.append(value)
    return at


def memoize(machine: Machine, at: int) -> int:
    if machine.holes:
        raise machine.fault("values to be remembered by number, or in order, not both", at)
    machine.memo.append(machine.stack[-1])
    return at


def get(machine: Machine, index: int, at: int) -> int:
    memo = machine.memo
    if index < len(memo) and (value := memo[index]) is not _HOLE:
        machine.stack.append(value)  # type: ignore[arg-type]
        return at
    raise machine.fault("a value that was remembered", at)


def get_byte(machine: Machine, at: int) -> int:
    return get(machine, machine.data[at], at + 1)


def get_long(machine: Machine, at: int) -> int:
    return get(machine, _UINT4.unpack_from(machine.data, at)[0], at + 4)


def put_byte(machine: Machine, at: int) -> int:
    return put(machine, machine.data[at], at + 1)


def put_long(machine: Machine, at: int) -> int:
    index = _UINT4.unpack_from(machine.data, at)[0]
    memo = machine.memo
    if index == len(memo):  # as picklers count
        memo.append(machine.stack[-1])
        return at + 4
    return put(machine, index, at + 4)


def read_index(machine: Machine, at: int) -> tuple[int, int]:
    line, after = machine.line(at, 16)
    if not _INDEX.fullmatch(line):
        raise machine.fault("a number in digits", at)
    return int(line), after


# Names.


def named(machine: Machine, module: str, name: str, at: int) -> None:
    key = module, name
    found = machine.globals.get(key)
    if found is None:
        found = machine.globals[key] = Global(*key)
        machine.mentions.names[found] = at
    machine.stack.append(found)


def global_lines(machine: Machine, at: int) -> int:
    module, after = machine.line(at, _LINE_BYTES_MAX)
    name, after = machine.line(after, _LINE_BYTES_MAX)
    named(machine, machine.decoded(module, at), machine.decoded(name, at), at - 1)
    return after


def global_on_stack(machine: Machine, at: int) -> int:
    module, name = machine.last(2)
    if type(name) is not str or type(module) is not str:
        raise machine.fault("the texts of a module and a name", at)
    if max(len(name), len(module)) > _LINE_BYTES_MAX:
        raise machine.fault(f"a name of at most {_LINE_BYTES_MAX} characters", at)
    if machine.mentions.recalled_at is None and not _ends_text(machine.data, at - 1, name):
        machine.mentions.recalled_at = at - 1
    named(machine, module, name, at - 1)
    return at


def _ends_text(data: bytes, at: int, text: str) -> bool:
    """Whether a short text stands right before a place, remembered or not."""
    held = text.encode("utf-8", "surrogatepass")
    literal = b"\x8c" + len(held).to_bytes(2, "little")[:1] + held
    return data.endswith((literal, literal + b"\x94"), 0, at)


def extension(machine: Machine, at: int, length: int) -> int:
    code = int.from_bytes(machine.data[at : at + length], "little")
    if not 0 < code <= _EXTENSION_MAX:
        raise machine.fault("a number above 0 of an extension", at)
    named(machine, "", f"extension {code}", at - 1)
    return at + length


# Containers, and what grows.


def push_act(machine: Machine, made: Call | New | Persistent | Dict | Set, at: int) -> int:
    """Push an object that an unpickler has to run, request or hash something for."""
    machine.stack.append(made)
    machine.acts.append(made)
    return at


def freeze(machine: Machine, at: int) -> int:
    members = machine.marked()
    machine.room -= _MEMBER_BYTES * len(members)
    return push_act(machine, Set(members, frozen=True), at)


def append_one(machine: Machine, at: int) -> int:
    value = machine.stack.pop()
    target = machine.stack[-1]
    if type(target) is List and target.values:
        target.values.append(value)
        target.grown_at = at
        return at
    return append(machine, [value], at)


def _hold(target: List | Set | Made, values: list[Value]) -> None:
    if target.values:
        target.values.extend(values)
    elif values:
        target.values = values


def append(machine: Machine, values: list[Value], at: int) -> int:
    target = machine.stack[-1]
    if type(target) is List:
        target.grown_at = at
    elif not isinstance(target, Made) or (machine.dialect.habits and target.built):
        raise machine.fault("something to append to", at)
    elif not target.values:
        machine.room -= _ITEMS_BYTES
    _hold(target, values)
    return at


def add_members(machine: Machine, at: int) -> int:
    values = machine.marked()
    target = machine.stack[-1]
    if type(target) is not Set or target.frozen:
        raise machine.fault("a set to put members into", at)
    machine.room -= _MEMBER_BYTES * len(values)
    _hold(target, values)
    return at


def dictionary(machine: Machine, at: int) -> int:
    values = machine.marked()
    push_act(machine, Dict(), at)
    return set_items(machine, values, at)


def set_item(machine: Machine, at: int) -> int:
    stack = machine.stack
    value, key = stack.pop(), stack.pop()
    target = stack[-1]
    if type(target) is not Dict:
        return set_items(machine, (key, value), at)
    machine.room -= _PAIR_BYTES
    target.grown_at = at
    if target.pairs:
        target.pairs.append((key, value))
    else:
        target.pairs = [(key, value)]
    return at


def set_items(machine: Machine, values: Sequence[Value], at: int) -> int:
    target = machine.stack[-1]
    if len(values) % 2:
        raise machine.fault("keys and values in pairs", at)
    machine.room -= _PAIR_BYTES * len(values) // 2
    if type(target) is Dict:
        target.grown_at = at
    elif not isinstance(target, Made) or (machine.dialect.habits and target.built):
        raise machine.fault("a dict to put items into", at)
    elif not target.pairs:
        machine.room -= _ITEMS_BYTES
    pairs = zip(values[::2], values[1::2], strict=True)
    if target.pairs:
        target.pairs.extend(pairs)
    elif values:
        target.pairs = list(pairs)
    return at


# Calls. A callee that is not a name becomes one without a module, which is in no table.


def call(machine: Machine, made: type[Call] | type[New], at: int, keywords: Value = None) -> int:
    arguments = machine.stack.pop()
    function = machine.stack.pop()
    if type(arguments) is not Tuple:
        raise machine.fault("a tuple of arguments", at)
    push_call(machine, made, function, arguments, at=at, keywords=keywords)
    return at


def push_call(
    machine: Machine,
    made: type[Call] | type[New],
    function: Value,
    arguments: Tuple,
    *,
    at: int,
    keywords: Value = None,
) -> None:
    receiver: Value = None
    if type(function) is not Global:
        if machine.dialect.habits:
            raise machine.fault("a named function and a tuple of its arguments", at)
        receiver, function = function, UNNAMED
    if arguments.values or receiver is not None:
        machine.room -= _ARGUMENTS_BYTES
    machine.mentions.called.append(function)
    machine.mentions.called_at.append(at - 1)
    push_act(machine, made(function, arguments, receiver, keywords, at - 1), at)


def call_with_keywords(machine: Machine, at: int) -> int:
    keywords = machine.stack.pop()
    if type(keywords) is not Dict:
        raise machine.fault("a dict of arguments by name", at)
    return call(machine, New, at, keywords if keywords.pairs else None)


def instance(machine: Machine, at: int) -> int:
    arguments = Tuple(tuple(machine.marked()))
    after = global_lines(machine, at)
    push_call(machine, Call, machine.stack.pop(), arguments, at=at)
    return after


def call_object(machine: Machine, at: int) -> int:
    values = machine.marked()
    function = values.pop(0)
    push_call(machine, Call, function, Tuple(tuple(values)), at=at)
    return at


def build(machine: Machine, at: int) -> int:
    target, state = machine.last(2)
    if isinstance(target, Made) and not target.built:
        target.state, target.built, target.built_at = state, True, at - 1
        machine.stack.append(target)
        return machine.after_build(target, at)
    # It sets attributes of an unknown object: no less than a call, and of no name.
    if machine.dialect.habits:
        raise machine.fault("a state for something that was just made", at)
    machine.room -= _ARGUMENTS_BYTES
    machine.mentions.called.append(UNNAMED)
    machine.mentions.called_at.append(at - 1)
    return push_act(machine, Call(UNNAMED, Tuple((state,)), target, at=at - 1), at)
