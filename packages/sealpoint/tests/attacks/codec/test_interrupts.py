# SPDX-License-Identifier: Apache-2.0
"""KeyboardInterrupt and MemoryError come out as themselves, wherever they are raised."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from sealpoint import Registry
from sealpoint.errors import RuleFailed, ValueNotAllowed
from tests.blobs import Blobs

_INTERRUPTS = [KeyboardInterrupt, MemoryError, SystemExit, GeneratorExit]
_PLACES: dict[str, Callable[[Any], Any]] = {
    "alone": lambda value: value,
    "in a list": lambda value: [1, [value]],
    "in a dict": lambda value: {"a": {"b": value}},
    "in a tuple": lambda value: ("a", (value,)),
    "in pairs": lambda value: {1: value},
    "beside other keys": lambda value: [{1: 2}, {"\ud800": [value]}],
    "in a long list": lambda value: [*range(5000), value],
    "in a slice": slice,
}


class _Thing:
    """A class with a pair of functions."""


@dataclass
class _Old:
    """A class with an upgrade."""

    x: int


@dataclass
class _New:
    """The same class, one version later."""

    y: int


def _raises(error: type[BaseException]) -> Callable[[Any], Any]:
    def function(_: Any) -> Any:
        raise error

    return function


def _load_flat(writer: Registry, reader: Registry, value: Any) -> Any:
    return reader.decode(writer.encode(value))


def _load_tree(writer: Registry, reader: Registry, value: Any) -> Any:
    blobs = Blobs()
    return reader.decode_tree(writer.encode_tree(value, blobs.put), blobs.get)


_LOADS = pytest.mark.parametrize("load", [_load_flat, _load_tree], ids=["flat", "tree"])


def _registry(
    encode: Callable[[Any], Any] = lambda _: None, decode: Callable[[Any], Any] = lambda _: _Thing()
) -> Registry:
    registry = Registry()
    registry.allow(_Thing, name="thing", encode=encode, decode=decode)
    return registry


@_LOADS
@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("error", _INTERRUPTS)
def test_an_interrupt_in_an_encode_function_comes_out(
    error: type[BaseException], place: str, load: Callable[..., Any]
) -> None:
    """What an encode function raises to stop everything stops everything."""
    registry = _registry(encode=_raises(error))

    with pytest.raises(error) as caught:
        load(registry, registry, _PLACES[place](_Thing()))

    assert caught.type is error


@_LOADS
@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("error", _INTERRUPTS)
def test_an_interrupt_in_a_decode_function_comes_out(
    error: type[BaseException], place: str, load: Callable[..., Any]
) -> None:
    """The same for a decode function."""
    with pytest.raises(error) as caught:
        load(_registry(), _registry(decode=_raises(error)), _PLACES[place](_Thing()))

    assert caught.type is error


@_LOADS
@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("error", _INTERRUPTS)
def test_an_interrupt_in_an_upgrade_comes_out(
    error: type[BaseException], place: str, load: Callable[..., Any]
) -> None:
    """The same for an upgrade."""
    writer, reader = Registry(), Registry()
    writer.allow(_Old, name="versioned")
    reader.allow(_New, name="versioned", version=2, upgrade={1: _raises(error)})

    with pytest.raises(error) as caught:
        load(writer, reader, _PLACES[place](_Old(1)))

    assert caught.type is error


@pytest.mark.parametrize("error", [*_INTERRUPTS, ConnectionError, OSError, ValueError, LookupError])
def test_what_a_blob_store_raises_comes_out_as_itself(error: type[BaseException]) -> None:
    """A get or put that fails is not renamed, at the root and below: it is the caller's own."""
    registry = Registry()
    blobs = Blobs()
    root = registry.encode_tree([bytes(50_000), list(range(9000))], blobs.put)
    calls = 0

    def get(name: Any) -> bytes:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise error
        return blobs.get(name)

    with pytest.raises(error) as caught:
        registry.decode_tree(root, get)
    assert caught.type is error
    with pytest.raises(error) as caught:
        registry.decode_tree(root, _raises(error))
    assert caught.type is error
    with pytest.raises(error) as caught:
        registry.encode_tree([bytes(50_000)], _raises(error))
    assert caught.type is error


@_LOADS
@pytest.mark.parametrize("error", [ValueError, KeyError, TypeError, RecursionError, OSError])
def test_an_ordinary_failure_of_a_rule_is_named_and_keeps_its_cause(
    error: type[Exception], load: Callable[..., Any]
) -> None:
    """Other exceptions become errors of the tree, with the application's own as their cause."""
    with pytest.raises(ValueNotAllowed) as encoding:
        load(_registry(encode=_raises(error)), _registry(), [_Thing()])
    with pytest.raises(RuleFailed) as decoding:
        load(_registry(), _registry(decode=_raises(error)), [_Thing()])

    assert type(encoding.value.__cause__) is error
    assert type(decoding.value.__cause__) is error
    assert error.__name__ in str(decoding.value)


def test_a_registry_works_on_after_an_interrupt() -> None:
    """An interrupted decoding leaves nothing behind in the registry."""
    broken = _registry(decode=_raises(KeyboardInterrupt))
    data = broken.encode([_Thing()])
    with pytest.raises(KeyboardInterrupt):
        broken.decode(data)

    assert broken.decode(broken.encode([1, (2,)])) == [1, (2,)]
