# SPDX-License-Identifier: Apache-2.0
"""The store object of the public API."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Self

from sealpoint.api._policy_trial import PolicyTrial, try_policy
from sealpoint.api._why import Why, explain_decision, reviewer
from sealpoint.audit import (
    AuditRecord,
    Progress,
    Report,
    audit_trail,
    export_bundle,
    verify_store,
)
from sealpoint.codec import Registry
from sealpoint.errors import NameInvalid, SealpointError
from sealpoint.gate import (
    OperatorActions,
    Policies,
    Policy,
    Request,
    RequestList,
    Requests,
    RolloutBook,
    Rollouts,
    Thread,
    ThreadSummary,
    shipped_policy,
    summarize,
)
from sealpoint.ids import StoreId
from sealpoint.signing import Attestation, Verdict
from sealpoint.store import (
    CheckpointStore,
    Collected,
    StoreParts,
    ThreadNames,
    collect_garbage,
    is_reserved,
    list_threads,
)

if TYPE_CHECKING:  # it is loaded on the first watch
    from sealpoint.api._watch import StoreWatch


class Store:
    """An open store. `open_store` makes one; use it in a `with` block, or close it."""

    def __init__(self, parts: StoreParts) -> None:
        self._checkpoints = CheckpointStore(
            parts, lambda core, name: Thread(core, name, self._policies, self._book)
        )
        self._core = core = self._checkpoints.core
        self._policies = Policies(core)
        self._book = RolloutBook(core, self._policies)
        self._requests = RequestList(core, self._policies, self._book)
        self.rollouts = Rollouts(
            core,
            self._policies,
            self._book,
            self._checkpoints.thread,
            lambda: self.requests().requests,
        )
        """Changes of world that are accepted once, for many threads."""

    @property
    def id(self) -> StoreId:
        """Return the store's id, from the pin."""
        return self._core.store

    @property
    def namespace(self) -> str:
        """Return the namespace of the threads."""
        return self._core.namespace

    @property
    def registry(self) -> Registry:
        """Return the types that may be saved and loaded."""
        return self._core.registry

    def __repr__(self) -> str:
        return f"<Store {self.id} namespace {self.namespace!r}>"

    def thread(self, name: str) -> Thread:
        """Return the thread of a name; it need not exist yet. The same name gives the same handle.

        Raises:
            NameInvalid: The name is empty, too long, not printable, or one of Sealpoint's own.
        """
        if is_reserved(str(name)):
            raise NameInvalid(
                f"thread name: {name[:64]!r} is reserved",
                hint="Names that begin with 'sealpoint:' are Sealpoint's own; take another one.",
            )
        return self._checkpoints.thread(name)

    def threads(self, *, partial: bool = False) -> ThreadNames:
        """Return the names of all threads of the namespace; `left_out` lists the missing ones.

        Args:
            partial: Return the available names even if some are left out. Otherwise reading an
                incomplete list raises `ListIncomplete`.
        """
        return list_threads(self._core, partial=partial)

    def overview(self, *, partial: bool = False) -> Iterator[ThreadSummary]:
        """Yield the status of every thread of the namespace, by name, one after the other.

        Each thread is read and verified when it is its turn; a thread that does not verify is
        reported as such. Nothing is kept of the previous threads.

        Args:
            partial: As for `threads`.

        Raises:
            ListIncomplete: Some would be left out, and `partial` is not given.
            StorageUnavailable, AnchorUnavailable: The store or the anchor cannot be read.
        """
        core = self._core
        for name in self.threads(partial=partial).names:
            yield summarize(core, name, self._policies)

    def watch(self) -> "StoreWatch":
        """Return a cached status of every thread of the namespace, for a page with many viewers.

        Nothing is read yet: `StoreWatch.refresh` does that, and is called repeatedly.
        """
        from sealpoint.api._watch import StoreWatch  # noqa: PLC0415 (a faster start for most users)

        return StoreWatch(self._core.parts)

    # ------------------------------------------------------------------ the gate

    @property
    def policy(self) -> Policy | None:
        """Return the policy in force in the namespace; None if the roster names none.

        Raises:
            PolicyInvalid: Its bytes are missing, or are not the ones that the root signed.
        """
        return self._policies.in_force(self._core.trust().roster)

    def requests(self) -> Requests:
        """Return every request of the namespace about the current state of its thread.

        The result names threads that cannot be read.

        Raises:
            StorageUnavailable, AnchorUnavailable: The store or the anchor cannot be read.
            Tampered, NotTrusted, RolledBack, Forked: The store chain does not verify.
        """
        return self._requests.list()

    def request(self, request_id: str, *, thread: str | None = None) -> Request:
        """Return one request, by its id or the first digits of it.

        Args:
            request_id: The id, or the first digits of it.
            thread: The name of its thread, if known: no other thread is read.

        Raises:
            UsageError: There are too few digits, or other characters.
            UnknownRequest: There is no such request, or the thread has moved on.
            UnknownThread: There is no such thread.
        """
        return self._requests.find(request_id, thread)

    def approve(self, request_id: str, *, reason: str) -> Attestation:
        """Approve a request, as the identity that opened the store.

        Args:
            request_id: The id of the request, or the first digits of it.
            reason: Why; it is signed too.

        Returns:
            The recorded approval: the earlier one if this person has approved already, and then
            nothing is written.

        Raises:
            UnknownRequest: There is no such request.
            RequestClosed: It was denied, has expired, the policy has changed, or the thread has
                resumed since.
            NotTrusted: This identity may not, because of its role or because it asked itself.
            UsageError: There is no reason.
        """
        operations, request = _find(self._checkpoints, self._requests, request_id)
        return operations.answer(request, Verdict.APPROVE, reason)[1]

    def deny(self, request_id: str, *, reason: str) -> Attestation:
        """Deny a request for good, as the identity that opened the store.

        Args and errors are those of `approve`; the requester may deny too, to withdraw it.
        """
        operations, request = _find(self._checkpoints, self._requests, request_id)
        return operations.answer(request, Verdict.DENY, reason)[1]

    def attest(self, request_id: str, verdict: Verdict, *, reason: str) -> Attestation:
        """Sign the answer that `approve`, `deny` or `break_glass` would record, and only sign it.

        Anyone who has the attestation can relay it, from this machine or another.
        """
        operations, request = _find(self._checkpoints, self._requests, request_id)
        return operations.attest(request, verdict, reason)

    def relay(self, attestation: Attestation) -> int:
        """Record an attestation that was made elsewhere, such as with a person's own key.

        Returns:
            The position of the entry that records it.

        Raises:
            UnknownRequest, RequestClosed: There is no such open request.
            Forged, NotTrusted: Its proof is invalid, or its signer may not answer this request.
        """
        operations, _ = _find(self._checkpoints, self._requests, attestation.statement)
        return operations.relay(attestation)

    def break_glass(self, request_id: str, *, reason: str) -> int:
        """Let a request pass at once, without the approvals that it needs. It is recorded.

        Only an operator whom the roster marks for it may do this; neither a pause nor a denial is
        overridden. Like an approval it is signed, and counts by the newest roster when it is used.

        Returns:
            The position of the entry that records it: the earlier one if this person has done so
            already, and then nothing is written.

        Raises:
            NotTrusted: The roster does not mark this identity for it.
            UnknownRequest, RequestClosed: There is no such open request.
            UsageError: There is no reason, or the request is not for a resume.
        """
        operations, request = _find(self._checkpoints, self._requests, request_id)
        return operations.answer(request, Verdict.BREAK_GLASS, reason)[0]

    # ------------------------------------------------------------------ the whole store

    def verify(self, progress: Callable[[Progress], object] | None = None) -> Report:
        """Verify every entry, body and blob of every thread. Writes nothing.

        Every resume and handoff is judged again by the policy of its time; one that the policy did
        not allow is a finding with the code `unjustified`. A run that continued past its own
        question in the same session is noted with the code `question-passed`, and the report stays
        good.

        Args:
            progress: Called regularly with the progress so far.
        """
        core, book = self._core, self._book
        return verify_store(
            core, progress, lambda _thread: reviewer(core, self._policies, book).take
        )

    def try_policy(self, policy: str | bytes, *, since: datetime) -> PolicyTrial:
        """Return what a policy would have asked about recorded resumes. Writes nothing.

        Every resume since a time is judged by it again, as `verify` does by the policy of its time,
        without the approvals and rollouts that there were. Resumes that were refused then left no
        entry.

        Args:
            policy: The name of a shipped policy, or the bytes of a policy file.
            since: The time from which on, with its zone.

        Raises:
            PolicyInvalid: It is not a policy.
            UsageError: The time has no zone.
        """
        parsed = Policy.parse(shipped_policy(policy) if isinstance(policy, str) else policy)
        return try_policy(self._core, self._policies, self._book, parsed, since)

    def audit(
        self,
        *,
        thread: str | None = None,
        actor: str | None = None,
        kind: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[AuditRecord]:
        """Yield the history of the namespace and of the store chain, oldest first, verified.

        A thread that does not verify is returned as far as it does, and then as a record with a
        finding, regardless of the filters.

        Args:
            thread: Only this thread; the store chain is then left out.
            actor: Only actions by this identity or person, or on its behalf as claimed.
            kind: Only entries of this kind, such as `resume` or `approval`.
            since: Only entries of this time or later.
            until: Only entries before this time.

        Raises:
            UsageError: There is no such kind, or a time has no time zone.
            UnknownThread, Unanchored: There is no such thread, or only the store knows it.
        """
        return audit_trail(
            self._core, thread=thread, actor=actor, kind=kind, since=since, until=until
        )

    def why(self, ref: str, *, thread: str | None = None) -> Why:
        """Explain a decision: its rules, its facts, the policy of that time, and people's answers.

        Args:
            ref: The id of a request, the hash of an entry, or the first 8 digits or more.
            thread: The name of its thread, if known: no other thread is read.

        Raises:
            UsageError: There are too few digits, or other characters.
            UnknownEntry: No entry or more than one matches.
            UnknownThread: There is no such thread.
            Tampered, NotTrusted, RolledBack, Forked, Unanchored: Its thread does not verify.
        """
        return explain_decision(self._core, self._policies, self._book, ref, thread)

    def export(
        self, threads: Iterable[str] | None = None, *, payloads: bool = False
    ) -> Iterator[bytes]:
        """Yield a self-contained evidence bundle, piece by piece, signed by this identity.

        `sealpoint.api.verify_bundle` verifies it elsewhere, with only the pin. It is incomplete
        before its last piece.

        Args:
            threads: The names of the threads that it is about; None: all of the namespace.
            payloads: Include the states as well.

        Raises:
            ReadOnly: The store was opened without a key.
            UnknownThread, Unanchored: There is no such thread.
            Tampered, NotTrusted, RolledBack, Forked: Data does not verify, so it is not evidence.
            HeadMoved: The roster has changed in between; export again.
        """
        return export_bundle(self._core, threads, payloads=payloads)

    def gc(
        self,
        *,
        dry_run: bool = False,
        compact: bool = True,
        progress: Callable[[int, int], object] | None = None,
    ) -> Collected:
        """Remove data that no thread of the store needs any more, in every namespace.

        Such data remains after an interrupted prune or erasure, and after saves that never
        finished. A thread that does not verify is not changed, and is named in the result.

        Args:
            dry_run: Show what would be removed, and change nothing.
            compact: Also shrink the files, which rewrites all remaining data.
            progress: Called after each thread with the number of finished threads and the total.

        Raises:
            ReadOnly: The store was opened for reading only, and this is not a dry run.
        """
        return collect_garbage(self._core, dry_run=dry_run, compact=compact, progress=progress)

    def close(self) -> None:
        """Release everything. Closing twice is allowed."""
        self._checkpoints.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _find(
    checkpoints: CheckpointStore[Thread], requests: RequestList, request_id: str
) -> tuple[OperatorActions, str]:
    """Return the operations of a request's thread, and the whole id of the request."""
    try:
        request = requests.find_open(request_id)
    except SealpointError as error:
        checkpoints.core.emit_refused(error, "")
        raise
    return checkpoints.thread(request.thread).operations, request.id
