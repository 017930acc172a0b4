# SPDX-License-Identifier: Apache-2.0
"""The meaning of a pickle: values of ours, built from its symbols by a closed table.

Each name of the table has one reading, and only with the arguments that the named type itself
writes; functions of ours build each value, never the name in the file. Keys of dicts and members of
sets are plain values, each once, and few share a hash. Every storage of the file is used. Tensors
and arrays stay descriptions, unless a `Maker` converts them: neither torch nor numpy is needed to
know the content of a file.

A name outside of the table is refused, with all others of the file; or it is read as `Inert`, if
the caller asks for that. A scan names classes that are read so, each in its written form. Malformed
data raises `ModelMalformed`, and nothing else does.
"""

import types
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Literal

from sealpoint.codec import collision_fault
from sealpoint.errors import GlobalNotAllowed, ModelLimitExceeded, ModelMalformed
from sealpoint.limits import MODEL_DEPTH_MAX, Limits
from sealpoint.pickled_types import FAULTS
from sealpoint_models.scan import _torch_names as torch_names
from sealpoint_models.scan._known_classes import FUNCTIONS, KnownClass
from sealpoint_models.scan._known_types import (
    COMPOSED_CALLS,
    FACTORIES,
    FROZENSETS,
    PLAIN_CALLS,
    TORCH_VERSION,
    UUID,
    Filling,
    Maker,
    TorchName,
    builtin,
)
from sealpoint_models.scan._numpy_arrays import ARRAY_REASONS, ArrayMeaning, Arrays, ArrayScalar
from sealpoint_models.scan._pickle_machine import UNNAMED, Work
from sealpoint_models.scan._pickle_symbols import (
    SCALAR_TYPES,
    Call,
    Dict,
    Global,
    Inert,
    List,
    Made,
    New,
    Persistent,
    Program,
    Reading,
    Set,
    Tuple,
    Value,
)
from sealpoint_models.scan._torch_tensors import Tensors
from sealpoint_models.scan._torch_zip import shown

Unknown = Literal["refuse", "inert"]

_OBJECTS = builtin("object")
_RECONSTRUCTORS = (
    Global("copy_reg", "_reconstructor"),
    Global("copyreg", "_reconstructor"),
)
_NEW_OBJECTS = (Global("copy_reg", "__newobj__"), Global("copyreg", "__newobj__"))

KNOWN_NAMES: Mapping[Global, str] = {
    **dict.fromkeys(FACTORIES, "what a defaultdict makes of what is missing"),
    **{name: call.reason for name, call in PLAIN_CALLS.items()},
    **torch_names.TORCH_REASONS,
    **ARRAY_REASONS,
    **{name: reason for name, (_, reason) in COMPOSED_CALLS.items()},
    **dict.fromkeys(_OBJECTS, "what protocols before 2 begin an object with"),
    **dict.fromkeys((*_RECONSTRUCTORS, *_NEW_OBJECTS), "how older protocols begin an object"),
}
"""The closed table: each name that a file may have, and the reason."""

_HASHABLE = (
    {
        *PLAIN_CALLS,
        *FROZENSETS,
        *_NEW_OBJECTS,
        UUID,
        torch_names.SIZE,
        torch_names.DEVICE,
        *(name for name in ARRAY_REASONS if name.name == "scalar"),
    }
    - set(builtin("slice"))
    - set(builtin("bytearray"))
)
_KEY_DEPTH_MAX = 8
_KEY_BITS_MAX = 1 << 12
"""An int is hashed again each time it is a key, and so is a number that is made of ints."""
_KEY_LIMITS = Limits()
_SHORT_KEYS = SCALAR_TYPES - {int, bytearray}
"""Scalars that can always be keys."""
_COPIED_TIMES = 3
"""The maximum ratio of copied texts and bytes to the size of a pickle."""
_NAMES_SHOWN = 20
_PLACES_MAX = 2 * MODEL_DEPTH_MAX
_OPEN = object()


class _NoMaker:
    """Leaves descriptions as they are."""

    def make(self, meaning: Any) -> Any:
        return meaning

    def fill(self, made: Any, values: list[Any]) -> None:
        """The description knows its symbols."""

    def attach(self, made: Any, attributes: dict[str, Any]) -> None:
        """The description knows its symbols."""


