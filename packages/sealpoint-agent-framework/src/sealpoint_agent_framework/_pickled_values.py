# SPDX-License-Identifier: Apache-2.0
"""Values of pickles, built from symbols: nothing is unpickled, imported or called by name.

A pickle of the framework's own storage names classes and the calls to make. `scan` reads it as
symbols; here a symbol becomes a value only if a table lists its name:

- types of Python itself, each in the form in which Python pickles it (`sealpoint.pickled_types`);
- types of the framework and of the application that the registry has a rule for, found by module
  and name of the class. They are built like in the codec: from their fields, on a bare object, by
  no code of the class unless its rule says so. No function that a pickle names runs, no
  `__setstate__`, no `__reduce__`; a class with its own `__setstate__` is refused, because only that
  method knows the meaning of its state;
- types that objects of the framework refer to, which become the names in stored data.

Everything else is refused with `FileRefused`, which reports the name. The cost of values, counted
at each use, is bounded for a file as a whole. After that the codec decides whether a value may be
saved, as for any other.
"""

import dataclasses
import functools
import inspect
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Flag
from typing import Any, cast

from sealpoint.adapters.declared_types import rule_name_of
from sealpoint.adapters.field_forms import FieldForm
from sealpoint.codec import Registry, TypeRule
from sealpoint.errors import DecodeError, EncodeError, FileRefused
from sealpoint.limits import IMPORT_VALUE_BYTES_MAX
from sealpoint.pickled_types import FACTORIES, FAULTS, PLAIN_CALLS, is_deque_length, uuid_of
from sealpoint.world import visible
from sealpoint_agent_framework._framework_types import WORKFLOW_TYPES
from sealpoint_agent_framework._type_references import TypeReferences, reference_of
from sealpoint_models.scan import (
    OBJECT_PICKLE,
    Call,
    Dict,
    Global,
    List,
    New,
    Set,
    Tuple,
    Value,
    run_pickle,
)

_NODE_BYTES = 64
"""The cost of a value apart from its text: its approximate size in memory."""
_TEXTS = (str, bytes, bytearray)
_REFERENCES = frozenset({"_request_type", "_response_type", "_response_format"})
"""Fields of the framework's objects that refer to types."""
_MODEL_STATE = frozenset(
    {"__dict__", "__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__"}
)
_STATE_MAKERS = frozenset({"dataclasses", "attr._make", "pydantic.main", "pydantic.root_model"})
"""Modules whose `__setstate__` takes the result of their `__getstate__`: the fields."""
_PLAIN = (str, int, float, bool, bytes, type(None), tuple)
_GETATTR = Global("builtins", "getattr")
_NAME_CHARS_MAX = 120


class KnownTypes:
    """The types that may be imported, found by their names.

    Args:
        registry: The rules: of the framework's types, and of the application's.
        main: The module that ran as a program, whose types were pickled as `__main__`'s.
    """

    def __init__(self, registry: Registry, main: str | None = None) -> None:
        self.registry = registry
        self.rules: dict[Global, TypeRule] = {}
        for rule in registry.rules:
            module, name = rule.cls.__module__, rule.cls.__qualname__
            self.rules[Global(module, name)] = rule
            if module == main:
                self.rules[Global("__main__", name)] = rule
        self.references = TypeReferences(registry)
        self.forms: dict[type, FieldForm] = {}
        for each in WORKFLOW_TYPES:
            form = each.form(registry)
            if form is not None:
                self.forms[each.cls] = form


