# SPDX-License-Identifier: Apache-2.0
"""Decoding imports, opens and calls nothing by a name from data: the interpreter says so."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).resolve().parents[5]

# Anything by which data could reach code, files, processes, memory or the network.
_FORBIDDEN = (
    *("import", "open", "exec", "compile", "eval", "os.", "subprocess.", "socket.", "ctypes."),
    *("pickle.", "marshal.", "shutil.", "urllib.", "mmap.", "code.", "function.", "builtins."),
    *("glob.", "tempfile.", "webbrowser.", "sqlite3.", "syslog.", "winreg.", "cpython."),
)


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """Run the audited program once, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.attacks.codec.audited"],
        check=False,
        capture_output=True,
        text=True,
        cwd=_ROOT,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_decoding_raises_no_event_by_which_data_could_reach_code(report: dict[str, Any]) -> None:
    """No import, open, exec, compile, system call, process, socket or foreign function."""
    forbidden = {
        event: report["details"][event]
        for event in report["events"]
        if event.startswith(_FORBIDDEN)
    }

    assert forbidden == {}


def test_decoding_raises_no_audit_event_at_all(report: dict[str, Any]) -> None:
    """The interpreter has nothing to report about genuine samples and thousands of mutations."""
    assert report["details"] == {}


def test_the_audit_was_armed_and_tried_much(report: dict[str, Any]) -> None:
    """The controls were seen, and both genuine and refused encodings were among those tried."""
    assert {"open", "compile"} <= set(report["control"])
    assert report["results"]["decoded"] > 300
    assert report["results"]["refused"] > 2000
