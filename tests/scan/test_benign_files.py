# SPDX-License-Identifier: Apache-2.0
"""What torch, numpy, joblib and trainers write is called safe."""

import pytest

from sealpoint.scan import ScanVerdict, scan_bytes
from tests.scan import benign

_FAMILIES = {
    "torch": benign.torch_files,
    "pickles": benign.pickles,
    "containers": benign.containers,
    "numpy": benign.numpy_files,
    "others": benign.other_formats,
    "joblib": benign.joblib_files,
}


@pytest.mark.parametrize("family", _FAMILIES)
def test_files_of_a_tool_are_safe(family: str) -> None:
    """Every file that the tool wrote is safe."""
    refused = {
        each.label: [finding.message for finding in report.findings]
        for each in _FAMILIES[family]()
        if (report := scan_bytes(each.data, each.file)).verdict is not ScanVerdict.SAFE
    }

    assert not refused


def test_what_is_only_mentioned_leaves_a_file_safe() -> None:
    """A chat template, elements in the same folder and weights that were not read are notes."""
    notes = {
        note.rule
        for each in benign.other_formats()
        for note in scan_bytes(each.data, each.file).notes
    }

    assert notes == {"template", "external-data", "weights-not-read"}
