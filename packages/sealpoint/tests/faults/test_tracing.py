# SPDX-License-Identifier: Apache-2.0
"""The tracer sees everything that a process does to files, and changes only what it is told to."""

from pathlib import Path

from tests.faults.disk import Cut, Disk
from tests.faults.events import Event, Sync, Write
from tests.faults.replay import image_of
from tests.faults.traced import Task, Traced, read_events


def _recorded(directory: Path, tracer: Traced, **more: object) -> list[Event]:
    root, recording = directory.resolve() / "root", directory / "recording"
    root.mkdir()
    (root / "before").write_bytes(b"z" * 700)
    task = Task(
        directory=str(root),
        kind="sqlite",
        scenario="sample",
        recording=str(recording),
        **more,  # type: ignore[arg-type]
    )
    outcome = tracer.run(task)
    assert (outcome.status, outcome.refused) == (0, "")
    return read_events(recording)


def test_recording_replayed_is_what_was_done(tmp_path: Path, tracer: Traced) -> None:
    """Writes, maps, links, renames and permissions, of two OS threads, come out as they are."""
    disk = Disk()
    for event in _recorded(tmp_path, tracer):
        disk.apply(event)
    image = disk.image(Cut.kept())

    assert image_of(image) == image_of(tmp_path / "root")
    assert set(image) == {"before", "fifth", "first", "inside", "inside/third"}
    third = image["inside/third"][2]
    assert third is not None
    assert third[100:110] + third[2000:2010] + third[-1:] == b"d" * 10 + b"e" * 10 + b"b"


def test_only_what_was_synced_is_kept(tmp_path: Path, tracer: Traced) -> None:
    """What was there before is on the disk; of what was written, only what a sync was asked for."""
    events = _recorded(tmp_path, tracer)
    disk = Disk()
    for event in events:
        disk.apply(event)
    begun = next(number for number, event in enumerate(events) if not _is_scan(event))

    assert any(isinstance(event, Sync) for event in events[begun:])
    assert set(disk.image(Cut.dropped())) == {"before"}
    # Its bytes are there for whoever finds a name for it.
    assert disk.image(Cut.names_only())["inside/third"] == disk.image(Cut.kept())["inside/third"]
    assert disk.image(Cut.names_only())["first"][2] == b""


def _is_scan(event: Event) -> bool:
    return not isinstance(event, Write) or event.data.startswith(b"z")


def test_call_that_is_not_understood_is_refused(tmp_path: Path, tracer: Traced) -> None:
    """A recording never leaves something out silently."""
    task = Task(
        directory=str(tmp_path.resolve()),
        kind="sqlite",
        scenario="sample",
        recording=str(tmp_path.parent / "recording"),
        writer=1,
    )

    assert "sync" in tracer.run(task).refused


def test_one_call_fails_as_asked(tmp_path: Path, tracer: Traced) -> None:
    """The call that is hit is not made, the process hears the error, and goes on."""
    directory = str(tmp_path.resolve())
    task = Task(
        directory=directory,
        kind="sqlite",
        scenario="sample",
        counted="writes",
        number=1,
        fault="ENOSPC",
    )
    outcome = tracer.run(task)

    assert outcome.status == 0
    assert outcome.calls == ["write first"]
    assert [note.detail for note in outcome.words("failed")] == ["ENOSPC"]
    assert (tmp_path / "first").read_bytes() == b""


def test_write_is_cut_in_half(tmp_path: Path, tracer: Traced) -> None:
    """A part is written, the process is told how much, and writes the rest."""
    directory = str(tmp_path.resolve())
    task = Task(
        directory=directory,
        kind="sqlite",
        scenario="sample",
        counted="writes",
        number=1,
        fault="half",
    )
    outcome = tracer.run(task)

    assert outcome.calls == ["write first", "write first"]
    assert (tmp_path / "first").read_bytes() == b"a" * 1000
