# SPDX-License-Identifier: Apache-2.0
"""A store that a team runs: two workers, two approvers, an operator, and one who breaks glass."""

from pathlib import Path
from typing import Any

import sealpoint
from sealpoint import api
from sealpoint.errors import NeedsApproval
from tests.cli.machine import Machine

READ: dict[str, Any] = {"tools": [{"name": "read"}]}
SHELL: dict[str, Any] = {"tools": [{"name": "read"}, {"name": "shell"}]}
HOSTILE = "ok \x1b[2J\x1b]0;x\x07 \u202eesrever\u2066 \u200b\u3164\u2800\x9b31m\r\nstatus  approved"
"""Escapes, direction controls, characters that print nothing, a line that looks like another."""

PEOPLE = {
    "second": ("writer", "dev"),
    "ann": ("approver", "ann"),
    "bob": ("approver", "bob"),
    "dev-approver": ("approver", "dev"),
    "chief": ("operator", "chief"),
}


def make_team(directory: Path) -> Machine:
    """A machine that holds every key of a team; `dev` stands behind a writer and an approver."""
    made = Machine(directory / "disk" / "store.db", directory / "one")
    places: dict[str, Any] = {"config_dir": made.home / "config", "state_dir": made.home / "state"}
    sealpoint.init(made.url, policy="strict", **places)
    for name, (role, person) in PEOPLE.items():
        api.admin(made.url, **places).keys.create(name)
        api.admin(made.url, **places).keys.add(
            name, person=person, roles=[role], namespaces=["*"], break_glass=name == "chief"
        )
    return made


def ask(
    machine: Machine,
    thread: str = "t",
    *,
    world: Any = None,
    ref: Any = None,
    answer: Any = None,
    reason: str = "a new tool",
) -> str:
    """Ask for a resume as the owner, and return the id of the request."""
    with machine.open() as store:
        try:
            store.thread(thread).resume(
                world=SHELL if world is None else world, ref=ref, answer=answer, deliberate=reason
            )
        except NeedsApproval as error:
            return str(getattr(error.request, "id", ""))
    raise AssertionError