def unknown_names(program: Program, beside: Collection[Global] = ()) -> list[tuple[Global, int]]:
    """The names of a program that are in no table, each with the byte of its first mention."""
    found = [
        (name, at)
        for name, at in program.names.items()
        if name not in KNOWN_NAMES and name not in beside
    ]
    if UNNAMED in program.mentions.called:
        found.append((UNNAMED, program.mentions.called_at[program.mentions.called.index(UNNAMED)]))
    return found


def read_meaning(
    program: Program,
    *,
    storages: Mapping[str, int],
    file_bytes: int,
    what: str,
    unknown: Unknown = "refuse",
    maker: Maker | None = None,
    views: bool = False,
    beside: Mapping[Global, Reading] = types.MappingProxyType({}),
    classes: Mapping[Global, KnownClass] = types.MappingProxyType({}),
    tensors: Tensors | None = None,
    work: Work | None = None,
    again: bool = False,
) -> Any:
    """The meaning of a pickle.

    Args:
        program: The pickle, as symbols.
        storages: The bytes of each storage of the file, by its key.
        file_bytes: The size of the whole file, or of a pickle together with others in it.
        what: The file, for messages.
        unknown: The treatment of names that are in no table.
        maker: The maker of tensors and arrays; None: they stay descriptions.
        views: Whether storages may be parts of records.
        beside: Names that only the format around this pickle has, and the reading of each.
        classes: Names whose objects are read as `Inert`, and their forms.
        tensors: The judge of tensors, or the judge from an earlier read of the same program.
        work: The budget, shared with others of the file; None: it is the only one.
        again: Whether the whole program was already read without a fault, with these tensors.

    Raises:
        GlobalNotAllowed: It has names that are in no table; the message has all of them.
        ModelMalformed: It calls a name of the table in an unknown form.
        RecordMismatch: A tensor does not fit its storage, or a storage its record.
        ModelLimitExceeded: Keys that share a hash, or a tensor much larger than the file.
    """
    if unknown == "refuse" and (found := unknown_names(program, {*beside, *classes})):
        raise _not_allowed([name for name, _ in found], what)
    reader = _MeaningReader(
        Tensors(storages, file_bytes, what, views=views) if tensors is None else tensors,
        _NoMaker() if maker is None else maker,
        what,
        unknown=unknown,
        file_bytes=file_bytes,
        work=Work.of(file_bytes) if work is None else work,
        beside=beside,
        classes=classes,
    )
    try:
        return reader.run(program, again=again)
    except RecursionError as exc:  # the caller is nested deeply itself
        raise ModelLimitExceeded(
            f"{what}: expected room on the stack for values nested in one another"
        ) from exc


def _not_allowed(names: list[Global], what: str) -> GlobalNotAllowed:
    listed = ", ".join(shown(str(name)) for name in names[:_NAMES_SHOWN])
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return GlobalNotAllowed(f"{what}: expected only tensors and plain data, found {listed}{more}")


