# SPDX-License-Identifier: Apache-2.0
"""`sealpoint keys`: private keys on this machine, and identities of the roster."""

import dataclasses

import click

from sealpoint.api import KeyInfo, add_identity, list_keys, new_key
from sealpoint.cli._options import json_option
from sealpoint.cli._store import Where, store_options
from sealpoint.cli._terminal import (
    Styled,
    print_code,
    print_fields,
    print_json,
    print_line,
    print_table,
    working,
)
from sealpoint.signing import Role

__all__ = ["keys"]

_PREFIX = "key:"
_ID_DIGITS = 12


@click.group()
def keys() -> None:
    """Keys on this machine, and who may do what."""


@keys.command("new")
@click.argument("name")
@store_options()
@json_option
def new(name: str, *, where: Where, as_json: bool) -> None:
    """Make a private key for the identity NAME on this machine.

    It may do nothing until it is added to the roster, where the root key is.
    """
    public = new_key(where.url, name, **where.directories)
    path = where.files.directory / "keys" / f"{name}.key"
    if as_json:
        print_json({"name": name, "public": str(public), "key": str(public.id), "file": str(path)})
        return
    print_line(Styled("A new key.", "good"))
    print_fields([("name", name), ("public", str(public)), ("file", str(path))])
    print_line("")
    print_line("It may do nothing yet. Where the root key is, run for example:")
    print_code(
        [
            f"  sealpoint keys add {name} --person WHO --role writer --namespace default \\",
            f"    --public {public}",
        ]
    )


@keys.command("list")
@store_options()
@json_option
def list_(*, where: Where, as_json: bool) -> None:
    """List the identities of the roster in force, and the private keys on this machine."""
    with working("reading the roster"):
        found = list_keys(where.url, **where.directories)
    if as_json:
        print_json([dataclasses.asdict(info) for info in found])
        return
    print_table(
        ("name", "person", "roles", "namespaces", "key", "private key"),
        [
            (
                info.name,
                info.person or "-",
                _roles(info),
                ", ".join(info.namespaces) or "-",
                info.key.removeprefix(_PREFIX)[:_ID_DIGITS],
                "here" if info.here else "elsewhere",
            )
            for info in found
        ],
    )
    print_line("")
    print_line(Styled("Keys are shortened to 12 digits; --json has them whole.", "quiet"))


def _roles(info: KeyInfo) -> str | Styled:
    if info.roles:
        return ", ".join(info.roles)
    return "-" if info.in_roster else Styled("none: not in the roster", "warning")


@keys.command("add")
@click.argument("name")
@click.option("--person", required=True, metavar="WHO", help="The person who stands behind it.")
@click.option(
    "--role",
    "roles",
    required=True,
    multiple=True,
    type=click.Choice([str(role) for role in Role]),
    help="What it may do; may be repeated.",
)
@click.option(
    "--namespace",
    "namespaces",
    required=True,
    multiple=True,
    metavar="NAME",
    help="Where it may do it, '*' for everywhere; may be repeated.",
)
@click.option(
    "--public", metavar="HEX", help="Its public key; without it, the key NAME on this machine."
)
@click.option("--reason", metavar="TEXT", help="Why; it is recorded in the roster.")
@store_options()
@json_option
def add(
    name: str,
    *,
    person: str,
    roles: tuple[str, ...],
    namespaces: tuple[str, ...],
    public: str | None,
    reason: str | None,
    where: Where,
    as_json: bool,
) -> None:
    """Enter the identity NAME into the roster, or give it more rights.

    Needs the root key on this machine. Rights can be added, not taken away.
    """
    with working("signing the roster"):
        seq = add_identity(
            where.url,
            name,
            public=public,
            person=person,
            roles=roles,
            namespaces=namespaces,
            reason=reason,
            **where.directories,
        )
    if as_json:
        print_json(
            {
                "name": name,
                "person": person,
                "roles": list(roles),
                "namespaces": list(namespaces),
                "roster": seq,
            }
        )
        return
    print_line(Styled("Added.", "good"))
    print_fields(
        [
            ("name", name),
            ("person", person),
            ("roles", ", ".join(roles)),
            ("namespaces", ", ".join(namespaces)),
            ("roster", f"{seq}, in force from now on"),
        ]
    )
