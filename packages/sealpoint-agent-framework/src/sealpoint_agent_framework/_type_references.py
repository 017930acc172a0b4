# SPDX-License-Identifier: Apache-2.0
"""Types that stored objects refer to, under stored names of our own.

A request that waits for an answer names its own type and the type of the answer; a response names
the type for parsing it. Such a reference is stored as

    "str"                                   a built-in type, by its name in a fixed table
    {"rule": "shop.decision"}               a type of the registry, by the name of its rule
    {"of": ["list", "str"]}                 a generic type and its arguments
    {"union": ["str", "NoneType"]}          str | None; {"typing.Union": [...]} for Optional[str]
    {"literal": ["yes", "no"]}              Literal["yes", "no"]
    {"schema": {...}}                       a JSON schema, where the format of a response may be one

and read back through the same table and the rules of the registry in use, and in no other way: no
name from the data is imported or looked up. A reference without such a form is refused when it is
saved.
"""

import collections.abc
import functools
import inspect
import operator
import pathlib
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from sealpoint.codec import (
    BUILTINS,
    PLAIN_REASONS,
    Registry,
    TypeRule,
    allow_line,
    is_builtin,
    unknown_name,
    where_registry_goes,
)
from sealpoint.errors import BytesMalformed, TypeNotAllowed, UnknownType
from sealpoint_models.scan import Call, Global, Tuple, Value

_DEPTH_MAX = 16
_MEMBERS_MAX = 64
_SHOWN_CHARS_MAX = 80
_LITERALS = (str, int, bool, bytes, type(None))

_ABSTRACT = (
    *("Collection", "Container", "Hashable", "ItemsView", "Iterable", "Iterator", "KeysView"),
    *("Mapping", "MutableMapping", "MutableSequence", "MutableSet", "Reversible", "Sequence"),
    *("Set", "Sized", "ValuesView"),
)
_TYPING = (
    *("List", "Dict", "Tuple", "Set", "FrozenSet", "Deque", "DefaultDict", "OrderedDict"),
    *("Collection", "Container", "Iterable", "Iterator", "Mapping", "MutableMapping"),
    *("MutableSequence", "MutableSet", "Reversible", "Sequence", "AbstractSet"),
)
_CONTAINERS: dict[str, Any] = {
    **{each.__qualname__: each for each in (list, dict, tuple, set, frozenset)},
    **{
        each.__qualname__: each
        for each in (collections.deque, collections.OrderedDict, collections.defaultdict)
    },
    **{f"abc.{name}": getattr(collections.abc, name) for name in _ABSTRACT},
    **{f"typing.{name}": getattr(typing, name) for name in _TYPING},
}
"""The types that may have arguments, by name."""
_NAMED: dict[str, Any] = {
    **{each.__qualname__: each for each in PLAIN_REASONS},
    **{each.__qualname__: each for builtin in BUILTINS for each in builtin.types},
    **{each.__qualname__: each for each in (object, pathlib.Path, pathlib.PurePath)},
    "Any": Any,
    "...": ...,
    **_CONTAINERS,
}
"""Every type that is known without a rule, by its name in stored data."""
_NAMES = {each: name for name, each in _NAMED.items()}

_UNIONS: dict[str, tuple[Any, Callable[[list[Any]], Any]]] = {
    "union": (types.UnionType, lambda members: functools.reduce(operator.or_, members)),
    "typing.Union": (typing.Union, lambda members: typing.Union[tuple(members)]),  # noqa: UP007
}


