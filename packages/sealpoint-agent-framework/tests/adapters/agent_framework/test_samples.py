# SPDX-License-Identifier: Apache-2.0
"""Workflows like the framework's samples come to the same over a sealed store, also when killed.

The framework's storage in memory, never killed, says what is right. In `make test` every sample
is killed after every save, in turn behind the gate and without one, and one of them in processes of
its own; `make soak` kills all of them both ways, by SIGKILL, and each once before any save, too.
"""

import functools
import itertools
import multiprocessing
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_framework import WorkflowCheckpoint

from tests.adapters.agent_framework.lives import (
    Death,
    MortalStock,
    Result,
    cancel_run,
    kill_process,
    live_once,
    run_sample,
    sealed,
    stock,
    written,
)
from tests.adapters.agent_framework.outside import Outside
from tests.adapters.agent_framework.samples import SAMPLES

_PROCESSES = {("guessing", True)}
"""The samples that die in processes of their own in `make test`, behind the gate or not."""

every_sample = pytest.mark.parametrize("name", SAMPLES)
bare_and_guarded = pytest.mark.parametrize("guarded", [False, True], ids=["bare", "guarded"])


def _after_every_save(_life: int) -> Death:
    return Death(saves=1)


@functools.cache
def _stock(name: str, killed: bool) -> Result:  # noqa: FBT001 (a key of the cache)
    with tempfile.TemporaryDirectory() as folder:
        deaths = _after_every_save if killed else lambda _: Death()
        return run_sample(name, stock(), Path(folder) / "outside", deaths)


def _assert_survived(killed: Result, name: str) -> None:
    """Compare a run that was killed with one that was not, and with the framework's own."""
    truth, peer = _stock(name, killed=False), _stock(name, killed=True)

    assert killed.lives > 1
    assert killed.final == truth.final
    assert killed.outputs == (peer if SAMPLES[name].as_agent else truth).outputs
    if SAMPLES[name].side_by_side:  # what was at work when it died is done again
        assert set(killed.did) == set(truth.did)
    else:
        assert killed.did == truth.did
        assert killed.checkpoints == peer.checkpoints


