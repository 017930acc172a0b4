# SPDX-License-Identifier: Apache-2.0
"""`sealpoint keys`: private keys on this machine, and identities of the roster."""

from collections.abc import Callable
from datetime import datetime

import click

from sealpoint.api import KeyInfo, KeyStatus
from sealpoint.cli._key_changes import (
    expires_option,
    passkey_option,
    print_passkey,
    public_key_option,
    revoke,
    rotate,
    rotate_root_,
)
from sealpoint.cli.options import Verb, VerbGroup, json_option, yes_option
from sealpoint.cli.stores import (
    NEW_FILE_OPTION,
    StoreOptions,
    first_passphrase,
    next_passphrase,
    passphrase_option,
    store_options,
)
from sealpoint.cli.terminal import (
    agree,
    print_code,
    print_columns,
    print_fields,
    print_json,
    print_line,
    working,
)
from sealpoint.errors import UsageError
from sealpoint.signing import Passkey, Role
from sealpoint.views.words import Styled, count_text, short_hex


@click.command("passphrase", cls=Verb)
@click.argument("name")
@click.option("--remove", is_flag=True, help="Leave the key without a passphrase.")
@click.option(
    NEW_FILE_OPTION,
    "new_file",
    metavar="FILE",
    help="Read the new passphrase from FILE, which only you can read, instead of asking.",
)
@store_options()
@json_option
def passphrase(
    name: str, *, remove: bool, new_file: str | None, where: StoreOptions, as_json: bool
) -> None:
    """Set, change or remove the passphrase of the key NAME on this machine.

    The key stays the same, and the old file stays until the new one is safe on the disk. Remains of
    the old file on the disk and in backups still open with the old passphrase.
    """
    if remove and new_file is not None:
        raise UsageError(f"passphrase: --remove and {NEW_FILE_OPTION} cannot be combined")
    with working("encrypting the key"):
        public = where.admin.keys.change_passphrase(
            name, new=None if remove else next_passphrase(new_file)
        )
    path = where.files.directory / "keys" / f"{name}.key"
    if as_json:
        print_json(
            {"name": name, "key": str(public.id), "file": str(path), "encrypted": not remove}
        )
        return
    done = "The key has no passphrase." if remove else "The key has a new passphrase."
    print_line(Styled(done, "warning" if remove else "good"))
    print_fields([("name", name), ("file", str(path))])


_MIDNIGHT = "T00:00:00Z"


@click.group(cls=VerbGroup)
def keys() -> None:
    """Manage keys on this machine, and who may do what."""


@keys.command("new")
@click.argument("name")
@passphrase_option
@store_options()
@json_option
def new(name: str, *, encrypt: bool, where: StoreOptions, as_json: bool) -> None:
    """Make a private key for the identity NAME on this machine.

    The key has no rights until it is added to the roster, where the root key is.
    """
    choose = first_passphrase(f"key {name!r}") if encrypt else None
    public = where.admin.keys.create(name, new_passphrase=choose)
    path = where.files.directory / "keys" / f"{name}.key"
    if as_json:
        made = {"name": name, "public": str(public), "key": str(public.id), "file": str(path)}
        print_json({**made, "encrypted": encrypt})
        return
    print_line(Styled("A new key.", "good"))
    print_fields([("name", name), ("public", str(public)), ("file", str(path))])
    print_line("")
    print_line("It may do nothing yet. Where the root key is, run this, with the role it needs:")
    print_line("approver for a person who approves, writer for a worker.")
    print_code(
        [
            f"  sealpoint keys add {name} --person {name} --role approver --namespace default \\",
            f"    --public-key {public}",
        ]
    )


for _verb in (passphrase, revoke, rotate, rotate_root_):
    keys.add_command(_verb)


@keys.command("list")
@click.option("--all", "everything", is_flag=True, help="Also list keys that were revoked.")
@store_options()
@json_option
def list_(*, everything: bool, where: StoreOptions, as_json: bool) -> None:
    """List the identities of the roster in force, and the private keys on this machine."""
    with working("reading the roster"):
        found = where.admin.keys.list()
    if as_json:
        print_json(found)
        return
    revoked = sum(info.status is KeyStatus.REVOKED for info in found)
    if not everything:
        found = tuple(info for info in found if info.status is not KeyStatus.REVOKED)
    print_columns(found, _COLUMNS, optional=("pool", "expires", "origin"))
    print_line("")
    print_line(Styled("Keys are shortened to 12 digits; --json has them whole.", "quiet"))
    if revoked and not everything:
        were = count_text(revoked, "revoked key is", "revoked keys are")
        print_line(Styled(f"{were} not shown; --all lists them.", "quiet"))


def _expires(info: KeyInfo) -> str | Styled:
    day = "-" if info.expires is None else info.expires.removesuffix(_MIDNIGHT)
    return {
        KeyStatus.EXPIRES_SOON: Styled(f"soon: {day}", "warning"),
        KeyStatus.EXPIRED: Styled(f"EXPIRED: {day}", "bad"),
        KeyStatus.STOPPED: Styled("STOPPED: revoke or rotate it again", "bad"),
        KeyStatus.REVOKED: Styled("revoked", "quiet"),
    }.get(info.status, day)


