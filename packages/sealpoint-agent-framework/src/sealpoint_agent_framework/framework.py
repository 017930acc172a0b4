# SPDX-License-Identifier: Apache-2.0
"""Registries for those who only look: with the framework's own types, and with a workflow's too.

On the command line: `--registry sealpoint_agent_framework.framework:registry`, or
`--registry MODULE:WORKFLOW`.
"""

from typing import Any

from sealpoint.adapters import Framework
from sealpoint.codec import Registry
from sealpoint_agent_framework._declared import allow_types_of
from sealpoint_agent_framework._guard import declared_world
from sealpoint_agent_framework._types import allow_framework_types

__all__ = ["FRAMEWORK", "registry", "registry_of"]

registry = Registry()
"""Allows messages, contents and what else Agent Framework stores by itself."""

allow_framework_types(registry)


def registry_of(workflow: Any) -> Registry:
    """A registry that allows what `SealedCheckpointStorage.for_workflow` allows of a workflow.

    Raises:
        UsageError: It is no workflow.
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
"""What the entry points of `sealpoint.frameworks` lead to."""