class PickledValues:
    """Builds the values of one file, within a total cost limit."""

    def __init__(self, known: KnownTypes) -> None:
        self.known = known
        self._spent = 0
        self._made: dict[int, tuple[Any, int]] = {}
        """The value of each node, with its cost: each further use costs the same again."""

    def unpickled(self, data: bytes, what: str) -> Any:
        """The value that a pickle holds.

        Raises:
            FileRefused: The bytes are not such a pickle, or name something that may not be
                imported.
            EncodeError, DecodeError: An object cannot be built.
        """
        self._made = {}
        return self.value(run_pickle(data, what, OBJECT_PICKLE).value)

    def is_called(self, value: Any, key: str) -> bool:
        """Whether a value is of the type that a file names next to its pickle."""
        module, _, name = key.partition(":")
        rule = self.known.rules.get(Global(module, name))
        if rule is not None:
            return type(value) is rule.cls
        return (module, name) == (type(value).__module__, type(value).__qualname__)

    def framework_object(self, cls: type, attributes: Mapping[str, Any]) -> Any:
        """An object of the framework, from the values of its fields.

        Raises:
            FileRefused: They are not the fields of the class.
        """
        # The registry has rules for all of them.
        form, rule = self.known.forms[cls], cast("TypeRule", self.known.registry.rule_of(cls))
        try:
            return rule.from_body([form.stored(form.completed(attributes))])
        except (EncodeError, DecodeError) as error:
            raise _refused(f"{cls.__qualname__}: {error.message}", error.hint) from error

    def spend(self, bytes_: int) -> None:
        """Add a cost to the total.

        Raises:
            FileRefused: The file costs more than it may.
        """
        self._spent += bytes_
        if self._spent > IMPORT_VALUE_BYTES_MAX:
            raise _refused(
                f"its values, each counted wherever it is used, take more than "
                f"{IMPORT_VALUE_BYTES_MAX} bytes"
            )

    def value(self, node: Value) -> Any:
        """The value that a symbol stands for."""
        if not isinstance(node, Tuple | List | Set | Dict | Call | New):
            if isinstance(node, Global):
                raise _unknown("it refers to", node)
            self.spend(_NODE_BYTES + (len(node) if isinstance(node, _TEXTS) else 0))
            return node
        found = self._made.get(id(node))
        if found is not None:
            self.spend(found[1])
            return found[0]
        before = self._spent
        self.spend(_NODE_BYTES)
        made = self._container(node)
        self._made[id(node)] = made, self._spent - before
        return made

    def _container(self, node: Tuple | List | Set | Dict | Call | New) -> Any:
        match node:
            case Tuple():
                return tuple(self.values(node.values))
            case List():
                return self.values(node.values)
            case Dict():
                return self.mapping(node.pairs)
            case Set():
                return self._members(node)
            case Call():
                return self._called(node)
            case _:
                return self._new(node)

    def values(self, nodes: Iterable[Value]) -> list[Any]:
        """The values of several symbols."""
        return [self.value(each) for each in nodes]

    def mapping(self, pairs: Sequence[tuple[Value, Value]]) -> dict[Any, Any]:
        """A dict; keys are checked before anything hashes them."""
        keys = self.values(key for key, _ in pairs)
        self.known.registry.check_keys(keys)
        made = dict(zip(keys, self.values(item for _, item in pairs), strict=True))
        if len(made) != len(keys):
            raise _refused("a dict has a key twice")
        return made

    def _members(self, node: Set) -> Any:
        members = self.values(node.values)
        self.known.registry.check_keys(members, in_set=True)
        made = frozenset(members) if node.frozen else set(members)
        if len(made) != len(members):
            raise _refused("a set has a member twice")
        return made

    # ------------------------------------------------------------------ what is called

    def _called(self, node: Call) -> Any:
        function = node.function
        if function in PLAIN_CALLS or function in _CONTAINERS:
            return _made_by(function, self, node)
        if function == _GETATTR:
            return self._named_member(node)
        rule = self.known.rules.get(function)
        if rule is None:
            raise _unknown("it calls", function)
        _require_bare(node)
        kind = rule.kind.shape.kind
        if kind == "enum":
            return _member(rule, self.values(node.arguments.values))
        if kind == "struct":
            return _fill(rule, self.values(node.arguments.values))
        raise _refused(
            f"it calls {_shown(function)}, which Python pickles in another way unless the class "
            "says how by itself"
        )

    def _named_member(self, node: Call) -> Any:
        """A member of an enum by its name, as some versions of Python pickle it."""
        _require_bare(node)
        match node.arguments.values:
            case (Global() as cls, str() as name):
                rule = self.known.rules.get(cls)
                if rule is not None and rule.kind.shape.kind == "enum":
                    return rule.from_body([{"name": name}])
            case _:
                pass
        raise _unknown("it calls", _GETATTR)

    # ------------------------------------------------------------------ what is made bare

    def _new(self, node: New) -> Any:
        if node.function == _UUID:
            made = uuid_of(self._state(node))
            if made is None:
                raise _malformed(_UUID)
            return made
        rule = self.known.rules.get(node.function)
        if rule is None:
            raise _unknown("it holds an object of", node.function)
        if rule.cls in self.known.forms:
            return self._framework(rule.cls, node)
        if node.pairs or node.values:
            raise _malformed(node.function)
        kind = rule.kind.shape.kind
        if kind == "namedtuple" and not node.built:
            return _fill(rule, self.values(node.arguments.values))
        if kind in ("dataclass", "attrs", "pydantic") and not node.arguments.values:
            _require_own_state(rule.cls)
            state = self._state(node, rule.cls)
            return _model(rule, state) if kind == "pydantic" else _filled(rule, state)
        if kind == "pair":
            raise _refused(
                f"{_shown(node.function)}: its rule has encode= and decode= functions, and a "
                "pickle does not hold what they take",
                "Let the application save it: run what waits in the old storage to its end first.",
            )
        raise _malformed(node.function)

    def _state(self, node: New, cls: type | None = None) -> dict[str, Any]:
        """The attributes that a state sets, without those that `Class[X](...)` leaves behind."""
        found = _attributes(node, cls)
        return {name: self.value(item) for name, item in found if name != "__orig_class__"}

    def _framework(self, cls: type, node: New) -> Any:
        if node.arguments.values or node.pairs or node.values:
            raise _malformed(node.function)
        attributes = {}
        for name, item in _attributes(node, cls):
            if name in _REFERENCES and isinstance(item, Global | Call):
                self.spend(_NODE_BYTES)
                form = reference_of(item, self.known.rules)
                if form is None:
                    raise _unknown("it refers to", item if isinstance(item, Global) else None)
                attributes[name] = self.known.references.decode(form)
            elif name != "raw_representation":
                attributes[name] = self.value(item)
        return self.framework_object(
            cls, _renewed(attributes) if _is_call(attributes) else attributes
        )


