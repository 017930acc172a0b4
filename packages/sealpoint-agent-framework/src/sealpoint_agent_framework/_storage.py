# SPDX-License-Identifier: Apache-2.0
"""`SealedCheckpointStorage`: checkpoint storage for Microsoft Agent Framework on a sealed store.

It only translates. The framework names a workflow and checkpoints of it, never a run; here a run
and everything that continues it is a thread of the store, found by `previous_checkpoint_id`, so
that two conversations of one workflow have their own owners and histories. Reading verifies and
decides nothing, because the framework loads for many reasons. Each save states the position of its
run, and the gate judges it if a run begins with it.

The framework drops the error of a refused save and continues; it does not drop `RunStopped`.
"""

import asyncio
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal, NamedTuple, Self, TypeVar, cast

from agent_framework import (
    Content,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowEvent,
)
from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from sealpoint.adapters.guarded_runs import (
    AdapterThread,
    GuardedRuns,
    Key,
    LoopOrder,
    RunPass,
    RunPosition,
    SaveDraft,
    Snapshot,
    done_off_loop,
    question_to_display_json,
    run_paused,
)
from sealpoint.api import Store
from sealpoint.codec import Registry
from sealpoint.errors import (
    AnchorUnavailable,
    DecodeError,
    EncodeError,
    ResumeRefused,
    SealpointError,
    SignerFailed,
    StorageUnavailable,
    Superseded,
    TypeNotAllowed,
    UnknownCheckpoint,
    UnknownThread,
    UnknownType,
    UsageError,
)
from sealpoint.limits import QUESTION_BYTES_MAX
from sealpoint.store import CheckpointRef
from sealpoint.world import World
from sealpoint_agent_framework._declared_types import allow_types_of
from sealpoint_agent_framework._framework_types import allow_framework_types

OnRefusedSave = Literal["stop", "warn"]
_KNOWN_MAX = 100_000
_SUPERSEDED_HINT = (
    "Resume the newest checkpoint of the thread. If an older one is meant, run the workflow "
    'through guard(workflow, storage, actor=...) and pass deliberate="why" to run.'
)
_GO_ON = (
    "run the workflow from its newest checkpoint, whose id "
    "(await storage.get_latest(workflow_name=...)).checkpoint_id is."
)
_SHORTER = (
    "What a workflow names in its annotations is allowed by "
    "SealedCheckpointStorage.for_workflow(workflow, store), and any other dataclass, model, "
    "NamedTuple or Enum by its types=[...]."
)
_UNGUARDED_HINT = (
    "Run the workflow through guard(workflow, storage, actor=...): it asks before anything runs."
)
_WORKFLOW = "workflow_name"
_TIMESTAMP = "timestamp"
_ITERATION = "iteration_count"
_ANSWERED = "answered"
_MAY_GO_UNSAVED = (EncodeError, StorageUnavailable, AnchorUnavailable, SignerFailed)
"""The errors that a run may survive with a warning; none of them says that it may not continue."""
_UNNAMED = re.compile(r"WorkflowBuilder-[0-9a-f-]{36}")
"""The framework's name for a workflow without a name; it changes with each build."""
_T = TypeVar("_T")


