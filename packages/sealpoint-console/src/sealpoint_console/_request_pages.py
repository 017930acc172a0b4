# SPDX-License-Identifier: Apache-2.0
"""The pages about requests and rollouts, and the lookup of a request for an action.

A list comes from the watch of the store; one request is read, verified and examined on demand, as
the command line does before it signs. The page of a used request shows its result.
"""

from contextlib import suppress
from functools import partial

from starlette.responses import Response
from starlette.routing import Route

from sealpoint.api import ExaminedRequest, examine
from sealpoint.errors import (
    Forged,
    NoRight,
    NotTrusted,
    UnknownEntry,
    UnknownRequest,
    UnknownThread,
    UsageError,
)
from sealpoint.gate import Request, Status, require_break_glass_allowed
from sealpoint.signing import Action, Role, Verdict, persons_asking, verify_attestation
from sealpoint.views.requests import RequestView, Section, SectionKind, request_view
from sealpoint_console._app import PageCall, Right, Routes


class RequestPages:
    """The routes that show requests and rollouts."""

    def routes(self, make: Routes) -> list[Route]:
        """All of them."""
        return [
            make.get("/requests", Right.SIGNED_IN, self._requests),
            make.get("/requests/{request}", Right.SIGNED_IN, self._request),
            make.get("/requests/{request}/break-glass", Right.SIGNED_IN, self._break_glass),
            make.get("/rollouts", Right.SIGNED_IN, self._rollouts),
        ]

    def _requests(self, call: PageCall) -> Response:
        everything = call.query("all") == "1"
        found = call.desk.watch.requests().requests
        shown = [each for each in found if everything or each.status is Status.OPEN]
        differences = call.desk.question_lines.differences_of(shown, partial(_entries, call))
        return call.page(
            "requests.html",
            here="/requests?all=1" if everything else "/requests",
            everything=everything,
            requests=shown,
            lines=call.desk.question_lines.of_requests(shown),
            differences=differences,
            comparing=None in differences.values(),
            failures=len(call.desk.watch.findings()),
        )

    def _request(self, call: PageCall) -> Response:
        try:
            request = find_request(call)
        except UnknownRequest as unknown:
            return _decided(call, unknown)
        examined = examine(call.desk.store, request, states=True)
        view = request_view(examined, masking=call.desk.masking)
        told, viewer = request.statement, call.viewer
        why_not, alike = _no_word(call, request), _alike(call, request)
        has_approved = bool(set(viewer.identities) & set(request.approved_by))
        rollouts = rollouts_alike(call, request) if alike else []
        offers_rollout = bool(alike) and viewer.is_operator and not rollouts
        return call.page(
            "request.html",
            page_path="/requests",
            request=request,
            told=told,
            view=view,
            sections=_shown_sections(view),
            heading=_heading(request),
            thread_id=None if told.action is Action.ROLLOUT else told.thread,
            state_path=_state_path(view),
            is_open=request.status in (Status.OPEN, Status.APPROVED),
            may_answer=not why_not,
            is_own=_is_own(call, request),
            has_approved=has_approved,
            may_approve=viewer.is_approver
            and not (_is_own(call, request) or has_approved or view.fault),
            why_not=why_not,
            others=_other_approvers(call, request),
            ticket=call.offer("answer", request.id, request.id),
            alike=alike,
            rollout=rollouts[-1] if rollouts else None,
            rollout_ticket=call.offer("rollout", request.id, request.id) if offers_rollout else "",
            is_rollout=told.action is Action.ROLLOUT,
            revoke_ticket=_revoke_ticket(call, request),
            said=_said(call, request),
            same=_same(call, request),
            following=_following(call, request),
        )

    def _break_glass(self, call: PageCall) -> Response:
        if not call.viewer.break_glass:
            raise NoRight(f"the roster does not let {call.viewer.person!r} break the glass")
        examined = agreeable_request(call, Verdict.BREAK_GLASS)
        request, view = examined.request, request_view(examined, masking=call.desk.masking)
        return call.page(
            "break_glass.html",
            page_path="/requests",
            request=request,
            view=view,
            sections=_shown_sections(view),
            state_path=_state_path(view),
            ticket=call.offer("break-glass", request.id, request.id),
        )

    def _rollouts(self, call: PageCall) -> Response:
        return call.page("rollouts.html", rollouts=call.desk.store.rollouts.list())


