# SPDX-License-Identifier: Apache-2.0
"""Duties in a PostgreSQL database: who may do what there, made and kept by an administrator.

`provision_postgres` brings a database to what it should be, whatever it was: schema, tables, a role
for each duty with the grants that it needs and no other, row security, and logins. What is right
already is left alone, so that a second run changes nothing; what somebody changed is mended, and
each change is named. A dry run does the same work and takes it back, so that what it shows is what
would run.

A password never travels: the server is given what SCRAM verifies one by. It lies in a file for this
user alone, which is made before the login is, and never overwritten by another. While a password is
changed, the file has two lines, the one in force and the next; whoever connects tries both, and
reads the file again if neither will do. So programs go on, whichever of the two the server takes at
a moment.

What the client of the database has to do is in `_postgres_roles.py`, whose library is an extra.
"""

import secrets
from collections.abc import Sequence
from pathlib import Path

from sealpoint.config import (
    PasswordSource,
    read_password_file,
    replace_file,
    store_password,
    write_new_file,
)
from sealpoint.config import anchor_password as password_of_anchor
from sealpoint.errors import UsageError
from sealpoint.store import check_name
from sealpoint_postgres._duties import Duty, PostgresLogin, Provisioned
from sealpoint_postgres._place import DatabasePlace
from sealpoint_postgres._roles import place_of_login, provision, rotate
from sealpoint_postgres._url import ANCHOR_SCHEMA, PostgresUrl

_PASSWORD_BYTES = 32


def provision_postgres(
    store: str | None,
    *,
    anchor: str | None = None,
    login: PostgresLogin | None = None,
    password_file: Path | None = None,
    dry_run: bool = False,
    password: PasswordSource | None = None,
    anchor_password: PasswordSource | None = None,
) -> tuple[Provisioned, ...]:
    """Make schema, tables, roles and grants as they should be, and perhaps a login.

    Args:
        store: The URL of the store, with the login of an administrator; None leaves it alone.
        anchor: The URL of a shared anchor, with that of an administrator there.
        login: A login to be made, or to be brought to this duty and these namespaces.
        password_file: Where the password of a new login lies or is to lie; without it, it has none.
        dry_run: Take everything back at the end; no file is made.
        password: Of the administrator, as for `open_store`.
        anchor_password: Of the administrator of the anchor.

    Returns:
        For each database what was changed, or would be.

    Raises:
        UsageError: There is no database that the login could be for, or its file is missing.
        NameInvalid: A login or namespace cannot be called this.
        ConfigError: A role that is there can do what no role of a store may.
        StorageUnavailable, AnchorUnavailable: The database cannot be used, or not by this login.
        ExtraMissing: psycopg is not installed.
    """
    if login is not None:
        for name in login.namespaces or ():
            check_name(name, "namespace")
    places = _places(store, anchor, password, anchor_password)
    owing = None if login is None else _place_for(login, places)
    new = None if password_file is None else _NewPassword(password_file)
    return tuple(
        provision(place, login if place is owing else None, new, dry_run=dry_run)
        for place in places
    )


def rotate_postgres_login(
    store: str | None,
    name: str,
    *,
    password_file: Path,
    anchor: str | None = None,
    prepare: bool = False,
    dry_run: bool = False,
    password: PasswordSource | None = None,
    anchor_password: PasswordSource | None = None,
) -> tuple[Provisioned, ...]:
    """Give a login another password, while programs that read its file go on.

    The file gets a second line with the next password, the server takes it, and the line before
    goes. Repeated after an interruption, it goes on where it was.

    Args:
        store: The URL of the store, with the login of an administrator.
        name: The login.
        password_file: Where its password lies.
        anchor: The URL of a shared anchor, for a login there.
        prepare: Only write the second line, so that the file can be brought to other machines
            before the server changes.
        dry_run: Take everything back, and leave the file as it is.
        password: Of the administrator, as for `open_store`.
        anchor_password: Of the administrator of the anchor.

    Raises:
        UsageError: There is no such login, or no such file.
        ConfigError, StorageUnavailable, AnchorUnavailable, ExtraMissing: As
            `provision_postgres`.
    """
    places = _places(store, anchor, password, anchor_password)
    place = place_of_login(places, name)
    lines = read_password_file(str(password_file), "--password-file").split("\n")
    if len(lines) == 1:
        lines.append(secrets.token_urlsafe(_PASSWORD_BYTES))
        if not dry_run:
            replace_file(password_file.absolute(), "".join(f"{each}\n" for each in lines).encode())
    if prepare:
        return ()
    done = rotate(place, name, lines[1], dry_run=dry_run)
    if not dry_run:
        replace_file(password_file.absolute(), f"{lines[1]}\n".encode())
    return (done,)


class _NewPassword:
    """The password of a login that is made: what its file holds, or else a new one."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()

    def require(self, login: str) -> None:
        """Refuse to go on without the file of a login that is there.

        Raises:
            UsageError: There is none.
        """
        if not self._path.exists():
            raise UsageError(
                f"--password-file {self._path}: the login {login!r} is there, and this file, which "
                "should hold its password, is not",
                hint="Name the file that was made with the login, or leave --password-file out: "
                "the password stays as it is.",
            )

    def make(self) -> str:
        """The password; its file is made if it is not there.

        Raises:
            KeyFileUnsafe: Others can read it.
            DirectoryUnusable: It cannot be written.
        """
        write_new_file(self._path, f"{secrets.token_urlsafe(_PASSWORD_BYTES)}\n".encode())
        return read_password_file(str(self._path), "--password-file").split("\n")[0]


def _places(
    store: str | None,
    anchor: str | None,
    password: PasswordSource | None,
    anchor_password: PasswordSource | None,
) -> list[DatabasePlace]:
    """The databases that are meant, the store's first."""
    found = []
    if store is not None:
        found.append(DatabasePlace.of_store(PostgresUrl.parse(store), store_password(password)))
    if anchor is not None:
        found.append(
            DatabasePlace.of_anchor(
                PostgresUrl.parse(anchor, schema=ANCHOR_SCHEMA), password_of_anchor(anchor_password)
            )
        )
    if not found:
        raise UsageError("provision: neither a store nor an anchor was named")
    if len({place.url.place for place in found}) < len(found):
        raise UsageError(
            f"anchor {anchor}: it is in the same place as the store, whose owner could reset it",
            hint="Give it a server or a database of its own, or at least another schema: "
            "?schema=NAME",
        )
    return found


def _place_for(login: PostgresLogin, places: Sequence[DatabasePlace]) -> DatabasePlace:
    """The database that a login of this duty is for; an owner is that of the first."""
    for place in places:
        if login.duty in place.layout.grants:
            return place
    needed = "--anchor" if login.duty in {Duty.ANCHOR, Duty.ANCHOR_READER} else "--store"
    raise UsageError(
        f"login {login.name!r}: there is no database for the duty {login.duty}",
        hint=f"Name it with {needed} postgresql://ADMIN@HOST/DATABASE",
    )
