# SPDX-License-Identifier: Apache-2.0
"""Members of a team who do as much as they can, each in a process of its own."""

import hashlib
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
from msgspec.structs import replace

import sealpoint
from sealpoint import SealpointError, Store
from sealpoint.errors import HeadMoved, Moved
from sealpoint.ledger import (
    Kind,
    VerdictBody,
    encode_body,
    encode_header,
    link_hash,
    parse_header,
    skip_seq,
)
from sealpoint.signing import ENTRY_TYPE, Verdict, attest, encode_seal, pae
from sealpoint.storage import Record
from sealpoint.store import thread_slot
from tests.console.scene import WORLD, Scene
from tests.ledgers import SALT

FLOODED = "invoice-17"
_SPAWN = multiprocessing.get_context("spawn")
_TENANT = "another"
"""The namespace of somebody who has nothing to do with the others."""

Open = Callable[..., Store]


@contextmanager
def crowd(scene: Scene, *members: tuple[Any, ...]) -> Iterator[None]:
    """Let members do what they do until the block ends; each is a function and its arguments."""
    until = _SPAWN.Event()
    processes = [
        _SPAWN.Process(target=_act, args=(scene.url, scene.place, until, *each), daemon=True)
        for each in members
    ]
    for each in processes:
        each.start()
    try:
        yield
        assert all(each.is_alive() for each in processes)
    finally:
        until.set()
        for each in processes:
            each.join(20)


def _act(url: str, place: dict[str, Any], until: Any, member: Any, *given: Any) -> None:
    def opened(identity: str | None = None, **named: Any) -> Store:
        return sealpoint.open_store(url, identity=identity, **place, **named)

    member(opened, until, *given)


# ---------------------------------------------------------------------- what members do


def answers(opened: Open, until: Any, who: str) -> None:
    """Append answers to a request that does not exist, by other code than ours."""
    with opened(who) as store:
        core = store._checkpoints.core
        signer = core.signer()
        position = core.anchor.get(thread_slot(core.parts.secret, core.namespace, FLOODED))
        assert position is not None
        records = [record for _, record in core.storage.scan(position.thread, 0)]
        hashes = [link_hash(each.header) for each in records]
        newest = parse_header(records[-1].header)
        word = attest(signer, "00" * 32, Verdict.APPROVE, "junk")
        body = encode_body(VerdictBody(salt=SALT, attestation=word))
        while not until.is_set():
            seq = len(hashes)
            header = replace(
                newest,
                seq=seq,
                prev=hashes[-1].hex(),
                skip=hashes[skip_seq(seq)].hex(),
                kind=Kind.APPROVAL,
                by=signer.key,
                body=hashlib.sha256(body).hexdigest(),
            )
            raw = encode_header(header)
            record = Record(raw, encode_seal(signer, pae(ENTRY_TYPE, raw)), body)
            try:
                core.storage.append(position.thread, seq, [record], blobs={})
                hashes.append(link_hash(raw))
            except HeadMoved:
                for _, found in core.storage.scan(position.thread, seq):
                    hashes.append(link_hash(found.header))
                    newest = parse_header(found.header)


def saves(opened: Open, until: Any) -> None:
    """Save one state after another."""
    with opened() as store:
        number = 0
        while not until.is_set():
            number += 1
            store.thread("busy").save({"n": number}, world=WORLD)


def pauses(opened: Open, until: Any) -> None:
    """Pause a thread, and let it go on."""
    with opened("olga") as store:
        while not until.is_set():
            with suppress(Moved):
                store.thread("held").pause("wait")
                store.thread("held").unpause("go on")


def reads(opened: Open, until: Any) -> None:
    """Verify the whole store."""
    with opened("bob") as store:
        while not until.is_set():
            with suppress(SealpointError):
                store.verify()


def pages(_opened: Open, until: Any, origin: str, cookie: str) -> None:
    """Ask for the audit, eight times at once."""

    def ask() -> None:
        with httpx.Client(base_url=origin, headers={"cookie": cookie}, timeout=60) as client:
            while not until.is_set():
                client.get("/audit?actor=nobody")

    asking = [threading.Thread(target=ask, daemon=True) for _ in range(8)]
    for each in asking:
        each.start()
    for each in asking:
        each.join()


def computes(_opened: Open, until: Any) -> None:
    """Keep a core busy, and leave the store alone."""
    while not until.is_set():
        sum(range(1000))


# ---------------------------------------------------------------------- what is measured


def tenant(opened: Open, until: Any, told: Any) -> None:
    """Save ten times a second, in a namespace of one's own, and tell how long each took."""
    with opened(namespace=_TENANT) as store:
        number = 0
        while not until.is_set():
            number += 1
            begun = time.perf_counter()
            store.thread("mine").save({"n": number}, world=WORLD)
            told.append(time.perf_counter() - begun)
            time.sleep(0.1)


def stops(opened: Open, until: Any, told: Any) -> None:
    """Pause the flooded thread every second, and tell how long that took."""
    with opened("operator") as store:
        thread = store.thread(FLOODED)
        while not until.is_set():
            begun = time.perf_counter()
            thread.pause("stop")
            told.append(time.perf_counter() - begun)
            thread.unpause("go on")
            time.sleep(1)


def times() -> Any:
    """A list that several processes have."""
    return _SPAWN.Manager().list()
