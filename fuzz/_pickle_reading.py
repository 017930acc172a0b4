# SPDX-License-Identifier: Apache-2.0
"""How Python itself reads a pickle, with nothing behind the names: the other side of a comparison.

`read_as_python_does` runs the pure Python unpickler of the standard library. Every name becomes a
`Standin`, which can be called, built, appended to and hashed, and is nothing: no name is looked up,
and no code but the unpickler's own runs.
"""

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

__all__ = ["Reading", "Standin", "read_as_python_does"]

_ERRORS = (
    *(pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, IndexError),
    *(KeyError, OverflowError, ImportError, AssertionError, MemoryError, RecursionError),
)


_LOADS = ("torch.storage", "_load_from_bytes")


class Standin:
    """What stands where an unpickler would have had a class, a function or an object."""

    __slots__ = ()


@dataclass(slots=True, kw_only=True)
class Reading:
    """What Python made of a pickle."""

    names: list[tuple[str, str]] = field(default_factory=list)
    """Each name as often as it is resolved, in order; a number of a registry has no module."""
    given: list[Any] = field(default_factory=list)
    """The arguments of each call of what loads a storage from bytes."""
    acts: int = 0
    """How many calls, states and references there were."""
    value: Any = None
    end: int = 0
    error: Exception | None = None


def read_as_python_does(data: bytes, start: int = 0) -> Reading:
    """Read the pickle that begins at a place."""
    found = Reading()
    file = io.BytesIO(data)
    file.seek(start)
    try:
        found.value = _Unpickler(file, found, len(data)).load()
    except _ERRORS as exc:
        found.error = exc
    found.end = file.tell()
    return found


_PURE: Any = pickle._Unpickler  # noqa: SLF001 - the reference, and it has no public name


class _Unpickler(_PURE):  # type: ignore[misc]
    """The unpickler in Python, which says what it resolves and resolves nothing."""

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(_PURE.dispatch)

    def __init__(self, file: io.BytesIO, found: Reading, size: int) -> None:
        super().__init__(file)
        self._found = found
        self._size = size
        self._loads = Standin()

    def find_class(self, module: str, name: str) -> Standin:
        """Keep the name."""
        self._found.names.append((module, name))
        return self._loads if (module, name) == _LOADS else Standin()

    def get_extension(self, code: int) -> None:
        """Keep the number; there is no table to look it up in."""
        if code <= 0:
            raise pickle.UnpicklingError
        self.append(self.find_class("", f"extension {code}"))

    def persistent_load(self, _identity: object) -> Standin:
        """Keep that there was one."""
        return self._acted()

    def _decode_string(self, value: bytes) -> str | bytes:
        return value.decode("ascii") if value.isascii() else value

    def _acted(self) -> Standin:
        self._found.acts += 1
        return Standin()

    def _called(self, function: object) -> None:
        if type(function) is not Standin:
            raise TypeError("it cannot be called")
        self.append(self._acted())

    def load_reduce(self) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        tuple(arguments)
        if function is self._loads:
            self._found.given.append(arguments)
        self._called(function)

    def load_newobj_ex(self) -> None:
        dict(self.stack.pop())
        self.load_reduce()

    def load_inst(self) -> None:
        module = self.readline()[:-1].decode("ascii")
        name = self.readline()[:-1].decode("ascii")
        self.pop_mark()
        self._called(self.find_class(module, name))

    def load_obj(self) -> None:
        self._called(self.pop_mark()[0])

    def load_build(self) -> None:
        self.stack.pop()
        if type(self.stack[-1]) is not Standin:
            raise TypeError("it has no state")
        self._found.acts += 1

    def _append(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is list:
            target.extend(values)
        elif type(target) is not Standin:
            raise TypeError("nothing to append to")

    def load_append(self) -> None:
        value = self.stack.pop()
        self._append([value])

    def load_appends(self) -> None:
        self._append(self.pop_mark())

    def _set(self, values: list[Any]) -> None:
        target = self.stack[-1]
        for key, value in zip(values[::2], values[1::2], strict=True):
            if type(target) is dict:
                target[key] = value
            elif type(target) is not Standin:
                raise TypeError("nothing to put items into")

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._set([key, value])

    def load_setitems(self) -> None:
        self._set(self.pop_mark())

    def load_additems(self) -> None:
        members = self.pop_mark()
        if type(self.stack[-1]) is set:
            self.stack[-1].update(members)
        elif type(self.stack[-1]) is not Standin:
            raise TypeError("no set")

    def load_bytearray8(self) -> None:
        length = int.from_bytes(self.read(8), "little")
        if length > self._size:  # the original makes room first
            raise EOFError
        self.append(bytearray(self.read(length)))

    for _opcode, _step in {
        pickle.REDUCE: load_reduce,
        pickle.NEWOBJ: load_reduce,
        pickle.NEWOBJ_EX: load_newobj_ex,
        pickle.INST: load_inst,
        pickle.OBJ: load_obj,
        pickle.BUILD: load_build,
        pickle.APPEND: load_append,
        pickle.APPENDS: load_appends,
        pickle.SETITEM: load_setitem,
        pickle.SETITEMS: load_setitems,
        pickle.ADDITEMS: load_additems,
        pickle.BYTEARRAY8: load_bytearray8,
    }.items():
        dispatch[_opcode[0]] = _step