class RunStopped(BaseException):
    """A run was stopped because its work could not be saved, or because of a pause.

    It is not an `Exception`: the framework drops those that a storage raises, and continues. A
    guarded workflow raises `error` itself in its place.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
        """The reason."""


class Known(NamedTuple):
    """The facts about a checkpoint that need no read."""

    thread: str
    workflow: str
    asks: frozenset[str]
    """The requests that wait for a response."""
    answered: Mapping[str, str]
    """The digests of the responses that a guarded run was given so far, by request."""

    @classmethod
    def of(cls, thread: str, ref: CheckpointRef) -> Self:
        """The facts in the signed entry of a checkpoint."""
        return cls(
            thread,
            ref.metadata[_WORKFLOW],
            frozenset(each["id"] for each in ref.question or ()),
            ref.metadata.get(_ANSWERED, {}),
        )


def require_same_workflow(known: Known, workflow_name: str) -> None:
    """Refuse to continue one workflow from a checkpoint of another.

    The framework compares how workflows are built, and not their names. It cannot distinguish
    workflows without a name.

    Raises:
        UsageError: The checkpoint belongs to another workflow.
    """
    names = {known.workflow, workflow_name}
    if len(names) > 1 and not all(map(_UNNAMED.fullmatch, names)):
        raise UsageError(
            f"workflow {workflow_name!r}: the checkpoint is of workflow {known.workflow!r}",
            hint="Name a checkpoint of the same workflow, or give the workflow the same name.",
        )


class SealedCheckpointStorage:
    """Checkpoint storage for Microsoft Agent Framework on a sealed store.

    ```python
    store = sealpoint.open_store("sqlite:///agents.db")
    storage = SealedCheckpointStorage(store)
    workflow = WorkflowBuilder(start_executor=..., checkpoint_storage=storage).build()
    ```

    Any number of event loops may use it; blocking work runs in other OS threads.

    Args:
        store: An open store. The framework's types are added to its registry.
        world: The capabilities of the workflows of this storage, as `world_of(workflow)` returns
            them.
        thread: The thread of all its checkpoints, such as a conversation; without it, every new run
            gets its own thread, named after workflow and checkpoint.
        on_refused_save: The effect of a refused save, which the framework would not notice: either
            the run stops, or only the framework's log has a warning. A run that may not continue
            stops in both cases.

    Raises:
        UsageError: The store is not one that `sealpoint.open_store` returns, or an argument has
            another type.
        NameInvalid: No thread can have that name.
    """

    def __init__(
        self,
        store: Store,
        *,
        world: World | Mapping[str, Any] | None = None,
        thread: str | None = None,
        on_refused_save: OnRefusedSave = "stop",
    ) -> None:
        if not isinstance(store, Store):
            raise UsageError(
                f"SealedCheckpointStorage: expected an open store, found {type(store).__name__}",
                hint="Pass the store that sealpoint.open_store(url) gives: what blocks is done in "
                "other OS threads.",
            )
        if on_refused_save not in ("stop", "warn"):
            raise UsageError(
                f"on_refused_save: expected 'stop' or 'warn', found {on_refused_save!r}",
                hint="'stop' ends a run whose checkpoint cannot be saved, 'warn' lets it continue.",
            )
        allow_framework_types(store.registry)
        self.on_refused_save = on_refused_save
        self.refused_saves = 0
        """How many checkpoints could not be saved."""
        self.last_refusal: Exception | None = None
        """The reason for the last of them."""
        self._store = store
        self._world = World.of(world)
        self._places = CheckpointPlaces(store, thread)
        self._lineages: dict[str, _Lineage] = {}
        self._order = LoopOrder()

    @classmethod
    def for_workflow(
        cls,
        workflow: Any,
        store: Store,
        *,
        types: Iterable[type] = (),
        world: World | Mapping[str, Any] | None = None,
        thread: str | None = None,
        on_refused_save: OnRefusedSave = "stop",
    ) -> Self:
        """A storage that also allows the types that a workflow names in its annotations.

        Args:
            workflow: A workflow of the builder, or a functional one.
            store: As for the class.
            types: More types, which the workflow does not name.
            world: As for the class.
            thread: As for the class.
            on_refused_save: As for the class.

        Raises:
            RuleInvalid: Two types have one name, or no rule can be made for one of `types`.
        """
        made = cls(store, world=world, thread=thread, on_refused_save=on_refused_save)
        allow_types_of(workflow, store.registry, types)
        return made

    @property
    def store(self) -> Store:
        """The store that holds everything."""
        return self._store

    @property
    def places(self) -> "CheckpointPlaces":
        """The thread of each checkpoint."""
        return self._places

    async def thread_of(self, checkpoint_id: str) -> str:
        """The thread that a checkpoint belongs to, as `sealpoint threads` names it.

        Raises:
            WorkflowCheckpointException: The checkpoint does not exist or cannot be read.
        """
        return (await _off_loop(self._places.find, checkpoint_id)).thread

    # ------------------------------------------------------------------ what the framework calls

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Save a checkpoint. When it returns, it survives a crash and a power cut.

        Raises:
            RunStopped: It was not saved, or the thread is paused.
            WorkflowCheckpointException: It was not saved, and the caller only wants a warning.
        """
        return await self.save_for(None, None, checkpoint)

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """A checkpoint, verified; reading decides nothing.

        Raises:
            WorkflowCheckpointException: It does not exist, or was refused; the cause says why.
        """
        return (await self.load_with_hash(checkpoint_id))[0]

    async def load_with_hash(self, checkpoint_id: str) -> tuple[WorkflowCheckpoint, str]:
        """A checkpoint, and the hash of its signed entry, which no other checkpoint has.

        Raises:
            WorkflowCheckpointException: As for `load`.
        """
        found = await _off_loop(self._read, checkpoint_id)
        return checkpoint_of(found), found.ref.entry

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """All checkpoints of a workflow, oldest first.

        Without `thread=`, checkpoints of others whose types are unknown here are left out.

        Raises:
            WorkflowCheckpointException: Verification of one of them failed, or one is missing or of
                a type that is unknown here.
        """
        return await _off_loop(self._read_all, workflow_name)

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """Their ids, oldest first. Nothing is decoded.

        Raises:
            WorkflowCheckpointException: As for `list_checkpoints`.
        """
        found = await _off_loop(self._places.of_workflow, workflow_name)
        return [ref.id for _, ref in found]

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """The checkpoint of a workflow with the latest timestamp.

        Without `thread=`, that is of those which this identity, or one of its person or its pools,
        saved in threads that it owns. One that others saved is returned where there are none.

        Raises:
            WorkflowCheckpointException: As for `list_checkpoints`.
        """
        return await _off_loop(self._read_latest, workflow_name)

    async def delete(self, checkpoint_id: str) -> bool:
        """Delete a checkpoint: a signed entry records it, and reads no longer return it.

        Returns:
            Whether it existed.

        Raises:
            WorkflowCheckpointException: The thread belongs to another identity, or its verification
                failed.
        """
        return await _off_loop(self._delete, checkpoint_id)

    # ------------------------------------------------------------------ what they do

    def digest(self, value: Any) -> str:
        """The digest of the stored form of a value.

        Raises:
            EncodeError: The value cannot be stored.
        """
        return sha256(self._store.registry.encode(value)).hexdigest()

    async def save_for(
        self,
        thread: str | None,
        run: RunPass | None,
        checkpoint: WorkflowCheckpoint,
        answered: Mapping[str, str] | None = None,
    ) -> str:
        """Save a checkpoint for an admitted run, or for a run without a decision.

        Raises:
            RunStopped, WorkflowCheckpointException: As for `save`.
        """
        try:
            async with self._order.turn(thread or self._places.guess(checkpoint)):
                saved = await done_off_loop(
                    lambda: self._save(thread, run, checkpoint, answered or {})
                )
        except Exception as error:  # whatever it is, the framework would drop it
            if self.on_refused_save == "stop" or not isinstance(error, _MAY_GO_UNSAVED):
                raise RunStopped(error) from error
            raise framework_error(error) from error
        if saved.held:
            place = self._places.find(checkpoint.checkpoint_id)
            raise RunStopped(run_paused(place.thread, _GO_ON))
        return checkpoint.checkpoint_id

    def _save(
        self,
        thread: str | None,
        run: RunPass | None,
        checkpoint: WorkflowCheckpoint,
        answered: Mapping[str, str],
    ) -> CheckpointRef:
        try:
            return self._write(thread, run, checkpoint, answered)
        except Exception as error:
            self.refused_saves += 1
            self.last_refusal = error
            raise

    def _write(
        self,
        thread: str | None,
        run: RunPass | None,
        checkpoint: WorkflowCheckpoint,
        answered: Mapping[str, str],
    ) -> CheckpointRef:
        previous = checkpoint.previous_checkpoint_id
        if thread is None:
            thread = self._places.for_save(checkpoint)
        before = None if previous is None else self._places.known(previous)
        if before is not None:
            require_same_workflow(before, checkpoint.workflow_name)
        asks = frozenset(map(str, checkpoint.pending_request_info_events))
        if run is not None:  # what an executor kept is worth nothing after the end of its run
            GuardedRuns.of(self._store).find(thread, run.token)
        position = (
            self._position(thread, previous, asks) if run is None else RunPosition(token=run.token)
        )
        draft = SaveDraft(
            checkpoint.to_dict(),
            checkpoint.checkpoint_id,
            previous,
            metadata_of(checkpoint) | ({_ANSWERED: dict(answered)} if answered else {}),
            self._world if run is None else run.world,
            question=question_of(checkpoint, self._store.registry),
            holds=True,
            position=position,
        )
        (outcome,) = self._store.thread(thread).adapter.commit([draft])
        if isinstance(outcome, SealpointError):
            raise rephrase(outcome, guarded=run is not None)
        known = Known(thread, checkpoint.workflow_name, asks, answered)
        self._places.note(checkpoint.checkpoint_id, known)
        self._lineage(thread).saved(checkpoint.checkpoint_id)
        return cast("CheckpointRef", outcome)  # what a save becomes

    def _position(self, thread: str, previous: str | None, asks: frozenset[str]) -> RunPosition:
        """The position of a run without a decision, as far as a storage knows it."""
        if previous is None:
            return RunPosition(begins=True, rising=False)
        before = self._places.known(previous)
        lineage = self._lineages.get(thread)
        return RunPosition(
            checkpoint=previous,
            rising=False,
            inside=lineage is not None and lineage.is_beside(previous),
            answered=before is not None and not before.asks <= asks,
        )

    def _lineage(self, thread: str) -> "_Lineage":
        found = self._lineages.setdefault(thread, _Lineage())
        if len(self._lineages) > _KNOWN_MAX:
            self._lineages.pop(next(iter(self._lineages)), None)
        return found

    def _read(self, checkpoint_id: str) -> Snapshot:
        known = self._places.find(checkpoint_id)
        found = self._store.thread(known.thread).adapter.snapshot("", checkpoint_id)
        if found is None:
            raise unknown(checkpoint_id)
        if lineage := self._lineages.get(known.thread):
            lineage.loaded(checkpoint_id)
        return found

    def _read_all(self, workflow_name: str) -> list[WorkflowCheckpoint]:
        found = self._places.of_workflow(workflow_name)
        read = (self._read_if_any(name, ref) for name, ref in found)
        return [each for each in read if each is not None]

    def _read_latest(self, workflow_name: str) -> WorkflowCheckpoint | None:
        found = self._places.of_workflow(workflow_name)
        writers = {(name, ref.writer) for name, ref in found}
        own = {each for each in writers if self._places.thread or self._is_own(*each)}

        def lateness(each: tuple[str, CheckpointRef]) -> tuple[bool, datetime]:
            name, ref = each  # what strangers saved comes after all else, whatever it says
            return (name, ref.writer) in own, _timestamp(ref)

        for name, ref in sorted(found, key=lateness, reverse=True):
            if (read := self._read_if_any(name, ref)) is not None:
                if lineage := self._lineages.get(name):
                    lineage.loaded(ref.id)
                return read
        return None

    def _is_own(self, thread: str, writer: str) -> bool:
        return self._store.thread(thread).adapter.is_by_colleague(writer)

    def _read_if_any(self, thread: str, ref: CheckpointRef) -> WorkflowCheckpoint | None:
        """A checkpoint of the list; None if it was deleted since, or holds another object.

        Every writer chooses the content of its checkpoints, so an undecodable checkpoint in a
        thread of another identity is skipped. In the caller's own thread, or in the thread of the
        storage, it is an error: a caller who missed it would restart, or continue an older one.
        """
        adapter = self._store.thread(thread).adapter
        try:
            found = adapter.snapshot("", ref.id)
            return None if found is None else checkpoint_of(found)
        except WorkflowCheckpointException:
            return None
        except DecodeError as error:
            if self._places.thread is None and adapter.identity and not adapter.owned:
                return None
            error.within.append(f"checkpoint {ref.id!r} of thread {thread!r}")
            raise

    def _delete(self, checkpoint_id: str) -> bool:
        try:
            thread = self._places.find(checkpoint_id).thread
        except UnknownCheckpoint:
            return False
        keys = [Key("", checkpoint_id)]
        return self._store.thread(thread).adapter.delete(keys, reason="delete") is not None


