# SPDX-License-Identifier: Apache-2.0
"""A policy file from five answers: what each rule requires, and the answer that it follows from.

The draft is the shipped policy `team` with other measures, so each rule keeps the comment that
explains it, and gets one more line with the answer. The result is an ordinary policy file, which
people may edit. It is parsed before it is returned, like any other.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from types import MappingProxyType

from sealpoint.errors import PolicyInvalid
from sealpoint.gate._policy import Measure, Policy, Rule, shipped_policy


@unique
class Consent(StrEnum):
    """The people who must agree to something."""

    NOBODY = "nobody"
    A_REASON = "a-reason"
    ONE_OTHER = "one-other"
    TWO_OTHERS = "two-others"

    @property
    def measure(self) -> Measure:
        """The measure of a rule that requires it."""
        return _MEASURES[self]

    @property
    def words(self) -> str:
        """The requirement, to follow a subject."""
        return _WORDS[self]


_MEASURES: Mapping[Consent, Measure] = MappingProxyType(
    {
        Consent.NOBODY: Measure.RECORD,
        Consent.A_REASON: Measure.REASON,
        Consent.ONE_OTHER: Measure.approve(1),
        Consent.TWO_OTHERS: Measure.approve(2),
    }
)
_WORDS: Mapping[Consent, str] = MappingProxyType(
    {
        Consent.NOBODY: "passes, and is recorded",
        Consent.A_REASON: "needs a reason from the caller",
        Consent.ONE_OTHER: "needs one other person",
        Consent.TWO_OTHERS: "needs two other people",
    }
)
_CAPABILITIES = (Rule.TOOLS, Rule.PERMISSIONS, Rule.MODEL, Rule.OTHER, Rule.MISSING_WORLD)
_REPEATS = (Rule.OLDER_CHECKPOINT, Rule.AFTER_RESTORE)
_DEPLOYS = (Rule.PROMPTS, Rule.TOPOLOGY, Rule.CODE, Rule.APPLICATION)
_COMMENT_CHARS = 98


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyAnswers:
    """The answers of a team about its runs."""

    tools: Consent
    """For new or changed tools, permissions, models and watched values."""
    answers: Consent
    """For each answer to a question of a run."""
    code: Consent
    """For a deploy of changed code, prompts or steps."""
    oldest: str | None
    """The age up to which a run may wait and then resume like any other; None: any age."""
    break_glass: bool
    """Whether a marked operator may pass one resume alone in an emergency."""


def draft_policy(name: str, answers: PolicyAnswers) -> bytes:
    """Return a policy file that follows from the answers, with the reasons in it.

    Raises:
        PolicyInvalid: The name or the age is not one that a policy may have.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}", name):
        raise PolicyInvalid(f"policy: name: expected letters and digits, found {name[:64]!r}")
    if answers.oldest is not None and not re.fullmatch("[0-9]{1,6}[smhd]", answers.oldest):
        raise PolicyInvalid(
            f"policy: age.max: expected a duration such as 7d, found {answers.oldest[:64]!r}"
        )
    text = shipped_policy("team").decode()
    heading = text.splitlines()[0]
    text = text.replace(heading, f"# The policy {name}, written by `sealpoint policy new`.", 1)
    text = text.replace('name = "team"', f'name = "{name}"', 1)
    for rule, (measure, why) in _rules(answers).items():
        comment = "\n".join(_wrapped(f"Our answer: {why}"))
        line = re.compile(rf'(?m)^{rule} = "[^"]*"$')
        text = line.sub(f'{comment}\n{rule} = "{measure}"', text, count=1)
    text = _with_age(text, answers.oldest)
    glass = (
        "An operator whom the root marked for break-glass may pass one resume alone. It is "
        "recorded for everyone to see. No policy forbids it: mark nobody, and nobody can."
        if answers.break_glass
        else "Nobody passes a resume alone: mark no operator for break-glass. No policy can forbid "
        "it to a marked one."
    )
    text = text.replace(
        "[approvals]\n", "\n".join([*_wrapped(f"Our answer: {glass}"), "[approvals]"]) + "\n"
    )
    source = text.encode()
    Policy.parse(source)
    return source


def _rules(answers: PolicyAnswers) -> dict[Rule, tuple[Measure, str]]:
    """Return the measure of each rule that an answer decides, with the answer in words."""
    tools, code = answers.tools, answers.code
    people = max(1, tools.measure.people)
    wider = f"a change of what a run may do {tools.words}."
    again = f"to do work again {tools.words}, as a new tool does."
    deploy = f"a deploy of changed code or prompts {code.words}."
    found = {
        **dict.fromkeys(_CAPABILITIES, (tools.measure, wider)),
        **dict.fromkeys(_REPEATS, (tools.measure, again)),
        **dict.fromkeys(_DEPLOYS, (code.measure, deploy)),
        Rule.RUNTIME: (
            Measure.RECORD,
            "a patch version of a package waits for nobody; the build pins versions.",
        ),
        Rule.ANSWER: (answers.answers.measure, f"each answer {answers.answers.words}."),
        Rule.HANDOFF_BY_OPERATOR: (
            Measure.approve(people),
            "an operator never gives a thread away alone.",
        ),
    }
    if answers.oldest is not None:
        late = max(tools.measure, Measure.REASON)
        found[Rule.OLD_AGE] = late, f"a run that waited longer than {answers.oldest} is looked at."
    else:
        found[Rule.OLD_AGE] = Measure.RECORD, "a run may wait for any time."
    return found


def _with_age(text: str, oldest: str | None) -> str:
    """Return the file with its table `[age]`, or without it."""
    start, end = text.index("[age]\n"), text.index("[session]\n")
    if oldest is None:
        return text[:start] + text[end:]
    return text[:start] + re.sub('max = "[^"]*"', f'max = "{oldest}"', text[start:end]) + text[end:]


def _wrapped(words: str) -> Iterable[str]:
    line = "#"
    for word in words.split():
        if len(line) + 1 + len(word) > _COMMENT_CHARS:
            yield line
            line = "#"
        line += f" {word}"
    yield line
