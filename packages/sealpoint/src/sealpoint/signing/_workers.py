# SPDX-License-Identifier: Apache-2.0
"""Signatures of a long verification, checked ahead in processes of their own, on all cores.

Threads of one process cannot: each signature is short, and they wait for the interpreter more
than they compute. A worker is this Python, and runs the few lines below and libsodium: it is given
public keys, messages and signatures, and answers a byte for each. It inherits no environment, no
open file, no path to import from and no state, so no key can leave through it, and no code of the
application, or of the directory that it happens to run in, gets into it.

Nothing but signatures is left to it. Whoever verifies does so as without it, one after the other
and in the same order, and finds that a signature is known to be good: by that very key, over those
very bytes. Where no worker has said so, because it has ended, never started, says something else or
found the signature bad, the signature is checked here.
"""

import os
import struct
import subprocess  # nosec B404 # a constant program, and no shell
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from select import POLLIN, poll
from typing import IO, Any, Generic, Self, TypeVar, cast

import nacl

from sealpoint.errors import Forged, SealpointError
from sealpoint.signing._keys import SIGNATURE_BYTES, PublicKey

_Row = TypeVar("_Row")

Check = Callable[[PublicKey, bytes, bytes], None]
"""Checks a signature over a message by a key, and raises where it is not good."""

Signed = tuple[PublicKey, bytes, bytes]
"""A public key, a signature, and the message that it is said to be over."""

# It uses what lies below nacl.bindings: to import all of that takes as long as 150 signatures.
_PROGRAM = """
import sys
sys.path.append(sys.argv[1])
from nacl._sodium import ffi, lib
if lib.sodium_init() < 0:
    sys.exit(1)
questions, answers = open(0, "rb"), open(1, "wb", buffering=0)
size = ffi.new("unsigned long long *")
while head := questions.read(4):
    batch = questions.read(int.from_bytes(head))
    opened, found, at = ffi.new("unsigned char[]", len(batch)), bytearray(), 0
    while at < len(batch):
        begin, end = at + 36, at + 36 + int.from_bytes(batch[at : at + 4])
        key, signed, at = batch[at + 4 : begin], batch[begin:end], end
        found.append(lib.crypto_sign_open(opened, size, signed, len(signed), key) == 0)
    answers.write(found)
"""
_SIZE = struct.Struct(">I")
_GOOD = 1

_FEW = 128
"""So many are checked here in the time that processes take to start."""
_BATCH = 16
"""So many rows are handed over at once."""
_WAITING_MAX = 4
"""So many batches wait for one process, which is then never idle while this one does its part."""


class _SignedRows(Generic[_Row]):
    """Some rows, and what is known of their signatures."""

    def __init__(self, rows: list[_Row], signed: list[Signed]) -> None:
        self.rows = rows
        self.signed = signed
        self.good: set[Signed] = set()
        self.worker: _Worker | None = None
        """Who was asked, and has not answered yet."""

    def check(self, key: PublicKey, signature: bytes, message: bytes) -> None:
        """Check a signature, unless it is known to be good."""
        if (key, signature, message) not in self.good:
            key.verify(signature, message)

    def check_here(self) -> None:
        """Find out which are good; why others are not is said in their turn."""
        for each in self.signed:
            with suppress(Forged):
                PublicKey.verify(*each)
                self.good.add(each)


