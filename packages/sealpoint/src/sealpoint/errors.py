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
├── NotTrusted                  not-trusted           39   the pin and the roster do not allow it
│   ├── NotOwner                not-owner             40   somebody else owns the thread
│   ├── NoPin                   no-pin                91   this machine does not know the store
│   ├── NoRight                 no-right              92   this identity may not do this
│   ├── KeyNotInForce           key-not-in-force      93   unknown to the roster, revoked or expired
│   └── TrustFileInvalid        trust-file-invalid    94   no pin, public key or copied roster
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
├── ProviderUnavailable         provider-unavailable  53   whoever says who people are does not
├── TooOften                    too-often             54   somebody asks more often than allowed
├── Overloaded                  overloaded            55   the console has too much to do
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
├── Moved                       moved                 79   it is not as somebody was shown it
├── PolicyInvalid               policy-invalid        76
├── BundleInvalid               bundle-invalid        77
├── UnknownEntry                unknown-entry         78
├── FileRefused                 file-refused          95   a foreign file is not imported
└── ModelError                  model                 80   a model file cannot be used
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
branch on them. A message about data names the thing, what was expected and what was found; one
about a decision or a call says what happened. It never carries the payload or a key. The hint
says what to do, by cause, and is part of `str(error)`, so that logs have it.
`KeyboardInterrupt` and `MemoryError` are never caught or renamed.
"""

from datetime import datetime
from typing import Any, ClassVar, Protocol

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
    "FileRefused",
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
    "KeyNotInForce",
    "LimitInvalid",
    "ListIncomplete",
    "Misplaced",
    "Missing",
    "ModelError",
    "ModelLimitExceeded",
    "ModelMalformed",
    "ModelUnreadable",
    "Moved",
    "NameInvalid",
    "NeedsApproval",
    "NoPin",
    "NoRight",
    "NotOwner",
    "NotTrusted",
    "ObjectNotFound",
    "Overloaded",
    "Paused",
    "PolicyInvalid",
    "ProviderUnavailable",
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
    "TooOften",
    "TrustFileInvalid",
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


# ---------------------------------------------------------------------- the root


class SealpointError(Exception):
    """The root of the tree; catch it to catch everything Sealpoint raises on purpose.

    `str(error)` is the message with the hint; `error.message` is the message alone.

    Args:
        message: What happened, and to what.
        hint: What to do about it; the class's own hint when absent.
    """

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 1
    hint: str = "Read the message; the error reference explains every code."

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        if hint is not None:
            self.hint = hint

    @property
    def message(self) -> str:
        """What happened, without the hint."""
        return str(self.args[0])

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}"

    def as_dict(self) -> dict[str, str | int]:
        """The one JSON shape of an error: what `--json` prints."""
        return {
            "code": self.code,
            "exit_status": self.exit_status,
            "message": self.message,
            "hint": self.hint,
        }


# ---------------------------------------------------------------------- the call


class UsageError(SealpointError):
    """The call itself is wrong."""

    code = "usage"
    exit_status = 2
    hint = "Correct the call as the message says."


class IdMalformed(UsageError):
    """A text is not an id of the kind that was asked for."""

    code = "id-malformed"
    hint = "Copy the id exactly as it was printed: prefix, colon, lower-case hexadecimal digits."


class LimitInvalid(UsageError):
    """A limit was set to something that cannot be a bound."""

    code = "limit-invalid"
    hint = "Limits are whole numbers within the bounds that the reference lists."


class ObjectNotFound(UsageError):
    """The command line was given a MODULE:OBJECT that does not exist."""

    code = "object-not-found"
    hint = "Write MODULE:OBJECT, with the module importable from the current directory."


class RuleInvalid(UsageError):
    """A type rule cannot be made as it was asked for."""

    code = "rule-invalid"
    hint = "Give the type a unique name and version, or a pair of encode= and decode= functions."


class NameInvalid(UsageError):
    """A thread, namespace, identity or checkpoint cannot be called this."""

    code = "name-invalid"
    hint = "Names are printable text of at most 512 bytes, without a space at either end."


class UrlInvalid(UsageError):
    """A store URL is not one that Sealpoint knows."""

    code = "url-invalid"
    hint = "Write it as in sqlite:///agents.db, with the path of the store."


# ---------------------------------------------------------------------- values


class EncodeError(SealpointError):
    """A value cannot be saved as it is."""

    code = "encode"
    exit_status = 10
    hint = "Registry.explain(value) lists everything in a value that cannot be saved."


class TypeNotAllowed(EncodeError):
    """A value holds an object of a type that no rule allows."""

    code = "type-not-allowed"
    exit_status = 11
    hint = "Allow the type with registry.allow(...), or turn the value into plain data."


class ValueNotAllowed(EncodeError):
    """The type is allowed, this value of it has no lossless form."""

    code = "value-not-allowed"
    exit_status = 12
    hint = "Change the value as the message says, or give its type encode= and decode=."


class EncodeLimitExceeded(EncodeError):
    """A value is larger or deeper than the limits allow."""

    code = "encode-limit"
    exit_status = 13
    hint = "Make the value smaller, or raise the named limit in Registry(limits=Limits(...))."


class DecodeError(SealpointError):
    """Bytes are not a value that the registry allows; nothing was built.

    Attributes:
        within: Names of the application types the fault lay inside, innermost first.
    """

    code = "decode"
    exit_status = 20
    hint = "Do not use these bytes; find out who wrote them and with which registry."

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.within: list[str] = []

    @property
    def message(self) -> str:
        """What happened and inside which types, without the hint."""
        return super().message + "".join(f", inside {name}" for name in self.within)


class BytesMalformed(DecodeError):
    """Bytes do not follow the value format."""

    code = "bytes-malformed"
    exit_status = 21


class UnknownType(DecodeError):
    """Bytes name a tag or a type that no rule allows."""

    code = "unknown-type"
    exit_status = 22
    hint = "If your application wrote this, allow the type under the name in the message."


class VersionUnknown(DecodeError):
    """Bytes hold a version of a type that the rule neither is nor upgrades from."""

    code = "version-unknown"
    exit_status = 23
    hint = "Give the rule an upgrade={version: function} for the stored version."


class ShapeChanged(DecodeError):
    """A class changed its fields or annotations and kept its version."""

    code = "shape-changed"
    exit_status = 24
    hint = "Raise version= in the rule and add upgrade={old_version: function}."


class RuleFailed(DecodeError):
    """A rule's own function (decode, upgrade or a validating constructor) failed."""

    code = "rule-failed"
    exit_status = 25
    hint = "The cause is chained to this error; the function is the application's own."


