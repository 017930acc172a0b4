# SPDX-License-Identifier: Apache-2.0
"""Order: entries, who may write which kind, the links between them, and their verification.

Everything here is pure. Bytes come in as arguments; reading them is the store's work.
"""

from sealpoint.ledger._bodies import (
    AdoptBody,
    BreakGlassBody,
    CheckpointBody,
    EraseBody,
    ExpiryBody,
    GenesisBody,
    HandoffBody,
    Origin,
    PauseBody,
    RequestBody,
    RestoreBody,
    ResumeBody,
    RootBody,
    RosterBody,
    UnpauseBody,
    Unreadable,
    VerdictBody,
    WritesBody,
    encode_body,
    parse_body,
    read_body,
    require_past,
)
from sealpoint.ledger._body import Body
from sealpoint.ledger._cuts import CutList, CutLists
from sealpoint.ledger._entry import Entry
from sealpoint.ledger._header import (
    FORMAT_VERSION,
    UNENCRYPTED,
    Header,
    encode_header,
    parse_header,
)
from sealpoint.ledger._kinds import KINDS, Kind, KindRule
from sealpoint.ledger._links import Spine, link_hash, next_link, skip_seq
from sealpoint.ledger._pruning import PruneBody
from sealpoint.ledger._roster_copy import CopiedEntry, RosterCopy
from sealpoint.ledger._store_chain import STORE_CHAIN, StoreChain
from sealpoint.ledger._thread_chain import (
    Fence,
    Place,
    Tip,
    begin,
    extend,
    next_pause,
    read_fence,
    read_standing,
    verify_entry,
)
from sealpoint.ledger._watch import CutWatch
from sealpoint.ledger._words import believed_words, carried_words, require_words

__all__ = [
    "FORMAT_VERSION",
    "KINDS",
    "STORE_CHAIN",
    "UNENCRYPTED",
    "AdoptBody",
    "Body",
    "BreakGlassBody",
    "CheckpointBody",
    "CopiedEntry",
    "CutList",
    "CutLists",
    "CutWatch",
    "Entry",
    "EraseBody",
    "ExpiryBody",
    "Fence",
    "GenesisBody",
    "HandoffBody",
    "Header",
    "Kind",
    "KindRule",
    "Origin",
    "PauseBody",
    "Place",
    "PruneBody",
    "RequestBody",
    "RestoreBody",
    "ResumeBody",
    "RootBody",
    "RosterBody",
    "RosterCopy",
    "Spine",
    "StoreChain",
    "Tip",
    "UnpauseBody",
    "Unreadable",
    "VerdictBody",
    "WritesBody",
    "begin",
    "believed_words",
    "carried_words",
    "encode_body",
    "encode_header",
    "extend",
    "link_hash",
    "next_link",
    "next_pause",
    "parse_body",
    "parse_header",
    "read_body",
    "read_fence",
    "read_standing",
    "require_past",
    "require_words",
    "skip_seq",
    "verify_entry",
]
