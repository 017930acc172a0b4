# SPDX-License-Identifier: Apache-2.0
"""`sealpoint status`, `doctor` and `stores`: how a store stands here, and which there are."""

from dataclasses import asdict

import click

from sealpoint.api import Diagnosis, Severity, StoreStatus, diagnose_anchor, known_stores
from sealpoint.api.checks import error_finding
from sealpoint.cli._policy import approver_lines
from sealpoint.cli.options import Verb, common_option, json_option
from sealpoint.cli.stores import StoreOptions, store_options
from sealpoint.cli.terminal import (
    print_code,
    print_fields,
    print_json,
    print_line,
    print_lines,
    print_table,
    working,
)
from sealpoint.errors import SealpointError
from sealpoint.views.documents import diagnosis_document, status_document
from sealpoint.views.words import Styled, short_hex
from sealpoint.world import visible


@click.command(cls=Verb)
@store_options("namespace", "identity")
@json_option
def status(*, where: StoreOptions, as_json: bool) -> None:
    """Say how a store stands here: keys, anchor, policy, who can approve, modes of files.

    With --identity, or SEALPOINT_IDENTITY, that key has to be here. Threads are not looked at. It
    only looks. The exit status is 0 if there is nothing to repair, else that of the first
    fault. Whether it is set up as production asks for, sealpoint doctor says.
    """
    with working("looking"):
        settings = where.settings
        found = where.admin.status(identity=settings.identity, namespace=settings.namespace)
    if as_json:
        print_json(status_document(found))
    else:
        _print(found)
    if found.faults:
        click.get_current_context().exit(found.faults[0].exit_status)


def _print(found: StoreStatus) -> None:
    fields = {
        "store": found.url,
        "id": found.store,
        "fingerprint": found.fingerprint,
        "keys here": ", ".join(found.keys) or "none",
        "anchor": found.anchor,
        "shared anchor": found.shared_anchor,
        "threads": None if found.threads is None else f"{found.threads:,} that the anchor knows",
        "roster": None if found.roster is None else str(found.roster),
        **_policy_fields(found),
        "group": found.group or "none: this user alone",
    }
    print_fields([(name, text) for name, text in fields.items() if text is not None])
    if found.approvers is not None and found.approvers.needed:
        print_line("")
        print_lines(approver_lines(found.approvers))
    print_line("")
    _print_faults(found)


def _policy_fields(found: StoreStatus) -> dict[str, str]:
    """The policy in force, and what it asks for."""
    if found.roster is None:
        return {"policy": "not known"}
    if found.policy is None:
        return {"policy": "none: only ordinary continuation is allowed"}
    asks = (f"{what}: {', '.join(rules)}" for what, rules in (found.asks or {}).items())
    return {"policy": visible(found.policy), "asks for": "; ".join(asks) or "nothing"}


def _print_faults(found: StoreStatus) -> None:
    if found.ok:
        print_line(Styled("Nothing to repair.", "good"))
    for fault in found.faults:
        print_line((Styled("To repair", "bad"), f": {fault.message} [{fault.code}]"))
        if fault.repair:
            print_code([f"  {fault.repair}"])


FINDINGS_STATUS = 96
"""The exit status of `doctor` if there is something above a note."""


@click.command(cls=Verb)
@click.option(
    "--anchor", metavar="URL", help="Look at the database of a shared anchor, and at nothing else."
)
@store_options("namespace", unless="anchor")
@json_option
def doctor(*, where: StoreOptions | None, anchor: str | None, as_json: bool) -> None:
    """Check how a store is set up, and print how to fix each finding.

    Files, keys, anchor, policy, clock, and for PostgreSQL roles, grants, row security and the
    server. It only looks, and opens no private key. The exit status is 0 if nothing is above a
    note, else 96.
    """
    with working("looking"):
        found = diagnose_anchor(str(anchor)) if where is None else _diagnosis(where)
    if as_json:
        print_json(diagnosis_document(found))
    else:
        _print_diagnosis(found)
    if not found.ok:
        click.get_current_context().exit(FINDINGS_STATUS)


def _diagnosis(where: StoreOptions) -> Diagnosis:
    try:
        return where.admin.doctor(namespace=where.settings.namespace)
    except SealpointError as error:  # not even its files could be looked for
        return Diagnosis(url=where.url, findings=(error_finding(error),))


_ANSWERS = {
    True: Styled("yes", "good"),
    False: Styled("no", "warning"),
    None: Styled("-", "quiet"),
}
_SEVERITIES = {Severity.CRITICAL: "bad", Severity.WARNING: "warning", Severity.NOTE: "quiet"}


def _print_diagnosis(found: Diagnosis) -> None:
    print_line(found.url)
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
        print_line(Styled("Nothing above a note was found.", "good"))


@click.command(cls=Verb)
@common_option("config_dir")
@common_option("state_dir")
@json_option
def stores(*, config_dir: str | None, state_dir: str | None, as_json: bool) -> None:
    """List the stores that this machine knows: pin, keys, anchor, and whether the data is there.

    It only looks at files: no store is opened, and no key.
    """
    found = known_stores(config_dir=config_dir, state_dir=state_dir)
    if as_json:
        print_json([asdict(each) for each in found])
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