class DecodeLimitExceeded(DecodeError):
    """Bytes ask for more than the limits allow."""

    code = "decode-limit"
    exit_status = 26
    hint = "If the value is genuine, raise the named limit in Registry(limits=Limits(...))."


class BlobMismatch(DecodeError):
    """A blob of a tree is missing, or is not the one its id names."""

    code = "blob-mismatch"
    exit_status = 27
    hint = "The blob store lost or changed data; restore it from a good copy."


# ---------------------------------------------------------------------- integrity


class Tampered(SealpointError):
    """What lies in the store is not what was written there; nothing of it was decoded."""

    code = "tampered"
    exit_status = 30
    hint = "Stop using this store: find out who changed it, then restore a good copy."


class Edited(Tampered):
    """Stored bytes differ from the bytes that were sealed."""

    code = "edited"
    exit_status = 31


class Missing(Tampered):
    """Something that the sealed history needs is not in the store."""

    code = "missing"
    exit_status = 32


class Forged(Tampered):
    """An entry carries no valid signature of the key it names."""

    code = "forged"
    exit_status = 33


class Misplaced(Tampered):
    """A genuine entry lies where it was not written."""

    code = "misplaced"
    exit_status = 34


class RolledBack(SealpointError):
    """The store ends before the position that the anchor remembers."""

    code = "rolled-back"
    exit_status = 35
    hint = (
        "The store is older than it was: bring back the newest copy of it. If there is none, "
        "sealpoint accept-restore --dry-run --reason TEXT says what is lost, and the same without "
        "--dry-run accepts it."
    )


class Forked(SealpointError):
    """The store went another way than the history that the anchor remembers."""

    code = "forked"
    exit_status = 36
    hint = "Two histories exist; keep both copies and find out which one is genuine."


class Unanchored(SealpointError):
    """The store holds a thread that the anchor has never seen."""

    code = "unanchored"
    exit_status = 37
    hint = (
        "If this is the newest copy of the store, an operator of all namespaces runs: sealpoint "
        "anchor adopt --reason TEXT."
    )


class AnchorUnavailable(SealpointError):
    """The anchor cannot be read or written.

    Attributes:
        ref: The checkpoint that was saved before the anchor failed, or None. It stands.
    """

    code = "anchor-unavailable"
    exit_status = 38
    hint = "Make the anchor work again, then load: whatever was saved is there."

    def __init__(self, message: str, *, hint: str | None = None, ref: object = None) -> None:
        super().__init__(message, hint=hint)
        self.ref = ref


