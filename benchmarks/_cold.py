# SPDX-License-Identifier: Apache-2.0
"""What a process pays before it is warm: opening, old checkpoints, verification."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

import sealpoint
from benchmarks._measure import Result, Taken, measured, taken
from benchmarks._site import Site, new_site
from sealpoint.signing import PrivateKey

__all__ = ["experiments"]

_ENTRIES = 10_000
_READS = 20
_VERIFIED = 6_000


def _long_and_short() -> Iterator[Result]:
    """The same calls on a thread of 10,000 entries and on one of 10, each in a cold store."""
    with new_site() as site:
        old = {}
        with site.open() as store:
            for name, count in (("short", 10), ("long", _ENTRIES)):
                thread = store.thread(name)
                refs = [
                    thread.save({"number": number, "name": name}) for number in range(count - 2)
                ]
                old[name] = refs[len(refs) // 3].id

        def load_head(store: sealpoint.Store, name: str) -> None:
            store.thread(name).load()

        def load_old(store: sealpoint.Store, name: str) -> None:
            store.thread(name).load(old[name])

        numbers = iter(range(10**6))

        def save_named(store: sealpoint.Store, name: str) -> None:
            store.thread(name).save({"number": 0}, id=f"named-{next(numbers)}")

        for what, call in (
            ("read the head of", load_head),
            ("read an old checkpoint of", load_old),
            ("save under an id of one's own to", save_named),
        ):
            pairs = []
            for _ in range(_READS):
                long, short = (_cold(site, call, name) for name in ("long", "short"))
                pairs.append((long, short))
            yield _longer(f"open the store and {what} {_ENTRIES:,} entries", pairs)


def _cold(site: Site, call: Callable[[sealpoint.Store, str], None], name: str) -> Taken:
    def run() -> None:
        with site.open() as store:
            call(store, name)

    return taken(run)


def _longer(question: str, pairs: list[tuple[Taken, Taken]]) -> Result:
    return Result(
        question=question,
        ours=f"{statistics.median(long.wall for long, _ in pairs) * 1e3:.2f} ms",
        peer=f"of 10 entries {statistics.median(short.wall for _, short in pairs) * 1e3:.2f} ms",
        figure=statistics.median(long.wall / short.wall for long, short in pairs),
        unit="x the time for 10",
        bar=3.0,
        at_least=False,
    )


def _opened() -> Iterator[Result]:
    with new_site() as site:
        site.open().close()
        taken_by = [taken(lambda: site.open().close()) for _ in range(50)]
        figure = statistics.median(each.wall for each in taken_by) * 1e3
        yield measured("open a store and close it", figure, "ms", 3)

    def init() -> float:
        with tempfile.TemporaryDirectory() as name:
            return taken(lambda: Site(Path(name))).wall

    figure = statistics.median(init() for _ in range(20)) * 1e3
    yield measured("make a store, its keys and its anchor", figure, "ms", 20)


def _bare_rate(verify: Callable[[bytes, bytes], object], signer: PrivateKey, count: int) -> float:
    """Bare Ed25519 verifications a second on two cores."""
    message = os.urandom(600)
    signature = signer.sign(message)

    def run() -> None:
        for _ in range(count // 2):
            verify(signature, message)

    with ThreadPoolExecutor(2) as pool:
        start = time.perf_counter()
        for each in [pool.submit(run) for _ in range(2)]:
            each.result()
        return count / (time.perf_counter() - start)


def _verified() -> Iterator[Result]:
    """Full verification of a long thread, beside bare verification of signatures on two cores."""
    with new_site() as site, site.open() as store:
        thread = store.thread("long")
        for number in range(_VERIFIED):
            thread.save({"number": number})

        def rate() -> float:
            start = time.perf_counter()
            report = store.verify()
            if not report.ok:
                raise AssertionError(report.findings)
            return report.entries / (time.perf_counter() - start)

        signer = PrivateKey.draw("bench", os.urandom)
        openssl = Ed25519PublicKey.from_public_bytes(signer.public.raw).verify
        rate()
        for library, verify in (("cryptography", openssl), ("PyNaCl", signer.public.verify)):
            pairs = [(rate(), _bare_rate(verify, signer, _VERIFIED)) for _ in range(5)]
            bare = statistics.median(bare for _, bare in pairs)
            yield Result(
                question="verify every entry, body and blob of 6,000 entries",
                ours=f"{statistics.median(full for full, _ in pairs):,.0f} a second",
                peer=f"bare Ed25519 by {library} {bare:,.0f} a second",
                figure=statistics.median(full / bare for full, bare in pairs),
                unit="x the bare rate",
                bar=0.65,
                at_least=True,
            )


def experiments() -> Iterator[Result]:
    """Measure one after the other."""
    yield from _long_and_short()
    yield from _opened()
    yield from _verified()
