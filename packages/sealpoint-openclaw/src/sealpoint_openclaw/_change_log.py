# SPDX-License-Identifier: Apache-2.0
"""The changes of a gateway's state, with time and author: each seal, compared with the last one.

A change lies between two seals. Its author depends on what the guard saw of that time.

1. The gateway was stopped: nobody can know who it was; a person accepted it, and is named.
2. A command ran under the guard: the person for whom it ran.
3. The gateway ran: the tool call that named the file, with its run; for everything else, the runs
   of that time. A user of OpenClaw, or a command of an agent, may have made such a change.

Names and values are those that the worlds of the seals show. Of everything else a seal has digests.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import count, groupby
from pathlib import Path
from typing import Any

from sealpoint.api import StoreWatch
from sealpoint.audit import TimelineEntry, TimelinePage
from sealpoint.world import World, json_form
from sealpoint_openclaw._classes import StateClass
from sealpoint_openclaw._differences import Change, Concern, Difference, find_differences
from sealpoint_openclaw._folder import is_resume_file
from sealpoint_openclaw._guard import Guard
from sealpoint_openclaw._inventory import Inventory
from sealpoint_openclaw._seals import Moment, Seal
from sealpoint_openclaw._world import VERSION, describe

_PAGE = 100
_RUNS_SHOWN = 3
_HEX_SHOWN = 8
_FILES_SHOWN = 8
_WRITERS = frozenset({"write", "edit", "apply_patch"})
"""The tools of OpenClaw that write the files that they name."""
_LOBSTER = "lobster"
"""The tool that writes resume files, without naming them."""
_WHILE_IT_RAN = frozenset({Moment.RUNNING, Moment.STOPPED, Moment.CRASHED})


class Origin(StrEnum):
    """Where a change came from."""

    OUTSIDE = "outside"
    """Past the guard: nobody can know who made it."""
    COMMAND = "command"
    """A command that ran under the guard."""
    TOOL = "tool"
    """A tool call of an agent that named the file."""
    GATEWAY = "gateway"
    """Something else while the gateway ran: a user of OpenClaw, or what an agent does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRecord:
    """One change, with everything that is known about who made it."""

    since: datetime
    """The time of the last seal without it."""
    time: datetime
    """The time of the first seal with it."""
    name: str
    """The thing that changed, as people call it."""
    former: str
    """Its name before; empty: the same."""
    change: Change
    values: tuple[str, ...]
    """The part of the change that a world shows; without that, the digests before and after."""
    place: str
    row: str | None
    state_class: StateClass
    origin: Origin
    who: str
    """Its author, in words."""
    reason: str
    """Why the change was accepted or made, as someone said; empty: nobody did."""
    approvers: tuple[str, ...]
    """The people who approved it."""
    entry: str
    """The hash of the entry that allowed it, as `sealpoint why` takes it."""

    def concerns(self, words: str) -> bool:
        """Whether each of some words is in the name of what changed, or in its place."""
        text = f"{self.name} {self.former} {self.place} {self.row or ''}".casefold()
        return all(
            re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) for word in words.casefold().split()
        )

    @property
    def is_growth(self) -> bool:
        """Whether it is what a gateway that runs writes all the time."""
        if self.origin is Origin.OUTSIDE or self.row is None:
            return False
        grown = self.change in {Change.ADDED, Change.COMPLETED}
        is_history = self.state_class is StateClass.APPEND
        return self.state_class is StateClass.RUNTIME or (is_history and grown)

    @property
    def folder(self) -> str:
        """The folder of a file, at most two levels deep; else empty."""
        kind, _, path = self.place.partition(" ")
        return "/".join(path.split("/")[:-1][:2]) if kind == "file" else ""

    @property
    def text(self) -> str:
        """The change in a line, without its time and author."""
        values = f": {'; '.join(self.values)}" if self.values else ""
        return f"{self.name}: {self.change}{values}"

    @property
    def author(self) -> str:
        """Its author, the people who approved it, and the reason."""
        approved = f"approved by {', '.join(sorted(self.approvers))}" if self.approvers else ""
        own = self.origin in {
            Origin.OUTSIDE,
            Origin.COMMAND,
        }  # the guard's own reason is the change
        return "; ".join(text for text in (self.who, approved, self.reason if own else "") if text)

    def as_dict(self) -> dict[str, object]:
        """The JSON form."""
        return json_form(self)


