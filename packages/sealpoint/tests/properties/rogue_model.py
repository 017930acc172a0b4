# SPDX-License-Identifier: Apache-2.0
"""Histories in which one member of the roster runs other code than ours.

Everybody else uses the normal API. The rogue member signs any entry with its genuine key, appends
it at the next position with the right links, and moves the anchors forward to it. The truth is
the walk through the whole thread from its genesis. After every move of the rogue member:

- If the walk refuses an entry, every honest process refuses the thread, fresh or warm, whether it
  reads or writes, and `verify` reports it.
- If the walk accepts the thread, no honest process refuses it.

A history is a list of steps that do not depend on each other, so that a history that fails is
shortened by leaving out steps. `own_matter` lists what a reader that starts at the head may accept.
"""

import random
from collections.abc import Callable
from typing import NamedTuple

from sealpoint.ledger import KINDS, Kind

__all__ = ["OWNERS", "WRITERS", "History", "Step", "describe", "draw_history", "shorten"]

ROGUES = (
    *("worker", "worker", "spare", "crew-1", "crew-1", "operator", "ann", "auditor", "officer"),
)
"""Whose key the rogue member has. The worker begins as the owner, and may become a former one."""

WRITERS = ("worker", "spare", "crew-1", "crew-2")
OWNERS = ("worker", "spare", "crew", "crew-1")


class Step(NamedTuple):
    """One thing that happens: by whom, what, and how."""

    actor: str
    """Who does it; `rogue` for the rogue member, `root` for a change of the roster."""
    act: str
    """A call of the API, `anchor`, or the kind of an entry that the rogue member writes."""
    how: tuple[str, ...] = ()
    """Each is `name=value`; `rogue_scene.py` reads the entries of the rogue member."""


class History(NamedTuple):
    """What happens to one thread."""

    rogue: str
    machines: int
    """1: a local anchor. 2: two machines with local anchors, and a shared one."""
    steps: tuple[Step, ...]


def describe(history: History) -> str:
    """A history, one step a line."""
    lines = [f"rogue {history.rogue}, {history.machines} machine(s)"]
    lines += [f"  {step.actor}: {step.act} {' '.join(step.how)}" for step in history.steps]
    return "\n".join(lines)


# ---------------------------------------------------------------------- drawing


def draw_history(seed: int) -> History:
    """A history of a few honest steps with bursts of the rogue member between them."""
    draw = random.Random(seed)  # noqa: S311 (a test)
    rogue = draw.choice(ROGUES)
    steps: list[Step] = []
    for _ in range(draw.randint(1, 3)):
        steps += [_draw_honest(draw) for _ in range(draw.randint(0, 4))]
        steps += _draw_bypass(draw, rogue) if draw.random() < 0.4 else _draw_burst(draw, rogue)
    steps += [_draw_honest(draw) for _ in range(draw.randint(0, 2))]
    return History(rogue, draw.choice((1, 1, 2)), tuple(steps))


_HONEST: dict[str, tuple[str, ...]] = {
    "save": WRITERS,
    "load": (*WRITERS, "operator", "auditor"),
    "resume": WRITERS,
    "pause": ("operator",),
    "unpause": ("operator",),
    "handoff": (*WRITERS, "operator"),
    "erase": ("officer",),
    "prune": WRITERS,
    "request": ("operator",),
    "roster": ("root",),
}
_HONEST_WEIGHTS = (6, 2, 3, 3, 2, 4, 1, 1, 1, 2)


def _draw_honest(draw: random.Random) -> Step:
    (act,) = draw.choices(list(_HONEST), _HONEST_WEIGHTS)
    who = draw.choice(_HONEST[act])
    how = [f"handle={draw.choice(('warm', 'fresh'))}", f"machine={draw.choice('01')}"]
    if act in ("handoff", "request"):
        how.append(f"to={draw.choice(OWNERS)}")
    if act == "roster":
        how = [f"change={draw.choice(('none', 'pool', 'back'))}"]
    if act in ("save", "resume", "prune") and draw.random() < 0.7:
        who = "owner"
    if act == "handoff" and draw.random() < 0.7:
        who = "owner"
    return Step(who, act, tuple(how))


_MARKS = ("zero", "own", "last", "previous", "1", "2", "3", "4", "5", "6")
_CHANGES: dict[str, tuple[str, ...]] = {
    "fence": _MARKS,
    "pause": _MARKS,
    "owner": _MARKS,
    "gen": ("+1", "-1", "+5", "before"),
    "roster": ("oldest", "older", "before"),
    "epoch": ("+1",),
    "at": ("past", "future"),
}
_CHANGE_WEIGHTS = (4, 5, 5, 2, 4, 1, 1)

_LIES = ("gen", "erased", "paused", "marks")
"""What an anchor is told of the entry that it is moved to, against what the entry says."""

