# SPDX-License-Identifier: Apache-2.0
"""`sealpoint audit`, `why`, `export` and `verify-bundle`: who did what, why, and proof of it.

Texts that somebody wrote into the store are shown with everything made visible that does not
print. `verify-bundle` needs neither the store nor its directories, only a pin.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import click

from sealpoint.api import AuditRecord, BundleReport, Why, verify_bundle
from sealpoint.audit import UNJUSTIFIED, Progress, Report
from sealpoint.cli._options import Verb, json_option
from sealpoint.cli._references import when
from sealpoint.cli._store import StoreOptions, operator_option, store_options
from sealpoint.cli._terminal import (
    Styled,
    measure_text,
    print_code,
    print_fields,
    print_json,
    print_line,
    print_lines,
    print_table,
    print_text,
    shown_name,
    working,
)
from sealpoint.errors import Tampered, UsageError
from sealpoint.ledger import STORE_CHAIN, Kind
from sealpoint.world import visible

_ID_DIGITS = 12
_STORE_CHAIN = "(store chain)"


def _time(_: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """A day or an instant as ISO 8601 writes them; in UTC unless it says otherwise."""
    try:
        found = None if value is None else datetime.fromisoformat(value)
    except ValueError as exc:
        raise UsageError(
            f"--{param.name}: expected a time such as 2026-11-30 or 2026-11-30T14:00, "
            f"found {value!r}"
        ) from exc
    if found is not None and found.tzinfo is None:
        return found.replace(tzinfo=UTC)
    return found


def _thread(record: AuditRecord) -> str:
    if record.thread_id == STORE_CHAIN.hex():
        return _STORE_CHAIN
    return shown_name(record.thread) if record.thread else record.thread_id[:_ID_DIGITS]


def _who(record: AuditRecord) -> str:
    by = visible(record.by)
    return by if record.person in ("", record.by) else f"{by} ({visible(record.person)})"


def _print_record(record: AuditRecord) -> None:
    """Print what an entry says below a line with who wrote it, where and when."""
    finding = record.finding is not None
    at = "" if record.time is None else f"{when(record.time)}  "
    by = _who(record)
    what = Styled("FINDING", "bad") if finding else Styled(record.kind, "heading")
    print_line(
        (
            Styled(at, "quiet"),
            f"{_thread(record)} {record.seq}  ",
            what,
            f" by {by}" if by else "",
            Styled(f", entry {record.entry[:_ID_DIGITS]}" if record.entry else "", "quiet"),
        ),
        hang=2,
    )
    print_line(("  ", Styled(record.summary, "bad") if finding else record.summary))


@click.command(cls=Verb)
@click.option("--thread", metavar="NAME", help="Only this thread.")
@click.option("--actor", metavar="NAME", help="Only what this identity or person did or said.")
@click.option(
    "--kind",
    type=click.Choice([str(kind) for kind in Kind]),
    metavar="KIND",
    help="Only this kind of entry, such as resume, approval or pause.",
)
@click.option(
    "--since", metavar="TIME", callback=_time, help="Only from this time on, such as 2026-11-30."
)
@click.option("--until", metavar="TIME", callback=_time, help="Only before this time.")
@store_options("namespace")
@json_option
def audit(
    *,
    thread: str | None,
    actor: str | None,
    kind: str | None,
    since: datetime | None,
    until: datetime | None,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Tell who did what and when, oldest first; every entry is verified.

    Two lines for each entry; with --json one document. The exit status is 30 if a thread does not
    verify: what it holds from there on is not told.
    """
    found = told = 0
    with where.reading() as store, working("reading the history"):
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
        click.get_current_context().exit(Tampered.exit_status)


@click.command(cls=Verb)
@click.argument("reference", metavar="REQUEST|ENTRY")
@click.option("--full", is_flag=True, help="Print the policy of that time as well.")
@store_options("namespace")
@json_option
def why(reference: str, *, full: bool, where: StoreOptions, as_json: bool) -> None:
    """Explain a decision: the rules that applied, the facts, and who approved.

    REQUEST is the id of a request, ENTRY the hash of an entry, as requests and audit show them;
    the first 8 digits or more are enough.
    """
    with where.reading() as store, working("reading the history"):
        found = store.why(reference)
    if as_json:
        print_json(found.as_dict())
    else:
        _print_why(found, full=full)