class _Worker:
    """A process that checks signatures."""

    def __init__(self) -> None:
        # Isolated: neither the environment nor the directory that it starts in names code to
        # import. Beside Python's own it finds what lies where this process has its libsodium from.
        library = str(Path(nacl.__file__).absolute().parents[1])
        self.process = subprocess.Popen(  # noqa: S603 # nosec B603 # this Python, a constant program
            [sys.executable, "-I", "-S", "-c", _PROGRAM, library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            close_fds=True,
            bufsize=0,
        )
        self._stdin = cast("IO[bytes]", self.process.stdin)
        self._stdout = cast("IO[bytes]", self.process.stdout)
        self.asked: deque[_SignedRows[Any]] = deque()
        """What it has not answered yet, or nobody has taken the answer."""
        self.has_ended = False
        self._answers = poll()
        self._answers.register(self._stdout, POLLIN)

    def ask(self, batch: _SignedRows[Any]) -> None:
        """Hand a batch over."""
        parts: list[bytes] = [b""]
        for key, signature, message in batch.signed:
            parts += (_SIZE.pack(len(signature) + len(message)), key.raw, signature, message)
        parts[0] = _SIZE.pack(sum(map(len, parts)))
        question = memoryview(b"".join(parts))
        batch.worker = self
        self.asked.append(batch)
        try:
            while question:
                question = question[self._stdin.write(question) :]
        except OSError:
            self.has_ended = True

    def take_answers(self) -> None:
        """Take those that are there."""
        while self.asked and self._answers.poll(0):
            self.take_answer()

    def take_answer(self) -> None:
        """Wait for the next one; a process that has ended has found nothing good."""
        batch, answer = self.asked.popleft(), b""
        while len(answer) < len(batch.signed) and not self.has_ended:
            more = self._stdout.read(len(batch.signed) - len(answer))
            answer += more
            self.has_ended = not more
        said = zip(batch.signed, answer, strict=False)
        batch.good = {each for each, byte in said if byte == _GOOD}
        batch.worker = None

    def close(self) -> None:
        """End it: there is nothing that it could leave unfinished."""
        self.process.kill()
        self._stdin.close()
        self._stdout.close()
        self.process.wait()


class SignaturePool:
    """Checks signatures ahead on all cores, once there are many; for one thread that verifies."""

    def __init__(self) -> None:
        self._seen = 0
        self._workers: list[_Worker] | None = None
        """None: it is not worth while yet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for worker in self._workers or ():
            worker.close()

    def checked(
        self, rows: Iterable[_Row], signed: Callable[[_Row], Iterable[Signed]]
    ) -> Iterator[tuple[_Row, Check]]:
        """Every row in its turn, with what checks its signatures.

        Args:
            rows: They are taken some batches ahead. An error that ends them is raised after the
                last of them.
            signed: The signatures that verifying a row will come to, as far as can be told. What
                is missing there, or wrong, costs time and nothing else.
        """
        following, ahead = iter(rows), deque[_SignedRows[_Row]]()
        failure: SealpointError | None = None
        while True:
            taken: list[_Row] = []
            try:
                taken.extend(islice(following, _BATCH))
            except SealpointError as error:
                failure = error
            is_last = len(taken) < _BATCH
            ahead.append(self._look_ahead(taken, signed))
            ahead_max = 0 if is_last else 2 * _WAITING_MAX * len(self._workers or ())
            while ahead and (ahead[0].worker is None or len(ahead) > ahead_max):
                batch = ahead.popleft()
                while batch.worker is not None:
                    batch.worker.take_answer()
                for row in batch.rows:
                    yield row, batch.check
            if failure is not None:
                raise failure
            if is_last:
                return

    def _look_ahead(
        self, rows: list[_Row], signed: Callable[[_Row], Iterable[Signed]]
    ) -> _SignedRows[_Row]:
        """Have the signatures of some rows checked by whoever is free, or else here."""
        self._seen += len(rows)
        if self._workers is None and self._seen > _FEW:
            self._workers = _start_workers()
        if not self._workers or len(rows) < _BATCH:
            return _SignedRows(rows, [])  # each in its turn
        # A worker is given signature and message in one piece: with a signature of another length
        # it would be another message.
        every = (each for row in rows for each in signed(row))
        batch = _SignedRows(rows, [each for each in every if len(each[1]) == SIGNATURE_BYTES])
        worker = _free_worker(self._workers)
        if worker is None:
            batch.check_here()
        elif batch.signed:
            worker.ask(batch)
        return batch


def _free_worker(workers: list[_Worker]) -> _Worker | None:
    """The one that has least to do; None if all have enough, or have ended."""
    for worker in workers:
        worker.take_answers()
    least = min(workers, key=lambda worker: (worker.has_ended, len(worker.asked)))
    return None if least.has_ended or len(least.asked) == _WAITING_MAX else least


def _start_workers() -> list[_Worker]:
    """One for each further core; none where they cannot be started."""
    started: list[_Worker] = []
    # In an application that is a program of its own, this would start the application once more.
    if sys.executable and not getattr(sys, "frozen", False):
        with suppress(OSError):
            for _ in range((os.cpu_count() or 1) - 1):
                started.append(_Worker())  # noqa: PERF401 (those that were started are used)
    return started
