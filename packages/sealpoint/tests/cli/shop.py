# SPDX-License-Identifier: Apache-2.0
"""A module that the command line is asked about."""

from dataclasses import dataclass
from typing import Any, ClassVar

from sealpoint import Registry


@dataclass
class Order:
    """A type that the module's own registry allows."""

    items: list[Any]


@dataclass
class Coupon:
    """A type that nothing allows."""

    code: str


class Wide:
    """A holder of values, to reach through dots."""

    state: ClassVar[dict[str, Any]] = {"orders": [Order(["tea"])]}


registry = Registry()
registry.allow(Order, name="shop.order")

empty = Registry()

good: dict[str, Any] = {"orders": [Order(["tea"])], "count": 1}
bad: dict[str, Any] = {"orders": [Order([Coupon("x")])], "coupons": [Coupon("y"), Coupon("z")]}
strange = {"\x1b[31mred": Coupon("x")}


def make() -> dict[str, Any]:
    """Return a value."""
    return good


def fail() -> None:
    """Raise."""
    message = "no state today"
    raise RuntimeError(message)
