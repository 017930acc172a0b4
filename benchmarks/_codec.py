# SPDX-License-Identifier: Apache-2.0
"""How fast is the codec, all checks included, beside the serializers it replaces?"""

from collections.abc import Callable, Iterator

import numpy as np
import ormsgpack
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from benchmarks._measure import Result, compare
from benchmarks._states import ChatMessage, Plan, Step, agent_state, json_state, registry

__all__ = ["experiments"]

_MICROSECONDS = 1_000_000
_ARRAY_ELEMENTS = 25_000_000


def _timed(
    question: str,
    peer_name: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    calls: int,
    rounds: int,
    bar: float,
    slowdown: bool = False,
) -> Result:
    mine, theirs, faster = compare(ours, peer, calls=calls, rounds=rounds)
    return Result(
        question=question,
        ours=f"{mine * _MICROSECONDS:,.0f} us",
        peer=f"{peer_name} {theirs * _MICROSECONDS:,.0f} us",
        figure=1 / faster if slowdown else faster,
        unit="x the peer's time" if slowdown else "x the peer's speed",
        bar=bar,
        at_least=not slowdown,
    )


def experiments() -> Iterator[Result]:
    """Measure one after the other."""
    yield from _agent_state()
    yield from _json_state()
    yield from _array()


def _agent_state() -> Iterator[Result]:
    ours, state = registry(), agent_state()
    peer = JsonPlusSerializer(allowed_msgpack_modules=[ChatMessage, Step, Plan])
    data, theirs = ours.encode(state), peer.dumps_typed(state)
    if ours.decode(data) != state or peer.loads_typed(theirs) != state:
        raise AssertionError("a codec does not give the state back")
    name = "JsonPlusSerializer"
    yield _timed(
        "encode 200 pydantic messages, a plan, 50 datetimes",
        name,
        lambda: ours.encode(state),
        lambda: peer.dumps_typed(state),
        calls=3,
        rounds=60,
        bar=2.0,
    )
    yield _timed(
        "decode the same",
        name,
        lambda: ours.decode(data),
        lambda: peer.loads_typed(theirs),
        calls=3,
        rounds=60,
        bar=1.8,
    )
    yield Result(
        question="size of the same",
        ours=f"{len(data):,} bytes",
        peer=f"{name} {len(theirs[1]):,} bytes",
        figure=len(data) / len(theirs[1]),
        unit="x the peer's size",
        bar=1.0,
        at_least=False,
    )


def _json_state() -> Iterator[Result]:
    ours, state = registry(), json_state()
    data = ours.encode(state)
    if data != ormsgpack.packb(state) or ours.decode(data) != state:
        raise AssertionError("plain data is not encoded as plain MessagePack")
    yield _timed(
        "encode plain JSON-like state",
        "bare ormsgpack",
        lambda: ours.encode(state),
        lambda: ormsgpack.packb(state),
        calls=20,
        rounds=100,
        bar=1.3,
        slowdown=True,
    )
    yield _timed(
        "decode the same",
        "bare ormsgpack",
        lambda: ours.decode(data),
        lambda: ormsgpack.unpackb(data),
        calls=20,
        rounds=100,
        bar=1.3,
        slowdown=True,
    )


def _array() -> Iterator[Result]:
    ours = registry()
    array = np.random.default_rng(1).random(_ARRAY_ELEMENTS, dtype=np.float32)
    data = ours.encode(array)
    if not np.array_equal(ours.decode(data), array):
        raise AssertionError("the array does not come back")
    for question, run in (
        ("encode a 100 MB float32 array", lambda: ours.encode(array)),
        ("decode the same", lambda: ours.decode(data)),
    ):
        yield _timed(
            question,
            "bytes(memoryview(array))",
            run,
            lambda: bytes(array.data),
            calls=1,
            rounds=15,
            bar=0.4,
        )