class TypeReferences:
    """The types that objects may refer to, with one registry.

    Args:
        registry: The rules at the time when a reference is stored or read.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def encode(self, reference: Any, depth: int = 0) -> Any:
        """The stored form of a type.

        Raises:
            TypeNotAllowed: It is not built in, and no rule allows it or a part of it.
        """
        if depth > _DEPTH_MAX:
            raise _refused("more types in one another than can be stored")
        if isinstance(reference, typing.Hashable) and reference in _NAMES:
            return _NAMES[reference]
        if isinstance(reference, type) and typing.get_origin(reference) is None:
            rule = self._registry.rule_of(reference)
            if rule is None:
                raise _not_allowed(reference)
            return {"rule": rule.name}
        return self._encode_made(reference, depth + 1)

    def _encode_made(self, reference: Any, depth: int) -> Any:
        """The stored form of a type that consists of others."""
        origin, members = typing.get_origin(reference), typing.get_args(reference)
        if len(members) > _MEMBERS_MAX:
            raise _refused("a type made of more types than can be stored")
        if origin is typing.Literal:
            if not all(type(each) in _LITERALS for each in members):
                raise _refused(_shown(reference))
            return {"literal": list(members)}
        for name, (union, _) in _UNIONS.items():
            if origin is union:
                return {name: [self.encode(each, depth) for each in members]}
        head = _head(reference, origin, members)
        return {"of": [self.encode(each, depth) for each in (head, *members)]}

    def decode(self, form: Any, depth: int = 0) -> Any:
        """The type that a stored form means.

        Raises:
            DecodeError: It is not a form, or stands for a type that is not allowed here.
        """
        if type(form) is str:
            if form not in _NAMED:
                raise UnknownType("type reference: expected the name of a built-in type")
            return _NAMED[form]
        kind, said = _opened(form, depth)
        if kind == "rule":
            return self._decode_rule(said)
        if type(said) is not list or not 0 < len(said) <= _MEMBERS_MAX + 1:
            raise _malformed()
        if kind == "literal":
            return _literal(said)
        return _made(kind, [self.decode(each, depth + 1) for each in said])

    def encode_format(self, found: Any) -> Any:
        """The stored form of a response format: of a type, or of a JSON schema."""
        return {"schema": found} if isinstance(found, Mapping) else self.encode(found)

    def decode_format(self, form: Any) -> Any:
        """The response format that a stored form means.

        Raises:
            DecodeError: As for `decode`.
        """
        if type(form) is not dict or "schema" not in form:
            return self.decode(form)
        if len(form) != 1 or not isinstance(form["schema"], Mapping):
            raise _malformed()
        return form["schema"]

    def _decode_rule(self, name: Any) -> type:
        rule = self._registry.rule_named(name) if type(name) is str else None
        if rule is None:
            raise unknown_name(name) if type(name) is str else _malformed()
        return rule.cls


# ---------------------------------------------------------------------- references in pickles

_PICKLED_NAMES: dict[Global, str] = {
    Global("typing", "Any"): "Any",
    Global("builtins", "Ellipsis"): "...",
    **{
        Global(each.__module__, each.__qualname__): name
        for name, each in _NAMED.items()
        if isinstance(each, type)
    },
    **{Global("typing", name): f"typing.{name}" for name in _TYPING},
}
"""The name of each built-in type, by its name in Python's pickles."""
_TYPE = Global("builtins", "type")
_ALIAS = Global("types", "GenericAlias")
_REDUCE = Global("_functools", "reduce")
_OR = Global("_operator", "or_")
_GET_ITEM = Global("_operator", "getitem")
_UNION = Global("typing", "Union")
_LITERAL = Global("typing", "Literal")


def reference_of(node: Value, rules: Mapping[Global, TypeRule]) -> Any:
    """The stored form of a type that a pickle refers to; the lookup uses tables alone.

    Args:
        node: The reference in the pickle.
        rules: The rules of the registry, by the names of their classes in Python's pickles.

    Returns:
        The form, which `TypeReferences.decode` judges; None if the node is not such a reference.
    """
    if isinstance(node, Global):
        rule = rules.get(node)
        return _PICKLED_NAMES.get(node) if rule is None else {"rule": rule.name}
    if not isinstance(node, Call) or node.built or node.values or node.pairs:
        return None
    return _made_reference(node, rules)


