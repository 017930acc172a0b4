# SPDX-License-Identifier: Apache-2.0
"""`sealpoint doctor` and `stores`: how a store stands here, and which there are."""

import click

from sealpoint.api import Diagnosis, Severity, StoreFacts, diagnose_anchor, known_stores
from sealpoint.api.checks import error_finding
from sealpoint.cli.options import Verb, common_option, json_option
from sealpoint.cli.stores import StoreOptions, store_options
from sealpoint.cli.terminal import (
    print_code,
    print_fields,
    print_json,
    print_line,
    print_table,
    working,
)
from sealpoint.errors import SealpointError
from sealpoint.views.words import Styled, short_hex
from sealpoint.world import json_form, visible

FINDINGS_STATUS = 96
"""The exit status of `doctor` if something is critical, or with `--strict` if something warns."""


@click.command(cls=Verb)
@click.option(
    "--anchor", metavar="URL", help="Look at the database of a shared anchor, and at nothing else."
)
@click.option("--quick", is_flag=True, help="Only check whether the store can be used here.")
@click.option("--strict", is_flag=True, help="Exit with 96 for warnings too.")
@store_options("namespace", "identity", unless="anchor")
@json_option
def doctor(
    *, where: StoreOptions | None, anchor: str | None, quick: bool, strict: bool, as_json: bool
) -> None:
    """Describe a store as this machine sees it, check its setup, and print a fix for each finding.

    Checks files, keys, anchor, policy and clock, and for PostgreSQL roles, grants, row security and
    the server. Changes nothing and opens no private key. --identity, or SEALPOINT_IDENTITY,
    requires that key to be here. --quick reads no thread and skips the checklist: a probe. The exit
    status is 96 if a finding is critical, else 0: warnings and notes are advice.
    """
    with working("looking"):
        found = diagnose_anchor(str(anchor)) if where is None else _diagnosis(where, quick=quick)
    if as_json:
        print_json({**json_form(found), "ok": found.ok})
    else:
        _print_diagnosis(found)
    fails = {Severity.CRITICAL, Severity.WARNING} if strict else {Severity.CRITICAL}
    if any(finding.severity in fails for finding in found.findings):
        click.get_current_context().exit(FINDINGS_STATUS)


def _diagnosis(where: StoreOptions, *, quick: bool) -> Diagnosis:
    settings = where.settings
    try:
        return where.admin.doctor(
            namespace=settings.namespace, identity=settings.identity, quick=quick
        )
    except SealpointError as error:  # not even its files could be looked for
        return Diagnosis(url=where.url, findings=(error_finding(error),))


def _facts(facts: StoreFacts) -> dict[str, str | None]:
    """What is known about the store, by the name that people are shown."""
    return {
        "id": facts.store,
        "fingerprint": facts.fingerprint,
        "keys here": ", ".join(facts.keys) or "none",
        "anchor": facts.anchor,
        "shared anchor": facts.shared_anchor,
        "threads": None if facts.threads is None else f"{facts.threads:,} that the anchor knows",
        "roster": None if facts.roster is None else str(facts.roster),
        **_policy_fields(facts),
        "group": facts.group or "none: this user alone",
    }


def _policy_fields(facts: StoreFacts) -> dict[str, str | None]:
    """The policy in force, what it asks for, and of whom."""
    if facts.approvers is None or facts.asks is None:
        return {"policy": "not known"}
    if facts.policy is None:
        return {"policy": "none: only ordinary continuation is allowed"}
    asks = (f"{what}: {', '.join(rules)}" for what, rules in facts.asks.items())
    people = ", ".join(visible(each) for each in facts.approvers.people) or "nobody"
    return {
        "policy": visible(facts.policy),
        "asks for": "; ".join(asks) or "nothing",
        "can approve": people if facts.approvers.needed else None,
    }


_ANSWERS = {
    True: Styled("yes", "good"),
    False: Styled("no", "warning"),
    None: Styled("-", "quiet"),
}
_SEVERITIES = {Severity.CRITICAL: "bad", Severity.WARNING: "warning", Severity.NOTE: "quiet"}


def _print_diagnosis(found: Diagnosis) -> None:
    fields = {"store": found.url, **({} if found.facts is None else _facts(found.facts))}
    print_fields([(name, text) for name, text in fields.items() if text is not None])
    if found.checks:
        print_line("")
    for check in found.checks:
        answer = _ANSWERS[check.holds]
        print_line(("  ", answer, " " * (5 - len(answer.text)), f"{check.claim} [{check.code}]"))
    print_line("")
    for finding in found.findings:
        severity = Styled(str(finding.severity), _SEVERITIES[finding.severity])
        print_line((severity, f": {visible(finding.reason)} [{finding.code}]"))
        if finding.fix:
            print_code([f"  {finding.fix}"])
    if not found.findings:
        print_line(Styled("Nothing was found.", "good"))
    elif found.ok:
        print_line(Styled("Nothing critical was found.", "good"))


@click.command(cls=Verb)
@common_option("config_dir")
@common_option("state_dir")
@json_option
def stores(*, config_dir: str | None, state_dir: str | None, as_json: bool) -> None:
    """List the stores that this machine knows: pin, keys, anchor, and whether the data is there.

    Only looks at files, and opens no store and no key.
    """
    found = known_stores(config_dir=config_dir, state_dir=state_dir)
    if as_json:
        print_json(found)
        return
    if not found:
        print_line("This machine knows no store: sealpoint init, or sealpoint trust import.")
        return
    print_table(
        ("store", "data", "pin", "anchor", "keys here"),
        [
            (
                each.url,
                _yes({True: "there", False: "GONE", None: "not known"}[each.data], each.data),
                _yes(short_hex(each.store.partition(":")[2]) if each.store else "none", each.store),
                _yes("here" if each.anchor else "none", each.anchor),
                ", ".join(each.keys) or "none",
            )
            for each in found
        ],
    )
    for each in found:
        if each.fault:
            print_line(Styled(f"{each.url}: {each.fault}", "warning"))


def _yes(text: str, good: object) -> str | Styled:
    return text if good else Styled(text, "warning")
