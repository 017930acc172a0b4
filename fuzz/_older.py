# SPDX-License-Identifier: Apache-2.0
"""Values as an earlier version of the application wrote them: classes before they got a field.

They are where decoding fills in defaults, or says what changed; so the search begins there too.
"""

from collections.abc import Iterator
from dataclasses import make_dataclass
from typing import Any, NamedTuple

import attrs
import msgspec
import pydantic

from sealpoint import Registry

__all__ = ["older_values"]

_Plan = make_dataclass("Plan", [("a", Any)])
_Gone = make_dataclass("Gone", [("a", Any), ("z", Any)])
_Checked = make_dataclass("Checked", [("a", int)])
_Point = pydantic.create_model("Point", x=(Any, 0))
_Turned = pydantic.create_model("Turned", y=(float | None, None), x=(Any, 0))
_Account = pydantic.create_model("Account", a=(int, 0))
_Message = pydantic.create_model("Message", a=(int, 0))
_Step = attrs.make_class("Step", {"a": attrs.field(type=Any)})
_Record = msgspec.defstruct("Record", [("a", Any)])


class _Row(NamedTuple):
    a: Any


def older_values() -> Iterator[bytes]:
    """The encodings of such values, each under the name that the type has by now."""
    for name, value in (
        *(("d", _Plan(1)), ("d", _Gone(1, 2)), ("dv", _Checked(1)), ("s", _Plan(1))),
        *(("pf", _Point(x=1)), ("pf", _Turned(x=1, y=2.0)), ("pv", _Account(a=1))),
        *(("p", _Message(a=1)), ("at", _Step(1)), ("av", _Step(1)), ("n", _Row(1))),
        *(("nv", _Row(1)), ("m", _Record(1)), ("mp", _Record(1)), ("mv", _Record(1))),
    ):
        registry = Registry()
        registry.allow(type(value), name=name)
        yield registry.encode(value)
        yield registry.encode([value, {"in": (value,)}])
