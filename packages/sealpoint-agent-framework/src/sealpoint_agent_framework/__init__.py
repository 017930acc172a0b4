# SPDX-License-Identifier: Apache-2.0
"""Microsoft Agent Framework on a sealed store.

`SealedCheckpointStorage` is the checkpoint storage, `guard` gates a workflow, and
`import_checkpoints` imports the files of the framework's own file storage.
"""

from sealpoint.adapters.guarded_runs import extra_missing

try:
    from sealpoint_agent_framework._checkpoint_import import (
        Fate,
        FileFate,
        ImportReport,
        import_checkpoints,
    )
    from sealpoint_agent_framework._guard import declared_world, guard
    from sealpoint_agent_framework._resume_waiting import resume_waiting
    from sealpoint_agent_framework._storage import RunStopped, SealedCheckpointStorage
    from sealpoint_agent_framework._world import world_of
except ImportError as exc:
    packages = {"agent_framework": "agent-framework-core"}
    raise extra_missing("sealpoint_agent_framework", packages, exc) from exc

__all__ = [
    "Fate",
    "FileFate",
    "ImportReport",
    "RunStopped",
    "SealedCheckpointStorage",
    "declared_world",
    "guard",
    "import_checkpoints",
    "resume_waiting",
    "world_of",
]
