# SPDX-License-Identifier: Apache-2.0
"""What people do: pause, unpause, hand off, answer requests, ask for a resume, propose rollouts.

Each form carries a ticket for exactly what its page showed; if that has moved, nothing is written,
and the error says what moved. The console writes with its own identity and says for whom. Answers
to requests are signed by the person's passkey over the statement's digest, the verdict and the
reason; the console relays them, and could make none up.
"""

import json
from contextlib import suppress

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sealpoint.console._app import PageCall, Right, Routes, redirect
from sealpoint.console._sign_in import assertion_of, bytes_of, text_of
from sealpoint.errors import Moved, NeedsApproval, NoRight, UsageError
from sealpoint.gate import Standing, Thread
from sealpoint.signing import Passkey, Verdict, challenge, passkey_attestation


class Actions:
    """The routes that do something."""

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
            make.post("/health/verify", Right.OPERATOR, self._verify),
        ]

    # ------------------------------------------------------------------ threads

    def _pause(self, call: PageCall) -> Response:
        reason = _reason(call)
        thread, shown = _confirmed(call, "pause")
        thread.pause(reason, actor=call.viewer.person, expect=shown)
        return redirect(f"/threads/{shown.thread}")

    def _unpause(self, call: PageCall) -> Response:
        reason = _reason(call)
        thread, shown = _confirmed(call, "unpause")
        thread.unpause(reason, actor=call.viewer.person, expect=shown)
        return redirect(f"/threads/{shown.thread}")

    def _handoff(self, call: PageCall) -> Response:
        reason, to = _reason(call), call.text("to")
        thread, shown = _confirmed(call, "handoff")
        with suppress(NeedsApproval):  # others are asked now, which the page shows
            thread.handoff(to=to, reason=reason, actor=call.viewer.person, expect=shown)
        return redirect(f"/threads/{shown.thread}")

    def _resume(self, call: PageCall) -> Response:
        thread, shown = _confirmed(call, "resume")
        if moved := shown.changes(thread.standing(), basis=True):
            raise Moved(f"thread {shown.name!r}: {'; '.join(moved)}", moved=moved)
        call.desk.notifier.resume_wanted(shown.thread, shown.name, call.viewer.person)
        return redirect(f"/threads/{shown.thread}")

    # ------------------------------------------------------------------ requests

    def _begin_answer(self, call: PageCall) -> Response:
        request = call.path("request")
        verdict, reason = _verdict(call), _reason(call)
        # Breaking the glass has a page of its own, which says what it is.
        is_broken = verdict is Verdict.BREAK_GLASS
        statement = call.spend("break-glass" if is_broken else "answer", request, keep=True)
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
        passkey = _chosen(call)
        assertion = assertion_of(call, passkey)
        word = passkey_attestation(passkey, statement, Verdict(verdict), reason, assertion)
        entry = call.desk.acting.relay(word)
        return JSONResponse({"entry": entry, "page": f"/requests/{request}"})

    def _rollout(self, call: PageCall) -> Response:
        request = call.path("request")
        call.spend("rollout", request)
        proposed = call.desk.acting.rollouts.propose_for(
            [call.desk.acting.request(request)], reason=_reason(call), actor=call.viewer.person
        )
        return redirect(f"/requests/{proposed.id}")

    # ------------------------------------------------------------------ the store

    def _verify(self, call: PageCall) -> Response:
        call.spend("verify", "store")
        call.desk.health.begin()
        return redirect("/health")


def _confirmed(call: PageCall, action: str) -> tuple[Thread, Standing]:
    """The thread that a form is about, and where it stood on the page that had the form."""
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


def _chosen(call: PageCall) -> Passkey:
    """The passkey that the browser used, if it is this person's."""
    credential = bytes_of(call.text("credential"), "credential")
    for passkey in call.viewer.passkeys:
        if passkey.credential == credential:
            return passkey
    raise NoRight(f"{call.viewer.person!r} does not have this passkey, by the newest roster")
