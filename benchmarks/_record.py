# SPDX-License-Identifier: Apache-2.0
"""The record of measurements, `RESULTS.md`: sections that are written apart from one another."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

__all__ = [
    "CONSOLE_HEADING",
    "GPU_HEADING",
    "RESULTS",
    "ROLLOUTS_HEADING",
    "SCANNERS_HEADING",
    "SIZES_HEADING",
    "SUITE_HEADING",
    "kept_sections",
    "machine",
    "with_section",
    "write_section",
]

RESULTS = Path(__file__).parent / "RESULTS.md"
SIZES_HEADING = "## Sizes"
ROLLOUTS_HEADING = "## Rollouts"
SUITE_HEADING = "## LangGraph's own tests"
GPU_HEADING = "## A file of 8 GB to a GPU"
SCANNERS_HEADING = "## Scanners of model files"
CONSOLE_HEADING = "## The console"
_KEPT = (
    *(SIZES_HEADING, ROLLOUTS_HEADING, SUITE_HEADING, GPU_HEADING, SCANNERS_HEADING),
    CONSOLE_HEADING,
)
"""The sections that have a command of their own, in their order."""


def machine() -> str:
    """Which processor it is, as far as the machine tells."""
    name = platform.processor()
    lscpu = shutil.which("lscpu")
    if lscpu is not None:
        told = subprocess.run([lscpu], check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603
        models = [line for line in told.splitlines() if line.startswith("Model name:")]
        name = models[0].partition(":")[2].strip() if models else name
    return f"{name or 'a processor'} ({platform.machine()}), {os.cpu_count()} cores"


def kept_sections() -> str:
    """The sections that are measured by themselves, as they are."""
    return _joined(_sections(RESULTS.read_text(encoding="utf-8")))


def write_section(heading: str, lines: list[str]) -> None:
    """Replace one section and leave the others alone."""
    text = RESULTS.read_text(encoding="utf-8")
    RESULTS.write_text(with_section(text, heading, lines), encoding="utf-8")


def with_section(text: str, heading: str, lines: list[str]) -> str:
    """A record with one of its own sections replaced, or added."""
    found = _sections(text)
    before = text[: min(map(text.index, found.values()))] if found else f"{text.rstrip()}\n\n"
    return before + _joined({**found, heading: "\n".join([heading, *lines])})


def _joined(sections: dict[str, str]) -> str:
    return "\n".join(f"{sections[each].rstrip()}\n" for each in _KEPT if each in sections)


def _sections(text: str) -> dict[str, str]:
    """The kept sections of a record, each with its heading."""
    lines = text.splitlines(keepends=True)
    starts = [place for place, line in enumerate(lines) if line.startswith("## ")]
    ends = [*starts[1:], len(lines)]
    found = {
        lines[start].rstrip("\n"): "".join(lines[start:end])
        for start, end in zip(starts, ends, strict=True)
    }
    return {heading: found[heading] for heading in _KEPT if heading in found}
