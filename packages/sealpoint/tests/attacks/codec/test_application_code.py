# SPDX-License-Identifier: Apache-2.0
"""Loading runs no code of the application's types unless their rule says `validate=True`."""

from typing import Any

import pytest

from sealpoint import Registry
from sealpoint.errors import DecodeError, EncodeError
from tests.attacks.codec.recorders import CALLS, MAKERS, NoisyDataclass, NoisyEnum, NoisyFlag
from tests.blobs import Blobs
from tests.wire import array, extension

_every_type = pytest.mark.parametrize("cls", MAKERS, ids=lambda cls: cls.__name__)


def _registry(*, validate: bool = False) -> Registry:
    registry = Registry()
    for cls in MAKERS:
        registry.allow(cls, name=cls.__name__.lower(), validate=validate)
    return registry


REGISTRY = _registry()
VALIDATING = _registry(validate=True)


@_every_type
def test_loading_runs_no_code_of_the_type(cls: type) -> None:
    """No constructor, validator, attribute hook, hash or comparison runs, in any position."""
    value = MAKERS[cls]()
    for placed in (value, [value], {"a": value}, (value,), {1: value}, [value] * 3000):
        blobs = Blobs()
        data = REGISTRY.encode(placed)
        root = REGISTRY.encode_tree(placed, blobs.put)
        CALLS.clear()

        decoded = REGISTRY.decode(data)
        kept = REGISTRY.decode_tree(root, blobs.get)

        assert CALLS == []
        assert type(decoded) is type(placed)
        del decoded, kept


@_every_type
def test_the_recorders_record(cls: type) -> None:
    """The control: with `validate=True` the same types' code does run, and fields are right."""
    if issubclass(cls, NoisyEnum | NoisyFlag):
        pytest.skip("an enum has no constructor that a member would run again")
    data = VALIDATING.encode(MAKERS[cls]())
    CALLS.clear()

    decoded = VALIDATING.decode(data)

    assert CALLS
    assert decoded.x == 1


@_every_type
def test_mutated_bytes_run_no_code_of_the_type(cls: type) -> None:
    """The same for every single changed byte of an encoding."""
    data = REGISTRY.encode([MAKERS[cls]()])
    CALLS.clear()

    for place in range(len(data)):
        for flip in (0x01, 0x08, 0x10, 0x80, 0xFF):
            changed = data[:place] + bytes((data[place] ^ flip,)) + data[place + 1 :]
            try:
                kept = REGISTRY.decode(changed)
            except DecodeError:
                continue
            del kept

    assert CALLS == []


@_every_type
def test_a_hash_of_the_application_is_not_run_by_data(cls: type) -> None:
    """A key or member whose `__hash__` the application wrote is refused before it is hashed."""
    member = REGISTRY.encode(MAKERS[cls]())
    CALLS.clear()

    for data in (
        extension(7, array(member)),
        extension(8, array(*[member] * 20)),
        extension(5, array(member, b"\x01")),
        extension(20, array(member, b"\x01")),
        extension(21, b"\x00" + array(member, b"\x01")),
        extension(7, array(extension(6, array(b"\x01", member)))),
        extension(7, array(extension(8, array(member)))),
    ):
        if cls is NoisyFlag:  # its hash is Python's own
            REGISTRY.decode(extension(7, array(member)))
            continue
        with pytest.raises(DecodeError):
            REGISTRY.decode(data)

    assert CALLS == []


def test_a_hash_of_the_application_is_refused_when_saving_too() -> None:
    """What could not be loaded is not saved; `validate=True` allows both."""
    key = NoisyDataclass(1)

    with pytest.raises(EncodeError) as refusal:
        REGISTRY.encode({key: 1})
    assert "validate=True" in refusal.value.hint
    loaded = VALIDATING.decode(VALIDATING.encode({key: 1}))
    assert [type(each) for each in loaded] == [NoisyDataclass]


@_every_type
def test_a_value_in_the_place_of_a_number_runs_no_code(cls: type) -> None:
    """An object where a length, part or number belongs is refused by its type alone."""
    member = REGISTRY.encode(MAKERS[cls]())
    CALLS.clear()
    hostile: list[bytes] = [
        extension(22, array(member, b"\x01", b"\x01")),
        extension(19, array(member, array())),
        extension(15, array(member, b"\x01")),
        extension(4, member),
        extension(6, member),
        extension(7, member),
        extension(21, b"\x00" + member),
        extension(32, b"\x00\x07\x92\xa3|b1\x91\x01" + member),
        extension(34, b"\x00\x09\x93\xa4bool\x91\x01\xc2" + member),
        array(member) + member,
        extension(6, array(member) + member),
    ]

    for data in hostile:
        with pytest.raises(DecodeError):
            REGISTRY.decode(data)

    assert CALLS == []


def _upgrade(fields: dict[str, Any]) -> dict[str, Any]:
    CALLS.append("upgrade")
    return fields


def test_an_upgrade_runs_only_for_the_version_it_is_for() -> None:
    """An upgrade is application code that runs for older versions, never for other bytes."""
    registry = Registry()
    registry.allow(NoisyDataclass, name="noisydataclass", version=3, upgrade={2: _upgrade})
    data = REGISTRY.encode(NoisyDataclass(1))
    CALLS.clear()

    with pytest.raises(DecodeError):
        registry.decode(data)

    assert CALLS == []
