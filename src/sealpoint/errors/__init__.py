# SPDX-License-Identifier: Apache-2.0
"""Every error Sealpoint raises, in one tree.

```
SealpointError                  error                  1
├── UsageError                  usage                  2   the call itself is wrong
│   ├── IdMalformed             id-malformed           2
│   ├── LimitInvalid            limit-invalid          2
│   ├── NameInvalid             name-invalid           2
│   ├── ObjectNotFound          object-not-found       2
│   ├── RuleInvalid             rule-invalid           2
│   ├── UrlInvalid              url-invalid            2
│   └── WorldInvalid            world-invalid          2
├── EncodeError                 encode                10   a value cannot be saved
│   ├── TypeNotAllowed          type-not-allowed      11
│   ├── ValueNotAllowed         value-not-allowed     12
│   └── EncodeLimitExceeded     encode-limit          13
├── DecodeError                 decode                20   bytes are not an allowed value
│   ├── BytesMalformed          bytes-malformed       21
│   ├── UnknownType             unknown-type          22
│   ├── VersionUnknown          version-unknown       23
│   ├── ShapeChanged            shape-changed         24
│   ├── RuleFailed              rule-failed           25
│   ├── DecodeLimitExceeded     decode-limit          26
│   └── BlobMismatch            blob-mismatch         27
├── Tampered                    tampered              30   the store is not what was written
│   ├── Edited                  edited                31
│   ├── Missing                 missing               32
│   ├── Forged                  forged                33
│   └── Misplaced               misplaced             34
├── RolledBack                  rolled-back           35   the store is older than the anchor
├── Forked                      forked                36   the store is beside the anchor
├── Unanchored                  unanchored            37   the anchor does not know the thread
├── AnchorUnavailable           anchor-unavailable    38
├── NotTrusted                  not-trusted           39   no key or role that may do this
├── NotOwner                    not-owner             40   somebody else owns the thread
├── Superseded                  superseded            41   a later session took the thread over
├── HeadMoved                   head-moved            42   somebody else wrote first
├── IdReused                    id-reused             43
├── UnknownThread               unknown-thread        44
├── UnknownCheckpoint           unknown-checkpoint    45
├── Erased                      erased                46
├── ReadOnly                    read-only             47
├── Pruned                      pruned                48
├── ListIncomplete              list-incomplete       49
├── StorageUnavailable          storage-unavailable   50   the backend failed
│   └── SchemaUnknown           schema-unknown        51
├── SignerFailed                signer-failed         52   a key that lives elsewhere did not sign
├── ConfigError                 config                60   the set-up is wrong
│   ├── DirectoryUnusable       directory-unusable    61
│   ├── StoreMisplaced          store-misplaced       62
│   ├── KeyFileUnsafe           key-file-unsafe       63
│   ├── KeyMissing              key-missing           64
│   ├── StoreExists             store-exists          65
│   ├── KeyLocked               key-locked            66
│   └── ExtraMissing            extra-missing         67
├── ResumeRefused               resume-refused        70   the gate says no
├── NeedsApproval               needs-approval        71   other people have to say yes first
├── Paused                      paused                72
├── Busy                        busy                  73
├── UnknownRequest              unknown-request       74
├── RequestClosed               request-closed        75
├── PolicyInvalid               policy-invalid        76
├── BundleInvalid               bundle-invalid        77
├── UnknownEntry                unknown-entry         78
└── ModelError                  model                 80   a model file cannot be used
    ├── FlagNotHonoured         flag-not-honoured     81
    ├── FormatRefused           format-refused        82
    ├── RecordCompressed        record-compressed     83
    ├── RecordMismatch          record-mismatch       84
    ├── SparseInvalid           sparse-invalid        85
    ├── ModelLimitExceeded      model-limit           86
    ├── ModelMalformed          model-malformed       87
    ├── GlobalNotAllowed        global-not-allowed    88
    ├── FileNotSealed           file-not-sealed       89
    └── ModelUnreadable         model-unreadable      90
```

The columns are class, code and exit status. Codes and exit statuses are stable: scripts may
branch on them. A message names the thing, what was expected and what was found; it never
carries the payload or a key. `KeyboardInterrupt` and `MemoryError` are never caught or renamed.
"""

