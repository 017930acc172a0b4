# SPDX-License-Identifier: Apache-2.0
"""The claim: any bytes as a pickle, bare or in a file of torch, give data, or our error.

For one case, the bytes of a file, this is, in order:

1. scanning it gives a report in which no reader failed; loading it, strictly and with
   `unknown="inert"`, raises a `SealpointError` or returns;
2. no audit event happens meanwhile, but for `id`;
3. each takes less than a second of processor time, and no more memory than follows from its size;
4. a file is called safe if and only if it loads strictly, but for findings that are about other
   readers, and for what only elements of tensors can tell;
5. if it is safe, Python's own unpickler reads each pickle of it too: it resolves the names that our
   reader kept, in the same order, all of them of the closed table; it ends at the same byte; and
   where nothing is called it reads the same value; so it is of each pickle of a stream that is
   given to torch as bytes;
6. what is loaded is made of allowed types only, and of `Inert` only where that was asked for.

For Python's reading see `_pickle_reading`: nothing that a case names is ever looked up or called.
Which cases get the costly checks follows from their bytes, so that a case can be replayed.
"""

import gc
import io
import os
import re
import time
import tracemalloc
import warnings
import weakref
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from fuzz._claim import Escape, Outcome
from fuzz._pickle_reading import Reading, Standin, read_as_python_does
from fuzz._pickle_value import check_types, same
from fuzz._watch import Watch
from sealpoint.errors import SealpointError, SparseInvalid
from sealpoint_models._torch_files import load_pt
from sealpoint_models.scan import (
    KNOWN_NAMES,
    Global,
    Program,
    ScanReport,
    ScanVerdict,
    Unknown,
    read_wrapping,
    run_pickle,
    scan_bytes,
)
from sealpoint_models.scan._joblib import WRAPPER
from sealpoint_models.scan._torch_names import STORAGES, UNTYPED
from sealpoint_models.scan._torch_wrappings import LOADED

__all__ = ["Readers", "Target"]

_SECONDS_MAX = 1.0
_PEAK_BYTES = 8 << 20
_PEAK_TIMES = 1000
_HARMLESS = ("audit event builtins.id ",)
_LOADED = frozenset({"torch-zip", "torch-legacy", "pickle"})
"""What a scan calls the formats that are compared."""
_LATER_READERS = frozenset({"names-code", "nested-pickle", "wrong-name", "two-formats"})
"""What is about other readers than ours."""
_OF_ELEMENTS = (
    "booleans of 0 or 1 in storage",
    "that this torch",
    "attributes that tensors do not",
)
"""Refusals that a scan, which reads no elements and needs no torch, cannot know of."""
_STORAGES = frozenset({*STORAGES, UNTYPED})
_STREAM_PICKLES = 5
_VARYING = re.compile(r"""(?:'[^']*'|"[^"]*"|\d+|/[^ :]*)+""")


class Readers:
    """What is tried: tests plant faults by overriding one."""

    def scan(self, data: bytes) -> ScanReport:
        """Judge a file."""
        return scan_bytes(data)

    def load(self, file: io.FileIO, size: int, unknown: Unknown) -> Any:
        """Load a file."""
        return load_pt(file, size, "case", "cpu", unknown)

    def run(self, data: bytes, start: int) -> Program:
        """Read one pickle."""
        return run_pickle(data, "case", start=start, whole=False)


