# SPDX-License-Identifier: Apache-2.0
"""The claim: any bytes as a safetensors file give a state of tensors and plain data, or our error.

For one case, the bytes of a file, this is, in order:

1. opening it, reading its header and loading all of it raises a `SealpointError` or returns;
   nothing else is raised, wherever tensors are asked to go;
2. no audit event happens meanwhile, but for the start of threads that read, and `id`;
3. it takes less than a second of processor time, and no more memory than follows from its size;
4. what it returns is made of allowed types only; every tensor lies inside of its memory, all of
   that together is not much more than the file, and sparse tensors point inside of themselves;
5. for some cases: saved and loaded again that state is equal, and from there on the bytes no
   longer change;
6. for some cases: what an open file tells, its digests, and its tensors one by one keep (1) to (3),
   and so does loading it for a run that holds these digests, or others, and then refuses it.

Which cases get the costly checks follows from their bytes, so that a case can be replayed.
"""

import contextlib
import os
import re
import resource
import shutil
import tempfile
import time
import tracemalloc
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import blake3  # noqa: F401 - loaded when it is first needed, which is no event of a case
import torch

from fuzz._claim import Escape, Outcome
from fuzz._model_value import Looking, described
from fuzz._watch import Watch
from sealpoint.errors import (
    EncodeLimitExceeded,
    FileNotSealed,
    ModelError,
    ModelMalformed,
    SealpointError,
    UsageError,
)
from sealpoint_models import FileDigests, ModelFile, save_checkpoint
from sealpoint_models._file_reader import ReadFile
from sealpoint_models._structure_nodes import STRUCTURE

__all__ = ["Load", "Target"]

Load = Callable[[ReadFile, Any], Any]
"""Loads an open file to a place."""

_SECONDS_MAX = 1.0
_SPACE_BYTES = 128 << 20
"""Address space for the heaps of libraries; a small file may ask for little beside it."""
_SPACE_TIMES = 64
_PEAK_BYTES = 4 << 20
_PEAK_TIMES = 1000
"""A byte can stand for an empty container of some hundred bytes."""
_TENSORS_LOOKED_AT = 4
_HARMLESS = ("audit event _thread.start_", "audit event builtins.id ")
_SHARED = Path("/dev/shm")  # noqa: S108 - a folder of our own is made there
_VARYING = re.compile(r"""(?:'[^']*'|"[^"]*"|\d+|/[^ :]*)+""")


def _here(storage: Any, _saved: str) -> Any:
    return storage


def _nowhere(_storage: Any, _saved: str) -> None:
    return None


_PLACES: tuple[Any, ...] = (
    *("cpu", "cpu", "cpu", torch.device("cpu"), None, {"cuda:0": "cpu"}, _here, _nowhere),
)


def _load(file: ReadFile, place: Any) -> Any:
    return ModelFile(file).load(place)


