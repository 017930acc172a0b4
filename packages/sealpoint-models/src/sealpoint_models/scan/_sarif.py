# SPDX-License-Identifier: Apache-2.0
"""Reports in SARIF 2.1.0, the form in which code hosts and editors show findings.

One run, all rules, one result for each finding and each note. A place inside of an archive is a
logical location: bytes of a member are not bytes of the file. Files that are not models are left
out, and findings about an accepted file are suppressed. Every result has a line, since GitHub
shows none without, and a fingerprint, since nobody can make one of a line of bytes: it is made of
the rule, the place inside of the file and what was found, but not of offsets, which move.
"""

import hashlib
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from sealpoint_models.scan._report import RULES, ScanFinding, ScanReport, ScanRule, ScanVerdict

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {
    ScanVerdict.DANGEROUS: "error",
    ScanVerdict.UNREADABLE: "error",
    ScanVerdict.NOT_PLAIN: "warning",
    ScanVerdict.NOT_READ: "note",
    ScanVerdict.SAFE: "note",
}
_SEVERITIES = {
    ScanVerdict.DANGEROUS: "9.0",
    ScanVerdict.UNREADABLE: "7.0",
    ScanVerdict.NOT_PLAIN: "5.0",
}
"""By what code hosts sort: critical, high, and medium."""
_HELP = {
    ScanVerdict.DANGEROUS: "Do not load the file. Ask who wrote it to save tensors and plain data.",
    ScanVerdict.NOT_PLAIN: "A reader of pickles runs code of a library for it. Save plain data, or "
    "accept this file by its digest: sealpoint scan --accept.",
    ScanVerdict.NOT_READ: "A part of the file was not read: nothing is said about it.",
    ScanVerdict.UNREADABLE: "Nobody knows what loading the file does. Do not load it; have it "
    "written again, or converted to a format that holds no code.",
    ScanVerdict.SAFE: "The file is safe to read; this is said of it besides.",
}


def sarif_document(
    reports: Iterable[ScanReport], *, version: str, root: str | None = None
) -> dict[str, Any]:
    """The findings in files, as one SARIF log.

    Args:
        reports: The reports.
        version: Of the program that made them.
        root: A folder; paths below it are written relative to it, as code hosts need them.
    """
    order = {rule: index for index, rule in enumerate(RULES)}
    results = [result for report in reports for result in _results(report, order, root)]
    driver = {
        "name": "sealpoint scan",
        "version": version,
        "rules": [_descriptor(rule, each) for rule, each in RULES.items()],
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _descriptor(rule: str, each: ScanRule) -> dict[str, Any]:
    properties: dict[str, Any] = {"tags": ["security", "model-files"]}
    if each.verdict in _SEVERITIES:
        properties["security-severity"] = _SEVERITIES[each.verdict]
    return {
        "id": rule,
        "name": "".join(word.capitalize() for word in rule.split("-")),
        "shortDescription": {"text": each.title},
        "fullDescription": {"text": each.title},
        "help": {"text": _HELP[each.verdict]},
        "defaultConfiguration": {"level": _LEVELS[each.verdict]},
        "properties": properties,
    }


def _results(
    report: ScanReport, order: dict[str, int], root: str | None
) -> Iterator[dict[str, Any]]:
    seen: Counter[str] = Counter()
    for finding in (*report.findings, *report.notes):
        if finding.rule == "not-read":
            continue
        digest = _fingerprint(finding)
        seen[digest] += 1
        yield {
            **_result(finding, report, order, _uri(report.path, root)),
            "partialFingerprints": {"primaryLocationLineHash": f"{digest}:{seen[digest]}"},
            **({"suppressions": [{"kind": "external"}]} if report.accepted else {}),
        }


def _fingerprint(finding: ScanFinding) -> str:
    parts = (finding.rule, finding.where, finding.name or finding.message)
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:16]


def _result(
    finding: ScanFinding, report: ScanReport, order: dict[str, int], uri: str
) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    physical["region"] = {"startLine": 1}
    if finding.offset is not None and not finding.where:
        physical["region"] |= {"byteOffset": finding.offset, "byteLength": 1}
    location: dict[str, Any] = {"physicalLocation": physical}
    place = ""
    if finding.where:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.where, "kind": "resource"}]
        place = f"{finding.where}: "
    properties = {"verdict": str(report.verdict), "format": report.format}
    if finding.name is not None:
        properties["name"] = finding.name
    return {
        "ruleId": finding.rule,
        "ruleIndex": order[finding.rule],
        "level": _LEVELS[finding.verdict],
        "message": {"text": place + finding.message},
        "locations": [location],
        "properties": properties,
    }


def _uri(path: str, root: str | None) -> str:
    """A path as the reference of a URI."""
    plain = posixpath.normpath(PurePath(path).as_posix())
    if root is not None and PurePath(plain).is_relative_to(root):
        plain = PurePath(plain).relative_to(root).as_posix()
    quoted = quote(plain, safe="/", errors="surrogateescape")
    # Two slashes at the beginning would be read as the name of a host.
    return f"file:///{quoted.lstrip('/')}" if quoted.startswith("/") else quoted
