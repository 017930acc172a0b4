# SPDX-License-Identifier: Apache-2.0
"""A process with an open store forks: parent and child go on, and never write over each other."""

import subprocess
import sys
from pathlib import Path

from tests.faults.places import Place, facts

_WAIT_S = 60

_PRELUDE = """
import os, signal, sys, threading, warnings
from pathlib import Path
from sealpoint.errors import HeadMoved, Superseded
from tests.faults.places import Place

warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside OS threads is the point

def save(thread, who, times):
    lost = turn = 0
    while turn < times:
        try:
            thread.save(turn, metadata={"mark": [who, turn]})
            turn += 1
        except (HeadMoved, Superseded):
            lost += 1
            thread.load()
    return lost

def forked(work):
    child = os.fork()
    if child == 0:
        signal.alarm(50)
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return child

store = Place(Path(sys.argv[1]), sys.argv[2]).open()
"""


def _run(place: Place, program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PRELUDE + program, str(place.directory), place.kind],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=False,
        timeout=_WAIT_S,
    )

    assert done.returncode == 0, done.stderr


def _marks(place: Place, name: str) -> list[list[int]]:
    with place.open() as store:
        report = store.verify()
        assert (report.ok, report.findings) == (True, ())
        return [fact.metadata["mark"] for fact in facts(store, name)]


def test_child_on_another_thread_disturbs_nobody(place: Place) -> None:
    """Children that save to threads of their own, old and new, and their parent see no error."""
    _run(
        place,
        """
store.thread("parent").save(0, metadata={"mark": [0, -1]})
store.thread("old").save(0, metadata={"mark": [0, -1]})
def work():
    assert save(store.thread("old"), 1, 50) == 0
    assert save(store.thread("new"), 1, 50) == 0
    store.close()
child = forked(work)
assert save(store.thread("parent"), 0, 100) == 0
assert os.waitpid(child, 0)[1] == 0
assert save(store.thread("parent"), 2, 10) == 0
store.close()
""",
    )

    assert _marks(place, "parent") == [
        [0, -1],
        *([0, turn] for turn in range(100)),
        *([2, turn] for turn in range(10)),
    ]
    assert _marks(place, "old") == [[0, -1], *([1, turn] for turn in range(50))]
    assert _marks(place, "new") == [[1, turn] for turn in range(50)]


def test_child_on_the_same_thread_takes_turns(place: Place) -> None:
    """A child inherits its parent's handle: whoever writes second is refused until it loads."""
    _run(
        place,
        """
thread = store.thread("t")
thread.save("before", metadata={"mark": [0, -1]})
def work():
    thread.save("child", metadata={"mark": [1, 0]})
assert os.waitpid(forked(work), 0)[1] == 0
for _ in range(2):
    try:
        thread.save("stale", metadata={"mark": [0, 0]})
    except (HeadMoved, Superseded):
        continue
    sys.exit("a stale save went through")
assert thread.load().state == "child"
thread.save("parent", metadata={"mark": [0, 1]})
store.close()
""",
    )

    assert _marks(place, "t") == [[0, -1], [1, 0], [0, 1]]


def test_parent_and_children_race_on_the_same_thread(place: Place) -> None:
    """Parent and three children that hold one thread each save all they have, once and in order."""
    _run(
        place,
        """
thread = store.thread("t")
thread.save("before", metadata={"mark": [0, -1]})
children = [forked(lambda: save(thread, who, 60)) for who in (1, 2, 3)]
save(thread, 0, 60)
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
store.close()
""",
    )
    marks = _marks(place, "t")

    assert len({tuple(mark) for mark in marks}) == len(marks)
    for who in range(4):
        turns = [turn for writer, turn in marks if writer == who and turn >= 0]
        assert turns == list(range(60))


def test_child_that_outlives_its_parents_store_loses_nothing(place: Place) -> None:
    """A parent that closes its store does not take away the log that its child writes to."""
    _run(
        place,
        """
store.thread("parent").save(0, metadata={"mark": [0, -1]})
began, begin = os.pipe()
gone_on, go_on = os.pipe()
def work():
    thread = store.thread("child")
    save(thread, 1, 1)
    os.write(begin, b"x")
    os.read(gone_on, 1)
    save(thread, 2, 5)
child = forked(work)
os.read(began, 1)
store.close()
os.write(go_on, b"x")
assert os.waitpid(child, 0)[1] == 0
""",
    )

    assert _marks(place, "child") == [[1, 0], *([2, turn] for turn in range(5))]


def test_fork_while_another_os_thread_saves(place: Place) -> None:
    """A fork in the middle of another OS thread's saves leaves the child able to save elsewhere."""
    _run(
        place,
        """
store.thread("child").save(0, metadata={"mark": [1, -1]})
saving = threading.Thread(target=save, args=(store.thread("parent"), 0, 400))
saving.start()
for turn in range(8):
    def work():
        store.thread("child").load()
        store.thread("child").save(turn, metadata={"mark": [1, turn]})
    assert os.waitpid(forked(work), 0)[1] == 0, turn
saving.join()
store.close()
""",
    )

    assert _marks(place, "parent") == [[0, turn] for turn in range(400)]
    assert _marks(place, "child") == [[1, turn] for turn in range(-1, 8)]
