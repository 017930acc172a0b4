# SPDX-License-Identifier: Apache-2.0
"""`sealpoint openclaw`: a guard for the state of an OpenClaw gateway."""

import dataclasses
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

import click

import sealpoint
from sealpoint.cli.options import Verb, VerbGroup, common_option, json_option, limit_option
from sealpoint.cli.terminal import (
    print_code,
    print_fields,
    print_json,
    print_line,
    print_lines,
    print_note,
    working,
)
from sealpoint.config import load_settings
from sealpoint.errors import SealpointError, StoreExists, UsageError
from sealpoint.views.words import Styled, count_text, when
from sealpoint.world import visible
from sealpoint_openclaw._change_log import read_changes
from sealpoint_openclaw._classes import StateClass, file_class
from sealpoint_openclaw._folder import Folder
from sealpoint_openclaw._gate_server import GateServer
from sealpoint_openclaw._gateway_process import Child
from sealpoint_openclaw._guard import Check, Guard, Watch
from sealpoint_openclaw._operator_link import OperatorLink
from sealpoint_openclaw._plugin_folder import (
    PATCH,
    SOCKET,
    UNIT,
    WRAPPER,
    require_readable,
    write_plugin_folder,
)
from sealpoint_openclaw._runtime import openclaw_version, starts_gateway
from sealpoint_openclaw._settings import (
    DEFAULT_THREAD,
    GuardSettings,
    default_gate,
    default_store,
)
from sealpoint_openclaw._world import unguarded_folders

_SHOWN = 40
_SECONDS = 10.0
_REPORTS_SECONDS = 5.0
# A gateway loads its plugins before it takes calls; an upgrade may take minutes until then.
_LOADED_SECONDS = 10.0
_STARTED_SECONDS = 600.0
_SILENT = (
    "The gateway has not loaded the guard's plugin, so its agents run without asking. Load it by "
    f"the settings in {PATCH}."
)


@click.group(cls=VerbGroup)
def openclaw() -> None:
    """Seal and verify the state of an OpenClaw gateway.

    OpenClaw continues after every start with whatever is in its folder. The guard keeps a seal of
    that folder, outside of it, and compares both before each start.
    """


def _directories(function: Callable[..., Any]) -> Callable[..., Any]:
    decorated: Callable[..., Any] = common_option("config_dir")(
        common_option("state_dir")(function)
    )
    return decorated


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
        yield settings, settings.guard(store)


# ---------------------------------------------------------------------- setting up


@openclaw.command("init", cls=Verb)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    envvar="OPENCLAW_STATE_DIR",
    metavar="DIR",
    help="OpenClaw's state folder, before OPENCLAW_STATE_DIR; else ~/.openclaw.",
)
@click.option(
    "--also",
    "others",
    multiple=True,
    metavar="NAME=DIR",
    help="A folder elsewhere that OpenClaw uses: workspace=DIR, lobster=DIR, plugins=DIR; may be "
    "repeated.",
)
@click.option(
    "--gate",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to put the plugin and its socket; the gateway's user must be able to read it.",
)
@click.option(
    "--policy",
    default="solo",
    show_default=True,
    metavar="solo|team|FILE",
    help="The policy of a new store.",
)
@click.option(
    "--thread",
    default=DEFAULT_THREAD,
    show_default=True,
    metavar="NAME",
    help="The thread of the seals, if one store guards several gateways.",
)
@click.option(
    "--same-user",
    is_flag=True,
    help="Let the guard run as the gateway's own user: it protects only against others.",
)
@common_option("store")
@_directories
@json_option
def init(
    *,
    folder: Path | None,
    others: tuple[str, ...],
    gate: Path | None,
    policy: str,
    thread: str,
    same_user: bool,
    store: str | None,
    config_dir: str | None,
    state_dir: str | None,
    as_json: bool,
) -> None:
    """Make store, keys and anchor of a guard, its plugin for the gateway, and the first seal.

    The gateway should be stopped, so that the first seal is of a state that nobody changes.
    """
    found = load_settings(store=store, config_dir=config_dir, state_dir=state_dir)
    guarded = Folder(
        root=(folder or Path.home() / ".openclaw").resolve(),
        others=dict(_named_folder(each) for each in others),
    )
    guarded.require()
    url = found.store or default_store(found.state_dir)
    user = guarded.root.stat().st_uid
    settings = GuardSettings(
        folder=guarded,
        user=user,
        store=url,
        gate=(gate or default_gate(user, url)).absolute(),
        thread=thread,
        namespace=found.namespace,
        same_user=same_user,
        config_dir=found.config_dir,
        state_dir=found.state_dir,
    )
    settings.check_reach()
    with working("making keys, store, plugin and the first seal"):
        _make_store(settings, policy)
        settings.make_secret()
        with settings.open_store() as opened:
            ref = settings.guard(opened).seal_first()
        settings.write()
        _write_plugin(settings)
    if as_json:
        print_json(
            {
                "folder": str(settings.folder.root),
                "store": settings.store,
                "thread": settings.thread,
                "same_user": settings.is_same_user(),
                "gate": str(settings.gate),
                "unguarded": unguarded_folders(settings.folder),
                "seal": ref.id,
            }
        )
        return
    _print_next(settings)


