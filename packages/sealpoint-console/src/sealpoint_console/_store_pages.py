# SPDX-License-Identifier: Apache-2.0
"""The pages about the whole store: threads by phase, the audit, people, health.

Their lists come from the watch of the store. They write only tickets for the actions that they
offer.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sealpoint.audit import AuditRecord
from sealpoint.errors import UsageError
from sealpoint.gate import ThreadPhase
from sealpoint.ledger import Kind
from sealpoint.signing import Role
from sealpoint_console._app import PageCall, Right, Routes
from sealpoint_console._audit_pages import AuditPage
from sealpoint_console._thread_pages import ENTRY_WORDS

_THREADS = 50
_RECORDS = 200
_FEED = 25
_AUDIT_FILTERS = ("thread", "actor", "kind", "since", "until")
_ANSWERS = ("approval", "denial", "break-glass")
EXPORT_MAX = 20_000
"""The maximum number of records in a file of the audit."""


class Pages:
    """The routes that show the store."""

    def routes(self, make: Routes) -> list[Route]:
        """All of them."""
        return [
            make.get("/", Right.SIGNED_IN, self._overview),
            make.get("/audit", Right.SIGNED_IN, self._audit),
            make.get("/people", Right.SIGNED_IN, self._people),
            make.get("/health", Right.SIGNED_IN, self._health),
        ]

    def _overview(self, call: PageCall) -> Response:
        phase, search = read_phase(call.query("phase")), call.query("q")
        offset = call.number("offset", 0)
        watch = call.desk.watch
        # A part may keep many threads below one of the application, such as one for each start.
        below = bool(phase or search or call.query("below"))
        found = watch.page(
            phase=phase,
            text=search,
            below=below,
            offset=offset,
            limit=_THREADS,
        )
        counts = watch.counts()
        kept = {"phase": phase, "q": search, "below": call.query("below"), "offset": ""}

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
            questions=call.desk.question_lines.of_threads(found.threads),
            matching=found.total,
            folded=0 if below else sum(counts.values()) - found.total,
            offset=offset,
            limit=_THREADS,
            feed=_feed(call),
            fault=call.desk.fault,
        )

    def _audit(self, call: PageCall) -> Response:
        asked = {name: call.query(name) for name in _AUDIT_FILTERS}
        query = {name: text for name, text in asked.items() if text}
        if call.query("format") == "json":
            return _export(_records(call))
        page = read_audit(call, _RECORDS)
        return call.page(
            "audit.html",
            asked=asked,
            kinds=[kind.word for kind in Kind],
            records=page.records,
            more=page.after and f"/audit?{urlencode({**query, 'after': page.after})}",
            export=f"/audit?{urlencode({**query, 'format': 'json'})}",
            export_max=EXPORT_MAX,
        )

    def _people(self, call: PageCall) -> Response:
        roster = call.desk.watch.roster
        now = datetime.now(UTC)
        return call.page("people.html", roster=roster, pools=roster.members, now=now)

    def _health(self, call: PageCall) -> Response:
        desk = call.desk
        # It names files and commands: only for those who can fix problems.
        may_see = bool({Role.OPERATOR, Role.AUDITOR} & call.viewer.roles)
        checked, looks = desk.checkup.look() if may_see else (None, False)
        last = desk.health.last
        may_verify = call.viewer.is_operator and not (last and last.runs)
        return call.page(
            "health.html",
            last=last,
            watch=desk.watch.state,
            unverified=desk.watch.findings(),
            fault=desk.fault,
            hooks=desk.notifier.status(),
            hooks_fault=desk.feed.fault,
            ticket=call.offer("verify", "store", "") if may_verify else "",
            may_see=may_see,
            checked=checked,
            looks=looks,
        )


def _feed(call: PageCall) -> list[dict[str, Any]]:
    """The latest events, newest first, in words."""
    found = []
    for event in reversed(call.desk.watch.changes(0).events[-_FEED:]):
        word = ENTRY_WORDS.get(event.what, (event.what.capitalize(), ""))[0]
        # For an answer, the writer of the entry is known: it is the console; the name is that of
        # the person who answered.
        by = f"{', recorded' if event.what in _ANSWERS else ''} by {event.by}" if event.by else ""
        found.append(
            {
                "number": event.number,
                "id": event.thread_id,
                "name": event.thread or "the store",
                "words": f"{word}{by}{f': {event.code}' if event.code else ''}",
                "at": event.time,
            }
        )
    return found


def read_audit(call: PageCall, size: int) -> AuditPage:
    """A page of the audit for the query of an address.

    Raises:
        UsageError: The query is invalid, or names a page that cannot be continued.
    """
    asked = "&".join(f"{name}={call.query(name)}" for name in _AUDIT_FILTERS)
    after = call.query("after")
    return call.desk.audits.page(call.viewer.person, asked, _records(call), after, size)


def _records(call: PageCall) -> Iterator[AuditRecord]:
    return call.desk.store.audit(
        thread=call.query("thread") or None,
        actor=call.query("actor") or None,
        kind=call.query("kind") or None,
        since=read_day(call.query("since"), "since"),
        until=read_day(call.query("until"), "until"),
    )


def _export(records: Iterator[AuditRecord]) -> Response:
    """Records as a file; `more` says that there are others, which narrower queries return."""
    found = [each.as_dict() for each in islice(records, EXPORT_MAX)]
    more = next(records, None) is not None
    return JSONResponse(
        {"records": found, "more": more},
        headers={"content-disposition": 'attachment; filename="audit.json"'},
    )


def read_phase(text: str) -> ThreadPhase | None:
    """The phase that an address names; None for none.

    Raises:
        UsageError: There is no such phase.
    """
    if not text:
        return None
    if text not in tuple(ThreadPhase):
        raise UsageError(f"phase: expected {', '.join(ThreadPhase)}, found {text[:64]!r}")
    return ThreadPhase(text)


def read_day(text: str, name: str) -> datetime | None:
    """A date in UTC; None for none.

    Raises:
        UsageError: It is not a date.
    """
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as exc:
        raise UsageError(f"{name}: expected a day as 2026-11-30") from exc