class _Lineage:
    """The saves and loads of a thread by a storage, as far as they tell its runs apart.

    Parallel steps save with the same previous checkpoint. A run that continues an older checkpoint
    has loaded it before.
    """

    def __init__(self) -> None:
        self._last: str | None = None
        self._loaded: set[str] = set()

    def saved(self, id_: str) -> None:
        self._last = id_
        self._loaded.clear()

    def loaded(self, id_: str) -> None:
        self._loaded.add(id_)

    def is_beside(self, previous: str) -> bool:
        """Whether a save with that previous checkpoint is of a step parallel to the last one."""
        return self._last not in (None, previous) and previous not in self._loaded


class CheckpointPlaces:
    """The thread of each checkpoint.

    The framework does not name runs, so the search for a checkpoint that is new to this process
    covers all threads, at about a tenth of a millisecond each. The cache only says where to look:
    the entry there is verified like any other.

    Every writer of the roster can save under an id that another has used. Checkpoints of this
    identity are found first, and of others only those in exactly one thread, once every thread has
    been read.
    """

    def __init__(self, store: Store, thread: str | None) -> None:
        self._store = store
        self.thread = None if thread is None else store.thread(thread).name
        """The one thread of the storage, if it has only one."""
        self._lock = threading.Lock()
        self._known: dict[str, Known] = {}

    def note(self, checkpoint_id: str, known: Known) -> None:
        """Remember the thread of a checkpoint."""
        with self._lock:
            self._known[checkpoint_id] = known
            if len(self._known) > _KNOWN_MAX:
                del self._known[next(iter(self._known))]

    def known(self, checkpoint_id: str) -> Known | None:
        """The cached facts of a checkpoint."""
        with self._lock:
            return self._known.get(checkpoint_id)

    def find(self, checkpoint_id: str) -> Known:
        """The thread of a checkpoint.

        Raises:
            UnknownCheckpoint: No thread has it.
            UsageError: Several threads of others have it.
            SealpointError: This identity did not save it, and a thread cannot be read or listed;
                the first such thread says why.
        """
        found = self.known(checkpoint_id)
        if found is not None:
            return found
        refused: SealpointError | None = None
        seen: dict[str, list[Known]] = {}
        for name in self._candidates(checkpoint_id):
            try:
                self._look_through(name, seen)
            except SealpointError as error:
                refused = refused or error
            if (found := self.known(checkpoint_id)) is not None:
                return found
        # What cannot be read or listed might have held it: nothing of others stands in for that.
        if refused is not None:
            raise refused
        if self.thread is None:
            self._names(partial=False)
        if (found := self._of_others(checkpoint_id, seen)) is not None:
            return found
        raise unknown(checkpoint_id)

    def _look_through(self, name: str, seen: dict[str, list[Known]]) -> None:
        """Remember the checkpoints of this identity in a thread, and add those of others."""
        writer = self._store.thread(name).adapter.identity
        for ref in self._refs(name):
            known = Known.of(name, ref)
            if self.thread is not None or ref.writer == writer:
                self.note(ref.id, known)
            else:
                seen.setdefault(ref.id, []).append(known)

    def _of_others(self, checkpoint_id: str, seen: Mapping[str, list[Known]]) -> Known | None:
        for id_, places in seen.items():
            if len(places) == 1:
                self.note(id_, places[0])
        found = seen.get(checkpoint_id, [])
        if len(found) > 1:
            threads = ", ".join(repr(each.thread) for each in found[:3])
            raise UsageError(
                f"checkpoint {checkpoint_id!r}: {len(found)} threads of others have one: {threads}",
                hint="Say which is meant: SealedCheckpointStorage(store, thread=...).",
            )
        return found[0] if found else None

    def for_save(self, checkpoint: WorkflowCheckpoint) -> str:
        """The thread in which a checkpoint is saved: that of the previous one, or a new one.

        Raises:
            SealpointError: The search for the previous one failed.
        """
        if self.thread is not None:
            return self.thread
        previous = checkpoint.previous_checkpoint_id
        if previous is not None:
            try:
                return self.find(previous).thread
            except UnknownCheckpoint:
                pass  # of another storage, or deleted: what goes on from it begins a thread
        return self.new_thread(checkpoint.workflow_name, checkpoint.checkpoint_id)

    def guess(self, checkpoint: WorkflowCheckpoint) -> str:
        """The thread of a checkpoint that is about to be saved, as far as it is known now."""
        before = self.known(checkpoint.previous_checkpoint_id or "")
        if before is not None:
            return before.thread
        return self.new_thread(checkpoint.workflow_name, checkpoint.checkpoint_id)

    def new_thread(self, workflow_name: str, id_: str) -> str:
        """The name of a thread for a run that begins."""
        return self.thread or f"{workflow_name}/{id_}"

    def newest(self) -> str | None:
        """The newest checkpoint, where all are of one thread.

        Raises:
            SealpointError: Verification of the thread failed.
        """
        if self.thread is None:
            return None
        found = next(self._refs(self.thread), None)
        if found is None:
            return None
        self.note(found.id, Known.of(self.thread, found))
        return found.id

    def of_workflow(self, workflow_name: str) -> list[tuple[str, CheckpointRef]]:
        """All checkpoints of a workflow with their threads, oldest first.

        Raises:
            ListIncomplete: Threads are missing, or were added, so that the list cannot be complete.
            SealpointError: Verification of one of them failed.
        """
        found = [
            (name, ref)
            for name in self._names(partial=False)
            if self.thread or name.startswith(f"{workflow_name}/")
            for ref in self._refs(name)
            if ref.metadata.get(_WORKFLOW) == workflow_name
        ]
        return sorted(found, key=lambda each: (each[1].time, each[1].seq))

    def all(self) -> Iterator[tuple[str, CheckpointRef]]:
        """All checkpoints of the framework with their threads.

        Raises:
            ListIncomplete, SealpointError: As for `of_workflow`.
        """
        return ((name, ref) for name in self._names(partial=False) for ref in self._refs(name))

    def _candidates(self, checkpoint_id: str) -> Iterator[str]:
        """The threads that may hold a checkpoint, the most likely first."""
        names = self._names(partial=True)
        yield from sorted(names, key=lambda name: not name.endswith(f"/{checkpoint_id}"))

    def _names(self, *, partial: bool) -> tuple[str, ...]:
        if self.thread is not None:
            return (self.thread,)
        return self._store.threads(partial=partial).names

    def _refs(self, name: str) -> Iterator[CheckpointRef]:
        """The checkpoints of the framework in a thread."""
        thread: AdapterThread = self._store.thread(name).adapter
        try:
            yield from filter(_is_of_framework, thread.snapshots(""))
        except UnknownThread:
            return


