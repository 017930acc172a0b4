# SPDX-License-Identifier: Apache-2.0
"""The resume gate: whether a saved run may resume, and what the policy requires for that.

The rules, the policy and the review are pure and trust the facts passed to them. The gate of a
thread and the list of requests collect those facts from verified chains and write the decisions.
"""

from sealpoint.gate._answers import SignedAnswer
from sealpoint.gate._decision import (
    Decision,
    Facts,
    GrantFacts,
    Outcome,
    Reason,
    RolloutFacts,
    compared_reasons,
    decide,
)
from sealpoint.gate._operator_actions import OperatorActions, require_break_glass_allowed
from sealpoint.gate._policy import (
    COMPARED_RULES,
    RULE_WORDS,
    SHIPPED_POLICIES,
    Measure,
    Policies,
    Policy,
    Rule,
    shipped_policy,
)
from sealpoint.gate._policy_draft import Consent, PolicyAnswers, draft_policy
from sealpoint.gate._request_list import RequestList, Requests, split_answers
from sealpoint.gate._requests import (
    Request,
    Status,
    can_be_approved,
    make_request,
    why_closed,
)
from sealpoint.gate._resume_review import Newest, Reviewer
from sealpoint.gate._rollout_actions import PlannedWorld, RolloutPlan, Rollouts
from sealpoint.gate._rollouts_in_force import RolloutBook
from sealpoint.gate._shown_standing import Standing, StandingPause
from sealpoint.gate._thread import AdapterThread, Thread
from sealpoint.gate._thread_status import (
    StatusQuery,
    StatusResult,
    ThreadPhase,
    ThreadStatus,
    ThreadSummary,
    read_statuses,
    summarize,
    summary_now,
    unreadable,
)
from sealpoint.ledger import ROLLOUTS

__all__ = [
    "COMPARED_RULES",
    "ROLLOUTS",
    "RULE_WORDS",
    "SHIPPED_POLICIES",
    "AdapterThread",
    "Consent",
    "Decision",
    "Facts",
    "GrantFacts",
    "Measure",
    "Newest",
    "OperatorActions",
    "Outcome",
    "PlannedWorld",
    "Policies",
    "Policy",
    "PolicyAnswers",
    "Reason",
    "Request",
    "RequestList",
    "Requests",
    "Reviewer",
    "RolloutBook",
    "RolloutFacts",
    "RolloutPlan",
    "Rollouts",
    "Rule",
    "SignedAnswer",
    "Standing",
    "StandingPause",
    "Status",
    "StatusQuery",
    "StatusResult",
    "Thread",
    "ThreadPhase",
    "ThreadStatus",
    "ThreadSummary",
    "can_be_approved",
    "compared_reasons",
    "decide",
    "draft_policy",
    "make_request",
    "read_statuses",
    "require_break_glass_allowed",
    "shipped_policy",
    "split_answers",
    "summarize",
    "summary_now",
    "unreadable",
    "why_closed",
]
