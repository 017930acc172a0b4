# SPDX-License-Identifier: Apache-2.0
"""The page on which a person answers the question of a thread, signed with their passkey.

The console makes the statement of the answer, and the person's passkey signs its digest: neither
the console nor the worker can give another answer in that name. Nothing runs here. The worker
resumes with the answer, and the policy decides then.
"""

import json

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sealpoint.api import read_release
from sealpoint.errors import NoRight, UsageError
from sealpoint.gate import Thread
from sealpoint.signing import (
    ANSWERING,
    Statement,
    Verdict,
    challenge,
    passkey_attestation,
)
from sealpoint.views.answer_forms import questions_of, read_answer
from sealpoint.views.decision import read_decision
from sealpoint.views.summaries import answer_line
from sealpoint_console._app import PageCall, Right, Routes
from sealpoint_console._sign_in import assertion_of, chosen_passkey, text_of


class AnswerPages:
    """The routes on which people answer questions."""

    def routes(self, make: Routes) -> list[Route]:
        """All of them."""
        return [
            make.get("/threads/{thread}/answer", Right.SIGNED_IN, self._form),
            make.post("/threads/{thread}/answer/begin", Right.SIGNED_IN, self._begin),
            make.post("/threads/{thread}/answer", Right.SIGNED_IN, self._answer),
        ]

    def _form(self, call: PageCall) -> Response:
        about = call.path("thread")
        thread = call.thread(about)
        standing, question = thread.standing(), thread.question
        questions = () if question is None else questions_of(question)
        given = None if question is None else thread.signed_answer
        decision = None
        if question is not None:
            shown = read_release(thread, thread.release(), states=True)
            decision = read_decision(shown, masking=call.desk.masking)
        return call.page(
            "answer.html",
            page_path="/",
            id=about,
            name=thread.name,
            decision=decision,
            forms=[each.form for each in questions],
            given=given,
            given_line="" if given is None else answer_line(given.answer, question),
            paused=standing.paused,
            may_answer=may_answer(call),
            ticket=call.offer("answer-question", about, standing.basis),
        )

    def _begin(self, call: PageCall) -> Response:
        about, passkeys = call.path("thread"), call.viewer.passkeys
        _require_may_answer(call)
        if not passkeys:
            raise NoRight(
                f"{call.viewer.person!r} has no passkey of this console in the roster",
                hint="Make one at /enrol and have it added, or use sealpoint answer in a terminal.",
            )
        basis = call.spend("answer-question", about, keep=True)
        thread = call.acting_on(about)
        filled = {name: text for name, text in call.fields.items() if isinstance(text, str)}
        answer = read_answer(questions_of(_question(thread)), filled)
        statement = thread.prepare_answer(
            answer, person=call.viewer.person, reason=call.text("reason", "")
        )
        if statement.basis != basis:
            raise UsageError(
                "the thread has continued since this page was made",
                hint="Load the page again, and read what it asks now.",
            )
        word = json.dumps([statement.encode().decode(), answer])
        return JSONResponse(
            {
                "ticket": call.offer("signed-answer", about, word),
                "challenge": text_of(
                    challenge(statement.digest, Verdict.APPROVE, statement.reason)
                ),
                "site": call.desk.settings.site,
                "credentials": [text_of(each.credential) for each in passkeys],
            }
        )

    def _answer(self, call: PageCall) -> Response:
        about = call.path("thread")
        told, answer = json.loads(call.spend("signed-answer", about))
        statement, passkey = Statement.parse(told.encode()), chosen_passkey(call)
        word = passkey_attestation(
            passkey,
            statement.digest,
            Verdict.APPROVE,
            statement.reason,
            assertion_of(call, passkey),
        )
        thread = call.acting_on(about)
        given = thread.record_answer(statement, answer, word)
        call.note("Your answer is on record. The worker of the thread takes it.")
        return JSONResponse({"entry": given.id, "page": f"/threads/{about}"})


def may_answer(call: PageCall) -> bool:
    """Whether a person may answer questions in the namespace of the console."""
    roster, namespace = call.desk.watch.roster, call.desk.store.namespace
    return any(
        each.may_any(ANSWERING, namespace)
        for each in roster.identities
        if each.person == call.viewer.person
    )


def _require_may_answer(call: PageCall) -> None:
    if not may_answer(call):
        raise NoRight(
            f"{call.viewer.person!r} is neither operator nor approver in this namespace",
            hint="Where the root key is, sealpoint keys add gives a person a role.",
        )


def _question(thread: Thread) -> object:
    question = thread.question
    if question is None:
        raise UsageError(
            f"thread {thread.name!r}: it does not wait for an answer",
            hint="Another person has answered, or it has continued: load the page again.",
        )
    return question
