# SPDX-License-Identifier: Apache-2.0
"""Whole histories of a store against a model of it: no wrong read, and no false alarm.

Several processes save, load, fork, prune, erase and collect, keys change, copies are put back and
accepted or not, and somebody with the disk changes what lies on it. After every step each read
gives exactly what the model says or, while something is changed, an alarm.
"""

from collections import Counter
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from tests.properties.model_hostile import Hostile
from sealpoint.errors import SealpointError
from tests.properties.model_scene import ALARMS
from tests.unit.store.simulator import Opened


class StoreModel(Hostile):
    """A store in memory."""


class SqliteModel(StoreModel):
    """A store in a database."""

    backend = "sqlite"
    tally: ClassVar[Counter[str]] = Counter()


class FileModel(StoreModel):
    """A store in a directory."""

    backend = "file"
    tally: ClassVar[Counter[str]] = Counter()
