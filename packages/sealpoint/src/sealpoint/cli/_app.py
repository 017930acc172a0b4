# SPDX-License-Identifier: Apache-2.0
"""The command: its verbs, the file of each, and how it ends.

A verb is loaded when it is called: `--help` loads none of ours. Parts also provide verbs, through
the entry points `sealpoint.verbs`; those of our own parts are listed, installed or not. An error
becomes a message, a hint and an exit status.
"""

from importlib import import_module
from typing import Any

import click

import sealpoint
from sealpoint import _parts
from sealpoint.cli.options import (
    COMMON_OPTIONS,
    VerbGroup,
    part_help,
    remember_json,
    wants_json,
)
from sealpoint.errors import SealpointError, UsageError

_IN_A_PART = ""
VERBS = {
    "Begin": {
        "init": ("_init:init", "Make a store, its keys and its anchor."),
        "save": ("_save_load:save", "Save a JSON document as a checkpoint of a thread."),
        "import": ("_import:import_", "Import checkpoints from another storage."),
        "types": ("_types:types", "List the types that may be saved, and how to allow more."),
    },
    "Look": {
        "stores": ("_doctor:stores", "List the stores that this machine knows."),
        "doctor": ("_doctor:doctor", "Check how a store is set up, with a fix for each finding."),
        "threads": ("_threads:threads", "List the threads with their states."),
        "log": ("_log:log", "List the checkpoints of a thread."),
        "show": ("_log:show", "Show one checkpoint, with its state and types."),
        "load": ("_save_load:load_state", "Print the state of a checkpoint as JSON."),
        "diff": ("_diff:diff", "Show what changed between two checkpoints."),
        "audit": ("_audit:audit", "Show who did what and when; every entry is verified."),
        "why": ("_audit:why", "Explain a decision: rules, facts, approvals."),
        "verify": ("_verify:verify", "Verify every entry, body and blob of a store."),
        "export": ("_verify:export", "Write a signed evidence bundle of threads."),
        "verify-bundle": ("_verify:verify_bundle_", "Verify a bundle anywhere, by the pin alone."),
    },
    "Gate": {
        "pause": ("_gate:pause", "Stop a thread: no save, no resume."),
        "unpause": ("_gate:unpause", "End the pause of a thread."),
        "resume": ("_gate:resume", "Show what the policy would decide; a dry run."),
        "handoff": ("_gate:handoff", "Give a thread to another owner."),
        "answer": ("_answer:answer", "Answer the question of a thread, signed."),
        "requests": ("_requests:requests", "List what waits for approval, or show one."),
        "approve": ("_requests:approve", "Approve a request, after reading all of it."),
        "deny": ("_requests:deny", "Deny a request for good."),
        "break-glass": ("_requests:break_glass", "Let a request pass in an emergency."),
        "request": ("_requests:request_", "Carry a request to an approver elsewhere."),
        "relay": ("_requests:relay", "Record an answer that was given elsewhere."),
        "policy": ("_policy:policy", "Show, check and apply the policy."),
        "rollout": ("_rollout:rollout", "Accept new tools, models or prompts for many threads."),
    },
    "Console": {
        "serve": (_IN_A_PART, "Serve the operator console: see, pause, approve, resume."),
    },
    "People and keys": {
        "keys": ("_keys:keys", "Manage keys on this machine, people and their roles."),
        "trust": ("_trust:trust", "Carry the pin of a store to another machine."),
        "provision": ("_provision:provision", "Prepare a database: roles, grants, logins."),
    },
    "Keep and recover": {
        "prune": ("_retention:prune", "Delete the states of older checkpoints."),
        "erase": ("_retention:erase", "Delete everything that a thread ever held."),
        "gc": ("_retention:gc", "Free the space that no thread needs any longer."),
        "move": ("_move:move", "Move a store to another backend, verified whole."),
        "anchor": ("_anchor:anchor", "Compare the anchor with the store, or adopt a store."),
        "roster": ("_restore:roster", "Back up the roster, and put it back."),
        "accept-restore": ("_restore:accept_restore_", "Accept a store restored from a backup."),
    },
    "OpenClaw": {
        "openclaw": (_IN_A_PART, "Seal, verify and run an OpenClaw gateway."),
    },
    "Models": {
        "scan": (_IN_A_PART, "Report whether model files are data or would run code."),
        "model": (_IN_A_PART, "Inspect model files, and verify them against their run."),
    },
}
"""Heading, verb: the object and its file, and a line of help that fits 80 columns."""
_OTHERS = "Other parts"

_PLACES = {name: place for verbs in VERBS.values() for name, (place, _) in verbs.items()}


class _Main(VerbGroup):
    """The group of all verbs, which ends with the status of the error that was raised."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SealpointError as error:
            _print_error(ctx, error)
        except click.UsageError as error:
            if not wants_json(ctx):
                raise _printable(error) from error
            _print_error(ctx, UsageError(error.format_message()))

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the arguments before the verb."""
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise _printable(error) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which `--help` lists them."""
        del ctx
        return [*_PLACES, *_others()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the file of a verb, or the part that provides it.

        Raises:
            ExtraMissing: The part is not installed.
        """
        del ctx
        if place := _PLACES.get(cmd_name):
            file, _, name = place.partition(":")
            found: click.Command | None = getattr(import_module(f"sealpoint.cli.{file}"), name)
            return found
        brought: click.Command | None = None
        if "." not in cmd_name:  # with a dot it is a verb of a group, and is listed there
            brought = _parts.load(_parts.VERBS, cmd_name)
        return brought

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs under their headings, then the options that most of them take."""
        del ctx
        width = max(map(len, _PLACES))
        tables = {
            heading: {name: text for name, (_, text) in verbs.items()}
            for heading, verbs in VERBS.items()
        }
        if others := _others():
            tables[_OTHERS] = {name: part_help(name) for name in others}
        for heading, verbs in tables.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{width}}", text) for name, text in verbs.items()])
        with formatter.section("Common options"):
            formatter.write_dl(list(COMMON_OPTIONS.values()))


def _others() -> list[str]:
    """Return the verbs that third-party parts provide."""
    found = _parts.installed_names(_parts.VERBS)
    return [name for name in found if "." not in name and name not in _PLACES]


def _printable(error: click.UsageError) -> click.UsageError:
    """Return the same error without terminal escapes: file names come from arguments."""
    from sealpoint.world import escape_unprintable  # noqa: PLC0415 - `--help` does not need it

    return click.UsageError(escape_unprintable(error.format_message()), error.ctx)


def _print_error(ctx: click.Context, error: SealpointError) -> None:
    # Imported here: `--help` does not use it.
    from sealpoint.cli.terminal import print_error  # noqa: PLC0415

    print_error(error, as_json=wants_json(ctx))
    ctx.exit(error.exit_status)


@click.group(
    cls=_Main,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Set SEALPOINT_STORE once, or the store in config.toml, and no verb needs --store. "
    "sealpoint VERB --help explains a verb. The exit status is 0, or that of the error.",
)
@click.version_option(sealpoint.__version__, prog_name="sealpoint")
@click.option(
    "--json",
    is_flag=True,
    hidden=True,
    expose_value=False,
    callback=remember_json,
    help=COMMON_OPTIONS["as_json"][1],
)
def main() -> None:
    """Tamper-evident checkpoints for AI agents and model files."""
