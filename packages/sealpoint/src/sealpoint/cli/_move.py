# SPDX-License-Identifier: Apache-2.0
"""`sealpoint move`: move a store to another backend, with every byte and signature."""

import click

from sealpoint import api
from sealpoint.api import MoveProgress
from sealpoint.cli.options import Verb, common_option, json_option
from sealpoint.cli.terminal import print_fields, print_json, print_lines, working
from sealpoint.config import read_passphrase_file
from sealpoint.views.words import count_text

_TARGET_PASSWORD = "--target-password-file"  # noqa: S105 # nosec B105 # the name of an option


@click.command(cls=Verb)
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@click.option(
    _TARGET_PASSWORD,
    "password_file",
    metavar="FILE",
    help="The password of the database at DST; else SEALPOINT_STORE_PASSWORD_FILE, PGPASSFILE.",
)
@common_option("config_dir")
@common_option("state_dir")
@json_option
def move(
    source: str,
    target: str,
    *,
    password_file: str | None,
    config_dir: str | None,
    state_dir: str | None,
    as_json: bool,
) -> None:
    """Move the store at the URL SRC to the URL DST; stop its workers first.

    The command verifies everything at SRC, copies it, and verifies the copy against the same
    anchor. Then pin, keys and anchor of this machine belong to DST. SRC stays as it is; remove it
    once DST is in use. Run an interrupted move again, and it continues where it ended.
    """
    password = None
    if password_file is not None:
        path = password_file

        def password() -> str:
            return read_passphrase_file(path, _TARGET_PASSWORD)

    admin = api.admin(source, config_dir=config_dir, state_dir=state_dir)
    with working("moving threads") as report_progress:

        def progress(done: MoveProgress) -> None:
            report_progress(done.done, done.total, f"{done.step}: {done.done:,} of {done.total:,}")

        moved = admin.move_to(target, password=password, progress=progress)
    if as_json:
        print_json(
            {
                "url": moved.url,
                "store": str(moved.pin.store),
                "entries": moved.entries,
                "copied": moved.copied,
            }
        )
        return
    copied = moved.copied
    print_fields(
        [
            ("moved", moved.url),
            ("store", str(moved.pin.store)),
            ("copied", f"{count_text(copied.entries, 'entry', 'entries')}, {copied.bytes:,} bytes"),
            ("verified", f"{count_text(moved.entries, 'entry', 'entries')}, at both places"),
        ]
    )
    print_lines(
        [
            "",
            "Workers use the new URL now. The old place is as it was; remove it when all do.",
        ]
    )
