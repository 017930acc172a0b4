# SPDX-License-Identifier: Apache-2.0
"""Reads of a modelled store: each is compared with the truth, and with nothing else."""

from collections.abc import Callable
from functools import partial
from typing import Any

from sealpoint.errors import (
    Erased,
    Forked,
    NotTrusted,
    Pruned,
    RolledBack,
    SealpointError,
    StorageUnavailable,
    Tampered,
    Unanchored,
    UnknownCheckpoint,
    UnknownThread,
)
from sealpoint.gate import Thread
from tests.deployment import Opened
from tests.properties.model_scene import Scene
from tests.properties.model_truth import Saved

__all__ = ["CheckedScene"]

_ALARMS = (Tampered, RolledBack, Forked, Unanchored, NotTrusted, StorageUnavailable)
"""What a read may say while somebody has changed the store; nothing else would be true."""

_Errors = tuple[type[SealpointError], ...]


def _raise(error: SealpointError) -> None:
    raise error


def _unless(exists: bool) -> _Errors:  # noqa: FBT001 - reads as a sentence
    return () if exists else (UnknownThread,)


class CheckedScene(Scene):
    """A scene whose reads are compared with the truth."""

    def excuse(self, error: SealpointError) -> None:
        """A call that should have succeeded may be refused only while the store is changed."""
        if self.clean:
            raise AssertionError(f"refused with {error.code}: {error}") from error

    def excuse_alarm(self, error: SealpointError) -> None:
        """A read may be refused only while the store is changed, and only by an alarm."""
        if self.clean or not isinstance(error, _ALARMS):
            raise AssertionError(f"refused with {error.code}: {error}") from error
        self.tally[f"read refused: {error.code}"] += 1

    def attempt(
        self,
        call: Callable[[], Any],
        genuine: Any,
        errors: _Errors = (),
    ) -> bool:
        """Read: it gives what is genuine, or the error that is; or an alarm where there is cause.

        Returns:
            Whether there was an alarm.
        """
        try:
            found = call()
        except SealpointError as error:
            if errors and isinstance(error, errors):
                return False
            self.excuse_alarm(error)
            return True
        assert not errors, f"read what is not there any more: {found}"
        assert found == genuine, f"read {found}, expected {genuine}"
        return False

    def check_newest(self, store: Opened, name: str) -> bool:
        """The newest state, and the history."""
        view, thread = self.truth[name].view, store.thread(name)
        if view.checkpoints:
            alarm = self.check_loaded(thread.load, view.checkpoints[-1])
        else:
            alarm = self.attempt(thread.load, None, (Erased if view.exists else UnknownThread,))
        return self.check_history(thread) or alarm

    def check_history(self, thread: Thread) -> bool:
        """Every checkpoint of this generation, newest first."""
        view = self.truth[thread.name].view
        try:
            found = list(thread.history())
        except SealpointError as error:
            if view.erased and isinstance(error, Erased):
                # Where an erased thread cannot be walked any more, that is the reason given.
                self.excuse(error)
                return True
            return self.attempt(partial(_raise, error), None, _unless(view.exists))
        return self.attempt(lambda: found, view.listed, _unless(view.exists))

    def check_loaded(self, call: Callable[[], Any], saved: Saved) -> bool:
        """A load gives exactly what was saved."""

        def read() -> tuple[Any, ...]:
            loaded = call()
            assert loaded.metadata == loaded.ref.metadata
            return loaded.state, loaded.ref, loaded.world

        if saved.ref.pruned:
            return self.attempt(read, None, (Pruned,))
        return self.attempt(read, (saved.meant.state, saved.ref, saved.meant.world))

    def check_all(self, store: Opened) -> bool:
        """Every read there is: True if one of them raised an alarm."""
        alarm = self.attempt(lambda: self._check_names(store), None)
        for name, truth in self.truth.items():
            alarm |= self.check_newest(store, name)
            view, thread = truth.view, store.thread(name)
            for saved in view.checkpoints:
                alarm |= self.check_loaded(partial(thread.load, saved.ref), saved)
            gone = (Erased, UnknownCheckpoint, UnknownThread)
            for ref in (*view.erased_refs[-2:], *truth.lost_refs[-2:]):
                alarm |= self.attempt(partial(thread.load, ref), None, gone)
        return alarm

    def _check_names(self, store: Opened) -> None:
        living = {
            name for name, each in self.truth.items() if each.view.exists and not each.view.erased
        }
        # A list is no proof: rows that a restore was accepted without still say their name.
        lost = {name for name, each in self.truth.items() if each.lost_refs and not self.clean}
        found = store.threads(partial=True)
        assert set(found.names) <= living | lost, f"listed {found.names}, expected {living}"
        assert len(set(found.names)) == len(found.names)
        if not found.complete:
            raise Tampered("list of threads: it says of itself that it is not complete")
        assert set(found.names) >= living, f"listed {found.names}, expected {living}"
