# SPDX-License-Identifier: Apache-2.0
"""`sealpoint openclaw`: a guard for the state of an OpenClaw gateway."""

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

import click

from sealpoint.cli.options import Verb, VerbGroup, json_option, limit_option
from sealpoint.cli.terminal import print_json, print_line, working
from sealpoint.errors import NeedsApproval, ResumeRefused
from sealpoint.views.words import Styled, when
from sealpoint.world import visible
from sealpoint_openclaw._display import check_document, print_check, print_place, print_unguarded
from sealpoint_openclaw._guard import Guard
from sealpoint_openclaw._runtime import openclaw_version, starts_gateway
from sealpoint_openclaw._set_up import directories, init
from sealpoint_openclaw._settings import GuardSettings
from sealpoint_openclaw._world import unguarded_folders

_SHOWN = 40
_SECONDS = 10.0
_ASKED = (
    "Another person answers the request: sealpoint approve ID --reason WHY. After that, repeat the "
    "same command."
)
_REASON = "If the change is meant, repeat the command with --reason WHY."


@click.group(cls=VerbGroup)
def openclaw() -> None:
    """Seal and verify the state of an OpenClaw gateway.

    OpenClaw continues after every start with whatever is in its folder. The guard keeps a seal of
    that folder, outside of it, and compares both before each start.
    """


openclaw.add_command(init)

_reason = click.option("--reason", metavar="TEXT", help="Why the change is meant.")
_actor = click.option(
    "--actor", metavar="PERSON", help="The name of the person who decides it, for the record."
)


@contextmanager
def _guarding(
    config_dir: str | None, state_dir: str | None, command: Sequence[str] = ()
) -> Iterator[tuple[GuardSettings, Guard]]:
    """Open the store of the seals, and give the guard."""
    settings = GuardSettings.load(config_dir=config_dir, state_dir=state_dir)
    settings.folder.require()
    settings.check_reach()
    version = openclaw_version(command)
    if version is not None:
        settings = dataclasses.replace(settings, runtime={"openclaw": version})
    with settings.open_store() as store:
        try:
            yield settings, settings.guard(store)
        except (NeedsApproval, ResumeRefused) as error:
            if "sealpoint rollout" in (error.hint or ""):  # a gateway has no rollouts
                error.hint = _ASKED if isinstance(error, NeedsApproval) else _REASON
            raise


# ---------------------------------------------------------------------- comparing


@openclaw.command("verify", cls=Verb)
@directories
@json_option
def verify(*, config_dir: str | None, state_dir: str | None, as_json: bool) -> None:
    """Compare OpenClaw's folder with its newest seal, and refuse any difference."""
    with _guarding(config_dir, state_dir) as (_, guard), working("reading OpenClaw's state"):
        check = guard.verify()
    if as_json:
        print_json(check_document(check))
        return
    print_line(
        Styled(
            f"OpenClaw's state is the one that was sealed {when(check.seal.time)} "
            f"({check.seal.moment}).",
            "good",
        )
    )


@openclaw.command("diff", cls=Verb)
@directories
@json_option
def diff(*, config_dir: str | None, state_dir: str | None, as_json: bool) -> None:
    """List what differs between OpenClaw's folder and its newest seal; decide nothing."""
    with _guarding(config_dir, state_dir) as (settings, guard), working("reading OpenClaw's state"):
        check = guard.check()
    if as_json:
        print_json(check_document(check))
        return
    print_check(check)
    print_unguarded(settings)


@openclaw.command("status", cls=Verb)
@directories
@json_option
def status(*, config_dir: str | None, state_dir: str | None, as_json: bool) -> None:
    """Show what is sealed, since when, whether it still is, and what is not protected."""
    with _guarding(config_dir, state_dir) as (settings, guard), working("reading OpenClaw's state"):
        check = guard.check()
    document = check_document(check) | {
        "folder": str(settings.folder.root),
        "same_user": settings.is_same_user(),
        "unguarded": unguarded_folders(settings.folder, settings.gate),
        "running": check.seal.may_have_run,
    }
    if as_json:
        print_json(document)
        return
    print_place(settings)
    print_line("")
    print_check(check)
    if check.seal.may_have_run:
        print_line("")
        print_line(
            "A guarded gateway was started, and no seal of its end exists: it runs, or its "
            "guard was killed."
        )