class RunStorage:
    """The storage of one admitted run: all its saves and loads are of that run."""

    def __init__(
        self,
        storage: SealedCheckpointStorage,
        thread: str,
        run: RunPass,
        answered: Mapping[str, str],
    ) -> None:
        self.storage = storage
        self.saves = 0
        """How many checkpoints the run has saved."""
        self.last: str | None = None
        """The last of them."""
        self._thread = thread
        self._run = run
        self._answered = answered
        self._stopped: RunStopped | None = None

    def raise_if_stopped(self) -> None:
        """Raise again that the run was stopped: code of the run may catch everything.

        Raises:
            RunStopped: The run was stopped.
        """
        if self._stopped is not None:
            raise self._stopped

    def require_going_on(self) -> None:
        """Check whether the run may take its next step.

        Raises:
            Paused: An operator pauses its thread.
            Superseded: Another run has taken the thread.
        """
        if not self.storage.store.thread(self._thread).adapter.may_go_on(self._run.token):
            raise run_paused(self._thread, _GO_ON)

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Like `SealedCheckpointStorage.save`, in the name of the run."""
        self.raise_if_stopped()
        self.saves += 1
        try:
            return await self.storage.save_for(self._thread, self._run, checkpoint, self._answered)
        except RunStopped as stopped:
            self._stopped = stopped
            raise
        finally:
            if self.storage.places.known(checkpoint.checkpoint_id) is not None:
                self.last = checkpoint.checkpoint_id

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """The checkpoint of the decision; others like `SealedCheckpointStorage.load`."""
        return checkpoint_of(await _off_loop(self._read, checkpoint_id))

    def _read(self, checkpoint_id: str) -> Snapshot:
        runs = GuardedRuns.of(self.storage.store)
        found = runs.read(self._thread, self._run.token, "", checkpoint_id)
        if found is None:
            raise unknown(checkpoint_id)
        return found

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """As `SealedCheckpointStorage.list_checkpoints`."""
        return await self.storage.list_checkpoints(workflow_name=workflow_name)

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """As `SealedCheckpointStorage.list_checkpoint_ids`."""
        return await self.storage.list_checkpoint_ids(workflow_name=workflow_name)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """As `SealedCheckpointStorage.get_latest`."""
        return await self.storage.get_latest(workflow_name=workflow_name)

    async def delete(self, checkpoint_id: str) -> bool:
        """As `SealedCheckpointStorage.delete`."""
        return await self.storage.delete(checkpoint_id)


class RestingStorage:
    """The storage of a run without work: it returns its checkpoint, and saves nothing.

    The framework still goes through such a run, to report the pending requests.
    """

    def __init__(self, checkpoint: WorkflowCheckpoint) -> None:
        self.saves = 0
        """The number of checkpoints that it received."""
        self.last: str | None = None
        """It keeps none of them."""
        self._checkpoint = checkpoint

    def raise_if_stopped(self) -> None:
        """Nothing stops it."""

    def require_going_on(self) -> None:
        """There is no work to continue."""

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Skip a checkpoint that equals the one that the run was given."""
        self.saves += 1
        return checkpoint.checkpoint_id

    async def load(self, _checkpoint_id: str) -> WorkflowCheckpoint:
        """The checkpoint that the gate read, regardless of later changes."""
        return self._checkpoint


