# SPDX-License-Identifier: Apache-2.0
"""The pages about one thread: its chain, a state, a comparison, and a hypothetical resume.

Each page reads and verifies its content on demand. A verification failure is shown as one, with the
known facts. The displayed part of a hostile state is bounded, whatever its content.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from sealpoint.api import read_release
from sealpoint.audit import Finding
from sealpoint.errors import SealpointError, UsageError
from sealpoint.gate import Request, Standing, Status, Thread
from sealpoint.signing import Action, Role
from sealpoint.views.changes import Change, LineChange, diff_checkpoints
from sealpoint.views.conversation import find_conversations, read_conversation
from sealpoint.views.decision import Decision, read_decision
from sealpoint.views.masking import REVEALED
from sealpoint.views.nodes import finished_nodes, step_text
from sealpoint.views.tree import StateTree
from sealpoint_console._app import PageCall, Right, Routes
from sealpoint_console._question_lines import approved_threads
from sealpoint_console._timeline_drawing import ChainRow, draw_chain

_ENTRIES = 50
_BELOW = 10
"""The number of entries below a page that are read to find the sources of its oldest ones."""
_CHANGES = 500
_LINES_EACH = 1_000
_LINES = 4_000
_LINES_CHARS = 1_000_000
"""The limits of changed lines of one text, and of lines and characters of a page."""
_MESSAGES = 50
_SAVED, _UNKNOWN = "saved", "unknown"
_OPEN = (Status.OPEN, Status.APPROVED)

ENTRY_WORDS: Mapping[str, tuple[str, str]] = {
    "genesis": ("Begun", ""),
    "checkpoint": ("Saved", "checkpoint"),
    "held": ("Saved, held back by the pause", "checkpoint"),
    "results": ("Results", ""),
    "writes": ("Results", ""),
    "resume": ("Resumed", "decision"),
    "handoff": ("Handed off", "decision"),
    "pause": ("Paused", "hold-entry"),
    "unpause": ("Unpaused", "hold-entry"),
    "request": ("Asked for approval", "decision"),
    "approval": ("Approved", "decision"),
    "denial": ("Denied", "decision"),
    "expiry": ("Expired", "decision"),
    "break-glass": ("Glass broken", "broken"),
    "prune": ("Pruned", ""),
    "delete": ("Deleted", ""),
    "erase": ("Erased", "broken"),
    "adopt": ("Adopted by the anchor", ""),
    "finding": ("Does not verify", "broken"),
    "roster": ("Roster changed: people, keys or policy", ""),
    "root": ("Root keys changed", ""),
    "restore": ("A restore was accepted", "broken"),
}
"""The label of a kind of entry on a page, and its symbol."""


@dataclass(frozen=True, slots=True)
class _TimelineRow:
    """One entry of a timeline."""

    seq: int
    word: str
    css: str
    by: str
    time: datetime | None
    step: str
    """The step in the words of the program; empty if that is unknown."""
    summary: str
    is_checkpoint: bool
    request: str
    given_up: str
    chain: ChainRow


class ThreadPages:
    """The routes that show a thread."""

    def routes(self, make: Routes) -> list[Route]:
        """All of them."""
        return [
            make.get("/threads/{thread}", Right.SIGNED_IN, self._thread),
            make.get("/threads/{thread}/entries/{seq:int}", Right.SIGNED_IN, self._entry),
            make.get("/threads/{thread}/compare", Right.SIGNED_IN, self._compare),
            make.get("/threads/{thread}/explain", Right.SIGNED_IN, self._explain),
        ]

    def _thread(self, call: PageCall) -> Response:
        about, offset = call.path("thread"), call.number("offset", 0)
        summary = call.summary(about)
        fault: Finding | SealpointError | None = None
        standing = question = None
        # Before the content is read: a form must never be bound to a state that the page does not
        # show.
        try:
            thread = call.desk.store.thread(summary.name)
            standing = thread.standing()
            question = _asked(call, thread)
        except SealpointError as error:
            fault = error
        limit = _ENTRIES + _BELOW
        page = call.desk.watch.timeline(summary.name, offset=offset, limit=limit)
        if page.finding is not None:
            fault, standing = page.finding, None
        finished = finished_nodes(page.entries)
        rows = [_row(each, finished) for each in draw_chain(page.entries)[:_ENTRIES]]
        saved = [each.seq for each in rows if each.is_checkpoint]
        return call.page(
            "thread.html",
            page_path="/",
            id=about,
            name=summary.name,
            summary=summary,
            fault=fault,
            records=rows,
            lines=max((each.chain.width for each in rows), default=1),
            offset=offset,
            limit=_ENTRIES,
            total=page.total,
            compare_from=saved[min(1, len(saved) - 1)] if saved else None,
            compare_to=saved[0] if saved else None,
            requests=_requests_of(call, about),
            found=call.desk.health.findings_of(about),
            question=question,
            approved=approved_threads(_requests_of(call, about)).get(about),
            paused=None if standing is None else standing.paused,
            tickets={} if standing is None else _thread_tickets(call, standing),
            can_resume=call.desk.notifier.tells("resume-wanted"),
            told=call.desk.notifier.reported_resumes(about),
            owners=_writers(call, pools=True),
        )

    def _entry(self, call: PageCall) -> Response:
        about, seq = call.path("thread"), call.request.path_params["seq"]
        thread = call.thread(about)
        ref = thread.checkpoint_at(seq)
        loaded = thread.load(ref)
        reveal, at = call.query("reveal") == "1", call.query("at")
        masking = call.desk.masking
        tree = StateTree(loaded.state, masking=REVEALED if reveal else masking)
        search = call.query("q")
        node = tree.node(at)
        piece = None
        if at and not node.children:
            piece = tree.text(at, offset=call.number("text", 0))
        conversations = []
        if not at:
            for each in find_conversations(tree).found:
                start = max(0, each.messages - _MESSAGES)
                told = read_conversation(tree, each.at, offset=start, limit=_MESSAGES)
                conversations.append({"path": each.path, "messages": told, "left": start})
        return call.page(
            "entry.html",
            page_path="/",
            id=about,
            name=thread.name,
            seq=seq,
            ref=ref,
            search=search,
            found=tree.search(search) if search else None,
            conversations=conversations,
            branch=tree.look(at),
            piece=piece,
            at=at,
            more=None,
            path=f"?reveal={'1' if reveal else ''}",
            reveal=reveal,
            masks=bool(masking.names),
        )

    def _compare(self, call: PageCall) -> Response:
        about = call.path("thread")
        thread = call.thread(about)
        first, last = sorted((call.number("from", 0), call.number("to", 0)))
        reveal = call.query("reveal") == "1"
        found = diff_checkpoints(
            thread.load(thread.checkpoint_at(first)),
            thread.load(thread.checkpoint_at(last)),
            call.desk.store.registry.encode,
            masking=REVEALED if reveal else call.desk.masking,
            changes_max=_CHANGES,
        )
        return call.page(
            "compare.html",
            page_path="/",
            id=about,
            name=thread.name,
            from_seq=first,
            to_seq=last,
            reveal=reveal,
            masked=any(each.masked for each in found.changes),
            changes=_changed_lines(found.changes),
            complete=found.complete,
            world=[] if found.world is None else list(found.world.lines()),
        )

    def _explain(self, call: PageCall) -> Response:
        about = call.path("thread")
        thread = call.thread(about)
        writers = _writers(call)
        chosen = call.query("as")
        world = call.query("world", _SAVED)
        asked = {
            each.id: each
            for each in _requests_of(call, about)
            if each.status in _OPEN and each.statement.action is Action.RESUME
        }
        decision, fault = None, None
        if chosen:
            if chosen not in writers:
                raise UsageError(
                    f"as: expected a writer of the namespace, found {chosen[:64]!r}",
                    hint="Only writers resume; the page of a thread lists them.",
                )
            try:
                given = _hypothesis(thread, world, asked)
                decision = thread.judge(identity=chosen, **given)
            except SealpointError as error:
                fault = error
        outcomes = {
            "allow": ("It may resume", "good", "good"),
            "needs-approval": ("Others have to approve", "wait", "wait"),
            "refuse": ("Refused", "bad", "no"),
        }
        outcome = outcomes[str(decision.outcome)] if decision else ("", "", "")
        return call.page(
            "explain.html",
            page_path="/",
            id=about,
            name=thread.name,
            writers=writers,
            chosen=chosen,
            world=world,
            asked=list(asked.values()),
            decision=decision,
            fault=fault,
            outcome=dict(zip(("word", "tone", "picture"), outcome, strict=True)),
        )


def _hypothesis(thread: Thread, world: str, asked: Mapping[str, Request]) -> dict[str, Any]:
    """World, answer and checkpoint of a hypothetical resume.

    Raises:
        UsageError: The page does not offer this value.
    """
    if world == _SAVED:
        return {"world": thread.load().world}
    if world == _UNKNOWN:
        return {"world": None}
    if world not in asked:
        raise UsageError(
            "world: expected one that the page offers, found another text",
            hint="The request may be closed by now: load the page again.",
        )
    found = asked[world]
    ref = thread.checkpoint_at(thread.release_of(found).seq)
    return {"world": found.world, "answer": found.answer, "ref": ref}


def _changed_lines(changes: Iterable[Change]) -> list[tuple[Change, tuple[LineChange, ...]]]:
    """Changes, each with the lines of a text, up to the limits of the page."""
    lines_left, chars_left = _LINES, _LINES_CHARS
    found = []
    for change in changes:
        most = min(lines_left, _LINES_EACH) if chars_left > 0 else 0
        lines = change.lines(lines_max=most) if most > 0 else ()
        lines_left -= len(lines)
        chars_left -= sum(len(each.text) for each in lines)
        found.append((change.shown(), lines))
    return found


def _requests_of(call: PageCall, thread_id: str) -> list[Request]:
    return [
        each for each in call.desk.watch.requests().requests if each.statement.thread == thread_id
    ]


def _asked(call: PageCall, thread: Thread) -> Decision | None:
    """The questions of a thread, without the secrets in them; a request shows those, too."""
    if thread.question is None:
        return None
    shown = read_release(thread, thread.release(), states=True)
    return read_decision(shown, masking=call.desk.masking)


def _thread_tickets(call: PageCall, standing: Standing) -> dict[str, str]:
    """The tickets for actions on a thread in its current state."""
    if not call.viewer.is_operator:
        return {}
    shown = standing.encode().decode()
    told = call.desk.notifier.reported_resumes(standing.thread)
    actions = {"handoff": shown, "unpause": shown}
    if not standing.paused:
        actions = {"handoff": shown, "pause": shown, "resume": f"{told.count} {shown}"}
    return {action: call.offer(action, standing.thread, each) for action, each in actions.items()}


def _row(chain: ChainRow, finished: Mapping[tuple[str, str], str]) -> _TimelineRow:
    entry = chain.entry
    record = entry.record
    word, css = ENTRY_WORDS.get(record.kind, (record.kind.capitalize(), ""))
    return _TimelineRow(
        seq=record.seq,
        word=word,
        css=css,
        by=record.by,
        time=record.time,
        step=step_text(entry, finished),
        summary=record.summary,
        is_checkpoint=css == "checkpoint" and not entry.given_up,
        request=record.request,
        given_up=entry.given_up,
        chain=chain,
    )


def _writers(call: PageCall, *, pools: bool = False) -> list[str]:
    roster, namespace = call.desk.watch.roster, call.desk.store.namespace
    names = [each.name for each in roster.identities if each.may(Role.WRITER, namespace)]
    return names + sorted(roster.members) if pools else names
