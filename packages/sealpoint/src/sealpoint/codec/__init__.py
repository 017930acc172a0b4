# SPDX-License-Identifier: Apache-2.0
"""Values to bytes and back: strict, lossless, and unable to run code.

`Registry` is the complete interface; only `tree_blobs` works without one, on the blobs that a
registry wrote. `docs/formats/values.md` specifies the bytes.
"""

from sealpoint.codec._builtin_types import BUILTINS, PLAIN_REASONS, BuiltinType
from sealpoint.codec._changed_class import where_registry_goes
from sealpoint.codec._class_kinds import DictForm
from sealpoint.codec._dict_keys import collision_fault
from sealpoint.codec._encoding_memo import TreeMemo
from sealpoint.codec._explain import Explanation, TypeUse, allow_line, is_builtin
from sealpoint.codec._reachable_blobs import Reached, tree_blobs
from sealpoint.codec._registry import Registry
from sealpoint.codec._type_rules import TypeRule, UntypedValue, unknown_name

__all__ = [
    "BUILTINS",
    "PLAIN_REASONS",
    "BuiltinType",
    "DictForm",
    "Explanation",
    "Reached",
    "Registry",
    "TreeMemo",
    "TypeRule",
    "TypeUse",
    "UntypedValue",
    "allow_line",
    "collision_fault",
    "is_builtin",
    "tree_blobs",
    "unknown_name",
    "where_registry_goes",
]
