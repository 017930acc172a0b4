# SPDX-License-Identifier: Apache-2.0
"""Commands of OpenClaw: which of them start a gateway, and what version they run."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

_PROGRAMS = frozenset({"openclaw", "openclaw.mjs", "openclaw.js"})
_PACKAGE = "package.json"
_PACKAGE_BYTES_MAX = 1 << 20


def starts_gateway(command: Sequence[str]) -> bool:
    """Whether a command runs a gateway until it ends, as `openclaw gateway` does."""
    place = _program(command)
    if place is None:
        return False
    words = list(command[place + 1 :])
    while words and words[0].startswith("-"):
        words.pop(0)
    if not words or words[0] != "gateway":
        return False
    return len(words) == 1 or words[1].startswith("-") or words[1] == "run"


def openclaw_version(command: Sequence[str]) -> str | None:
    """Return the version of the OpenClaw that a command runs, from the package that it is in."""
    place = _program(command)
    if place is None:
        return None
    found = shutil.which(command[place]) or command[place]
    for directory in Path(found).resolve().parents:
        path = directory / _PACKAGE
        if path.is_file() and path.stat().st_size <= _PACKAGE_BYTES_MAX:
            try:
                document = json.loads(path.read_text("utf-8"))
            except (OSError, ValueError):
                return None
            if isinstance(document, dict) and document.get("name") == "openclaw":
                version = document.get("version")
                return version if isinstance(version, str) else None
            return None
    return None


def _program(command: Sequence[str]) -> int | None:
    for place, word in enumerate(command):
        if Path(word).name in _PROGRAMS:
            return place
    return None