class _MeaningReader:
    """Visits every value once; shared values are read once, and stay shared."""

    def __init__(
        self,
        tensors: Tensors,
        maker: Maker,
        what: str,
        *,
        unknown: Unknown,
        file_bytes: int,
        work: Work,
        beside: Mapping[Global, Reading],
        classes: Mapping[Global, KnownClass],
    ) -> None:
        self._work = work
        work.copies_left += _COPIED_TIMES * file_bytes
        self._tensors = tensors
        self._arrays = Arrays(self.value, what)
        self.maker = maker
        self._what = what
        self._unknown = unknown
        self._made: dict[int, Any] = {}
        self._names: dict[Global, Any] = {}
        self._texts: dict[Global, str] = {}
        self._depth = 0
        # Containers are filled after all their containers were created: they may hold them, too.
        self.later: list[Filling] = []
        self._beside: Mapping[Global, Reading] = beside
        self._classes = classes
        self._known = KNOWN_NAMES.keys() | beside.keys() | classes.keys()
        self._readings: Mapping[type, Callable[[Any], Any]] = {
            Tuple: partial(_tuple, self),
            List: partial(_list, self),
            Dict: partial(_dict, self),
            Set: partial(_set, self),
            Persistent: self._referred,
            Call: self._called,
            New: self._called,
        }

    def run(self, program: Program, *, again: bool) -> Any:
        made = self._filled(program.value)
        if again:
            return made
        self._tensors.check_all_used()
        # Values that no one requested are read as well, for their faults: an unpickler does so.
        # Nothing is built from them.
        self.maker = _NoMaker()
        for act in program.acts:
            if id(act) not in self._made:
                self._filled(act)
        return made

    def _filled(self, node: Value) -> Any:
        made = self.value(node)
        later = self.later
        while later:
            fill, target, held = later.pop()
            fill(target, held)
        return made

    def value(self, node: Any) -> Any:
        """The meaning of a symbol."""
        kind = type(node)
        if kind in SCALAR_TYPES:
            return node
        if kind is Global:
            return self._name(node)
        if kind is Tuple and _are_scalars(node.values):
            return node.values
        found = self._made.get(id(node), self)
        if found is not self:
            if found is _OPEN:
                raise self.fault("no tuple or call that is inside of itself")
            return found
        self._depth += 1
        if self._depth > _PLACES_MAX:
            raise ModelLimitExceeded(
                f"{self._what}: its values are nested more than {_PLACES_MAX} deep"
            )
        self._made[id(node)] = _OPEN
        try:
            made = self._made[id(node)] = self._readings[kind](node)
        except ModelMalformed:
            del self._made[id(node)]  # somebody may read it in another way
            raise
        finally:
            self._depth -= 1
        return made

    def values(self, nodes: Iterable[Value]) -> list[Any]:
        """The meanings of several symbols; most are scalars, which are their own meaning."""
        value, scalars = self.value, SCALAR_TYPES
        return [node if type(node) in scalars else value(node) for node in nodes]

    def extend(self, listed: Any, nodes: list[Value]) -> None:
        """Put values into a new list."""
        listed.extend(self.values(nodes))

    def _referred(self, node: Persistent) -> Any:
        cls = self._saved_class(node)
        if cls in KNOWN_NAMES:
            raise self.fault(f"the class of a module, found {cls}")
        return self.maker.make(self._tensors.storage(node)) if cls is None else self._name(cls)

    def _saved_class(self, value: Value) -> Global | None:
        """The class of a module, which torch before 1.6 saved next to the pickle."""
        match value:
            case Persistent(identity=Tuple(values=("module", Global() as cls, *_))):
                return cls
            case _:
                return None

    def _copy(self, size: int) -> None:
        """Count copies of a part of the file, which may be used any number of times.

        Raises:
            ModelLimitExceeded: The copies exceed those of honest files.
        """
        self._work.copies_left -= size
        if self._work.copies_left < 0:
            raise ModelLimitExceeded(
                f"{self._what}: expected values that are not much larger than the file"
            )

    def fault(self, expected: str) -> ModelMalformed:
        return ModelMalformed(f"{self._what}: expected {expected}")

    def form_of(self, name: Global) -> ModelMalformed:
        return self.fault(f"{name} in the form that it is written in")

    # Names.

    def _name(self, name: Global) -> Any:
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = self._new_name(name)
        return found

    def _new_name(self, name: Global) -> Any:
        if name in torch_names.DTYPES:
            return self.maker.make(TorchName("dtype", name.name))
        if name in torch_names.QSCHEMES:
            return self.maker.make(TorchName("qscheme", name.name))
        if self._unknown == "refuse" and not (name in FUNCTIONS and name in self._classes):
            raise _not_allowed([name], self._what)
        return Inert(str(name))

    def _called(self, node: Call | New) -> Any:
        # REDUCE, INST and OBJ are a `Call`, NEWOBJ a `New`: only names of the tables mean anything.
        function = node.function
        if node.receiver is not None:
            return self._inert(node)
        try:
            if self._tensors.knows(function) and isinstance(node, Call):
                return self._tensor(node)
            making = _CALLS.get(function)
            if making is not None:
                return making(self, node)
            reading = self._beside.get(function)
            return self._inert(node) if reading is None else reading(node, self.value)
        except ModelMalformed:
            if self._unknown == "inert" and _is_about_unknown(node, self._known):
                return self._inert(node)
            raise

    def _inert(self, node: Call | New) -> Inert:
        known = self._classes.get(node.function)
        if known is not None and not known.is_written(node):
            raise self.form_of(node.function)
        if self._unknown == "refuse" and known is None:
            raise _not_allowed([node.function], self._what)
        cls = self._saved_class(node.receiver)
        name = node.function if cls is None else cls
        given = node.arguments.values
        if node.receiver is not None and cls is None:
            given = (node.receiver, *given)
        # One text for all of them.
        named = self._texts.setdefault(name, str(name))
        made = Inert(named, made="call" if type(node) is Call else "object")
        if node.bare and _are_scalars(given):
            made.arguments = given
        else:
            self.later.append((self._fill, made, (given, node)))
        return made

    def _fill(self, made: Inert, held: tuple[tuple[Value, ...], Made]) -> None:
        given, node = held
        # A class that is an argument of a known one was checked with that one's form.
        is_known = node.function in self._classes
        made.arguments = tuple(
            Inert(str(each)) if is_known and type(each) is Global else self.value(each)
            for each in given
        )
        made.keywords = self.value(node.keywords)
        made.state = self.value(node.state)
        made.items = self.values(node.values)
        made.pairs = [(self.value(key), self.value(held)) for key, held in node.pairs]

    # Tensors and arrays.

    def _tensor(self, call: Call) -> Any:
        meaning = self._tensors.judge(call)
        made = self.maker.make(meaning)
        if meaning.attributes:
            self.later.append((self._attach, made, meaning.attributes))
        return made

    def _attach(self, tensor: Any, attributes: tuple[tuple[str, Value], ...]) -> None:
        self.maker.attach(tensor, {name: self.value(held) for name, held in attributes})

    def array(self, node: Made) -> Any:
        if not isinstance(node, Call):
            raise self.form_of(node.function)
        meaning = self._arrays.read(node)
        if isinstance(meaning, ArrayMeaning | ArrayScalar):
            self._copy(len(meaning.data))
        made = self.maker.make(meaning)
        if isinstance(meaning, ArrayMeaning) and meaning.symbols:
            self.later.append((self._fill_array, made, meaning.symbols))
        return made

    def _fill_array(self, array: Any, symbols: tuple[Value, ...]) -> None:
        self.maker.fill(array, self.values(symbols))

    # Python's own types.

    def plain(self, node: Made) -> Any:
        if not node.bare and not (node.function == TORCH_VERSION and node.built):
            raise self.form_of(node.function)
        # Made without its `__init__`, a bytearray would stay empty.
        if not isinstance(node, Call) and node.function != TORCH_VERSION:
            raise self.form_of(node.function)
        if node.built:
            self.value(node.state)
        arguments = self.values(node.arguments.values)
        self._copy(sum(len(part) for part in arguments if type(part) in (str, bytes)))
        try:
            made = PLAIN_CALLS[node.function].make(*arguments)
        except FAULTS as exc:
            raise self.form_of(node.function) from exc
        if made is None:
            raise self.form_of(node.function)
        return made

    def as_new(self, node: Made, cls: Global, given: tuple[Value, ...]) -> Any:
        new = New(cls, Tuple(given), keywords=node.keywords, at=node.at)
        new.pairs, new.values = node.pairs, node.values
        new.state, new.built, new.built_at = node.state, node.built, node.built_at
        return self._called(new)

    # Hash tables.

    def put(self, mapping: Any, pairs: list[tuple[Value, Value]]) -> None:
        """Put pairs into a new dict; the keys are looked at before anything hashes them."""
        keys = self.keys([key for key, _ in pairs], in_set=False)
        held = self.values([held for _, held in pairs])
        for key, value in zip(keys, held, strict=True):
            mapping[key] = value

    def keys(self, symbols: list[Any], *, in_set: bool) -> list[Any]:
        """Values that can be the keys of one table: plain, few collisions, each once."""
        kinds = set(map(type, symbols))
        if kinds <= _SHORT_KEYS or (kinds == {int} and _are_small(symbols)):
            keys = symbols
        else:
            for symbol in symbols:
                self._check_key(symbol, 0)
            keys = self.values(symbols)
        fault = collision_fault(keys, _KEY_LIMITS, in_set=in_set)
        if fault is not None:
            raise ModelLimitExceeded(f"{self._what}: {fault}")
        if len(set(keys)) != len(keys):
            raise self.fault("each key of a dict and member of a set once")
        return keys

    def _check_key(self, symbol: Value, depth: int) -> None:
        """Check that a value has a hash, computed by no code of a class."""
        match symbol:
            case int() if symbol.bit_length() > _KEY_BITS_MAX:
                raise ModelLimitExceeded(
                    f"{self._what}: expected keys of at most {_KEY_BITS_MAX} bits"
                )
            case None | bool() | int() | float() | str() | bytes():
                return
            case Global() if symbol in torch_names.DTYPES or symbol not in self._known:
                return
            case Tuple() if depth < _KEY_DEPTH_MAX:
                for part in symbol.values:
                    self._check_key(part, depth + 1)
                return
            case Set(frozen=True):
                return  # its members were looked at
            case Call() | New() if (
                symbol.function in _HASHABLE
                or symbol.function not in self._known
                or symbol.receiver is not None
            ):
                return
            case _:
                raise self.fault("keys and members that are plain values")


