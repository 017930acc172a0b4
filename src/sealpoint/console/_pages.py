# SPDX-License-Identifier: Apache-2.0
"""The pages that people look at. They write nothing but tickets for what they offer.

A list comes from the watch of the store; a page about one thread, state or request reads and
verifies that when it is asked for. What does not verify is shown as that, with what is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sealpoint.api import examine
from sealpoint.audit import Finding, TimelineEntry
from sealpoint.console._app import PageCall, Right, Routes
from sealpoint.errors import NoRight, SealpointError, UsageError
from sealpoint.gate import Request, Standing, Status, Thread, ThreadPhase
from sealpoint.ledger import Kind
from sealpoint.signing import Action, Role
from sealpoint.views.changes import diff_checkpoints
from sealpoint.views.conversation import find_conversations, read_conversation
from sealpoint.views.masking import REVEALED
from sealpoint.views.requests import SectionKind, request_view
from sealpoint.views.tree import StateTree

_THREADS = 50
_ENTRIES = 50
_RECORDS = 200
_CHANGES = 500
_FEED = 25
_MESSAGES = 50

_WORDS: Mapping[str, tuple[str, str]] = {
    "genesis": ("Begun", ""),
    "checkpoint": ("Saved", "checkpoint"),
    "held": ("Saved, held back by the pause", "checkpoint"),
    "results": ("Results", ""),
    "writes": ("Results", ""),
    "resume": ("Resumed", "decision"),
    "handoff": ("Handed off", "decision"),
    "pause": ("Paused", "hold-entry"),
    "unpause": ("Let go on", "hold-entry"),
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
}
"""What a kind of entry is called on a page, and how it is drawn."""


def asked_by(request: Request) -> str:
    """Who asks for something, in words."""
    told = request.statement
    return told.requester if told.actor is None else f"{told.requester} for {told.actor}"


@dataclass(frozen=True, slots=True)
class _TimelineRow:
    """One entry of a timeline."""

    seq: int
    word: str
    css: str
    by: str
    time: datetime | None
    summary: str
    is_checkpoint: bool
    request: str
    given_up: str
    epoch: int
    parent: str


class Pages:
    """The routes that only show."""

    def routes(self, make: Routes) -> list[Route]:
        """All of them."""
        return [
            make.get("/", Right.SIGNED_IN, self._overview),
            make.get("/threads/{thread}", Right.SIGNED_IN, self._thread),
            make.get("/threads/{thread}/entries/{seq:int}", Right.SIGNED_IN, self._entry),
            make.get("/threads/{thread}/compare", Right.SIGNED_IN, self._compare),
            make.get("/threads/{thread}/explain", Right.SIGNED_IN, self._explain),
            make.get("/requests", Right.SIGNED_IN, self._requests),
            make.get("/requests/{request}", Right.SIGNED_IN, self._request),
            make.get("/requests/{request}/break-glass", Right.SIGNED_IN, self._break_glass),
            make.get("/rollouts", Right.SIGNED_IN, self._rollouts),
            make.get("/audit", Right.SIGNED_IN, self._audit),
            make.get("/people", Right.SIGNED_IN, self._people),
            make.get("/health", Right.SIGNED_IN, self._health),
        ]

    # ------------------------------------------------------------------ threads

    def _overview(self, call: PageCall) -> Response:
        phase, search = call.query("phase"), call.query("q")
        if phase and phase not in tuple(ThreadPhase):
            raise UsageError("phase: there is no such state")
        offset = call.number("offset", 0)
        watch = call.desk.watch
        found = watch.page(
            phase=ThreadPhase(phase) if phase else None,
            text=search,
            offset=offset,
            limit=_THREADS,
        )
        counts = watch.counts()
        kept = {"phase": phase, "q": search, "offset": ""}

        def link(**changed: object) -> str:
            wanted = {name: str(value) for name, value in {**kept, **changed}.items() if value}
            return f"/?{urlencode(wanted)}" if wanted else "/"

        return call.page(
            "overview.html",
            here=link(offset=offset),
            link=link,
            chosen=phase,
            search=search,
            counts={str(each): count for each, count in counts.items()},
            total=sum(counts.values()),
            threads=found.threads,
            matching=found.total,
            offset=offset,
            limit=_THREADS,
            feed=_feed(call),
            fault=call.desk.fault,
        )

    def _thread(self, call: PageCall) -> Response:
        about, offset = call.path("thread"), call.number("offset", 0)
        summary = call.summary(about)
        page = call.desk.watch.timeline(summary.name, offset=offset, limit=_ENTRIES)
        fault: Finding | SealpointError | None = page.finding
        standing = None
        if fault is None:
            try:
                standing = call.desk.store.thread(summary.name).standing()
            except SealpointError as error:
                fault = error
        rows = [_row(each) for each in page.entries]
        saved = [each.seq for each in rows if each.is_checkpoint]
        return call.page(
            "thread.html",
            page_path="/",
            id=about,
            name=summary.name,
            summary=summary,
            fault=fault,
            records=rows,
            offset=offset,
            limit=_ENTRIES,
            total=page.total,
            compare_from=saved[min(1, len(saved) - 1)] if saved else None,
            compare_to=saved[0] if saved else None,
            requests=_requests_of(call, about),
            paused=None if standing is None else standing.paused,
            tickets={} if standing is None else _thread_tickets(call, standing),
            can_resume=call.desk.notifier.tells("resume-wanted"),
            owners=_writers(call, pools=True),
        )

    def _entry(self, call: PageCall) -> Response:
        about, seq = call.path("thread"), call.request.path_params["seq"]
        thread = call.thread(about)
        ref = _checkpoint(thread, seq)
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
            thread.load(_checkpoint(thread, first)),
            thread.load(_checkpoint(thread, last)),
            call.desk.store.registry.encode,
            masking=REVEALED if reveal else call.desk.masking,
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
            changes=[each.shown() for each in found.changes[:_CHANGES]],
            count=len(found.changes),
            world=[] if found.world is None else list(found.world.lines()),
        )

    def _explain(self, call: PageCall) -> Response:
        about = call.path("thread")
        thread = call.thread(about)
        writers = _writers(call)
        chosen = call.query("as")
        world = call.query("world", "saved")
        decision, fault = None, None
        if chosen:
            if chosen not in writers:
                raise UsageError("as: expected a writer of the namespace")
            try:
                declared = thread.load().world if world == "saved" else None
                decision = thread.judge(world=declared, identity=chosen)
            except SealpointError as error:
                fault = error
        outcomes = {
            "allow": ("It may go on", "good", "good"),
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
            decision=decision,
            fault=fault,
            outcome=dict(zip(("word", "tone", "picture"), outcome, strict=True)),
        )

    # ------------------------------------------------------------------ requests

    def _requests(self, call: PageCall) -> Response:
        everything = call.query("all") == "1"
        found = call.desk.watch.requests().requests
        shown = [each for each in found if everything or each.status is Status.OPEN]
        return call.page(
            "requests.html",
            here="/requests?all=1" if everything else "/requests",
            everything=everything,
            requests=shown,
            failures=len(call.desk.watch.findings()),
            asked_by=asked_by,
        )

    def _request(self, call: PageCall) -> Response:
        request = call.desk.store.request(call.path("request"))
        view = request_view(examine(call.desk.store, request))
        told, viewer = request.statement, call.viewer
        why_not, alike = _no_word(call, request), _alike(call, request)
        offers_rollout = bool(alike) and viewer.is_operator
        state = None
        if view.release is not None:
            state = f"/threads/{told.thread}/entries/{view.release.ref.seq}"
        return call.page(
            "request.html",
            page_path="/requests",
            request=request,
            told=told,
            view=view,
            sections=sorted(view.sections, key=lambda each: each.kind is SectionKind.STATEMENT),
            heading=_heading(request),
            thread_id=None if told.action is Action.ROLLOUT else told.thread,
            state_path=state,
            is_open=request.status in (Status.OPEN, Status.APPROVED),
            may_answer=not why_not,
            may_approve=viewer.is_approver and not _is_own(call, request) and not view.fault,
            why_not=why_not,
            ticket=call.offer("answer", request.id, request.id),
            alike=alike,
            rollout_ticket=call.offer("rollout", request.id, request.id) if offers_rollout else "",
        )

    def _break_glass(self, call: PageCall) -> Response:
        request = call.desk.store.request(call.path("request"))
        if not call.viewer.break_glass:
            raise NoRight(f"the roster does not let {call.viewer.person!r} break the glass")
        return call.page(
            "break_glass.html",
            page_path="/requests",
            request=request,
            asked_by=asked_by(request),
            ticket=call.offer("break-glass", request.id, request.id),
        )

    def _rollouts(self, call: PageCall) -> Response:
        found = call.desk.store.rollouts.list()
        return call.page("rollouts.html", rollouts=found, asked_by=asked_by)

    # ------------------------------------------------------------------ the store

    def _audit(self, call: PageCall) -> Response:
        asked = {name: call.query(name) for name in ("thread", "actor", "kind", "since", "until")}
        records = call.desk.store.audit(
            thread=asked["thread"] or None,
            actor=asked["actor"] or None,
            kind=asked["kind"] or None,
            since=read_day(asked["since"], "since"),
            until=read_day(asked["until"], "until"),
        )
        query = {name: text for name, text in asked.items() if text}
        if call.query("format") == "json":
            return JSONResponse(
                {"records": [each.as_dict() for each in records]},
                headers={"content-disposition": 'attachment; filename="audit.json"'},
            )
        offset = call.number("offset", 0)
        shown = list(islice(records, offset, offset + _RECORDS + 1))
        more = None
        if len(shown) > _RECORDS:
            more = f"/audit?{urlencode({**query, 'offset': offset + _RECORDS})}"
        return call.page(
            "audit.html",
            asked=asked,
            kinds=[kind.word for kind in Kind],
            records=shown[:_RECORDS],
            more=more,
            export=f"/audit?{urlencode({**query, 'format': 'json'})}",
        )

    def _people(self, call: PageCall) -> Response:
        roster = call.desk.watch.roster
        return call.page("people.html", roster=roster, pools=roster.members)

    def _health(self, call: PageCall) -> Response:
        findings: tuple[Any, ...] = ()
        fault = None
        # It names files and commands: for those who mend.
        may_see = bool({Role.OPERATOR, Role.AUDITOR} & call.viewer.roles)
        if may_see:
            try:
                findings = call.desk.diagnosis().findings
            except SealpointError as error:
                fault = error
        return call.page(
            "health.html",
            last=call.desk.health.last,
            hooks=call.desk.notifier.status(),
            hooks_fault=call.desk.feed.fault,
            ticket=call.offer("verify", "store", ""),
            may_see=may_see,
            findings=findings,
            diagnosis_fault=fault,
        )


# What is said of a thread, a release and a request.


def _feed(call: PageCall) -> list[dict[str, Any]]:
    """What happened last, newest first, in words."""
    found = []
    for event in reversed(call.desk.watch.changes(0).events[-_FEED:]):
        word = _WORDS.get(event.what, (event.what.capitalize(), ""))[0]
        by = f" by {event.by}" if event.by else ""
        found.append(
            {
                "id": event.thread_id,
                "name": event.thread or "the store",
                "words": f"{word}{by}{f': {event.code}' if event.code else ''}",
                "at": event.time,
            }
        )
    return found


def _requests_of(call: PageCall, thread_id: str) -> list[Request]:
    return [
        each for each in call.desk.watch.requests().requests if each.statement.thread == thread_id
    ]


def _thread_tickets(call: PageCall, standing: Standing) -> dict[str, str]:
    """What may be done with a thread as it stands."""
    if not call.viewer.is_operator:
        return {}
    shown = standing.encode().decode()
    actions = ("unpause", "handoff") if standing.paused else ("pause", "resume", "handoff")
    return {action: call.offer(action, standing.thread, shown) for action in actions}


def _row(entry: TimelineEntry) -> _TimelineRow:
    record = entry.record
    word, css = _WORDS.get(record.kind, (record.kind.capitalize(), ""))
    return _TimelineRow(
        seq=record.seq,
        word=word,
        css=css,
        by=record.by,
        time=record.time,
        summary=record.summary,
        is_checkpoint=css == "checkpoint" and not entry.given_up,
        request=record.request,
        given_up=entry.given_up,
        epoch=entry.epoch,
        parent=entry.facts.get("parent", ""),
    )


def _checkpoint(thread: Thread, seq: int) -> Any:
    for ref in thread.history():
        if ref.seq == seq:
            return ref
    raise UsageError(f"entry {seq}: there is no checkpoint at this position")


def _writers(call: PageCall, *, pools: bool = False) -> list[str]:
    roster, namespace = call.desk.watch.roster, call.desk.store.namespace
    names = [each.name for each in roster.identities if each.may(Role.WRITER, namespace)]
    return names + sorted(roster.members) if pools else names


def _heading(request: Request) -> str:
    told = request.statement
    if told.action is Action.ROLLOUT:
        return "Rollout"
    if told.action is Action.HANDOFF:
        return f"Hand {request.thread} to {told.to}"
    return f"Resume {request.thread}"


def _is_own(call: PageCall, request: Request) -> bool:
    told = request.statement
    asker = call.desk.watch.roster.identity(told.requester)
    return call.viewer.person in (told.actor, asker.person if asker else None)


def _no_word(call: PageCall, request: Request) -> str:
    """Why somebody has no say in a request; empty if they have."""
    if call.viewer.is_approver or _is_own(call, request):
        return ""
    return "To approve or deny needs the role of an approver in this namespace."


def _alike(call: PageCall, request: Request) -> int:
    told = request.statement
    if told.action is not Action.RESUME or None in (told.world_from, told.world_to):
        return 0
    pair = (told.world_from, told.world_to)
    if pair[0] == pair[1]:
        return 0
    return sum(
        (each.statement.world_from, each.statement.world_to) == pair
        for each in call.desk.watch.requests().requests
        if each.status is Status.OPEN
    )


def read_day(text: str, name: str) -> datetime | None:
    """A day as people write it, in UTC; None for none.

    Raises:
        UsageError: It is none.
    """
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as exc:
        raise UsageError(f"{name}: expected a day as 2026-11-30") from exc
