# SPDX-License-Identifier: Apache-2.0
"""A team behind the gate: who works, who operates, who approves, and what they may be asked."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from sealpoint.errors import NeedsApproval
from sealpoint.gate import Request, Rule, Thread
from sealpoint.ledger import Kind, parse_body, parse_header
from sealpoint.signing import Identity, Pool, Role, RosterDocument
from tests.deployment import Deployment, Opened
from tests.ledgers import identity
from tests.unit.store.ended import end

__all__ = ["NARROW", "READ", "SHELL", "Team", "policy"]

NARROW: dict[str, Any] = {"permissions": []}
READ: dict[str, Any] = {"tools": [{"name": "read"}]}
SHELL: dict[str, Any] = {"tools": [{"name": "read"}, {"name": "shell"}]}


def policy(
    name: str = "test",
    *,
    needed: int = 2,
    expires: str = "1h",
    age: str = "7d",
    takeover: str = "0s",
    **measures: str,
) -> bytes:
    """A policy file: approval for everything but a narrower world, unless measures are given."""
    rules = dict.fromkeys(map(str, Rule), f"approve {needed}") | {"narrower-world": "record"}
    rules |= {rule.replace("_", "-"): measure for rule, measure in measures.items()}
    lines = [
        "version = 2",
        f'name = "{name}"',
        "[rules]",
        *(f'{rule} = "{measure}"' for rule, measure in rules.items()),
        "[approvals]",
        f'expires = "{expires}"',
        "[age]",
        f'max = "{age}"',
        "[session]",
        f'takeover_after = "{takeover}"',
    ]
    return "\n".join(lines).encode()


def _person(who: Identity, person: str) -> Identity:
    return replace(who, person=person)


class Team:
    """A world with a policy, and a process of everybody in it.

    The worker owns what it saves; `spare` is another writer. Of the approvers `twin` is the same
    person as the worker, and `bobby` the same as bob. `chief` may break the glass.
    """

    def __init__(self, world: Deployment, rules: bytes | None = None) -> None:
        self.world = world
        world.enrol(
            identity("spare"),
            identity("ann", Role.APPROVER),
            identity("bob", Role.APPROVER),
            identity("carl", Role.APPROVER),
            _person(identity("twin", Role.APPROVER), "worker"),
            _person(identity("bobby", Role.APPROVER), "bob"),
            identity("far", Role.APPROVER, namespaces=("billing",)),
            replace(identity("chief", Role.OPERATOR), break_glass=True),
            identity("officer", Role.PRIVACY),
        )
        self.digest = world.apply(policy() if rules is None else rules)
        self._open: dict[str, Opened] = {}

    def store(self, who: str = "worker") -> Opened:
        """The process of somebody."""
        if who not in self._open:
            self._open[who] = self.world.open(who, gated=True)
        return self._open[who]

    def thread(self, who: str = "worker", name: str = "t") -> Thread:
        """The handle of somebody's process."""
        return self.store(who).thread(name)

    def fresh(self, who: str = "worker", name: str = "t") -> Thread:
        """The handle of a new process."""
        return self.world.open(who, gated=True).thread(name)

    # ------------------------------------------------------------------ what was written

    def entries(self, name: str = "t") -> list[tuple[str, Any]]:
        """Kind and body of every entry of a thread, oldest first."""
        thread = self.world.thread_id(name)
        found = []
        for _, record in self.store("operator").storage.inner.scan(thread, 0):
            header = parse_header(record.header)
            body = None
            if record.body is not None:
                body = parse_body(header.kind, header.body, record.body)
            found.append((str(header.kind), body))
        return found

    def kinds(self, name: str = "t") -> list[str]:
        """The kind of every entry of a thread, oldest first."""
        return [kind for kind, _ in self.entries(name)]

    def newest(self, kind: Kind, name: str = "t") -> Any:
        """The body of the newest entry of a kind."""
        return next(body for found, body in reversed(self.entries(name)) if found == kind)

    def everything(self) -> tuple[Any, ...]:
        """All that storage and anchor hold, to be compared."""
        store = self.store("operator")
        inner = store.storage.inner
        threads = sorted({*dict(inner.heads()), *inner.blob_threads()})
        return (
            [(thread, list(inner.scan(thread, 0))) for thread in threads],
            [(thread, list(inner.stored_blobs(thread))) for thread in threads],
            sorted(store.anchor.inner.slots(), key=lambda pair: pair[0]),
        )

    def check_sound(self) -> None:
        """A fresh process verifies the whole store."""
        report = self.world.open(None, read_only=True).verify()
        assert report.ok, report.findings

    # ------------------------------------------------------------------ what is changed around it

    def later(self, **by: float) -> None:
        """Let time pass; before the clock of the world, if it is negative."""
        self.world.clock += timedelta(**by)

    def enter(self, change: Callable[[RosterDocument], RosterDocument]) -> None:
        """Put a changed roster into force; everybody's process hears of it."""
        self.world.change(change)
        for store in self._open.values():
            store.core.renewed_trust()

    def apply(self, rules: bytes) -> str:
        """Put another policy into force; everybody's process hears of it."""
        digest = self.world.apply(rules)
        for store in self._open.values():
            store.core.renewed_trust()
        return digest

    def end(self, who: str) -> None:
        """End somebody's key; everybody's process hears of it."""
        end(self.world, who)
        for store in self._open.values():
            store.core.renewed_trust()

    def pool(self, name: str, *members: str) -> None:
        """Make a pool."""
        self.enter(lambda document: replace(document, pools=(*document.pools, Pool(name, members))))

    def change(self, who: str, **fields: Any) -> None:
        """Change somebody's line in the roster."""
        self.enter(
            lambda document: replace(
                document,
                identities=tuple(
                    replace(each, **fields) if each.name == who else each
                    for each in document.identities
                ),
            )
        )

    # ------------------------------------------------------------------ what tests begin with

    def ask(self, who: str = "worker", name: str = "t", **wish: Any) -> Request:
        """Ask to resume what needs approval, and give the request."""
        try:
            self.thread(who, name).resume(**({"world": SHELL} | wish))
        except NeedsApproval as needs:
            request = needs.request
            assert isinstance(request, Request)
            return request
        raise AssertionError("released without approval")

    def go_on(self, who: str, name: str = "t", **wish: Any) -> Any:
        """Somebody resumes what another handed over, once people have approved that."""
        self.approve(self.ask(who, name, **wish))
        return self.thread(who, name).resume(**({"world": SHELL} | wish)).state

    def approve(self, request: Request, *people: str) -> None:
        """Let people approve a request."""
        for who in people or ("ann", "bob"):
            self.store(who).approve(request.id, reason=f"{who} has looked")

    def granted(self, **wish: Any) -> Request:
        """A thread of two checkpoints whose resume in a wider world has been approved."""
        self.thread().save({"n": 1}, id="c1", world=READ)
        self.thread().save({"n": 2}, id="c2", world=READ)
        request = self.ask(**wish)
        self.approve(request)
        return request


def lose_hold(thread: Thread) -> None:
    """Let the anchor forget the runs that have a thread, as when a machine was not heard of."""
    for held in thread._gate._holds.values():
        held.hold.end()
