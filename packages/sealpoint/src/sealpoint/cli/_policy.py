# SPDX-License-Identifier: Apache-2.0
"""`sealpoint policy`: write, show, check, try and apply the policy, which is a file."""

import shlex
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from sealpoint.api import AppliedPolicy, Approvers, PolicyTrial
from sealpoint.cli._input_files import read_document, write_document
from sealpoint.cli.options import VerbGroup, json_option
from sealpoint.cli.stores import StoreOptions, store_options
from sealpoint.cli.terminal import (
    ask,
    can_ask,
    print_code,
    print_document,
    print_fields,
    print_json,
    print_line,
    print_lines,
    print_table,
    working,
)
from sealpoint.durations import duration_text
from sealpoint.errors import IntegrityError, PolicyInvalid, UsageError
from sealpoint.gate import (
    SHIPPED_POLICIES,
    Consent,
    Policy,
    PolicyAnswers,
    draft_policy,
    shipped_policy,
)
from sealpoint.limits import POLICY_BYTES_MAX
from sealpoint.signing import ANY_NAMESPACE
from sealpoint.views.documents import policy_document
from sealpoint.views.requests import measure_text
from sealpoint.views.words import Styled, count_text, short_hex
from sealpoint.world import visible

_DAYS_MAX = 3_650
_NUMBERS = {1: "one person", 2: "two people", 3: "three people"}


def approver_lines(found: Approvers, namespace: str = "*") -> list[str]:
    """Return advice after a policy was applied; empty if it never asks for approval."""
    if not found.needed:
        return []
    needed = _people(found.needed)
    names = ", ".join(visible(each) for each in found.people)
    askers = ", ".join(visible(each) for each in found.askers)
    lines = [f"What this policy asks people for needs {needed} who did not ask for it."]
    if not found.missing:
        return [*lines, f"Who can approve: {names}."]
    also = f", who {_asks(found)} for the workers" if askers else ""
    if found.people:
        lines.append(f"Who can approve: {names}. That is too few: add {_people(found.missing)}.")
    else:
        lines.append(f"Nobody can approve yet: add {_people(found.missing)}.")
    if askers:
        lines.append(f"({askers}{also}, cannot approve that as well.)")
    return [
        *lines,
        "For each of them:",
        "  sealpoint keys new NAME",
        f"  sealpoint keys add NAME --person 'WHO' --role approver --namespace '{namespace}'",
    ]


def _people(count: int) -> str:
    return _NUMBERS.get(count, f"{count} people")


def _asks(found: Approvers) -> str:
    return "asks" if len(found.askers) == 1 else "ask"


def policy_bytes(name: str) -> bytes:
    """Return the file of a shipped policy, or the one at a path; `-` is standard input.

    Raises:
        UsageError: It cannot be read.
    """
    if name in SHIPPED_POLICIES:
        return shipped_policy(name)
    return read_document(name, "policy", bytes_max=POLICY_BYTES_MAX)


@click.group(cls=VerbGroup)
def policy() -> None:
    """Write, show, check, try and apply the policy, which decides how saved runs may resume."""


@policy.command("show")
@click.option(
    "--name",
    type=click.Choice(SHIPPED_POLICIES),
    help="A policy that comes with Sealpoint, instead of the one in force; needs no store.",
)
@store_options("namespace", unless="name")
@json_option
def show(name: str | None, *, where: StoreOptions | None, as_json: bool) -> None:
    """Print the policy in force in a namespace, as the exact file."""
    found = Policy.parse(shipped_policy(name or "")) if where is None else _in_force(where)
    if as_json:
        print_json({**policy_document(found), "source": found.source.decode()})
    else:
        print_document(found.source)


def _in_force(where: StoreOptions) -> Policy:
    with where.reading() as store, working("reading the policy"):
        found, namespace = store.policy, store.namespace
    if found is None:
        raise PolicyInvalid(
            f"namespace {namespace!r}: no policy is in force",
            hint="Only ordinary continuation is allowed; sealpoint policy apply solo changes that.",
        )
    return found


_CONSENTS = tuple(map(str, Consent))
_QUESTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "tools",
        "Who must agree when an agent gets a new tool, a permission or another model?",
        _CONSENTS,
    ),
    ("answers", "Who must agree to each answer that a person gives to an agent?", _CONSENTS),
    ("code", "Who must agree when changed code or prompts are deployed?", _CONSENTS),
    ("oldest", "How long may a run wait before its resume is reviewed? (such as 7d, or any)", ()),
    ("break-glass", "May a marked person let one run pass alone in an emergency?", ("yes", "no")),
)
"""The questions of `policy new`: the option, the words, and the possible answers."""
_SUGGESTED = {"tools": "one-other", "answers": "nobody", "code": "nobody", "oldest": "30d"}


