# SPDX-License-Identifier: Apache-2.0
"""A guard for OpenClaw: seals the state of a gateway, and verifies it before each start.

`sealpoint openclaw` does the same on the command line. In Python, `GuardSettings.load` finds what
`sealpoint openclaw init` made, and `GuardSettings.guard` gives the `Guard` of the gateway.
"""

from sealpoint_openclaw._classes import StateClass, file_class
from sealpoint_openclaw._differences import Change, Concern, Difference
from sealpoint_openclaw._folder import Folder
from sealpoint_openclaw._guard import Check, Guard, Watch
from sealpoint_openclaw._seals import Moment, Seal
from sealpoint_openclaw._settings import GuardSettings

__all__ = [
    "Change",
    "Check",
    "Concern",
    "Difference",
    "Folder",
    "Guard",
    "GuardSettings",
    "Moment",
    "Seal",
    "StateClass",
    "Watch",
    "file_class",
]
