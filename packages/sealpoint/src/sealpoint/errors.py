# SPDX-License-Identifier: Apache-2.0
"""Every error Sealpoint raises on purpose, in one tree with a family for each exit status.

A class directly below `SealpointError` is a family. It sets `exit_status`, and all classes below
it inherit that status: an exit status says what a script does next, and `except` with the family
says the same in Python. Each class has a code of its own, for programs that need the cause. Codes
and exit statuses are stable. Pages and documents show them; `python -m tests.repo.errors --write`
makes docs/reference/errors.md from the classes here.

A message about data names the thing, what was expected and what was found; a message about a
decision or a call says what happened. It never carries the payload or a key. The hint says what
to do, by cause. `KeyboardInterrupt` and `MemoryError` are never caught or renamed.
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
    "Conflict",
    "DecodeError",
    "DecodeLimitExceeded",
    "DirectoryUnusable",
    "Edited",
    "EncodeError",
    "EncodeLimitExceeded",
    "Erased",
    "ExtraMissing",
    "FileError",
    "FileNotSealed",
    "FileRefused",
    "Forged",
    "Forked",
    "FormatRefused",
    "GateRefused",
    "GlobalNotAllowed",
    "GuardExposed",
    "HeadMoved",
    "HistoryChanged",
    "IdMalformed",
    "IdReused",
    "IntegrityError",
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
    "NotFound",
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
    "StateChanged",
    "StateUnsealed",
    "StorageUnavailable",
    "StoreExists",
    "StoreMisplaced",
    "Superseded",
    "Tampered",
    "TooOften",
    "TrustFileInvalid",
    "TypeNotAllowed",
    "Unanchored",
    "Unavailable",
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

    A script stops and shows the message.

    Sealpoint raises only its subclasses. A command exits with 1 where a user does not confirm a
    question.

    Args:
        message: The event, and the thing that it happened to.
        hint: The action to take; the class's own hint when absent.
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
        """The message without the hint."""
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
    """The call itself is wrong, and nothing was written.

    A script stops: its call has to be corrected.
    """

    code = "usage"
    exit_status = 2
    hint = "Correct the call as the message says."


class IdMalformed(UsageError):
    """A text is not an id of the kind that was asked for.

    Sealpoint never takes an id of one kind for another.
    """

    code = "id-malformed"
    hint = "Copy the id exactly as it was printed: prefix, colon, lower-case hexadecimal digits."


class LimitInvalid(UsageError):
    """A limit was set to something that cannot be a bound.

    `depth_max` can only be lowered, and `blob_bytes_max` is at least `BLOB_BYTES_LEAST`.
    """

    code = "limit-invalid"
    hint = "Limits are whole numbers within the bounds that the reference lists."


class NameInvalid(UsageError):
    """A thread, namespace, identity or checkpoint cannot have this name.

    Names have no space at either end, no invisible character, and each letter in its composed form:
    `unicodedata.normalize("NFC", name)`. Names of identities are also names of files: 1 to 64 of
    `a-z`, `0-9`, dot, underscore and hyphen, and the first is a letter or a digit.
    """

    code = "name-invalid"
    hint = "Names are printable text of at most 512 bytes, without a space at either end."


class ObjectNotFound(UsageError):
    """The command line was given a MODULE:OBJECT that does not exist or cannot be imported."""

    code = "object-not-found"
    hint = "Write MODULE:OBJECT, with the module importable from the current directory."


class ReadOnly(UsageError):
    """The store was opened for reading only."""

    code = "read-only"
    hint = "Open the store without read_only=True to write."


class RuleInvalid(UsageError):
    """A type rule cannot be made as it was asked for.

    The name is malformed or taken, the type has a rule already or is built in, as those of numpy
    and torch are, or an upgrade starts at a version that does not exist. A class of an unknown kind
    needs `encode=` and `decode=`. A class with a `__del__` method needs these or `validate=True`,
    because Python would run that method on fields that the bytes chose.
    """

    code = "rule-invalid"
    hint = "Give the type a unique name and version, or a pair of encode= and decode= functions."


class UrlInvalid(UsageError):
    """A store URL is not one that Sealpoint knows.

    The forms are `memory:`, `sqlite:///relative.db`, `sqlite:////absolute/path.db`,
    `file:///absolute/directory` and `postgresql://USER@HOST/DATABASE`. A path cannot begin with
    `~`.
    """

    code = "url-invalid"
    hint = "Write it as in sqlite:///agents.db, with the path of the store."


class WorldInvalid(UsageError):
    """A world does not say what a run can do in a way that can be compared.

    The message names the place: a tool is there twice, a text is not a digest, something is too
    deep or too long, or a schema refers to a remote document, which could change without the world.
    """

    code = "world-invalid"
    hint = "Correct what the message names, or leave it out of the world."


# ---------------------------------------------------------------------- values


class EncodeError(SealpointError):
    """A value cannot be saved as it is.

    A script saves other data, or its registry allows the type.
    """

    code = "encode"
    exit_status = 10
    hint = "Registry.explain(value) lists everything in a value that cannot be saved."


class TypeNotAllowed(EncodeError):
    """A value holds an object of a type that no rule allows.

    The message has the path to the object, and its hint has the line that allows the type. A
    subclass is a type of its own, even one of `str`, `int` or `dict`. No line allows code and open
    resources, such as functions, classes, generators and files.
    """

    code = "type-not-allowed"
    hint = "Allow the type with registry.allow(...), or turn the value into plain data."


class ValueNotAllowed(EncodeError):
    """The type is allowed, but this value of it has no lossless form.

    For example it has an attribute that is not a field, a field that is not set, a default factory
    that is code, or it is a tensor with a gradient or on another device.
    """

    code = "value-not-allowed"
    hint = "Change the value as the message says, or give its type encode= and decode=."


class EncodeLimitExceeded(EncodeError):
    """A value is larger or deeper than the limits allow.

    Look for a reference cycle first. Raise a limit for the writer and for every reader.
    """

    code = "encode-limit"
    hint = "Make the value smaller, or raise the named limit in Registry(limits=Limits(...))."


class DecodeError(SealpointError):
    """Bytes are not a value that the registry allows; nothing was built.

    A script stops, and does not continue without the value.

    Attributes:
        within: Names of the application types around the fault, innermost first.
    """

    code = "decode"
    exit_status = 20
    hint = "Do not use these bytes; find out who wrote them and with which registry."

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.within: list[str] = []

    @property
    def message(self) -> str:
        """The message and the types around the fault, without the hint."""
        return super().message + "".join(f", inside {name}" for name in self.within)


class BytesMalformed(DecodeError):
    """Bytes do not follow the value format: they were cut short, added to or edited."""

    code = "bytes-malformed"


class UnknownType(DecodeError):
    """Bytes name a tag or a type that no rule allows.

    If your application wrote them, the reader lacks a rule, the import of numpy or torch, or a time
    zone of the writer's machine. If it did not, someone tried to have something built.
    """

    code = "unknown-type"
    hint = "If your application wrote this, allow the type under the name in the message."


class VersionUnknown(DecodeError):
    """Bytes hold a version of a type that the rule neither is nor upgrades from.

    For a newer version, run the newer code.
    """

    code = "version-unknown"
    hint = "Give the rule an upgrade={version: function} for the stored version."


class ShapeChanged(DecodeError):
    """A class changed its fields or annotations and kept its version.

    The message names the fields, and its hint is the code to write: the rule with a new `version=`,
    and the function that turns the old fields into the new ones. A new field with a plain default
    is not an error.
    """

    code = "shape-changed"
    hint = "Raise version= in the rule and add upgrade={old_version: function}."


class RuleFailed(DecodeError):
    """A rule's own function (decode, upgrade or a validating constructor) failed.

    The message names the function and the kind of exception, but not its text, which may carry the
    payload.
    """

    code = "rule-failed"
    hint = "The cause is chained to this error; the function is the application's own."


class DecodeLimitExceeded(DecodeError):
    """Bytes ask for more than the limits allow, as in an attack on memory or time."""

    code = "decode-limit"
    hint = "If the value is genuine, raise the named limit in Registry(limits=Limits(...))."


class BlobMismatch(DecodeError):
    """A blob of a tree is missing, or does not have the hash that its id names."""

    code = "blob-mismatch"
    hint = "The blob store lost or changed data; restore it from a good copy."


# ---------------------------------------------------------------------- integrity


class IntegrityError(SealpointError):
    """A store or a bundle is not the one that was written, or nothing proves that it is.

    A script stops, alerts a person, and does not use the store or the bundle.
    """

    code = "integrity"
    exit_status = 30
    hint = "Do not use it until a person has found out what happened to it."


class Tampered(IntegrityError):
    """The data in the store is not what was written there; nothing of it was decoded.

    Do not repair it by hand. Keep a copy of it as it is.
    """

    code = "tampered"
    hint = "Stop using this store: find out who changed it, then restore a good copy."


class Edited(Tampered):
    """Stored bytes differ from the bytes that were sealed.

    This covers headers, bodies, signatures, blobs and the tables: an added trigger, view or column
    is an edit. Entries of format version 1 are refused too, and the hint says so.
    """

    code = "edited"


class Missing(Tampered):
    """The store lacks an entry between others, or a blob that the sealed history needs.

    If the missing entry is the last one, the error is `rolled-back`.
    """

    code = "missing"


class Forged(Tampered):
    """An entry carries no valid signature of the key it names."""

    code = "forged"


class Misplaced(Tampered):
    """A genuine entry is where it was not written.

    It is of another store, namespace, thread or position, or follows another entry. An entry that
    was lost in an accepted restore and has come back is misplaced as well; `sealpoint
    accept-restore` removes it.
    """

    code = "misplaced"


class RolledBack(IntegrityError):
    """The store ends before the position that the anchor has recorded.

    Someone deleted the newest entries or the file, or put an older copy in its place. In a
    database, the thread may be of a namespace that the login does not see: look with a login that
    sees all first. A roster older than the pin names is rolled back too; `sealpoint roster import`
    brings the newest.
    """

    code = "rolled-back"
    hint = (
        "The store is older than it was: bring back the newest copy of it. If there is none, "
        "sealpoint accept-restore --dry-run --reason TEXT says what is lost, and the same without "
        "--dry-run accepts it."
    )


class Forked(IntegrityError):
    """The store has another history than the anchor has recorded.

    Both histories are signed by keys that may write: two copies of one store were written to, or
    someone else has a key. With a shared anchor, this machine may remember a history that a
    failover lost; to follow the others, move the anchor directory away that `sealpoint status`
    names.
    """

    code = "forked"
    hint = "Two histories exist; keep both copies and find out which one is genuine."


class Unanchored(IntegrityError):
    """The store, or a thread in it, is one that this machine's anchor has never seen.

    The anchor was lost, this is another machine, or someone added the thread. `sealpoint anchor
    adopt` verifies everything first, and records who adopted it and why.
    """

    code = "unanchored"
    hint = (
        "If this is the newest copy of the store, an operator of all namespaces runs: sealpoint "
        "anchor adopt --reason TEXT."
    )


class ListIncomplete(IntegrityError):
    """A list would leave something out, and the caller did not ask for a partial one.

    The anchor knows a thread that the store lacks or that the database login does not see, or the
    store has a thread that this anchor never saw.

    Attributes:
        left_out: The threads that the list leaves out.
    """

    code = "list-incomplete"
    hint = "sealpoint anchor show tells what is missing; partial=True gives what is there."

    def __init__(
        self, message: str, *, hint: str | None = None, left_out: tuple[object, ...] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.left_out = left_out


class BundleInvalid(IntegrityError):
    """An evidence bundle does not prove what it says.

    An entry in it that someone changed is refused with the error of a store, such as `edited`. A
    bundle that holds a resume which was not justified is valid, and its `findings` say so.
    """

    code = "bundle-invalid"
    hint = "Do not rely on it: ask for a new export, and compare the pin with its origin."


class StateChanged(IntegrityError):
    """The state of an application that a guard seals is not what was sealed.

    It was changed while the application was stopped, past the guard. The message names the
    table or file and the row.

    Attributes:
        differences: Every difference, in a line each.
    """

    code = "state-changed"
    hint = (
        "sealpoint openclaw diff lists every difference. If they are meant, sealpoint openclaw "
        "accept --reason WHY takes the state as it is."
    )

    def __init__(
        self, message: str, *, hint: str | None = None, differences: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.differences = differences


class HistoryChanged(StateChanged):
    """A history that a guard seals has another past than was sealed.

    Messages, approvals or events were edited, inserted or removed, or the application's state is an
    older copy.
    """

    code = "history-changed"
    hint = (
        "sealpoint openclaw diff lists every difference. Agents would continue from this history. "
        "If it is meant, sealpoint openclaw accept --reason WHY takes it as it is."
    )


# ---------------------------------------------------------------------- trust


class NotTrusted(SealpointError):
    """The pin and the roster do not allow what is in the store, or what was asked for.

    A script stops and alerts the person who manages keys and roles.

    The class itself is raised for data: the root did not sign the roster, a signer had no right to
    write an entry or used a key after its end, or the URL leads to another place than it did. If
    you moved the store or a directory above it, `sealpoint trust move` accepts the new place. The
    subclasses are about the caller and about files that the caller gave.
    """

    code = "not-trusted"
    exit_status = 39
    hint = (
        "Do not rely on it: find out who used the key. sealpoint verify lists every fault, and "
        "sealpoint keys list who holds which key."
    )


class NotOwner(NotTrusted):
    """The thread belongs to another identity.

    The identity that saves first owns the thread, and only the owner extends it. The owner, or an
    operator with approvals, gives it away with `sealpoint handoff`.
    """

    code = "not-owner"
    hint = "Open the store as the owner of the thread, or use another thread."


class NoPin(NotTrusted):
    """This machine has no pin of the store, and so no reason to trust it.

    For a store whose file was moved, run `sealpoint trust move`.
    """

    code = "no-pin"
    hint = (
        "New store: sealpoint init --store URL. Existing store: sealpoint trust export, on a "
        "machine that knows it, writes a pin for sealpoint trust import PIN --store URL here."
    )


class NoRight(NotTrusted):
    """The roster does not give this identity the role or the namespace that the act needs.

    People cannot approve their own requests, whatever identity or key they use.
    """

    code = "no-right"
    hint = (
        "sealpoint keys list shows roles and namespaces; where the root key is, sealpoint keys "
        "add NAME --person WHO --role ROLE --namespace NAMESPACE gives one more."
    )


class KeyNotInForce(NotTrusted):
    """The key is not in the roster, was revoked, or has expired.

    After a rotation, open the store again with the new key. A key that `sealpoint keys new` made is
    not in force before it is added to the roster: the hint has the command.
    """

    code = "key-not-in-force"
    hint = (
        "sealpoint keys list shows the keys in force; where the root key is, sealpoint keys "
        "rotate NAME gives an identity a new one."
    )


class TrustFileInvalid(NotTrusted):
    """A file is not a pin, a public key or a copy of a roster.

    A pin and a copy of a roster are accepted only byte for byte as Sealpoint wrote them: do not
    format them.
    """

    code = "trust-file-invalid"
    hint = "Ask for the file once more where it comes from, and compare it with its origin."


# ---------------------------------------------------------------------- other processes


class Conflict(SealpointError):
    """Another process or person was first.

    A script loads the thread again and decides again.
    """

    code = "conflict"
    exit_status = 41
    hint = "Load the thread again and decide again."


class Superseded(Conflict):
    """A later session took the thread over; this one may not write any more."""

    code = "superseded"
    hint = "Load the thread again and decide again; the next save opens a new session."


class HeadMoved(Conflict):
    """Another process wrote the position that this handle was about to write."""

    code = "head-moved"


class IdReused(Conflict):
    """The thread has a checkpoint of this id with another content.

    Saving exactly the same again under the same id returns the checkpoint that is there, so a save
    may be repeated after a crash.
    """

    code = "id-reused"
    hint = "Give every checkpoint an id of its own; only an exact repetition may reuse one."


class Busy(Conflict):
    """A run of the thread is under way, or another session is too young to be taken over.

    The message says who runs it and since when. The policy says with `session.takeover_after` how
    long a session that no run holds must have saved nothing.
    """

    code = "busy"
    hint = (
        "Wait until the run has ended. If it is stuck, an operator stops it: sealpoint pause "
        "THREAD --reason WHY, then sealpoint unpause THREAD --reason WHY."
    )


class Moved(Conflict):
    """The thread is no longer as it was shown to the person who acts.

    `Thread.pause`, `unpause` and `handoff` compare the thread with their `expect=`, at the position
    that their entry would take. A proposal raises it too if a rollout of the same differences waits
    for approval or holds; the hint names that rollout.

    Attributes:
        moved: The changes, one sentence each.
    """

    code = "moved"
    hint = "Nothing was written. Look at the thread again, and decide again."

    def __init__(
        self, message: str, *, moved: tuple[str, ...] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.moved = moved


# ---------------------------------------------------------------------- names and ids


class NotFound(SealpointError):
    """There is nothing of this name or id, or it was deleted on purpose.

    A script continues without it, or corrects the name.
    """

    code = "not-found"
    exit_status = 44
    hint = "Check the name or id; sealpoint threads lists the threads of a namespace."


class UnknownThread(NotFound):
    """There is no thread of this name, neither in the store nor in the anchor.

    A thread that the anchor knows never becomes unknown: without it the store is `rolled-back`.
    """

    code = "unknown-thread"
    hint = "sealpoint threads lists the names; the first save makes a thread."


class UnknownCheckpoint(NotFound):
    """The thread has no such checkpoint."""

    code = "unknown-checkpoint"
    hint = "sealpoint log THREAD lists the checkpoints of a thread."


class UnknownRequest(NotFound):
    """There is no such open request.

    A save, a resume, a prune, a handoff and an erasure end every request of their thread that was
    open. Resume again to make a new one.
    """

    code = "unknown-request"
    hint = (
        "sealpoint requests lists the open ones; once a thread has continued, sealpoint why ID "
        "says what became of it."
    )


class UnknownEntry(NotFound):
    """No entry and no request of the namespace begins with these digits, or several do."""

    code = "unknown-entry"
    hint = "sealpoint audit lists every entry with its digits, sealpoint requests --all requests."


class Erased(NotFound):
    """The thread was erased on purpose, and a signed entry records it."""

    code = "erased"
    hint = "It cannot be brought back; a new save starts a new generation of the thread."


class Pruned(NotFound):
    """A prune deleted the state of this checkpoint, and a signed entry records it.

    The history still has its id, metadata and time; `CheckpointRef.pruned` says which states are
    gone.
    """

    code = "pruned"
    hint = "sealpoint log THREAD shows which checkpoints still have their state."


# ---------------------------------------------------------------------- the environment


class Unavailable(SealpointError):
    """A service that Sealpoint needs failed or is overloaded.

    A script waits and repeats the call, and alerts a person if the error stays.
    """

    code = "unavailable"
    exit_status = 50
    hint = "Make it work again, or wait, and repeat the call."


class StorageUnavailable(Unavailable):
    """The backend failed: the store is gone, locked, full or not writable.

    Where the outcome of a save was unknown, the next save looks it up first. A store whose file is
    gone although the anchor knows it is `rolled-back`.
    """

    code = "storage-unavailable"
    hint = "Nothing was half-written. Make the backend work again and repeat the call."


class SchemaUnknown(StorageUnavailable):
    """The file is not a Sealpoint store, or has a schema that this version does not know."""

    code = "schema-unknown"
    hint = "Check the path, or install the Sealpoint version that wrote the store."


class AnchorUnavailable(Unavailable):
    """The anchor cannot be read or written, or it is damaged.

    A checkpoint that was saved before the anchor failed is durable, and the next load or save lets
    the anchor follow. A load releases nothing, because nothing says whether the store is current. A
    shared anchor is also unavailable if its database has another secret than this machine first
    saw, or names a restore that the store does not have.

    Attributes:
        ref: The checkpoint that was saved before the anchor failed, or None.
    """

    code = "anchor-unavailable"
    hint = "Make the anchor work again, then load: whatever was saved is there."

    def __init__(self, message: str, *, hint: str | None = None, ref: object = None) -> None:
        super().__init__(message, hint=hint)
        self.ref = ref


class SignerFailed(Unavailable):
    """A signer outside of Sealpoint raised an error, or returned a signature that is not valid.

    Its exception is chained as the cause, and the message does not repeat it.
    """

    code = "signer-failed"
    hint = "Nothing was written. Make the signer work again and repeat the call."


class ProviderUnavailable(Unavailable):
    """The identity provider of the console cannot be reached, or its answer is not valid.

    People who are signed in stay signed in. The console remembers a failure for ten seconds.
    """

    code = "provider-unavailable"
    hint = (
        "Nobody was signed in. Try again in a minute; if it stays so, check the provider and "
        "[console.oidc] of config.toml."
    )


class TooOften(Unavailable):
    """A caller of the console asks more often, or at more places, than it allows.

    From one address it allows 20 tries to sign in at once and 20 a minute after that, and 24 pages
    that follow the store. The HTTP status is 429, with `Retry-After`.
    """

    code = "too-often"
    hint = "Wait a minute, then try again."


class Overloaded(Unavailable):
    """The console builds as many pages as it can; this one was not begun.

    It builds 32 at once while 96 wait. A console that has just started says the same of a thread
    that it has not read yet. The HTTP status is 503, with `Retry-After`.
    """

    code = "overloaded"
    hint = "Nothing was done. Try again in a few seconds; if it stays so, look at Health."


# ---------------------------------------------------------------------- setup


class ConfigError(SealpointError):
    """Configuration is missing, malformed or unsafe.

    A script stops until someone corrects the files or settings of this machine.
    """

    code = "config"
    exit_status = 60
    hint = "Correct the file or setting that the message names."


class DirectoryUnusable(ConfigError):
    """A directory for configuration, state or a store of files cannot be used.

    It is not a directory, another user owns it, or others may write to it. Sealpoint refuses it and
    does not repair it, because others may have changed its content.
    """

    code = "directory-unusable"
    hint = "Make it a directory of your own, or name another with config_dir= and state_dir=."


class StoreMisplaced(ConfigError):
    """The store, its keys and its anchor are in one directory, or inside one another.

    If a backup of that directory is put back, the anchor would go back with the store. The
    directory of a SQLite store is the one that holds its file. To move a store, use `mv` and then
    `sealpoint trust move`.
    """

    code = "store-misplaced"
    hint = "Anyone who can write the store must not reach keys or anchor: put it somewhere else."


class KeyFileUnsafe(ConfigError):
    """A secret file can be read or changed by others, or does not hold what it should."""

    code = "key-file-unsafe"
    hint = (
        "If others can read the file and nobody has, chmod 600 it; if anyone may have, make a "
        "new key. If it is damaged or another key, put the right file back from your backup."
    )


class GuardExposed(ConfigError):
    """The keys, the store or the anchor of a guard are within reach of what it guards.

    An attacker who changes the guarded state could seal the change.
    """

    code = "guard-exposed"
    hint = "Run the guard as another user, with its files outside of what it guards."


class KeyMissing(ConfigError):
    """This machine has no private key of this identity, or too few root keys to sign a roster."""

    code = "key-missing"
    hint = "sealpoint keys list shows the keys that are here; sealpoint keys new makes one."


class KeyLocked(ConfigError):
    """The private key is encrypted, and its passphrase was not given or does not open it.

    A wrong passphrase and a changed key file look the same: if you are sure of the passphrase,
    bring the file back from a copy. Nobody can recover a forgotten passphrase.
    """

    code = "key-locked"
    hint = (
        "Give its passphrase: passphrase= in Python, SEALPOINT_PASSPHRASE, "
        "SEALPOINT_PASSPHRASE_FILE, or a terminal to ask on."
    )


class ExtraMissing(ConfigError):
    """A part of Sealpoint was imported whose packages are not installed."""

    code = "extra-missing"
    hint = "Install the extra with the command in the message."


class StoreExists(ConfigError):
    """The store, the pin or the key is there already, and nothing is overwritten.

    A pin is also refused for a store that this machine knows under another URL: use `sealpoint
    trust move`.
    """

    code = "store-exists"
    hint = "Open it with open_store(url), or choose another place for a new store."


class PolicyInvalid(ConfigError):
    """A policy is malformed, or the store does not hold the one that the root signed for.

    While the policy in force cannot be read, nothing is resumed; `sealpoint policy apply` brings it
    back.
    """

    code = "policy-invalid"
    hint = "Correct what the message names; sealpoint policy show --name solo prints a valid one."


# ---------------------------------------------------------------------- the gate


class AskedRequest(Protocol):
    """The part that an error shows of a `sealpoint.gate.Request`, which is in a higher layer."""

    @property
    def id(self) -> str:
        """The id of the request, which approvers sign."""

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
        """The answer that the run would get."""

    @property
    def world(self) -> dict[str, Any] | None:
        """The world of the run: its tools, models and prompts."""

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


class GateRefused(SealpointError):
    """The gate refuses, and nobody is asked.

    A script does not retry: the call, the policy or a person has to change something first.
    """

    code = "gate-refused"
    exit_status = 70
    hint = "Do not retry: a person, the policy or the call has to change something first."


class ResumeRefused(GateRefused):
    """The gate does not let this run continue.

    The policy refuses it, the thread is paused, the request was denied, or the policy asks for
    `deliberate="why"` and the call does not say why. A save raises it too if it would begin a
    session that is not an ordinary continuation, or declares another world than its session: call
    `resume`.

    Attributes:
        reasons: Every reason that applies, one sentence each.
    """

    code = "resume-refused"
    hint = "sealpoint resume THREAD shows what the gate says, and the policy what would change it."

    def __init__(
        self, message: str, *, reasons: tuple[str, ...] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.reasons = reasons


class Paused(GateRefused):
    """An operator has paused the thread: nothing is saved or resumed until it is unpaused.

    A `resume` of a paused thread is `resume-refused`. A thread whose pause was lost in a restore
    stays paused until an operator pauses or unpauses it.
    """

    code = "paused"
    hint = (
        "Keep the state. An operator ends the pause with sealpoint unpause THREAD --reason WHY; "
        "then save again."
    )


class StateUnsealed(GateRefused):
    """The application ran and ended without its guard, and nobody saw what it wrote since.

    Everything that was sealed is unchanged. The message lists what was written since.

    Attributes:
        differences: Every difference, in a line each.
    """

    code = "state-unsealed"
    hint = (
        "sealpoint openclaw diff lists every difference. If the gateway wrote them, sealpoint "
        "openclaw accept --reason WHY takes the state as it is."
    )

    def __init__(
        self, message: str, *, hint: str | None = None, differences: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.differences = differences


class RequestClosed(GateRefused):
    """The request was denied, used or has expired, or its thread or policy has changed since.

    One denial is final; the person who asked may deny it too, to withdraw it.
    """

    code = "request-closed"
    hint = "Resume, or propose the rollout, again: that makes a new request, for what is there now."


class NeedsApproval(SealpointError):
    """Other people have to approve this first.

    A script waits for the approval and repeats the call.

    After enough people have approved the request, the same call succeeds once. Another checkpoint,
    world or answer needs another request.

    Attributes:
        request: The request that the approvers see.
        reasons: Why it needs approval, one sentence each.
    """

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


# ---------------------------------------------------------------------- files of others


class FileError(SealpointError):
    """A model file, or a file of another storage, is refused; nothing in it was run.

    A script leaves the file out, and never loads it in another way.
    """

    code = "file"
    exit_status = 80
    hint = "Do not load this file in another way: find out who wrote it, and with what."


class FileRefused(FileError, ValueError):
    """A file of another storage holds what is not imported; the other files were imported.

    It names or calls something that is not one of the allowed types, is not a regular file, is
    malformed, or is too large. If the type is one of your application, allow it as the hint says.
    """

    code = "file-refused"


class ModelError(FileError, RuntimeError):
    """A model file cannot be used.

    It is a `RuntimeError` too, because callers of `torch.load` catch that. The class itself is
    raised where this machine has no such device, or not enough memory. Do not catch it to call
    `torch.load(..., weights_only=False)`: that gives the choice to the author of the file.
    """

    code = "model"


class FormatRefused(ModelError):
    """The file is in a format that cannot be loaded safely, or in an unknown one.

    The message says which: TorchScript, an archive, a compressed file or a file of another tool.
    """

    code = "format-refused"
    hint = (
        "It is not read. Where it was made, save its tensors by themselves: the state_dict() of a "
        "module, with save_checkpoint or torch.save."
    )


class RecordCompressed(ModelError):
    """A part of the file is compressed, which no torch ever writes.

    A few kilobytes could expand to gigabytes. If you packed the file yourself, unpack it and save
    it again with torch.
    """

    code = "record-compressed"


class RecordMismatch(ModelError):
    """A part of the file has another size than the file declares for it.

    A tensor that is larger than its record would show memory that nobody wrote, or other tensors.
    """

    code = "record-mismatch"


class SparseInvalid(ModelError):
    """The indices of a sparse tensor point outside of it, or are not in order.

    Operations on such a tensor read or write memory outside of it.
    """

    code = "sparse-invalid"


class ModelLimitExceeded(ModelError):
    """The file asks for more nesting, objects or memory than a model file may.

    The limits are fixed. If a save is refused, turn long lists of numbers into tensors.
    """

    code = "model-limit"


class ModelMalformed(ModelError):
    """The file does not follow the specification of its format.

    The message says which rule is broken. It is also raised where the checkpoint of a thread is not
    one of a model file: give each training run a thread of its own.
    """

    code = "model-malformed"


class GlobalNotAllowed(ModelError):
    """The file names a class or function that is not one of tensors and plain data.

    In a pickle, such a name is how code is run. The message has every such name of the file. The
    table of allowed names is closed: `add_safe_globals` does not extend it.
    """

    code = "global-not-allowed"
    hint = (
        'load_checkpoint(path, unknown="inert") and sealpoint model convert IN OUT --unknown inert '
        "read such names as data, and call nothing; sealpoint model inspect FILE shows them."
    )


class FileNotSealed(ModelError):
    """No checkpoint of the thread vouches for this file.

    The file is of another run, was written without the store, or its header was changed.
    """

    code = "file-not-sealed"
    hint = "Load the file that this run saved last: sealpoint model list THREAD lists its files."


class ModelUnreadable(ModelError):
    """The file cannot be opened, read or written.

    The message ends with the words of the operating system. A save that fails with it has changed
    nothing.
    """

    code = "model-unreadable"
    hint = "See to the path, its permissions and the space on the disk."
