# SPDX-License-Identifier: Apache-2.0
"""`sealpoint status`: how a store stands on this machine, and what to repair."""

from dataclasses import asdict

import click

from sealpoint.api import StoreStatus
from sealpoint.cli._options import Verb, json_option
from sealpoint.cli._policy import approver_lines, approvers_document
from sealpoint.cli._store import StoreOptions, store_options
from sealpoint.cli._terminal import (
    Styled,
    print_code,
    print_fields,
    print_json,
    print_line,
    print_lines,
    working,
)
from sealpoint.world import visible


@click.command(cls=Verb)
@store_options("namespace", "identity")
@json_option
def status(*, where: StoreOptions, as_json: bool) -> None:
    """Say how a store stands here: keys, anchor, policy, who can approve, modes of files.

    With --identity, or SEALPOINT_IDENTITY, that key has to be here. Threads are not looked at. It
    only looks. The exit status is 0 if there is nothing to repair, else that of the first
    fault.
    """
    with working("looking"):
        settings = where.settings
        found = where.admin.status(identity=settings.identity, namespace=settings.namespace)
    if as_json:
        people = None if found.approvers is None else approvers_document(found.approvers)
        print_json({**asdict(found), "approvers": people, "ok": found.ok})
    else:
        _print(found)
    if found.faults:
        click.get_current_context().exit(found.faults[0].exit_status)


def _print(found: StoreStatus) -> None:
    policy = "none: only ordinary continuation is allowed"
    if found.roster is None:
        policy = "not known"
    fields = {
        "store": found.url,
        "id": found.store,
        "fingerprint": found.fingerprint,
        "keys here": ", ".join(found.keys) or "none",
        "anchor": found.anchor,
        "threads": None if found.threads is None else f"{found.threads:,} that the anchor knows",
        "roster": None if found.roster is None else str(found.roster),
        "policy": policy if found.policy is None else visible(found.policy),
        "group": found.group or "none: this user alone",
    }
    print_fields([(name, text) for name, text in fields.items() if text is not None])
    if found.approvers is not None and found.approvers.needed:
        print_line("")
        print_lines(approver_lines(found.approvers))
    print_line("")
    if found.ok:
        print_line(Styled("Nothing to repair.", "good"))
    for fault in found.faults:
        print_line((Styled("To repair", "bad"), f": {fault.message} [{fault.code}]"))
        if fault.repair:
            print_code([f"  {fault.repair}"])
