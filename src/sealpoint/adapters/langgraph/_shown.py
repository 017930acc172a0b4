# SPDX-License-Identifier: Apache-2.0
"""Values of a graph as people are shown them, and as a statement binds them: plain JSON.

What has no plain form is told by its type and the digest of its sealed form, so that two values
which look the same and are not the same are told apart.
"""

from hashlib import sha256
from typing import Any

from langgraph.types import Interrupt

from sealpoint.codec import Registry
from sealpoint.errors import EncodeError, SealpointError
from sealpoint.store import plain_value

__all__ = ["shown", "shown_question"]


def shown(value: Any, registry: Registry) -> Any:
    """A value as JSON.

    Raises:
        TypeNotAllowed: It holds a type that the registry does not allow.
    """
    try:
        return plain_value(value, "value")
    except SealpointError:
        data = registry.encode(value)
    return {
        "type": type(value).__qualname__,
        "sha256": sha256(data).hexdigest(),
        "text": _text(value),
    }


def shown_question(value: Any, registry: Registry) -> Any:
    """What interrupts wait for, as JSON."""
    found = value if isinstance(value, list | tuple) else [value]
    return [
        {"id": each.id, "value": _shown_or_type(each.value, registry)}
        if isinstance(each, Interrupt)
        else _shown_or_type(each, registry)
        for each in found
    ]


def _shown_or_type(value: Any, registry: Registry) -> Any:
    try:
        return shown(value, registry)
    except EncodeError:
        # The save itself fails because of it, with the path.
        return {"type": type(value).__qualname__}


def _text(value: Any) -> str:
    dump = getattr(value, "model_dump_json", None)
    return str(dump()) if callable(dump) else repr(value)
