# SPDX-License-Identifier: Apache-2.0
"""A machine that reads a pickle as symbols: it runs the program and calls nothing.

It reads every opcode of protocols 0 to 5 as Python's own unpickler does, and keeps each name and
each call with its place, also of what the program drops again. Time and memory are linear in the
pickle, and bounded; nothing recurses.

It refuses data that readers of pickles interpret differently, so that accepted data has one
reading: numbers and texts in another spelling than Python's, arguments that cross the end of a
frame, a number that is memoized twice, left-over values or marks, bytes after the end. A callee
without a name, or with a number of a table that only another process had, is kept as a call without
a module, which no table of names can hold. Out-of-band buffers of a pickle cannot be read, and are
refused.

A `Dialect` narrows that: to the opcodes and the habits of one writer. Its callers decide which
names may be called with which arguments.
"""

import functools
import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace

from sealpoint.errors import FileRefused, ModelLimitExceeded, ModelMalformed
from sealpoint.limits import MODEL_DEPTH_MAX, MODEL_NODES_MAX, MODEL_PICKLE_BYTES_MAX
from sealpoint_models.scan import _pickle_machine as steps
from sealpoint_models.scan._pickle_machine import FRAME, Dialect, Machine, Skip, Step, Work
from sealpoint_models.scan._pickle_symbols import (
    EMPTY_TUPLE,
    Call,
    Dict,
    List,
    Made,
    Mentions,
    New,
    Persistent,
    Program,
    Set,
    Tuple,
    Value,
    measure,
)

_PROTO = 0x80
_DOING = (Made, Persistent)
_DIGITS_MAX = 4300
"""The longest text that Python itself converts to an int."""
_INT = re.compile(rb"0|-?[1-9][0-9]*")
# Characters that stand for themselves between quotes, and on a line, without an escape.
_PLAIN_STRING = re.compile(rb"'[ -&(-\[\]-~]*'")
_PLAIN_TEXT = re.compile(rb"[^\\\0\r\x1a\x80-\xff]*")
_SLOW_BYTES = 640
"""The cost of a line that is written again to compare it: that takes time, no memory."""
_SEARCHED_LEAST, _SEARCHED_BYTES = 12, 128
"""The length from which a text may be a pickle in base 64, and the cost of checking it."""
_DOUBLE, _UINT2, _INT4 = struct.Struct(">d"), struct.Struct("<H"), struct.Struct("<i")


def run_pickle(
    data: bytes,
    what: str,
    dialect: Dialect | None = None,
    *,
    start: int = 0,
    whole: bool = True,
    mentions: Mentions | None = None,
    skip: Skip | None = None,
    work: Work | None = None,
) -> Program:
    """Run a pickle and return its content, as symbols.

    Args:
        data: The pickle; bytes before `start` are ignored.
        what: The file and record, for messages.
        dialect: The accepted pickles; None: all.
        start: The position of its beginning.
        whole: Whether the data has to end with it.
        mentions: The target for names and calls, for callers who want them of a refused pickle.
        skip: Called after each state that was set on an object, with the object and the position;
            returns the next position. Joblib puts the elements of arrays between opcodes.
        work: The shared budget of all pickles of a file; None: this one is the file.

    Raises:
        SealpointError: It is not such a pickle, or exceeds the limits of bytes, values or nesting;
            the dialect sets the class of the error.
    """
    dialect = ANY_PICKLE if dialect is None else dialect
    size = len(data) - start
    if whole and size > MODEL_PICKLE_BYTES_MAX:
        raise dialect.exceeded(
            f"{what}: expected at most {MODEL_PICKLE_BYTES_MAX} bytes, found {size}"
        )
    begin = start + _protocol_bytes(data, what, dialect, start)
    machine = Machine(
        data,
        what,
        dialect,
        Mentions() if mentions is None else mentions,
        table=_table(dialect),
        costs=_COSTS,
        work=work,
    )
    machine.skip = skip
    program = machine.run(begin, min(len(data), start + MODEL_PICKLE_BYTES_MAX))
    if whole and program.end != len(data):
        raise machine.fault("nothing after the end", program.end)
    fault = measure(program.value, MODEL_NODES_MAX, MODEL_DEPTH_MAX)
    # An act that was not counted with the value is not in it, and is executed all the same.
    dropped = [act for act in reversed(machine.acts) if not act.nodes]
    if fault is None and dropped:
        fault = measure(List([program.value, *dropped]), MODEL_NODES_MAX, MODEL_DEPTH_MAX + 1)
    if fault is not None:
        raise dialect.exceeded(f"{what}: {fault}")
    return replace(
        program,
        acts=_acts(machine, dropped),
        texts=tuple(machine.texts),
        made=tuple(machine.acts),
    )