def unknown(checkpoint_id: str) -> UnknownCheckpoint:
    """The error for a missing checkpoint."""
    return UnknownCheckpoint(f"checkpoint {checkpoint_id!r}: no thread of the store holds it")


async def _off_loop(call: Callable[..., _T], *arguments: Any) -> _T:
    """Run blocking work in another OS thread, and convert errors to the framework's."""
    try:
        return await asyncio.to_thread(call, *arguments)
    except SealpointError as error:
        raise framework_error(error) from error


def rephrase(error: SealpointError, *, guarded: bool) -> SealpointError:
    """The same error, with advice for the caller of a workflow."""
    if isinstance(error, Superseded):
        return Superseded(error.message, hint=_SUPERSEDED_HINT)
    if isinstance(error, ResumeRefused) and not guarded:
        return ResumeRefused(error.message, reasons=error.reasons, hint=_UNGUARDED_HINT)
    if isinstance(error, TypeNotAllowed):
        return TypeNotAllowed(error.message, hint=f"{error.hint}\n{_SHORTER}")
    return error


def framework_error(error: SealpointError) -> WorkflowCheckpointException:
    """The refusal as an error of the framework, with our hint in its text."""
    more = f"\n{_SHORTER}" if isinstance(error, UnknownType) else ""
    return WorkflowCheckpointException(f"{error}{more}")