def _made_reference(node: Call, rules: Mapping[Global, TypeRule]) -> Any:
    """The stored form of a type that consists of others."""
    function, arguments = node.function, node.arguments.values
    if function == _TYPE and arguments == (None,):
        return "NoneType"
    head, members = arguments if len(arguments) == 2 else (None, None)  # noqa: PLR2004
    items = members.values if isinstance(members, Tuple) else (members,)
    if function == _GET_ITEM:
        return _subscribed(head, items, rules)
    if function == _ALIAS:
        return _pickled("of", (head, *items), rules)
    return _pickled("union", items, rules) if (function, head) == (_REDUCE, _OR) else None


def _subscribed(head: Value, items: tuple[Value, ...], rules: Mapping[Global, TypeRule]) -> Any:
    """The stored form of `head[items]`."""
    if head == _LITERAL:
        return {"literal": list(items)}
    if head == _UNION:
        return _pickled("typing.Union", items, rules)
    return _pickled("of", (head, *items), rules)


def _pickled(kind: str, nodes: tuple[Value, ...], rules: Mapping[Global, TypeRule]) -> Any:
    forms = [reference_of(each, rules) for each in nodes]
    return None if None in forms else {kind: forms}


def _head(reference: Any, origin: Any, members: tuple[Any, ...]) -> Any:
    """The generic type that arguments belong to: `list` or `typing.List`, a class."""
    for name in _TYPING:
        spelled = _NAMED[f"typing.{name}"]
        if typing.get_origin(spelled) is origin and not isinstance(reference, types.GenericAlias):
            made = spelled[members] if members else spelled
            if made == reference:
                return spelled
    if not _takes_arguments(origin):
        raise _refused(_shown(reference))
    return origin


def _takes_arguments(head: Any) -> bool:
    """Whether `head[...]` runs nothing but Python's own code."""
    if isinstance(head, typing.Hashable) and head in _NAMES:
        return _NAMES[head] in _CONTAINERS
    own = inspect.getattr_static(typing.Generic, "__class_getitem__")
    return isinstance(head, type) and inspect.getattr_static(head, "__class_getitem__", 0) is own


def _opened(form: Any, depth: int) -> tuple[str, Any]:
    """The kind of reference of a form, and its content."""
    if type(form) is not dict or len(form) != 1 or depth > _DEPTH_MAX:
        raise _malformed()
    ((kind, said),) = form.items()
    if type(kind) is not str:
        raise _malformed()
    return kind, said


def _made(kind: str, parts: list[Any]) -> Any:
    """The type that consists of others."""
    try:
        if kind in _UNIONS:
            return _UNIONS[kind][1](parts)
        if kind == "of" and _takes_arguments(parts[0]):
            return parts[0][tuple(parts[1:])]
    except TypeError as exc:
        raise _malformed() from exc
    raise _malformed()


def _literal(said: list[Any]) -> Any:
    if not all(type(each) in _LITERALS for each in said):
        raise _malformed()
    return typing.Literal[tuple(said)]


def _malformed() -> BytesMalformed:
    return BytesMalformed("type reference: expected a name, a rule, or types that are made of them")


def _shown(reference: Any) -> str:
    text = repr(reference)
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}..."


def _refused(found: str) -> TypeNotAllowed:
    return TypeNotAllowed(
        f"type reference: expected a class, or a list, dict, tuple, set or union of such, "
        f"found {found}",
        hint="Refer to a class that a rule allows, such as a dataclass with the value as a field.",
    )


def _not_allowed(cls: type) -> TypeNotAllowed:
    """The error for a class without a rule, with the line that adds one."""
    message = (
        "type reference: expected a built-in type or one that a rule allows, found "
        f"{cls.__module__}.{cls.__qualname__}"
    )
    line = allow_line(cls)
    if is_builtin(cls):  # of an array library: it has no name, and needs no rule
        line = "Refer to a class of your own, such as a dataclass with the value as a field."
    elif line.startswith("registry."):
        line = f"Write: {where_registry_goes(line)}"
    return TypeNotAllowed(message, hint=line)
