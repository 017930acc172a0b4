# SPDX-License-Identifier: Apache-2.0
"""`sealpoint provision postgres`: an administrator provisions a database."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import click

from sealpoint.cli.options import Verb, common_option, json_option
from sealpoint.cli.terminal import (
    print_code,
    print_json,
    print_line,
    print_lines,
    print_note,
    print_table,
    working,
)
from sealpoint.config import load_settings
from sealpoint.errors import UsageError
from sealpoint.views.words import Styled, count_text, shown_name
from sealpoint_postgres import (
    Duty,
    PostgresLogin,
    Provisioned,
    provision_postgres,
    rotate_postgres_login,
)


@click.command("postgres", cls=Verb)
@click.option(
    "--anchor", metavar="URL", help="The database of a shared anchor, with its own login."
)
@click.option("--login", metavar="NAME", help="Make this login, or give it another duty.")
@click.option(
    "--duty", type=click.Choice([str(duty) for duty in Duty]), help="The duty of the login."
)
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Show the login only threads of this namespace; may be repeated. Else all.",
)
@click.option(
    "--password-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file of the login's password; created with a new password if it does not exist.",
)
@click.option("--rotate", metavar="NAME", help="Give this login another password.")
@click.option(
    "--prepare",
    is_flag=True,
    help="With --rotate: only write the next password into the file.",
)
@click.option(
    "--dry-run", is_flag=True, help="Only print the SQL that would be executed, and change nothing."
)
@common_option("store")
@json_option
def postgres(
    *,
    store: str | None,
    anchor: str | None,
    login: str | None,
    duty: str | None,
    namespaces: tuple[str, ...],
    password_file: Path | None,
    rotate: str | None,
    prepare: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Prepare a PostgreSQL database for a store, and list each change.

    The URLs name the login of an administrator. The command compares roles, tables, grants, row
    security and logins with what the duties need; a second run changes nothing. With --anchor
    alone, it provisions only the anchor's database.
    """
    chosen = store if store is not None or anchor is not None else load_settings().store
    _require_sense(
        store=chosen,
        anchor=anchor,
        login=login,
        duty=duty,
        namespaces=namespaces,
        rotate=rotate,
        password_file=password_file,
        prepare=prepare,
    )
    if rotate is not None and password_file is not None:
        _rotate(
            chosen, anchor, rotate, password_file, prepare=prepare, dry_run=dry_run, as_json=as_json
        )
        return
    with working("looking at the database"):
        found = provision_postgres(
            chosen,
            anchor=anchor,
            login=_login(login, duty, namespaces),
            password_file=password_file,
            dry_run=dry_run,
        )
    if not _print_planned(found, dry_run=dry_run, as_json=as_json):
        for each in found:
            _print_done(each)


def _rotate(
    store: str | None,
    anchor: str | None,
    name: str,
    password_file: Path,
    *,
    prepare: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Give a login another password, and say where things stand."""
    with working("looking at the database"):
        found = rotate_postgres_login(
            store,
            name,
            password_file=password_file,
            anchor=anchor,
            prepare=prepare,
            dry_run=dry_run,
        )
    if _print_planned(found, dry_run=dry_run, as_json=as_json):
        return
    if prepare:
        print_lines(
            [
                f"{password_file} has a second line now: the next password of {name}.",
                "Bring the file to every machine that has it, then run this without --prepare.",
            ]
        )
    else:
        print_line(f"The server takes the new password of {name}: {password_file} has it alone.")


def _login(name: str | None, duty: str | None, namespaces: tuple[str, ...]) -> PostgresLogin | None:
    if name is None or duty is None:
        return None
    return PostgresLogin(name=name, duty=Duty(duty), namespaces=namespaces or None)


def _print_planned(found: Sequence[Provisioned], *, dry_run: bool, as_json: bool) -> bool:
    """Print a document or a script, if one was asked for."""
    if as_json:
        print_json([_document(each, dry_run=dry_run) for each in found])
    elif dry_run:
        print_code(line for each in found for line in _script(each))
    return as_json or dry_run


def _require_sense(
    *,
    store: str | None,
    anchor: str | None,
    login: str | None,
    duty: str | None,
    namespaces: Sequence[str],
    rotate: str | None,
    password_file: Path | None,
    prepare: bool,
) -> None:
    """Refuse options that exclude each other or miss another option.

    Raises:
        UsageError: One needs another, or excludes it.
    """
    if store is None and anchor is None:
        raise UsageError(
            "store: no store was named",
            hint="Give --store postgresql://ADMIN@HOST/DATABASE, with an administrator's login.",
        )
    if (login is None) != (duty is None):
        raise UsageError("--login and --duty: expected both or neither")
    if namespaces and duty not in {Duty.WRITER, Duty.APPROVER, Duty.READER}:
        raise UsageError(
            "--namespace: expected with the duty writer, approver or reader",
            hint="Leave it out: an owner has all of the store, and an anchor knows no namespaces.",
        )
    if rotate is None:
        if prepare:
            raise UsageError("--prepare: expected with --rotate")
        if login is None and password_file is not None:
            raise UsageError("--password-file: expected with --login or --rotate")
    elif login is not None or password_file is None:
        raise UsageError("--rotate: expected with --password-file and without --login")


def _document(found: Provisioned, *, dry_run: bool) -> dict[str, object]:
    return {**dataclasses.asdict(found), "changed": bool(found.changes) and not dry_run}


def _script(found: Provisioned) -> list[str]:
    """The planned statements, as a script for psql."""
    lines = [f"-- {found.url}"]
    if not found.changes:
        return [*lines, "-- nothing to change"]
    statements = [f"{each.sql};" for each in found.changes]
    return [*lines, "BEGIN;", *statements, "COMMIT;"]


def _print_done(found: Provisioned) -> None:
    if found.changes:
        print_line((found.url, ": ", Styled(count_text(len(found.changes), "change"), "warning")))
        print_lines(f"  {each.what}" for each in found.changes)
    else:
        print_line((found.url, ": ", Styled("nothing to change", "good")))
    for note in found.notes:
        print_note((Styled("note: ", "warning"), note))
    if found.logins:
        print_line("")
        print_table(
            ("login", "duty", "namespaces"),
            [(each.name, str(each.duty), _namespaces(each)) for each in found.logins],
        )


def _namespaces(login: PostgresLogin) -> str:
    if login.namespaces is None:
        return "all"
    return ", ".join(map(shown_name, login.namespaces)) or "none"
