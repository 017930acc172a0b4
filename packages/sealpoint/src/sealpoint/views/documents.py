# SPDX-License-Identifier: Apache-2.0
"""What programs are given: a JSON document for everything that is shown.

The same for `--json` of the command line and for the console's API. A document holds texts as they
are, control characters included: whoever shows one to people makes them visible. Records of an
audit, the explanation of a decision and the report of a verification have their own `as_dict`.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from sealpoint.gate import Decision, Policy, Request, Requests, RolloutPlan, ThreadSummary
from sealpoint.store import CheckpointRef, Loaded, ThreadNames
from sealpoint.views.values import json_fault, render, untyped_json
from sealpoint.views.words import duration_text
from sealpoint.world import WorldDiff, json_form

if TYPE_CHECKING:  # what shows neither requests nor administration does not load them
    from sealpoint.api import (
        Approvers,
        Diagnosis,
        ExaminedRequest,
        KeyInfo,
        ShownRelease,
        ShownResult,
    )
    from sealpoint.views.changes import Change

__all__ = [
    "approvers_document",
    "checkpoint_document",
    "decision_document",
    "diagnosis_document",
    "diff_document",
    "examined_document",
    "history_document",
    "keys_document",
    "plan_document",
    "policy_document",
    "ref_document",
    "release_document",
    "request_document",
    "requests_document",
    "rollout_document",
    "rollouts_document",
    "thread_document",
    "threads_document",
]

# Threads and their checkpoints.


def threads_document(found: ThreadNames, summaries: Iterable[ThreadSummary]) -> dict[str, Any]:
    """The threads of a namespace, what each is at, and what the list leaves out."""
    return {
        "namespace": found.namespace,
        "threads": list(found.names),
        "details": [thread_document(each) for each in summaries],
        "complete": found.complete,
        "left_out": [dataclasses.asdict(each) for each in found.left_out],
    }


def thread_document(summary: ThreadSummary) -> dict[str, Any]:
    """What one thread is at."""
    changed = None if summary.changed is None else summary.changed.isoformat()
    return {
        "thread": summary.name,
        "state": str(summary.phase),
        "changed": changed,
        "owner": summary.owner,
        "entries": summary.entries,
        "reason": summary.reason or None,
        "cut_by_restore": summary.restored,
    }


def ref_document(ref: CheckpointRef) -> dict[str, Any]:
    """A checkpoint without its state."""
    names = ("id", "seq", "time", "writer", "metadata", "pruned", "question")
    return json_form(ref, *names)


def history_document(thread: str, refs: Iterable[CheckpointRef], *, more: bool) -> dict[str, Any]:
    """Checkpoints of a thread, and whether there are older ones."""
    return {"thread": thread, "checkpoints": [ref_document(ref) for ref in refs], "more": more}


def checkpoint_document(thread: str, loaded: Loaded, shown: "ShownRelease") -> dict[str, Any]:
    """A checkpoint with its state, and what would be resumed with it."""
    state = untyped_json(loaded.state)
    is_json = json_fault(state) is None
    return {
        "thread": thread,
        **ref_document(loaded.ref),
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
    return {
        "thread": thread,
        "from": ref_document(before),
        "to": ref_document(after),
        "changes": [change.as_dict() for change in changes],
    }


# What would run, and what the gate says.


def release_document(shown: "ShownRelease") -> dict[str, Any]:
    """A release, with the values that are pending."""
    return {
        **shown.release.as_dict(),
        "writer": shown.ref.writer,
        "pending": [
            {
                "lane": each.lane,
                **each.result.as_dict(),
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
        "outcome": str(decision.outcome),
        "ordinary": decision.ordinary,
        "reasons": [each.as_dict() for each in decision.reasons],
        "policy": None if policy is None else {"name": policy.name, "digest": policy.digest},
        "release": None if shown is None else release_document(shown),
    }


# Requests and rollouts.


def request_document(request: Request) -> dict[str, Any]:
    """A request: the statement that is signed, and how it stands."""
    standing = ("approved_by", "denied_by", "ignored", "broken_glass", "broken_glass_by")
    return {
        **json_form(request, "id", "thread", "status", "asked_at", "needed", *standing),
        "statement": msgspec.to_builtins(request.statement),
        **json_form(request, "answer", "world", "worlds"),
        "requester_says": list(request.reasons),
    }


def requests_document(
    namespace: str, requests: Iterable[Request], found: Requests
) -> dict[str, Any]:
    """Requests of a namespace, and the threads of which it is not known what is asked there.

    Args:
        namespace: The namespace.
        requests: Those that are shown.
        found: Where they are from, with its failures.
    """
    return {
        "namespace": namespace,
        "requests": [request_document(each) for each in requests],
        "failures": _failures(found.failures),
    }


def examined_document(examined: "ExaminedRequest") -> dict[str, Any]:
    """One request with all that people are shown of it."""
    diff = examined.diff
    return {
        **request_document(examined.request),
        "release": None if examined.shown is None else release_document(examined.shown),
        "diff": None if diff is None else list(diff.lines()),
        "difference": None if diff is None else dataclasses.asdict(diff),
        "fault": None if examined.fault is None else examined.fault.as_dict(),
    }


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
                "rollout": each.rollout,
                "rules": [reason.as_dict() for reason in each.reasons],
                "diff": None if each.diff is None else _by_class(each.diff),
            }
            for each in plan.worlds
        ],
    }


def rollouts_document(namespace: str, rollouts: Iterable[Request]) -> dict[str, Any]:
    """Rollouts of a namespace."""
    return {"namespace": namespace, "rollouts": [request_document(each) for each in rollouts]}


def rollout_document(
    rollout: Request, differences: Iterable[tuple[str, str, WorldDiff]]
) -> dict[str, Any]:
    """One rollout, and what differs in each pair of its worlds, as `Rollouts.compare` gives it."""
    changes = [
        {"from": before, "to": after, "diff": _by_class(diff)}
        for before, after, diff in differences
    ]
    return {**request_document(rollout), "changes": changes}


def _by_class(diff: WorldDiff) -> dict[str, list[str]]:
    return {str(name): list(lines) for name, lines in diff.by_class().items()}


def _failures(failures: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"thread": thread, "message": message} for thread, message in failures]


# Policies, people and keys, and how a store stands.


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


def approvers_document(approvers: "Approvers") -> dict[str, Any]:
    """Who can approve what a policy asks for."""
    return json_form(approvers, "needed", "people", "askers", "missing")


def keys_document(keys: "Sequence[KeyInfo]") -> list[dict[str, Any]]:
    """The identities of the roster, and the private keys of this machine."""
    return [dataclasses.asdict(each) for each in keys]


def diagnosis_document(diagnosis: "Diagnosis") -> dict[str, Any]:
    """How a store stands here, how it is set up, and what to mend."""
    document = {**dataclasses.asdict(diagnosis), "ok": diagnosis.ok}
    if diagnosis.facts is not None and diagnosis.facts.approvers is not None:
        document["facts"]["approvers"] = approvers_document(diagnosis.facts.approvers)
    return document