def _answer_option(name: str, words: str, choices: tuple[str, ...]) -> Callable[[Any], Any]:
    kind = click.Choice(choices) if choices else None
    return click.option(f"--{name}", type=kind, metavar=None if choices else "AGE", help=words)


@policy.command("new")
@click.argument("file", metavar="FILE")
@click.option("--name", help="Its name, for people; without it, that of the file.")
@_answer_option(*_QUESTIONS[0])
@_answer_option(*_QUESTIONS[1])
@_answer_option(*_QUESTIONS[2])
@_answer_option(*_QUESTIONS[3])
@_answer_option(*_QUESTIONS[4])
@json_option
def new(file: str, *, name: str | None, as_json: bool, **given: str | None) -> None:
    """Write a policy of your own to FILE, from five answers; it applies nothing.

    Asks on a terminal for what the options leave out. The file says at each rule which answer it
    follows from, and may be edited. An existing file is never replaced.
    """
    if Path(file).exists():
        raise UsageError(
            f"policy: {file!r} exists already, and was left as it is",
            hint="Name another file, or remove this one.",
        )
    said = {option: _answer(option, words, choices, given) for option, words, choices in _QUESTIONS}
    oldest = None if said["oldest"] == "any" else said["oldest"]
    answers = PolicyAnswers(
        tools=Consent(said["tools"]),
        answers=Consent(said["answers"]),
        code=Consent(said["code"]),
        oldest=oldest,
        break_glass=said["break-glass"] == "yes",
    )
    source = draft_policy(Path(file).stem if name is None else name, answers)
    write_document(file, source, "policy")
    found = Policy.parse(source)
    following = [
        f"sealpoint policy try {shlex.quote(file)}",
        f"sealpoint policy apply {shlex.quote(file)}",
    ]
    if answers.break_glass:
        following.append("sealpoint keys add NAME --role operator --break-glass --namespace '*'")
    if as_json:
        print_json({"file": file, "answers": said, **policy_document(found), "next": following})
        return
    print_line((Styled("Written", "good"), f": {visible(file)}, a good policy."))
    print_line("See what it would have asked in the last 30 days, then put it in force:")
    print_code(following)


def _answer(
    option: str, words: str, choices: tuple[str, ...], given: Mapping[str, str | None]
) -> str:
    """Return the answer that was given as an option, or ask for it.

    Raises:
        UsageError: It was not given, and nobody can be asked; or it is not an answer.
    """
    answer = given[option.replace("-", "_")]
    if answer is None and can_ask():
        suggested = _SUGGESTED.get(option, "no")
        listed = f" [{', '.join(choices)}]" if choices else ""
        answer = ask(f"{words}{listed} ({suggested})") or suggested
    if answer is None:
        raise UsageError(
            f"policy: --{option} is needed where no terminal can ask: {words}",
            hint=f"Give --{option}" + (f" {'|'.join(choices)}." if choices else " AGE."),
        )
    if choices and answer not in choices:
        raise UsageError(f"policy: expected one of {', '.join(choices)}, found {answer[:64]!r}")
    return answer


@policy.command("check")
@click.argument("file", metavar="FILE")
@json_option
def check(file: str, *, as_json: bool) -> None:
    """Check that FILE is a policy, and print what it requires; - reads standard input."""
    found = Policy.parse(read_document(file, "policy", bytes_max=POLICY_BYTES_MAX))
    if as_json:
        print_json(policy_document(found))
        return
    print_line(Styled("A good policy.", "good"))
    print_fields(
        [
            ("name", visible(found.name)),
            ("digest", found.digest),
            ("requests", f"open for {duration_text(found.expires)}"),
            (
                "old age",
                "never" if found.age_max is None else f"from {duration_text(found.age_max)}",
            ),
            ("takeover", f"of a session after {duration_text(found.takeover_after)}"),
        ]
    )
    print_line("")
    print_table(
        ("rule", "asks for"),
        [(str(rule), measure_text(measure)) for rule, measure in found.rules.items()],
    )


