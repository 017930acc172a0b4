# SPDX-License-Identifier: Apache-2.0
"""The claim: decoding any bytes gives an allowed value or one of our errors, and runs nothing.

For one case this is, in order:

1. `decode` (or `decode_tree`) raises a `SealpointError` or returns; nothing else is raised;
2. no audit event happens meanwhile, and no application code runs;
3. it takes less than a second;
4. what it returns is made of allowed types only, no more objects than the limits allow, and no
   array that is larger than what came in;
5. that value can be encoded again, and from there on bytes and value no longer change: flat, and
   for some cases as a tree too;
6. with an object in it that is not allowed, the same value is refused, with a path, and explained;
7. for a tree, `tree_blobs` lists the blobs that were fetched, and (1) to (3) hold for it as well;
8. for a registry that has no rules and shows untyped values, (1) to (4) hold as well; it shows
   whatever the application's registry takes, unless such values are keys of a dict or members of
   a set, or an older one has parts that no encoder writes; and what it shows has one encoding.

A case is one byte that selects limits and form, then either one flat encoding, or blobs, each
with its id and its length in front. Whatever the bytes are, they are some case.
"""

import contextlib
import hashlib
import re
import time
import zlib
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pydantic
import torch

from fuzz import _types as app
from fuzz._application import FIELDS, make_registry
from fuzz._claim import Escape, Outcome
from fuzz._refused import refused_values
from fuzz._watch import Watch
from sealpoint import Registry
from sealpoint.codec import (
    BUILTINS,
    PLAIN_REASONS,
    Reached,
    TreeMemo,
    UntypedValue,
    tree_blobs,
)
from sealpoint.errors import EncodeError, EncodeLimitExceeded, SealpointError
from sealpoint.limits import Limits

__all__ = ["Case", "Target"]

LIMITS_MASK, IS_TREE, IS_VERIFIED, IS_PLANTED, IS_RETREED = 3, 4, 8, 16, 32
_ID_BYTES = 32
_SECONDS_MAX = 1.0
_ROLLED_MEMBERS, _ROLLED_BYTES_MAX, _ROLLED_SHARE = 40, 512, 4
_ROLLED: tuple[Callable[[Any], Any], ...] = (
    lambda value: app.Third(value, "x" * 300),
    lambda value: app.Plan(value, "x" * 300),
    lambda value: app.Point.model_construct(x="x" * 300, y=value),
    lambda value: app.Parcel([value, "x" * 300]),
)
"""Objects of types whose long lists are compared with the list before."""
_CUT_BYTES, _CUT_SHARE = 5 << 20, 1024
_LONG = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(1500))

_SMALL = Limits(
    value_bytes_max=4096,
    value_nodes_max=64,
    depth_max=6,
    extension_depth_max=4,
    colliding_keys_max=2,
    int_bytes_max=16,
    fraction_part_bytes_max=12,
    decimal_digits_max=8,
    decimal_exponent_max=50,
    text_bytes_max=16,
    array_dimensions_max=2,
    array_elements_max=64,
    blob_bytes_max=1 << 16,
    tree_levels_max=1,
    reference_depth_max=1,
)
_NARROW = Limits(value_bytes_max=1 << 17, value_nodes_max=1 << 12, reference_depth_max=2)

