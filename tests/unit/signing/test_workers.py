# SPDX-License-Identifier: Apache-2.0
"""Processes that check signatures say what this process would, know nothing, and fail loudly."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealpoint.errors import Forged
from sealpoint.signing import PublicKey, SignatureWorkers, Signed, WorkerEnded
from sealpoint.signing import _workers as workers_module
from tests.ledgers import key


@pytest.fixture(scope="module")
def workers() -> Iterator[SignatureWorkers]:
    """Two of them."""
    made = SignatureWorkers.start(2)
    assert made is not None
    yield made
    made.close()


def _signed(message: bytes, who: str = "worker") -> Signed:
    return key(who).public.raw, key(who).sign(message), message


def _verified(batch: list[Signed]) -> list[bool]:
    """As this process says."""
    found = []
    for raw, signature, message in batch:
        try:
            PublicKey(raw).verify(signature, message)
        except Forged:
            found.append(False)
        else:
            found.append(True)
    return found


def test_workers_say_what_this_process_says(workers: SignatureWorkers) -> None:
    """Good signatures, those of others, edited ones and edited messages, empty and long ones."""
    batch = [_signed(b"x" * size) for size in (0, 1, 700, 100_000)]
    raw, signature, message = _signed(b"message")
    order = 2**252 + 27742317777372353535851937790883648493
    scalar = int.from_bytes(signature[32:], "little") + order
    batch += [
        (raw, signature, b"massage"),
        (raw, signature, message + b"\0"),
        (raw, bytes([signature[0] ^ 1]) + signature[1:], message),
        (raw, signature[:-1] + bytes([signature[-1] ^ 1]), message),
        (raw, bytes(64), message),
        (raw, signature[:32] + scalar.to_bytes(32, "little"), message),
        (key("second").public.raw, signature, message),
        (raw, key("second").sign(message), message),
        (raw, signature, message),
    ]

    assert workers.check(batch) == _verified(batch)
    assert workers.check(batch) == [True] * 4 + [False] * 8 + [True]
    assert workers.check([]) == []


def test_a_worker_inherits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither environment nor open files: a passphrase of this process is not there to be read."""
    monkeypatch.setenv("SEALPOINT_PASSPHRASE", "secret")
    made = SignatureWorkers.start(1)
    assert made is not None
    process = Path(f"/proc/{made._workers[0].pid}")
    if not process.exists():
        pytest.skip("this system shows no processes as files")
    names = {str(each.readlink()).partition(":")[0] for each in (process / "fd").iterdir()}
    environment, line = (process / "environ").read_bytes(), (process / "cmdline").read_bytes()
    made.close()

    assert b"secret" not in environment + line
    assert b"SEALPOINT" not in environment
    assert names <= {"pipe", "/dev/null"}


def test_a_worker_imports_nothing_from_where_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library of another's that lies there, or on the path of this process, says nothing."""
    (tmp_path / "nacl").mkdir()
    for name in ("nacl/__init__.py", "nacl/bindings.py", "nacl/exceptions.py", "struct.py"):
        (tmp_path / name).write_text("raise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = SignatureWorkers.start(1)
    assert made is not None
    answer = made.check([_signed(b"message")])
    made.close()

    assert answer == [True]


def test_a_worker_that_was_killed_is_an_error() -> None:
    """It is never an answer, and neither is half of one."""
    made = SignatureWorkers.start(1)
    assert made is not None
    made._workers[0].kill()
    made._workers[0].wait()
    with pytest.raises(WorkerEnded):
        made.check([_signed(b"message")])
    made.close()


@pytest.mark.parametrize("answer", [b"", b"\1", b"\1\1", b"\2\2\2", b"\1\1r"])
def test_other_answers_are_no_answers(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too few bytes, or others than one for each signature."""
    program = (
        "import sys; out = sys.stdout.buffer; out.write(b'r'); out.flush(); "
        f"sys.stdin.buffer.read(300); out.write({answer!r}); out.flush()"
    )
    monkeypatch.setattr(workers_module, "_PROGRAM", program)
    made = SignatureWorkers.start(1)
    assert made is not None
    with pytest.raises(WorkerEnded):
        made.check([_signed(b"message")] * 3)
    made.close()


@pytest.mark.parametrize(
    "how", ["no Python", "a frozen program", "no library", "not there", "another program"]
)
def test_where_none_can_be_started_there_are_none(
    how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The caller then checks by itself."""
    match how:
        case "no Python":
            monkeypatch.setattr(sys, "executable", None)
        case "a frozen program":
            monkeypatch.setattr(sys, "frozen", True, raising=False)
        case "no library":
            library = str(tmp_path / "nacl" / "__init__.py")
            monkeypatch.setattr("nacl.__file__", library)
        case "another program":
            monkeypatch.setattr(workers_module, "_PROGRAM", "print('hello')")
        case _:
            monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    assert SignatureWorkers.start(2) is None


def test_a_worker_ends_with_its_questions() -> None:
    """What it reads and writes are pipes: when the one ends, so does the worker."""
    size, signed = workers_module._SIZE, workers_module._SIGNED
    raw, signature, message = _signed(b"message")
    question = signed.pack(raw, signature, len(message)) + message
    answers = io.BytesIO()
    workers_module.serve(io.BytesIO(size.pack(len(question)) + question), answers)

    assert answers.getvalue() == b"r\1"
