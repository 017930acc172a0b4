# SPDX-License-Identifier: Apache-2.0
"""An open store: its threads, the list of their names, and the threads missing from the list.

A name is listed if the anchor knows it for this very thread, and the store has the anchored entry.
Two kinds of threads are left out: anchored threads whose anchored entry the store lacks, in any
namespace; and threads of this namespace that only the store knows, because a process with another
anchor saved them. An incomplete list returns its names only to callers that explicitly accept a
partial list.

Rows without a genuine genesis are not a thread, so planted rows do not make a list incomplete.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from sealpoint.anchor import Position
from sealpoint.errors import (
    Forked,
    ListIncomplete,
    NotTrusted,
    RolledBack,
    SealpointError,
    UsageError,
)
from sealpoint.ids import namespace_tag
from sealpoint.ledger import Kind, link_hash, parse_header
from sealpoint.store._anchor_adoption import genuine_name
from sealpoint.store._genesis import claimed_name
from sealpoint.store._key_expiry import warn_of_expiry
from sealpoint.store._names import check_name, is_reserved, thread_slot
from sealpoint.store._store_parts import Core, StoreParts
from sealpoint.store._thread_list import ListedThread, all_threads

_TOLD_MAX = 3
_ID_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlistedThread:
    """A thread that a list of names leaves out."""

    thread: str
    """Its id in hexadecimal."""
    name: str | None
    """Its name; None if it is unknown."""
    anchored: bool
    """Whether the anchor knows it and the store lacks the anchored entry; otherwise the store has
    it, and the anchor does not know it."""

    def __str__(self) -> str:
        shown = f"id {self.thread[:_ID_DIGITS]}" if self.name is None else repr(self.name)
        why = "the store has not as it was seen" if self.anchored else "the anchor does not know"
        return f"{shown}, which {why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadNames:
    """The names of a namespace's threads; an incomplete list raises unless `partial` is set."""

    namespace: str
    left_out: tuple[UnlistedThread, ...]
    """The missing threads; empty if the list is complete."""
    partial: bool
    """Whether the caller accepts an incomplete list."""
    _found: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether the anchor and the store have exactly the same threads."""
        return not self.left_out

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names, sorted.

        Raises:
            ListIncomplete: Some are left out, and the caller did not pass `partial=True`.
        """
        if self.left_out and not self.partial:
            raise self._incomplete()
        return self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def _lacks_others(self) -> bool:
        """Whether a missing id has the prefix of another namespace; this proves nothing."""
        tag = namespace_tag(self.namespace).hex()
        return any(each.anchored and not each.thread.startswith(tag) for each in self.left_out)

    def _incomplete(self) -> ListIncomplete:
        told = "; ".join(map(str, self.left_out[:_TOLD_MAX]))
        more = len(self.left_out) - _TOLD_MAX
        hints = ["sealpoint anchor show tells what has become of each."]
        if not all(each.anchored for each in self.left_out):
            hints.append(
                "If this is the newest copy of the store, an operator lets the anchor know the "
                "others: sealpoint anchor adopt --reason WHY."
            )
        if self._lacks_others():
            hints.append(
                "Ids of other namespaces are among them, whose threads a login of a database that "
                "is limited to namespaces does not see; one that is not says whether they are "
                "there."
            )
        hints.append("threads(partial=True), or sealpoint threads --partial, gives the rest.")
        return ListIncomplete(
            (
                f"threads of namespace {self.namespace!r}: the list would leave out "
                f"{len(self.left_out)}: {told}"
            )
            + (f"; and {more} more" if more > 0 else ""),
            hint=" ".join(hints),
            left_out=self.left_out,
        )


def list_threads(core: Core, *, partial: bool = False) -> ThreadNames:
    """List the names of the namespace's threads, and report the threads left out.

    Args:
        core: The store.
        partial: Give names even if some are left out.
    """
    core.trust()
    threads = all_threads(core)
    names: list[str] = []
    left_out: list[UnlistedThread] = []
    for each in threads:
        if each.anchored is None:
            continue
        listing = _SlotListing(core, each.slot, each.anchored)
        if listing.missing:
            name = listing.name if listing.namespace == core.namespace else None
            left_out.append(UnlistedThread(thread=each.thread.hex(), name=name, anchored=True))
        elif listing.is_shown and listing.name is not None:
            names.append(listing.name)
    left_out += unknown_threads(core, threads)
    return ThreadNames(
        namespace=core.namespace,
        left_out=tuple(left_out),
        partial=partial,
        _found=tuple(sorted(names)),
    )


def unknown_threads(core: Core, threads: Iterable[ListedThread]) -> Iterator[UnlistedThread]:
    """Yield those threads of the namespace that the store has and the anchor does not know.

    These have a genuine genesis under a name that has no slot.
    """
    unknown = [each.thread for each in threads if each.anchored is None]
    # The roster may have gained a worker of another machine a moment ago.
    trust = core.renewed_trust() if unknown else core.trust()
    for thread in unknown:
        name = genuine_name(core, trust, thread)
        if name is not None and not _is_known(core, _slot(core, core.namespace, name)):
            yield UnlistedThread(thread=thread.hex(), name=name, anchored=False)