def _private(info: KeyInfo) -> str:
    if info.passkey is not None:
        return "passkey, may be copied" if info.passkey.backup_eligible else "passkey"
    if not info.here:
        return "elsewhere"
    return "here, encrypted" if info.encrypted else "here"


def _roles(info: KeyInfo) -> str | Styled:
    if info.roles:
        return ", ".join(info.roles) + (" + break-glass" if info.break_glass else "")
    if info.status is KeyStatus.UNLISTED:
        return Styled("none: not in the roster", "warning")
    return "former root" if info.status is KeyStatus.FORMER_ROOT else "-"


_COLUMNS: dict[str, Callable[[KeyInfo], str | Styled]] = {
    "name": lambda info: info.name,
    "person": lambda info: info.person or "-",
    "roles": _roles,
    "namespaces": lambda info: ", ".join(info.namespaces) or "-",
    "key": lambda info: short_hex(info.key),
    "private key": _private,
    "pool": lambda info: ", ".join(info.pools) or "-",
    "expires": _expires,
    "origin": lambda info: "-" if info.passkey is None else info.passkey.origin,
}


def _listed(where: StoreOptions, name: str) -> KeyInfo:
    """Return the roster's entry for an identity that it has."""
    return next(each for each in where.admin.keys.list() if each.name == name)


@keys.command("add")
@click.argument("name")
@click.option("--person", metavar="WHO", help="The person who holds the identity.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice([str(role) for role in Role]),
    help="A role to grant; may be repeated.",
)
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="A namespace where its roles apply, '*' for all; may be repeated.",
)
@public_key_option("Its public key; without it, the key NAME on this machine.")
@passkey_option("A passkey of the person instead.")
@expires_option
@click.option(
    "--break-glass",
    is_flag=True,
    help="Allow it, as an operator, to let a request pass without approvals in an emergency.",
)
@click.option("--reason", metavar="TEXT", help="Why; it is recorded in the roster.")
@yes_option
@store_options()
@json_option
def add(
    name: str,
    *,
    person: str | None,
    roles: tuple[str, ...],
    namespaces: tuple[str, ...],
    public: str | None,
    passkey: Passkey | None,
    expires: datetime | str | None,
    break_glass: bool,
    reason: str | None,
    yes: bool,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Add the identity NAME to the roster, or grant it more rights.

    Needs the root key on this machine. A new identity needs --person, --role and --namespace; an
    existing one keeps what it has without them. This verb only adds rights; sealpoint keys rotate
    and revoke take them away. "--expires never" removes an expiry. The command shows a passkey, and
    adds it once you confirm that it is the person's.
    """
    if passkey is not None:
        if not as_json:
            print_passkey(name, passkey)
        question = f"Is it the passkey of {person or name}?"
        agree(question, "added", yes=yes, as_json=as_json, dry_run=False)
    with working("signing the roster"):
        seq = where.admin.keys.add(
            name,
            public=public,
            passkey=passkey,
            person=person,
            roles=roles or None,
            namespaces=namespaces or None,
            expires=expires,
            break_glass=break_glass,
            reason=reason,
        )
        if not all((person, roles, namespaces)):
            kept = _listed(where, name)
            person, break_glass = kept.person, kept.break_glass
            roles, namespaces = kept.roles, kept.namespaces
    if as_json:
        print_json(
            {
                "name": name,
                "person": person,
                "roles": list(roles),
                "namespaces": list(namespaces),
                "break_glass": break_glass,
                "key": None if passkey is None else str(passkey.id),
                "roster": seq,
            }
        )
        return
    print_line(Styled("Added.", "good"))
    print_fields(
        [
            ("name", name),
            ("person", person or "-"),
            ("roles", ", ".join(roles)),
            ("namespaces", ", ".join(namespaces)),
            *([("break-glass", "may let a request pass without approvals")] if break_glass else []),
            ("roster", f"{seq}, in force from now on"),
        ]
    )


@keys.command("pool")
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
    name: str, *, members: tuple[str, ...], reason: str | None, where: StoreOptions, as_json: bool
) -> None:
    """Add identities to the pool NAME, which owns the threads that they begin from now on.

    Every member may resume the pool's threads. Needs the root key on this machine.
    """
    with working("signing the roster"):
        everybody = where.admin.roster.set_pool(name, members, reason=reason)
    if as_json:
        print_json({"name": name, "members": list(everybody)})
        return
    print_line(Styled("In force from now on.", "good"))
    print_fields([("pool", name), ("members", ", ".join(everybody))])


@keys.command("quorum")
@click.argument("persons", type=click.IntRange(min=0), metavar="N")
@click.option("--reason", metavar="TEXT", help="Why; it is recorded in the roster.")
@store_options()
@json_option
def quorum(persons: int, *, reason: str | None, where: StoreOptions, as_json: bool) -> None:
    """Let N operators of all namespaces, different persons, accept a restore without the root.

    With 0, only the root can accept one. Needs the root key on this machine.
    """
    with working("signing the roster"):
        seq = where.admin.roster.set_restore_quorum(persons, reason=reason)
    if as_json:
        print_json({"quorum": persons, "roster": seq})
        return
    print_line(Styled("In force from now on.", "good"))
    who = count_text(persons, "operator") if persons else "nobody but the root"
    print_fields([("restores accepted by", who), ("roster", str(seq))])
    if persons:
        print_code(["  sealpoint accept-restore --identity NAME ... --reason '...'"])
