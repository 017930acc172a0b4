# SPDX-License-Identifier: Apache-2.0
"""`sealpoint scan`: the code that model files would run, without loading them.

It needs no store, no key and no framework. A link to a file is followed to any target, since a
loader follows it; folders are walked without leaving them, and a link to a folder only passes if
that folder was walked as well.
"""

import fnmatch
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

import sealpoint
from sealpoint.cli.options import Verb, json_option
from sealpoint.cli.terminal import (
    json_text,
    print_json,
    print_line,
    print_lines,
    print_note,
    print_text,
    working,
)
from sealpoint.errors import UsageError
from sealpoint.views.words import Styled, count_text
from sealpoint_models.scan import ScanFinding, ScanReport, ScanVerdict, sarif_document, scan_path

REFUSED_STATUS = 3
"""The exit status if a file is refused."""

_SAFE_SHOWN = 20
_FINDINGS_SHOWN = 12
_STYLES = {
    ScanVerdict.SAFE: "good",
    ScanVerdict.NOT_READ: "quiet",
    ScanVerdict.NOT_PLAIN: "warning",
    ScanVerdict.UNREADABLE: "bad",
    ScanVerdict.DANGEROUS: "bad",
}
_ACCEPTED_BYTES_MAX = 1 << 20
_ACCEPTED_LINE = re.compile(r"([0-9a-f]{64})(?:  ?\*?\S.*)?")
_OWN_FOLDERS = frozenset({".git", ".hg", ".svn"})


@click.command(cls=Verb)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--exclude",
    "excluded",
    multiple=True,
    metavar="GLOB",
    help="Leave out files whose name, or path below a folder, matches; may be repeated.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["unreadable", "not-plain", "not-read"]),
    default="not-plain",
    show_default=True,
    help="The mildest verdict to refuse; unreadable and dangerous files are always refused.",
)
@click.option(
    "--accept",
    metavar="FILE",
    help="Accept files that are not plain data or were not read, by the digests in FILE: lines as "
    "sha256sum writes them.",
)
@click.option(
    "--own-class",
    "own_classes",
    multiple=True,
    metavar="MODULE.CLASS",
    help="A class of yours, whose objects are not-plain and not dangerous where a pickle only sets "
    "their attributes; may be given more than once.",
)
@click.option("--sarif", metavar="FILE", help="Write a SARIF 2.1.0 log as well; - prints it.")
@json_option
def scan(
    paths: Sequence[str],
    excluded: Sequence[str],
    *,
    fail_on: str,
    accept: str | None,
    own_classes: Sequence[str],
    sarif: str | None,
    as_json: bool,
) -> None:
    """Report whether model files are data, or would run code when they are loaded.

    Judges files by their content, and folders with everything in them. Loads, imports and calls
    nothing. A file is safe, not-read, not-plain, unreadable or dangerous; the exit status is 3 if
    one is not-plain or worse, and else 0. An error while reading does not pass.
    """
    if as_json and sarif == "-":
        raise UsageError("--json and --sarif -: expected one of them to print, found both")
    least = ScanVerdict(fail_on)
    accepted = frozenset() if accept is None else _accepted(accept)
    walk = _FolderWalk(tuple(excluded))
    with working("scanning") as report:
        files = [file for path in paths for file in walk.files(path)]
        walk.judge_links()
        reports: list[ScanReport] = []
        for file in files:
            report(len(reports), len(files), f"{len(reports):,} of {len(files):,} files")
            reports.append(scan_path(file, own_classes=own_classes, accepted=accepted))
        reports += walk.unlistable
    if as_json:
        print_json(_document(reports, walk))
    elif sarif != "-":
        _print(reports, walk, least)
    if sarif is not None:
        _write_sarif(reports, sarif)
    if any(each.is_refused(least) for each in reports):
        click.get_current_context().exit(REFUSED_STATUS)


def _accepted(place: str) -> frozenset[str]:
    """The digests in a file of lines as sha256sum writes them; # begins a comment."""
    try:
        with Path(place).open(encoding="utf-8") as file:
            text = file.read(_ACCEPTED_BYTES_MAX + 1)
    except (OSError, ValueError) as exc:
        raise UsageError(f"--accept {place}: expected a text file that can be read") from exc
    if len(text) > _ACCEPTED_BYTES_MAX:
        raise UsageError(f"--accept {place}: expected at most {_ACCEPTED_BYTES_MAX:,} characters")
    digests = set()
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        found = _ACCEPTED_LINE.fullmatch(line)
        if found is None:
            raise UsageError(
                f"--accept {place}: line {number} is not a SHA-256 digest and a name",
                hint=f"sha256sum FILE >> {place} adds such a line.",
            )
        digests.add(found[1])
    return frozenset(digests)


