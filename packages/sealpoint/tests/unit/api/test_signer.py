# SPDX-License-Identifier: Apache-2.0
"""Keys that live elsewhere: who they are, what they sign, and what waits for them."""

import asyncio
import base64
import threading
from typing import Any

import pytest

import sealpoint
from sealpoint import aio, api
from sealpoint.errors import NotTrusted, SignerFailed, UsageError
from sealpoint.signing import PrivateKey, PublicKey
from tests.unit.api.place import Place

_SECONDS_MAX = 30


class Elsewhere:
    """A key in another place, which can be told to wait or to fail."""

    def __init__(self, letter: bytes = b"k") -> None:
        self._key = PrivateKey("whatever", letter * 32)
        self.public_key = self._key.public.raw
        self.signed = 0
        self.error: BaseException | None = None
        self.wait: threading.Event | None = None
        self.asked = threading.Event()

    def sign(self, data: bytes) -> bytes:
        """Sign, unless it was told otherwise."""
        self.asked.set()
        if self.wait is not None:
            self.wait.wait(_SECONDS_MAX)
        if self.error is not None:
            raise self.error
        self.signed += 1
        return self._key.sign(data)


def enrol(place: Place, name: str, signer: Elsewhere, *roles: str) -> None:
    """Enter the public half into the roster."""
    place.admin.keys.add(
        name,
        public=signer.public_key.hex(),
        person=name,
        roles=roles or ("writer",),
        namespaces=["*"],
    )


def test_the_roster_says_whose_key_a_signer_is(made: Place) -> None:
    """No name is given, and no private key lies on this machine."""
    signer = Elsewhere()
    enrol(made, "billing", signer)
    with made.open(signer=signer) as store:
        store.thread("t").save({"step": 1})
        refs = list(store.thread("t").history())
        assert store.verify().ok
    with made.open(signer=signer, identity="billing") as store:
        store.thread("t").save({"step": 2})

    assert [ref.writer for ref in refs] == ["billing"]
    assert "billing" not in made.files.keys.names()


def test_an_async_store_takes_the_same_signer(made: Place) -> None:
    """It is called in a thread of the pool: the event loop goes on while it signs."""
    signer = Elsewhere()
    enrol(made, "billing", signer)
    ticks: list[int] = []

    async def run() -> Any:
        async with aio.open_store(made.url, signer=signer, **made.directories) as store:
            signer.asked.clear()
            signer.wait = threading.Event()
            saving = asyncio.create_task(store.thread("t").save({"step": 1}))
            while not signer.asked.is_set():
                ticks.append(len(ticks))
                await asyncio.sleep(0)
            signer.wait.set()
            return await saving

    saved = asyncio.run(run())

    assert saved.writer == "billing"
    assert ticks


def test_a_signer_approves_and_exports_too(made: Place) -> None:
    """Everything that an identity signs goes through it: a bundle's last line as well."""
    signer = Elsewhere()
    enrol(made, "billing", signer, "writer", "operator")
    with made.open(signer=signer) as store:
        store.thread("t").save({"step": 1})
        store.thread("t").pause("a look")
        data = b"".join(store.export())

    assert api.verify_bundle(data, made.files.pin()).ok


@pytest.mark.parametrize("error", [OSError("secret words"), SignerFailed("own"), TimeoutError()])
def test_what_a_signer_raises_is_one_error_and_nothing_is_written(
    made: Place, error: Exception
) -> None:
    """The cause is chained and not quoted; the same call works when the signer does."""
    signer = Elsewhere()
    enrol(made, "billing", signer)
    with made.open(signer=signer) as store:
        store.thread("t").save({"step": 1}, id="a")
        signer.error = error
        with pytest.raises(SignerFailed) as caught:
            store.thread("t").save({"step": 2}, id="b")
        with pytest.raises(SignerFailed):
            store.thread("new").save({"step": 1}, id="a")
        signer.error = None
        held = [ref.id for ref in store.thread("t").history()]
        store.thread("t").save({"step": 2}, id="b")
        store.thread("new").save({"step": 1}, id="a")
        after = [ref.id for ref in store.thread("t").history()]

    assert caught.value.__cause__ is error
    assert "secret" not in str(caught.value)
    assert (caught.value.code, caught.value.exit_status) == ("signer-failed", 50)
    assert held == ["a"]
    assert after == ["b", "a"]


