# SPDX-License-Identifier: Apache-2.0
"""Registries for read-only tools: with the framework's own types, and with a workflow's too.

On the command line: `--registry sealpoint_agent_framework.framework:registry`, or
`--registry MODULE:WORKFLOW`.
"""

from typing import Any

from sealpoint.adapters import Framework
from sealpoint.codec import Registry
from sealpoint_agent_framework._declared_types import allow_types_of
from sealpoint_agent_framework._framework_types import allow_framework_types
from sealpoint_agent_framework._guard import declared_world

__all__ = ["FRAMEWORK", "registry", "registry_of"]

registry = Registry()
"""Allows messages, contents and the other types that Agent Framework stores by itself."""

allow_framework_types(registry)


def registry_of(workflow: Any) -> Registry:
    """A registry with the same types as `SealedCheckpointStorage.for_workflow` for this workflow.

    Raises:
        UsageError: The value is not a workflow.
        RuleInvalid: Two of its types have one name.
    """
    made = Registry()
    allow_framework_types(made)
    allow_types_of(workflow, made)
    return made


FRAMEWORK = Framework(
    name="Agent Framework",
    registry="sealpoint_agent_framework.framework:registry",
    declared_world=declared_world,
    declared_types=registry_of,
)
"""The value of the entry points of `sealpoint.frameworks`."""
