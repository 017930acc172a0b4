# SPDX-License-Identifier: Apache-2.0
"""A signer that lives elsewhere, and signs something else than it was asked to."""

from collections.abc import Callable
from typing import Any

import pytest

from sealpoint import api
from sealpoint.errors import SignerFailed
from sealpoint.signing import PrivateKey
from tests.unit.api.place import Place

_MINE = PrivateKey("mine", b"m" * 32)
_THEIRS = PrivateKey("theirs", b"t" * 32)


class _Signer:
    """Tells its own public key, and gives whatever it was told to give."""

    def __init__(self) -> None:
        self.public_key = _MINE.public.raw
        self.answer: Callable[[bytes], Any] = _MINE.sign

    def sign(self, data: bytes) -> Any:
        """Give the answer of the day."""
        return self.answer(data)


_LIES: dict[str, Callable[[bytes], Any]] = {
    "another key's signature": _THEIRS.sign,
    "its own, of other bytes": lambda data: _MINE.sign(data + b"x"),
    "its own, of a digest of them": lambda data: _MINE.sign(data[:32]),
    "too short": lambda data: _MINE.sign(data)[:-1],
    "too long": lambda data: _MINE.sign(data) + b"\0",
    "nothing": lambda _data: b"",
    "none": lambda _data: None,
    "text": lambda data: _MINE.sign(data).hex(),
    "a mutable copy": lambda data: bytearray(_MINE.sign(data)),
}


@pytest.fixture
def place(tmp_path: Any) -> Place:
    """A store in which the key `mine` may write and pause, and `theirs` may write."""
    made = Place(tmp_path)
    made.init()
    for name, key in (("mine", _MINE), ("theirs", _THEIRS)):
        api.admin(made.url, **made.directories).keys.add(
            name,
            public=str(key.public),
            person=name,
            roles=["writer", "operator", "approver"],
            namespaces=["*"],
        )
    return made


@pytest.mark.parametrize("lie", _LIES, ids=str)
def test_a_signature_that_is_not_this_keys_of_these_bytes_is_never_written(
    place: Place, lie: str
) -> None:
    """Also where the other key is in the roster and could write itself: the identity is proven."""
    signer = _Signer()
    with place.open(signer=signer) as store:
        store.thread("t").save({"step": 1}, id="a")
        signer.answer = _LIES[lie]
        for act in (
            lambda: store.thread("t").save({"step": 2}, id="b"),
            lambda: store.thread("t").pause("a look"),
            lambda: store.thread("new").save({"step": 1}),
        ):
            with pytest.raises(SignerFailed):
                act()
        signer.answer = _MINE.sign
        entries = store.verify().entries
    with place.open(signer=_Signer()) as store:  # the honest twin
        assert store.verify().ok
        assert store.verify().entries == entries
        assert [ref.id for ref in store.thread("t").history()] == ["a"]
        store.thread("t").save({"step": 2}, id="b")
        store.thread("new").save({"step": 1})
        assert store.thread("t").load().state == {"step": 2}


def test_a_replayed_signature_is_never_written(place: Place) -> None:
    """A genuine signature of an earlier entry fits no later one."""
    signer = _Signer()
    earlier: list[bytes] = []

    def remembering(data: bytes) -> bytes:
        earlier.append(_MINE.sign(data))
        return earlier[-1]

    signer.answer = remembering
    with place.open(signer=signer) as store:
        store.thread("t").save({"step": 1})
        signer.answer = lambda _data: earlier[0]
        with pytest.raises(SignerFailed):
            store.thread("t").save({"step": 2})
        signer.answer = remembering
        store.thread("t").save({"step": 2})

        assert store.verify().ok