def test_an_interrupt_in_a_signer_is_not_renamed(made: Place) -> None:
    """Whoever presses a key to stop the program stops it."""
    signer = Elsewhere()
    enrol(made, "billing", signer)
    with made.open(signer=signer) as store:
        signer.error = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            store.thread("t").save({"step": 1})


@pytest.mark.parametrize("scheme", ["sqlite", "file"])
def test_while_a_signer_waits_other_threads_and_other_processes_go_on(
    place: Place, scheme: str
) -> None:
    """Neither the store nor the anchor is locked: only this thread of this process waits."""
    url = place.url if scheme == "sqlite" else f"file://{place.disk / 'agents'}"
    sealpoint.init(url, **place.directories)
    slow = Elsewhere()
    api.admin(url, **place.directories).keys.add(
        "slow", public=slow.public_key.hex(), person="slow", roles=["writer"], namespaces=["*"]
    )
    with (
        sealpoint.open_store(url, signer=slow, **place.directories) as store,
        sealpoint.open_store(url, **place.directories) as other,
    ):
        store.thread("mine").save({"step": 0})
        slow.asked.clear()
        slow.wait = threading.Event()
        saving = threading.Thread(target=lambda: store.thread("mine").save({"step": 1}))
        saving.start()
        assert slow.asked.wait(_SECONDS_MAX)
        other.thread("theirs").save({"step": 1})  # with a key of its own
        seen = other.thread("mine").load().state
        read = store.thread("theirs").load().state  # the same process, another thread
        assert saving.is_alive()
        slow.wait.set()
        saving.join(_SECONDS_MAX)
        saved = other.thread("mine").load().state

    assert (seen, read, saved) == ({"step": 0}, {"step": 1}, {"step": 1})


def test_a_key_that_the_roster_does_not_know_is_refused_with_the_line_to_run(
    made: Place,
) -> None:
    """The hint has the whole public key, ready to be entered."""
    signer = Elsewhere()
    with pytest.raises(NotTrusted) as caught:
        made.open(signer=signer)
    enrol(made, "billing", signer)
    with pytest.raises(NotTrusted, match="that of 'billing'"):
        made.open(signer=signer, identity="worker")
    made.open(signer=signer).close()

    assert f"sealpoint keys add NAME --public-key {signer.public_key.hex()}" in caught.value.hint


@pytest.mark.parametrize(
    "options", [{"read_only": True}, {"key_fd": 3}, {"passphrase": "words"}], ids=str
)
def test_a_signer_beside_another_key_is_a_usage_error(made: Place, options: Any) -> None:
    """Two answers to the question who signs are none."""
    with pytest.raises(UsageError):
        made.open(signer=Elsewhere(), **options)
    with pytest.raises(UsageError):
        sealpoint.open_store("memory:", signer=Elsewhere())


@pytest.mark.parametrize(
    ("told", "error"),
    [("text", SignerFailed), (b"short", NotTrusted), (bytes(32), NotTrusted)],
    ids=str,
)
def test_a_signer_without_a_public_key_is_refused_at_opening(
    made: Place, told: Any, error: type[Exception]
) -> None:
    """Before anything is to be signed."""
    signer = Elsewhere()
    signer.public_key = told
    with pytest.raises(error):
        made.open(signer=signer)


def test_a_public_key_is_read_as_key_services_write_it() -> None:
    """Digits, PEM and DER of one key are the same key; another kind of key is refused."""
    der = bytes.fromhex("302a300506032b6570032100") + Elsewhere().public_key
    pem = (
        b"-----BEGIN PUBLIC KEY-----\n"
        b"MCowBQYDK2VwAyEA"
        + base64.b64encode(Elsewhere().public_key)
        + b"\n-----END PUBLIC KEY-----\n"
    )
    found = {
        PublicKey.read(each).raw
        for each in (der, pem, Elsewhere().public_key.hex().encode() + b"\n")
    }
    for wrong in (b"", der[:-1], der.replace(b"\x70", b"\x71", 1), pem.replace(b"PUBLIC", b"PRIV")):
        with pytest.raises(NotTrusted):
            PublicKey.read(wrong)

    assert found == {Elsewhere().public_key}
