# SPDX-License-Identifier: Apache-2.0
"""`sealpoint verify`: every entry, body and blob of every thread."""

import click

from sealpoint.audit import UNJUSTIFIED, Progress, Report
from sealpoint.cli._names import shown_name
from sealpoint.cli._options import json_option
from sealpoint.cli._store import Where, store_options
from sealpoint.cli._terminal import Styled, print_json, print_line, print_table, working
from sealpoint.errors import Tampered
from sealpoint.ledger import STORE_CHAIN

__all__ = ["verify"]

_ID_DIGITS = 12


@click.command()
@store_options()
@json_option
def verify(*, where: Where, as_json: bool) -> None:
    """Verify every entry, body and blob of a store.

    In all namespaces; writes nothing. The exit status is 0 if all is as it was written and was
    justified when it was decided, else 30.
    """
    with where.reading() as store, working("verifying threads") as report_progress:

        def progress(done: Progress) -> None:
            report_progress(
                done.threads,
                done.threads_total,
                f"{done.threads:,} of {done.threads_total:,}, {done.entries:,} entries",
            )

        report = store.verify(progress)
    if as_json:
        print_json(report.as_dict())
    else:
        _print(report)
    if not report.ok:
        click.get_current_context().exit(Tampered.exit_status)


def _shown(thread: str) -> str:
    return "(store chain)" if thread == STORE_CHAIN.hex() else thread[:_ID_DIGITS]


def _print(report: Report) -> None:
    if report.findings:
        print_table(
            ("thread", "reading is", "code", "message"),
            [
                (
                    shown_name(finding.name) if finding.name else _shown(finding.thread),
                    Styled("REFUSED", "bad") if finding.refuses else "allowed",
                    finding.code,
                    finding.message,
                )
                for finding in report.findings
            ],
        )
        print_line("")
    refused = sum(finding.refuses for finding in report.findings)
    unjustified = sum(finding.code == UNJUSTIFIED for finding in report.findings)
    remarks = len(report.findings) - refused - unjustified
    verified = f"{report.entries:,} {'entry' if report.entries == 1 else 'entries'} verified"
    beside = f", {unjustified:,} decisions not justified" if unjustified and refused else ""
    beside += f", {remarks:,} worth a look" if remarks else ""
    if report.ok:
        print_line((Styled("All good", "good"), f": {verified}{beside}."))
    elif refused:
        found = f"{refused:,} finding{'' if refused == 1 else 's'}"
        print_line((Styled("NOT as it was written", "bad"), f": {found}{beside}; {verified}."))
    else:
        found = f"{unjustified:,} finding{'' if unjustified == 1 else 's'}"
        print_line((Styled("NOT justified", "bad"), f": {found}{beside}; {verified}."))
