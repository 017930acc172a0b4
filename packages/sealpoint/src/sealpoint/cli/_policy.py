# SPDX-License-Identifier: Apache-2.0
"""`sealpoint policy`: show, check and apply the policy, which is a file."""

import click

from sealpoint.api import AppliedPolicy, Approvers
from sealpoint.cli._input_files import read_document
from sealpoint.cli.options import VerbGroup, json_option
from sealpoint.cli.stores import StoreOptions, store_options
from sealpoint.cli.terminal import (
    print_document,
    print_fields,
    print_json,
    print_line,
    print_lines,
    print_table,
    working,
)
from sealpoint.durations import duration_text
from sealpoint.errors import PolicyInvalid
from sealpoint.gate import SHIPPED_POLICIES, Policy, shipped_policy
from sealpoint.limits import POLICY_BYTES_MAX
from sealpoint.signing import ANY_NAMESPACE
from sealpoint.views.documents import policy_document
from sealpoint.views.requests import measure_text
from sealpoint.views.words import Styled
from sealpoint.world import visible

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
    """Show, check and apply the policy, which decides how saved runs may resume."""


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


@policy.command("apply")
@click.argument("file", metavar="FILE|dev|solo|team")
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
