# SPDX-License-Identifier: Apache-2.0
"""`sealpoint init`: a new store, its keys and its anchor."""

import json
import shlex
from pathlib import Path
from typing import Any

import click

from sealpoint.api import init as make_store
from sealpoint.cli._policy import approver_lines, policy_bytes
from sealpoint.cli.options import Verb, json_option
from sealpoint.cli.stores import StoreOptions, first_passphrase, passphrase_option, store_options
from sealpoint.cli.terminal import (
    print_code,
    print_fields,
    print_json,
    print_line,
    print_lines,
    working,
)
from sealpoint.gate import Policy
from sealpoint.views.words import Styled
from sealpoint.world import visible

_LOCKED = (
    "All three keys are encrypted. Without the passphrase nobody can use them, you included.",
    "A program takes it from SEALPOINT_PASSPHRASE or SEALPOINT_PASSPHRASE_FILE.",
)


@click.command(cls=Verb)
@click.option(
    "--policy",
    "policy_name",
    default="solo",
    show_default=True,
    metavar="dev|solo|team|FILE",
    help="The policy for every namespace.",
)
@click.option(
    "--group",
    metavar="NAME",
    help="Share store and anchor with the users of this group; needs a --state-dir that they "
    "share.",
)
@click.option(
    "--anchor",
    "shared_anchor",
    metavar="URL",
    help="A PostgreSQL database whose anchor other machines share: postgresql://USER@HOST/DATABASE",
)
@passphrase_option
@store_options()
@json_option
def init(
    *,
    policy_name: str,
    group: str | None,
    shared_anchor: str | None,
    encrypt: bool,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Make a store, its keys and its anchor.

    Prints what was made and where, what to back up, and the first lines of Python to write. You can
    repeat an interrupted init.
    """
    policy = Policy.parse(policy_bytes(policy_name))
    with working("making keys and store"):
        choose = first_passphrase("the keys") if encrypt else None
        pin = make_store(
            where.url,
            passphrase=choose,
            policy=policy.source,
            group=group,
            anchor=shared_anchor,
            **where.directories,
        )
    files = where.files
    people = where.admin.policy.approvers(policy)
    shared = files.shared_anchor.url()
    document = {
        "store": str(pin.store),
        "url": str(files.url),
        "fingerprint": str(pin.fingerprint()),
        "keys": str(files.directory / "keys"),
        "identities": files.keys.names(),
        "anchor": str(files.anchor_directory(pin.store)),
        "encrypted": encrypt,
        "policy": {"name": policy.name, "digest": policy.digest},
        "approvers": people,
        "group": group,
        "shared_anchor": None if shared is None else str(shared),
    }
    if as_json:
        print_json(document)
        return
    print_line(Styled("A new store.", "good"))
    _print_fields(document, pin.fingerprint().short())
    print_line("")
    print_lines(
        [
            *_backing_up(files.directory),
            *(_LOCKED if encrypt else ()),
            *(_shared(group, str(where.settings.state_dir)) if group is not None else ()),
            *(_joining(str(shared)) if shared is not None else ()),
            *(["", *lines] if (lines := approver_lines(people)) else ()),
            "",
            "Next, in Python:",
        ]
    )
    print_code(f"  {line}".rstrip() for line in _first_program(where))


def _print_fields(made: dict[str, Any], fingerprint: str) -> None:
    fields = {
        "store": made["url"],
        "id": made["store"],
        "fingerprint": f"{fingerprint} (the pin, for people to compare)",
        "identities": ", ".join(made["identities"]),
        "keys": made["keys"],
        "anchor": made["anchor"],
        "policy": f"{visible(made['policy']['name'])} (sealpoint policy show)",
        "group": made["group"],
        "shared anchor": made["shared_anchor"],
    }
    print_fields([(name, text) for name, text in fields.items() if text is not None])


def _backing_up(directory: Path) -> list[str]:
    return [
        "Back up the store as often as you can bear to lose, and, apart from it and from its",
        "backups, this directory, after each change of keys or rights:",
        f"  {directory}",
        "It has the keys, the pin, and the newest roster, which a restore needs.",
        "The root key says who may do what: keep keys/root.key offline until you need it.",
        "Never bring the anchor back from a backup: it has to remember the newest entry.",
    ]


def _shared(group: str, state_dir: str) -> list[str]:
    """Return the steps for the other members."""
    return [
        "",
        f"Every member of {group} can write the store and its anchor: they trust each other not",
        "to turn them back. The others, each once, with the pin from sealpoint trust export:",
        f"  sealpoint trust import PIN --group {group} --state-dir {state_dir}",
    ]


def _joining(url: str) -> list[str]:
    """Return the steps for the other machines."""
    return [
        "",
        "Anyone with the login of the shared anchor could roll it back: keep it from those who",
        "run the store's database. Every other machine, with the pin from sealpoint trust export:",
        f"  sealpoint trust import PIN && sealpoint anchor join {shlex.quote(url)}",
    ]


def _first_program(where: StoreOptions) -> list[str]:
    """Return the shortest program that saves something into this store."""
    arguments = [json.dumps(where.url)]
    if where.given_config_dir is not None:
        arguments.append(f"config_dir={json.dumps(where.given_config_dir)}")
    if where.given_state_dir is not None:
        arguments.append(f"state_dir={json.dumps(where.given_state_dir)}")
    return [
        "import sealpoint",
        "",
        f"with sealpoint.open_store({', '.join(arguments)}) as store:",
        '    store.thread("first").save({"step": 1})',
    ]
