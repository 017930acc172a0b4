# SPDX-License-Identifier: Apache-2.0
"""What the pickle of a `.pt` file may say: plain data and tensors, each in the form torch writes.

An accepted tree calls only functions of the closed table, each with arguments of the exact form
that torch gives it; sets attributes on nothing but the metadata of a state dict; and puts only
plain values into hash tables, never one twice, never many that share a hash. Every storage is used
and is what the tensors say of it.

It refuses everything else and builds nothing. That torch then builds what was judged is for
`_pt.py` to see to.
"""

import re
from collections.abc import Iterable, Mapping

from sealpoint.codec import collision_fault
from sealpoint.errors import GlobalNotAllowed, ModelLimitExceeded, ModelMalformed
from sealpoint.limits import Limits
from sealpoint.models import _pt_table as table
from sealpoint.models._pt_tensors import Tensors
from sealpoint.scan import Call, Dict, Global, List, New, Persistent, Tuple, Value, shown

_KEY_DEPTH_MAX = 8
_KEY_LIMITS = Limits()
# torch keeps 8 bits of the number: to it, cuda:256 is cuda:0.
_DEVICE = re.compile(r"([a-z][a-z0-9]{0,31})(?::(0|[1-9][0-9]?|1[01][0-9]|12[0-7]))?", re.ASCII)
_INT64 = range(-(1 << 63), 1 << 63)

Pairs = Iterable[tuple[Value, Value]]


def judge_tree(tree: Value, records: Mapping[str, int], file_bytes: int, what: str) -> set[str]:
    """Judge the tree of a whole pickle.

    Args:
        tree: What the pickle says.
        records: The bytes of each storage record, by its key.
        file_bytes: The size of the whole file.
        what: The file, for messages.

    Returns:
        The devices that the tensors were on.

    Raises:
        GlobalNotAllowed: It names a class or function that is not in the table.
        ModelMalformed: It calls one of them in another way than torch.
        RecordMismatch: A tensor does not fit its storage, or a storage its record.
        ModelLimitExceeded: Keys that share a hash, or a tensor much larger than the file.
    """
    judge = _Judge(Tensors(records, file_bytes, what), what)
    judge.run(tree)
    return judge.tensors.locations


