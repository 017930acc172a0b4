# SPDX-License-Identifier: Apache-2.0
"""Provisioning by an administrator: the duties of a PostgreSQL database and their permissions.

`provision_postgres` brings a database to its expected state from any other state: schema, tables, a
role for each duty with exactly the grants that it needs, row security, and logins. It leaves
correct objects alone, so that a second run changes nothing; it reverts unexpected changes and names
each change that it makes. A dry run does the same work and rolls it back, so that its report equals
the real run.

A password never travels: the server receives only a SCRAM verifier. The password is in a file that
only this user can read. The file is created before the login, and another password never overwrites
it. During a rotation the file has two lines, the current password and the next one; a client tries
both, and reads the file again if neither works. So programs keep working, whichever of the two the
server accepts at a moment.

`_roles.py` holds the work of the database client, because its library is an extra.
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
from sealpoint_postgres._database_layout import DatabasePlace
from sealpoint_postgres._duties import Duty, PostgresLogin, Provisioned
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
    """Create or correct schema, tables, roles and grants, and optionally a login.

    Args:
        store: The URL of the store, with the login of an administrator; None skips the store.
        anchor: The URL of a shared anchor, with that of an administrator there.
        login: A login to be made, or to be brought to this duty and these namespaces.
        password_file: The file of the password of a new login; without it, the login has no
            password.
        dry_run: Roll everything back at the end; no file is created.
        password: Of the administrator, as for `open_store`.
        anchor_password: Of the administrator of the anchor.

    Returns:
        The changes of each database, executed or planned.

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
    """Change the password of a login while programs that read its file keep running.

    The file gets a second line with the next password, the server changes to it, and the old line
    is removed. After an interruption, a repeated call continues where the previous one stopped.

    Args:
        store: The URL of the store, with the login of an administrator.
        name: The login.
        password_file: The file of its password.
        anchor: The URL of a shared anchor, for a login there.
        prepare: Only write the second line, so that the file can be brought to other machines
            before the server changes.
        dry_run: Roll everything back, and leave the file unchanged.
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
    """The password of a new login: the content of its file, or a new password."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()

    def require(self, login: str) -> None:
        """Raise an error if the file of an existing login is missing.

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
    """The selected databases, the store's first."""
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