# Containers. A container of scalars only is filled at once: it cannot hold itself.


def _tuple(reader: _MeaningReader, node: Tuple) -> tuple[Any, ...]:
    return tuple(reader.values(node.values))


def _list(reader: _MeaningReader, node: List) -> list[Any]:
    if _are_scalars(node.values):
        return list(node.values)
    listed: list[Any] = []
    reader.later.append((reader.extend, listed, node.values))
    return listed


def _dict(reader: _MeaningReader, node: Dict) -> dict[Any, Any]:
    if not node.pairs:
        return {}
    if _are_scalars(node.held()):
        reader.keys([key for key, _ in node.pairs], in_set=False)
        return dict(node.pairs)
    mapping: dict[Any, Any] = {}
    reader.later.append((reader.put, mapping, node.pairs))
    return mapping


def _set(reader: _MeaningReader, node: Set) -> set[Any] | frozenset[Any]:
    members = reader.keys(node.values, in_set=True)
    return frozenset(members) if node.frozen else set(members)


def _are_small(ints: list[int]) -> bool:
    return max(map(int.bit_length, ints)) <= _KEY_BITS_MAX


def _are_scalars(values: Iterable[Value]) -> bool:
    return SCALAR_TYPES.issuperset(map(type, values))


def _new_object(reader: _MeaningReader, node: Made) -> Any:
    match node.arguments.values:
        case (Global() as cls, *given):
            return reader.as_new(node, cls, tuple(given))
        case _:
            raise reader.form_of(node.function)