def read_changes(guard: Guard, watch: StoreWatch) -> Iterator[ChangeRecord]:
    """Yield the changes of a gateway's state, newest first, as far back as states are kept.

    Raises:
        RolledBack, Tampered, Forked, Unanchored: The store of the seals is not what it was.
    """
    return _Log(guard, watch).changes()


def group_files(changes: Iterator[ChangeRecord]) -> Iterator[list[ChangeRecord]]:
    """Yield changes one by one, and many files of one folder that changed together as a group."""
    for (folder, *_), found in groupby(
        changes, lambda each: (each.folder, each.time, each.change, each.author)
    ):
        group = list(found)
        if folder and len(group) > _FILES_SHOWN:
            yield group
        else:
            yield from ([each] for each in group)


class _Log:
    """Walks the thread of the seals, from the newest entry on."""

    def __init__(self, guard: Guard, watch: StoreWatch) -> None:
        self._guard = guard
        self._watch = watch
        self._approvers: defaultdict[str, list[str]] = defaultdict(list)
        """The people who approved each request, as far as the log has come."""
        self._sessions: dict[int, TimelineEntry] = {}
        self._allowed: tuple[World | None, TimelineEntry] | None = None
        """The world in which the last change of it ends, and the decision that allowed it. While a
        change waits for approval, seals keep the world of before, so both are of a later seal."""

    def changes(self) -> Iterator[ChangeRecord]:
        """Yield the changes."""
        after: tuple[Seal, int] | None = None
        for entry in self._entries():
            if entry.record.kind == "approval":
                self._approvers[entry.record.request].append(entry.record.person)
            if entry.record.kind != "checkpoint":
                continue
            if entry.given_up:
                return
            before = self._guard.seal(entry.facts["id"])
            if after is not None:
                yield from self._between(before, *after)
            after = before, entry.session

    def _entries(self) -> Iterator[TimelineEntry]:
        for offset in count(0, _PAGE):
            page = self._page(offset, _PAGE)
            if offset == 0:
                self._total = page.total
            yield from page.entries
            if len(page.entries) < _PAGE:
                return

    def _page(self, offset: int, limit: int) -> TimelinePage:
        return self._watch.timeline(self._guard.thread.name, offset=offset, limit=limit)

    def _decision(self, session: int) -> TimelineEntry:
        """Return the entry that began a session."""
        if session not in self._sessions:
            self._sessions[session] = self._page(self._total - 1 - session, 1).entries[0]
        return self._sessions[session]

    def _between(self, before: Seal, after: Seal, session: int) -> Iterator[ChangeRecord]:
        """Yield the changes from one seal to the next."""
        decision = self._decision(session)
        if self._allowed is None or before.world != after.world:
            self._allowed = after.world, decision
        acts = self._acts_between(before, after)
        parts = set()
        found = find_differences(before.inventory, after.inventory, may_have_run=False)
        for each in [*_versions(before.world, after.world), *found]:
            is_exact = each.state_class is StateClass.EXACT
            world, allowed = self._allowed if is_exact else (after.world, decision)
            old, new = (_row_digest(each, seal.inventory) for seal in (before, after))
            shown = describe(each, (before.world, old), (world, new))
            if shown.is_part and shown.name in parts:
                continue  # a plugin of 10,000 files is one
            parts.add(shown.name)
            origin, who = self._author(each, before, after, decision, acts)
            yield ChangeRecord(
                since=before.time,
                time=after.time,
                name=shown.name,
                former=shown.former,
                change=each.change,
                values=shown.values or _digests(each, before, after),
                place=each.place,
                row=each.row,
                state_class=each.state_class,
                origin=origin,
                who=who,
                reason=allowed.facts.get("reason", ""),
                approvers=tuple(self._approvers[allowed.record.request]),
                entry=allowed.record.entry,
            )

    def _author(
        self,
        each: Difference,
        before: Seal,
        after: Seal,
        decision: TimelineEntry,
        acts: Sequence[Mapping[str, Any]],
    ) -> tuple[Origin, str]:
        """Return where a change came from, and who made it."""
        person = after.by or decision.record.actor or decision.record.person or decision.record.by
        if after.moment is Moment.ACCEPTED:
            when = "while no guard saw it" if before.may_have_run else "while OpenClaw was stopped"
            return Origin.OUTSIDE, f"nobody on record, {when}; accepted by {person}"
        if after.moment is Moment.COMMAND or each.place.startswith(VERSION):
            return Origin.COMMAND, person
        if call := _writer(each, self._guard.folder.path(each.place.removeprefix("file ")), acts):
            tool = f"{call['tool']} {call['call']}"
            return Origin.TOOL, f"run {call['run']} of {call['agent']}, {tool}, {call['session']}"
        runs = dict.fromkeys(_run(act) for act in acts)
        shown = [run for run in runs if run][-_RUNS_SHOWN:]
        during = f", during {', '.join(f'run {run}' for run in shown)}" if shown else ""
        return Origin.GATEWAY, f"while OpenClaw ran{during}"

    def _acts_between(self, before: Seal, after: Seal) -> list[Mapping[str, Any]]:
        """Return the acts of the time between two seals of one run, in order."""
        started = before.started if after.moment in _WHILE_IT_RAN else None
        if started is None:
            return []
        return self._guard.acts(started).during(before.acts, after.time)


