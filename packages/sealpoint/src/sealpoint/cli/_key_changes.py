# SPDX-License-Identifier: Apache-2.0
"""`sealpoint keys rotate`, `revoke` and `rotate-root`: end a key, after showing the effects.

`rotate` and `revoke` first show which keys would end and which threads are in doubt. They ask
unless `--yes` is given, and can be repeated after an interruption.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import click

from sealpoint.api import (
    Revocation,
    Rotation,
    UnverifiedThread,
)
from sealpoint.cli._input_files import read_document
from sealpoint.cli.options import Verb, dry_run_option, json_option, time_option, yes_option
from sealpoint.cli.references import thread_text
from sealpoint.cli.stores import (
    StoreOptions,
    first_passphrase,
    passphrase_option,
    store_options,
)
from sealpoint.cli.terminal import (
    agree,
    print_code,
    print_fields,
    print_json,
    print_line,
    print_table,
    thread_progress,
    working,
)
from sealpoint.errors import UsageError
from sealpoint.signing import PASSKEY_ALGORITHMS, Passkey, PublicKey, Role
from sealpoint.views.words import Styled, count_text, short_hex

# `--public-key`: the digits of a public key, or a file as OpenSSL and key services write it.


_DIGITS = 64
_CREDENTIAL_DIGITS = 16
_FILE_BYTES_MAX = 4096
_ENROLLMENT_BYTES_MAX = 8192
_PASSKEY_NAMES = frozenset(algorithm.name for algorithm in PASSKEY_ALGORITHMS)


def public_key_option(
    text: str, name: str = "public", *, multiple: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--public-key HEX|FILE`; the verb receives the digits."""

    def read(_: click.Context, __: click.Parameter, value: Any) -> Any:
        if value is None or isinstance(value, tuple):
            return value if value is None else tuple(_digits(each) for each in value)
        return _digits(value)

    return click.option(
        "--public-key",
        name,
        metavar="HEX|FILE",
        multiple=multiple,
        callback=read,
        help=f"{text} Hexadecimal digits, or a file that holds them, PEM or DER.",
    )


def _digits(text: str) -> str:
    if text.partition(":")[0] in _PASSKEY_NAMES:
        return text  # a passkey of the roster
    if len(text) == _DIGITS:
        return str(PublicKey.parse(text))
    return str(PublicKey.read(read_document(text, "--public-key", bytes_max=_FILE_BYTES_MAX)))