class NotTrusted(SealpointError):
    """The pin and the roster do not allow what lies in the store, or what was asked for.

    Raised itself for what was found: an entry or a document that its signers had no right to
    make. What the caller may not do is one of the subclasses.
    """

    code = "not-trusted"
    exit_status = 39
    hint = (
        "Do not rely on it: find out who used the key. sealpoint verify lists every fault, and "
        "sealpoint keys list who holds which key."
    )


class NotOwner(NotTrusted):
    """The thread belongs to another identity."""

    code = "not-owner"
    exit_status = 40
    hint = "Open the store as the owner of the thread, or use another thread."


class NoPin(NotTrusted):
    """This machine has no pin of the store, and so no reason to trust it."""

    code = "no-pin"
    exit_status = 91
    hint = (
        "New store: sealpoint init --store URL. Existing store: sealpoint trust export, on a "
        "machine that knows it, writes a pin for sealpoint trust import PIN --store URL here."
    )


class NoRight(NotTrusted):
    """The roster does not give this identity the role or the namespace that the act needs."""

    code = "no-right"
    exit_status = 92
    hint = (
        "sealpoint keys list shows roles and namespaces; where the root key is, sealpoint keys "
        "add NAME --person WHO --role ROLE --namespace NAMESPACE gives one more."
    )


class KeyNotInForce(NotTrusted):
    """The key is not in the roster, was revoked, or has expired."""

    code = "key-not-in-force"
    exit_status = 93
    hint = (
        "sealpoint keys list shows the keys in force; where the root key is, sealpoint keys "
        "rotate NAME gives an identity a new one."
    )


class TrustFileInvalid(NotTrusted):
    """A file is no pin, no public key or no copy of a roster."""

    code = "trust-file-invalid"
    exit_status = 94
    hint = "Ask for the file once more where it comes from, and compare it with its origin."


# ---------------------------------------------------------------------- the store


class Superseded(SealpointError):
    """A later session took the thread over; this one may not write any more."""

    code = "superseded"
    exit_status = 41
    hint = "Load the thread again and decide again; the next save opens a new session."


class HeadMoved(SealpointError):
    """Somebody else wrote the position that this handle was about to write."""

    code = "head-moved"
    exit_status = 42
    hint = "Load the thread again and decide again."


class IdReused(SealpointError):
    """The thread has a checkpoint of this id that says something else."""

    code = "id-reused"
    exit_status = 43
    hint = "Give every checkpoint an id of its own; only an exact repetition may reuse one."


class UnknownThread(SealpointError):
    """There is no thread of this name."""

    code = "unknown-thread"
    exit_status = 44
    hint = "sealpoint threads lists the names; the first save makes a thread."


class UnknownCheckpoint(SealpointError):
    """The thread has no such checkpoint."""

    code = "unknown-checkpoint"
    exit_status = 45
    hint = "sealpoint log THREAD lists the checkpoints of a thread."


class Erased(SealpointError):
    """What was asked for has been erased on purpose, and the erasure is recorded."""

    code = "erased"
    exit_status = 46
    hint = "It cannot be brought back; a new save starts a new generation of the thread."


class Pruned(SealpointError):
    """The payload of this checkpoint was given up on purpose, and that is recorded."""

    code = "pruned"
    exit_status = 48
    hint = "sealpoint log THREAD shows which checkpoints still have their state."


class ReadOnly(SealpointError):
    """The store was opened for reading only."""

    code = "read-only"
    exit_status = 47
    hint = "Open the store without read_only=True to write."


