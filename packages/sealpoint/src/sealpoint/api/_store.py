# SPDX-License-Identifier: Apache-2.0
"""The object that users hold."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Self

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
    Operations,
    Policies,
    Policy,
    Request,
    RequestList,
    Requests,
    RolloutBook,
    Rollouts,
    Thread,
    ThreadSummary,
    summarise,
)
from sealpoint.ids import StoreId
from sealpoint.signing import Attestation, Verdict
from sealpoint.store import (
    CheckpointStore,
    Collected,
    StoreParts,
    ThreadNames,
    collect,
    is_reserved,
    list_threads,
)

if TYPE_CHECKING:  # it is loaded when somebody first watches
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
        self.rollouts = Rollouts(core, self._policies, self._book, self._checkpoints.thread)
        """Changes of world that are accepted once, for many threads."""

    @property
    def id(self) -> StoreId:
        """The store's id, as the pin has it."""
        return self._core.store

    @property
    def namespace(self) -> str:
        """The namespace that the threads are in."""
        return self._core.namespace

    @property
    def registry(self) -> Registry:
        """The types that may be saved and loaded."""
        return self._core.registry

    def __repr__(self) -> str:
        return f"<Store {self.id} namespace {self.namespace!r}>"

    def thread(self, name: str) -> Thread:
        """The thread of a name; it need not exist yet. The same name gives the same handle.

        Raises:
            NameInvalid: The name is empty, too long, does not print, or is one of Sealpoint's own.
        """
        if is_reserved(str(name)):
            raise NameInvalid(
                f"thread name: {name[:64]!r} is reserved",
                hint="Names that begin with 'sealpoint:' are Sealpoint's own; take another one.",
            )
        return self._checkpoints.thread(name)

    def threads(self, *, partial: bool = False) -> ThreadNames:
        """The names of all threads of the namespace; `complete` and `left_out` say what is not.

        Args:
            partial: Give the names that are there even if some are left out. Otherwise whoever
                goes through such a list gets `ListIncomplete`.
        """
        return list_threads(self._core, partial=partial)

    def overview(self, *, partial: bool = False) -> Iterator[ThreadSummary]:
        """What every thread of the namespace is at, by name, one after the other.

        Each is read and verified when it is asked for; one that does not verify says so. Nothing
        is kept of those before it.

        Args:
            partial: As for `threads`.

        Raises:
            ListIncomplete: Some would be left out, and `partial` is not given.
            StorageUnavailable, AnchorUnavailable: Nobody can look.
        """
        core = self._core
        for name in self.threads(partial=partial).names:
            yield summarise(core, name, self._policies)

    def watch(self) -> "StoreWatch":
        """What every thread of the namespace is at, kept warm: for a page that many look at.

        Nothing is read yet: `StoreWatch.refresh` does that, and is called again and again.
        """
        from sealpoint.api._watch import StoreWatch  # noqa: PLC0415 (who opens a store need not wait)

        return StoreWatch(self._core.parts)

    # ------------------------------------------------------------------ the gate

    @property
    def policy(self) -> Policy | None:
        """The policy in force in the namespace; None if the roster names none.

        Raises:
            PolicyInvalid: Its bytes are not there, or not the ones that the root signed for.
        """
        return self._policies.in_force(self._core.trust().roster)

    def requests(self) -> Requests:
        """Every request of the namespace that is about its thread as that is now.

        Threads that cannot be read are named in the result.

        Raises:
            StorageUnavailable, AnchorUnavailable: Nobody can look.
            Tampered, NotTrusted, RolledBack, Forked: The store chain cannot be believed.
        """
        return self._requests.list()

    def request(self, request_id: str, *, thread: str | None = None) -> Request:
        """One request, by its id or the first digits of it.

        Args:
            request_id: The id, or the first digits of it.
            thread: The name of the thread that it is on, where that is known: no other is read.

        Raises:
            UsageError: There are too few digits, or other characters.
            UnknownRequest: There is no such request, or the thread has moved on.
            UnknownThread: There is no such thread.
        """
        return self._requests.find(request_id, thread)

    def approve(self, request_id: str, *, reason: str) -> Attestation:
        """Approve a request, as the identity that the store was opened with.

        Args:
            request_id: The id of the request, or the first digits of it.
            reason: Why; it is signed too.

        Returns:
            What stands: the earlier one if this person has approved already, and nothing is
            written.

        Raises:
            UnknownRequest: There is no such request.
            RequestClosed: It was denied, has expired, the policy has changed, or the thread has
                gone on since.
            NotTrusted: This identity may not, because of its role or because it asked itself.
            UsageError: There is no reason.
        """
        operations, request = _find(self._checkpoints, self._requests, request_id)
        return operations.answer(request, Verdict.APPROVE, reason)[1]

    def deny(self, request_id: str, *, reason: str) -> Attestation:
        """Deny a request for good, as the identity that the store was opened with.

        Args and errors are those of `approve`; who asked may deny too, to withdraw it.
        """
        operations, request = _find(self._checkpoints, self._requests, request_id)
        return operations.answer(request, Verdict.DENY, reason)[1]

    def attest(self, request_id: str, verdict: Verdict, *, reason: str) -> Attestation:
        """Say to a request what `approve`, `deny` and `break_glass` do, and only sign it.

        Nothing is recorded: whoever has the attestation relays it, from this machine or another.
        """
        operations, request = _find(self._checkpoints, self._requests, request_id)
        return operations.attest(request, verdict, reason)

    def relay(self, attestation: Attestation) -> int:
        """Record an attestation that somebody made elsewhere, such as with a key of their own.

        Returns:
            The position of the entry that records it.

        Raises:
            UnknownRequest, RequestClosed: There is no such open request.
            Forged, NotTrusted: Its proof is none, or whoever signed it has no say in this.
        """
        operations, _ = _find(self._checkpoints, self._requests, attestation.statement)
        return operations.relay(attestation)

    def break_glass(self, request_id: str, *, reason: str) -> int:
        """Let a request pass at once, without the approvals that it needs. It is recorded.

        Only an operator whom the roster marks for it may; neither a pause nor a denial is
        overridden. Like an approval it is a signed word, and counts by the newest roster when it
        is spent.

        Returns:
            The position of the entry that records it: the earlier one if this person has done so
            already, and nothing is written.

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

        Every resume and handoff is judged again by the policy of its time; one that it did not
        allow is a finding with the code `unjustified`. A run that continued past its own question
        in the same session is noted with the code `question-passed`, and the report stays good.

        Args:
            progress: Called now and then with how far it has come.
        """
        core, book = self._core, self._book
        return verify_store(
            core, progress, lambda _thread: reviewer(core, self._policies, book).take
        )

    def audit(
        self,
        *,
        thread: str | None = None,
        actor: str | None = None,
        kind: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[AuditRecord]:
        """Tell what happened in the namespace and on the store chain, oldest first, verified.

        A thread that does not verify is told as far as it does, and then as a record with a
        finding, whatever was asked for.

        Args:
            thread: Only this thread; the store chain is then left out.
            actor: Only what this identity or person did or said, or what was done for it as
                claimed.
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
        """Explain a decision: the rules, the facts and the policy of that time, and who said what.

        Args:
            ref: The id of a request, the hash of an entry, or the first 8 digits or more.
            thread: The name of the thread that it is on, where that is known: no other is read.

        Raises:
            UsageError: There are too few digits, or other characters.
            UnknownEntry: There is none of these digits, or more than one.
            UnknownThread: There is no such thread.
            Tampered, NotTrusted, RolledBack, Forked, Unanchored: Its thread does not verify.
        """
        return explain_decision(self._core, self._policies, ref, thread)

    def export(
        self, threads: Iterable[str] | None = None, *, payloads: bool = False
    ) -> Iterator[bytes]:
        """Write a self-contained evidence bundle, piece by piece, signed by this identity.

        `sealpoint.api.verify_bundle` verifies it elsewhere, with the pin alone. It is none before
        its last piece.

        Args:
            threads: The names of the threads that it is about; None: all of the namespace.
            payloads: Put the states in as well.

        Raises:
            ReadOnly: The store was opened without a key.
            UnknownThread, Unanchored: There is no such thread.
            Tampered, NotTrusted, RolledBack, Forked: Something does not verify: it is no evidence.
            HeadMoved: The roster has changed meanwhile; export again.
        """
        return export_bundle(self._core, threads, payloads=payloads)

    def gc(
        self,
        *,
        dry_run: bool = False,
        compact: bool = True,
        progress: Callable[[int, int], object] | None = None,
    ) -> Collected:
        """Take away what no thread of the store needs any more, in every namespace.

        That is what an interrupted prune or erasure, and saves that never came to an end, left
        behind. A thread that does not verify is left as it is, and is named in the result.

        Args:
            dry_run: Say what would go, and change nothing.
            compact: Also make the files smaller, which writes once more whatever stays.
            progress: Called after each thread with how many are done, and how many there are.

        Raises:
            ReadOnly: The store was opened for reading only, and this is no dry run.
        """
        return collect(self._core, dry_run=dry_run, compact=compact, progress=progress)

    def close(self) -> None:
        """Release everything. Closing twice is allowed."""
        self._checkpoints.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _find(
    checkpoints: CheckpointStore[Thread], requests: RequestList, request_id: str
) -> tuple[Operations, str]:
    """What answers a request on its thread, and its whole id."""
    try:
        request = requests.find_open(request_id)
    except SealpointError as error:
        checkpoints.core.emit_refused(error, "")
        raise
    return checkpoints.thread(request.thread).operations, request.id
