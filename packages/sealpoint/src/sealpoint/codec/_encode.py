# SPDX-License-Identifier: Apache-2.0
"""From values to flat bytes; `_tree_encoding.py` makes blobs of them.

The native engine walks plain lists, dicts and scalars; everything else goes to the hook, which
looks up the exact type. Some allowed values cannot be written by the engine (a dict with other
keys, a string with lone surrogates). A second, slower method encodes these, and produces the same
bytes for all the rest. The engine swallows exceptions of its hook, so the hook stores the first
one, which is raised instead of the engine's own.
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
from sealpoint.codec._builtin_types import ENCODERS
from sealpoint.codec._dict_keys import is_plain_key
from sealpoint.codec._encoding_memo import Block, new_block
from sealpoint.codec._scalars import encode_timestamp, is_timestamp
from sealpoint.codec._type_rules import TypeRule
from sealpoint.codec._wire_format import (
    Tag,
    array_header,
    bytes_header,
    extension_header,
)
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


class _TooLong(Exception):
    """Raised for raw bytes that make an encoding longer than useful, so that it can stop."""


class Encoding:
    """The encoding of one value. Used once, by one thread."""

    __slots__ = (
        "_depth",
        "_raw_max",
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
        self._raw_max: int | None = None
        self.limits = limits
        self.error: BaseException | None = None
        self.culprit: Any = None
        """The innermost object that could not be encoded; a second walk finds its path."""

    def run(self, value: Any) -> bytes:
        """Return the flat encoding.

        Raises:
            EncodeError: A type or value is not allowed, or a limit is exceeded.
        """
        data = self._large(value) or self._plain(value)
        self.bounds.check_whole(data)
        return data

    def run_short(
        self, value: Any, rule: TypeRule | None, depth: int, bytes_max: int
    ) -> bytes | None:
        """Encode a part of a larger value; None, without any costs, if longer than `bytes_max`.

        Args:
            value: The part.
            rule: Its rule, if it is of an application type.
            depth: The number of enclosing extensions.
            bytes_max: The maximum useful size.
        """
        bounds = self.bounds
        before = bounds.costly_values, bounds.fraction_keys
        self._depth, self._raw_max = depth, bytes_max
        try:
            data = self._plain(value) if rule is None else self._typed(value, rule)
            if len(data) <= bytes_max:
                return data
        except _TooLong:
            pass
        self._give_up(before)
        return None

    def _typed(self, value: Any, rule: TypeRule) -> bytes:
        try:
            payload = rule.label + self.pack(rule.kind.to_body(value))
        except BaseException as exc:
            self.error = self.error or exc
            self.culprit = value if self.culprit is None else self.culprit
            raise
        return extension_header(Tag.TYPED, len(payload)) + payload

    def run_members(
        self,
        members: Iterable[Any],
        passed: set[type],
        depth: int,
        bytes_max: int,
    ) -> list[bytes | None]:
        """Do the same as `run_short` for each member of a list, in one loop.

        This is the hot path of a chat history. The result is None for long members, and for those
        that the engine does not accept; the caller encodes these. Members of a type that was long
        too often are also skipped (the type joins `passed`), so that little is encoded in vain.
        """
        bounds, hook, rule_of = self.bounds, self._hook, self._rules.get
        found: list[bytes | None] = []
        keep = found.append
        long = 0
        self._raw_max = bytes_max
        for value in members:
            kind = type(value)
            if kind in passed:
                keep(None)
                continue
            rule = rule_of(kind)
            before = bounds.costly_values, bounds.fraction_keys
            try:
                if rule is None:
                    self._depth = depth
                    data = packb(value, hook, OPTIONS)
                else:
                    self._depth = depth + 1
                    data = rule.label + packb(rule.kind.to_body(value), hook, OPTIONS)
            except (ormsgpack.MsgpackEncodeError, EncodeError, _TooLong):
                self._give_up(before)
                keep(None)
                continue
            if len(data) > bytes_max:
                self._give_up(before)
                keep(None)
                long += 1
                if long > _LONG_MEMBERS:
                    passed.add(kind)
            else:
                keep(data if rule is None else extension_header(Tag.TYPED, len(data)) + data)
        return found

    def _give_up(self, before: tuple[int, int]) -> None:
        """Leave a member to the caller, without its costs, unless it failed."""
        if isinstance(self.error, _TooLong):
            self.error = self.culprit = None
        if self.error is not None:
            raise self.error from self.error.__cause__
        self.bounds.costly_values, self.bounds.fraction_keys = before

    def run_block(
        self, members: list[Any], known: Block | list[bytes] | None, depth: int, bytes_max: int
    ) -> Block | None:
        """Encode neighboring members of a list, compared with the earlier ones at this place.

        Returns:
            None if they must be encoded one by one, which also finds out what is wrong with one.
        """
        bounds = self.bounds
        costs = bounds.costly_values, bounds.fraction_keys
        self._depth = depth + 1
        try:
            found = known if isinstance(known, Block) else None
            if found is None or not found.matches(members[: len(found)], self._pack_block):
                bounds.costly_values, bounds.fraction_keys = costs
                found = new_block(members, self._rules)
            if found is not None and len(found) < len(members):
                found = found.grown(members, self._rules, self._pack_block, bytes_max)
        except Exception:  # noqa: BLE001 - the rule gives a better error in any case
            found = None
        if found is None:
            if self.error is not None and not isinstance(self.error, Exception):
                raise self.error
            self.error = self.culprit = None
            bounds.costly_values, bounds.fraction_keys = costs
        return found

    def has_room(self) -> bool:
        """Whether there are levels left for members, so that no member needs a check."""
        limits = self.limits
        return limits.depth_max >= ENCODE_DEPTH_MAX and self._depth < limits.extension_depth_max

    def _pack_block(self, value: Any) -> bytes:
        return packb(value, self._hook, OPTIONS)

    def _large(self, value: Any) -> bytes | None:
        """Encode a top-level array or tensor, joined in one copy."""
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

    def pack_raw(self, raw: memoryview) -> bytes:
        """Encode the raw bytes of an array, unless only a short result is useful."""
        if self._raw_max is not None and raw.nbytes > self._raw_max:
            raise _TooLong
        return self.pack(raw)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > self.limits.extension_depth_max:
            raise self.bounds.too_many_extensions()

    def _leave(self) -> None:
        self._depth -= 1  # a failed encoding never continues, so no try is needed

    def pack_body(self, body: list[Any]) -> bytes:
        """Encode the body of a typed value."""
        return self.pack(body)

    def pack_items(self, parts: Sequence[bytes]) -> bytes:
        """Encode an array of members that are already encoded."""
        return array_header(len(parts)) + b"".join(parts)

    def _hook(self, value: Any) -> Ext | Fragment:
        """Encode one object that is not plain, called by the engine."""
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
        """Encode a value that the engine refused, member by member."""
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