def passkey_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--passkey FILE`; the verb receives the passkey."""

    def read(_: click.Context, __: click.Parameter, value: str | None) -> Passkey | None:
        if value is None:
            return None
        return Passkey.parse(read_document(value, "--passkey", bytes_max=_ENROLLMENT_BYTES_MAX))

    return click.option(
        "--passkey",
        metavar="FILE",
        callback=read,
        help=f"{text} The file with the enrollment from the console, or - for standard input.",
    )


def print_passkey(name: str, passkey: Passkey) -> None:
    """Print every property of a passkey before the user accepts it."""
    bound = passkey.binding
    copies = "yes: there may be copies on other devices" if bound.backup_eligible else "no"
    print_line(f"A passkey for {name}:")
    print_fields(
        [
            ("key", str(passkey.id)),
            ("origin", bound.origin),
            ("relying party", bound.relying_party),
            ("algorithm", passkey.algorithm),
            ("credential", bound.credential[:_CREDENTIAL_DIGITS]),
            ("may be backed up", copies),
        ]
    )
    print_line("")
    print_line("Compare the key with what its owner reads on the screen where it was enrolled, by")
    print_line("voice or in person, and the origin with that of your console.")


expires_option = time_option(
    "--expires",
    past=False,
    words=("never",),
    help="When the key's right to write ends: a day, a time with its zone, or a span such as 90d.",
)


@click.command("revoke", cls=Verb)
@click.argument("name")
@click.option(
    "--key", metavar="ID", help="One key of the identity: its id, or its first 12 digits or more."
)
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is recorded in the roster.")
@dry_run_option
@yes_option
@store_options()
@json_option
def revoke(
    name: str,
    *,
    key: str | None,
    reason: str,
    dry_run: bool,
    yes: bool,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """End the keys of the identity NAME for good.

    Entries that they signed stay valid, and nothing that they sign later counts. The identity
    stays: sealpoint keys rotate gives it a new key. Needs the root key on this machine.
    """

    def run(*, dry: bool) -> Revocation:
        with working("looking at every thread" if dry else "revoking") as report:
            return where.admin.keys.revoke(
                name,
                key=key,
                reason=reason,
                dry_run=dry,
                progress=thread_progress(report),
            )

    found = run(dry=True)
    if not as_json:
        _print_plan(name, found.keys, found.threads, found.unverified)
    if not dry_run:
        agree("Shall this end for good?", "revoked", yes=yes, as_json=as_json)
        found = run(dry=False)
    if as_json:
        print_json({**dataclasses.asdict(found), "revoked": not dry_run, "reason": reason})
    elif dry_run:
        print_line("Nothing was revoked: this was a dry run.")
    else:
        print_line((Styled("Revoked", "good"), f" by roster {found.roster}, in force from now on."))
        _print_beyond(found.beyond)
        print_line("Other machines: export the pin again, so that none believes an older roster.")


@click.command("rotate", cls=Verb)
@click.argument("name")
@public_key_option("Its new public key, which --prepare made elsewhere.")
@passkey_option("Its new passkey instead.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice([str(role) for role in Role]),
    help="A role from now on, in place of its earlier roles; may be repeated.",
)
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="A namespace where its roles apply from now on, in place of the earlier ones; may be "
    "repeated.",
)
@expires_option
@click.option("--reason", metavar="TEXT", help="Why; it is recorded in the roster.")
@click.option("--prepare", is_flag=True, help="Only make the new key, for a root elsewhere.")
@click.option("--finish", is_flag=True, help="Only put a prepared key into use here.")
@dry_run_option
@yes_option
@passphrase_option
@store_options()
@json_option
def rotate(name: str, *, prepare: bool, finish: bool, where: StoreOptions, **options: Any) -> None:
    """Give the identity NAME a new key, and end its old keys.

    Processes that hold an old key are refused at their next save: restart them. The old private key
    is removed. Passkeys stay, unless you give a new one, or other rights. Needs the root key on
    this machine.
    """
    as_json = options["as_json"]
    if prepare and finish:
        raise UsageError("rotate: --prepare and --finish cannot be combined")
    if prepare:
        choose = first_passphrase(f"the next key of {name!r}") if options["encrypt"] else None
        public = where.admin.keys.prepare_next(name, new_passphrase=choose)
        _print_prepared(name, str(public), str(public.id), as_json=as_json)
    elif finish:
        public = where.admin.keys.take_next(name)
        if as_json:
            print_json({"name": name, "public": str(public), "key": str(public.id)})
        else:
            print_line(Styled("The new key is in use here, and the old one is gone.", "good"))
    else:
        _rotate(name, where, **options)


def _rotate(
    name: str,
    where: StoreOptions,
    *,
    roles: tuple[str, ...],
    namespaces: tuple[str, ...],
    passkey: Passkey | None,
    dry_run: bool,
    yes: bool,
    encrypt: bool,
    as_json: bool,
    **options: Any,
) -> None:
    def run(*, dry: bool) -> Rotation:
        with working("looking at every thread" if dry else "rotating") as report:
            return where.admin.keys.rotate(
                name,
                roles=roles or None,
                namespaces=namespaces or None,
                passkey=passkey,
                dry_run=dry,
                progress=thread_progress(report),
                new_passphrase=first_passphrase(f"the new key of {name!r}") if encrypt else None,
                **options,
            )

    found = run(dry=True)
    if not as_json:
        _print_plan(name, found.ended, found.threads, found.unverified)
        if passkey is not None:
            print_passkey(name, passkey)
    if not dry_run:
        agree("Shall this end, and a new key begin?", "rotated", yes=yes, as_json=as_json)
        found = run(dry=False)
    if as_json:
        print_json({**dataclasses.asdict(found), "rotated": not dry_run})
    elif dry_run:
        print_line("Nothing was rotated: this was a dry run.")
    else:
        _print_rotated(found, is_passkey=passkey is not None)


def _print_rotated(found: Rotation, *, is_passkey: bool) -> None:
    print_line((Styled("Rotated", "good"), f" by roster {found.roster}, in force from now on."))
    print_fields([("name", found.name), ("key", found.key or ""), ("public", found.public or "")])
    _print_beyond(found.beyond)
    if found.here:
        print_line("Start the processes again that run as it: the new key is in place.")
    elif not is_passkey:
        print_line("Where its private key is:")
        print_code([f"  sealpoint keys rotate {found.name} --finish"])


def _print_prepared(name: str, public: str, key: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"name": name, "public": public, "key": key})
        return
    print_line(Styled("The next key is prepared; the present one stays in use.", "good"))
    print_line("Where the root key is, run:")
    print_code([f"  sealpoint keys rotate {name} --public-key {public}"])
    print_line("Then here:")
    print_code([f"  sealpoint keys rotate {name} --finish"])


def _print_plan(
    name: str, keys: Iterable[str], threads: int, unverified: tuple[UnverifiedThread, ...]
) -> None:
    shown = [short_hex(key) for key in keys]
    if not shown:
        print_line(f"No key of {name} ends: it has none.")
        return
    print_line("To be ended for good:")
    for key in shown:
        print_line(f"  key {key} of {name}")
    were = count_text(threads, "thread")
    print_line(f"What they signed in {were} stays good, and nothing that comes later.")
    print_line("Approvals by them that nobody has used yet do not count any more.")
    if unverified:
        print_line("")
        print_line(Styled("Some threads do not verify:", "warning"))
        _print_unverified(unverified)
    print_line("")


def _print_beyond(beyond: tuple[UnverifiedThread, ...]) -> None:
    if beyond:
        print_line("")
        print_line(Styled("Something came after the end, and is refused:", "bad"))
        _print_unverified(beyond)


def _print_unverified(unverified: tuple[UnverifiedThread, ...]) -> None:
    print_table(
        ("thread", "code", "stays good up to"),
        [
            (
                thread_text(each.name, each.thread),
                each.code,
                "nothing of these keys" if each.kept is None else f"entry {each.kept}",
            )
            for each in unverified
        ],
    )


@click.command("rotate-root", cls=Verb)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="NAME",
    help="A private key on this machine that becomes a root key; may be repeated.",
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
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Change the keys that sign the roster; without --key and --public-key, make a new one.

    The old root and the new one both sign: enough private keys of both must be on this machine.
    Pins that were exported before stay valid.
    """
    question = "Shall a new root take the place of the one in force?"
    agree(question, "changed", yes=yes, as_json=as_json, dry_run=False)
    with working("signing the root"):
        found = where.admin.roster.rotate_root(
            keys=keys,
            publics=publics,
            threshold=threshold,
            reason=reason,
            new_passphrase=first_passphrase("the new root") if encrypt else None,
        )
    if as_json:
        print_json(found)
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
