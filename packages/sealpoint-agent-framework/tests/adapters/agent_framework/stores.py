# SPDX-License-Identifier: Apache-2.0
"""Storages for the tests of the adapter, on every backend."""

from pathlib import Path
from typing import Any

from sealpoint.api import Store
from sealpoint_agent_framework import SealedCheckpointStorage
from tests.adapters.agent_framework.payments import Payment
from tests.adapters.langgraph.stores import BACKENDS, opened

__all__ = ["BACKENDS", "opened", "sealed"]


def sealed(store: Store, **named: Any) -> SealedCheckpointStorage:
    """A storage, as a new process makes it, that knows what the workflows of the tests carry."""
    if Payment not in {rule.cls for rule in store.registry.rules}:
        store.registry.allow(Payment, name="tests.payment")
    return SealedCheckpointStorage(store, **named)


def home_of(tmp_path: Path) -> Path:
    """Where a test has its store."""
    return tmp_path / "home"
