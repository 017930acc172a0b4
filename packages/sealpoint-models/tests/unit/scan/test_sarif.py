# SPDX-License-Identifier: Apache-2.0
"""SARIF logs keep to the schema of the standard, and have what code hosts ask for."""

import json
from typing import Any

import pytest
from pydantic_sarif.model import (  # type: ignore[import-untyped]
    StaticAnalysisResultsFormatSarifVersion210JsonSchema as SarifLog,
)

from sealpoint_models.scan import RULES, ScanFinding, ScanReport, sarif_document, scan_bytes
from tests.scan.assembler import PAYLOAD, pickle, tarred, zipped
from tests.scan.benign import other_formats

_SHOWN = [rule for rule in RULES if rule != "not-read"]
"""A README is not listed among findings."""
_LEVELS = {"dangerous": "error", "unreadable": "error", "not-plain": "warning", "not-read": "note"}
_ROOT = "/home/somebody/repository"


def _results(*reports: ScanReport, root: str | None = _ROOT) -> list[dict[str, Any]]:
    """The results of a log that keeps to the schema."""
    text = json.dumps(sarif_document(reports, version="1.2.3", root=root))
    SarifLog.model_validate_json(text)
    (run,) = json.loads(text)["runs"]
    results: list[dict[str, Any]] = run["results"]
    return results


def _every_rule() -> ScanReport:
    findings = tuple(ScanFinding(rule=rule, message=f"found {rule}") for rule in RULES)
    return ScanReport(path="m.pt", format="torch-zip", size=1, findings=findings)


def test_logs_keep_to_the_schema() -> None:
    """Logs without results, with every rule, and of real scans are as the standard says."""
    scanned = [scan_bytes(each.data, each.file) for each in other_formats()]
    nested = scan_bytes(zipped({"a/b.tar": tarred({"c.pkl": PAYLOAD})}), "m.zip")

    assert _results() == []
    assert [each["ruleId"] for each in _results(_every_rule())] == _SHOWN
    assert len(_results(nested, *scanned)) > 3


def test_the_schema_refuses_what_it_does_not_know() -> None:
    """The control: one more name in a result is noticed."""
    log = sarif_document([_every_rule()], version="1.2.3")
    log["runs"][0]["results"][0]["severity"] = "high"

    with pytest.raises(ValueError, match="severity"):
        SarifLog.model_validate_json(json.dumps(log))


def test_rules_and_results_have_what_github_asks_for() -> None:
    """A rule has texts and a severity; a result has its rule, a line and a fingerprint."""
    (run,) = sarif_document([_every_rule()], version="1.2.3")["runs"]
    rules = run["tool"]["driver"]["rules"]
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]
        level = rule["defaultConfiguration"]["level"]
        assert level == _LEVELS.get(RULES[rule["id"]].verdict, "note")
        least = {"error": 7, "warning": 4, "note": 0}[level]
        assert float(rule["properties"].get("security-severity", 0)) >= least
    for result in run["results"]:
        (location,) = result["locations"]
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert location["physicalLocation"]["region"]["startLine"] == 1
        assert result["partialFingerprints"]["primaryLocationLineHash"]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("models/m.pt", "models/m.pt"),
        ("./models//m.pt", "models/m.pt"),
        ("../m.pt", "../m.pt"),
        (f"{_ROOT}/models/m.pt", "models/m.pt"),
        ("/home/somebody/repository-2/m.pt", "file:///home/somebody/repository-2/m.pt"),
        ("a b/#1?.pt", "a%20b/%231%3F.pt"),
        ("c:d.pt", "c%3Ad.pt"),
        ("\u202eé\n.pt", "%E2%80%AE%C3%A9%0A.pt"),
        ("bad\udcff.pt", "bad%FF.pt"),
    ],
)
def test_paths_are_references_relative_to_the_root(path: str, uri: str) -> None:
    """A path below the root is relative to it, in one spelling, and every byte is quoted."""
    report = ScanReport(
        path=path, format="x", size=0, findings=(ScanFinding(rule="limit", message="a"),)
    )
    (result,) = _results(report)

    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_a_fingerprint_stays_when_bytes_move_and_is_of_one_finding() -> None:
    """The same finding at another byte has the same fingerprint; two findings have two."""

    def prints(data: bytes) -> list[str]:
        return [
            each["partialFingerprints"]["primaryLocationLineHash"]
            for each in _results(scan_bytes(data, "m.pkl"))
        ]

    moved = prints(pickle(b"N0" + PAYLOAD[2:-1]))
    twice = [ScanFinding(rule="limit", message="a", offset=at) for at in (1, 2)]
    report = ScanReport(path="m", format="x", size=0, findings=tuple(twice))
    both = [each["partialFingerprints"]["primaryLocationLineHash"] for each in _results(report)]

    assert prints(PAYLOAD) == moved
    assert len(set(both)) == 2
