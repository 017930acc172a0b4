# SPDX-License-Identifier: Apache-2.0
"""A seal: the inventory of a folder at one moment, as a checkpoint stores it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sealpoint.store import CheckpointRef
from sealpoint.world import World
from sealpoint_openclaw._inventory import Inventory


class Moment(StrEnum):
    """When a seal was taken."""

    FIRST = "first"
    STARTED = "started"
    RUNNING = "running"
    STOPPED = "stopped"
    CRASHED = "crashed"
    COMMAND = "command"
    ACCEPTED = "accepted"


GATEWAY_RUNS = frozenset({Moment.STARTED, Moment.RUNNING})
"""After these seals the gateway may have written more than the guard saw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """A seal as it was saved."""

    ref: CheckpointRef
    moment: Moment
    inventory: Inventory
    accepted: str | None
    world: World | None
    started: int | None
    """The position of the seal of the start, if the gateway has not been seen to end since."""
    acts: int
    """The position of the acts that were recorded when it began to read the folder."""

    @property
    def by(self) -> str:
        """The person for whom it was taken, as the caller said; empty: nobody was named."""
        return str(self.ref.metadata.get("by", ""))

    @property
    def time(self) -> datetime:
        """When it was taken, as its guard said."""
        return self.ref.time

    @property
    def may_have_run(self) -> bool:
        """Whether the gateway may have run since, without a guard that saw it end."""
        return self.moment in GATEWAY_RUNS


def seal_state(
    inventory: Inventory, moment: Moment, accepted: str | None, started: int | None, acts: int
) -> dict[str, Any]:
    """Return what a checkpoint of a seal stores."""
    return inventory.to_state() | {
        "moment": str(moment),
        "accepted": accepted,
        "started": started,
        "acts": acts,
    }


def read_seal(ref: CheckpointRef, state: Mapping[str, Any], world: World | None) -> Seal:
    """Return the seal that a checkpoint stores."""
    moment = Moment(state["moment"])
    return Seal(
        ref=ref,
        moment=moment,
        inventory=Inventory.from_state(state),
        accepted=state["accepted"],
        world=world,
        started=ref.seq if moment is Moment.STARTED else state["started"],
        acts=state["acts"],
    )
