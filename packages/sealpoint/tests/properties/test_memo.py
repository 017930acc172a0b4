# SPDX-License-Identifier: Apache-2.0
"""A memo changes nothing but the time: the same root, and blobs that hold the same value."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sealpoint import Registry
from sealpoint.codec import TreeMemo
from sealpoint.storage.memory import MemoryStorage
from sealpoint.store._blobs import BlobWriter, blob_digest
from tests.effort import examples

_THREAD = bytes(16)
_REGISTRY = Registry()

_message = st.builds(
    lambda text, size: {"role": "user", "content": text * size},
    st.sampled_from("abcdefgh"),
    st.integers(1, 1500),
)
_edit = st.tuples(
    st.sampled_from(
        ("append", "insert", "delete", "replace", "nest", "clear", "mutate", "bytes", "text")
    ),
    st.integers(0, 60),
    _message,
)


def _apply(state: dict[str, Any], edit: tuple[str, int, dict[str, Any]]) -> None:
    kind, number, message = edit
    messages: list[Any] = state["messages"]
    place = number % (len(messages) + 1)
    if kind == "append":
        messages.append(message)
    elif kind == "insert":
        messages.insert(place, message)
    elif kind == "nest":
        state.setdefault("inner", {}).setdefault("log", []).extend([message] * 9)
    elif kind == "bytes":
        data = bytearray(state.get("bytes", random.Random(number).randbytes(200_000)))  # noqa: S311
        data[number * 3000 : number * 3001] = message["content"].encode()
        state["bytes"] = bytes(data)
    elif kind == "text":
        state["text"] = message["content"][:9] + state.get("text", "") + message["content"] * 40
    elif kind == "clear" and number < 5:
        messages.clear()
    elif messages and kind == "delete":
        del messages[place - 1]
    elif messages and kind == "replace":
        messages[place - 1] = message
    elif messages and kind == "mutate":
        messages[place - 1]["content"] += "!"


def _decoded(root: bytes, stored: dict[bytes, bytes]) -> Any:
    return _REGISTRY.decode_tree(root, lambda name: stored[name if type(name) is bytes else b""])


@settings(max_examples=examples(150), deadline=None)
@given(
    first=st.lists(_message, max_size=60),
    edits=st.lists(_edit, min_size=1, max_size=8),
    forgets=st.booleans(),
)
def test_the_root_is_the_same_with_a_memo_and_every_blob_is_there(
    first: list[dict[str, Any]], edits: list[tuple[str, int, dict[str, Any]]], *, forgets: bool
) -> None:
    """Whatever is edited between two saves, what is skipped is what lies in the store."""
    state: dict[str, Any] = {"messages": [dict(message) for message in first]}
    stored: dict[bytes, bytes] = {}
    memo = TreeMemo(lambda _names: False)
    known: set[bytes] = set()
    seen: dict[bytes, bytes] = {}
    for number, edit in enumerate([None, *edits]):
        if edit is not None:
            _apply(state, edit)
        if forgets and number == 2:
            known = set()
        blobs = BlobWriter(MemoryStorage(), _THREAD, known, seen)
        memo.again = blobs.again
        root = _REGISTRY.encode_tree(state, blobs.put, seed=_THREAD, memo=memo)
        stored |= blobs.pending
        known, seen = blobs.reached, blobs.seen
        every: set[bytes] = set()

        def put(blob: bytes, every: set[bytes] = every) -> bytes:
            every.add(blob_digest(blob))
            return blob_digest(blob)

        assert _REGISTRY.encode_tree(state, put, seed=_THREAD) == root
        assert blobs.reached == every
        assert isinstance(root, bytes)
        assert _decoded(root, stored) == state
        assert all(blob_digest(blob) == name for name, blob in seen.items())


def test_a_list_that_grew_puts_little_again() -> None:
    """The memo is used: of a long list with one message more, nearly every chunk is taken over."""
    messages = [{"role": "user", "content": f"{number} " * 200} for number in range(300)]
    memo = TreeMemo(lambda _names: True)
    puts: list[bytes] = []

    def put(blob: bytes) -> bytes:
        puts.append(blob)
        return blob_digest(blob)

    _REGISTRY.encode_tree({"messages": messages[:-1]}, put, memo=memo)
    before = len(puts)
    _REGISTRY.encode_tree({"messages": messages}, put, memo=memo)

    assert before > 200
    assert len(puts) - before < before / 2


def test_bytes_with_one_changed_put_little_again() -> None:
    """Of a long byte string in which one byte changed, nearly every chunk is taken over."""
    data = bytearray(random.Random(3).randbytes(1_000_000))  # noqa: S311 # test data
    memo = TreeMemo(lambda _names: True)
    puts: list[bytes] = []

    def put(blob: bytes) -> bytes:
        puts.append(blob)
        return blob_digest(blob)

    _REGISTRY.encode_tree({"file": bytes(data)}, put, memo=memo)
    before = len(puts)
    data[500_000] ^= 1
    _REGISTRY.encode_tree({"file": bytes(data)}, put, memo=memo)

    assert before > 150
    assert len(puts) - before < before / 5
