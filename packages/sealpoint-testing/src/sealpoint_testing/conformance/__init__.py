# SPDX-License-Identifier: Apache-2.0
"""The tests that every storage and every anchor must pass, as classes to inherit from.

They need no test runner of ours and no plugin: a backend's own test suite makes a subclass that
says how the backend is opened, and any runner that collects `test_*` methods and gives them a
temporary directory as `tmp_path`, as pytest does, runs them.
"""

from sealpoint_testing.conformance.anchor import AnchorConformance
from sealpoint_testing.conformance.storage import StorageConformance

__all__ = ["AnchorConformance", "StorageConformance"]
