# SPDX-License-Identifier: Apache-2.0
"""The capabilities of a run: tools, permissions, model, prompts, topology, code and runtime.

A world is a tree of leaves, not one hash, so that a person can see what differs between the world
of a checkpoint and the world that would resume it. Everything here is pure: `sealpoint.config`
reads sources and revisions.
"""

from sealpoint.world._diff import (
    MODULES,
    LeafChange,
    LeafClass,
    WorldDiff,
    leaf_subject,
    value_digest,
)
from sealpoint.world._json import JSON, JsonCopy, JsonFault, json_data, json_form
from sealpoint.world._python_syntax import Import, Syntax, read_imports, read_syntax
from sealpoint.world._tool import Tool
from sealpoint.world._visible_text import escape, escape_unprintable, isolate, quoted, visible
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
    "json_data",
    "json_form",
    "leaf_subject",
    "quoted",
    "read_imports",
    "read_syntax",
    "value_digest",
    "visible",
]