def find_request(call: PageCall) -> Request:
    """The request that an address names, in its current state, read and verified.

    The watch knows its thread, so that only that thread is read; a request that is younger than the
    newest read is searched for everywhere.

    Raises:
        UsageError: There are too few digits, or other characters.
        UnknownRequest: It does not exist, or its thread has continued.
    """
    wanted, desk = call.path("request"), call.desk
    known = next((each for each in desk.watch.requests().requests if each.id == wanted), None)
    return desk.store.request(wanted, thread=None if known is None else known.thread)


def require_readable(call: PageCall) -> None:
    """Ensure that a request counts as missing only if it really does not exist.

    Raises:
        SealpointError: The thread of the request fails verification; the error says why.
    """
    thread = _thread_of_request(call)
    if thread is not None:
        call.desk.store.thread(thread).requests()


def rollouts_alike(call: PageCall, request: Request) -> list[Request]:
    """The open and active rollouts for the change of worlds that a request waits for."""
    try:
        return list(call.desk.store.rollouts.accepting(request))
    except UsageError:
        return []  # nobody can compare the worlds, or the policy asks for nothing


def _decided(call: PageCall, unknown: UnknownRequest) -> Response:
    """The result of a request whose thread has continued: links to it stay valid.

    Raises:
        UnknownRequest: It never existed.
    """
    wanted = call.path("request")
    try:
        why = call.desk.store.why(wanted, thread=_thread_of_request(call))
    except UnknownEntry:
        require_readable(call)
        raise unknown from None
    # The digits of an entry are not those of a request.
    if why.subject.request != wanted:
        raise unknown
    return call.page("decided.html", page_path="/requests", id=wanted, why=why)


def _thread_of_request(call: PageCall) -> str | None:
    """The name of the thread of a request, also if the thread has continued; None: unknown.

    Either the link names it, or the watch has seen an entry about the request.
    """
    wanted, watch = call.path("request"), call.desk.watch
    thread = call.query("thread")
    if not thread:
        events = reversed(watch.changes(0).events)
        thread = next((each.thread_id for each in events if each.request == wanted), "")
    try:
        return call.summary(thread).name if thread else None
    except UnknownThread:
        return None


def agreeable_request(call: PageCall, verdict: Verdict) -> ExaminedRequest:
    """The request that an address names, examined, if a person may be asked to approve it.

    The command line makes the same checks in the same order before it signs.

    Raises:
        UnknownRequest, RequestClosed: There is no such open request.
        NotTrusted: The displayed request differs from the one that would be signed.
        UsageError: The glass cannot be broken for this request.
    """
    examined = examine(call.desk.store, find_request(call), states=True)
    examined.require_agreeable()
    if verdict is Verdict.BREAK_GLASS:
        require_break_glass_allowed(examined.request.statement, examined.request.thread)
    return examined


_SAME_MAX = 5
_COMPARED_MAX = 200
_FOLDED = (SectionKind.STANDING, SectionKind.RELEASE, SectionKind.STATEMENT)
_WORLDS = (SectionKind.WORLD_DIFF, SectionKind.WORLD)
_OF_DECISION = (
    *(SectionKind.QUESTION, SectionKind.ANSWER, SectionKind.DIFFERENCES),
    SectionKind.CONVERSATION,
)


def _shown_sections(view: RequestView) -> dict[str, list[Section]]:
    """The sections by place: above the form, below it, and folded at the end."""
    places: dict[str, list[Section]] = {"first": [], "rest": [], "folded": []}
    for each in view.sections:
        if each.kind in _WORLDS:
            places["first" if each.lines else "folded"].append(each)
        elif each.kind not in _OF_DECISION:
            places["folded" if each.kind in _FOLDED else "rest"].append(each)
    return places