def _is_call(attributes: Mapping[str, Any]) -> bool:
    return attributes.get("type") == "function_call" and "hosted" not in attributes


def _renewed(attributes: dict[str, Any]) -> dict[str, Any]:
    """The framework's conversion of a call that a release before `hosted` has written."""
    label = (attributes.get("additional_properties") or {}).get("server_label")
    given = attributes.get("server_name")
    return {**attributes, "hosted": bool(label), "server_name": given or label or None}


def _attributes(node: New, cls: type | None) -> Iterable[tuple[str, Value]]:
    """The attributes that a state sets, by name."""
    pairs: list[tuple[Value, Value]] = []
    for each in _parts(node.state, cls):
        if isinstance(each, Dict):
            pairs += each.pairs
        elif each is not None:
            raise _malformed(node.function)
    found = {name: item for name, item in pairs if type(name) is str}
    if len(found) != len(pairs):
        raise _malformed(node.function)
    return found.items()


def _parts(state: Value, cls: type | None) -> Iterable[Value]:
    """The parts of a state; for a class with slots, its `__dict__` and its slots."""
    if isinstance(state, Tuple):
        return state.values
    if not isinstance(state, List) or cls is None or not _lists_fields(cls):
        return (state,)
    fields: Any = dataclasses.fields(cls)
    named = list(zip([each.name for each in fields], state.values, strict=False))
    return (Dict(named) if len(state.values) == len(fields) else state,)


