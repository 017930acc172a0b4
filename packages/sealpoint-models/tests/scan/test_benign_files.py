# SPDX-License-Identifier: Apache-2.0
"""What torch, numpy, joblib and trainers write is called what it is, and never dangerous."""

import pytest

from sealpoint_models.scan import ScanVerdict, scan_bytes
from tests.scan import benign

_FAMILIES = {
    "torch": benign.torch_files,
    "pickles": benign.pickles,
    "containers": benign.containers,
    "numpy": benign.numpy_files,
    "others": benign.other_formats,
    "joblib": benign.joblib_files,
    "objects": benign.objects,
}


@pytest.mark.parametrize("family", _FAMILIES)
def test_files_of_a_tool_are_what_they_are(family: str) -> None:
    """Every file that the tool wrote is data, or its verdict says why it is not called that."""
    wrong = {}
    for each in _FAMILIES[family]():
        report = scan_bytes(each.data, each.file)
        expected = {ScanVerdict.SAFE}
        if family == "objects":
            expected = {ScanVerdict.NOT_PLAIN}
        elif family in ("containers", "others"):
            expected.add(ScanVerdict.NOT_READ)
        if report.verdict not in expected:
            wrong[each.label] = [finding.message for finding in report.findings]

    assert not wrong


def test_no_file_that_people_have_is_dangerous() -> None:
    """Nor is one unreadable: the whole corpus."""
    refused = [
        each.label
        for each in benign.benign()
        if scan_bytes(each.data, each.file).is_refused(ScanVerdict.UNREADABLE)
    ]

    assert refused == []


def test_only_texts_and_pictures_are_not_read() -> None:
    """What is a model, or has only models in it, is read."""
    not_read = {
        each.file
        for samples in (benign.containers, benign.other_formats)
        for each in samples()
        if scan_bytes(each.data, each.file).verdict is ScanVerdict.NOT_READ
    }

    assert not_read == {
        *("README.md", "vocab.txt", "a.gif", "config.json", "a.png"),
        *("m.keras", "m.zip", "m.tar", "m.tar.gz", "m.tar.bz2"),
    }


def test_what_is_only_mentioned_leaves_a_file_safe() -> None:
    """A chat template and elements in the same folder are notes."""
    notes = {
        note.rule
        for each in benign.other_formats()
        for note in scan_bytes(each.data, each.file).notes
    }

    assert notes == {"template", "external-data"}
