# SPDX-License-Identifier: Apache-2.0
"""`sealpoint audit` and `why`: who did what, and why it was allowed.

Text that someone wrote into the store is shown with unprintable characters made visible.
"""

import json
from datetime import datetime

import click

from sealpoint.api import AuditRecord, Why, WhyApproval
from sealpoint.cli.options import Verb, json_option, time_option
from sealpoint.cli.references import thread_text
from sealpoint.cli.stores import StoreOptions, bundle_options, reading_bundle, store_options
from sealpoint.cli.terminal import (
    print_code,
    print_fields,
    print_json,
    print_line,
    print_lines,
    print_table,
    print_text,
    working,
)
from sealpoint.errors import IntegrityError
from sealpoint.ledger import Kind
from sealpoint.views.requests import measure_text
from sealpoint.views.words import Styled, short_hex, when
from sealpoint.world import visible


def _who(record: AuditRecord) -> str:
    by = visible(record.by)
    return by if record.person in ("", record.by) else f"{by} ({visible(record.person)})"


def _print_record(record: AuditRecord) -> None:
    """Print a line with the writer, the place and the time of an entry, then its description."""
    finding = record.finding is not None
    at = "" if record.time is None else f"{when(record.time)}  "
    by = _who(record)
    what = Styled("FINDING", "bad") if finding else Styled(record.kind, "heading")
    print_line(
        (
            Styled(at, "quiet"),
            thread_text(record.thread, record.thread_id),
            f" {record.seq}  ",
            what,
            f" by {by}" if by else "",
            Styled(f", entry {short_hex(record.entry)}" if record.entry else "", "quiet"),
        ),
        hang=2,
    )
    print_line(("  ", Styled(record.summary, "bad") if finding else record.summary))


@click.command(cls=Verb)
@click.option("--thread", metavar="NAME", help="Only this thread.")
@click.option(
    "--actor",
    metavar="NAME",
    help="Only what this identity or person did or said, or what was done for it.",
)
@click.option(
    "--kind",
    type=click.Choice([kind.word for kind in Kind]),
    metavar="KIND",
    help="Only this kind of entry, such as resume, approval or pause.",
)
@time_option(
    "--since", past=True, help="Only entries from then on: 2026-11-30, or 7d for a week ago."
)
@time_option("--until", past=True, help="Only entries before then.")
@bundle_options
@store_options("namespace", unless="trust")
@json_option
def audit(
    *,
    thread: str | None,
    actor: str | None,
    kind: str | None,
    since: datetime | None,
    until: datetime | None,
    bundle: str | None,
    trust: str | None,
    where: StoreOptions | None,
    as_json: bool,
) -> None:
    """Show who did what and when, oldest first; every entry is verified.

    Prints two lines for each entry, or with --json one document. If a thread does not verify, the
    command omits its entries from there on, and exits with 30.
    """
    found = told = 0
    with reading_bundle(bundle, trust, where) as store, working("reading the history"):
        for record in store.audit(thread=thread, actor=actor, kind=kind, since=since, until=until):
            found += record.finding is not None
            if as_json:
                print_text(f"{json.dumps(record.as_dict())}\n")
            else:
                _print_record(record)
            told += 1
    if not told and not as_json:
        print_line("Nothing was found.")
    if found:
        click.get_current_context().exit(IntegrityError.exit_status)


@click.command(cls=Verb)
@click.argument("reference", metavar="REQUEST|ENTRY|THREAD")
@click.option("--full", is_flag=True, help="Print the policy of that time as well.")
@bundle_options
@store_options("namespace", unless="trust")
@json_option
def why(
    reference: str,
    *,
    full: bool,
    bundle: str | None,
    trust: str | None,
    where: StoreOptions | None,
    as_json: bool,
) -> None:
    """Explain a decision: the rules that applied, the facts, and who approved.

    REQUEST is the id of a request, ENTRY the hash of an entry, as requests and audit show them;
    the first 8 digits or more are enough. THREAD is the name of a thread, for its last decision.
    """
    with reading_bundle(bundle, trust, where) as store, working("reading the history"):
        found = store.why(reference)
    if as_json:
        print_json(found.as_dict())
    else:
        _print_why(found, full=full)


def _approval_cells(approval: WhyApproval) -> tuple[str | Styled, ...]:
    by = f"{visible(approval.identity)} ({visible(approval.person)})"
    return (
        when(approval.time),
        approval.verdict,
        by if approval.identity else "nobody of the roster",
        "yes" if approval.counts else Styled("no", "warning"),
        approval.reason,
    )


def _print_why(found: Why, *, full: bool) -> None:
    subject = found.subject
    print_fields(
        [
            ("thread", thread_text(subject.thread, subject.thread_id)),
            ("entry", f"{subject.seq}, {subject.entry}"),
            ("kind", subject.kind),
            ("by", _who(subject)),
            ("time", "" if subject.time is None else when(subject.time)),
        ]
    )
    print_lines(["", (Styled("decision", "heading"), f": {found.decision}")])
    for words in found.unjustified:
        print_line((Styled("NOT justified", "bad"), f": {visible(words)}"))
    if found.rules:
        print_line("")
        print_table(
            ("rule", "asks for", "because"),
            [(each.rule, measure_text(each.measure), each.words) for each in found.rules],
        )
    if found.facts:
        print_line("")
        print_fields(found.facts)
    if found.approvals:
        print_line("")
        headings = ("time", "verdict", "by", "counts", "reason")
        print_table(headings, [_approval_cells(each) for each in found.approvals])
    print_lines(["", Styled("entries", "heading")])
    for record in found.entries:
        _print_record(record)
    if found.policy is not None:
        policy = found.policy
        print_lines(["", (Styled("policy", "heading"), f" {policy.name}, {policy.digest}")])
        if full:
            print_code(f"  {line}" for line in policy.source.decode().splitlines())
        else:
            print_line(Styled("--full prints it.", "quiet"))