def _state_path(view: RequestView) -> str | None:
    if view.release is None:
        return None
    return f"/threads/{view.request.statement.thread}/entries/{view.release.ref.seq}"


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


def proposed_here(call: PageCall, request: Request) -> bool:
    """Whether the console itself made a request, for any person: it may withdraw that.

    Requests of others do not count, even if the console's identity is an approver: its operators
    would gain that right through a server.
    """
    roster = call.desk.watch.roster
    own = roster.identity(call.desk.identity)
    return own is not None and own.person in persons_asking(request.statement, roster)


def _revoke_ticket(call: PageCall, request: Request) -> str:
    """A ticket to end a rollout that the console proposed, for its operators; else none."""
    if request.statement.action is not Action.ROLLOUT or not call.viewer.is_operator:
        return ""
    if request.status not in (Status.OPEN, Status.APPROVED) or not proposed_here(call, request):
        return ""
    return call.offer("revoke", request.id, request.id)


def _no_word(call: PageCall, request: Request) -> str:
    """The reason why a person cannot answer a request; empty if they can."""
    if call.viewer.is_approver or _is_own(call, request):
        return ""
    return "To approve or deny needs the role of an approver in this namespace."


def _other_approvers(call: PageCall, request: Request) -> list[str]:
    """The other people who may approve a request and have not."""
    roster, namespace = call.desk.watch.roster, call.desk.store.namespace
    approvers = {each.person for each in roster.identities if each.may(Role.APPROVER, namespace)}
    have = {each.person for each in map(roster.identity, request.approved_by) if each}
    return sorted(
        approvers - have - persons_asking(request.statement, roster) - {call.viewer.person}
    )


def _entries(call: PageCall, thread_id: str) -> int | None:
    """The length of a thread, as the watch knows it."""
    with suppress(UnknownThread):
        return call.desk.watch.thread_of(thread_id).entries
    return None


def _same(call: PageCall, request: Request) -> list[Request]:
    """Other open requests that look the same, such as a second refund."""
    others = [
        each
        for each in call.desk.watch.requests().requests
        if each.id != request.id
        and (each.status, each.statement.action) == (Status.OPEN, request.statement.action)
    ]
    return call.desk.question_lines.same_as(request, others[:_COMPARED_MAX])[:_SAME_MAX]


def _said(call: PageCall, request: Request) -> list[tuple[str, str, str]]:
    """The persons whose answers count, each with the verdict in words and the reason."""
    counted = {
        Verdict.APPROVE: request.approved_by,
        Verdict.DENY: request.denied_by,
        Verdict.BREAK_GLASS: request.broken_glass_by,
    }
    found: dict[tuple[Verdict, str], tuple[str, str, str]] = {}
    for word in request.attestations:
        with suppress(Forged, NotTrusted):  # it counts for nothing
            identity = verify_attestation(word, call.desk.watch.roster)
            if identity.name in counted[word.verdict]:
                said = (identity.person, _SAID[word.verdict], word.reason)
                found.setdefault((word.verdict, identity.name), said)
    return [*found.values()]


_SAID = {
    Verdict.APPROVE: "approved",
    Verdict.DENY: "denied",
    Verdict.BREAK_GLASS: "broke the glass",
}


def _following(call: PageCall, request: Request) -> Request | None:
    """The next open request that this person may approve."""
    if not call.viewer.is_approver:
        return None
    mine = set(call.viewer.identities)
    waiting = [
        each
        for each in call.desk.watch.requests().requests
        if each.status is Status.OPEN
        and not mine & set(each.approved_by)
        and not _is_own(call, each)
        and each.id != request.id
    ]
    later = (each for each in waiting if (each.asked_at, each.id) > (request.asked_at, request.id))
    return next(later, waiting[0] if waiting else None)


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