class Target:
    """The claim, ready to be tried on case after case.

    Args:
        readers: What reads a file; with others tests plant faults that must be found.
    """

    def __init__(self, readers: Readers | None = None) -> None:
        self._readers = Readers() if readers is None else readers
        self._file = io.FileIO(os.memfd_create("case"), "r+b")
        weakref.finalize(self, self._file.close)
        # What is imported when it is first needed is no event of a case.
        torch.zeros(1).numpy()
        np.zeros(1)
        for codec in ("ascii", "latin-1", "utf-8", "unicode-escape", "raw-unicode-escape"):
            "a".encode(codec).decode(codec)

    def run(self, data: bytes) -> Outcome:
        """Try the claim on one file.

        Raises:
            Escape: It does not hold.
        """
        self._file.truncate(0)
        self._file.seek(0)
        self._file.write(data)
        outcome = Outcome()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls some of its types new, others old
            report, _ = self._done("scan", lambda: self._readers.scan(data), data, outcome)
            self._check_report(report, outcome)
            value, refusal = self._done(
                "load", lambda: self._load(len(data), "refuse"), data, outcome
            )
            inert, _ = self._done(
                "inert load", lambda: self._load(len(data), "inert"), data, outcome
            )
            outcome.accepted = refusal is None
            self._check_same(report, refusal, data)
            if report.verdict is ScanVerdict.SAFE and report.format in _LOADED:
                self._check_python(report.format, data, value, is_loaded=refusal is None)
            check_types(value, outcome.features, may_be_inert=False)
            check_types(inert, outcome.features, may_be_inert=True)
        return outcome

    def _load(self, size: int, unknown: Unknown) -> Any:
        with _Watched("load"):
            return self._readers.load(self._file, size, unknown)

    def _done(
        self, what: str, work: Callable[[], Any], data: bytes, outcome: Outcome
    ) -> tuple[Any, SealpointError | None]:
        """(1) to (3): what it does and how it ends."""
        measured = zlib.crc32(data) % 16 == 5
        if measured:
            tracemalloc.start()
        value: Any = None
        refusal: SealpointError | None = None
        gc.disable()  # what the fuzzer keeps is gone through by itself, not in the time of a case
        began = time.process_time()
        try:
            if what == "scan":
                with _Watched(what):
                    value = work()
            else:
                value = work()
        except SealpointError as exc:
            refusal = exc
            outcome.features.add((what, type(exc), _template(exc.message)))
        except (Escape, KeyboardInterrupt):
            raise
        except BaseException as exc:  # native code may raise more than Exception
            raise Escape(f"{what} raised {type(exc).__name__}", f"{exc}"[:300]) from exc
        finally:
            gc.enable()
            peak = tracemalloc.get_traced_memory()[1] if measured else 0
            if measured:
                tracemalloc.stop()
        took = time.process_time() - began
        if took > _SECONDS_MAX * (4 if measured else 1):
            raise Escape(f"{what} was slow", f"{took:.1f} s")
        if peak > _PEAK_BYTES + _PEAK_TIMES * len(data):
            raise Escape(f"{what} made too many objects", f"{peak} bytes")
        return value, refusal

    def _check_report(self, report: ScanReport, outcome: Outcome) -> None:
        outcome.features.add(("format", report.format))
        for finding in report.findings:
            if finding.rule == "reader-failed":
                raise Escape("a reader of the scan failed", finding.message)
            outcome.features.add((finding.rule, _template(finding.message)))

    def _check_same(self, report: ScanReport, refusal: SealpointError | None, data: bytes) -> None:
        """(4)."""
        if report.format not in _LOADED:
            return
        is_safe = report.verdict is ScanVerdict.SAFE
        if is_safe and refusal is not None:
            of_elements = any(each in refusal.message for each in _OF_ELEMENTS)
            if not of_elements and not isinstance(refusal, SparseInvalid) and not _is_joblib(data):
                raise Escape("safe, and refused by a load", str(refusal)[:300])
        rules = {finding.rule for finding in report.findings}
        if not is_safe and refusal is None and not rules & _LATER_READERS:
            raise Escape("loaded, and not safe", str(report.findings[:2])[:300])

    def _check_python(self, kind: str, data: bytes, value: Any, *, is_loaded: bool) -> None:
        """(5)."""
        if _is_joblib(data):
            return
        for number, (pickled, start, program) in enumerate(self._programs(data)):
            reading = read_as_python_does(pickled, start)
            if reading.error is not None:
                found = reading.error
                raise Escape(f"safe, and Python raised {type(found).__name__}", f"{found}"[:200])
            self._check_names(program, reading)
            for given in reading.given:
                _check_given(given)
            if reading.end != program.end:
                raise Escape("safe, and Python ends elsewhere", f"{reading.end}, {program.end}")
            is_plain = kind == "pickle" and not number and not reading.acts and not reading.names
            if is_loaded and is_plain and not same(value, reading.value):
                raise Escape("Python reads another value")

    def _check_names(self, program: Program, reading: Reading) -> None:
        ours = [(name.module, name.name) for name in program.names]
        if ours != list(dict.fromkeys(reading.names)):
            raise Escape("safe, and Python resolves other names", f"{reading.names}"[:200])
        foreign = [name for name in program.names if name not in KNOWN_NAMES and name != LOADED]
        if foreign:
            raise Escape("safe, with a name outside of the table", str(foreign[0]))

    def _programs(self, data: bytes) -> Sequence[tuple[bytes, int, Program]]:
        """Each pickle of a file that is safe, and where it begins."""
        found: list[tuple[bytes, int, Program]] = []

        def run(data: bytes, what: str, *, start: int = 0, **_options: Any) -> Program:
            del what
            program = self._readers.run(data, start)
            found.append((data, start, program))
            return program

        try:
            read_wrapping(lambda at, size: data[at : at + size], len(data), "case", run=run)
        except SealpointError as exc:
            raise Escape("safe, and a part of it is refused", str(exc)[:200]) from exc
        return found


def _check_given(arguments: Any) -> None:
    """What torch is given as bytes is a stream of plain data and one storage, as Python reads it.

    Older protocols make the bytes by a call, which nobody makes here.
    """
    if len(arguments) != 1 or type(arguments[0]) not in (bytes, Standin):
        raise Escape("safe, and torch is given something else than bytes")
    data = arguments[0]
    if type(data) is Standin:
        return
    at, names = 0, []
    for _ in range(_STREAM_PICKLES):
        reading = read_as_python_does(data, at)
        if reading.error is not None:
            raise Escape("safe, and a stream in it is broken", f"{reading.error}"[:200])
        at = reading.end
        names += reading.names
    if len(set(names)) != 1 or Global(*names[0]) not in _STORAGES:
        raise Escape("safe, and a stream in it names something", f"{names}"[:200])


def _is_joblib(data: bytes) -> bool:
    """Whether it has what only joblib writes, which a scan reads and a load does not."""
    return WRAPPER.name.encode() in data


class _Watched:
    """(2)."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._watch = Watch()

    def __enter__(self) -> None:
        self._watch.__enter__()

    def __exit__(self, *_: object) -> None:
        self._watch.__exit__(None, None, None)
        found: Sequence[str] = [
            event for event in self._watch.events if not event.startswith(_HARMLESS)
        ]
        if found:
            raise Escape(f"while in {self._what}: {found[0]}", ", ".join(found[1:4]))


def _template(text: str) -> str:
    """A message without what differs from case to case: what was found is said last."""
    return _VARYING.sub("#", text.partition(", found ")[0])[:120]
