# SPDX-License-Identifier: Apache-2.0
"""What programs are given: a JSON document for everything that is shown.

The same for `--json` of the command line and for the console's API, whose description is made of
the structs here. A record whose fields are its JSON has no document here: `json_form` makes it. A
document holds texts as they are, control characters included: whoever shows one to people makes
them visible. Records of an audit, the explanation of a decision and the report of a verification
have their own `as_dict`.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct

from sealpoint.durations import duration_text
from sealpoint.errors import SealpointError
from sealpoint.gate import (
    Decision,
    Policy,
    Request,
    Requests,
    RolloutPlan,
    Status,
    ThreadPhase,
    ThreadSummary,
)
from sealpoint.signing import Action, Statement
from sealpoint.store import CheckpointRef, Loaded, ThreadNames
from sealpoint.views.decision import Decision as ReadDecision
from sealpoint.views.decision import read_decision
from sealpoint.views.values import json_fault, render, untyped_json
from sealpoint.world import WorldDiff, json_form

if TYPE_CHECKING:  # what shows neither requests nor administration does not load them
    from sealpoint.api import ExaminedRequest, ShownRelease, ShownResult
    from sealpoint.views.changes import Change

__all__ = [
    "ExaminedDocument",
    "FailureDocument",
    "RequestDocument",
    "RequestsDocument",
    "RolloutsDocument",
    "ThreadDocument",
    "checkpoint_document",
    "decision_document",
    "diff_document",
    "examined_document",
    "plan_document",
    "policy_document",
    "release_document",
    "request_document",
    "requests_document",
    "rollout_document",
    "rollouts_document",
    "thread_document",
    "threads_document",
]

Digest: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Time: TypeAlias = Annotated[datetime, Meta(tz=True)]

# Threads and their checkpoints.


class ThreadDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one thread is at."""

    name: str = msgspec.field(name="thread")
    phase: ThreadPhase = msgspec.field(name="state")
    changed: Time | None
    owner: str | None
    entries: int | None
    reason: str | None
    restored: bool = msgspec.field(name="cut_by_restore")
    id: str
    code: str | None


def thread_document(summary: ThreadSummary) -> ThreadDocument:
    """What one thread is at."""
    return msgspec.convert(summary, ThreadDocument, from_attributes=True)


def threads_document(found: ThreadNames, summaries: Iterable[ThreadSummary]) -> dict[str, Any]:
    """The threads of a namespace, what each is at, and what the list leaves out."""
    return {
        "namespace": found.namespace,
        "threads": found.names,
        "details": [thread_document(each) for each in summaries],
        "complete": found.complete,
        "left_out": found.left_out,
    }


def checkpoint_document(thread: str, loaded: Loaded, shown: "ShownRelease") -> dict[str, Any]:
    """A checkpoint with its state, and what would be resumed with it."""
    state = untyped_json(loaded.state)
    is_json = json_fault(state) is None
    return {
        "thread": thread,
        **json_form(loaded.ref),
        "world": loaded.world,
        "state": state if is_json else None,
        "state_is_json": is_json,
        "rendering": list(render(loaded.state, everything=True)),
        "release": release_document(shown),
    }


def diff_document(
    thread: str, before: CheckpointRef, after: CheckpointRef, changes: "Iterable[Change]"
) -> dict[str, Any]:
    """What changed from one checkpoint of a thread to another."""
    told = [change.as_dict() for change in changes]
    return {"thread": thread, "from": before, "to": after, "changes": told}


# What would run, and what the gate says.


def release_document(shown: "ShownRelease") -> dict[str, Any]:
    """A release, with the values that are pending."""
    return {
        **shown.release.as_dict(),
        "writer": shown.ref.writer,
        "pending": [
            {
                "lane": each.lane,
                **json_form(each.result),
                "value": each.value if _is_json(each) else None,
                "rendering": [] if each.fault else list(render(each.value, everything=True)),
                "fault": each.fault,
            }
            for each in shown.results
        ],
    }


def _is_json(shown: "ShownResult") -> bool:
    return shown.fault is None and json_fault(shown.value) is None


def decision_document(
    thread: str, decision: Decision, policy: Policy | None, shown: "ShownRelease | None"
) -> dict[str, Any]:
    """What the gate says to a resume, by which rules, and what would be released."""
    return {
        "thread": thread,
        "outcome": decision.outcome,
        "ordinary": decision.ordinary,
        "reasons": [each.as_dict() for each in decision.reasons],
        "policy": None if policy is None else json_form(policy, "name", "digest"),
        "release": None if shown is None else release_document(shown),
    }


