# SPDX-License-Identifier: Apache-2.0
"""`sealpoint openclaw init`: store, keys and anchor of a guard, its plugin, and the first seal."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

import sealpoint
from sealpoint.cli.options import Verb, common_option, json_option
from sealpoint.cli.terminal import (
    print_code,
    print_fields,
    print_json,
    print_line,
    print_lines,
    working,
)
from sealpoint.config import load_settings
from sealpoint.errors import StoreExists, UsageError
from sealpoint.gate import SHIPPED_POLICIES
from sealpoint.views.words import Styled
from sealpoint_openclaw._classes import StateClass, file_class
from sealpoint_openclaw._display import print_place
from sealpoint_openclaw._folder import Folder
from sealpoint_openclaw._plugin_folder import PATCH, UNIT, WRAPPER
from sealpoint_openclaw._settings import (
    DEFAULT_THREAD,
    GuardSettings,
    default_gate,
    default_store,
)
from sealpoint_openclaw._world import unguarded_folders


def directories(function: Callable[..., Any]) -> Callable[..., Any]:
    decorated: Callable[..., Any] = common_option("config_dir")(
        common_option("state_dir")(function)
    )
    return decorated


@click.command("init", cls=Verb)
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
    metavar="solo|team|strict|FILE",
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
@directories
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
        settings.write_plugin()
    if as_json:
        print_json(
            {
                "folder": str(settings.folder.root),
                "store": settings.store,
                "thread": settings.thread,
                "same_user": settings.is_same_user(),
                "gate": str(settings.gate),
                "unguarded": unguarded_folders(settings.folder, settings.gate),
                "seal": ref.id,
            }
        )
        return
    _print_next(settings)


def _print_next(settings: GuardSettings) -> None:
    """Print what is left to do after `init`."""
    print_line(Styled("OpenClaw's state is sealed.", "good"))
    print_place(settings)
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


def _make_store(settings: GuardSettings, policy: str) -> None:
    """Make the store, or use the one of an interrupted or earlier init."""
    for directory in settings.store_directory():
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = policy if policy in SHIPPED_POLICIES else Path(policy).read_bytes()
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