_NOT_SHOWN = ("expected keys with Python's own hash", "expected fields by name")
_PATH = re.compile(r"^state[^ ]*: ")
_VARYING = re.compile(r"""(?:(?:blob [0-9a-f]+|[0-9a-f]{12,}|\d+|'[^']*'|"[^"]*")(?:, )?)+""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One input."""

    selector: int
    data: bytes = b""
    blobs: tuple[tuple[bytes, bytes], ...] = ()

    def __bytes__(self) -> bytes:
        if not self.selector & IS_TREE:
            return bytes((self.selector,)) + self.data
        framed = (name + len(blob).to_bytes(3, "big") + blob for name, blob in self.blobs)
        return bytes((self.selector,)) + b"".join(framed)

    @classmethod
    def parse(cls, data: bytes) -> "Case":
        """The case that any bytes are."""
        selector = data[0] if data else 0
        if not selector & IS_TREE:
            return cls(selector=selector, data=data[1:])
        blobs: list[tuple[bytes, bytes]] = []
        place = 1
        while place < len(data):
            start = place + _ID_BYTES + 3
            size = int.from_bytes(data[start - 3 : start], "big")
            name = data[place : place + _ID_BYTES].ljust(_ID_BYTES, b"\0")
            blobs.append((name, data[start : start + size]))
            place = start + size
        return cls(selector=selector, blobs=tuple(blobs))


def _no_members(_: Any) -> Iterable[Any]:
    return ()


def _mapping_members(value: Any) -> Iterable[Any]:
    return [*value.keys(), *value.values()]


def _model_members(value: Any) -> Iterable[Any]:
    look = object.__getattribute__
    parts = (look(value, "__pydantic_extra__"), look(value, "__pydantic_private__"))
    found = list(look(value, "__dict__").values())
    for part in parts:
        found += _mapping_members(part) if part is not None else ()
    return found


def _field_members(names: tuple[str, ...]) -> Callable[[Any], Iterable[Any]]:
    return lambda value: [object.__getattribute__(value, name) for name in names]


_Members = dict[type, Callable[[Any], Iterable[Any]]]
"""For every allowed type, how to look into it without running its code."""


def _member_table() -> _Members:
    table: _Members = dict.fromkeys(PLAIN_REASONS, _no_members)
    for builtin in BUILTINS:
        table.update(dict.fromkeys(builtin.types, _no_members))
    table.update({np.ndarray: _no_members, torch.Tensor: _no_members})
    table.update(dict.fromkeys((list, tuple, set, frozenset, deque), iter))
    table.update(dict.fromkeys((dict, OrderedDict, defaultdict), _mapping_members))
    table[slice] = lambda value: (value.start, value.stop, value.step)
    for cls, names in FIELDS.items():
        is_model = issubclass(cls, pydantic.BaseModel)
        table[cls] = _model_members if is_model else _field_members(names)
    for missing in (bytearray, memoryview):
        del table[missing]
    return table


class Target:
    """The claim, ready to be tried on case after case.

    Args:
        wrap: Changes each registry before use; with it tests plant faults that must be found.
    """

    def __init__(self, wrap: Callable[[Registry], Any] = lambda registry: registry) -> None:
        plain, small, narrow = map(make_registry, (None, _SMALL, _NARROW))
        self._registries: tuple[Any, ...] = tuple(map(wrap, (plain, small, narrow, plain)))
        self._showing: tuple[Any, ...] = tuple(
            wrap(Registry(limits=registry.limits).showing_untyped(""))
            for registry in (plain, small, narrow, plain)
        )
        self._members = _member_table()
        self._shown_members = {
            **{kind: look for kind, look in self._members.items() if kind not in FIELDS},
            UntypedValue: lambda value: value.fields.values(),
        }
        self._refused = refused_values()
        self._templates: dict[str, str] = {}

    @property
    def registry(self) -> Any:
        """The registry with the default limits."""
        return self._registries[0]

    def run(self, data: bytes) -> Outcome:
        """Try the claim on one input.

        Raises:
            Escape: It does not hold.
        """
        case = Case.parse(data)
        outcome = Outcome()
        which = case.selector & LIMITS_MASK
        registry = self._registries[which]
        if case.selector & IS_TREE:
            came_in = sum(len(blob) for _, blob in case.blobs) * 1000
            asked: set[Any] = set()
            value = self._decoded(
                lambda: self._from_tree(registry, case, asked), outcome, case.selector
            )
            self._check_listed(registry.limits, case, asked, outcome)
        else:
            came_in = len(case.data)
            value = self._decoded(lambda: registry.decode(case.data), outcome, case.selector)
        self._check_shown(self._showing[which], case, came_in, outcome)
        if not outcome.accepted:
            return outcome
        self._check_types(value, outcome, registry.limits, came_in, self._members)
        # A tree expands to more than its flat limit would let in, so only its form is checked.
        again = self._registries[0] if case.selector & IS_TREE else registry
        encoded = self._check_fixed_point(value, again)
        if encoded is None:
            return outcome
        if case.selector & (IS_TREE | IS_RETREED) and registry.limits is not _SMALL:
            self._check_tree(value, registry, encoded, case.selector)
            if len(encoded) <= _ROLLED_BYTES_MAX and len(encoded) % _ROLLED_SHARE == 0:
                self._check_roll(value, zlib.crc32(encoded))
            if zlib.crc32(encoded) % _CUT_SHARE == 0:
                self._check_cuts(encoded)
        if case.selector & IS_PLANTED:
            self._check_planted(value, registry, zlib.crc32(encoded), outcome)
        return outcome

    def _from_tree(self, registry: Any, case: Case, asked: set[Any]) -> Any:
        blobs = dict(reversed(case.blobs))
        root = case.blobs[0][0] if case.blobs else b""
        verified = bool(case.selector & IS_VERIFIED)

        def get(name: Any) -> bytes:
            asked.add(name)
            return blobs[name]

        return registry.decode_tree(root, get, verified=verified)

    def _check_listed(
        self, limits: Limits, case: Case, fetched: set[Any], outcome: Outcome
    ) -> None:
        """(7): which blobs are said to be reached, twice with the same memory."""
        blobs: dict[Any, bytes] = dict(reversed(case.blobs))
        root = case.blobs[0][0] if case.blobs else b""
        reached, whole = Reached(), bool(case.selector & IS_VERIFIED)

        def listed() -> list[bytes]:
            get = blobs.__getitem__
            set(tree_blobs(root, get, limits=limits, reached=reached))
            return list(tree_blobs(root, get, limits=limits, reached=reached, fetch_all=whole))

        walked = Outcome()
        again = self._decoded(listed, walked, case.selector)
        outcome.features.update((64, feature) for feature in walked.features)
        if outcome.accepted and not walked.accepted:
            raise Escape("tree_blobs refused what decode_tree took", str(walked.features))
        if again or (outcome.accepted and reached.blobs != fetched):
            raise Escape("tree_blobs listed other blobs than decode_tree fetched")

    def _check_shown(self, registry: Any, case: Case, came_in: int, outcome: Outcome) -> None:
        """(8): what somebody who has none of the types is shown."""

        def show() -> Any:
            if case.selector & IS_TREE:
                return self._from_tree(registry, case, set())
            return registry.decode(case.data)

        shown = Outcome()
        value = self._decoded(show, shown, case.selector)
        if shown.accepted:
            self._check_types(value, shown, registry.limits, came_in, self._shown_members)
            self._check_shown_encoding(value, registry)
        elif outcome.accepted:
            refusal = str(shown.features)
            if not any(reason in refusal for reason in _NOT_SHOWN):
                raise Escape("what is decoded with its types is not shown", refusal)
        outcome.features.update((128, feature) for feature in shown.features)

    def _decoded(self, decode: Callable[[], Any], outcome: Outcome, selector: int) -> Any:
        """(1) to (3): what decoding does and how it ends."""
        value: Any = None
        refusal: SealpointError | None = None
        watch = Watch()
        began = time.thread_time()
        try:
            with watch:
                value = decode()
        except SealpointError as exc:
            refusal = exc
        except KeyboardInterrupt:
            raise
        except BaseException as exc:  # native code may raise more than Exception
            raise Escape(f"decode raised {_kind(exc)}", _shown(exc)) from exc
        if watch.events:
            raise Escape(f"while decoding: {watch.events[0]}", ", ".join(watch.events[1:4]))
        took = time.thread_time() - began
        if took > _SECONDS_MAX and _seconds(decode) > _SECONDS_MAX:
            raise Escape("decode was slow", f"{took:.1f} s")
        outcome.accepted = refusal is None
        if refusal is not None:
            outcome.features.add((selector & 7, self._template(refusal)))
            within = getattr(refusal, "within", None)
            if within:
                outcome.features.add((type(refusal), within[0]))
        return value

    def _template(self, error: SealpointError) -> str:
        """An error's message without what differs from case to case."""
        text = error.message.partition(", found")[0]
        template = self._templates.get(text)
        if template is None:
            if len(self._templates) > 50_000:
                self._templates.clear()
            template = self._templates[text] = _VARYING.sub("#", text)[:100]
        return template

    def _check_types(
        self, value: Any, outcome: Outcome, limits: Limits, came_in: int, table: _Members
    ) -> None:
        """(4): what the value is made of."""
        waiting = [(type(None), value)]
        count = 0
        features = outcome.features
        while waiting:
            parent, found = waiting.pop()
            count += 1
            kind = type(found)
            features.add((parent, kind))
            look = table.get(kind)
            if look is not None:
                waiting += [(kind, member) for member in look(found)]
            elif not issubclass(kind, np.generic):
                raise Escape(f"decode returned a {kind.__qualname__}", f"inside {parent.__name__}")
            if kind is np.ndarray or kind is torch.Tensor:
                element = found.dtype.kind if kind is np.ndarray else found.dtype
                features.add((element, min(found.ndim, 4), found.nbytes == 0))
                if found.nbytes > came_in:
                    raise Escape("decode built an array larger than its input", str(found.nbytes))
        if count > limits.value_nodes_max:
            raise Escape("decode built more objects than value_nodes_max", str(count))

    def _check_fixed_point(self, value: Any, registry: Any) -> bytes | None:
        """(5), flat. A reader lets more containers nest than a writer may write: then None."""
        try:
            encoded: bytes = registry.encode(value)
        except Exception as exc:
            whole_depth = registry.limits.depth_max == Limits().depth_max
            if isinstance(exc, EncodeLimitExceeded) and "(depth_max)" in str(exc) and whole_depth:
                return None
            kind = f"encode of a decoded value raised {_kind(exc)}"
            raise Escape(kind, _shown(exc)) from exc
        try:
            again = registry.encode(registry.decode(encoded))
        except Exception as exc:
            raise Escape(f"second decode raised {_kind(exc)}", _shown(exc)) from exc
        if again != encoded:
            raise Escape("encode of a decoded value is no fixed point")
        return encoded

    def _check_shown_encoding(self, value: Any, registry: Any) -> None:
        """(8): bytes by which two values that are shown can be compared."""
        try:
            if registry.encode(value) != registry.encode(value):
                raise Escape("a value that is shown has two encodings")
        except EncodeLimitExceeded:
            return  # names of types and of fields are longer than what stood for them
        except EncodeError as exc:
            raise Escape(f"encode of a shown value raised {_kind(exc)}", _shown(exc)) from exc

    def _check_tree(self, value: Any, registry: Any, encoded: bytes, selector: int) -> None:
        """(5), as a tree, its blobs named by bytes or by text."""
        blobs: dict[Any, bytes] = {}
        as_text = bool(selector & IS_VERIFIED)
        put, memo = _putter(blobs, as_text=as_text), TreeMemo(lambda _ids: True)
        try:
            root = registry.encode_tree(value, put, memo=memo)
            if type(value) is list and len(value) > 1:
                registry.encode_tree([*value[:-1], None], put, memo=memo)
            again = registry.encode_tree(value, put, memo=memo)
        except EncodeLimitExceeded as exc:
            if selector & IS_TREE and registry.limits is _NARROW:
                return  # the tree that came in was bound by what it expands to, part by part
            raise Escape("encode_tree of a decoded value raised a limit", _shown(exc)) from exc
        except Exception as exc:
            kind = f"encode_tree of a decoded value raised {_kind(exc)}"
            raise Escape(kind, _shown(exc)) from exc
        if again != root:
            raise Escape("encode_tree gave another root with its memo", repr(root))
        try:
            many = None if as_text else lambda ids: [blobs[name] for name in ids]
            back = registry.decode_tree(root, blobs.__getitem__, get_many=many, memo=memo)
        except Exception as exc:
            kind = f"decode_tree of encode_tree raised {_kind(exc)}"
            raise Escape(kind, _shown(exc)) from exc
        if not as_text and not set(tree_blobs(root, blobs.__getitem__)) <= set(blobs):
            raise Escape("tree_blobs listed what encode_tree did not put")
        if self._registries[0].encode(back) != encoded:
            raise Escape("a tree gives back another value than the flat encoding")

    def _check_roll(self, value: Any, number: int) -> None:
        """(5), as a field in long lists of objects that are saved and loaded again and again."""
        registry, blobs = self._registries[0], dict[Any, bytes]()
        put, memo = _putter(blobs, as_text=False), TreeMemo(lambda _ids: True)
        make = _ROLLED[number % len(_ROLLED)]
        members = [make(None) for _ in range(_ROLLED_MEMBERS)]
        for change in (lambda: None, *_roll_changes(members, make, value)):
            change()
            try:
                root = registry.encode_tree(members, put, memo=memo)
                again = registry.encode_tree(members, put)
            except EncodeLimitExceeded:
                return  # the value nested as deep as it may
            except Exception as exc:
                kind = f"encode_tree of a list of decoded values raised {_kind(exc)}"
                raise Escape(kind, _shown(exc)) from exc
            if again != root:
                raise Escape("encode_tree gave another root with a roll", repr(root))
            watch = Watch()
            try:
                with watch:
                    back = registry.decode_tree(root, blobs.__getitem__, memo=memo)
            except Exception as exc:
                raise Escape(f"decode_tree of a roll raised {_kind(exc)}", _shown(exc)) from exc
            if watch.events:
                raise Escape(f"while a roll was decoded: {watch.events[0]}")
            if registry.encode(back) != registry.encode(members):
                raise Escape("a roll gives back another value than the rules")
            members[:] = back

    def _check_cuts(self, seed: bytes) -> None:
        """(5), of a byte string so long that what stayed of it is found again, and not cut."""
        blobs = dict[Any, bytes]()
        put, memo = _putter(blobs, as_text=False), TreeMemo(lambda _ids: True)
        text = hashlib.shake_256(seed).digest(_CUT_BYTES)
        place = int.from_bytes(text[:4], "big") % _CUT_BYTES
        for value in (text, text, text[:place] + seed + text[place:], text[: place + 1], text):
            root = self.registry.encode_tree([value], put, memo=memo)
            if self.registry.decode_tree(root, blobs.__getitem__, memo=memo) != [value]:
                raise Escape("a long byte string does not come back")

    def _check_planted(self, value: Any, registry: Any, number: int, outcome: Outcome) -> None:
        """(6): one object that is not allowed spoils the whole value, and is found in it."""
        stranger = self._refused[number % len(self._refused)]
        flat, tree = registry.encode, registry.encode_tree
        ways: tuple[Callable[[], Any], ...] = (
            lambda: flat([value, stranger]),
            lambda: flat({"a": {"b": (stranger, value)}}),
            lambda: tree([stranger, {"a": value}], _putter({}, as_text=False)),
        )
        for encode in ways:
            try:
                encode()
            except EncodeError as exc:
                outcome.features.add((16, self._template(exc)))
            except Exception as exc:
                raise Escape(f"encode raised {_kind(exc)}", _shown(exc)) from exc
            else:
                raise Escape("encode took what is not allowed", type(stranger).__qualname__)
        try:
            explained = (registry.explain(value), registry.explain([value, stranger]))
        except Exception as exc:
            raise Escape(f"explain raised {_kind(exc)}", _shown(exc)) from exc
        if not explained[0].allowed or explained[0].lines:
            raise Escape("explain refuses a decoded value", str(explained[0].lines)[:200])
        if explained[1].allowed or not explained[1].lines or not str(explained[1]):
            raise Escape("explain allows what encode refuses", type(stranger).__qualname__)
        uses = [use.as_dict() for use in explained[1].types]
        outcome.features.update((32, use["type"], use["allowed"]) for use in uses)


def _roll_changes(
    members: list[Any], make: Callable[[Any], Any], value: Any
) -> tuple[Callable[[], object], ...]:
    return (
        lambda: members.append(make(value)),
        lambda: members.__setitem__(7, make(value)),
        lambda: members[7].__dict__.update(dict.fromkeys(members[7].__dict__, value)),
        lambda: members.extend([make("z" * 9000), make(_LONG), make(value)]),
        lambda: members.__setitem__(20, make(("z" * 9000,))),
        lambda: getattr(members[9], "__pydantic_fields_set__", set()).discard("y"),
        lambda: members.__setitem__(-2, make(_LONG[:9000] + b"more" + _LONG[9100:])),
        lambda: members.pop(0),
        lambda: members.insert(40, value),
    )


def _putter(blobs: dict[Any, bytes], *, as_text: bool) -> Callable[[bytes], bytes | str]:
    """A blob store that names blobs by bytes, or by text."""

    def put(blob: bytes) -> bytes | str:
        digest = hashlib.sha256(blob)
        name = digest.hexdigest() if as_text else digest.digest()
        blobs[name] = blob
        return name

    return put


def _seconds(decode: Callable[[], Any]) -> float:
    """How long it takes once more: the first time may have paid for a garbage collection."""
    began = time.thread_time()
    with contextlib.suppress(SealpointError):
        decode()
    return time.thread_time() - began


def _kind(error: BaseException) -> str:
    """An exception's class, and for our own ones the message without what varies."""
    name = type(error).__name__
    if not isinstance(error, SealpointError):
        return name
    text = _PATH.sub("", error.message.partition(", found")[0])
    return f"{name} ({_VARYING.sub('#', text)[:60].strip()})"


def _shown(error: BaseException) -> str:
    return f"{error}"[:200]