def _acts(machine: Machine, dropped: Iterable[Value]) -> tuple[Value, ...]:
    """The acts that need a meaning, even if their results are dropped: see `Program.acts`."""
    tables = {id(act) for act in dropped}
    return tuple([act for act in machine.acts if isinstance(act, _DOING) or id(act) in tables])


def _protocol_bytes(data: bytes, what: str, dialect: Dialect, start: int) -> int:
    """The length of the opcode of the protocol, which is checked."""
    head = data[start : start + 2]
    named = head[1] if len(head) == 2 and head[0] == _PROTO else None
    expected = range(2, 6) if dialect.protocol is None else (dialect.protocol,)
    if named in expected:
        return 2
    if dialect.protocol is None and named is None and head:
        return 0  # protocols 0 and 1 do not say so
    found = "none" if named is None else f"protocol {named}"
    wanted = "2 to 5" if dialect.protocol is None else dialect.protocol
    raise dialect.malformed(
        f"{what}: expected a pickle of protocol {wanted}, found {found}", hint=dialect.hint
    )


# Scalars, each in the one spelling that Python writes. Those of protocols 0 and 1 are text.


def _int_line(machine: Machine, at: int) -> int:
    line, after = machine.line(at, _DIGITS_MAX + 2)
    if line in (b"00", b"01"):
        machine.stack.append(line == b"01")
    elif _INT.fullmatch(line):
        machine.stack.append(int(line))
    else:
        raise machine.fault("an int in digits", at)
    return after


def _long_line(machine: Machine, at: int) -> int:
    line, after = machine.line(at, _DIGITS_MAX + 3)
    if not line.endswith(b"L") or not _INT.fullmatch(line[:-1]) or len(line) > _DIGITS_MAX:
        raise machine.fault("an int in digits, and L", at)
    machine.stack.append(int(line[:-1]))
    return after


def _float_line(machine: Machine, at: int) -> int:
    line, after = machine.line(at, 64)
    try:
        value = float(line)
    except ValueError:
        value = 0.0
    if repr(value).encode() != line:
        raise machine.fault("a float as Python writes it", at)
    if line[-4:-3] in (b"+", b"-"):  # an exponent of three digits, which takes long to write
        machine.room -= _SLOW_BYTES
    machine.stack.append(value)
    return after


def _bytes_line(machine: Machine, at: int) -> int:
    line, after = machine.line(at)
    if _PLAIN_STRING.fullmatch(line):
        return _text_pushed(machine, line[1:-1].decode("ascii"), after)
    machine.room -= _SLOW_BYTES + len(line)
    try:
        data = line[1:-1].decode("unicode-escape").encode("latin-1")
    except (UnicodeDecodeError, UnicodeEncodeError):
        data = b""
    if repr(data)[1:].encode("ascii") != line:
        raise machine.fault("a quoted byte string as Python writes it", at)
    return _text_pushed(machine, _old_string(data), after)


def _old_string(data: bytes) -> str | bytes:
    """A string of Python 2, which may be text or bytes: text if it is ASCII."""
    return data.decode("ascii") if data.isascii() else data


def _text_line(machine: Machine, at: int) -> int:
    line, after = machine.line(at)
    if _PLAIN_TEXT.fullmatch(line):
        return _text_pushed(machine, line.decode("ascii"), after)
    # A character takes up to four bytes, and there are copies with and without escapes.
    machine.room -= _SLOW_BYTES + 12 * len(line)
    if machine.room < 0:
        raise machine.exceeded()
    try:
        text = line.decode("raw-unicode-escape")
    except UnicodeDecodeError as exc:
        raise machine.fault("a text with escapes", at) from exc
    # Python 2 escaped the first two only.
    short = text.replace("\\", "\\u005c").replace("\n", "\\u000a")
    full = short.replace("\0", "\\u0000").replace("\r", "\\u000d").replace("\x1a", "\\u001a")
    if line not in (full.encode("raw-unicode-escape"), short.encode("raw-unicode-escape")):
        raise machine.fault("a text with the escapes that Python writes", at)
    return _text_pushed(machine, text, after)


