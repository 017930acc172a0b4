# SPDX-License-Identifier: Apache-2.0
"""What a scan calls safe makes Python's own unpickler import nothing beyond the table."""

import contextlib
import io
import pickle
from typing import Any, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealpoint_models.scan import KNOWN_NAMES, Global, ScanVerdict, scan_bytes
from sealpoint_models.scan._joblib import WRAPPER
from tests.effort import examples
from tests.scan.assembler import spoken
from tests.scan.benign import pickles
from tests.scan.malicious import malicious

_SEEDS = [each.data for each in (*pickles(), *malicious()) if len(each.data) < 2_000]
_PIECES = [spoken("os", "system", protocol) for protocol in (0, 2, 4)] + [b"(", b"0", b"R", b"\x93"]


class _Stub:
    """Stands for whatever is named: takes everything, and does nothing."""

    def __new__(cls, *_: Any, **__: Any) -> Self:
        return super().__new__(cls)

    def __call__(self, *_: Any, **__: Any) -> "_Stub":
        return self

    def append(self, _: Any) -> None:
        """Take an item."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Take a pair."""


class _Recorder(pickle._Unpickler):
    """Python's unpickler, which is given a stub for every name and keeps the names."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data), encoding="latin-1")
        self.names: set[Global] = set()

    def find_class(self, module: str, name: str) -> type[_Stub]:
        """Keep a name, and look nothing up."""
        self.names.add(Global(module, name))
        return _Stub

    def persistent_load(self, _: Any) -> None:
        """There is nothing beside the pickle."""


def _names(data: bytes) -> set[Global]:
    recorder = _Recorder(data)
    with contextlib.suppress(Exception):  # whatever it fails with, the names are what counts
        recorder.load()
    return recorder.names


@st.composite
def _changed(draw: st.DrawFn) -> bytes:
    """A seed with a few bytes changed, cut out or put in."""
    data = draw(st.sampled_from(_SEEDS))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        piece = draw(st.one_of(st.binary(max_size=4), st.sampled_from(_PIECES)))
        data = data[:at] + piece + data[at + draw(st.integers(0, 4)) :]
    return data


@given(data=_changed())
@settings(max_examples=examples(1_500), deadline=None)
def test_no_name_beyond_the_table_in_what_is_safe(data: bytes) -> None:
    """A pickle that is called safe makes Python's unpickler ask for known names only."""
    if scan_bytes(data, "m.pkl").verdict is ScanVerdict.SAFE:
        assert _names(data) <= {*KNOWN_NAMES, WRAPPER}


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_the_recorder_sees_names(protocol: int) -> None:
    """The comparison can fail: the recorder keeps the name of a payload, and calls nothing."""
    assert _names(spoken("os", "system", protocol)) == {Global("os", "system")}