def _print_why(found: Why, *, full: bool) -> None:
    subject = found.subject
    print_fields(
        [
            ("thread", _thread(subject)),
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
        print_table(
            ("time", "verdict", "by", "counts", "reason"),
            [
                (
                    when(each.time),
                    each.verdict,
                    f"{visible(each.identity)} ({visible(each.person)})"
                    if each.identity
                    else "nobody of the roster",
                    "yes" if each.counts else Styled("no", "warning"),
                    each.reason,
                )
                for each in found.approvals
            ],
        )
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


@click.command(cls=Verb)
@click.option("--output", required=True, metavar="FILE", help="Write the bundle to FILE.")
@click.option(
    "--thread", "threads", multiple=True, metavar="NAME", help="Only this thread; repeatable."
)
@click.option("--payloads", is_flag=True, help="Put the states in as well.")
@operator_option("Whose key signs the bundle.")
@store_options("namespace")
@json_option
def export(
    *,
    output: str,
    threads: tuple[str, ...],
    payloads: bool,
    signer: str,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Write a self-contained evidence bundle of threads, signed by who exports it.

    It holds who did what, with every signature, and no state unless --payloads is given. Whoever
    has the pin verifies it elsewhere: sealpoint verify-bundle FILE --trust PIN
    """
    size = 0
    with where.writing(signer) as store, working("exporting"), _written(output) as opened:
        for piece in store.export(threads or None, payloads=payloads):
            size += opened.write(piece)
    if as_json:
        print_json({"output": output, "bytes": size, "threads": list(threads) or None})
    else:
        print_fields([("bundle", output), ("size", f"{size:,} bytes")])


@contextmanager
def _written(output: str) -> Iterator[BinaryIO]:
    """A file that takes its place only when it is whole."""
    partial = Path(f"{output}.partial")
    try:
        with partial.open("wb") as opened:
            yield opened
        partial.replace(output)
    except OSError as exc:
        found = exc.strerror or type(exc).__name__
        raise UsageError(f"--output {output!r}: expected a writable file, found {found}") from exc
    finally:
        partial.unlink(missing_ok=True)


@click.command("verify-bundle", cls=Verb)
@click.argument("file", metavar="FILE")
@click.option(
    "--trust",
    metavar="PIN",
    help="The pin of the store that it is about; else the one that belongs to --store.",
)
@store_options(unless="trust")
@json_option
def verify_bundle_(
    file: str, *, trust: str | None, where: StoreOptions | None, as_json: bool
) -> None:
    """Verify an evidence bundle with the pin alone, anywhere, without its store.

    The exit status is 0 if all is as it was written and justified, 30 if a resume or handoff was
    not justified; a bundle that does not verify ends with the status of its error.
    """
    pin = trust if where is None else where.files.pin()
    if pin is None:
        raise UsageError("--trust: expected the file of a pin, found none")
    with working("verifying the bundle"), _opened(file) as opened:
        report = verify_bundle(opened, pin)
    if as_json:
        print_json(report.as_dict())
    else:
        _print_report(report)
    if not report.ok:
        click.get_current_context().exit(Tampered.exit_status)


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    try:
        with Path(file).open("rb") as opened:
            yield opened
    except OSError as exc:
        found = exc.strerror or type(exc).__name__
        raise UsageError(f"bundle {file!r}: expected a readable file, found {found}") from exc


def _print_report(report: BundleReport) -> None:
    by = visible(report.exported_by)
    print_fields(
        [
            ("store", report.store),
            ("namespace", visible(report.namespace)),
            ("exported by", f"{by} ({visible(report.exported_person)})"),
            ("exported at", when(report.exported_at)),
            ("roster", str(report.roster)),
            ("entries", f"{report.entries:,}"),
        ]
    )
    print_line("")
    print_table(
        ("thread", "proven up to entry", "written", "hash"),
        [
            (
                shown_name(thread.name) if thread.name else thread.thread[:_ID_DIGITS],
                str(thread.seq),
                when(thread.time),
                thread.entry,
            )
            for thread in report.threads
        ],
    )
    print_line("")
    for finding in report.findings:
        name = shown_name(finding.name) if finding.name else finding.thread[:_ID_DIGITS]
        print_line((Styled("NOT justified", "bad"), f": {name}: {visible(finding.message)}"))
    if report.ok:
        print_line((Styled("All good", "good"), f": every entry verified. {report.claim}"))
    else:
        print_line(f"Every entry verified. {report.claim}")


# ---------------------------------------------------------------------- verify
# `sealpoint verify`: every entry, body and blob of every thread.


@click.command(cls=Verb)
@store_options()
@json_option
def verify(*, where: StoreOptions, as_json: bool) -> None:
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