def question_of(checkpoint: WorkflowCheckpoint, registry: Registry) -> Any:
    """The pending requests of a checkpoint, in the form for approvers."""
    asked = checkpoint.pending_request_info_events
    bytes_max = QUESTION_BYTES_MAX // max(2 * len(asked), 1)

    def shown(value: Any) -> Any:
        return question_to_display_json(value, registry, bytes_max=bytes_max)

    return [
        {"id": str(id_), "value": shown(_plain(_asked(event))), **_schema(event, shown)}
        for id_, event in asked.items()
    ] or None


def _plain(asked: Any) -> Any:
    """The fields of a call that waits for approval; another request as it is."""
    return _fields(asked) if _is_approval(asked) else asked


def _is_approval(asked: Any) -> bool:
    return isinstance(asked, Content) and asked.type == "function_approval_request"


def _fields(content: Content) -> dict[str, Any]:
    return {key: value for key, value in content.to_dict().items() if value not in (None, {})}


def _schema(event: Any, shown: Callable[[Any], Any]) -> dict[str, Any]:
    """The JSON schema of the response to a request, if its type has one."""
    asked = _asked(event)
    if _is_approval(asked):
        # The framework makes a response of these fields.
        response = _fields(asked.to_function_approval_response(approved=True))
        fields = {key: {"const": value} for key, value in response.items()}
        call = response["function_call"]
        title = f"Call {call.get('name') or call.get('tool_name') or 'it'}"
        fields["approved"] = {"type": "boolean", "title": title}
        schema = {"type": "object", "properties": fields, "required": [*response]}
        return {"schema": shown(schema)}
    try:
        return {"schema": shown(TypeAdapter(event.response_type).json_schema())}
    except (AttributeError, NameError, RuntimeError, TypeError, PydanticUserError):
        return {}  # plain data of a host, or a type without a schema


