# SPDX-License-Identifier: Apache-2.0
"""Signatures that processes check ahead come to the same, in the same order, whatever they do."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from sealpoint.errors import Forged, Missing
from sealpoint.signing import Check, PublicKey, SignaturePool, Signed
from sealpoint.signing import _signature_workers as workers_module
from tests.ledgers import key

_Found = list[tuple[Signed, bool]]

_MANY = 160
_FEW = 32


@pytest.fixture(autouse=True)
def three_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine has; and less is much."""
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(workers_module, "_FEW", _FEW)


@pytest.fixture
def pool() -> Iterator[SignaturePool]:
    """A pool."""
    with SignaturePool() as made:
        yield made


def _signed(message: bytes, who: str = "worker") -> Signed:
    return key(who).public, key(who).sign(message), message


def _is_good(signed: Signed, check: Check) -> bool:
    try:
        check(*signed)
    except Forged:
        return False
    return True


def _found(pool: SignaturePool, rows: list[Signed]) -> _Found:
    return [(row, _is_good(row, check)) for row, check in pool.checked(rows, lambda row: (row,))]


def _processes(pool: SignaturePool) -> list[workers_module._Worker]:
    return pool._workers or []


@pytest.fixture(scope="module")
def rows() -> list[Signed]:
    """Good ones of several lengths, those of others, and edited ones."""
    public, signature, message = _signed(b"message")
    order = 2**252 + 27742317777372353535851937790883648493
    scalar = int.from_bytes(signature[32:], "little") + order
    bad = [
        (public, signature, b"massage"),
        (public, signature, message + b"\0"),
        (public, bytes([signature[0] ^ 1]) + signature[1:], message),
        (public, signature[:-1] + bytes([signature[-1] ^ 1]), message),
        (public, bytes(64), message),
        (public, signature[:32] + scalar.to_bytes(32, "little"), message),
        (key("second").public, signature, message),
        (public, key("second").sign(message), message),
        # In one piece, the same bytes as the good one.
        (public, signature[:-1], signature[-1:] + message),
        (public, signature + message[:1], message[1:]),
        (public, b"", signature + message),
    ]
    good = [_signed(b"x" * size) for size in (0, 1, 700, 100_000)]
    every = [*good, *bad, (public, signature, message)]
    return [every[number % len(every)] for number in range(_MANY)]


@pytest.fixture(scope="module")
def expected(rows: list[Signed]) -> _Found:
    """What this process says."""
    return [(row, _is_good(row, lambda key, *rest: key.verify(*rest))) for row in rows]


def test_processes_come_to_the_same(
    pool: SignaturePool, rows: list[Signed], expected: _Found
) -> None:
    """Each row comes in its turn, good or bad as this process says, and there are both."""
    assert _found(pool, rows) == expected
    assert _found(pool, rows) == expected
    assert {good for _, good in expected} == {True, False}
    assert len(_processes(pool)) == 2


