# SPDX-License-Identifier: Apache-2.0
"""What a run is able to do: tools, permissions, model, prompts, topology, code and runtime.

A world is a tree of leaves, not one hash, so that a person can be shown what differs between the
world of a checkpoint and the world that would go on with it. Everything here is pure: sources
and revisions are read by `sealpoint.config`.
"""

from sealpoint.world._diff import MODULES, LeafChange, LeafClass, WorldDiff
from sealpoint.world._json import JSON, JsonCopy, JsonFault, json_form
from sealpoint.world._syntax import Import, Syntax, read_imports, read_syntax
from sealpoint.world._tool import Tool
from sealpoint.world._visible import escape, escape_unprintable, isolate, quoted, visible
from sealpoint.world._world import Code, World

__all__ = [
    "JSON",
    "MODULES",
    "Code",
    "Import",
    "JsonCopy",
    "JsonFault",
    "LeafChange",
    "LeafClass",
    "Syntax",
    "Tool",
    "World",
    "WorldDiff",
    "escape",
    "escape_unprintable",
    "isolate",
    "json_form",
    "quoted",
    "read_imports",
    "read_syntax",
    "visible",
]
