# SPDX-License-Identifier: Apache-2.0
"""Tests of the whole, and the names of those that lie with the parts.

`tests.unit.codec` is the same name wherever its file lies: in this folder, or in the `tests` of a
part. So tests of one part can use the helpers of another, and no file is moved only to be found.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

__path__ += sorted(map(str, ROOT.glob("packages/*/tests")))
