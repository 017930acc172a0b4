# SPDX-License-Identifier: Apache-2.0
"""Somebody in a process of their own, who holds a store open and does what a line of JSON says.

`Actor` starts one and talks to it. What comes back is a result or the code of an error; anything
that is no `SealpointError` ends the process, and the story with it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import sealpoint
from sealpoint.api import Store
from sealpoint.errors import NeedsApproval, SealpointError
from sealpoint.gate import Request

__all__ = ["Actor", "Refused"]

_ROOT = Path(__file__).parents[2]
_THREAD = "invoice-7"


class Refused(Exception):
    """What somebody was told instead of a result."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(f"{told['code']}: {told['message']}")
        self.code: str = told["code"]
        self.reasons: list[str] = told["reasons"]
        self.request: str | None = told["request"]
        self.approved: list[str] = told["approved"]


# ---------------------------------------------------------------------- in its own process


def _save(store: Store, said: dict[str, Any]) -> Any:
    return store.thread(_THREAD).save(**said).id


def _load(store: Store, _said: dict[str, Any]) -> Any:
    return store.thread(_THREAD).load().state


def _deny(store: Store, said: dict[str, Any]) -> Any:
    return store.deny(said["request"], reason=said["reason"]).statement


def _resume(store: Store, said: dict[str, Any]) -> Any:
    return store.thread(_THREAD).resume(**said).state


def _pause(store: Store, said: dict[str, Any]) -> Any:
    return store.thread(_THREAD).pause(**said)


def _unpause(store: Store, said: dict[str, Any]) -> Any:
    return store.thread(_THREAD).unpause(**said)


def _approve(store: Store, said: dict[str, Any]) -> Any:
    return store.approve(said["request"], reason=said["reason"]).statement


def _requests(store: Store, _said: dict[str, Any]) -> Any:
    return [
        {"id": each.id, "status": each.status, "answer": each.answer, "world": each.world}
        for each in store.requests().requests
    ]


def _audit(store: Store, _said: dict[str, Any]) -> Any:
    return [record.as_dict() for record in store.audit(thread=_THREAD)]


def _verify(store: Store, _said: dict[str, Any]) -> Any:
    return [finding.as_dict() for finding in store.verify().findings]


def _export(store: Store, said: dict[str, Any]) -> Any:
    with Path(said["path"]).open("wb") as file:
        file.writelines(store.export([_THREAD]))
    return True


_ACTS: dict[str, Callable[[Store, dict[str, Any]], Any]] = {
    "approve": _approve,
    "audit": _audit,
    "deny": _deny,
    "export": _export,
    "load": _load,
    "pause": _pause,
    "requests": _requests,
    "resume": _resume,
    "save": _save,
    "unpause": _unpause,
    "verify": _verify,
}


def _told(error: SealpointError) -> dict[str, Any]:
    request = error.request if isinstance(error, NeedsApproval) else None
    known = request if isinstance(request, Request) else None
    return {
        "code": error.code,
        "message": error.message,
        "reasons": list(getattr(error, "reasons", ())),
        "request": None if known is None else known.id,
        "approved": [] if known is None else list(known.approved_by),
    }


def _main(url: str, config: str, state: str, identity: str) -> None:
    with sealpoint.open_store(url, identity=identity, config_dir=config, state_dir=state) as store:
        for line in sys.stdin:
            act, said = json.loads(line)
            try:
                told = {"result": _ACTS[act](store, said)}
            except SealpointError as error:
                told = {"refused": _told(error)}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()


# ---------------------------------------------------------------------- in that of the story


class Actor:
    """A process that acts for an identity."""

    def __init__(self, url: str, places: dict[str, Path], identity: str) -> None:
        paths = [str(Path(sealpoint.__file__).parents[1]), str(_ROOT)]
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.stories.actor",
                url,
                str(places["config_dir"]),
                str(places["state_dir"]),
                identity,
            ],
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def tell(self, act: str, **said: Any) -> None:
        """Tell it what to do, without waiting."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([act, said]) + "\n")
        self._process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """What it says to that."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process has ended"
        told: dict[str, Any] = json.loads(line)
        return told

    def __call__(self, act: str, **said: Any) -> Any:
        """Let it do something.

        Raises:
            Refused: It was told no.
        """
        self.tell(act, **said)
        told = self.hear()
        if "refused" in told:
            raise Refused(told["refused"])
        return told["result"]

    def end(self) -> None:
        """Let it end by itself."""
        self._process.communicate(timeout=60)
        assert self._process.returncode == 0

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.kill()
        self._process.communicate(timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self.kill() if error is not None else self.end()


if __name__ == "__main__":
    _main(*sys.argv[1:])