class ListIncomplete(SealpointError):
    """A list would leave something out, and was not asked to.

    Attributes:
        left_out: What it leaves out.
    """

    code = "list-incomplete"
    exit_status = 49
    hint = "sealpoint anchor show tells what is missing; partial=True gives what is there."

    def __init__(
        self, message: str, *, hint: str | None = None, left_out: tuple[object, ...] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.left_out = left_out


# ---------------------------------------------------------------------- the environment


class StorageUnavailable(SealpointError):
    """The backend failed: the store is gone, locked, full or not writable."""

    code = "storage-unavailable"
    exit_status = 50
    hint = "Nothing was half-written. Make the backend work again and repeat the call."


class SchemaUnknown(StorageUnavailable):
    """The file is no Sealpoint store, or one of a schema that this version does not know."""

    code = "schema-unknown"
    exit_status = 51
    hint = "Check the path, or install the Sealpoint version that wrote the store."


class SignerFailed(SealpointError):
    """A key that lives elsewhere did not sign: its service failed, or signed something else."""

    code = "signer-failed"
    exit_status = 52
    hint = "Nothing was written. Make the signer work again and repeat the call."


class ProviderUnavailable(SealpointError):
    """The provider that says who somebody is cannot be reached, or answers otherwise."""

    code = "provider-unavailable"
    exit_status = 53
    hint = (
        "Nobody was signed in. Try again in a minute; if it stays so, check the provider and "
        "[console.oidc] of config.toml."
    )


class TooOften(SealpointError):
    """Somebody asks the console for something more often, or at more places, than one may."""

    code = "too-often"
    exit_status = 54
    hint = "Wait a minute, then try again."


class Overloaded(SealpointError):
    """The console makes as many pages as it can; this one was not begun."""

    code = "overloaded"
    exit_status = 55
    hint = "Nothing was done. Try again in a few seconds; if it stays so, look at Health."


class ConfigError(SealpointError):
    """Configuration is missing, malformed or unsafe."""

    code = "config"
    exit_status = 60
    hint = "Correct the file or setting that the message names."


class DirectoryUnusable(ConfigError):
    """A directory for configuration, state or a store of files cannot be used."""

    code = "directory-unusable"
    exit_status = 61
    hint = "Make it a directory of your own, or name another with config_dir= and state_dir=."


class StoreMisplaced(ConfigError):
    """The store lies where its own keys or its anchor lie."""

    code = "store-misplaced"
    exit_status = 62
    hint = "Anyone who can write the store must not reach keys or anchor: put it somewhere else."


class KeyFileUnsafe(ConfigError):
    """A secret file can be read or changed by others, or is not what it should be."""

    code = "key-file-unsafe"
    exit_status = 63
    hint = (
        "If others can read the file and nobody has, chmod 600 it; if anyone may have, make a "
        "new key. If it is damaged or another key, put the right file back from your backup."
    )


class KeyMissing(ConfigError):
    """There is no private key for this identity here."""

    code = "key-missing"
    exit_status = 64
    hint = "sealpoint keys list shows the keys that are here; sealpoint keys new makes one."


class KeyLocked(ConfigError):
    """The private key is encrypted, and its passphrase was not given or does not open it."""

    code = "key-locked"
    exit_status = 66
    hint = (
        "Give its passphrase: passphrase= in Python, SEALPOINT_PASSPHRASE, "
        "SEALPOINT_PASSPHRASE_FILE, or a terminal to ask on."
    )


class ExtraMissing(ConfigError):
    """A part of Sealpoint was imported whose packages are not installed."""

    code = "extra-missing"
    exit_status = 67
    hint = "Install the extra with the command in the message."


class StoreExists(ConfigError):
    """The store is initialised already."""

    code = "store-exists"
    exit_status = 65
    hint = "Open it with open_store(url), or choose another place for a new store."


# ---------------------------------------------------------------------- the gate


class AskedRequest(Protocol):
    """What an error shows of a `sealpoint.gate.Request`, which lies in a higher layer."""

    @property
    def id(self) -> str:
        """What approvers sign, and what the request is called."""

    @property
    def short(self) -> str:
        """The first digits of the id, for people to compare."""

    @property
    def thread(self) -> str:
        """The name of the thread."""

    @property
    def asked_at(self) -> datetime:
        """When it was asked."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it needs approval, one sentence each."""

    @property
    def answer(self) -> Any:
        """What the run would be answered."""

    @property
    def world(self) -> dict[str, Any] | None:
        """What the run would be able to do."""

    @property
    def status(self) -> str:
        """How it stands."""

    @property
    def approved_by(self) -> tuple[str, ...]:
        """Whose approvals count, one for each person."""

    @property
    def denied_by(self) -> tuple[str, ...]:
        """Whose denials count."""

    @property
    def needed(self) -> int:
        """How many approvals the policy asks for."""


class ResumeRefused(SealpointError):
    """The gate does not let this run go on; `.reasons` says why, one sentence each."""

    code = "resume-refused"
    exit_status = 70
    hint = "sealpoint resume THREAD shows what the gate says, and the policy what would change it."

    def __init__(
        self, message: str, *, reasons: tuple[str, ...] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.reasons = reasons


class NeedsApproval(SealpointError):
    """Other people have to approve this first; `.request` is what they are asked."""

    code = "needs-approval"
    exit_status = 71
    hint = (
        "Another person answers it with sealpoint approve ID --reason WHY (sealpoint requests "
        "lists the ids); then resume again."
    )

    def __init__(
        self,
        message: str,
        *,
        request: AskedRequest,
        reasons: tuple[str, ...] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.request = request
        self.reasons = reasons


class Paused(SealpointError):
    """An operator has paused the thread: nothing is saved or resumed until it is unpaused."""

    code = "paused"
    exit_status = 72
    hint = (
        "Keep the state. An operator ends the pause with sealpoint unpause THREAD --reason WHY; "
        "then save again."
    )


class Busy(SealpointError):
    """A run of the thread is under way, or another session is too young to be taken over."""

    code = "busy"
    exit_status = 73
    hint = (
        "Wait until the run has ended. If it is stuck, an operator stops it: sealpoint pause "
        "THREAD --reason WHY, then sealpoint unpause THREAD --reason WHY."
    )


class UnknownRequest(SealpointError):
    """There is no such open request."""

    code = "unknown-request"
    exit_status = 74
    hint = (
        "sealpoint requests lists the open ones; once a thread has continued, sealpoint why ID "
        "says what became of it."
    )


class UnknownEntry(SealpointError):
    """There is no entry, and no request, of these digits."""

    code = "unknown-entry"
    exit_status = 78
    hint = "sealpoint audit lists every entry with its digits, sealpoint requests --all requests."


class RequestClosed(SealpointError):
    """The request was denied, has expired, or is void because the thread or policy moved on."""

    code = "request-closed"
    exit_status = 75
    hint = "Resume, or propose the rollout, again: that makes a new request, for what is there now."


class Moved(SealpointError):
    """The thread is not any more as whoever acts was shown it; `.moved` says what changed."""

    code = "moved"
    exit_status = 79
    hint = "Nothing was written. Look at the thread again, and decide again."

    def __init__(
        self, message: str, *, moved: tuple[str, ...] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.moved = moved


class PolicyInvalid(SealpointError):
    """A policy is not one, or not the one that the roster names."""

    code = "policy-invalid"
    exit_status = 76
    hint = "Correct what the message names; sealpoint policy show --name solo prints a valid one."


class WorldInvalid(UsageError):
    """A world does not say what a run can do in a way that can be compared."""

    code = "world-invalid"
    exit_status = 2
    hint = "Correct what the message names, or leave it out of the world."


class BundleInvalid(SealpointError):
    """An evidence bundle does not prove what it says."""

    code = "bundle-invalid"
    exit_status = 77
    hint = "Do not rely on it: ask for a new export, and compare the pin with its origin."


# ---------------------------------------------------------------------- foreign files


class FileRefused(SealpointError, ValueError):
    """A file of another storage holds what is not imported."""

    code = "file-refused"
    exit_status = 95
    hint = "Do not load this file in another way: find out who wrote it, and with what."


# ---------------------------------------------------------------------- model files


class ModelError(SealpointError, RuntimeError):
    """A model file cannot be used."""

    code = "model"
    exit_status = 80
    hint = "Do not load this file in another way: find out who wrote it, and with what."


class FormatRefused(ModelError):
    """The file is in a format that cannot be loaded safely, or in none."""

    code = "format-refused"
    exit_status = 82
    hint = (
        "It is not read. Where it was made, save its tensors by themselves: the state_dict() of a "
        "module, with save_checkpoint or torch.save."
    )


class RecordCompressed(ModelError):
    """A part of the file is compressed, which no torch ever writes."""

    code = "record-compressed"
    exit_status = 83


class RecordMismatch(ModelError):
    """A part of the file has another size than the file declares for it."""

    code = "record-mismatch"
    exit_status = 84


class SparseInvalid(ModelError):
    """The indices of a sparse tensor point outside of it, or are not in order."""

    code = "sparse-invalid"
    exit_status = 85


class ModelLimitExceeded(ModelError):
    """The file asks for more nesting, objects or memory than a model file may."""

    code = "model-limit"
    exit_status = 86


class ModelMalformed(ModelError):
    """The file is not what the specification of its format says."""

    code = "model-malformed"
    exit_status = 87


class GlobalNotAllowed(ModelError):
    """The file names a class or function that is not one of tensors and plain data."""

    code = "global-not-allowed"
    exit_status = 88
    hint = (
        'load_checkpoint(path, unknown="inert") and sealpoint model convert IN OUT --unknown inert '
        "read such names as data, and call nothing; sealpoint model inspect FILE shows them."
    )


class FileNotSealed(ModelError):
    """No checkpoint of the thread vouches for this file."""

    code = "file-not-sealed"
    exit_status = 89
    hint = "Load the file that this run saved last: sealpoint model list THREAD lists its files."


class ModelUnreadable(ModelError):
    """The file cannot be opened, read or written."""

    code = "model-unreadable"
    exit_status = 90
    hint = "See to the path, its permissions and the space on the disk."