def _reconstructed(reader: _MeaningReader, node: Made) -> Any:
    """An object by its class, the built-in type below it, and the value of that."""
    match node.arguments.values:
        case (Global() as cls, Global() as base, state) if base in KNOWN_NAMES:
            given = () if base in _OBJECTS and state is None else (state,)
        case _:
            raise reader.form_of(node.function)
    return reader.as_new(node, cls, given)


_CALLS: Mapping[Global, Callable[[_MeaningReader, Made], Any]] = {
    **{name: read for name, (read, _) in COMPOSED_CALLS.items()},
    **dict.fromkeys(_RECONSTRUCTORS, _reconstructed),
    **dict.fromkeys(_NEW_OBJECTS, _new_object),
    **dict.fromkeys(PLAIN_CALLS, _MeaningReader.plain),
    **dict.fromkeys(ARRAY_REASONS, _MeaningReader.array),
}
"""The function that returns the meaning of a call, by name."""


def _is_about_unknown(node: Call | New, known: AbstractSet[Global]) -> bool:
    """Whether a known name gets an unknown argument, and so cannot be built."""
    for part in (*node.arguments.values, node.state):
        if isinstance(part, Global) and part not in known:
            return True
        if isinstance(part, Call | New) and (
            part.function not in known or _is_about_unknown(part, known)
        ):
            return True
    return False