def _persistent_line(machine: Machine, at: int) -> int:
    line, after = machine.line(at)
    if not line.isascii():
        raise machine.fault("a reference in ASCII", at)
    return steps.push_act(machine, Persistent(line.decode("ascii")), after)


def _long(machine: Machine, at: int, length_bytes: int) -> int:
    data, after = machine.content(at, length_bytes)
    value = int.from_bytes(data, "little", signed=True)
    bits = value.bit_length() if value >= 0 else (value + 1).bit_length()
    # Python 2 wrote zero with no byte at all; nobody else writes it so.
    length = bits // 8 + 1 if value or machine.dialect.habits else 0
    if len(data) != length and after <= len(machine.data):
        raise machine.fault("an int in its shortest form", at)
    machine.stack.append(value)
    return after


def _bytes(machine: Machine, at: int, length_bytes: int) -> int:
    data, after = machine.content(at, length_bytes)
    return _text_pushed(machine, data, after)


def _bytearray(machine: Machine, at: int) -> int:
    data, after = machine.content(at, 8)
    return _text_pushed(machine, bytearray(data), after)


def _text(machine: Machine, at: int, length_bytes: int) -> int:
    data, after = machine.content(at, length_bytes)
    # Python's pickler writes half of a surrogate pair, too.
    return _text_pushed(machine, machine.decoded(data, at, "surrogatepass"), after)


def _string(machine: Machine, at: int, length_bytes: int) -> int:
    data, after = machine.content(at, length_bytes)
    if after - at > 1 << 31:
        raise machine.fault("a length that is not negative", at)
    return _text_pushed(machine, _old_string(data), after)


def _text_pushed(machine: Machine, text: str | bytes | bytearray, at: int) -> int:
    if len(text) >= _SEARCHED_LEAST:
        machine.room -= _SEARCHED_BYTES
    machine.stack.append(text)
    machine.texts.append(text)
    return at


def _int_byte(machine: Machine, at: int) -> int:
    machine.stack.append(machine.data[at])
    return at + 1


def _int_short(machine: Machine, at: int) -> int:
    machine.stack.append(_UINT2.unpack_from(machine.data, at)[0])
    return at + 2


def _int_long(machine: Machine, at: int) -> int:
    machine.stack.append(_INT4.unpack_from(machine.data, at)[0])
    return at + 4


def _none(machine: Machine, at: int) -> int:
    machine.stack.append(None)
    return at


def _float(machine: Machine, at: int) -> int:
    machine.stack.append(_DOUBLE.unpack_from(machine.data, at)[0])
    return at + 8


def _pushed(machine: Machine, value: Value, at: int) -> int:
    machine.stack.append(value)
    return at


# Most of a pickle are these: each is one function, without others in between.


def _tuple(machine: Machine, at: int) -> int:
    values = machine.stack
    machine.stack = machine.below.pop()
    machine.stack.append(Tuple(tuple(values)))
    return at


def _tuple_of_one(machine: Machine, at: int) -> int:
    stack = machine.stack
    stack[-1] = Tuple((stack[-1],))
    return at


def _tuple_of_two(machine: Machine, at: int) -> int:
    stack = machine.stack
    second = stack.pop()
    stack[-1] = Tuple((stack[-1], second))
    return at


def _tuple_of_three(machine: Machine, at: int) -> int:
    stack = machine.stack
    third, second = stack.pop(), stack.pop()
    stack[-1] = Tuple((stack[-1], second, third))
    return at


def _empty_list(machine: Machine, at: int) -> int:
    machine.stack.append(List())
    return at


def _empty_dict(machine: Machine, at: int) -> int:
    made = Dict()
    machine.stack.append(made)
    machine.acts.append(made)
    return at


def _indexed(machine: Machine, at: int, step: Callable[[Machine, int, int], int]) -> int:
    index, after = steps.read_index(machine, at)
    return step(machine, index, after)


