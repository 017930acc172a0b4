# SPDX-License-Identifier: Apache-2.0
"""Limits on the cost of one value, counted while it is encoded, decoded or walked.

The same bounds hold in every direction, so that everything that was written can be read. Each
refusal names the limit that was exceeded; nothing is built or hashed before its bound was checked.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

from sealpoint.codec._arrays import find_encoder, is_key_scalar
from sealpoint.codec._builtin_types import ENCODERS, PLAIN_REASONS
from sealpoint.codec._dict_keys import collision_fault, key_fault, large_int_fault
from sealpoint.codec._msgpack import count_nodes
from sealpoint.codec._type_rules import TypeRule
from sealpoint.codec._wire_format import REFERENCE, STREAMS, Stream, split_ids
from sealpoint.errors import (
    BytesMalformed,
    DecodeLimitExceeded,
    EncodeLimitExceeded,
    TypeNotAllowed,
    ValueNotAllowed,
)
from sealpoint.limits import Limits


class Direction(NamedTuple):
    """The errors to raise during encoding, or during decoding."""

    exceeded: type[EncodeLimitExceeded | DecodeLimitExceeded]
    keys_refused: Callable[[str], ValueNotAllowed | BytesMalformed]
    cycle: str
    """Another possible cause of exceeding a depth, for the message."""


ENCODING = Direction(
    EncodeLimitExceeded,
    lambda fault: ValueNotAllowed(
        fault, hint="Use plain keys, or give the key's rule validate=True to let its code run."
    ),
    "; a reference cycle does this too",
)
DECODING = Direction(DecodeLimitExceeded, BytesMalformed, "")


class Bounds:
    """The cost of the parts of one value so far. Used once, by one thread.

    The number of bytes bounds the number of objects, so objects are counted only if the bytes alone
    could be too many.
    """

    __slots__ = (
        "_direction",
        "_expanded_bytes",
        "_nodes_left",
        "_rules",
        "_uncounted",
        "_uncounted_bytes",
        "_uncounted_groups",
        "costly_values",
        "fraction_keys",
        "limits",
        "unknown_key",
    )

    def __init__(
        self, rules: Mapping[type, TypeRule], limits: Limits, direction: Direction
    ) -> None:
        self._rules = rules
        self._direction = direction
        self._expanded_bytes = 0
        self._nodes_left = limits.value_nodes_max
        self._uncounted: list[bytes] = []
        self._uncounted_groups: list[Sequence[bytes]] = []
        self._uncounted_bytes = 0
        self.limits = limits
        self.costly_values = 0
        self.fraction_keys = 0
        self.unknown_key: Any = None
        """The first key found whose type no rule allows."""

    def _exceeded(
        self, what: str, name: str, things: str, found: int | None = None, more: str = ""
    ) -> Exception:
        most = getattr(self.limits, name)
        if found is None:
            words = f"it has more than {most} {things} ({name}){more}"
        else:
            words = f"expected at most {most} {things} ({name}), found {found}"
        return self._direction.exceeded(f"{what}: {words}")

    def check_bytes(self, size_bytes: int) -> None:
        """Refuse a value that is too long."""
        if size_bytes > self.limits.value_bytes_max:
            raise self._exceeded("value", "value_bytes_max", "bytes", size_bytes)

    def expand(self, size_bytes: int) -> None:
        """Count the bytes behind a reference: a blob may be named repeatedly."""
        self._expanded_bytes += size_bytes
        self.check_bytes(self._expanded_bytes)

    def check_nodes(self, parts: Sequence[bytes]) -> None:
        """Count the objects in encoded parts, before any is built."""
        self._uncounted += parts
        self._uncounted_bytes += sum(map(len, parts))
        if self._uncounted_bytes > self._nodes_left:
            self._count()

    def check_members(self, groups: Sequence[Sequence[bytes]], size_bytes: int) -> None:
        """Do the same for groups of encoded parts; few bytes need no look at the parts."""
        self._uncounted_groups += groups
        self._uncounted_bytes += size_bytes
        if self._uncounted_bytes > self._nodes_left:
            self._count()

    def check_whole(self, data: bytes) -> None:
        """Count the bytes and objects of an encoding."""
        size_bytes = len(data)
        if size_bytes > self.limits.value_bytes_max:
            self.check_bytes(size_bytes)
        self._uncounted.append(data)
        self._uncounted_bytes += size_bytes
        if self._uncounted_bytes > self._nodes_left:
            self._count()

    def _count(self) -> None:
        for part in chain(self._uncounted, chain.from_iterable(self._uncounted_groups)):
            self._nodes_left -= count_nodes(part, self._nodes_left)
            if self._nodes_left < 0:
                raise self._exceeded("value", "value_nodes_max", "objects")
        self._uncounted.clear()
        self._uncounted_groups.clear()
        self._uncounted_bytes = 0

    def costly(self) -> None:
        """Count a value that costs much more than its bytes."""
        self.costly_values += 1
        if self.costly_values > self.limits.costly_values_max:
            things = "paths, networks, deques, OrderedDicts and defaultdicts"
            raise self._exceeded("value", "costly_values_max", things)

    def check_depth(self, value: Any, depth: int = 0) -> None:
        """Refuse plain containers that are nested too deeply."""
        if type(value) is dict:
            value = value.values()
        elif type(value) is not list:
            return
        if depth >= self.limits.depth_max:
            raise self.too_deep()
        for member in value:
            self.check_depth(member, depth + 1)

    def too_deep(self) -> Exception:
        """Return the error for plain containers that are nested too deeply."""
        things = "lists and dicts in one another"
        return self._exceeded("value", "depth_max", things, more=self._direction.cycle)

    def too_many_extensions(self) -> Exception:
        """Return the error for extensions that are nested too deeply."""
        things = "extensions in one another"
        return self._exceeded("value", "extension_depth_max", things, more=self._direction.cycle)

    def check_references(self, depth: int) -> None:
        """Refuse references that are nested too deeply."""
        if depth > self.limits.reference_depth_max + 1:
            raise self._exceeded("reference", "reference_depth_max", "references in one another")

    def check_levels(self, levels: int, what: str) -> None:
        """Refuse an index with too many levels."""
        if levels > self.limits.tree_levels_max:
            raise self._exceeded(what, "tree_levels_max", "index levels", levels)

    def parse_reference(self, payload: bytes) -> tuple[Stream, int, int, int, list[bytes]]:
        """Return the stream, levels, count, length and ids of a reference.

        Raises:
            BytesMalformed: It is not a reference.
            DecodeLimitExceeded: It expands to more than a value may have.
        """
        if len(payload) < REFERENCE.size or payload[0] not in STREAMS:
            raise BytesMalformed("reference: expected a stream, levels, a count and a length")
        code, levels, count, total = REFERENCE.unpack_from(payload)
        ids = split_ids(payload[REFERENCE.size :])
        if not levels and len(ids) > total:
            raise BytesMalformed(f"reference: expected at most {total} chunks")
        self.check_levels(levels, "reference")
        self.expand(total)
        return STREAMS[code], levels, count, total, ids

    def check_keys(self, keys: Sequence[Any], *, in_set: bool = False) -> None:
        """Check keys before hashing them: refuse application hash code, and collisions."""
        if (fault := key_fault(keys, self._hash_parts)) is not None:
            raise self._direction.keys_refused(fault)
        fault = large_int_fault(keys, self._rule_parts, self.limits)
        if fault is None:
            fault = collision_fault(keys, self.limits, in_set=in_set)
        if fault is not None:
            raise self._direction.exceeded(fault)

    def _rule_parts(self, key: Any) -> Iterable[Any] | None:
        rule = self._rules.get(type(key))
        return None if rule is None else rule.kind.hash_parts(key)

    def _hash_parts(self, key: Any) -> Iterable[Any] | None:
        """Return the parts that hashing a key reads; None if that would run application code."""
        kind = type(key)
        if kind in self._rules:
            return self._rules[kind].kind.hash_parts(key)
        if kind is Fraction:
            # Since Python 3.12, fractions share one cache of their hashes.
            self.fraction_keys += 1
            if self.fraction_keys > self.limits.fraction_keys_max:
                things = "fractions as keys or members"
                raise self._exceeded("dict or set", "fraction_keys_max", things)
            return ()
        if kind not in ENCODERS and kind not in PLAIN_REASONS and find_encoder(kind) is None:
            self.unknown_key = key
            raise not_allowed(kind)
        return () if is_key_scalar(key) else None


def not_allowed(kind: type) -> TypeNotAllowed:
    """Return the error for a type that no rule allows."""
    return TypeNotAllowed(
        f"expected an allowed type, found {kind.__module__}.{kind.__qualname__}, "
        "which no rule allows"
    )
