# SPDX-License-Identifier: Apache-2.0
"""Pickles of megabytes that say little and take long: one opcode, or a few, again and again.

What a reader spends on a pickle is bounded by its size. Most of these are refused for what they
cost; the longest that is not refused costs most, since its meaning is read as well.
"""

import gc
import json
import subprocess
import sys
import time

import pytest

from sealpoint.errors import ModelLimitExceeded
from sealpoint.scan import run_pickle, scan_bytes
from tests.repo._tree import ROOT

_HOSTILE_BYTES = 14_000_000
_SCALE = 20
"""How much smaller than that the streams here are, and what they may cost."""
_DICT = b"ccollections\nOrderedDict\n"

_PATTERNS: dict[str, tuple[bytes, bytes, bytes]] = {
    "ints as text": (b"(", b"I1\n", b"t."),
    "floats that take long to write": (b"(", b"F1.2345678901234567e+300\n", b"t."),
    "strings with escapes": (b"(", b"S'\\x00\\x01'\n", b"t."),
    "texts with escapes": (b"(", b"V\\u005c\n", b"t."),
    "values that are dropped": (b"\x80\x02", b"N0", b"N."),
    "items of a call": (b"\x80\x02" + _DICT + b")R", b"NNs", b"."),
    "what a call appends": (b"\x80\x02" + _DICT + b")R", b"Na", b"."),
    "one value from the memo": (b"\x80\x02(]q\x00", b"h\x00", b"t."),
    "values that are remembered": (b"\x80\x04N", b"\x94", b"."),
    "one value doubled": (b"\x80\x02(N", b"2", b"t."),
    "marks": (b"\x80\x02", b"(", b"N."),
    "nested tuples": (b"\x80\x02N", b"\x85", b"."),
    "empty dicts": (b"\x80\x02(", b"}", b"t."),
    "sets that are dropped": (b"\x80\x04", b"(\x910", b"N."),
    "calls that are dropped": (b"\x80\x02" + _DICT + b"q\x00", b"h\x00)R0", b"0N."),
    "states": (b"\x80\x02ca\nb\n)R", b"Nb", b"."),
    "names": (b"\x80\x02", b"ctorch\nint8\n0", b"N."),
    "references": (b"\x80\x02", b"NQ0", b"N."),
}


def _stream(label: str, size: int) -> bytes:
    head, unit, tail = _PATTERNS[label]
    return head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail


@pytest.mark.parametrize("label", _PATTERNS)
def test_what_a_stream_may_cost_follows_from_its_size(
    label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a twentieth of the scale, a stream of only this is refused, in a twentieth of the time."""
    least = "sealpoint.scan._machine.MODEL_SYMBOLS_BYTES_LEAST"
    monkeypatch.setattr(least, (48 << 20) // _SCALE)
    data = _stream(label, _HOSTILE_BYTES // _SCALE)

    taken = []
    for _ in range(3):
        gc.collect()  # what the tests before this one left is not its work
        began = time.process_time()
        with pytest.raises(ModelLimitExceeded):
            run_pickle(data, "m")
        taken.append(time.process_time() - began)

    # Thrice what a quiet core may take: this one is busy.
    assert min(taken) < 3 * 2.0 / _SCALE


_MEASURED = """
import json, resource, sys, time
from sealpoint.scan import scan_bytes
from tests.attacks.scan.test_hostile_streams import FITTING, fitting
scan_bytes(b"\\x80\\x02N.")
found = {}
for label in FITTING:
    data = fitting(label)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    verdict = str(scan_bytes(data).verdict)
    took = time.process_time() - began
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    found[label] = [verdict, took, more * 1024]
print(json.dumps(found))
"""

FITTING = {"empty dicts": 225_000, "sets that are dropped": 340_000}
"""The size of the longest stream of a kind that is just not refused."""


def fitting(label: str) -> bytes:
    """That stream."""
    return _stream(label, FITTING[label])


def test_the_longest_streams_that_pass_end_soon_and_take_little_memory() -> None:
    """What makes the most objects of the fewest bytes keeps to 2 s of a quiet core and 128 MB."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED], capture_output=True, text=True, check=True, cwd=ROOT
    )
    found = json.loads(done.stdout)

    assert found.keys() == FITTING.keys()
    for verdict, seconds, more in found.values():
        assert verdict == "safe"
        assert seconds < 3 * 2.0
        assert more < 128_000_000
    # A tenth more of either is refused.
    for label, size in FITTING.items():
        assert scan_bytes(_stream(label, size * 11 // 10)).findings[0].rule == "limit"
