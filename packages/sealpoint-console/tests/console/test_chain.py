# SPDX-License-Identifier: Apache-2.0
"""A thread as it is drawn: where it forks, what is left behind, and whose it is."""

from contextlib import closing
from dataclasses import replace

from sealpoint_console._timeline_drawing import LINES_MAX, ChainRow, draw_chain
from tests.console.scene import WORLD, Served


def _drawn(served: Served, *saves: tuple[str, str | None]) -> dict[str, ChainRow]:
    """The rows of a thread whose checkpoints came from others, by their ids."""
    with served.scene.open() as store:
        for name, parent in saves:
            store.thread("t").save(name, id=name, parent=parent)
    rows = draw_chain(served.console.desk.watch.timeline("t").entries)
    assert [row.seq for row in rows] == sorted((row.seq for row in rows), reverse=True)
    return {row.entry.facts.get("id", row.entry.record.kind): row for row in rows}


def test_what_goes_on_from_the_one_before_is_one_line(served: Served) -> None:
    """Nothing forks, and the first entry says whose the thread is."""
    rows = _drawn(served, ("a", None), ("b", "a"), ("c", "b"))

    assert {row.line for row in rows.values()} == {0}
    assert not any(row.is_fork or row.branches or row.left_for for row in rows.values())
    assert rows["genesis"].stretch == ("Owner worker",)


def test_a_checkpoint_from_an_older_one_begins_a_line(served: Served) -> None:
    """It names what it came from; what it leaves behind says so, and has no line to newer ones."""
    rows = _drawn(served, ("a", None), ("b", "a"), ("c", "a"), ("d", "c"), ("e", "b"))

    assert [rows[name].line for name in "abcde"] == [0, 0, 1, 1, 0]
    assert rows["c"].came_from is rows["a"]
    assert rows["a"].branches == {1}
    assert rows["b"].left_for is rows["c"]
    assert rows["e"].came_from is rows["b"]
    assert 1 not in rows["d"].upward


def test_a_parent_that_is_not_there_is_told_in_words(served: Served) -> None:
    """Neither a line nor an entry is made up for it."""
    row = _drawn(served, ("a", None), ("b", "nowhere"))["b"]

    assert (row.came_from, row.came_from_name) == (None, "nowhere")
    assert not row.downward


def test_the_page_says_in_words_what_it_draws(served: Served) -> None:
    """Whoever does not see the lines reads where it forks."""
    _drawn(served, ("a", None), ("b", "a"), ("c", "a"))
    served.seen()
    thread = served.console.desk.watch.thread("t").id
    with served.client("vera") as client:
        page = client.get(f"/threads/{thread}").text

    assert 'Continues from <a href="#entry-2">entry 2</a>' in page
    assert 'Left behind: <a href="#entry-4">entry 4</a>' in page
    assert "Owner worker, from here on" in page


def test_a_resume_from_an_older_checkpoint_begins_a_line(served: Served) -> None:
    """It names the checkpoint; what follows is on its line, and the newer one is left behind."""
    with served.scene.open() as store:
        thread = store.thread("t")
        older = thread.save("a", id="a", world=WORLD)
        thread.save("b", id="b", world=WORLD)
        served.scene.let_pass(
            lambda: thread.resume(ref=older, world=WORLD, deliberate="b was wrong")
        )
        thread.save("c", id="c", world=WORLD)
    rows = draw_chain(served.console.desk.watch.timeline("t").entries)
    named = {row.entry.facts.get("id", row.entry.record.kind): row for row in rows}
    resume = next(row for row in rows if row.entry.record.kind == "resume" and row.is_fork)

    assert (resume.came_from, resume.came_from_name) == (named["a"], "a")
    assert resume.line != named["b"].line
    assert named["b"].left_for is resume, "and not the approvals that lie between"
    assert named["c"].line == resume.line
    assert not named["c"].is_fork


def test_an_owner_an_epoch_and_a_generation_begin_with_an_entry(served: Served) -> None:
    """Each is told where it changes, and nowhere else."""
    with served.scene.open() as store:
        store.thread("t").save("a", id="a")
        store.thread("t").save("b", id="b")
    saved, *_ = served.console.desk.watch.timeline("t").entries
    handed = replace(
        saved, record=replace(saved.record, kind="handoff"), facts={"owner": "night-shift"}
    )
    entries = [
        replace(saved, epoch=1, generation=1),
        replace(saved, epoch=1),
        replace(saved, epoch=1),
        handed,
        saved,
    ]

    assert [row.stretch for row in draw_chain(entries)] == [
        ("Generation 1: restarted after it was erased",),
        (),
        ("Epoch 1: a restored store was accepted",),
        ("Owner night-shift",),
        (),
    ]


def test_more_forks_than_lines_are_told_in_words_alone(served: Served) -> None:
    """A drawing is never wider than its limit, and each fork names what it came from."""
    forks = [f"f{number}" for number in range(LINES_MAX + 3)]
    rows = _drawn(served, ("a", None), ("b", "a"), *((name, "a") for name in forks))

    assert max(row.width for row in rows.values()) == LINES_MAX
    assert all(rows[name].came_from is rows["a"] for name in forks)
    assert all(row.line < LINES_MAX for row in rows.values())
    last = rows[forks[-1]]
    assert last.is_fork
    assert not last.downward


def test_a_page_with_every_line_taken_is_shown(served: Served) -> None:
    """Lines, bands and words are on it."""
    _drawn(served, ("a", None), ("b", "a"), *((f"f{number}", "a") for number in range(LINES_MAX)))
    served.seen()
    thread = served.console.desk.watch.thread("t").id
    with closing(served.client("vera")) as client:
        page = client.get(f"/threads/{thread}").text

    assert f'class="chain lines-{LINES_MAX}"' in page
    assert page.count("and not from the one before it") == LINES_MAX