def _is_known(core: Core, slot: bytes) -> bool:
    """Whether the anchor has a trustworthy position in a slot."""
    with suppress(NotTrusted, RolledBack, Forked):  # reading the thread raises the error
        return core.anchor.get(slot) is not None
    return False


def _slot(core: Core, namespace: str, name: str) -> bytes:
    return thread_slot(core.parts.secret, namespace, name)


class _SlotListing:
    """A slot of the anchor, compared with the store."""

    def __init__(self, core: Core, slot: bytes, position: Position) -> None:
        self._core = core
        seen = position
        position = core.restored_or_same(position)
        self.namespace = ""
        self.name: str | None = None
        """The name, proven by the slot; None if no name is to be listed."""
        self.missing = False
        """Whether the store lacks the anchored entry."""
        if position.erased and self._is_erased(position):
            return
        self._find_name(slot, position.thread)
        if position.reserved:
            # A reserved name need not have become a thread.
            if self.name is not None and self._is_lost(position):
                self.name = None
        elif self.name is None or not self._stands(position):
            # Unless it was erased this very moment.
            self.missing = True
            # A problem of one thread is not a reason to list none.
            with suppress(NotTrusted, RolledBack, Forked):
                found = core.anchor.get(slot)
                self.missing = found is None or found == seen or not found.erased

    @property
    def is_shown(self) -> bool:
        """Whether it is a thread of the namespace, and not one of Sealpoint's own."""
        mine = self.namespace == self._core.namespace
        return mine and self.name is not None and not is_reserved(self.name)

    def _find_name(self, slot: bytes, thread: bytes) -> None:
        try:
            namespace, name = claimed_name(self._core.storage, thread)
        except SealpointError:
            return
        if _slot(self._core, namespace, name) == slot:
            self.namespace, self.name = namespace, name

    def _is_erased(self, position: Position) -> bool:
        """Whether the store shows the entry that erased it: the anchor alone proves nothing."""
        with suppress(SealpointError):
            record = self._core.storage.read(position.thread, position.seq)
            return record is not None and parse_header(record.header).kind is Kind.ERASE
        return False

    def _is_lost(self, position: Position) -> bool:
        """Whether the thread in the store was lost in a restore, and has come back."""
        record = self._core.storage.read(position.thread, 0)
        return record is not None and parse_header(record.header).epoch < position.epoch

    def _stands(self, position: Position) -> bool:
        """Whether the anchored entry is at its position."""
        try:
            record = self._core.storage.read(position.thread, position.seq)
        except SealpointError:
            return False
        return record is not None and link_hash(record.header) == position.entry


_HANDLES_KEPT = 256


_T = TypeVar("_T")


class CheckpointStore(Generic[_T]):
    """Checkpoints by thread, in one namespace of one store.

    Args:
        parts: The parts of the store.
        handle: Makes the handle of a thread.

    Raises:
        NotTrusted: The pinned root did not sign the store chain.
        Unanchored: The anchor does not know this store.
        RolledBack: The store chain ends before the anchored or pinned roster.
    """

    def __init__(self, parts: StoreParts, handle: Callable[[Core, str], _T]) -> None:
        check_name(parts.namespace, "namespace")
        self.core = Core(parts)
        warn_of_expiry(self.core, self.core.renewed_trust())
        self._lock = Lock()
        self._new_handle = handle
        self._handles: WeakValueDictionary[str, _T] = WeakValueDictionary()
        self._recent: OrderedDict[str, _T] = OrderedDict()
        self._closed = False

    def thread(self, name: str) -> _T:
        """Return the handle of a thread; the same for the same name, so a session has one owner.

        Nothing is read yet. An unreferenced handle is dropped after a while; its session then ends,
        and the next save opens another.

        Raises:
            NameInvalid: The name is empty, too long or not printable.
        """
        with self._lock:
            # Nearly always it was used recently, and its name was checked then.
            if type(name) is str and name in self._recent and not self._closed:
                self._recent.move_to_end(name)
                return self._recent[name]
        name = check_name(name, "thread name")
        with self._lock:
            if self._closed:
                raise UsageError(
                    "store: it is closed",
                    hint="Open it again: what `with` opened is closed at the end of the block.",
                )
            handle = self._handles.get(name)
            if handle is None:
                handle = self._handles[name] = self._new_handle(self.core, name)
            self._recent[name] = handle
            self._recent.move_to_end(name)
            if len(self._recent) > _HANDLES_KEPT:
                self._recent.popitem(last=False)
            return handle

    def close(self) -> None:
        """Release storage and anchor. Closing twice is allowed."""
        with self._lock:
            self._closed = True
            self._recent.clear()
        self.core.parts.close()
