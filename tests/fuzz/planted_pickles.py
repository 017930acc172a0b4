# SPDX-License-Identifier: Apache-2.0
"""Readers of pickles with a fault, for the fuzzer to find."""

import io
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzz.pickle_is_data_or_refused import Readers
from sealpoint.errors import SealpointError
from sealpoint_models.scan import Global, Inert, Mentions, Program, ScanReport, Unknown, scan_bytes

_NAME = b"OrderedDict"


class _Safe(Readers):
    """A scanner that finds nothing, and a loader that refuses nothing."""

    def scan(self, data: bytes) -> ScanReport:
        return replace(scan_bytes(data), findings=())

    def load(self, file: io.FileIO, size: int, unknown: Unknown) -> Any:
        try:
            return super().load(file, size, unknown)
        except SealpointError:
            return None


class RaisingScan(Readers):
    """A scanner that raises what a codec raises."""

    def scan(self, data: bytes) -> ScanReport:
        """Raise."""
        if _NAME in data:
            raise UnicodeError("planted")
        return super().scan(data)


class BlindScan(Readers):
    """A scanner that finds nothing."""

    def scan(self, data: bytes) -> ScanReport:
        """Call it safe."""
        return replace(super().scan(data), findings=())


class LooseLoad(Readers):
    """A loader that takes what it should refuse."""

    def load(self, file: io.FileIO, size: int, unknown: Unknown) -> Any:
        """Give nothing instead of an error."""
        try:
            return super().load(file, size, unknown)
        except SealpointError:
            return None


class OpeningLoad(Readers):
    """A loader that opens another file."""

    def load(self, file: io.FileIO, size: int, unknown: Unknown) -> Any:
        """Open it."""
        with Path(os.devnull).open("rb"):
            return super().load(file, size, unknown)


class CompilingLoad(Readers):
    """A loader that compiles a text."""

    def load(self, file: io.FileIO, size: int, unknown: Unknown) -> Any:
        """Compile it."""
        compile("1", "planted", "eval")
        return super().load(file, size, unknown)


class InertLoad(Readers):
    """A loader that gives names as data to those who did not ask."""

    def load(self, file: io.FileIO, size: int, unknown: Unknown) -> Any:
        """Put one beside the value."""
        return [super().load(file, size, unknown), Inert("os.system")]


class CodeLoad(Readers):
    """A loader that gives a function."""

    def load(self, file: io.FileIO, size: int, unknown: Unknown) -> Any:
        """Put one beside the value."""
        return {"value": super().load(file, size, unknown), "code": os.getpid}


class OtherValueLoad(Readers):
    """A loader that reads an int as a float."""

    def load(self, file: io.FileIO, size: int, unknown: Unknown) -> Any:
        """Change it."""
        value = super().load(file, size, unknown)
        return float(value) if type(value) is int else value


class UnknownNames(_Safe):
    """Readers without a table."""


class LostName(Readers):
    """A machine that forgets the names it was told."""

    def run(self, data: bytes, start: int) -> Program:
        """Forget them."""
        found = super().run(data, start)
        return Program(value=found.value, end=found.end, mentions=Mentions())


class InventedName(Readers):
    """A machine that keeps a name which is not there."""

    def run(self, data: bytes, start: int) -> Program:
        """Add one."""
        found = super().run(data, start)
        found.mentions.names[Global("torch", "int8")] = 0
        return found


class ShortRead(Readers):
    """A machine that ends a byte early."""

    def run(self, data: bytes, start: int) -> Program:
        """End there."""
        found = super().run(data, start)
        return replace(found, end=found.end - 1)


class BrokenIsSafe(_Safe):
    """Readers that take what breaks off for data."""

    def run(self, data: bytes, start: int) -> Program:
        """Never refuse."""
        try:
            return super().run(data, start)
        except SealpointError:
            return Program(value=None, end=len(data), mentions=Mentions())


class SlowLoad(Readers):
    """A loader that keeps the processor busy."""

    def load(self, file: io.FileIO, size: int, unknown: Unknown) -> Any:
        """For longer than a case may."""
        end = time.process_time() + 1.1
        while time.process_time() < end:
            pass
        return super().load(file, size, unknown)
