# SPDX-License-Identifier: Apache-2.0
"""A finding says what would be imported and called, and where that stands."""

import gzip
import os
import threading
from pathlib import Path

import pytest

from sealpoint_models.scan import RULES, ScanVerdict, scan_bytes, scan_path
from tests.repo._tree import ROOT
from tests.scan.assembler import PAYLOAD, pickle, spoken, tarred, zipped


def test_a_name_has_its_byte() -> None:
    """The name, whether it is called, and the byte at which the pickle mentions it."""
    (finding,) = scan_bytes(pickle(b"N0" + spoken("os", "system", 0)[:-1]), "m.pkl").findings

    assert (finding.rule, finding.name, finding.called) == ("name-unknown", "os.system", True)
    assert (finding.where, finding.offset) == ("", 4)


def test_a_name_that_is_not_called_is_told_apart() -> None:
    """A pickle that only imports something is dangerous as well, and the finding says so."""
    (finding,) = scan_bytes(b"\x80\x02cos\nsystem\n.", "m.pkl").findings

    assert not finding.called
    assert "calls" not in finding.message


def test_a_place_inside_of_archives_has_all_its_parts() -> None:
    """Each archive on the way is a part of the place, and the byte is one of the innermost."""
    data = zipped({"a/b.tar.gz": gzip.compress(tarred({"c.pkl": PAYLOAD}))})
    (finding,) = scan_bytes(data, "m.zip").findings

    assert finding.where == "a/b.tar.gz!gzip!c.pkl"
    assert finding.offset == 2


def test_what_stands_before_a_fault_is_told() -> None:
    """A pickle that breaks off after its payload has two findings: the payload, and the fault."""
    report = scan_bytes(PAYLOAD[:-1] + b"\xff", "m.pkl")

    assert [finding.rule for finding in report.findings] == ["name-unknown", "malformed"]


def test_an_image_with_the_name_of_a_model_is_no_model() -> None:
    """Its name says that somebody will load it, so that it is not called safe."""
    data = b"\x89PNG\r\n\x1a\n" + bytes(100)
    (finding,) = scan_bytes(data, "m.pt").findings

    assert finding.rule == "format-unknown"
    assert finding.message == "expected a model file, found image"
    assert scan_bytes(data, "m.png").verdict is ScanVerdict.NOT_READ


@pytest.mark.parametrize("begin", [b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd"], ids=["lz4", "zstd"])
def test_a_container_that_is_not_opened_is_unreadable(begin: bytes) -> None:
    """The finding says what to do, since nobody knows what is in the file."""
    report = scan_bytes(begin + PAYLOAD, "m.joblib")
    (finding,) = report.findings

    assert (report.verdict, finding.rule) == (ScanVerdict.UNREADABLE, "not-opened")
    assert finding.message.endswith("is not opened: unpack the file and scan what was in it")


def test_a_file_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    """What cannot be opened is unreadable, and no error."""
    for path in (tmp_path / "none.pt", tmp_path):
        report = scan_path(path)

        assert report.verdict is ScanVerdict.UNREADABLE
        assert [finding.rule for finding in report.findings] == ["not-accessible"]


def test_a_file_is_scanned_as_its_bytes_are(tmp_path: Path) -> None:
    """The same is found in a file and in its bytes."""
    path = tmp_path / "m.pkl"
    path.write_bytes(PAYLOAD)

    assert scan_path(path).findings == scan_bytes(PAYLOAD, "m.pkl").findings
    assert scan_path(path).size == len(PAYLOAD)


def test_a_file_that_changes_while_it_is_scanned_is_unreadable(tmp_path: Path) -> None:
    """What was read of two files at once is no verdict about either."""
    path = tmp_path / "m.pt.gz"
    path.write_bytes(gzip.compress(b"\x80\x02" + b"N0" * (4 << 20) + b"N."))
    stop = threading.Event()

    def touch() -> None:
        while not stop.wait(0.001):
            os.utime(path)

    writer = threading.Thread(target=touch)
    writer.start()
    try:
        report = scan_path(path)
    finally:
        stop.set()
        writer.join()

    assert report.verdict is not ScanVerdict.SAFE
    assert report.findings[-1].message == "it was changed while it was scanned"


def test_a_name_of_a_file_cannot_break_out_of_a_message() -> None:
    """Names that a file chose are quoted, escaped and cut."""
    report = scan_bytes(b"\x80\x02cos\x1b[31m" + b"a" * 300 + b"\nsystem\n.", "m.pkl")

    assert report.verdict is ScanVerdict.DANGEROUS
    assert all("\x1b" not in each.message and len(each.message) < 200 for each in report.findings)


def test_the_page_lists_every_rule_as_it_is() -> None:
    """The table of the page has a row for each rule, with its verdict and its title."""
    page = (ROOT / "docs" / "reference" / "scan.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for rule, each in RULES.items():
        verdict = "note" if each.verdict is ScanVerdict.SAFE else each.verdict
        title = each.title.removeprefix("A note: ")

        assert f"| `{rule}` | {verdict} | {title[0].upper()}{title[1:]} |" in rows
