# SPDX-License-Identifier: Apache-2.0
"""`sealpoint keys passphrase`: give a key a passphrase, another one, or none."""

import click

from sealpoint.api import change_passphrase
from sealpoint.cli._options import json_option
from sealpoint.cli._passphrase import NEW_FILE_OPTION, asked_passphrase, next_passphrase
from sealpoint.cli._store import Where, store_options
from sealpoint.cli._terminal import Styled, print_fields, print_json, print_line, working
from sealpoint.errors import UsageError

__all__ = ["passphrase"]


@click.command("passphrase")
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
    name: str, *, remove: bool, new_file: str | None, where: Where, as_json: bool
) -> None:
    """Set, change or remove the passphrase of the key NAME on this machine.

    The key stays the same, and the old file stays until the new one is safe on the disk. What is
    left of the old file on the disk and in backups still opens as before.
    """
    if remove and new_file is not None:
        raise UsageError(f"passphrase: expected --remove or {NEW_FILE_OPTION}, found both")
    with working("encrypting the key"):
        public = change_passphrase(
            where.url,
            name,
            new=None if remove else next_passphrase(new_file),
            passphrase=asked_passphrase,
            **where.directories,
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
