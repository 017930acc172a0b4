# SPDX-License-Identifier: Apache-2.0
"""Save and load agent state: threads of checkpoints on a storage, an anchor and a roster."""

from sealpoint.store._adopt import (
    adopt_store_chain,
    adopt_thread,
    enter_copy,
    record_joining,
    unanchored_threads,
)
from sealpoint.store._append import EntryDraft, check_rights
from sealpoint.store._blobs import BlobReader, blob_digest, fresh_digests
from sealpoint.store._chain import Chain, is_paused, lost_pause
from sealpoint.store._checkpoint_store import (
    CheckpointStore,
    LeftOut,
    ThreadNames,
    list_threads,
    unknown_threads,
)
from sealpoint.store._copy import CopiedStore, copy_store
from sealpoint.store._core import Core, StoreParts
from sealpoint.store._entry_reader import NearEntries
from sealpoint.store._expiry import EXPIRY_WARNING
from sealpoint.store._genesis import claimed_name
from sealpoint.store._index import CheckpointIndex, CheckpointPlace, Key, place_of
from sealpoint.store._names import check_name, is_reserved, store_slot, thread_slot
from sealpoint.store._positions import shown_position, tip_position
from sealpoint.store._reader import ThreadReader, checkpoint_at, read_world
from sealpoint.store._refs import (
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
from sealpoint.store._release import (
    Deleted,
    PendingResult,
    Release,
    ReleasedLane,
    Standpoint,
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
from sealpoint.store._revocation import (
    EndedKeys,
    KeyUsage,
    UnverifiedThread,
    find_key_usage,
    revoke_keys,
)
from sealpoint.store._roster import (
    anchored_positions,
    append_root,
    append_roster,
    copy_roster,
    export_roster,
    import_roster,
    list_positions_again,
    require_roots,
)
from sealpoint.store._save_draft import ResultsDraft, RunPosition, SaveDraft, plain_value
from sealpoint.store._state import ThreadState
from sealpoint.store._sweep import collect
from sealpoint.store._thread_list import ListedThread, all_threads, match_heads, named_slot
from sealpoint.store._two_anchors import judge_positions
from sealpoint.store._vouch import judge_unvouched
from sealpoint.store._walk import ThreadWalk
from sealpoint.store._writer import CommitDraft, Outcome, SessionStart, ThreadWriter

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
    "LeftOut",
    "ListedThread",
    "Loaded",
    "LostDecision",
    "NearEntries",
    "Outcome",
    "PendingResult",
    "Pruning",
    "Release",
    "ReleasedLane",
    "RestorePlan",
    "Results",
    "ResultsDraft",
    "ResultsRef",
    "RunPosition",
    "SaveDraft",
    "SessionStart",
    "Snapshot",
    "Standpoint",
    "StoreParts",
    "ThreadNames",
    "ThreadOutcome",
    "ThreadReader",
    "ThreadRestore",
    "ThreadRetention",
    "ThreadState",
    "ThreadWalk",
    "ThreadWriter",
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
    "claimed_name",
    "collect",
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
    "place_of",
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