@policy.command("try")
@click.argument("file", metavar="FILE|dev|solo|team|strict")
@click.option(
    "--days",
    type=click.IntRange(1, _DAYS_MAX),
    default=30,
    show_default=True,
    help="How many days back.",
)
@store_options("namespace")
@json_option
def try_(file: str, *, days: int, where: StoreOptions, as_json: bool) -> None:
    """Show what a policy would have asked about the resumes of the last days.

    Writes nothing. Every recorded resume is judged by FILE, as if nobody had approved anything.
    The exit status is 30 if a thread does not verify.
    """
    source = policy_bytes(file)
    Policy.parse(source)  # a fault of the file comes before the store is opened
    with where.reading() as store, working("judging the recorded resumes"):
        now = datetime.now(UTC)
        found = store.try_policy(source, since=now - timedelta(days=days))
        namespace = store.namespace
    if as_json:
        print_json(
            {
                "namespace": namespace,
                "policy": policy_document(found.policy),
                "since": found.since,
                "resumes": found.resumes,
                "asking": len(found.asking),
                "differing": found.differing,
                "found": [each.as_dict() for each in found.found],
                "failures": [{"thread": name, "message": words} for name, words in found.failures],
            }
        )
    else:
        _print_trial(found, days)
    if found.failures:
        click.get_current_context().exit(IntegrityError.exit_status)


def _print_trial(found: PolicyTrial, days: int) -> None:
    groups: dict[tuple[str, str, tuple[str, ...], str, bool], int] = {}
    for each in found.asking:
        # What one rollout covers is one question, however many threads resumed.
        day, deploy = f"{each.at:%Y-%m-%d}", short_hex(each.world) if each.world else "none"
        key = day, deploy, each.rules, str(each.asks), each.is_of_a_deploy
        groups[key] = groups.get(key, 0) + 1
    if groups:
        print_table(
            ("day", "world", "resumes", "asks for", "about", "how often"),
            [
                (day, deploy, str(count), asks, ", ".join(rules), "once" if once else "each")
                for (day, deploy, rules, asks, once), count in groups.items()
            ],
        )
        print_line("")
    told = count_text(found.resumes, "resume")
    print_line(
        f"{told} in {days} days; the policy '{visible(found.policy.name)}' would have asked about "
        f"{len(found.asking):,}, and differently than the policy of the time about "
        f"{found.differing:,}."
    )
    if any(once for *_, once in groups):
        print_line("'once': one rollout covers all threads, and later worlds with the same change.")
    if found.failures:
        print_line((Styled("NOT READABLE", "bad"), f": {len(found.failures):,} of the threads"))
        print_table(
            ("thread", "message"), [(visible(name), visible(said)) for name, said in found.failures]
        )


@policy.command("apply")
@click.argument("file", metavar="FILE|dev|solo|team|strict")
@click.option(
    "--namespace",
    default=ANY_NAMESPACE,
    metavar="NAME",
    help="The namespace; without it, every namespace that has no policy of its own.",
)
@click.option("--reason", metavar="TEXT", help="Why; it is recorded in the roster.")
@store_options()
@json_option
def apply(
    file: str, *, namespace: str, reason: str | None, where: StoreOptions, as_json: bool
) -> None:
    """Put a policy in force: a shipped one, or FILE.

    Needs the root key on this machine. Open requests become void: they were made under another
    policy.
    """
    source = policy_bytes(file)
    with working("signing the roster"):
        applied = where.admin.policy.apply(source, namespace=namespace, reason=reason)
    people = where.admin.policy.approvers(applied.policy, namespace=namespace)
    if as_json:
        print_json(
            {
                "namespace": applied.namespace,
                "name": applied.policy.name,
                "before": applied.before,
                "after": applied.policy.digest,
                "before_name": applied.before_name,
                "roster": applied.roster,
                "approvers": people,
            }
        )
        return
    changed = applied.roster is not None
    print_line(Styled("In force from now on." if changed else "In force already.", "good"))
    everywhere = applied.namespace == ANY_NAMESPACE
    print_fields(
        [
            ("policy", _changed(applied) if changed else visible(applied.policy.name)),
            ("namespace", "all without their own" if everywhere else visible(applied.namespace)),
            ("digest", applied.policy.digest),
            ("roster", "no new one" if applied.roster is None else str(applied.roster)),
        ]
    )
    if changed:
        print_line("Open requests are void: resuming again makes new ones.")
    print_lines(approver_lines(people, namespace))


def _changed(applied: AppliedPolicy) -> str:
    """Describe a change of policy: `solo -> team`, or what is known of it."""
    before = "none" if applied.before is None else f"an unreadable one ({applied.before[:12]})"
    if applied.before_name is not None:
        before = visible(applied.before_name)
    after = visible(applied.policy.name)
    return f"{before} -> {after}" + (" (changed)" if before == after else "")
