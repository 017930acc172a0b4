# SPDX-License-Identifier: Apache-2.0
"""One process that tries case after case, and leaves behind what another can read if it dies.

Before a case is tried it is written to a memory-mapped file: should the process be killed or
crash inside native code, the case that did it lies there. Progress goes to a small JSON file once
a second, kept cases and escapes go to files at once.
"""

import hashlib
import json
import mmap
import re
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fuzz._claim import Claim, Escape, Outcome

__all__ = ["Progress", "Session", "bound_memory", "escape_path", "read_staged", "save_escape"]

_STAGE_BYTES = 1 << 22
_COUNT = slice(0, 8)
_LENGTH = slice(8, 12)
_CASE = 12
_MEMORY_BYTES = 2 << 30
_PROGRESS_SECONDS = 1.0
_PROGRESS_EVERY = 64


@dataclass(slots=True, kw_only=True)
class Progress:
    """How far a process is."""

    executions: int = 0
    seconds: float = 0.0
    kept: int = 0
    escapes: dict[str, int] = field(default_factory=dict)
    """How often each kind of escape was met."""

    def write(self, path: Path) -> None:
        """Replace the file as a whole."""
        fresh = path.with_suffix(".new")
        text = {
            "executions": self.executions,
            "seconds": self.seconds,
            "kept": self.kept,
            "escapes": self.escapes,
        }
        fresh.write_text(json.dumps(text), encoding="utf-8")
        fresh.replace(path)

    @classmethod
    def read(cls, path: Path) -> "Progress":
        """What was written last, or nothing yet."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return cls()


def escape_path(output: Path, kind: str) -> Path:
    """Where the smallest case of a kind of escape is saved."""
    name = re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-")[:80]
    return output / "escapes" / f"{name}.case"


def save_escape(output: Path, kind: str, detail: str, data: bytes) -> Path:
    """Save the smallest case of each kind of escape, with a note of what happened beside it."""
    path = escape_path(output, kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.stat().st_size > len(data):
        path.write_bytes(data)
        path.with_suffix(".txt").write_text(
            f"{kind}\n{detail}\n", encoding="utf-8", errors="replace"
        )
    return path


def read_staged(own: Path) -> tuple[int, bytes]:
    """How many cases a process has begun, and the one that it began last."""
    try:
        data = (own / "stage").read_bytes()
    except FileNotFoundError:
        return 0, b""
    size = int.from_bytes(data[_LENGTH], "big")
    return int.from_bytes(data[_COUNT], "big"), data[_CASE : _CASE + size]


def bound_memory() -> None:
    """From here on, asking for gigabytes fails instead of succeeding by overcommitment."""
    size = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = size * resource.getpagesize() + _MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


class Session:
    """Tries cases and keeps account.

    Args:
        target: The claim.
        output: The folder for kept cases and escapes, which processes may share.
        own: The folder for what belongs to this process alone.
        on_kept: Called with each case that showed something new.
    """

    def __init__(
        self,
        target: Claim,
        output: Path,
        own: Path,
        on_kept: Callable[[bytes, Outcome], None] = lambda *_: None,
    ) -> None:
        self._target = target
        self._output = output
        self._on_kept = on_kept
        self._corpus = output / "corpus"
        self._corpus.mkdir(parents=True, exist_ok=True)
        own.mkdir(parents=True, exist_ok=True)
        self._progress = own / "progress.json"
        stage = own / "stage"
        stage.write_bytes(bytes(_STAGE_BYTES))
        with stage.open("r+b") as file:
            self._stage = mmap.mmap(file.fileno(), _STAGE_BYTES)
        self._features: set[object] = set()
        self._began = time.monotonic()
        self._began_work = time.process_time()
        self._written = 0.0
        self.progress = Progress()

    @property
    def seconds(self) -> float:
        """How long this session has been at work: a busy machine makes no run shorter."""
        worked = time.process_time() - self._began_work
        return min(worked, time.monotonic() - self._began)

    def run(self, data: bytes) -> None:
        """Try one case."""
        if len(data) > _STAGE_BYTES - _CASE:
            return
        progress = self.progress
        progress.executions += 1
        self._stage[: _CASE + len(data)] = (
            progress.executions.to_bytes(8, "big") + len(data).to_bytes(4, "big") + data
        )
        try:
            outcome = self._target.run(data)
        except Escape as exc:
            self._escaped(exc, data)
        else:
            if not outcome.features <= self._features:
                self._keep(outcome, data)
        if progress.executions % _PROGRESS_EVERY == 0:
            now = time.monotonic()
            if now - self._written > _PROGRESS_SECONDS:
                self.write_progress()
                self._written = now

    def _keep(self, outcome: Outcome, data: bytes) -> None:
        self._features |= outcome.features
        self.progress.kept += 1
        name = hashlib.sha256(data).hexdigest()[:16]
        (self._corpus / name).write_bytes(data)
        self._on_kept(data, outcome)

    def _escaped(self, escape: Escape, data: bytes) -> None:
        known = self.progress.escapes
        known[escape.kind] = known.get(escape.kind, 0) + 1
        if known[escape.kind] <= 50:
            save_escape(self._output, escape.kind, str(escape), data)
        self.write_progress()

    def write_progress(self) -> None:
        """Leave behind how far it came."""
        self.progress.seconds = self.seconds
        self.progress.write(self._progress)
