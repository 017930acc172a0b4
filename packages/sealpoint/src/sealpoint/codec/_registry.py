# SPDX-License-Identifier: Apache-2.0
"""The registry: the interface of the codec.

A registry holds the types that an application allows. Without any rule it saves and loads plain
data and the built-in types, and nothing else. See `docs/formats/values.md` for the bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, overload

from sealpoint.codec._arrays import find_encoder
from sealpoint.codec._bounds import ENCODING, Bounds
from sealpoint.codec._builtin_types import ENCODERS, PLAIN_REASONS
from sealpoint.codec._changed_class import where_registry_goes
from sealpoint.codec._class_kinds import DictForm
from sealpoint.codec._decode import Decoding, RuleTables, TreeDecoding
from sealpoint.codec._encode import Encoding
from sealpoint.codec._encoding_memo import TreeMemo
from sealpoint.codec._explain import Explanation, allow_line, explain, find_path
from sealpoint.codec._scalars import known_zones
from sealpoint.codec._tree_encoding import TreeEncoding, encode_short, may_be_short
from sealpoint.codec._type_rules import TypeRule, Upgrade, make_rule
from sealpoint.codec._wire_format import BlobId, Get, GetMany, Put, id_bytes
from sealpoint.errors import DecodeError, EncodeError, LimitInvalid, RuleInvalid, TypeNotAllowed
from sealpoint.limits import Limits

_T = TypeVar("_T")
_OnAdded = Callable[[str, tuple[str, ...]], object]


class Registry:
    """The types an application may save and load, and the way there and back.

    ```python
    registry = Registry()


    @registry.allow(name="invoice.plan")
    @dataclass
    class Plan:
        steps: list[str]


    data = registry.encode({"plan": Plan(["ask", "pay"])})
    assert registry.decode(data) == {"plan": Plan(["ask", "pay"])}
    ```

    Rules are added at start-up; after that a registry may be used by any number of threads.

    Args:
        limits: Bounds other than the defaults.

    Raises:
        LimitInvalid: A bound is not a positive whole number, or is above what the engine can do.
    """

    def __init__(self, *, limits: Limits | None = None) -> None:
        self._limits = Limits() if limits is None else limits
        if not isinstance(self._limits, Limits):
            raise LimitInvalid(f"limits: expected Limits, found {type(limits).__name__}")
        if (fault := self._limits.fault()) is not None:
            raise LimitInvalid(fault)
        self._tables = RuleTables()
        known_zones()  # build the table of zone names before anything is decoded

    @property
    def limits(self) -> Limits:
        """The bounds in force."""
        return self._limits

    @property
    def rules(self) -> tuple[TypeRule, ...]:
        """The rules in force, in the order of their names."""
        return tuple(self._tables.by_name[name] for name in sorted(self._tables.by_name))

    def rule_of(self, cls: type) -> TypeRule | None:
        """Return the rule that allows a type, or None."""
        return self._tables.by_type.get(cls)

    def rule_named(self, name: str) -> TypeRule | None:
        """Return the rule with a name, or None."""
        return self._tables.by_name.get(name)

    @overload
    def allow(
        self,
        cls: type[_T],
        *,
        name: str,
        version: int = 1,
        upgrade: Mapping[int, Upgrade] | None = None,
        encode: Callable[[_T], Any] | None = None,
        decode: Callable[[Any], _T] | None = None,
        validate: bool = False,
    ) -> type[_T]: ...

    @overload
    def allow(
        self,
        cls: None = None,
        *,
        name: str,
        version: int = 1,
        upgrade: Mapping[int, Upgrade] | None = None,
        encode: Callable[[Any], Any] | None = None,
        decode: Callable[[Any], Any] | None = None,
        validate: bool = False,
    ) -> Callable[[type[_T]], type[_T]]: ...

    def allow(
        self,
        cls: type[Any] | None = None,
        *,
        name: str,
        version: int = 1,
        upgrade: Mapping[int, Upgrade] | None = None,
        encode: Callable[[Any], Any] | None = None,
        decode: Callable[[Any], Any] | None = None,
        validate: bool = False,
    ) -> Any:
        """Allow a type, as a call or as a class decorator.

        Args:
            cls: A dataclass, pydantic v2 model, attrs class, NamedTuple, Enum or msgspec.Struct;
                any other class needs `encode` and `decode`. Subclasses are not included.
            name: The stable name in stored data, such as `invoice.plan`. It outlives renames of
                the class and its module, and is never reused for another meaning.
            version: Raise it when fields or annotations change.
            upgrade: For each older version, a function from its fields to those of the next.
            encode: Turns an object into a value that the registry can encode.
            decode: Turns that value back into an object. It runs on load.
            validate: Build objects by calling the class, so that `__post_init__` and validators
                run on load, and allow its own `__hash__` to be run for dict keys.

        Returns:
            The class itself, or a decorator that returns it.

        Raises:
            RuleInvalid: The arguments do not make a rule, or the name or type has one already.
        """

        def add(decorated: type[Any]) -> type[Any]:
            rule = make_rule(
                decorated,
                name=name,
                version=version,
                upgrade=upgrade,
                encode=encode,
                decode=decode,
                validate=validate,
            )
            self._add(rule)
            return decorated

        return add if cls is None else add(cls)

    def roll(self, cls: type, form: DictForm) -> None:
        """Declare how objects are laid out in memory, for a rule with `encode=` and `decode=`.

        Long lists of them are then saved and loaded again faster; the stored bytes are the same.
        Dataclasses, attrs classes and pydantic models need none of this.

        Args:
            cls: An allowed type.
            form: The form that its functions store, and how to make it from the attributes.

        Raises:
            RuleInvalid: The type has no rule.
        """
        rule = self._tables.by_type.get(cls)
        if rule is None:
            raise RuleInvalid(f"type {cls.__qualname__}: no rule allows it")
        self._put(replace(rule, form=form))

    def showing_untyped(self, *beginnings: str) -> "Registry":
        """Return a read-only copy that loads types without a rule as `UntypedValue`.

        No code of an application runs for these types, and the values are not what was saved: a
        store that is opened with such a registry is read-only.

        Args:
            beginnings: The prefixes of the names of those types; `""` means all of them.
        """
        reader = Registry(limits=self._limits)
        reader._tables = self._tables.showing(beginnings)
        return reader

    @property
    def shows_untyped(self) -> bool:
        """Whether it loads values that differ from what was saved, and so is read-only."""
        return bool(self._tables.untyped)

    def _add(self, rule: TypeRule) -> None:
        if rule.cls in ENCODERS or rule.cls in PLAIN_REASONS or find_encoder(rule.cls):
            raise RuleInvalid(
                f"rule {rule.name!r}: expected an application type, found {rule.cls.__qualname__}, "
                "which is built in"
            )
        for taken in (self._tables.by_name.get(rule.name), self._tables.by_type.get(rule.cls)):
            if taken is not None:
                raise RuleInvalid(
                    f"rule {rule.name!r} for {rule.cls.__qualname__}: expected a new name and "
                    f"type, found rule {taken.name!r} for {taken.cls.__qualname__}"
                )
        self._put(rule)

    def _put(self, rule: TypeRule) -> None:
        self._tables.by_label[rule.label] = rule
        self._tables.by_name[rule.name] = rule
        self._tables.by_type[rule.cls] = rule

    def encode(self, value: Any) -> bytes:
        """Encode a value into one byte string. The same value always gives the same bytes.

        Raises:
            TypeNotAllowed: The value holds a type that no rule allows; the message has the path
                to it and the hint the line that allows it.
            ValueNotAllowed: A value of an allowed type has no lossless form.
            EncodeLimitExceeded: The value is larger or deeper than the limits.
        """
        encoding = Encoding(self._tables.by_type, self._limits)
        try:
            return encoding.run(value)
        except EncodeError as exc:
            raise self._located(exc, value, encoding) from exc.__cause__

    def decode(self, data: bytes, *, on_added: _OnAdded | None = None) -> Any:
        """Decode what `encode` wrote. Safe on any bytes, from anyone.

        Args:
            data: The bytes.
            on_added: Called with the name of a rule and the fields that got their defaults, because
                the class did not have them when the objects were stored.

        Raises:
            DecodeError: The bytes are not the encoding of an allowed value.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise DecodeError(f"value: expected bytes, found {type(data).__name__}")
        try:
            copied = bytes(data)
        except ValueError as exc:
            raise DecodeError("value: expected a memoryview that is not released") from exc
        decoding = Decoding(self._tables, self._limits)
        return _report_added(decoding, decoding.run(copied), on_added)

    def encode_tree(
        self, value: Any, put: Put, *, seed: bytes = b"", memo: TreeMemo | None = None
    ) -> BlobId:
        """Encode a value into blobs, so that a change writes little more than the changed parts.

        Args:
            value: The value.
            put: Stores a blob and returns its SHA-256 (32 bytes, or 64 hexadecimal digits). Called
                for every blob of the value, children first, also for blobs that are stored already.
            seed: Moves the boundaries between chunks; the same seed gives the same blobs.
            memo: The results of the last encoding: blobs that its `again` vouches for are then not
                put. The root is the same with it and without.

        Returns:
            The root: the result of `put` for the last blob.

        Raises:
            EncodeError: As for `encode`.
        """
        data = self.encode_short(value, memo)
        if data is not None and isinstance(seed, bytes):
            root = put(data)
            id_bytes(root, "put")
            return root
        tree = TreeEncoding(self._tables.by_type, self._limits, put, seed, memo)
        try:
            return tree.run_tree(value)
        except EncodeError as exc:
            raise self._located(exc, value, tree) from exc.__cause__

    def encode_short(self, value: Any, memo: TreeMemo | None = None) -> bytes | None:
        """Return the one blob that `encode_tree` would put for a short value.

        Args:
            value: The value.
            memo: As for `encode_tree`.

        Returns:
            None if it may be more than one blob, or a long one.

        Raises:
            EncodeError: As for `encode`.
        """
        if not may_be_short(value, memo):
            return None
        encoding = Encoding(self._tables.by_type, self._limits)
        try:
            return encode_short(value, encoding)
        except EncodeError as exc:
            raise self._located(exc, value, encoding) from exc.__cause__

    def decode_tree(
        self,
        root: BlobId,
        get: Get,
        *,
        verified: bool = False,
        get_many: GetMany | None = None,
        memo: TreeMemo | None = None,
        on_added: _OnAdded | None = None,
    ) -> Any:
        """Decode the output of `encode_tree`.

        Args:
            root: The root that `encode_tree` returned.
            get: Returns a blob by its id, in the form `put` returned it; `KeyError` if missing.
            verified: `get` itself proves that a blob is the requested one, so it is not hashed
                again.
            get_many: Returns several blobs at once, in the order of their ids as bytes; called for
                a few dozen at a time where `get` alone would be slower.
            memo: The results of the last encoding: lists that it wrote are built from it, and its
                `again` receives their blobs.
            on_added: As for `decode`.

        Raises:
            BlobMismatch: A blob is missing or changed.
            DecodeError: The blobs do not hold an allowed value.
        """
        decoding = TreeDecoding(
            self._tables,
            self._limits,
            get,
            verified=verified,
            get_many=get_many,
            memo=memo,
        )
        return _report_added(decoding, decoding.run_tree(root), on_added)

    def check_keys(self, keys: Sequence[Any], *, in_set: bool = False) -> None:
        """Refuse keys of a dict, or members of a set, before they are hashed.

        Raises:
            ValueNotAllowed: Hashing one of them would run code of the application.
            TypeNotAllowed: One of them is of a type that no rule allows.
            EncodeLimitExceeded: They were chosen to collide.
        """
        Bounds(self._tables.by_type, self._limits, ENCODING).check_keys(keys, in_set=in_set)

    def explain(self, value: Any) -> Explanation:
        """List every type in a value, whether it is allowed, and what to write if it is not."""
        return explain(value, self._tables.by_type, self._limits)

    def _located(self, error: EncodeError, value: Any, encoding: Encoding) -> EncodeError:
        """Return the same error with the path to its cause."""
        culprit = encoding.culprit
        if culprit is None:
            return error
        path = find_path(value, culprit, self._tables.by_type)
        hint = error.hint
        # A rule may itself refuse a type, such as one that a value refers to; its error names that
        # type.
        if isinstance(error, TypeNotAllowed) and type(culprit) not in self._tables.by_type:
            line = allow_line(type(culprit))
            is_rule = line.startswith("registry.")
            hint = f"Write: {where_registry_goes(line)}" if is_rule else line
        return type(error)(f"{path}: {error.message}", hint=hint)


def _report_added(decoding: Decoding, value: Any, on_added: _OnAdded | None) -> Any:
    if on_added is not None:
        for name, fields in decoding.added.items():
            on_added(name, fields)
    return value
