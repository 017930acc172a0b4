# SPDX-License-Identifier: Apache-2.0
"""Somebody who reaches into the database while a page is open; then a button of it is pressed."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tests.attacks.console.conftest import Open
from tests.attacks.ledger.raw_editor import RawEditor, Rows, editor_of
from tests.console.scene import Served
from tests.effort import in_soak

Edit = Callable[[Rows], Rows]
_ENGINES = pytest.mark.parametrize("raced", ["sqlite", in_soak("postgres")], indirect=True)


def _shortened(rows: Rows) -> Rows:
    return {seq: row for seq, row in rows.items() if seq != max(rows)}


def _with_a_hole(rows: Rows) -> Rows:
    return {seq: row for seq, row in rows.items() if seq != 2}


def _bodiless(rows: Rows) -> Rows:
    return {**rows, 1: replace(rows[1], body=None)}


def _swapped(rows: Rows) -> Rows:
    return {**rows, 2: rows[3], 3: rows[2]}


def _edited(rows: Rows) -> Rows:
    body = rows[2].body or b""
    return {**rows, 2: replace(rows[2], body=bytes([body[0] ^ 1]) + body[1:])}


_EDITS: dict[str, tuple[Edit, str]] = {
    "shortened": (_shortened, "rolled-back"),
    "with-a-hole": (_with_a_hole, "missing"),
    "bodiless": (_bodiless, "missing"),
    "swapped": (_swapped, "misplaced"),
    "gone": (lambda _: {}, "rolled-back"),
    "edited": (_edited, "edited"),
}
"""What becomes of a thread's rows, and the code that who approves is told."""


def _editor(served: Served) -> RawEditor:
    folder = served.scene.folder
    if served.scene.server is not None:
        return editor_of("postgres", folder)
    return editor_of("sqlite", folder / "disk" / "agents.db")


@_ENGINES
@pytest.mark.parametrize("name", _EDITS)
def test_an_approval_of_what_was_changed_meanwhile_is_not_recorded(
    raced: Served, tab: Open, name: str
) -> None:
    """Neither is it called unknown: whoever signed is told what is wrong with the store."""
    edit, code = _EDITS[name]
    request = raced.scene.ask(name)
    raced.seen()
    editor = _editor(raced)
    thread = bytes.fromhex(raced.console.desk.watch.thread(name).id)
    before, send = editor.rows(thread), tab("ann").say(request)
    editor.put_rows(thread, edit(before))
    assert editor.rows(thread) != before
    answer = send()
    raced.seen()
    page = tab("ann").client.get(f"/requests/{request}")
    editor.put_rows(thread, before)
    with raced.scene.open() as store:
        found = store.request(request)

    assert (answer.status_code, answer.json()["error"]["code"]) == (409, code)
    assert page.status_code in (200, 409)
    assert 'role="alert"' in page.text
    assert found.approved_by == ()


@_ENGINES
def test_a_denial_of_what_was_changed_meanwhile_says_what_is_wrong(
    raced: Served, tab: Open
) -> None:
    """It is not recorded either, where the thread does not verify."""
    request = raced.scene.ask("denied")
    raced.seen()
    editor = _editor(raced)
    thread = bytes.fromhex(raced.console.desk.watch.thread("denied").id)
    before, send = editor.rows(thread), tab("ann").say(request, "deny")
    editor.put_rows(thread, _shortened(before))
    answer = send()
    editor.put_rows(thread, before)

    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "rolled-back")