def _print_next(settings: GuardSettings) -> None:
    """Print what is left to do after `init`."""
    print_line(Styled("OpenClaw's state is sealed.", "good"))
    _print_place(settings)
    print_lines(["", "Let OpenClaw load the guard's plugin:"])
    patch = shlex.quote(str(settings.gate / PATCH))
    load = "  sealpoint openclaw run --reason 'the plugin of the guard' --"
    print_code([f"{load} openclaw config patch --file {patch}"])
    print_lines(["", "Start OpenClaw with its guard from now on:"])
    print_code(["  sealpoint openclaw run -- openclaw gateway"])
    print_lines(["", "Commands that change its state, while it is stopped:"])
    print_code(["  sealpoint openclaw run --reason WHY -- openclaw config set ..."])
    print_lines(["", "For a service manager:"])
    print_fields(
        [
            ("unit of systemd", str(settings.gate / UNIT)),
            ("OPENCLAW_WRAPPER", str(settings.gate / WRAPPER)),
        ]
    )


def _write_plugin(settings: GuardSettings) -> None:
    """Write the plugin of this version, and what loads it."""
    verb = ("openclaw", "run", "--config-dir", settings.config_dir, "--state-dir")
    write_plugin_folder(settings.gate, (*map(str, verb), str(settings.state_dir)))
    if not settings.is_same_user():
        require_readable(settings.gate, settings.user)


def _make_store(settings: GuardSettings, policy: str) -> None:
    """Make the store, or use the one of an interrupted or earlier init."""
    for directory in settings.store_directory():
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = policy if policy in {"dev", "solo", "team"} else Path(policy).read_bytes()
    try:
        sealpoint.init(
            settings.store,
            config_dir=settings.config_dir,
            state_dir=settings.state_dir,
            policy=text,
        )
    except StoreExists:
        return