class _Judge:
    """Goes once over every value; what is shared is judged once."""

    def __init__(self, tensors: Tensors, what: str) -> None:
        self.tensors = tensors
        self._what = what
        self._todo: list[Value] = []
        self._seen: set[int] = set()
        self._calls = {
            table.ORDERED_DICT: self._ordered_dict,
            table.COUNTER: self._counter,
            table.SET: self._set,
            table.COMPLEX: self._complex,
            table.BYTEARRAY: self._bytearray,
            table.ENCODE: self._bytes,
            table.SIZE: self._size,
            table.DEVICE: self._device,
            table.LAYOUT: self._layout,
        }

    def run(self, tree: Value) -> None:
        self._todo.append(tree)
        while self._todo:
            value = self._todo.pop()
            if not isinstance(value, Tuple | List | Dict | Call):
                self._leaf(value)
            elif id(value) not in self._seen:
                self._seen.add(id(value))
                self._node(value)
        self.tensors.check_all_used()

    def _node(self, value: Tuple | List | Dict | Call) -> None:
        match value:
            case Tuple() | List():
                self._todo += value.values
            case Dict():
                self._items(value.pairs)
            case Call():
                self._call(value)

    def _leaf(self, value: Value) -> None:
        match value:
            case Global() if value not in table.DTYPES and value not in table.QSCHEMES:
                raise self._not_allowed(value)
            case New():
                raise self._not_allowed(value.function)
            case Persistent():
                raise self._fault("storages only as parts of tensors")
            case _:
                pass  # a scalar, or a type

    def _fault(self, expected: str) -> ModelMalformed:
        return ModelMalformed(f"{self._what}: expected {expected}")

    def _not_allowed(self, name: Global) -> GlobalNotAllowed:
        return GlobalNotAllowed(
            f"{self._what}: expected only tensors and plain data, found {shown(str(name))}"
        )

    def _call(self, call: Call) -> None:
        judge = self._calls.get(call.function)
        if self.tensors.knows(call.function):
            self.tensors.judge(call)
        elif judge is None:
            raise self._not_allowed(call.function)
        elif call.function != table.ORDERED_DICT and (call.pairs or call.built):
            raise self._fault(f"no items and no attributes for {call.function}")
        else:
            judge(call)

    # The functions of the table that do not make tensors.

    def _ordered_dict(self, call: Call) -> None:
        if call.arguments.values:
            raise self._fault("an OrderedDict that is made empty")
        self._items(call.pairs)
        if call.built:
            # The attribute that `state_dict()` sets, with the versions of its modules.
            match call.state:
                case Dict(pairs=[("_metadata", (Dict() | Call()) as metadata)]):
                    self._todo.append(metadata)
                case _:
                    raise self._fault("no attribute of an OrderedDict but its _metadata")

    def _counter(self, call: Call) -> None:
        match call.arguments.values:
            case (Dict(pairs=pairs),):
                # Torch builds this dict, and then the counter from it.
                self._items(pairs)
            case _:
                raise self._fault("a Counter of a dict")

    def _set(self, call: Call) -> None:
        match call.arguments.values:
            case (List(values=values),):
                self._keys(values, in_set=True)
            case _:
                raise self._fault("a set of a list")

    def _complex(self, call: Call) -> None:
        if [type(part) for part in call.arguments.values] != [float, float]:
            raise self._fault("a complex number of two floats")

    def _bytes(self, call: Call) -> bytes:
        match call.arguments.values:
            case (str() as text, "latin1"):
                pass
            case _:
                raise self._fault("bytes as a text in Latin-1")
        try:
            return text.encode("latin-1")
        except UnicodeEncodeError as exc:
            raise self._fault("bytes as a text in Latin-1") from exc

    def _bytearray(self, call: Call) -> None:
        match call.arguments.values:
            case ():
                pass
            case (Call(function=table.ENCODE) as content,):
                self._todo.append(content)
            case (str() as text, "latin-1") if all(char <= "\xff" for char in text):
                pass  # before Python 3.8
            case _:
                raise self._fault("a bytearray of bytes")

    def _size(self, call: Call) -> None:
        match call.arguments.values:
            case (Tuple(values=sides),) if all(
                type(side) is int and side in _INT64 for side in sides
            ):
                pass
            case _:
                raise self._fault("a torch.Size of a tuple of ints")

    def _device(self, call: Call) -> tuple[Global, str, int | None]:
        """What is the same for all ways to write one device."""
        match call.arguments.values:
            case (str() as name,):
                index: int | None = None
            case (str() as name, int() as index) if type(index) is int and 0 <= index < 1 << 7:
                pass
            case _:
                raise self._fault("a torch.device of a name and an index")
        found = _DEVICE.fullmatch(name)
        if found is None or (found[2] is not None and index is not None):
            raise self._fault(f"the name of a device, found {shown(name)}")
        return table.DEVICE, found[1], index if found[2] is None else int(found[2])

    def _layout(self, call: Call) -> None:
        match call.arguments.values:
            case (str() as name,) if name in table.LAYOUTS or name == table.STRIDED:
                pass
            case _:
                raise self._fault("the name of a layout")

    # Hash tables.

    def _items(self, pairs: Pairs) -> None:
        keys: list[Value] = []
        for key, value in pairs:
            keys.append(key)
            self._todo.append(value)
        self._keys(keys, in_set=False)

    def _keys(self, values: list[Value], *, in_set: bool) -> None:
        """Check that values can be the keys of one table: plain, few collisions, each once."""
        if set(map(type, values)) <= {str}:
            keys: list[object] = [*values]
        else:
            keys = [self._key(value, 0) for value in values]
            fault = collision_fault(keys, _KEY_LIMITS, in_set=in_set)
            if fault is not None:
                raise ModelLimitExceeded(f"{self._what}: {fault}")
        if len(set(keys)) != len(keys):
            raise self._fault("each key of a dict and member of a set once")

    def _key(self, value: Value, depth: int) -> object:
        """A value as the key it will be, or the name of it where it is torch's own."""
        match value:
            case None | bool() | int() | float() | str():
                return value
            case Global() if value in table.DTYPES:
                return value
            case Tuple() if depth < _KEY_DEPTH_MAX:
                return tuple([self._key(part, depth + 1) for part in value.values])
            case Call(function=table.ENCODE):
                self._todo.append(value)
                return self._bytes(value)
            case Call(function=table.COMPLEX, arguments=Tuple(values=(float() as x, float() as y))):
                self._todo.append(value)
                return complex(x, y)
            case Call(function=table.SIZE, arguments=Tuple(values=(Tuple() as sides,))):
                self._todo.append(value)
                return self._key(sides, depth + 1)
            case Call(function=table.DEVICE):
                self._todo.append(value)
                return self._device(value)
            case _:
                raise self._fault("keys and members that are plain values")
