# SPDX-License-Identifier: Apache-2.0
"""Order: entries, who may write which kind, the links between them, and their verification.

Everything here is pure. Bytes come in as arguments; reading them is the store's work.
"""

from sealpoint.ledger._bodies import (
    AdoptBody,
    Body,
    CheckpointBody,
    EraseBody,
    GenesisBody,
    PruneBody,
    RestoreBody,
    ResumeBody,
    RootBody,
    RosterBody,
    encode_body,
    parse_body,
)
from sealpoint.ledger._cuts import CutList, CutLists
from sealpoint.ledger._header import (
    FORMAT_VERSION,
    UNENCRYPTED,
    Header,
    encode_header,
    parse_header,
)
from sealpoint.ledger._kinds import KINDS, Kind, KindRule
from sealpoint.ledger._links import Spine, link_hash, next_link, skip_seq
from sealpoint.ledger._roster_copy import CopiedEntry, RosterCopy
from sealpoint.ledger._store_chain import STORE_CHAIN, StoreChain
from sealpoint.ledger._thread_chain import (
    Entry,
    Fence,
    Place,
    Tip,
    begin,
    extend,
    read_fence,
    verify_entry,
)
from sealpoint.ledger._watch import CutWatch

__all__ = [
    "FORMAT_VERSION",
    "KINDS",
    "STORE_CHAIN",
    "UNENCRYPTED",
    "AdoptBody",
    "Body",
    "CheckpointBody",
    "CopiedEntry",
    "CutList",
    "CutLists",
    "CutWatch",
    "Entry",
    "EraseBody",
    "Fence",
    "GenesisBody",
    "Header",
    "Kind",
    "KindRule",
    "Place",
    "PruneBody",
    "RestoreBody",
    "ResumeBody",
    "RootBody",
    "RosterBody",
    "RosterCopy",
    "Spine",
    "StoreChain",
    "Tip",
    "begin",
    "encode_body",
    "encode_header",
    "extend",
    "link_hash",
    "next_link",
    "parse_body",
    "parse_header",
    "read_fence",
    "skip_seq",
    "verify_entry",
]