from sealpoint.errors._codec import (
    BlobMismatch,
    BytesMalformed,
    DecodeError,
    DecodeLimitExceeded,
    EncodeError,
    EncodeLimitExceeded,
    RuleFailed,
    ShapeChanged,
    TypeNotAllowed,
    UnknownType,
    ValueNotAllowed,
    VersionUnknown,
)
from sealpoint.errors._environment import (
    ConfigError,
    DirectoryUnusable,
    ExtraMissing,
    KeyFileUnsafe,
    KeyLocked,
    KeyMissing,
    SchemaUnknown,
    SignerFailed,
    StorageUnavailable,
    StoreExists,
    StoreMisplaced,
)
from sealpoint.errors._gate import (
    BundleInvalid,
    Busy,
    NeedsApproval,
    Paused,
    PolicyInvalid,
    RequestClosed,
    ResumeRefused,
    UnknownEntry,
    UnknownRequest,
    WorldInvalid,
)
from sealpoint.errors._integrity import (
    AnchorUnavailable,
    Edited,
    Forged,
    Forked,
    Misplaced,
    Missing,
    NotTrusted,
    RolledBack,
    Tampered,
    Unanchored,
)
from sealpoint.errors._models import (
    FileNotSealed,
    FlagNotHonoured,
    FormatRefused,
    GlobalNotAllowed,
    ModelError,
    ModelLimitExceeded,
    ModelMalformed,
    ModelUnreadable,
    RecordCompressed,
    RecordMismatch,
    SparseInvalid,
)
from sealpoint.errors._root import SealpointError
from sealpoint.errors._store import (
    Erased,
    HeadMoved,
    IdReused,
    ListIncomplete,
    NotOwner,
    Pruned,
    ReadOnly,
    Superseded,
    UnknownCheckpoint,
    UnknownThread,
)
from sealpoint.errors._usage import (
    IdMalformed,
    LimitInvalid,
    NameInvalid,
    ObjectNotFound,
    RuleInvalid,
    UrlInvalid,
    UsageError,
)

__all__ = [
    "AnchorUnavailable",
    "BlobMismatch",
    "BundleInvalid",
    "Busy",
    "BytesMalformed",
    "ConfigError",
    "DecodeError",
    "DecodeLimitExceeded",
    "DirectoryUnusable",
    "Edited",
    "EncodeError",
    "EncodeLimitExceeded",
    "Erased",
    "ExtraMissing",
    "FileNotSealed",
    "FlagNotHonoured",
    "Forged",
    "Forked",
    "FormatRefused",
    "GlobalNotAllowed",
    "HeadMoved",
    "IdMalformed",
    "IdReused",
    "KeyFileUnsafe",
    "KeyLocked",
    "KeyMissing",
    "LimitInvalid",
    "ListIncomplete",
    "Misplaced",
    "Missing",
    "ModelError",
    "ModelLimitExceeded",
    "ModelMalformed",
    "ModelUnreadable",
    "NameInvalid",
    "NeedsApproval",
    "NotOwner",
    "NotTrusted",
    "ObjectNotFound",
    "Paused",
    "PolicyInvalid",
    "Pruned",
    "ReadOnly",
    "RecordCompressed",
    "RecordMismatch",
    "RequestClosed",
    "ResumeRefused",
    "RolledBack",
    "RuleFailed",
    "RuleInvalid",
    "SchemaUnknown",
    "SealpointError",
    "ShapeChanged",
    "SignerFailed",
    "SparseInvalid",
    "StorageUnavailable",
    "StoreExists",
    "StoreMisplaced",
    "Superseded",
    "Tampered",
    "TypeNotAllowed",
    "Unanchored",
    "UnknownCheckpoint",
    "UnknownEntry",
    "UnknownRequest",
    "UnknownThread",
    "UnknownType",
    "UrlInvalid",
    "UsageError",
    "ValueNotAllowed",
    "VersionUnknown",
    "WorldInvalid",
]

for _name in __all__:
    globals()[_name].__module__ = __name__  # the address that users import