def test_what_is_good_is_not_checked_again(
    pool: SignaturePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the processes run, this one checks what they have no time for, each at most once."""
    checked: list[bytes] = []
    verify = PublicKey.verify

    def noted(self: PublicKey, signature: bytes, message: bytes) -> None:
        checked.append(message)
        verify(self, signature, message)

    monkeypatch.setattr(PublicKey, "verify", noted)
    found = _found(pool, [_signed(b"%d" % number) for number in range(_MANY)])

    assert all(good for _, good in found)
    assert len(checked) == len(set(checked)) < _MANY


def test_few_are_checked_here(pool: SignaturePool) -> None:
    """No process is started for less than it takes to start one."""
    assert all(good for _, good in _found(pool, [_signed(b"%d" % each) for each in range(_FEW)]))
    assert not _processes(pool)


def test_a_wrong_foretelling_costs_time_alone(
    pool: SignaturePool, rows: list[Signed], expected: _Found
) -> None:
    """Signatures that nobody comes to are let go, and those that were not named are checked."""
    other = _signed(b"another")
    found = [
        (row, _is_good(row, check)) for row, check in pool.checked(rows, lambda _: (other, other))
    ]

    assert found == expected


def test_an_error_of_the_rows_comes_after_them(pool: SignaturePool, rows: list[Signed]) -> None:
    """Whatever is found in the rows before it is found first."""

    def ending() -> Iterator[Signed]:
        yield from rows
        raise Missing("the rest")

    found = pool.checked(ending(), lambda row: (row,))

    assert [row for row, _ in islice(found, _MANY)] == rows
    with pytest.raises(Missing):
        next(found)


def test_whoever_gives_up_leaves_no_answers_to_the_next(
    pool: SignaturePool, rows: list[Signed], expected: _Found
) -> None:
    """What was asked for another purpose is not taken for an answer."""
    for ended in range(1, _MANY, 37):
        for number, _ in enumerate(pool.checked(rows, lambda row: (row,))):
            if number == ended:
                break

    assert _found(pool, rows) == expected


def _kill(worker: workers_module._Worker) -> None:
    worker.process.kill()
    worker.process.wait()


def _stop_for_good(worker: workers_module._Worker) -> None:
    worker.process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize("how", [_kill, _stop_for_good])
@pytest.mark.parametrize("survivors", [0, 1])
def test_a_process_that_ends_is_no_answer(
    pool: SignaturePool,
    rows: list[Signed],
    expected: _Found,
    how: Callable[[workers_module._Worker], None],
    survivors: int,
) -> None:
    """What it was asked is checked here, and so is the rest once there is no other."""
    found = []
    for number, (row, check) in enumerate(pool.checked(rows, lambda row: (row,))):
        found.append((row, _is_good(row, check)))
        if number == _MANY // 2:
            for worker in _processes(pool)[survivors:]:
                how(worker)

    assert found == expected
    assert _found(pool, rows) == expected


@pytest.mark.parametrize("answer", [b"", b"\0", b"\2" * 1000, b"r" * 1000, b"hello"])
def test_other_answers_are_no_answers(
    answer: bytes, rows: list[Signed], expected: _Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too few bytes, or others than the one that says good."""
    program = f"import sys; out = sys.stdout.buffer; out.write({answer!r}); out.flush()"
    monkeypatch.setattr(workers_module, "_PROGRAM", program)
    with SignaturePool() as pool:
        assert _found(pool, rows) == expected


@pytest.mark.parametrize("how", ["no Python", "a frozen program", "no library", "not there"])
def test_where_none_can_be_started_everything_is_checked_here(
    how: str, rows: list[Signed], expected: _Found, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And comes to the same."""
    match how:
        case "no Python":
            monkeypatch.setattr(sys, "executable", None)
        case "a frozen program":
            monkeypatch.setattr(sys, "frozen", True, raising=False)
        case "no library":
            library = str(tmp_path / "nacl" / "__init__.py")
            monkeypatch.setattr("nacl.__file__", library)
        case _:
            monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with SignaturePool() as pool:
        assert _found(pool, rows) == expected


def test_a_process_inherits_nothing(
    pool: SignaturePool, rows: list[Signed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither environment nor open files: a passphrase of this process is not there to be read."""
    monkeypatch.setenv("SEALPOINT_PASSPHRASE", "secret")
    _found(pool, rows)
    process = Path(f"/proc/{_processes(pool)[0].process.pid}")
    if not process.exists():
        pytest.skip("this system shows no processes as files")
    names = {str(each.readlink()).partition(":")[0] for each in (process / "fd").iterdir()}
    environment, line = (process / "environ").read_bytes(), (process / "cmdline").read_bytes()

    assert b"secret" not in environment + line
    assert b"SEALPOINT" not in environment
    assert names <= {"pipe", "/dev/null"}


def test_a_process_imports_nothing_from_where_it_runs(
    tmp_path: Path, rows: list[Signed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library of another's that lies there, or on the path of this process, says nothing."""
    (tmp_path / "nacl").mkdir()
    for name in ("nacl/__init__.py", "nacl/_sodium.py", "_cffi_backend.py", "struct.py"):
        (tmp_path / name).write_text("raise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with SignaturePool() as pool:
        _found(pool, rows)

        assert not any(worker.has_ended for worker in _processes(pool))


def test_processes_end_with_the_pool(rows: list[Signed]) -> None:
    """Whether or not all was taken."""
    with SignaturePool() as pool:
        next(pool.checked(rows, lambda row: (row,)))
        _found(pool, rows)

    assert _processes(pool)
    assert all(worker.process.returncode is not None for worker in _processes(pool))