_USUAL: dict[str, tuple[Kind, ...]] = {
    "writer": (
        *(Kind.RESUME, Kind.RESUME, Kind.CHECKPOINT, Kind.CHECKPOINT, Kind.HANDOFF, Kind.HANDOFF),
        *(Kind.HELD, Kind.RESULTS, Kind.PRUNE, Kind.DELETE, Kind.GENESIS, Kind.REQUEST),
        Kind.EXPIRY,
    ),
    "operator": (
        *(Kind.PAUSE, Kind.UNPAUSE, Kind.HANDOFF, Kind.HANDOFF, Kind.ADOPT, Kind.REQUEST),
        *(Kind.GENESIS, Kind.EXPIRY),
    ),
    "officer": (Kind.ERASE, Kind.ERASE, Kind.EXPIRY, Kind.APPROVAL),
    "other": (Kind.APPROVAL, Kind.DENIAL, Kind.EXPIRY, Kind.EXPIRY, Kind.BREAK_GLASS),
}


_DECISIONS: dict[str, tuple[Step, ...]] = {
    "pause": (Step("operator", "pause"), Step("operator", "unpause"), Step("officer", "erase")),
    "owner": (
        Step("owner", "handoff", ("to=spare",)),
        Step("owner", "handoff", ("to=crew",)),
        Step("operator", "request", ("to=spare",)),
        Step("officer", "erase"),
    ),
    "fence": (Step("owner", "save"), Step("owner", "handoff", ("to=crew",))),
}
"""What other people decide, by the mark that says so."""


def _draw_bypass(draw: random.Random, rogue: str) -> list[Step]:
    """A decision of somebody else, and a burst that begins with another claim about it."""
    mark = draw.choice(list(_DECISIONS))
    steps = [draw.choice(_DECISIONS[mark])]
    if draw.random() < 0.5:
        steps.append(Step("owner", "save"))
    burst = _draw_burst(draw, rogue)
    claim = burst[0].how if draw.random() < 0.5 else burst[0].how[-2:]
    if draw.random() < 0.8:
        claim = (*claim, f"{mark}={draw.choice(_MARKS)}")
    return [*steps, burst[0]._replace(how=claim), *burst[1:]]


def _draw_burst(draw: random.Random, rogue: str) -> list[Step]:
    """Some entries in a row, covered by others or not, and mostly anchored."""
    role = rogue if rogue in _USUAL else "writer" if rogue in WRITERS else "other"
    roster = [f"roster={draw.choice(('oldest', 'older', 'before'))}"] * (draw.random() < 0.15)
    steps = []
    for _ in range(draw.randint(1, 4)):
        usual = draw.random() < 0.93
        kind = draw.choice(_USUAL[role] if usual else tuple(KINDS))
        changes = draw.choices(
            list(_CHANGES), _CHANGE_WEIGHTS, k=draw.choice((0, 0, 0, 0, 1, 1, 2, 3))
        )
        how = [f"{name}={draw.choice(_CHANGES[name])}" for name in changes]
        how += [f"name={draw.choice((*OWNERS, rogue))}", *roster]
        how += ["proof=" + draw.choice(("none", "none", "found", "bogus"))]
        steps.append(Step("rogue", str(kind), tuple(dict.fromkeys(how))))
    cover = draw.choice(("none", "none", "junk", "sessions", "sessions"))
    name = draw.choice((rogue, "crew", "worker"))
    if cover == "junk":
        steps += [Step("rogue", str(Kind.EXPIRY), tuple(roster))] * draw.randint(1, 3)
    elif cover == "sessions" and role == "writer":
        session = [
            Step("rogue", str(Kind.RESUME), (f"name={name}", *roster)),
            Step("rogue", str(Kind.CHECKPOINT), tuple(roster)),
        ]
        steps += session * draw.randint(1, 3)
    if draw.random() < 0.9:
        epoch = ("epoch=+1",) if draw.random() < 0.05 else ()
        lie = (f"lie={draw.choice(_LIES)}",) if draw.random() < 0.2 else ()
        steps.append(Step("rogue", "anchor", (f"machine={draw.choice('01')}", *epoch, *lie)))
    return steps


# ---------------------------------------------------------------------- shortening


def shorten(history: History, fails: Callable[[History], bool]) -> History:
    """A history that fails as well and from which nothing more can be left out."""
    changed = True
    while changed:
        changed = False
        for at in reversed(range(len(history.steps))):
            steps = history.steps
            step = steps[at]
            shorter = [steps[:at] + steps[at + 1 :]]
            shorter += [
                (*steps[:at], _without(step, each), *steps[at + 1 :])
                for each in range(len(step.how))
            ]
            for candidate in shorter:
                less = history._replace(steps=candidate)
                if fails(less):
                    history, changed = less, True
                    break
        one = history._replace(machines=1)
        if history.machines > 1 and fails(one):
            history, changed = one, True
    return history


def _without(step: Step, at: int) -> Step:
    return step._replace(how=step.how[:at] + step.how[at + 1 :])
