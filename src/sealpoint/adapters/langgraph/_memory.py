# SPDX-License-Identifier: Apache-2.0
"""What an application's own objects held when they were first looked at.

A graph is looked at again at each run, because anybody in the process can change it. An application
also fills names while it runs, such as a client that is made when it is first needed; that is not
another graph, and a new process would not have it. So a name, an attribute or a place in a list
that was empty at the first look stays out of later looks. What takes the place of something is
looked at, and so is whatever is added to a list or a dict that held tools, models, graphs or code.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["PLAIN", "Memory"]

PLAIN = frozenset({type(None), bool, bytes, float, int, str})
"""Values of these have no parts."""
_Slots = Mapping[Any, Any]


class Memory:
    """What was found where, for as long as it can still be found there."""

    def __init__(self, before: "Memory | None" = None) -> None:
        """Remember what an earlier look found; that one stays as it is."""
        self._before = {} if before is None else before.found
        self.found: dict[int, tuple[object, frozenset[Any] | None]] = {}
        """By the identity of an owner: the owner, or another object could get its identity, and
        which of its slots count; None: each of them."""

    def held(self, owner: object, slots: _Slots, parts: tuple[type, ...] = ()) -> dict[Any, Any]:
        """The slots of an owner that are to be looked at.

        Args:
            owner: What has the slots.
            slots: What they hold now.
            parts: If one of these is in a slot, the owner is a collection of such things, and
                each of its slots counts.
        """
        known = self.found.get(id(owner)) or self._before.get(id(owner))
        if known is None or known[0] is not owner:
            collects = any(issubclass(type(value), parts) for value in slots.values())
            keys = frozenset(key for key, value in slots.items() if not _is_empty(value))
            known = (owner, None if collects else keys)
        self.found[id(owner)] = known
        counted = known[1]
        return {key: slots[key] for key in slots if counted is None or key in counted}


def _is_empty(value: object) -> bool:
    # By its type: a proxy that is asked for its class may look for something that is not there.
    kind = type(value)
    return kind in PLAIN or (issubclass(kind, list | tuple | dict | set) and not value)
