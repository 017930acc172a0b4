# SPDX-License-Identifier: Apache-2.0
"""The face: what users hold, composed of everything below."""

from sealpoint.api._adopt import Adopted, adopt
from sealpoint.api._anchor import AnchorPosition, Standing, anchor_positions
from sealpoint.api._init import init
from sealpoint.api._keys import KeyInfo, add_identity, list_keys, new_key
from sealpoint.api._open import open_store
from sealpoint.api._store import Store
from sealpoint.api._trust import export_pin, import_pin, move_store

__all__ = [
    "Adopted",
    "AnchorPosition",
    "KeyInfo",
    "Standing",
    "Store",
    "add_identity",
    "adopt",
    "anchor_positions",
    "export_pin",
    "import_pin",
    "init",
    "list_keys",
    "move_store",
    "new_key",
    "open_store",
]
