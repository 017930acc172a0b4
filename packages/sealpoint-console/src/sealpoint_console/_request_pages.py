# SPDX-License-Identifier: Apache-2.0
"""The pages about requests and rollouts, and how a request is found by whoever acts on it.

A list comes from the watch of the store; one request is read, verified and examined when it is
asked for, as the command line does before it signs. What became of one that was used is told.
"""

from starlette.responses import Response
from starlette.routing import Route

from sealpoint.api import ExaminedRequest, examine
from sealpoint.errors import NoRight, UnknownEntry, UnknownRequest, UnknownThread
from sealpoint.gate import Request, Status, can_be_approved, require_breakable
from sealpoint.signing import Action, Role, Verdict, persons_asking
from sealpoint.views.requests import RequestView, Section, SectionKind, request_view
from sealpoint_console._app import PageCall, Right, Routes


class RequestPages:
    """The routes that show what is asked for."""

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
        return call.page(
            "requests.html",
            here="/requests?all=1" if everything else "/requests",
            everything=everything,
            requests=shown,
            failures=len(call.desk.watch.findings()),
        )

    def _request(self, call: PageCall) -> Response:
        try:
            request = find_request(call)
        except UnknownRequest as unknown:
            return _decided(call, unknown)
        view = request_view(examine(call.desk.store, request))
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
        )

    def _break_glass(self, call: PageCall) -> Response:
        if not call.viewer.break_glass:
            raise NoRight(f"the roster does not let {call.viewer.person!r} break the glass")
        examined = agreeable_request(call, Verdict.BREAK_GLASS)
        request, view = examined.request, request_view(examined)
        return call.page(
            "break_glass.html",
            page_path="/requests",
            request=request,
            sections=_shown_sections(view),
            state_path=_state_path(view),
            ticket=call.offer("break-glass", request.id, request.id),
        )

    def _rollouts(self, call: PageCall) -> Response:
        return call.page("rollouts.html", rollouts=call.desk.store.rollouts.list())


def find_request(call: PageCall) -> Request:
    """The request that an address names, as it stands now, read and verified.

    The watch says which thread it is on, so that only that is read; one that is younger than its
    newest look is looked for everywhere.

    Raises:
        UsageError: There are too few digits, or other characters.
        UnknownRequest: There is none, or its thread has gone on.
    """
    wanted, desk = call.path("request"), call.desk
    known = next((each for each in desk.watch.requests().requests if each.id == wanted), None)
    return desk.store.request(wanted, thread=None if known is None else known.thread)


def require_readable(call: PageCall) -> None:
    """See to it that a request is not found for no other reason than that it is not there.

    Raises:
        SealpointError: The thread that it was made on does not verify; this says why.
    """
    thread = _thread_of_request(call)
    if thread is not None:
        call.desk.store.thread(thread).requests()


def rollouts_alike(call: PageCall, request: Request) -> list[Request]:
    """The rollouts that are open or hold for the change of worlds that a request waits for."""
    pair = (request.statement.world_from, request.statement.world_to)
    roster = call.desk.watch.roster
    return [
        each
        for each in call.desk.store.rollouts.list()
        if pair in each.statement.pairs
        and each.status in (Status.OPEN, Status.APPROVED)
        and can_be_approved(each, roster)
    ]


def _decided(call: PageCall, unknown: UnknownRequest) -> Response:
    """What became of a request whose thread has gone on: links to it stay good.

    Raises:
        UnknownRequest: There never was one.
    """
    wanted = call.path("request")
    try:
        why = call.desk.store.why(wanted, thread=_thread_of_request(call))
    except UnknownEntry:
        require_readable(call)
        raise unknown from None
    # The digits of an entry are no request.
    if why.subject.request != wanted:
        raise unknown
    return call.page("decided.html", page_path="/requests", id=wanted, why=why)


def _thread_of_request(call: PageCall) -> str | None:
    """The name of the thread that a request was made on, though that has gone on; None: unknown.

    Either the link says which, or the watch has seen an entry about the request.
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
    """The request that an address names, examined, if somebody may be asked to agree to it.

    The same is asked, in the same order, by the command line before it signs.

    Raises:
        UnknownRequest, RequestClosed: There is no such open request.
        NotTrusted: It shows something else than what would be signed.
        UsageError: The glass is not broken for that.
    """
    examined = examine(call.desk.store, find_request(call))
    examined.require_agreeable()
    if verdict is Verdict.BREAK_GLASS:
        require_breakable(examined.request.statement, examined.request.thread)
    return examined


def _shown_sections(view: RequestView) -> list[Section]:
    return sorted(view.sections, key=lambda each: each.kind is SectionKind.STATEMENT)


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
    """Whether the console itself asks for something, for whomever: it may take that back.

    Not what others ask for, though the console's identity should be an approver: its operators
    would have that right then by a server.
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
    """Why somebody has no say in a request; empty if they have."""
    if call.viewer.is_approver or _is_own(call, request):
        return ""
    return "To approve or deny needs the role of an approver in this namespace."


def _other_approvers(call: PageCall, request: Request) -> list[str]:
    """The people who may approve a request and have not, beside the one who looks."""
    roster, namespace = call.desk.watch.roster, call.desk.store.namespace
    approvers = {each.person for each in roster.identities if each.may(Role.APPROVER, namespace)}
    have = {each.person for each in map(roster.identity, request.approved_by) if each}
    return sorted(
        approvers - have - persons_asking(request.statement, roster) - {call.viewer.person}
    )


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
