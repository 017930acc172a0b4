# SPDX-License-Identifier: Apache-2.0
"""Taking the answer of a person: the statement to sign, and the signed answer on record."""

from typing import Any

from sealpoint.errors import Moved, NotTrusted, UsageError
from sealpoint.gate._answers import ANSWERED, SignedAnswer
from sealpoint.gate._gate_context import GateContext
from sealpoint.gate._operator_actions import OperatorActions
from sealpoint.gate._resume_call import answer_digest, check_answer
from sealpoint.ledger import RequestBody
from sealpoint.signing import (
    Action,
    Attestation,
    Statement,
    Verdict,
    attest,
    require_answerer,
    verify_attestation,
)
from sealpoint.store import ThreadReader, ThreadState, plain_value


class AnswerActions:
    """Takes the answers of people to the question of one thread."""

    def __init__(
        self,
        state: ThreadState,
        reader: ThreadReader,
        context: GateContext,
        operations: OperatorActions,
    ) -> None:
        self._state = state
        self._reader = reader
        self._context = context
        self._operations = operations
        self._core = state.core

    def current(self) -> SignedAnswer | None:
        """Return the answer in force to the question of the thread; None if there is none."""
        with self._state.reporting():
            self._state.refresh()
            return self._context.signed_answer()

    def prepare(self, answer: Any, person: str, reason: str) -> Statement:
        """Return the statement that a person signs to answer; see `Thread.prepare_answer`."""
        plain = plain_value(answer, "answer")
        if plain is None:
            raise UsageError("answer: expected a value, found null", hint="Answer with any value.")
        check_answer(plain)
        with self._state.reporting():
            self._context.require_living()
            self._context.require_person(person)
            policy = self._context.policy()
            if policy is None:
                raise UsageError(
                    "answer: no policy is in force, so nobody's word counts",
                    hint="Where the root key is, put one in force: sealpoint policy apply team",
                )
            release = self._state.retry_if_pruned(self._reader.release)
            if release.question is None:
                raise UsageError(
                    f"thread {self._state.name!r}: it does not wait for an answer",
                    hint=f"See what it does: sealpoint log {self._state.name!r}",
                )
            self._require_unanswered()
            return self._context.statement(
                action=Action.ANSWER,
                checkpoint=release.entry,
                release=release.digest,
                answer=answer_digest(plain),
                policy=policy,
                needed=1,
                reason=reason.strip() or ANSWERED,
                actor=person,
            )

    def record(self, statement: Statement, answer: Any, word: Attestation) -> SignedAnswer:
        """Record an answer that its person has signed; see `Thread.record_answer`."""
        if statement.action is not Action.ANSWER or answer_digest(answer) != statement.answer:
            raise NotTrusted("answer: what was signed is not this answer")
        with self._state.reporting():
            self._require_signed(statement, word)
            body = RequestBody(
                salt=self._core.salt(), statement=statement, reasons=(), answer=answer
            )
            self._operations.write_in_turn(lambda: self._write(body))
            self._operations.relay(word, require=lambda: self._require_unanswered(statement.digest))
            found = self._context.signed_answer()
            if found is None or found.id != statement.digest:
                raise self._moved("another person has answered first")
            return found

    def answer(self, answer: Any, reason: str) -> SignedAnswer:
        """Answer with this store's own key; see `Store.answer`."""
        with self._state.reporting():
            me = self._context.identity_of(self._context.identity())
        statement = self.prepare(answer, me.person, reason)
        word = attest(
            self._core.signer(), statement.digest, Verdict.APPROVE, reason.strip() or ANSWERED
        )
        return self.record(statement, plain_value(answer, "answer"), word)

    def _write(self, body: RequestBody) -> int | None:
        """Append the request of an answer; None if another process wrote first."""
        self._context.require_living()
        statement = body.statement
        if not self._context.binds(statement):
            raise self._moved("it has continued since the question was shown")
        known = self._context.pending().asked.get(statement.digest)
        if known is not None:
            return known.entry.seq
        self._require_unanswered()
        return self._context.ask(body)

    def _require_signed(self, statement: Statement, word: Attestation) -> None:
        """Refuse a signature that would not count, before anything is written."""
        if word.statement != statement.digest or word.verdict != Verdict.APPROVE:
            raise NotTrusted("answer: the signature is for something else")
        identity = verify_attestation(word, self._core.trust().roster)
        require_answerer(identity, statement)

    def _require_unanswered(self, own: str | None = None) -> None:
        """Refuse another answer than this one of our own where one is in force."""
        found = self._context.signed_answer()
        if found is not None and found.id != own:
            raise self._moved(
                f"{found.person!r} has answered",
                hint="It runs when its worker takes it. To answer differently, withdraw that one "
                f"first: sealpoint deny {found.id[:12]} --reason WHY",
            )

    def _moved(self, words: str, hint: str | None = None) -> Moved:
        return Moved(
            f"thread {self._state.name!r}: {words}",
            moved=(words,),
            hint=hint or "Nothing was written. Look at the thread again.",
        )