def _named_folder(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not equals or not name or not path or "/" in name:
        raise UsageError(
            f"--also {text!r}: expected NAME=DIR", hint="Such as --also workspace=/home/ann/clawd"
        )
    if file_class(f"{name}/file") is StateClass.IGNORED:
        raise UsageError(
            f"--also {text!r}: files under this name are not compared",
            hint=f"Use another name: --also my-{name}={path}",
        )
    return name, Path(path).absolute()


def _print_place(settings: GuardSettings) -> None:
    fields: list[tuple[str, Any]] = [
        ("folder", str(settings.folder.root)),
        *((f"and {name}", str(path)) for name, path in settings.folder.others.items()),
        ("seals", f"thread {settings.thread!r} of {settings.store}"),
        ("keys", str(settings.config_dir)),
    ]
    print_fields(fields)
    _print_unguarded(settings.folder)
    if settings.is_same_user():
        print_line(
            Styled(
                "Guard and gateway run as one user. This protects against other users and other "
                "machines, and against edits by mistake. An agent of this gateway that runs "
                "commands can read the guard's key.",
                "warning",
            )
        )


def _print_unguarded(folder: Folder) -> None:
    print_lines(
        Styled(f"Not guarded: {each}. [openclaw.folders] of config.toml adds it.", "warning")
        for each in unguarded_folders(folder)
    )


# ---------------------------------------------------------------------- comparing


@openclaw.command("verify", cls=Verb)
@_directories
@json_option
def verify(*, config_dir: str | None, state_dir: str | None, as_json: bool) -> None:
    """Compare OpenClaw's folder with its newest seal, and refuse any difference."""
    with _guarding(config_dir, state_dir) as (_, guard), working("reading OpenClaw's state"):
        check = guard.verify()
    if as_json:
        print_json(_check_document(check))
        return
    print_line(
        Styled(
            f"OpenClaw's state is the one that was sealed {when(check.seal.time)} "
            f"({check.seal.moment}).",
            "good",
        )
    )


@openclaw.command("diff", cls=Verb)
@_directories
@json_option
def diff(*, config_dir: str | None, state_dir: str | None, as_json: bool) -> None:
    """List what differs between OpenClaw's folder and its newest seal; decide nothing."""
    with _guarding(config_dir, state_dir) as (_, guard), working("reading OpenClaw's state"):
        check = guard.check()
    if as_json:
        print_json(_check_document(check))
        return
    _print_check(check)
    _print_unguarded(guard.folder)


def _check_document(check: Check) -> dict[str, Any]:
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


def _print_check(check: Check) -> None:
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


@openclaw.command("status", cls=Verb)
@_directories
@json_option
def status(*, config_dir: str | None, state_dir: str | None, as_json: bool) -> None:
    """Show what is sealed, since when, whether it still is, and what is not protected."""
    with _guarding(config_dir, state_dir) as (settings, guard), working("reading OpenClaw's state"):
        check = guard.check()
    document = _check_document(check) | {
        "folder": str(settings.folder.root),
        "same_user": settings.is_same_user(),
        "unguarded": unguarded_folders(settings.folder),
        "running": check.seal.may_have_run,
    }
    if as_json:
        print_json(document)
        return
    _print_place(settings)
    print_line("")
    _print_check(check)
    if check.seal.may_have_run:
        print_line("")
        print_line(
            "A guarded gateway was started, and no seal of its end exists: it runs, or its "
            "guard was killed."
        )


@openclaw.command("log", cls=Verb)
@click.argument("words", metavar="OBJECT", nargs=-1)
@limit_option(_SHOWN)
@_directories
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
    settings = GuardSettings.load(config_dir=config_dir, state_dir=state_dir)
    sought = " ".join(words)
    with settings.open_store(read_only=True) as store, working("reading the seals"):
        found = (
            change
            for change in read_changes(settings.guard(store), store.watch())
            if (change.concerns(sought) if sought else not change.is_growth)
        )
        changes = list(islice(found, limit or None))
        more = next(found, None) is not None
    if as_json:
        print_json({"changes": [each.as_dict() for each in changes], "more": more})
        return
    for each in changes:
        time = Styled(f"{when(each.time)}  ", "quiet")
        print_line((time, visible(each.text), Styled(f"  {visible(each.author)}", "quiet")), hang=2)
    if not changes:
        print_line("No change of it is on record." if sought else "No change is on record.")
    if more:
        print_line(Styled("... and older ones; --limit 0 lists all.", "quiet"))


# ---------------------------------------------------------------------- deciding


@openclaw.command("accept", cls=Verb)
@click.option("--reason", metavar="TEXT", required=True, help="Why the state is meant.")
@_actor
@_directories
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
        print_json(_check_document(check) | {"accepted": ref.id})
        return
    _print_check(check)
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
@_directories
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
    with _guarding(config_dir, state_dir, command) as (settings, guard):
        if gateway or starts_gateway(command):
            made = guard.running(reason=reason, actor=actor)
            context.exit(_run_gateway(settings, guard, made, command, every))
        context.exit(_run_command(settings, guard, command, reason, actor))


def _run_gateway(
    settings: GuardSettings,
    guard: Guard,
    running: AbstractContextManager[Watch],
    command: Sequence[str],
    every: float,
) -> int:
    """Run a gateway as a child, answer its plugin, and seal until it has ended."""
    _write_plugin(settings)
    with running as watch:
        socket = settings.gate / SOCKET
        server = GateServer(socket, watch.acts.record, guard.refusal, settings.user)
        link = OperatorLink(guard, watch.acts, settings.gateway_client, _warn)
        server.listen()
        try:
            print_note(f"OpenClaw's state is verified; starting {shlex.join(command)}")
            child = Child(command, settings.folder.root, settings.user)
            with child.forwarding():
                child.drop_rights()
                server.serve(child.pid)
                link.start()
                warned = False
                silent_after = monotonic() + _STARTED_SECONDS
                while child.runs(every):
                    _seal(watch)
                    silent_after = min(silent_after, link.reached_at + _LOADED_SECONDS)
                    if monotonic() > silent_after and not server.greeted and not warned:
                        warned = True
                        _warn(_SILENT)
        finally:
            link.close()
            server.close(_REPORTS_SECONDS)
        watch.end(crashed=not child.ended_cleanly)
        status = child.wait()
        print_note(
            "OpenClaw has stopped; its state is sealed"
            if child.ended_cleanly
            else f"OpenClaw has ended with status {status}; its state is sealed"
        )
        if server.lost:
            _warn("Some reports of the plugin could not be recorded.")
        _print_waiting(watch)
    return status


def _warn(text: str) -> None:
    print_note(Styled(text, "warning"))


def _seal(watch: Watch) -> None:
    """Seal a running gateway; a fault is said, and tried again later."""
    waited = watch.waits
    try:
        watch.seal()
    except SealpointError as error:
        print_note(Styled(f"not sealed: {error.message}", "warning"))
        return
    if watch.waits and watch.waits != waited:
        _print_waiting(watch)


def _print_waiting(watch: Watch) -> None:
    if not watch.waits:
        return
    print_note(
        Styled(
            f"The next start needs approval for {count_text(len(watch.waits), 'change')}: "
            f"{'; '.join(watch.waits[:5])}",
            "warning",
        )
    )


def _run_command(
    settings: GuardSettings,
    guard: Guard,
    command: Sequence[str],
    reason: str | None,
    actor: str | None,
) -> int:
    """Run a command of OpenClaw, and seal what it changed."""
    before = guard.verify()
    child = Child(command, settings.folder.root, settings.user)
    with child.forwarding():
        status = child.wait()
    try:
        check, ref = guard.seal_command(before, reason, actor)
    except SealpointError:
        _print_check(guard.check())
        raise
    if ref is None:
        print_note("OpenClaw's state did not change")
    else:
        _print_check(check)
        print_note("The change is sealed")
    return status