_STEPS: dict[int, Step] = {
    ord(opcode): step
    for opcode, step in {
        # Marks, and what is dropped or doubled.
        "(": steps.mark,
        "0": steps.pop,
        "1": steps.pop_mark,
        "2": steps.duplicate,
        # The memo.
        "p": lambda m, at: _indexed(m, at, steps.put),
        "q": steps.put_byte,
        "r": steps.put_long,
        "\x94": steps.memoize,
        "g": lambda m, at: _indexed(m, at, steps.get),
        "h": steps.get_byte,
        "j": steps.get_long,
        # Scalars.
        "N": _none,
        "\x88": lambda m, at: _pushed(m, True, at),  # noqa: FBT003 (a value, no flag)
        "\x89": lambda m, at: _pushed(m, False, at),  # noqa: FBT003 (as above)
        "I": _int_line,
        "L": _long_line,
        "K": _int_byte,
        "M": _int_short,
        "J": _int_long,
        "\x8a": lambda m, at: _long(m, at, 1),
        "\x8b": lambda m, at: _long(m, at, 4),
        "F": _float_line,
        "G": _float,
        "S": _bytes_line,
        "U": lambda m, at: _string(m, at, 1),
        "T": lambda m, at: _string(m, at, 4),
        "V": _text_line,
        "\x8c": lambda m, at: _text(m, at, 1),
        "X": lambda m, at: _text(m, at, 4),
        "\x8d": lambda m, at: _text(m, at, 8),
        "C": lambda m, at: _bytes(m, at, 1),
        "B": lambda m, at: _bytes(m, at, 4),
        "\x8e": lambda m, at: _bytes(m, at, 8),
        "\x96": _bytearray,
        # Names, and references out of the pickle.
        "c": steps.global_lines,
        "\x93": steps.global_on_stack,
        "\x82": lambda m, at: steps.extension(m, at, 1),
        "\x83": lambda m, at: steps.extension(m, at, 2),
        "\x84": lambda m, at: steps.extension(m, at, 4),
        "P": _persistent_line,
        "Q": lambda m, at: steps.push_act(m, Persistent(m.last(1)[0]), at),
        # Containers.
        ")": lambda m, at: _pushed(m, EMPTY_TUPLE, at),
        "t": _tuple,
        "\x85": _tuple_of_one,
        "\x86": _tuple_of_two,
        "\x87": _tuple_of_three,
        "]": _empty_list,
        "l": lambda m, at: _pushed(m, List(m.marked()), at),
        "a": steps.append_one,
        "e": lambda m, at: steps.append(m, m.marked(), at),
        "}": _empty_dict,
        "d": steps.dictionary,
        "s": steps.set_item,
        "u": lambda m, at: steps.set_items(m, m.marked(), at),
        "\x8f": lambda m, at: steps.push_act(m, Set(), at),
        "\x90": steps.add_members,
        "\x91": steps.freeze,
        # Calls: REDUCE, NEWOBJ, NEWOBJ_EX, INST, OBJ, BUILD. Here they only become symbols;
        # `_pickle_allowed_calls.py` judges them.
        "R": lambda m, at: steps.call(m, Call, at),
        "\x81": lambda m, at: steps.call(m, New, at),
        "\x92": steps.call_with_keywords,
        "i": steps.instance,
        "o": steps.call_object,
        "b": steps.build,
    }.items()
}

# The approximate memory of a step, and its time: each step has some.
_COSTS = [32] * 256
for _opcodes, _bytes_each in {
    "(": 96,
    "a": 40,
    "hj2": 64,
    "su\x8a\x8b": 72,
    "ILgp": 128,
    "F": 192,
    "\x8cX\x8dVUTSCB\x8e": 80,
    "\x96P": 160,
    "c\x93\x82\x83\x84": 320,
    "t\x85\x86\x87Q": 288,
    "]l": 400,
    "}d\x8f\x91": 480,
    "R\x81\x92o": 704,
    "i": 1024,
    "b": 640,
}.items():
    for _opcode in _opcodes:
        _COSTS[ord(_opcode)] = _bytes_each


@functools.cache
def _table(dialect: Dialect) -> list[Step | None]:
    """The step of each opcode that a dialect has."""
    return [_STEPS.get(code) if code in dialect.opcodes else None for code in range(256)]


def _codes(opcodes: str) -> frozenset[int]:
    return frozenset(map(ord, opcodes))


_SHARED = "(hjN\x88\x89KMJ\x8aG)t\x85\x86\x87]}aesuR\x81b"

ANY_PICKLE = Dialect(
    words="pickle",
    opcodes=frozenset((*_STEPS, FRAME)),
    habits=False,
    malformed=ModelMalformed,
    exceeded=ModelLimitExceeded,
)
"""The pickles of all of Python's picklers."""

OBJECT_PICKLE = Dialect(
    protocol=5,
    words="plain data and objects",
    opcodes=_codes(_SHARED + "\x95\x94\x8b\x8cX\x8dCB\x8e\x96\x93\x8f\x90\x91"),
    habits=True,
    malformed=FileRefused,
    exceeded=FileRefused,
)
"""The pickles of Python's pickler for an object, by its highest protocol."""
