# SPDX-License-Identifier: Apache-2.0
"""Actions of people: pause, unpause, hand off, answer requests, ask for a resume, roll out.

Each form carries a ticket for exactly the content of its page; if the content has changed, nothing
is written, and the error names the change. The console writes with its own identity and records the
person it acts for. The person's passkey signs an answer to a request, over the statement's digest,
the verdict and the reason; the console relays answers, and cannot forge one.
"""

import json
from collections.abc import Mapping
from contextlib import suppress

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sealpoint.errors import Moved, NeedsApproval, NoRight, UnknownRequest, UsageError
from sealpoint.gate import Standing, Thread
from sealpoint.signing import Verdict, challenge, passkey_attestation
from sealpoint_console._app import PageCall, Right, Routes
from sealpoint_console._request_pages import (
    agreeable_request,
    find_request,
    require_readable,
)
from sealpoint_console._sign_in import assertion_of, chosen_passkey, text_of

_ANSWERED: Mapping[str, str] = {
    Verdict.APPROVE: "Your approval is on record.",
    Verdict.DENY: "Your denial is on record, for good.",
    Verdict.BREAK_GLASS: "The glass is broken. Everyone is notified.",
}
"""The text of the page after an answer."""


class Actions:
    """The routes that change something."""

    def routes(self, make: Routes) -> list[Route]:
        """All of them."""
        return [
            make.post("/threads/{thread}/pause", Right.OPERATOR, self._pause),
            make.post("/threads/{thread}/unpause", Right.OPERATOR, self._unpause),
            make.post("/threads/{thread}/handoff", Right.OPERATOR, self._handoff),
            make.post("/threads/{thread}/resume", Right.OPERATOR, self._resume),
            make.post("/requests/{request}/answer/begin", Right.SIGNED_IN, self._begin_answer),
            make.post("/requests/{request}/answer", Right.SIGNED_IN, self._answer),
            make.post("/requests/{request}/rollout", Right.OPERATOR, self._rollout),
            make.post("/requests/{request}/revoke", Right.OPERATOR, self._revoke),
            make.post("/health/verify", Right.OPERATOR, self._verify),
        ]

    # ------------------------------------------------------------------ threads

    def _pause(self, call: PageCall) -> Response:
        reason = _reason(call)
        thread, shown = _confirmed(call, "pause")
        thread.pause(reason, actor=call.viewer.person, expect=shown)
        return call.done("Paused. Nothing is saved or resumed.", f"/threads/{shown.thread}")

    def _unpause(self, call: PageCall) -> Response:
        reason = _reason(call)
        thread, shown = _confirmed(call, "unpause")
        thread.unpause(reason, actor=call.viewer.person, expect=shown)
        return call.done("It may continue.", f"/threads/{shown.thread}")

    def _handoff(self, call: PageCall) -> Response:
        reason, to = _reason(call), call.text("to")
        thread, shown = _confirmed(call, "handoff")
        try:
            thread.handoff(to=to, reason=reason, actor=call.viewer.person, expect=shown)
        except NeedsApproval as needed:
            words = "Asked for. Once others have approved it, ask for it again."
            return call.done(words, f"/requests/{needed.request.id}")
        return call.done(f"Handed off to {to}.", f"/threads/{shown.thread}")

    def _resume(self, call: PageCall) -> Response:
        told, _, standing = call.spend("resume", call.path("thread")).partition(" ")
        shown = Standing.parse(standing.encode())
        thread = call.acting_on(shown.thread)
        if moved := shown.changes(thread.standing(), basis=True):
            raise Moved(f"thread {shown.name!r}: {'; '.join(moved)}", moved=moved)
        # Once for each displayed state: a worker that is notified twice begins twice, and the
        # second session ends the first in the middle of its work.
        call.desk.notifier.resume_wanted(
            shown.thread, shown.name, call.viewer.person, told=int(told)
        )
        words = "Its worker is notified. If it resumes, the thread gets an entry."
        return call.done(words, f"/threads/{shown.thread}")

    # ------------------------------------------------------------------ requests

    def _begin_answer(self, call: PageCall) -> Response:
        request = call.path("request")
        verdict, reason = _verdict(call), _reason(call)
        # Breaking the glass has a page of its own, which explains it.
        is_broken = verdict is Verdict.BREAK_GLASS
        statement = call.spend("break-glass" if is_broken else "answer", request, keep=True)
        if verdict is not Verdict.DENY:
            agreeable_request(call, verdict)
        passkeys = call.viewer.passkeys
        if not passkeys:
            raise NoRight(
                f"{call.viewer.person!r} has no passkey of this console in the roster",
                hint="Make one at /enrol and have it added, or answer with sealpoint approve.",
            )
        word = json.dumps([statement, verdict, reason])
        return JSONResponse(
            {
                "ticket": call.offer("signed-answer", request, word),
                "challenge": text_of(challenge(statement, verdict, reason)),
                "site": call.desk.settings.site,
                "credentials": [text_of(each.credential) for each in passkeys],
            }
        )

    def _answer(self, call: PageCall) -> Response:
        request = call.path("request")
        statement, verdict, reason = json.loads(call.spend("signed-answer", request))
        passkey = chosen_passkey(call)
        assertion = assertion_of(call, passkey)
        word = passkey_attestation(passkey, statement, Verdict(verdict), reason, assertion)
        if word.verdict is not Verdict.DENY:
            # Check again: another process may have written to the store while the person signed. If
            # the request no longer exists, the next call reports that better.
            with suppress(UnknownRequest):
                agreeable_request(call, word.verdict)
        try:
            entry = call.desk.acting.relay(word)
        except UnknownRequest:
            require_readable(call)
            raise
        call.note(_ANSWERED[word.verdict])
        return JSONResponse({"entry": entry, "page": f"/requests/{request}"})

    def _rollout(self, call: PageCall) -> Response:
        request, reason = call.path("request"), _reason(call)
        call.spend("rollout", request)
        proposed = call.desk.acting.rollouts.propose_for(
            [find_request(call)], reason=reason, actor=call.viewer.person
        )
        return call.done("Proposed. Others have to approve it.", f"/requests/{proposed.id}")

    def _revoke(self, call: PageCall) -> Response:
        request, reason = call.path("request"), _reason(call)
        rollout = call.spend("revoke", request)
        call.desk.acting.rollouts.revoke(rollout, reason=reason, actor=call.viewer.person)
        return call.done("Revoked, for good.", f"/requests/{request}")

    # ------------------------------------------------------------------ the store

    def _verify(self, call: PageCall) -> Response:
        call.spend("verify", "store")
        call.desk.health.begin()
        return call.done("The verification has begun.", "/health")


def _confirmed(call: PageCall, action: str) -> tuple[Thread, Standing]:
    """The thread of a form, and its position on the page with the form."""
    about = call.path("thread")
    shown = Standing.parse(call.spend(action, about).encode())
    return call.acting_on(about), shown


def _reason(call: PageCall) -> str:
    reason = call.text("reason", "").strip()
    if not reason:
        raise UsageError("a reason is needed", hint="Say in a few words why: it is read later.")
    return reason


def _verdict(call: PageCall) -> Verdict:
    text = call.text("verdict")
    if text not in tuple(Verdict):
        raise UsageError(f"verdict: expected {', '.join(Verdict)}, found another text")
    return Verdict(text)