# Requests and rollouts.


class RequestDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request: the statement that is signed, and how it stands."""

    id: Digest
    thread: str
    status: Status
    asked_at: Time
    needed: int
    approved_by: list[str]
    denied_by: list[str]
    ignored: list[str]
    broken_glass: str | None
    broken_glass_by: list[str]
    statement: Statement
    answer: Any
    world: dict[str, Any] | None
    differences: WorldDiff | None
    reasons: list[str] = msgspec.field(name="requester_says")


class ExaminedDocument(RequestDocument, frozen=True, kw_only=True):
    """One request with all that people are shown of it."""

    release: dict[str, Any] | None
    diff: list[str] | None
    difference: WorldDiff | None
    decision: ReadDecision | None
    """Question, calls, answer and differences, as approvers see them; None for a rollout."""
    fault: SealpointError | None


class FailureDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A thread that could not be read, and why."""

    thread: str
    message: str


class RequestsDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Requests of a namespace, and the threads of which it is not known what is asked there."""

    namespace: str
    requests: list[RequestDocument]
    failures: list[FailureDocument]


class RolloutsDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rollouts of a namespace."""

    namespace: str
    rollouts: list[RequestDocument]


def request_document(request: Request) -> RequestDocument:
    """A request: the statement that is signed, and how it stands."""
    return msgspec.convert(request, RequestDocument, from_attributes=True)


def requests_document(
    namespace: str, requests: Iterable[Request], found: Requests
) -> RequestsDocument:
    """Requests of a namespace, and the threads of which it is not known what is asked there.

    Args:
        namespace: The namespace.
        requests: Those that are shown.
        found: Where they are from, with its failures.
    """
    return RequestsDocument(
        namespace=namespace,
        requests=[request_document(each) for each in requests],
        failures=_failures(found.failures),
    )


def examined_document(examined: "ExaminedRequest") -> ExaminedDocument:
    """One request with all that people are shown of it."""
    diff, shown = examined.diff, examined.shown
    is_rollout = examined.request.statement.action is Action.ROLLOUT
    return ExaminedDocument(
        **msgspec.structs.asdict(request_document(examined.request)),
        release=None if shown is None else release_document(shown),
        diff=None if diff is None else list(diff.lines()),
        difference=diff,
        decision=None if is_rollout else read_decision(shown, examined),
        fault=examined.fault,
    )


def plan_document(namespace: str, plan: RolloutPlan) -> dict[str, Any]:
    """The worlds that threads are in, and what differs in a new one."""
    return {
        "namespace": namespace,
        "world": plan.world.digest,
        **json_form(plan, "threads", "same", "undeclared", "empty", "failed"),
        "failures": _failures(plan.failures),
        "worlds": [
            {
                **json_form(each, "digest", "threads", "examples"),
                "asks_for": None if each.diff is None else str(each.measure),
                "rollouts": list(each.rollouts),
                "still_asks_for": None if each.diff is None else str(each.left),
                "rules": [reason.as_dict() for reason in each.reasons],
                "diff": None if each.diff is None else each.diff.by_class(),
            }
            for each in plan.worlds
        ],
        "void": [
            {"request": each.id, **json_form(each, "thread", "status", "approved_by")}
            | {"requester": each.statement.requester}
            for each in plan.void
        ],
    }


def rollouts_document(namespace: str, rollouts: Iterable[Request]) -> RolloutsDocument:
    """Rollouts of a namespace."""
    shown = [request_document(each) for each in rollouts]
    return RolloutsDocument(namespace=namespace, rollouts=shown)


def rollout_document(rollout: Request) -> dict[str, Any]:
    """One rollout, and the differences that it accepts, as people read them."""
    diff = {} if rollout.differences is None else rollout.differences.by_class()
    return {**json_form(request_document(rollout)), "diff": diff}


def _failures(failures: Iterable[tuple[str, str]]) -> list[FailureDocument]:
    return [FailureDocument(thread=thread, message=message) for thread, message in failures]


# Policies.


def policy_document(policy: Policy) -> dict[str, Any]:
    """What a policy asks for, without its file."""
    return {
        "name": policy.name,
        "digest": policy.digest,
        "rules": {str(rule): str(measure) for rule, measure in policy.rules.items()},
        "expires": duration_text(policy.expires),
        "age_max": None if policy.age_max is None else duration_text(policy.age_max),
        "takeover_after": duration_text(policy.takeover_after),
    }
