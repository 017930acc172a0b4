# SPDX-License-Identifier: Apache-2.0
"""Signature checks of a long verification, done ahead in separate processes on all cores.

Threads of one process cannot do this: each check is short, and the threads would wait for the
interpreter more than they compute. A worker is a process of this Python that runs only the few
lines below and libsodium. It receives public keys, messages and signatures, and answers one byte
for each. It inherits no environment, no open file, no import path and no state, so no key can leak
through it, and it loads no code from the application or from its working directory.

Workers only check signatures. The verifier works as it does without them, one entry after the other
and in the same order, and finds out that a signature is known to be good: by that exact key, over
those exact bytes. If no worker has confirmed a signature, because the worker has ended, never
started, answered something else or found the signature bad, this process checks it.
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
"""Verifies a signature over a message by a key, and raises if it is invalid."""

Signed = tuple[PublicKey, bytes, bytes]
"""A public key, a signature, and the message that it supposedly covers."""

# The program uses the layer below nacl.bindings: importing all of that takes as long as 150
# signatures.
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
"""The number of checks that this process does in the time that workers take to start."""
_BATCH = 16
"""How many rows to hand over at once."""
_WAITING_MAX = 4
"""How many batches may wait for one worker, so that it is never idle while this process works."""


class _SignedRows(Generic[_Row]):
    """Some rows, and the state of their signatures."""

    def __init__(self, rows: list[_Row], signed: list[Signed]) -> None:
        self.rows = rows
        self.signed = signed
        self.good: set[Signed] = set()
        self.worker: _Worker | None = None
        """The worker that has not answered yet."""

    def check(self, key: PublicKey, signature: bytes, message: bytes) -> None:
        """Verify a signature, unless it is known to be good."""
        if (key, signature, message) not in self.good:
            key.verify(signature, message)

    def check_here(self) -> None:
        """Find out which are good; the errors for the others come in their turn."""
        for each in self.signed:
            with suppress(Forged):
                PublicKey.verify(*each)
                self.good.add(each)


class _Worker:
    """A process that checks signatures."""

    def __init__(self) -> None:
        # Isolated: neither the environment nor its working directory provides code to import.
        # Besides Python's own modules, it finds only the packages next to this process's libsodium.
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
        """The batches that it has not answered, or whose answer was not taken yet."""
        self.has_ended = False
        self._answers = poll()
        self._answers.register(self._stdout, POLLIN)

    def ask(self, batch: _SignedRows[Any]) -> None:
        """Hand over a batch."""
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
        """Take the answers that are available."""
        while self.asked and self._answers.poll(0):
            self.take_answer()

    def take_answer(self) -> None:
        """Wait for the next answer; a process that has ended confirms nothing."""
        batch, answer = self.asked.popleft(), b""
        while len(answer) < len(batch.signed) and not self.has_ended:
            more = self._stdout.read(len(batch.signed) - len(answer))
            answer += more
            self.has_ended = not more
        said = zip(batch.signed, answer, strict=False)
        batch.good = {each for each, byte in said if byte == _GOOD}
        batch.worker = None

    def close(self) -> None:
        """Kill it: it has nothing to complete."""
        self.process.kill()
        self._stdin.close()
        self._stdout.close()
        self.process.wait()


class SignaturePool:
    """Checks signatures ahead on all cores, once there are many; for one verifying thread."""

    def __init__(self) -> None:
        self._seen = 0
        self._workers: list[_Worker] | None = None
        """None: not worthwhile yet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for worker in self._workers or ():
            worker.close()

    def checked(
        self, rows: Iterable[_Row], signed: Callable[[_Row], Iterable[Signed]]
    ) -> Iterator[tuple[_Row, Check]]:
        """Yield every row in its turn, with a function that checks its signatures.

        Args:
            rows: They are read some batches ahead. An error that ends them is raised after the last
                row.
            signed: Returns the signatures that verifying a row will probably need. A missing or
                wrong one costs only time.
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
        """Have a free worker check the signatures of some rows, or else check them here."""
        self._seen += len(rows)
        if self._workers is None and self._seen > _FEW:
            self._workers = _start_workers()
        if not self._workers or len(rows) < _BATCH:
            return _SignedRows(rows, [])  # each is checked in its turn
        # A worker receives signature and message in one piece: a signature of another length would
        # change the message.
        every = (each for row in rows for each in signed(row))
        batch = _SignedRows(rows, [each for each in every if len(each[1]) == SIGNATURE_BYTES])
        worker = _free_worker(self._workers)
        if worker is None:
            batch.check_here()
        elif batch.signed:
            worker.ask(batch)
        return batch


def _free_worker(workers: list[_Worker]) -> _Worker | None:
    """Return the worker with the least to do; None if all have enough, or have ended."""
    for worker in workers:
        worker.take_answers()
    least = min(workers, key=lambda worker: (worker.has_ended, len(worker.asked)))
    return None if least.has_ended or len(least.asked) == _WAITING_MAX else least


def _start_workers() -> list[_Worker]:
    """Start a worker for each further core; none if they cannot be started."""
    started: list[_Worker] = []
    # In a frozen application, this would start the application again.
    if sys.executable and not getattr(sys, "frozen", False):
        with suppress(OSError):
            for _ in range((os.cpu_count() or 1) - 1):
                started.append(_Worker())  # noqa: PERF401 (those that were started are used)
    return started
