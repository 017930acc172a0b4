# SPDX-License-Identifier: Apache-2.0
"""`sealpoint verify`, `export` and `verify-bundle`: proof of the content of a store.

`verify` reads every entry, body and blob of every thread. `verify-bundle` needs neither the store
nor its directories, only a pin.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from sealpoint.api import BundleReport, verify_bundle
from sealpoint.audit import UNJUSTIFIED, Progress, Report
from sealpoint.cli.options import Verb, json_option
from sealpoint.cli.references import thread_text
from sealpoint.cli.stores import StoreOptions, operator_option, store_options
from sealpoint.cli.terminal import print_fields, print_json, print_line, print_table, working
from sealpoint.errors import IntegrityError, UsageError
from sealpoint.views.words import Styled, count_text, when
from sealpoint.world import visible


@click.command(cls=Verb)
@store_options()
@json_option
def verify(*, where: StoreOptions, as_json: bool) -> None:
    """Verify every entry, body and blob of a store.

    In all namespaces; writes nothing. The exit status is 0 if everything verifies and every
    decision was justified when it was made, else 30.
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
        _print_findings(report)
    if not report.ok:
        click.get_current_context().exit(IntegrityError.exit_status)


def _print_findings(report: Report) -> None:
    if report.findings:
        print_table(
            ("thread", "reading is", "code", "message"),
            [
                (
                    thread_text(finding.name, finding.thread),
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
    verified = f"{count_text(report.entries, 'entry', 'entries')} verified"
    beside = f", {remarks:,} worth a look" if remarks else ""
    if report.ok:
        print_line((Styled("All good", "good"), f": {verified}{beside}."))
        return
    if refused and unjustified:
        beside = f", {count_text(unjustified, 'decision')} not justified{beside}"
    words = "NOT as it was written" if refused else "NOT justified"
    found = count_text(refused or unjustified, "finding")
    print_line((Styled(words, "bad"), f": {found}{beside}; {verified}."))


@click.command(cls=Verb)
@click.option("--output", required=True, metavar="FILE", help="Write the bundle to FILE.")
@click.option(
    "--thread", "threads", multiple=True, metavar="NAME", help="Only this thread; repeatable."
)
@click.option("--payloads", is_flag=True, help="Include the states.")
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
    """Write a self-contained evidence bundle of threads, signed by the identity that exports it.

    The bundle shows who did what, with every signature, and holds no state unless --payloads is
    given. Anyone with the pin can verify it elsewhere: sealpoint verify-bundle FILE --trust PIN
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
    """Open a file that gets its name only when it is complete."""
    partial = Path(f"{output}.partial")
    try:
        with partial.open("wb") as opened:
            yield opened
        partial.replace(output)
    except OSError as exc:
        found = exc.strerror or type(exc).__name__
        raise UsageError(
            f"--output {output!r}: the file cannot be written: {found}",
            hint="Check the path and who may use it, or name another file.",
        ) from exc
    finally:
        partial.unlink(missing_ok=True)


@click.command("verify-bundle", cls=Verb)
@click.argument("file", metavar="FILE")
@click.option(
    "--trust",
    metavar="PIN",
    help="The pin of the bundle's store; else the pin of --store.",
)
@store_options(unless="trust")
@json_option
def verify_bundle_(
    file: str, *, trust: str | None, where: StoreOptions | None, as_json: bool
) -> None:
    """Verify an evidence bundle with the pin alone, anywhere, without its store.

    The exit status is 0 if everything verifies and was justified, 30 if a resume or handoff was not
    justified; a bundle that does not verify ends with the status of its error.
    """
    pin = trust if where is None else where.files.pin()
    if pin is None:
        raise UsageError("--trust: give the file of a pin")
    with working("verifying the bundle"), _opened(file) as opened:
        report = verify_bundle(opened, pin)
    if as_json:
        print_json(report.as_dict())
    else:
        _print_report(report)
    if not report.ok:
        click.get_current_context().exit(IntegrityError.exit_status)


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    try:
        with Path(file).open("rb") as opened:
            yield opened
    except OSError as exc:
        found = exc.strerror or type(exc).__name__
        raise UsageError(
            f"bundle {file!r}: the file cannot be read: {found}",
            hint="Check the path and who may use it, or name another file.",
        ) from exc


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
                thread_text(thread.name, thread.thread),
                str(thread.seq),
                when(thread.time),
                thread.entry,
            )
            for thread in report.threads
        ],
    )
    print_line("")
    for finding in report.findings:
        name = thread_text(finding.name, finding.thread)
        print_line((Styled("NOT justified", "bad"), ": ", name, f": {visible(finding.message)}"))
    if report.ok:
        print_line((Styled("All good", "good"), f": every entry verified. {report.claim}"))
    else:
        print_line(f"Every entry verified. {report.claim}")