def _versions(before: World | None, after: World | None) -> Iterator[Difference]:
    """Yield the versions that differ, such as that of OpenClaw after an upgrade."""
    olds, news = ({} if world is None else world.runtime for world in (before, after))
    for name in sorted({*olds, *news}):
        if olds.get(name) != news.get(name):
            yield Difference(
                concern=Concern.STATE,
                place=f"{VERSION}{name}",
                row=None,
                change=Change.CHANGED if name in olds and name in news else Change.ADDED,
                state_class=StateClass.EXACT,
            )


def _writer(
    each: Difference, path: Path, acts: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Return the last tool call that named a file, if it could write it."""
    if not each.place.startswith("file "):
        return None
    calls = [
        act
        for act in acts
        if act["kind"] == "tool"
        and (
            any(_ends(path, file) for file in act.get("files", ()))
            if act["tool"] in _WRITERS
            else act["tool"] == _LOBSTER and is_resume_file(path.as_posix())
        )
    ]
    return calls[-1] if calls else None


def _ends(path: Path, name: str) -> bool:
    """Whether a path is, or ends with, one that a tool call named."""
    parts = Path(name).parts
    return bool(parts) and path.parts[-len(parts) :] == parts


def _run(act: Mapping[str, Any]) -> str:
    """Return the run that an act belongs to; empty if it names none."""
    run = act.get("run") or act.get("facts", {}).get("runId", "")
    return str(run)


def _digests(each: Difference, before: Seal, after: Seal) -> tuple[str, ...]:
    """Return the beginnings of the digests before and after, if a file or a keyed row changed."""
    if each.change is not Change.CHANGED:
        return ()
    found = [_digest(each, seal.inventory) for seal in (before, after)]
    old, new = found
    return () if old is None or new is None or old == new else (f"{old} -> {new}",)


def _digest(each: Difference, inventory: Inventory) -> str | None:
    kind, _, name = each.place.partition(" ")
    digest = inventory.files.get(name) if kind == "file" else _row_digest(each, inventory)
    return None if digest is None else digest.hex()[:_HEX_SHOWN]


def _row_digest(each: Difference, inventory: Inventory) -> bytes | None:
    """Return the digest of a row with a key, as a world has it."""
    table, _, path = each.place.removeprefix("table ").partition(" of ")
    database = inventory.databases.get(path)
    rows = None if database is None else database.tables.get(table)
    return None if rows is None or each.row is None else rows.rows.get(each.row)