@dataclass(slots=True)
class _FolderWalk:
    """Walks folders, and records everything that it left out."""

    excluded: tuple[str, ...]
    skipped: list[tuple[str, str]] = field(default_factory=list)
    unlistable: list[ScanReport] = field(default_factory=list)
    """A folder that cannot be listed does not pass, just like an unreadable file."""
    _walked: set[str] = field(default_factory=set)
    _links: list[tuple[str, str]] = field(default_factory=list)

    def files(self, path: str) -> Iterator[str]:
        """The path itself, or every file below it, in order."""
        try:
            is_folder = stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116 - a path may be any text
        except (OSError, ValueError) as exc:
            raise UsageError(
                f"{path}: expected a file or a folder that can be read",
                hint="Check the path and its permissions: ls -ld shows them.",
            ) from exc
        if is_folder:
            yield from self._below(path)
        else:
            yield path

    def _below(self, top: str) -> Iterator[str]:
        """Every file in a folder, then those in its folders."""
        root = os.path.realpath(top)
        folders = [top]
        while folders:  # not os.walk, which calls itself for each folder in a folder before 3.12
            folder = folders.pop()
            try:
                with os.scandir(folder) as entries:
                    found = sorted((entry.name, _leads_to_folder(entry)) for entry in entries)
            except OSError as error:
                self._unlistable(error)
                continue
            self._walked.add(os.path.normpath(root + os.sep + folder[len(top) :]))
            for name in (name for name, inner in found if not inner):
                file = os.path.join(folder, name)  # noqa: PTH118 - as it was given
                if self._is_excluded(file, top):
                    self.skipped.append((file, "excluded"))
                else:
                    yield file
            inside = [name for name, inner in found if inner and self._enters(folder, name, top)]
            folders += [os.path.join(folder, name) for name in reversed(inside)]  # noqa: PTH118

    def judge_links(self) -> None:
        """Decide about each link to a folder, after the walk, which may include its target."""
        for path, target in self._links:
            if target in self._walked:
                self.skipped.append((path, "a link to a folder that has its own place here"))
            else:
                self._add(path, "a link to a folder that has to be scanned too, by its own name")

    def _unlistable(self, error: OSError) -> None:
        self._add(str(error.filename), f"expected a folder to list: {error.strerror}")

    def _add(self, path: str, message: str) -> None:
        finding = ScanFinding(rule="not-accessible", message=message)
        self.unlistable.append(ScanReport(path=path, format="folder", size=0, findings=(finding,)))

    def _enters(self, folder: str, name: str, top: str) -> bool:
        path = os.path.join(folder, name)  # noqa: PTH118
        if name in _OWN_FOLDERS:
            self.skipped.append((path, "the records of a version control"))
        elif self._is_excluded(path, top):
            self.skipped.append((path, "excluded"))
        elif not os.path.islink(path):  # noqa: PTH114
            return True
        else:
            self._links.append((path, os.path.realpath(path)))
        return False

    def _is_excluded(self, path: str, top: str) -> bool:
        below = os.path.relpath(path, top).replace(os.sep, "/")
        name = below.rpartition("/")[2]
        return any(
            fnmatch.fnmatchcase(each, pattern)
            for pattern in self.excluded
            for each in (below, name)
        )


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # links in a circle: what opens it says so
        return False


def _document(reports: Sequence[ScanReport], walk: _FolderWalk) -> dict[str, object]:
    verdicts = [report.verdict for report in reports]
    return {
        "verdict": max(verdicts, key=lambda verdict: verdict.rank, default=ScanVerdict.SAFE),
        "counts": dict(Counter(map(str, verdicts))),
        "files": [report.as_dict() for report in reports],
        "skipped": [{"path": path, "reason": reason} for path, reason in walk.skipped],
    }


def _write_sarif(reports: Sequence[ScanReport], place: str) -> None:
    log = sarif_document(reports, version=sealpoint.__version__, root=str(Path.cwd()))
    text = json_text(log) + "\n"
    if place == "-":
        print_text(text)
        return
    path = Path(place)
    if path.is_symlink() and (path.is_file() or not path.exists()):
        # It may have come with the scanned folder, and lead to any file of this user.
        raise UsageError(
            f"--sarif {place}: expected a file, found a link to one",
            hint="Name the file itself.",
        )
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise UsageError(
            f"--sarif {place}: expected a file that can be written, found: {exc.strerror}"
        ) from exc


def _print(reports: Sequence[ScanReport], walk: _FolderWalk, least: ScanVerdict) -> None:
    for report in reports:
        shown = _shown(report)
        if not shown and not report.is_refused(least) and len(reports) > _SAFE_SHOWN:
            continue
        verdict = Styled(str(report.verdict), _STYLES[report.verdict])
        padding = " " * (len(ScanVerdict.UNREADABLE) - len(report.verdict) + 1)
        accepted = ", accepted" if report.accepted else ""
        print_line((verdict, padding, f"{report.path} ({report.format}){accepted}"), hang=4)
        print_lines([f"    {_line(finding)}" for finding in shown[:_FINDINGS_SHOWN]], hang=4)
        if len(shown) > _FINDINGS_SHOWN:
            more = f"    ... and {len(shown) - _FINDINGS_SHOWN} more; --json lists all."
            print_lines([Styled(more, "quiet")])
    print_line(f"{count_text(len(reports), 'file')}: {_counts(reports)}.")
    for path, reason in walk.skipped:
        print_note(f"skipped {path}: {reason}")


def _shown(report: ScanReport) -> list[ScanFinding]:
    """The details of a file below its line: neither repeated from the line, nor accepted."""
    findings = () if report.accepted else report.findings
    return [
        finding
        for finding in (*findings, *report.notes)
        if finding.rule != "not-read" or finding.where
    ]


def _counts(reports: Sequence[ScanReport]) -> str:
    counts = Counter(report.verdict for report in reports)
    parts = [f"{counts[verdict]:,} {verdict}" for verdict in ScanVerdict if counts[verdict]]
    accepted = sum(report.accepted for report in reports)
    if accepted:
        parts.append(f"of which {accepted:,} accepted")
    return ", ".join(parts) or "nothing to scan"


def _line(finding: ScanFinding) -> str:
    place = finding.where
    if finding.offset is not None:
        place = f"{place}, byte {finding.offset}" if place else f"byte {finding.offset}"
    return (
        f"{place}: {finding.message} [{finding.rule}]"
        if place
        else (f"{finding.message} [{finding.rule}]")
    )