def metadata_of(checkpoint: WorkflowCheckpoint) -> dict[str, Any]:
    """The metadata of a checkpoint that is readable without decoding it."""
    return {
        _WORKFLOW: checkpoint.workflow_name,
        _ITERATION: checkpoint.iteration_count,
        _TIMESTAMP: checkpoint.timestamp,
    }


def _asked(event: Any) -> Any:
    """The content of a request; a host with checkpoints of its own may keep it as plain data."""
    return event.data if isinstance(event, WorkflowEvent) else event


def _is_of_framework(ref: CheckpointRef) -> bool:
    """Whether a checkpoint was saved by such a storage.

    Every writer of the namespace chooses the content of its own checkpoints, and no content may
    keep others from finding theirs.
    """
    asked, answered = ref.question or [], ref.metadata.get(_ANSWERED, {})
    return (
        isinstance(ref.metadata.get(_WORKFLOW), str)
        and isinstance(asked, list)
        and all(isinstance(each, dict) and isinstance(each.get("id"), str) for each in asked)
        and isinstance(answered, dict)
        and all(isinstance(digest, str) for digest in answered.values())
    )


def checkpoint_of(found: Snapshot) -> WorkflowCheckpoint:
    """The framework's checkpoint in a snapshot.

    Raises:
        WorkflowCheckpointException: It holds another object.
    """
    return WorkflowCheckpoint.from_dict(found.state)


def _timestamp(ref: CheckpointRef) -> datetime:
    """When the framework made a checkpoint, by its own statement; a time without a zone is UTC."""
    try:
        found = datetime.fromisoformat(ref.metadata[_TIMESTAMP])
    except (KeyError, TypeError, ValueError):  # it is what its writer chose
        return ref.time
    return found if found.tzinfo else found.replace(tzinfo=UTC)
