# SPDX-License-Identifier: Apache-2.0
"""`sealpoint keys rotate-root` and `pool`: who signs the roster, and who owns threads together."""

import dataclasses

import click

from sealpoint.api import rotate_root, set_pool
from sealpoint.cli._key_changes import agreed, yes_option
from sealpoint.cli._options import json_option
from sealpoint.cli._passphrase import asked_passphrase, first_passphrase, passphrase_option
from sealpoint.cli._public_key import public_key_option
from sealpoint.cli._store import Where, store_options
from sealpoint.cli._terminal import (
    Styled,
    print_fields,
    print_json,
    print_line,
    print_note,
    working,
)

__all__ = ["pool", "rotate_root_"]


@click.command("rotate-root")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="NAME",
    help="A private key on this machine that is to be one of the root's; may be repeated.",
)
@public_key_option(
    "A public key whose private half is elsewhere; may be repeated.", "publics", multiple=True
)
@click.option(
    "--threshold", type=int, metavar="N", help="How many must sign; without it, as many as before."
)
@click.option("--reason", metavar="TEXT", help="Why; it is recorded on the store chain.")
@yes_option
@passphrase_option
@store_options()
@json_option
def rotate_root_(
    *,
    keys: tuple[str, ...],
    publics: tuple[str, ...],
    threshold: int | None,
    reason: str | None,
    yes: bool,
    encrypt: bool,
    where: Where,
    as_json: bool,
) -> None:
    """Let other keys sign the roster from now on; without --key and --public-key, a new one.

    Signed by the old root and by the new one: enough private keys of both must be on this
    machine. Pins that were exported before stay good.
    """
    question = "Shall a new root take the place of the one in force?"
    if not agreed(question, yes=yes, as_json=as_json):
        print_note("The root stays as it was.")
        click.get_current_context().exit(1)
    with working("signing the root"):
        found = rotate_root(
            where.url,
            keys=keys,
            publics=publics,
            threshold=threshold,
            reason=reason,
            passphrase=asked_passphrase,
            new_passphrase=first_passphrase("the new root") if encrypt else None,
            **where.directories,
        )
    if as_json:
        print_json(dataclasses.asdict(found))
        return
    print_line(Styled("A new root.", "good"))
    fields = [
        ("version", str(found.version)),
        ("signed by", f"{found.threshold} of {len(found.keys)}"),
        *(("key", key) for key in found.keys),
    ]
    if found.made is not None:
        fields.append(("file", str(where.files.directory / "keys" / f"{found.made}.key")))
    print_fields(fields)
    print_line("")
    print_line("Back up the new private keys and keep them offline. Export the pin again for")
    print_line("other machines; then the old root's private keys can be destroyed.")


@click.command("pool")
@click.argument("name")
@click.option(
    "--member",
    "members",
    required=True,
    multiple=True,
    metavar="IDENTITY",
    help="An identity that joins the pool; may be repeated.",
)
@click.option("--reason", metavar="TEXT", help="Why; it is recorded in the roster.")
@store_options()
@json_option
def pool(
    name: str, *, members: tuple[str, ...], reason: str | None, where: Where, as_json: bool
) -> None:
    """Put identities into the pool NAME, which owns the threads that they begin from now on.

    Every member may go on with the pool's threads. Needs the root key on this machine.
    """
    with working("signing the roster"):
        everybody = set_pool(
            where.url,
            name,
            members,
            reason=reason,
            passphrase=asked_passphrase,
            **where.directories,
        )
    if as_json:
        print_json({"name": name, "members": list(everybody)})
        return
    print_line(Styled("In force from now on.", "good"))
    print_fields([("pool", name), ("members", ", ".join(everybody))])