class Target:
    """The claim, ready to be tried on case after case.

    Args:
        load: What loads a file; with another one tests plant faults that must be found.
    """

    def __init__(self, load: Load = _load) -> None:
        self._load = load
        self._fd = os.memfd_create("case")
        self._path = f"/proc/self/fd/{self._fd}"
        shared = _SHARED if _SHARED.is_dir() else None
        folder = tempfile.mkdtemp(prefix="sealpoint-fuzz-", dir=shared)
        self._again = Path(folder) / "again.safetensors"
        weakref.finalize(self, shutil.rmtree, folder)
        weakref.finalize(self, os.close, self._fd)

    def run(self, data: bytes) -> Outcome:
        """Try the claim on one file.

        Raises:
            Escape: It does not hold.
        """
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, data, 0)
        number = zlib.crc32(data)
        place = _PLACES[number % len(_PLACES)]
        outcome = Outcome()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls some of its layouts and types new
            measured = number % 32 == 9
            work = _with_peak(self._whole, len(data)) if measured else self._whole
            value = self._done("load", lambda: work(place), len(data), outcome)
            if number % 8 == 3:
                self._done("look", self._looked_at, len(data), Outcome())
            if outcome.accepted:
                looking = Looking(len(data), outcome.features)
                looking.check(value)
                if number % 3 == 0 and not looking.elsewhere:
                    self._check_saved_again(value, outcome)
        return outcome

    def _whole(self, place: Any) -> Any:
        with ReadFile(self._path) as file, _watched("load"):
            return self._load(file, place)

    def _looked_at(self) -> None:
        """(6)."""
        with ReadFile(self._path) as file, _watched("look"), ModelFile(file) as model:
            if model.size != file.size or STRUCTURE in model.metadata:
                raise Escape("look gave another size, or the structure", str(model.size))
            digests = model.digests(lambda *_: None)
            for tensor in model.tensors[:_TENSORS_LOOKED_AT]:
                if model.verify_tensor(tensor.name) != digests.tensors[tensor.name]:
                    raise Escape("look gave another digest of a tensor", tensor.name)
                with contextlib.suppress(ModelMalformed):  # torch has fewer types of elements
                    model.tensor(tensor.name)
            for ask in (model.tensor, model.verify_tensor):
                with contextlib.suppress(UsageError):
                    ask("no such tensor")
                    raise Escape("look gave a tensor that the file does not have")
        self._check_sealed(digests)

    def _check_sealed(self, digests: FileDigests) -> None:
        others = [replace(digests, size=digests.size + 1), replace(digests, header=bytes(32))]
        if digests.tensors:
            others.append(replace(digests, tensors=dict.fromkeys(digests.tensors, bytes(32))))
        for expected in (digests, *others):
            sealed: Any = _Expected(digests=expected)
            with ReadFile(self._path) as file:
                try:
                    ModelFile(file, sealed).load()
                except FileNotSealed as exc:
                    if expected is digests:
                        raise Escape("a file was refused for its own digests", str(exc)) from exc
                    continue
                except ModelError:
                    if expected is not digests:
                        raise Escape("a file was looked into before its digests") from None
                    continue
            if expected is not digests:
                raise Escape("a file was taken for another one")

    def _done(self, what: str, work: Callable[[], Any], size: int, outcome: Outcome) -> Any:
        """(1) to (3): what it does and how it ends."""
        value: Any = None
        refusal: SealpointError | None = None
        began = time.process_time()
        try:
            with _Bounded(size):
                value = work()
        except SealpointError as exc:
            refusal = exc
        except (Escape, KeyboardInterrupt):
            raise
        except BaseException as exc:  # native code may raise more than Exception
            raise Escape(f"{what} raised {_kind(exc)}", f"{exc}"[:300]) from exc
        took = time.process_time() - began
        if took > _SECONDS_MAX and _seconds(work) > _SECONDS_MAX:
            raise Escape(f"{what} was slow", f"{took:.1f} s")
        outcome.accepted = refusal is None
        if refusal is not None:
            if _is_out_of_memory(refusal):
                raise Escape(f"{what} asked for more memory than follows from its size")
            outcome.features.add((type(refusal), _template(refusal)))
            if refusal.__cause__ is not None:
                outcome.features.add((type(refusal.__cause__), _template(refusal.__cause__)))
        return value

    def _check_saved_again(self, value: Any, outcome: Outcome) -> None:
        """(5)."""
        try:
            save_checkpoint(value, self._again)
            first = self._again.read_bytes()
            with ReadFile(self._again) as file:
                back = self._load(file, "cpu")
            save_checkpoint(back, self._again)
        except EncodeLimitExceeded as exc:
            if "nested" not in exc.message and "depth_max" not in exc.message:
                raise Escape(f"saving a loaded state raised {_kind(exc)}", str(exc)[:300]) from exc
            outcome.features.add("nested too deeply to be saved again")
            return  # a reader lets more containers nest than a writer may write
        except Exception as exc:
            raise Escape(f"saving a loaded state raised {_kind(exc)}", str(exc)[:300]) from exc
        if described(value) != described(back):
            raise Escape("a state that is saved and loaded again is not equal")
        if self._again.read_bytes() != first:
            raise Escape("a state that is saved, loaded and saved again gives other bytes")


@contextlib.contextmanager
def _watched(what: str) -> Iterator[None]:
    """(2)."""
    watch = Watch()
    try:
        with watch:
            yield
    finally:
        found = [event for event in watch.events if not event.startswith(_HARMLESS)]
        if found:
            raise Escape(f"while in {what}: {found[0]}", ", ".join(found[1:4]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expected:
    """What a run says that a file has to be, and no more than that it is another one."""

    digests: FileDigests

    def refusal(self, _found: Any, what: str) -> Exception:
        return FileNotSealed(f"{what}: expected another file")


class _Bounded:
    """A stretch in which asking for more memory than a file may ask for fails."""

    def __init__(self, size: int) -> None:
        self._more = _SPACE_BYTES + _SPACE_TIMES * size

    def __enter__(self) -> None:
        pages = int(Path("/proc/self/statm").read_bytes().split()[0])
        self._before = resource.getrlimit(resource.RLIMIT_AS)
        soft = pages * resource.getpagesize() + self._more
        hard = self._before[1]
        if hard != resource.RLIM_INFINITY:
            soft = min(soft, hard)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_AS, self._before)


def _with_peak(work: Callable[[Any], Any], size: int) -> Callable[[Any], Any]:
    """The same work, with (3) for the objects that it makes."""

    def measured(place: Any) -> Any:
        tracemalloc.start()
        try:
            return work(place)
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            if peak > _PEAK_BYTES + _PEAK_TIMES * size:
                raise Escape("load made too many objects", f"{peak} bytes")

    return measured


def _is_out_of_memory(refusal: SealpointError) -> bool:
    """Whether a refusal is there because `_Bounded` was met."""
    cause = refusal.__cause__
    return (
        "expected memory" in refusal.message
        or isinstance(cause, MemoryError)
        or (isinstance(cause, RuntimeError) and "allocate memory" in str(cause))
    )


def _seconds(work: Callable[[], Any]) -> float:
    """How long it takes once more: the first time may have paid for a garbage collection."""
    began = time.process_time()
    with contextlib.suppress(SealpointError):
        work()
    return time.process_time() - began


def _template(error: BaseException) -> str:
    """An error's message without what differs from case to case."""
    text = error.message if isinstance(error, SealpointError) else str(error)
    return _VARYING.sub("#", text[:400])[:120]


def _kind(error: BaseException) -> str:
    """An exception's class, and the message without what varies."""
    return f"{type(error).__name__} ({_template(error)[:60].strip()})"
