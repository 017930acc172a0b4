# SPDX-License-Identifier: Apache-2.0
"""The output of the verbs about a guard: where things are, and what differs."""

from typing import Any

from sealpoint.cli.terminal import print_fields, print_line, print_lines
from sealpoint.views.words import Styled, when
from sealpoint_openclaw._guard import Check
from sealpoint_openclaw._settings import GuardSettings
from sealpoint_openclaw._world import unguarded_folders

_SHOWN = 40


def print_place(settings: GuardSettings) -> None:
    fields: list[tuple[str, Any]] = [
        ("folder", str(settings.folder.root)),
        *((f"and {name}", str(path)) for name, path in settings.folder.others.items()),
        ("seals", f"thread {settings.thread!r} of {settings.store}"),
        ("keys", str(settings.config_dir)),
    ]
    print_fields(fields)
    print_unguarded(settings)
    if settings.is_same_user():
        print_line(
            Styled(
                "Guard and gateway run as one user. This protects against other users and other "
                "machines, and against edits by mistake. An agent of this gateway that runs "
                "commands can read the guard's key.",
                "warning",
            )
        )


def print_unguarded(settings: GuardSettings) -> None:
    print_lines(
        Styled(f"Not guarded: {each}. [openclaw.folders] of config.toml adds it.", "warning")
        for each in unguarded_folders(settings.folder, settings.gate)
    )


def check_document(check: Check) -> dict[str, Any]:
    before = check.seal.world
    return {
        "seal": {
            "id": check.seal.ref.id,
            "time": check.seal.time,
            "moment": str(check.seal.moment),
        },
        "differences": [
            {
                "concern": str(each.concern),
                "place": each.place,
                "row": each.row,
                "change": str(each.change),
                "class": str(each.state_class),
            }
            for each in check.differences
        ],
        "world": [] if before is None else list(before.diff(check.world).lines()),
    }


def print_check(check: Check) -> None:
    print_line(f"The newest seal is of {when(check.seal.time)} ({check.seal.moment}).")
    if not check.differences:
        print_line(Styled("Nothing differs.", "good"))
        return
    for concern in dict.fromkeys(each.concern for each in check.differences):
        found = check.of(concern)
        print_line("")
        print_line(Styled(f"{concern} ({len(found)})", "heading"))
        print_lines(f"  {each.words}" for each in found[:_SHOWN])
        if len(found) > _SHOWN:
            print_line(f"  and {len(found) - _SHOWN} more; --json lists all")
    before = check.seal.world
    lines = () if before is None else before.diff(check.world).lines()
    if lines:
        print_line("")
        print_line(Styled("What OpenClaw could do differently", "heading"))
        print_lines(f"  {line}" for line in lines[:_SHOWN])
