# SPDX-License-Identifier: Apache-2.0
"""Save and load agent state: threads of checkpoints on a storage, an anchor and a roster."""

from sealpoint.store._anchor_adoption import (
    adopt_store_chain,
    adopt_thread,
    enter_copy,
    record_joining,
    unanchored_threads,
)
from sealpoint.store._anchor_comparison import judge_positions
from sealpoint.store._anchor_positions import shown_position, tip_position
from sealpoint.store._append_entries import EntryDraft, check_rights
from sealpoint.store._blobs import BlobReader, blob_digest, fresh_digests
from sealpoint.store._checkpoint_index import (
    CheckpointIndex,
    CheckpointPlace,
    Key,
    checkpoint_place,
)
from sealpoint.store._checkpoint_store import (
    CheckpointStore,
    ThreadNames,
    UnlistedThread,
    list_threads,
    unknown_threads,
)
from sealpoint.store._drafts import ResultsDraft, RunPosition, SaveDraft, plain_value
from sealpoint.store._entry_reader import NearEntries
from sealpoint.store._garbage_collection import collect_garbage
from sealpoint.store._genesis import claimed_name
from sealpoint.store._key_expiry import EXPIRY_WARNING
from sealpoint.store._key_revocation import (
    EndedKeys,
    KeyUsage,
    UnverifiedThread,
    find_key_usage,
    revoke_keys,
)
from sealpoint.store._names import check_name, is_reserved, store_slot, thread_slot
from sealpoint.store._release import (
    Deleted,
    PendingResult,
    Release,
    ReleasedLane,
    ReleasePosition,
    make_release,
)
from sealpoint.store._restore import (
    AcceptedRestore,
    LostDecision,
    RestorePlan,
    ThreadOutcome,
    ThreadRestore,
    accept_restore,
    plan_restore,
)
from sealpoint.store._retention import ThreadRetention
from sealpoint.store._return_values import (
    CheckpointRef,
    Collected,
    Erasure,
    Event,
    Loaded,
    Pruning,
    Results,
    ResultsRef,
    Snapshot,
)
from sealpoint.store._store_chain_writer import (
    anchored_positions,
    append_root,
    append_roster,
    copy_roster,
    export_roster,
    import_roster,
    list_positions_again,
    require_roots,
)
from sealpoint.store._store_copy import CopiedStore, copy_store
from sealpoint.store._store_parts import Core, StoreParts
from sealpoint.store._thread_list import ListedThread, all_threads, match_heads, named_slot
from sealpoint.store._thread_reader import ThreadReader, checkpoint_at, read_world
from sealpoint.store._thread_state import ThreadState
from sealpoint.store._thread_walk import ThreadWalk
from sealpoint.store._thread_writer import CommitDraft, Outcome, SessionStart, ThreadWriter
from sealpoint.store._unvouched_entries import judge_unvouched
from sealpoint.store._verified_chain import Chain, is_paused, lost_pause

__all__ = [
    "EXPIRY_WARNING",
    "AcceptedRestore",
    "BlobReader",
    "Chain",
    "CheckpointIndex",
    "CheckpointPlace",
    "CheckpointRef",
    "CheckpointStore",
    "Collected",
    "CommitDraft",
    "CopiedStore",
    "Core",
    "Deleted",
    "EndedKeys",
    "EntryDraft",
    "Erasure",
    "Event",
    "Key",
    "KeyUsage",
    "ListedThread",
    "Loaded",
    "LostDecision",
    "NearEntries",
    "Outcome",
    "PendingResult",
    "Pruning",
    "Release",
    "ReleasePosition",
    "ReleasedLane",
    "RestorePlan",
    "Results",
    "ResultsDraft",
    "ResultsRef",
    "RunPosition",
    "SaveDraft",
    "SessionStart",
    "Snapshot",
    "StoreParts",
    "ThreadNames",
    "ThreadOutcome",
    "ThreadReader",
    "ThreadRestore",
    "ThreadRetention",
    "ThreadState",
    "ThreadWalk",
    "ThreadWriter",
    "UnlistedThread",
    "UnverifiedThread",
    "accept_restore",
    "adopt_store_chain",
    "adopt_thread",
    "all_threads",
    "anchored_positions",
    "append_root",
    "append_roster",
    "blob_digest",
    "check_name",
    "check_rights",
    "checkpoint_at",
    "checkpoint_place",
    "claimed_name",
    "collect_garbage",
    "copy_roster",
    "copy_store",
    "enter_copy",
    "export_roster",
    "find_key_usage",
    "fresh_digests",
    "import_roster",
    "is_paused",
    "is_reserved",
    "judge_positions",
    "judge_unvouched",
    "list_positions_again",
    "list_threads",
    "lost_pause",
    "make_release",
    "match_heads",
    "named_slot",
    "plain_value",
    "plan_restore",
    "read_world",
    "record_joining",
    "require_roots",
    "revoke_keys",
    "shown_position",
    "store_slot",
    "thread_slot",
    "tip_position",
    "unanchored_threads",
    "unknown_threads",
]
