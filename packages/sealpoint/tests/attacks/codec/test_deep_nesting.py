# SPDX-License-Identifier: Apache-2.0
"""Nesting is bounded: arrays, maps, extensions, references, and all of them together."""

import subprocess
import sys

import pytest

from sealpoint import Limits, Registry
from sealpoint.errors import DecodeError, DecodeLimitExceeded, EncodeLimitExceeded
from sealpoint.limits import ENCODE_DEPTH_MAX
from tests.application import make_registry
from tests.blobs import Blobs
from tests.cpu_time import CpuTime
from tests.wire import array, extension, nested, typed

REGISTRY = make_registry()

_PROGRAM = """
import threading
from sealpoint import Registry
from sealpoint.errors import DecodeError

def extension(payload):
    return b"\\xc9" + len(payload).to_bytes(4, "big") + b"\\x06" + payload

def attack():
    registry = Registry()
    for levels, depth in [(1, 1000), (4, 500), (16, 1000), (31, 1000)]:
        data = b"\\xc0"
        for _ in range(levels):
            data = extension({unit!r} * depth + data)
        try:
            registry.decode(data)
        except DecodeError:
            pass

threading.stack_size({stack_bytes})
thread = threading.Thread(target=attack)
thread.start()
thread.join()
print("ended")
"""


@pytest.mark.parametrize("unit", [b"\x91", b"\x81\xa0", b"\xdd\0\0\0\1", b"\xdf\0\0\0\1\xa0"])
@pytest.mark.parametrize("levels", [1024, 5000, 100_000, 200_000])
def test_deep_arrays_and_maps_are_refused(unit: bytes, levels: int) -> None:
    """Containers nested beyond the engine's depth are an error, not a crash."""
    with pytest.raises(DecodeError):
        REGISTRY.decode(unit * levels + b"\xc0")


@pytest.mark.parametrize("tag", [5, 6, 7, 8, 15, 19, 20, 21, 22, 23])
@pytest.mark.parametrize("levels", [33, 900, 10_000])
def test_deep_extensions_are_refused_by_name_of_the_limit(tag: int, levels: int) -> None:
    """More than extension_depth_max extensions in one another are refused before they are built."""
    wrap = {5: b"\x92\x01", 15: b"\x92\x01", 20: b"\x92\x01", 21: b"\x00\x92\x01"}.get(tag, b"\x91")

    with pytest.raises(DecodeLimitExceeded, match="extension_depth_max"):
        REGISTRY.decode(nested(tag, b"\xc0", levels, wrap))


def test_deep_typed_values_are_refused() -> None:
    """Application types nested beyond the limit are refused."""
    data = b"\xc0"
    for _ in range(33):
        data = typed(REGISTRY, "app.box", b"\x91\x81\xa7content" + data)

    with pytest.raises(DecodeLimitExceeded, match="extension_depth_max"):
        REGISTRY.decode(data)


@pytest.mark.parametrize("stack_bytes", [None, 1 << 20])
@pytest.mark.parametrize("unit", [b"\x91", b"\x81\xa0"], ids=["arrays", "maps"])
def test_extensions_and_containers_in_turn_do_not_exhaust_the_stack(
    unit: bytes, stack_bytes: int | None
) -> None:
    """Deep containers in each of many nested extensions end in an error or a value, not a crash."""
    program = _PROGRAM.format(unit=unit, stack_bytes=stack_bytes or 0)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.strip() == "ended"


def test_nested_extensions_copied_level_by_level_end_soon() -> None:
    """900 levels of extensions in 1 MB, which cost 852 MB if copied at each level, are refused."""
    hostile = nested(6, b"\xc6" + (990_000).to_bytes(4, "big") + bytes(990_000), 900)

    with CpuTime() as cpu_time, pytest.raises(DecodeLimitExceeded):
        REGISTRY.decode(hostile)

    assert cpu_time.seconds < 1


def test_the_deepest_value_that_is_written_is_read() -> None:
    """What the encoder may write at its bounds, the decoder reads."""
    value: object = None
    for _ in range(ENCODE_DEPTH_MAX - 1):
        value = [value]
    tuples: object = None
    for _ in range(REGISTRY.limits.extension_depth_max):
        tuples = (tuples,)

    assert REGISTRY.decode(REGISTRY.encode(value)) == value
    assert REGISTRY.decode(REGISTRY.encode(tuples)) == tuples


def test_reference_cycles_are_refused_by_the_encoder() -> None:
    """A list, dict or tuple that holds itself is an error that says so, flat and as a tree."""
    loop: list[object] = []
    loop.append(loop)
    ring: dict[str, object] = {}
    ring["self"] = (ring,)

    for value in (loop, ring, [ring], {"a": loop}):
        with pytest.raises(EncodeLimitExceeded, match="cycle"):
            REGISTRY.encode(value)
        with pytest.raises(EncodeLimitExceeded, match="cycle"):
            REGISTRY.encode_tree(value, Blobs().put)


def test_a_lower_depth_limit_holds_both_ways() -> None:
    """A registry with a smaller depth_max refuses what another one writes, and to write it."""
    shallow = Registry(limits=Limits(depth_max=5))
    value: object = [[[[["five"]]]]]

    assert shallow.decode(shallow.encode(value)) == value
    with pytest.raises(EncodeLimitExceeded, match="depth_max"):
        shallow.encode([value])
    with pytest.raises(DecodeLimitExceeded, match="depth_max"):
        shallow.decode(Registry().encode([value]))
    with pytest.raises(DecodeLimitExceeded, match="depth_max"):
        shallow.decode(Registry().encode({"a": ({"b": value},)}))


def test_nested_references_are_bounded() -> None:
    """References inside references, which whoever forges a root can write, stop at the limit."""
    blobs = Blobs()
    data = b"\xc0"
    for _ in range(40):
        name = blobs.put(data)
        payload = b"\x01\x00" + (1).to_bytes(4, "big") + len(data).to_bytes(8, "big") + name
        data = extension(2, payload)
    root = blobs.put(array(data))

    with pytest.raises(DecodeLimitExceeded, match="reference_depth_max"):
        REGISTRY.decode_tree(root, blobs.get)
