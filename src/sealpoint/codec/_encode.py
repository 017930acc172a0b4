# SPDX-License-Identifier: Apache-2.0
"""From values to bytes.

The native engine walks plain lists, dicts and scalars; everything else comes to the hook, which
looks up the exact type. What the engine cannot write although it is allowed (a dict with other
keys, a string with lone surrogates) is rewritten on a second, slower way that gives the same
bytes for all the rest. The engine swallows exceptions of its hook, so the hook keeps the first
one aside and it is raised in place of the engine's own.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

import ormsgpack
from ormsgpack import Ext, Fragment, packb

from sealpoint.codec._arrays import (
    array_parts,
    check_shape,
    find_encoder,
    is_key_scalar,
    tensor_parts,
)
from sealpoint.codec._builtins import ENCODERS, PLAIN_REASONS
from sealpoint.codec._keys import collision_fault, is_plain_key, key_fault, large_int_fault
from sealpoint.codec._memo import ObjectMemos, memo_of
from sealpoint.codec._msgpack import NodeBudget
from sealpoint.codec._rules import TypeRule
from sealpoint.codec._time import encode_timestamp, is_timestamp
from sealpoint.codec._wire import Tag, array_header, bytes_header, extension_header
from sealpoint.errors import EncodeError, EncodeLimitExceeded, TypeNotAllowed, ValueNotAllowed
from sealpoint.limits import ENCODE_DEPTH_MAX, Limits

OPTIONS = (
    ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)
"""Everything that the engine would flatten on its own goes to our hook instead."""


_LONG_MEMBERS = 4


class Encoding:
    """One value on its way to bytes. Used once, by one thread."""

    __slots__ = (
        "_costly",
        "_depth",
        "_fraction_keys",
        "_nodes",
        "_rules",
        "culprit",
        "error",
        "limits",
    )

    def __init__(self, rules: Mapping[type, TypeRule], limits: Limits) -> None:
        self._rules = rules
        self._costly = 0
        self._fraction_keys = 0
        self._nodes = NodeBudget(limits.value_nodes_max)
        self._depth = 0
        self.limits = limits
        self.error: BaseException | None = None
        self.culprit: Any = None
        """The innermost object that could not be encoded; its path is found by a second walk."""

    def run(self, value: Any) -> bytes:
        """The flat encoding.

        Raises:
            EncodeError: A type or value is not allowed, or a limit is exceeded.
        """
        data = self._large(value) or self._plain(value)
        self._charge([data])
        if len(data) > self.limits.value_bytes_max:
            raise EncodeLimitExceeded(
                f"value: expected at most {self.limits.value_bytes_max} bytes (value_bytes_max), "
                f"found {len(data)}"
            )
        return data

    def run_short(
        self, value: Any, rule: TypeRule | None, depth: int, bytes_max: int
    ) -> bytes | None:
        """A part of a larger value, unless it is longer than `bytes_max`; then nothing counts.

        Args:
            value: The part.
            rule: Its rule, if it is of an application type.
            depth: How many extensions it is inside of.
            bytes_max: The most bytes that are of use.
        """
        counts = self._costly, self._fraction_keys
        self._depth = depth
        if rule is None:
            data = self._plain(value)
        else:
            try:
                payload = rule.label + self.pack(rule.kind.to_body(value))
            except BaseException as exc:
                self.error = self.error or exc
                self.culprit = value if self.culprit is None else self.culprit
                raise
            data = extension_header(Tag.TYPED, len(payload)) + payload
        if len(data) <= bytes_max:
            return data
        self._costly, self._fraction_keys = counts
        return None

    def run_members(
        self,
        members: Iterable[Any],
        passed: set[type],
        depth: int,
        bytes_max: int,
        objects: ObjectMemos | None = None,
    ) -> list[bytes | None]:
        """What `run_short` gives for each member of a list, in one loop.

        The hot path of a chat history. What is long, and what the engine does not take as it is,
        is left to the caller as None; so are members of a type that was long too often (those
        join `passed`), so that little is encoded in vain.
        """
        hook, rule_of = self._hook, self._rules.get
        found: list[bytes | None] = []
        keep = found.append
        too_deep = depth >= self.limits.extension_depth_max
        long = 0
        for value in members:
            kind = type(value)
            rule = rule_of(kind)
            if kind in passed or (too_deep and rule is not None):
                keep(None)
                continue
            memo_maker = None if objects is None or rule is None else rule.memo_maker
            memo = None
            if objects is not None and memo_maker is not None:
                if (known := objects.data_of(value)) is not None:
                    keep(known)
                    continue
                memo = memo_of(value, memo_maker)
            costly, fraction_keys = self._costly, self._fraction_keys
            try:
                if rule is None:
                    self._depth = depth
                    data = packb(value, hook, OPTIONS)
                else:
                    self._depth = depth + 1
                    source = value if memo is None else memo.rebuild()
                    data = rule.label + packb(rule.kind.to_body(source), hook, OPTIONS)
            except (ormsgpack.MsgpackEncodeError, EncodeError):
                if self.error is not None:
                    raise self.error from self.error.__cause__
                self._costly, self._fraction_keys = costly, fraction_keys
                keep(None)
                continue
            size = len(data)
            if size > bytes_max:
                self._costly, self._fraction_keys = costly, fraction_keys
                keep(None)
                long += 1
                if long > _LONG_MEMBERS:
                    passed.add(kind)
            elif rule is None:
                keep(data)
            else:
                whole = extension_header(Tag.TYPED, size) + data
                keep(whole)
                if objects is not None and memo is not None:
                    objects.note(value, memo, data, whole)
        return found

    def counts(self) -> tuple[int, int]:
        """How many costly values and fractions as keys there were so far."""
        return self._costly, self._fraction_keys

    def _add_counts(self, costly: int, fraction_keys: int) -> None:
        """Hold what another encoding counted of the same value to the limits as well."""
        for _ in range(costly):
            self.costly()
        for _ in range(fraction_keys):
            self._count_fraction()

    def _large(self, value: Any) -> bytes | None:
        """An array or tensor on its own, joined in one copy."""
        parts = {Tag.ARRAY: array_parts, Tag.TENSOR: tensor_parts}
        found = find_encoder(type(value)) if type(value) not in ENCODERS else None
        if found is None or found[0] not in parts:
            return None
        try:
            check_shape(value.shape, self)
            header, raw = parts[found[0]](value)
        except EncodeError:
            self.culprit = value
            raise
        if len(raw) < 1 << 16 or len(raw) + len(header) + 5 >= 1 << 32:
            return None
        inner = bytes_header(len(raw))
        size = len(header) + len(inner) + len(raw)
        return b"".join((extension_header(found[0], size), header, inner, raw))

    def _charge(self, parts: Sequence[bytes]) -> None:
        if not self._nodes.charge(parts):
            raise EncodeLimitExceeded(
                f"value: expected at most {self.limits.value_nodes_max} objects "
                "(value_nodes_max), found more"
            )

    def pack(self, value: Any) -> bytes:
        """Encode the payload of an extension."""
        self._enter()
        data = self._plain(value)
        self._leave()
        return data

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > self.limits.extension_depth_max:
            raise EncodeLimitExceeded(
                f"value: expected at most {self.limits.extension_depth_max} extensions in one "
                "another (extension_depth_max), found more; a reference cycle does this too"
            )

    def _leave(self) -> None:
        self._depth -= 1  # a failed encoding is never gone on with, so no try is needed

    def pack_body(self, body: list[Any]) -> bytes:
        """Encode the body of a typed value."""
        return self.pack(body)

    def pack_items(self, parts: Sequence[bytes]) -> bytes:
        """An array of members that are already encoded."""
        return array_header(len(parts)) + b"".join(parts)

    def costly(self) -> None:
        """Count a value that costs much more than its bytes."""
        self._costly += 1
        if self._costly > self.limits.costly_values_max:
            raise EncodeLimitExceeded(
                f"value: expected at most {self.limits.costly_values_max} paths, networks, "
                "deques, OrderedDicts and defaultdicts (costly_values_max), found more"
            )

    def check_keys(self, keys: Sequence[Any], *, in_set: bool = False) -> None:
        """Refuse keys that could not be read back without running application code."""
        if (fault := key_fault(keys, self._hashed)) is not None:
            raise ValueNotAllowed(
                fault,
                hint="Use plain keys, or give the key's rule validate=True to let its code run.",
            )
        if (fault := large_int_fault(keys, self._hashed_again, self.limits)) is not None:
            raise EncodeLimitExceeded(fault)
        if (fault := collision_fault(keys, self.limits, in_set=in_set)) is not None:
            raise EncodeLimitExceeded(fault)

    def _count_fraction(self) -> None:
        """Since Python 3.12 hashes of fractions are cached in a table that all of them share."""
        self._fraction_keys += 1
        if self._fraction_keys > self.limits.fraction_keys_max:
            raise EncodeLimitExceeded(
                f"dict or set: expected at most {self.limits.fraction_keys_max} fractions as keys "
                "or members (fraction_keys_max), found more"
            )

    def _hashed_again(self, key: Any) -> Iterable[Any] | None:
        rule = self._rules.get(type(key))
        return None if rule is None else rule.kind.hash_parts(key)

    def _hashed(self, key: Any) -> Iterable[Any] | None:
        rule = self._rules.get(type(key))
        if rule is not None:
            return rule.kind.hash_parts(key)
        if type(key) is Fraction:
            self._count_fraction()
            return ()
        known = type(key) in ENCODERS or type(key) in PLAIN_REASONS
        if not known and find_encoder(type(key)) is None:
            self.culprit = key
            raise _not_allowed(type(key))
        return () if is_key_scalar(key) else None

    def _hook(self, value: Any) -> Ext | Fragment:
        """Encode one object that is not plain; called by the engine."""
        try:
            if type(value) is datetime and is_timestamp(value):
                return Fragment(encode_timestamp(value))
            return self._extension(value)
        except BaseException as exc:
            if self.error is None:
                self.error = exc
            if self.culprit is None:
                self.culprit = value
            raise

    def _extension(self, value: Any) -> Ext | Fragment:
        kind = type(value)
        rule = self._rules.get(kind)
        if rule is not None:
            return Ext(Tag.TYPED, rule.label + self.pack_body(rule.kind.to_body(value)))
        found = ENCODERS.get(kind) or find_encoder(kind)
        if found is None:
            raise _not_allowed(kind)
        tag, encode = found
        return Ext(tag, encode(value, self))

    def _plain(self, value: Any) -> bytes:
        if self.limits.depth_max < ENCODE_DEPTH_MAX:
            self._check_depth(value, 0)
        return self._native(value)

    def _native(self, value: Any) -> bytes:
        try:
            return packb(value, self._hook, OPTIONS)
        except ormsgpack.MsgpackEncodeError:
            if self.error is not None:
                raise self.error from self.error.__cause__
        try:
            self._check_depth(value, 0)
            return self._rewritten(value)
        except RecursionError:
            raise self._too_deep() from None

    def _check_depth(self, value: Any, depth: int) -> None:
        if type(value) is dict:
            value = value.values()
        elif type(value) is not list:
            return
        if depth >= self.limits.depth_max:
            raise self._too_deep()
        for member in value:
            self._check_depth(member, depth + 1)

    def _too_deep(self) -> EncodeLimitExceeded:
        return EncodeLimitExceeded(
            f"value: expected at most {self.limits.depth_max} lists and dicts in one another "
            "(depth_max), found more; a reference cycle does this too"
        )

    def _memory(self, value: memoryview) -> bytes:
        try:
            return packb(bytes(value))
        except ValueError as exc:
            raise ValueNotAllowed("memoryview: expected one that is not released") from exc

    def _rewritten(self, value: Any) -> bytes:
        """Encode what the engine refused, member by member."""
        kind = type(value)
        if kind is list:
            return self.pack_items([self._native(member) for member in value])
        if kind is dict:
            if all(map(is_plain_key, value)):
                return packb({key: Fragment(self._native(member)) for key, member in value.items()})
            return packb(self._hook(value))
        if kind is str:
            return packb(self._hook(value))
        if kind is memoryview:
            return self._memory(value)
        message = f"{kind.__qualname__}: expected a value that the engine can write"
        raise ValueNotAllowed(message)


def _not_allowed(kind: type) -> TypeNotAllowed:
    return TypeNotAllowed(
        f"expected an allowed type, found {kind.__module__}.{kind.__qualname__}, "
        "which no rule allows"
    )
