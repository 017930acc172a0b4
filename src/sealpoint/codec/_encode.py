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
from typing import Any

import ormsgpack
from ormsgpack import Ext, Fragment, packb

from sealpoint.codec._arrays import (
    array_parts,
    check_shape,
    find_encoder,
    tensor_parts,
)
from sealpoint.codec._bounds import ENCODING, Bounds, not_allowed
from sealpoint.codec._builtins import ENCODERS
from sealpoint.codec._keys import is_plain_key
from sealpoint.codec._memo import ObjectMemos, memo_of
from sealpoint.codec._rules import TypeRule
from sealpoint.codec._time import encode_timestamp, is_timestamp
from sealpoint.codec._wire import Tag, array_header, bytes_header, extension_header
from sealpoint.errors import EncodeError, ValueNotAllowed
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
_LONG = b""


class Encoding:
    """One value on its way to bytes. Used once, by one thread."""

    __slots__ = (
        "_depth",
        "_rules",
        "bounds",
        "culprit",
        "error",
        "limits",
    )

    def __init__(
        self, rules: Mapping[type, TypeRule], limits: Limits, bounds: Bounds | None = None
    ) -> None:
        self._rules = rules
        self.bounds = Bounds(rules, limits, ENCODING) if bounds is None else bounds
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
        self.bounds.check_whole(data)
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
        bounds = self.bounds
        before = bounds.costly_values, bounds.fraction_keys
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
        bounds.costly_values, bounds.fraction_keys = before
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
        found: list[bytes | None] = []
        rule_of, keep, member = self._rules.get, found.append, self._member
        too_deep = depth >= self.limits.extension_depth_max
        long = 0
        for value in members:
            kind = type(value)
            rule = rule_of(kind)
            if kind in passed or (too_deep and rule is not None):
                keep(None)
                continue
            data = member(value, rule, depth, bytes_max, objects)
            if data is _LONG:
                data = None
                long += 1
                if long > _LONG_MEMBERS:
                    passed.add(kind)
            keep(data)
        return found

    def _member(
        self,
        value: Any,
        rule: TypeRule | None,
        depth: int,
        bytes_max: int,
        objects: ObjectMemos | None,
    ) -> bytes | None:
        """One member, `_LONG` of one that is, None of what the engine does not take as it is."""
        memo = None
        if objects is not None and rule is not None and rule.memo_maker is not None:
            if (known := objects.data_of(value)) is not None:
                return known
            memo = memo_of(value, rule.memo_maker)
        bounds = self.bounds
        costly, fraction_keys = bounds.costly_values, bounds.fraction_keys
        try:
            if rule is None:
                self._depth = depth
                data = packb(value, self._hook, OPTIONS)
            else:
                self._depth = depth + 1
                source = value if memo is None else memo.rebuild()
                data = rule.label + packb(rule.kind.to_body(source), self._hook, OPTIONS)
        except (ormsgpack.MsgpackEncodeError, EncodeError):
            if self.error is not None:
                raise self.error from self.error.__cause__
            bounds.costly_values, bounds.fraction_keys = costly, fraction_keys
            return None
        if len(data) > bytes_max:
            bounds.costly_values, bounds.fraction_keys = costly, fraction_keys
            return _LONG
        if rule is None:
            return data
        whole = extension_header(Tag.TYPED, len(data)) + data
        if memo is not None:
            objects.note(value, memo, data, whole)  # type: ignore[union-attr]
        return whole

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

    def pack(self, value: Any) -> bytes:
        """Encode the payload of an extension."""
        self._enter()
        data = self._plain(value)
        self._leave()
        return data

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > self.limits.extension_depth_max:
            raise self.bounds.too_many_extensions()

    def _leave(self) -> None:
        self._depth -= 1  # a failed encoding is never gone on with, so no try is needed

    def pack_body(self, body: list[Any]) -> bytes:
        """Encode the body of a typed value."""
        return self.pack(body)

    def pack_items(self, parts: Sequence[bytes]) -> bytes:
        """An array of members that are already encoded."""
        return array_header(len(parts)) + b"".join(parts)

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
                unknown = self.bounds.unknown_key
                self.culprit = value if unknown is None else unknown
            raise

    def _extension(self, value: Any) -> Ext | Fragment:
        kind = type(value)
        rule = self._rules.get(kind)
        if rule is not None:
            return Ext(Tag.TYPED, rule.label + self.pack_body(rule.kind.to_body(value)))
        found = ENCODERS.get(kind) or find_encoder(kind)
        if found is None:
            raise not_allowed(kind)
        tag, encode = found
        return Ext(tag, encode(value, self))

    def _plain(self, value: Any) -> bytes:
        if self.limits.depth_max < ENCODE_DEPTH_MAX:
            self.bounds.check_depth(value)
        return self._native(value)

    def _native(self, value: Any) -> bytes:
        try:
            return packb(value, self._hook, OPTIONS)
        except ormsgpack.MsgpackEncodeError:
            if self.error is not None:
                raise self.error from self.error.__cause__
        try:
            self.bounds.check_depth(value)
            return self._rewritten(value)
        except RecursionError:
            raise self.bounds.too_deep() from None

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