def _lists_fields(cls: Any) -> bool:
    """Whether a state is a list of the fields: of a frozen dataclass with slots."""
    parameters = getattr(cls, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen and "__slots__" in vars(cls)


def _require_own_state(cls: type) -> None:
    """Refuse a class with its own way to set its state."""
    taker = inspect.getattr_static(cls, "__setstate__", None)
    if taker is not None and getattr(taker, "__module__", None) not in _STATE_MAKERS:
        raise _refused(
            f"{cls.__module__}.{cls.__qualname__}: it has a __setstate__ of its own, and only that "
            "could tell what its pickled state means",
            "Let the application save it: run what waits in the old storage to its end first.",
        )


# ---------------------------------------------------------------------- types with rules


def _filled(rule: TypeRule, attributes: Mapping[str, Any]) -> Any:
    """An object of a dataclass or an attrs class."""
    names, fields = rule.kind.shape.fields, {}
    for name, item in attributes.items():
        if name in names:
            fields[name] = item
        elif not isinstance(
            inspect.getattr_static(rule.cls, name, None), functools.cached_property
        ):
            raise _field(rule, f"the attribute {_short(name)}, which is not a field of the class")
    return _completed(rule, fields, [fields])


def _fill(rule: TypeRule, values: list[Any]) -> Any:
    """An object of a class whose fields are pickled in their order."""
    names = tuple(rule.kind.shape.fields)
    if len(values) > len(names):
        raise _field(rule, f"{len(values)} values for {len(names)} fields")
    fields = dict(zip(names, values, strict=False))
    return _completed(rule, fields, [fields])


def _model(rule: TypeRule, state: Mapping[str, Any]) -> Any:
    """A model of pydantic."""
    fields = state.get("__dict__")
    given = state.get("__pydantic_fields_set__")
    extra = state.get("__pydantic_extra__")
    private = state.get("__pydantic_private__")
    if not state.keys() <= _MODEL_STATE or type(fields) is not dict or type(given) is not set:
        raise _field(rule, "another state than pydantic pickles")
    for each in (extra, private):
        if each is not None and type(each) is not dict:
            raise _field(rule, "another state than pydantic pickles")
    names = (*fields, *(extra or ()))
    for name in fields:
        if name not in rule.kind.shape.fields:
            raise _field(rule, f"the attribute {_short(name)}, which is not a field of the class")
    mask = sum(1 << place for place, name in enumerate(names) if name in given)
    return _completed(rule, fields, [fields, mask, extra, private])


def _completed(rule: TypeRule, fields: dict[str, Any], body: list[Any]) -> Any:
    """An object, with defaults for fields that its class has gained since."""
    missing = [name for name in rule.kind.shape.fields if name not in fields]
    lacking = [name for name in missing if name not in rule.kind.defaults]
    if lacking:
        raise _field(rule, f"no field {lacking[0]!r}, which has no default")
    return rule.from_body(rule.kind.upgrade_body(fields, body))


def _member(rule: TypeRule, values: list[Any]) -> Any:
    """A member of an enum, by its value; no code of the enum looks it up."""
    cls: Any = rule.cls
    if len(values) == 1 and type(values[0]) in _PLAIN:
        (value,) = values
        for name, member in cls.__members__.items():
            held = member._value_
            if type(held) is type(value) and held == value:
                return rule.from_body([{"name": name}])
        if issubclass(cls, Flag) and type(value) is int:
            return rule.from_body([{"value": value}])
    raise _field(rule, "another value than its members have")


def _field(rule: TypeRule, found: str) -> FileRefused:
    name = f"{rule.cls.__module__}.{rule.cls.__qualname__}"
    return _refused(
        f"{name}: expected the fields that the class has now, found {found}",
        "Import it with the version of the application that wrote it, then upgrade the rule.",
    )


# ---------------------------------------------------------------------- types that Python brings

_UUID = Global("uuid", "UUID")


def _made_by(function: Global, values: PickledValues, node: Call) -> Any:
    """The result of a call that the tables allow, with arguments in Python's pickle form."""
    if function in _CONTAINERS:
        made = _CONTAINERS[function](values, node)
    else:
        _require_bare(node)
        arguments = values.values(node.arguments.values)
        try:
            made = PLAIN_CALLS[function].make(*arguments)
        except FAULTS as exc:
            raise _malformed(function) from exc
    if made is None:
        raise _malformed(function)
    return made


def _deque(values: PickledValues, node: Call) -> Any:
    _require_bare(node, items=True)
    match values.values(node.arguments.values):
        case []:
            longest = None
        case [(), longest]:
            pass
        case _:
            return None
    items = values.values(node.values)
    return deque(items, longest) if is_deque_length(longest, len(items)) else None


def _ordered_dict(values: PickledValues, node: Call) -> Any:
    _require_bare(node, pairs=True)
    return None if node.arguments.values else OrderedDict(values.mapping(node.pairs))


def _default_dict(values: PickledValues, node: Call) -> Any:
    _require_bare(node, pairs=True)
    match node.arguments.values:
        case ():
            factory = None
        case (Global() as named,) if named in FACTORIES:
            factory = FACTORIES[named]
        case _:
            return None
    return defaultdict(factory, values.mapping(node.pairs))


_CONTAINERS: dict[Global, Callable[[PickledValues, Call], Any]] = {
    Global("collections", "deque"): _deque,
    Global("collections", "OrderedDict"): _ordered_dict,
    Global("collections", "defaultdict"): _default_dict,
}
"""The callables that create containers, each in Python's pickle form of the type."""


def _require_bare(node: Call, *, items: bool = False, pairs: bool = False) -> None:
    """Refuse attributes or items set on a result, unless its type allows them."""
    if node.built or (node.values and not items) or (node.pairs and not pairs):
        raise _malformed(node.function)


# ---------------------------------------------------------------------- refusals


def _short(name: object) -> str:
    text = visible(str(name))
    return text if len(text) <= _NAME_CHARS_MAX else f"{text[:_NAME_CHARS_MAX]}..."


def _shown(name: Global) -> str:
    return _short(str(name))


def _refused(message: str, hint: str | None = None) -> FileRefused:
    return FileRefused(message, hint=hint)


def _malformed(name: Global) -> FileRefused:
    return _refused(f"it holds {_shown(name)} in another form than Python pickles it in")


def _unknown(verb: str, name: Global | None) -> FileRefused:
    """The error for a name that is in no table, with the line that allows a type."""
    if name is None:
        return _refused(f"{verb} a type in another form than Python pickles it in")
    message = f"{verb} {_shown(name)}, which is none of the types that may be imported"
    parts = (*name.module.split("."), *name.name.split("."))
    if not all(part.isidentifier() for part in parts) or len(str(name)) > _NAME_CHARS_MAX:
        return _refused(message)
    if name.module == "__main__":
        return _refused(
            message,
            "If it is a type of your application, name the module that was started as a program: "
            "--main MODULE. If it is none, find out who wrote the file.",
        )
    rule = rule_name_of(name.module, name.name)
    return _refused(
        message,
        "If it is a type of your application, name a workflow that declares it, --workflow "
        f"MODULE:OBJECT, or a registry with registry.allow({name.name}, name={rule!r}), "
        "--registry MODULE:OBJECT. If it is none, find out who wrote the file.",
    )