@openclaw.command("log", cls=Verb)
@click.argument("words", metavar="OBJECT", nargs=-1)
@limit_option(_SHOWN)
@directories
@json_option
def log(
    words: tuple[str, ...],
    limit: int,
    *,
    config_dir: str | None,
    state_dir: str | None,
    as_json: bool,
) -> None:
    """List who changed what of OpenClaw's state, and when, newest first.

    OBJECT are words for what changed: job nightly, device Ann's phone, skill deploy, message, or
    the name of a table, a row or a file. Without it, what a running gateway writes all the time is
    left out: messages, events and its own notes.
    """
    # Imported here: the other verbs start faster without the watch of a store.
    from sealpoint_openclaw._change_log import group_files, read_changes  # noqa: PLC0415

    settings = GuardSettings.load(config_dir=config_dir, state_dir=state_dir)
    sought = " ".join(words)
    with settings.open_store(read_only=True) as store, working("reading the seals"):
        found = (
            change
            for change in read_changes(settings.guard(store), store.watch())
            if (change.concerns(sought) if sought else not change.is_growth)
        )
        groups = ([each] for each in found) if as_json else group_files(found)
        changes = list(islice(groups, limit or None))
        more = next(groups, None) is not None
    if as_json:
        print_json({"changes": [each.as_dict() for (each,) in changes], "more": more})
        return
    for each, *others in changes:
        time = Styled(f"{when(each.time)}  ", "quiet")
        text = f"{len(others) + 1:,} files in {each.folder}: {each.change}" if others else each.text
        print_line((time, visible(text), Styled(f"  {visible(each.author)}", "quiet")), hang=2)
    if not changes:
        print_line("No change of it is on record." if sought else "No change is on record.")
    if more:
        print_line(Styled("... and older ones; --limit 0 lists all.", "quiet"))


# ---------------------------------------------------------------------- deciding


@openclaw.command("accept", cls=Verb)
@click.option("--reason", metavar="TEXT", required=True, help="Why the state is meant.")
@_actor
@directories
@json_option
def accept(
    *,
    reason: str,
    actor: str | None,
    config_dir: str | None,
    state_dir: str | None,
    as_json: bool,
) -> None:
    """Seal OpenClaw's folder as it is now, by a decision about everything that differs.

    Read `sealpoint openclaw diff` first. Under a policy that wants approvals this makes a request;
    run the same again when it is approved. If anything changes in between, it is another request.
    """
    with _guarding(config_dir, state_dir) as (_, guard):
        check, ref = guard.accept(reason, actor)
    if as_json:
        print_json(check_document(check) | {"accepted": ref.id})
        return
    print_check(check)
    print_line("")
    print_line(Styled("This state is sealed now.", "good"))


# ---------------------------------------------------------------------- running


@openclaw.command(
    "run",
    cls=Verb,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@_reason
@_actor
@click.option(
    "--every",
    type=click.FloatRange(min=0.5),
    default=_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How often to seal what a gateway writes.",
)
@click.option("--gateway", is_flag=True, help="CMD is a gateway, whatever it is called.")
@directories
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="CMD")
@click.pass_context
def run(
    context: click.Context,
    *,
    reason: str | None,
    actor: str | None,
    every: float,
    gateway: bool,
    config_dir: str | None,
    state_dir: str | None,
    command: tuple[str, ...],
) -> None:
    """Verify OpenClaw's state, then run CMD under the guard.

    CMD runs as the user who owned OpenClaw's folder at `init`. A gateway is sealed while it runs
    and when it ends, and its plugin asks the guard before each agent run and tool call. After any
    other command, such as `openclaw doctor`, the changes are shown and sealed; give --reason if it
    changes what OpenClaw may do.
    """
    # Imported here: the verbs that only read start faster without WebSockets.
    from sealpoint_openclaw._running import run_command, run_gateway  # noqa: PLC0415

    with _guarding(config_dir, state_dir, command) as (settings, guard):
        if gateway or starts_gateway(command):
            made = guard.running(reason=reason, actor=actor)
            context.exit(run_gateway(settings, guard, made, command, every))
        context.exit(run_command(settings, guard, command, reason, actor))
