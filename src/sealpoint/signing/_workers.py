# SPDX-License-Identifier: Apache-2.0
"""Signatures of a long verification, checked in processes of their own, on all cores.

Threads of one process cannot: each signature is short, and they wait for the interpreter more
than they compute. A worker is this Python, and runs this file and libsodium: it is given public
keys, messages and signatures, and answers a byte for each. It inherits no environment, no open
file, no path to import from and no state, so no key can leave through it, and no code of the
application, or of the directory that it happens to run in, gets into it.

What a worker says is believed only where it says that a signature is good, in full and in order;
anything else is for the caller to check again. One that dies is an error and never an answer. This
file imports nothing of the package, so that a worker starts at once.
"""

import struct
import subprocess  # nosec B404 # a constant program, and no shell
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import BinaryIO, Self

import nacl
from nacl.bindings import crypto_sign_open
from nacl.exceptions import BadSignatureError

Signed = tuple[bytes, bytes, bytes]
"""The 32 bytes of a public key, the 64 of a signature, and the message."""

_Worker = subprocess.Popen[bytes]

_PROGRAM = (
    "import sys; sys.path.append(sys.argv[2]); from runpy import run_path; "
    "run_path(sys.argv[1])['serve'](open(0, 'rb'), open(1, 'wb'))"
)
_SIZE = struct.Struct(">I")
_SIGNED = struct.Struct(">32s64sI")
_READY, _GOOD, _BAD = b"r", b"\1", b"\0"
_END_SECONDS = 5.0


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer until there are no more questions: what a worker runs."""
    answers.write(_READY)
    answers.flush()
    while head := questions.read(_SIZE.size):
        batch, at, found = questions.read(_SIZE.unpack(head)[0]), 0, bytearray()
        while at < len(batch):
            key, signature, size = _SIGNED.unpack_from(batch, at)
            at += _SIGNED.size + size
            try:
                crypto_sign_open(signature + batch[at - size : at], key)
            except BadSignatureError:
                found += _BAD
            else:
                found += _GOOD
        answers.write(found)
        answers.flush()


class WorkerEnded(Exception):
    """A worker has not answered what it was asked."""


class SignatureWorkers:
    """Processes that check signatures. Any thread may ask; each waits for a free one."""

    def __init__(self, workers: Sequence[_Worker]) -> None:
        self._workers = workers
        self._free: SimpleQueue[_Worker] = SimpleQueue()
        for worker in workers:
            self._free.put(worker)

    @classmethod
    def start(cls, count: int) -> Self | None:
        """Start so many; None where that cannot be done, and the caller checks by itself."""
        if not sys.executable or getattr(sys, "frozen", False):
            return None  # that would start the application once more
        started: list[_Worker] = []
        try:
            for _ in range(count):
                started.append(_start_worker())  # noqa: PERF401 (what was started is ended below)
            ready = all(worker.stdout and worker.stdout.read(1) == _READY for worker in started)
        except OSError:
            ready = False
        workers = cls(started)
        if not ready:
            workers.close()
            return None
        return workers

    def check(self, batch: Sequence[Signed]) -> list[bool]:
        """Whether each signature is good.

        Raises:
            WorkerEnded: The process that was to say so has ended, or says something else.
        """
        parts: list[bytes] = []
        for key, signature, message in batch:
            parts += (_SIGNED.pack(key, signature, len(message)), message)
        question = b"".join(parts)
        worker = self._free.get()
        answer = b""
        try:
            if worker.stdin is not None and worker.stdout is not None:
                worker.stdin.write(_SIZE.pack(len(question)))
                worker.stdin.write(question)
                worker.stdin.flush()
                answer = worker.stdout.read(len(batch))
        except OSError:
            answer = b""
        finally:
            self._free.put(worker)
        if len(answer) != len(batch) or answer.strip(_GOOD + _BAD):
            raise WorkerEnded(f"process {worker.pid}")
        return [each == _GOOD[0] for each in answer]

    def close(self) -> None:
        """End them all."""
        for worker in self._workers:
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
        for worker in self._workers:
            try:
                worker.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()


def _start_worker() -> _Worker:
    # Isolated: neither the environment nor the directory that it starts in names code to import.
    # Beside Python's own it finds what lies where this process has its libsodium from.
    library = str(Path(nacl.__file__).absolute().parents[1])
    return subprocess.Popen(  # noqa: S603 # nosec B603 # this Python, a program that stands above
        [sys.executable, "-I", "-S", "-c", _PROGRAM, __file__, library],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        close_fds=True,
    )
