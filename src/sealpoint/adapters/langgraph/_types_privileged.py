# SPDX-License-Identifier: Apache-2.0
"""Where `Send` and `Command` may be stored.

Whoever can put one of them into a checkpoint decides which node runs next, and with what. So they
are stored only where the framework itself puts them:

- `Send` in `__pregel_tasks`, the channel of pending tasks, and in its writes;
- `Command` and `Send` in `__return__`, where the result of a task of the functional API is kept for
  the code that called it;
- `Command`, and `Send` as its goto, in `__end__` and `__previous__`, the result of an entrypoint,
  which may be a node of another graph.

Everywhere else they are refused, in whatever list, dict, dataclass or model they lie, and also in
what another `Send` or `Command` carries. Messages and documents are not looked into: the framework
executes nothing that it finds inside of them.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langgraph.constants import END
from langgraph.types import Command, Interrupt, Overwrite, Send

from sealpoint.adapters.langgraph._types import FRAMEWORK_TYPES
from sealpoint.errors import TypeNotAllowed

__all__ = ["check_privileged"]

_TASKS = "__pregel_tasks"
_RETURN = "__return__"
_PREVIOUS = "__previous__"

_Allowed = frozenset[type]
_Look = tuple[Any, _Allowed, type | None]
"""A value, what it may be, and the `Send` or `Command` that carries it, if one does."""
_NONE: _Allowed = frozenset()
_BOTH: _Allowed = frozenset({Command, Send})
_COMMAND: _Allowed = frozenset({Command})
_SEND: _Allowed = frozenset({Send})
_PLACES: dict[str, _Allowed] = {
    _TASKS: _SEND,
    _RETURN: _BOTH,
    END: _COMMAND,
    _PREVIOUS: _COMMAND,
}

_LEAVES: frozenset[type] = frozenset(
    {
        *(type(None), bool, int, float, complex, str, bytes, bytearray),
        *(date, datetime, time, timedelta, Decimal, UUID, Document),
        *(each.cls for each in FRAMEWORK_TYPES if issubclass(each.cls, BaseMessage | str)),
    }
)
"""Types whose objects need not be looked into."""


def check_privileged(channel: str, value: Any) -> None:
    """Check that a value for a channel steers nothing, unless the channel is for that.

    Args:
        channel: The channel that holds the value, or that it is written to.
        value: The value, before it is encoded.

    Raises:
        TypeNotAllowed: A `Send` or `Command` lies where the framework puts none.
    """
    if type(value) in _LEAVES:
        return
    waiting: list[_Look] = [(value, _PLACES.get(channel, _NONE), None)]
    seen: set[tuple[int, _Allowed]] = set()
    while waiting:
        found, allowed, carrier = waiting.pop()
        if (id(found), allowed) in seen:
            continue
        seen.add((id(found), allowed))
        if type(found) in _BOTH:
            if type(found) not in allowed:
                raise _misplaced(channel, type(found), carrier)
            waiting.extend(_carried(found))
            continue
        members = _members(found)
        # A list of messages is done with after this one look at it.
        if not _LEAVES.issuperset(map(type, members)):
            waiting.extend(
                (each, allowed, carrier) for each in members if type(each) not in _LEAVES
            )


def _carried(found: Any) -> Iterable[_Look]:
    """What a privileged object carries, each with what it may hold in its turn."""
    if type(found) is Send:
        return ((found.arg, _NONE, Send),)
    return (
        (found.update, _NONE, Command),
        (found.resume, _NONE, Command),
        (found.goto, _SEND, Command),
    )


def _members(value: Any) -> list[Any]:
    """What a container or an object with declared fields holds; nothing of any other."""
    if isinstance(value, list | tuple | set | frozenset | deque):
        return list(value)
    if isinstance(value, Mapping):
        return [*value, *value.values()]
    kind = type(value)
    if kind is Overwrite or kind is Interrupt:
        return [value.value]
    if hasattr(kind, "model_fields"):
        return [*value.__dict__.values(), *(value.__pydantic_extra__ or {}).values()]
    for fields in ("__dataclass_fields__", "__attrs_attrs__", "__struct_fields__"):
        if hasattr(kind, fields):
            names = (getattr(each, "name", each) for each in getattr(kind, fields))
            return [getattr(value, name, None) for name in names]
    return []


def _misplaced(channel: str, kind: type, carrier: type | None) -> TypeNotAllowed:
    name = kind.__qualname__
    if carrier is not None:
        return TypeNotAllowed(
            f"channel {channel!r}: expected data in a {carrier.__qualname__}, found a "
            f"{kind.__module__}.{name}, which steers the graph",
            hint="Give the node plain data, such as Send(node, data), and let it return the "
            f"{name} that it makes of it.",
        )
    places = ", ".join(repr(place) for place, allowed in _PLACES.items() if kind in allowed)
    return TypeNotAllowed(
        f"channel {channel!r}: expected data, found a {kind.__module__}.{name}, which steers the "
        f"graph and may be stored in {places} only",
        hint=f"Return the {name} from a node or an edge instead of keeping it in the state; to "
        "keep what it says, store it as plain data.",
    )