@pytest.mark.parametrize(
    "guarded",
    [pytest.param(False, marks=pytest.mark.soak, id="bare"), pytest.param(True, id="guarded")],
)
@every_sample
def test_sample_gives_what_it_gives_in_memory(name: str, guarded: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """Outputs, what was done and everything stored are those of the stock storage."""
    world = sealed("sqlite", tmp_path / "home", guarded=guarded)
    result = run_sample(name, world, tmp_path / "outside")
    truth = _stock(name, killed=False)

    assert result.outputs == truth.outputs
    assert result.did == truth.did
    assert result.final == truth.final
    if not SAMPLES[name].side_by_side:
        assert result.checkpoints == truth.checkpoints


@pytest.mark.parametrize(
    ("name", "guarded"),
    [
        pytest.param(name, guarded, marks=[] if guarded == bool(number % 2) else [pytest.mark.soak])
        for number, name in enumerate(SAMPLES)
        for guarded in (False, True)
    ],
)
def test_sample_killed_after_every_save_comes_to_the_same(
    name: str,
    guarded: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    """Each life gets one save further and dies; nothing that was saved is done twice."""
    world = sealed("sqlite", tmp_path / "home", guarded=guarded)

    _assert_survived(run_sample(name, world, tmp_path / "outside", _after_every_save), name)


@bare_and_guarded
def test_sample_on_files_killed_after_every_save_comes_to_the_same(
    guarded: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    """As on SQLite."""
    world = sealed("file", tmp_path / "home", guarded=guarded)

    _assert_survived(
        run_sample("handoff", world, tmp_path / "outside", _after_every_save), "handoff"
    )


@bare_and_guarded
def test_sample_cancelled_after_every_save_comes_to_the_same(
    guarded: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    """As a host does whose event loop is shut down."""
    world = sealed("sqlite", tmp_path / "home", guarded=guarded)

    def deaths(_life: int) -> Death:
        return Death(saves=1, die=cancel_run)

    _assert_survived(run_sample("guessing", world, tmp_path / "outside", deaths), "guessing")


def _killed_before(name: str, saves: int, world: Any, folder: Path) -> Result:
    """A sample that died once, when it had worked and not yet saved."""
    return run_sample(
        name,
        world,
        folder / f"outside-{saves}",
        lambda life: Death(saves=saves, before=True) if life == 0 else Death(),
    )


def _assert_repeats_no_more(name: str, guarded: bool, saves: int, folder: Path) -> None:  # noqa: FBT001
    home = folder / f"home-{saves}"
    ours = _killed_before(name, saves, sealed("sqlite", home, guarded=guarded), folder)
    peer = _killed_before(name, saves, stock(), folder / "peer")
    truth = _stock(name, killed=False)

    assert ours.final == truth.final
    assert ours.did == peer.did
    assert not Counter(truth.did) - Counter(ours.did)


@bare_and_guarded
def test_what_was_not_saved_is_done_again_and_no_more(guarded: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """Killed when it had worked and not yet saved, a sample repeats what the framework does."""
    (tmp_path / "peer").mkdir()
    _assert_repeats_no_more("handoff", guarded, 4, tmp_path)


@pytest.mark.soak
@bare_and_guarded
@pytest.mark.parametrize("name", [name for name in SAMPLES if not SAMPLES[name].side_by_side])
def test_what_was_not_saved_is_done_again_and_no_more_anywhere(
    name: str,
    guarded: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    """The same before every save of every sample, also of what it was given."""
    (tmp_path / "peer").mkdir()
    for saves in range(1, len(_stock(name, killed=False).checkpoints) + 1):
        _assert_repeats_no_more(name, guarded, saves, tmp_path)


# ---------------------------------------------------------------------- processes


def _live(name: str, folder: str, guarded: bool, sender: Any) -> None:  # noqa: FBT001
    """One life, in a process of its own."""
    home = Path(folder)
    world = sealed("sqlite", home / "home", guarded=guarded)
    death = Death(saves=1, die=kill_process)
    sender.send(live_once(name, world, Outside(home / "outside"), death))


@pytest.fixture(scope="module")
def processes() -> Iterator[Any]:
    """Makes processes that have imported everything already."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload([__name__])
    yield found
    multiprocessing.forkserver._forkserver._stop()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "guarded"),
    [
        pytest.param(*each, marks=[] if each in _PROCESSES else [pytest.mark.soak])
        for each in itertools.product(SAMPLES, (False, True))
    ],
)
def test_process_killed_after_every_save_comes_to_the_same(
    name: str,
    guarded: bool,  # noqa: FBT001
    tmp_path: Path,
    processes: Any,
) -> None:
    """By SIGKILL: what is on disk is all that the next process has."""
    (tmp_path / "life").mkdir()
    lives = 0
    while True:
        receiver, sender = processes.Pipe(duplex=False)
        life = processes.Process(target=_live, args=(name, str(tmp_path / "life"), guarded, sender))
        life.start()
        sender.close()
        life.join()
        lives += 1
        if life.exitcode == 0:
            break
        assert life.exitcode == -signal.SIGKILL

    found: list[WorkflowCheckpoint] = receiver.recv()
    _assert_survived(written(Outside(tmp_path / "life" / "outside"), found, lives), name)


# ---------------------------------------------------------------------- what is caught


class _LosesWhatWaits(MortalStock):
    """Forgets what waits in an edge for the rest."""

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """Load less."""
        found = await super().load(checkpoint_id)
        found.state["_edge_state"] = {}
        return found


class _LosesTypes(MortalStock):
    """Gives pairs back as lists."""

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Save something else."""
        guesser = checkpoint.state["_executor_state"].get("guesser", {})
        guesser.update({name: list(item) for name, item in guesser.items()})
        return await super().save(checkpoint)


@pytest.mark.parametrize(("name", "made"), [("fan-in", _LosesWhatWaits), ("guessing", _LosesTypes)])
def test_a_storage_that_loses_something_is_caught(
    name: str, made: type[MortalStock], tmp_path: Path
) -> None:
    """Also where the sample does not look at it."""
    killed = run_sample(name, stock(made), tmp_path / "outside", _after_every_save)
    with pytest.raises(AssertionError):
        _assert_survived(killed, name)
