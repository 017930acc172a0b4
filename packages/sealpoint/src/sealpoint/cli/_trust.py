# SPDX-License-Identifier: Apache-2.0
"""`sealpoint trust`: carry the pin of a store from one machine to another."""

import json

import click

from sealpoint.cli._input_files import read_document, write_document
from sealpoint.cli.options import VerbGroup, json_option
from sealpoint.cli.stores import StoreOptions, store_options
from sealpoint.cli.terminal import (
    print_fields,
    print_json,
    print_line,
    print_lines,
    print_note,
    print_text,
)

_PIN_BYTES_MAX = 64 * 1024


@click.group(cls=VerbGroup)
def trust() -> None:
    """Carry the pin of a store to another machine; it holds no secret."""


@trust.command("export")
@click.option("--output", metavar="FILE", help="Write the pin to FILE instead of printing it.")
@store_options()
@json_option
def export(output: str | None, *, where: StoreOptions, as_json: bool) -> None:
    """Print the pin of a store, which accepts no roster older than the one in force.

    The fingerprint goes to standard error: read it to the person who imports the pin.
    """
    pin = where.admin.trust.export_pin()
    data, fingerprint = pin.encode(), str(pin.fingerprint())
    if output is not None:
        write_document(output, data, "--output")
    if as_json:
        print_json(
            {
                "store": str(pin.store),
                "fingerprint": fingerprint,
                "pin": json.loads(data),
                "output": output,
            }
        )
    elif output is None:
        print_text(data.decode())
        print_note("Compare this fingerprint where the pin is imported:")
        print_note(fingerprint)
    else:
        print_fields([("pin", output), ("store", str(pin.store)), ("fingerprint", fingerprint)])


@trust.command("import")
@click.argument("file", metavar="FILE")
@click.option("--replace", is_flag=True, help="Replace another pin for this store.")
@click.option(
    "--group",
    metavar="NAME",
    help="The group that shares the store and, in --state-dir, its anchor.",
)
@store_options()
@json_option
def import_(
    file: str, *, replace: bool, group: str | None, where: StoreOptions, as_json: bool
) -> None:
    """Trust a store from now on, by the pin in FILE; - reads standard input.

    Compare the fingerprint with the one that was shown where the pin was exported.
    """
    data = read_document(file, "pin", bytes_max=_PIN_BYTES_MAX)
    pin = where.admin.trust.import_pin(data, replace=replace, group=group)
    fingerprint = str(pin.fingerprint())
    url = str(where.files.url)
    if as_json:
        print_json({"store": str(pin.store), "url": url, "fingerprint": fingerprint})
        return
    print_fields([("trusted", url), ("store", str(pin.store)), ("fingerprint", fingerprint)])
    print_line("")
    if group is not None:
        print_lines(
            [
                "Compare the fingerprint with the one shown where the pin was exported.",
                f"The anchor is the one that the group {group} shares.",
            ]
        )
        return
    print_lines(
        [
            "Compare the fingerprint with the one shown where the pin was exported.",
            "If this machine has never used the store, its anchor does not know it yet:",
            "  sealpoint anchor adopt --reason '...'",
            "or, where machines share an anchor: sealpoint anchor join URL",
        ]
    )


@trust.command("move")
@click.argument("old_url", metavar="OLD-URL")
@store_options()
@json_option
def move(old_url: str, *, where: StoreOptions, as_json: bool) -> None:
    """Use a store whose file was moved from OLD-URL to --store.

    Pin, keys and the anchor's secret then belong to the new URL. The command does not touch the
    file. With the same URL twice, it accepts that a link on the way now leads elsewhere.
    """
    pin = where.admin.trust.move_from(old_url)
    url = str(where.files.url)
    if as_json:
        print_json({"store": str(pin.store), "url": url, "fingerprint": str(pin.fingerprint())})
    else:
        print_fields([("trusted", url), ("store", str(pin.store))])
