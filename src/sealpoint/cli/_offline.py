# SPDX-License-Identifier: Apache-2.0
"""`sealpoint request export` and `relay`: carrying a request to an approver, and the answer back.

The approver's machine needs the pin and the approver's key, and nothing of the store: what is shown
there is proven by the pin. Whoever carries the files can lose them and nothing else.
"""

from collections.abc import Callable
from typing import Any

import click

from sealpoint.api import ExportedRequest, export_request, open_request, relay_answer
from sealpoint.cli._json import read_document, write_document
from sealpoint.cli._options import json_option
from sealpoint.cli._passphrase import asked_passphrase
from sealpoint.cli._store import Where, operator_option, store_options
from sealpoint.cli._terminal import Styled, print_fields, print_json, print_line, working
from sealpoint.codec import Registry
from sealpoint.errors import UsageError
from sealpoint.limits import REQUEST_BYTES_MAX

__all__ = ["offline_options", "opened_request", "print_origin", "relay", "request_"]

_ANSWER_BYTES_MAX = 64 * 1024


def offline_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--offline FILE` and `--output FILE`, on the verbs that answer a request."""
    output = click.option(
        "--output", metavar="FILE", help="With --offline: where the answer is written."
    )
    offline = click.option(
        "--offline",
        metavar="FILE",
        help="Answer the request that sealpoint request export wrote; the store is not needed.",
    )
    return offline(output(function))


def opened_request(
    request: str | None,
    offline: str | None,
    output: str | None,
    *,
    where: Where,
    identity: str,
    registry: Registry,
) -> ExportedRequest:
    """The exported request that a verb is about, verified by the pin of this machine.

    Raises:
        UsageError: It is neither said by an id nor by both files.
    """
    if offline is None or output is None or request is not None:
        raise UsageError(
            "expected a REQUEST, or both --offline FILE and --output FILE",
            hint="sealpoint requests lists what is open here; sealpoint request export REQUEST "
            "--output FILE writes one for an approver on another machine.",
        )
    with working("verifying the export"):
        return open_request(
            read_document(offline, "--offline", bytes_max=REQUEST_BYTES_MAX),
            where.url,
            identity=identity,
            registry=registry,
            passphrase=asked_passphrase,
            **where.directories,
        )


def print_origin(exported: ExportedRequest, *, as_json: bool) -> None:
    """Say what the rest is read from, and what nobody can know from it."""
    if not as_json:
        print_line(
            Styled(
                f"From an export of store {exported.request.statement.store[:12]}, verified by the "
                f"pin of this machine up to entry {exported.last}. What happened since is not "
                "known here; it is asked again when the answer is recorded.",
                "quiet",
            )
        )
        print_line("")


@click.group("request")
def request_() -> None:
    """Carry a request to an approver who works elsewhere."""


@request_.command("export")
@click.argument("request")
@click.option("--output", required=True, metavar="FILE", help="Where the export is written.")
@store_options("namespace")
@json_option
def export(request: str, *, output: str, where: Where, as_json: bool) -> None:
    """Write REQUEST with all that an approver is shown, to be answered where the store is not.

    REQUEST is an id or its first 8 digits or more. The file holds no key and no state; it shows
    what the request shows. Answer it with approve --offline or deny --offline.
    """
    with where.reading() as store, working("exporting the request"):
        found = store.request(request)
        data = export_request(store, found.id)
    write_document(output, data, "--output")
    if as_json:
        print_json(
            {"request": found.id, "thread": found.thread, "output": output, "bytes": len(data)}
        )
        return
    print_line((Styled("Exported", "good"), f" request {found.short}."))
    print_fields([("id", found.id), ("file", output), ("bytes", f"{len(data):,}")])


@click.command()
@click.argument("file", metavar="FILE")
@operator_option("Anybody of the namespace, whose key records the answer.")
@store_options("namespace")
@json_option
def relay(file: str, *, signer: str, where: Where, as_json: bool) -> None:
    """Record the answer in FILE, which somebody gave with --offline; - reads standard input.

    It counts by the approver's own signature, whoever relays it. One that does not fit the request
    as it is now is refused.
    """
    data = read_document(file, "answer", bytes_max=_ANSWER_BYTES_MAX)
    with where.writing(signer) as store, working("recording the answer"):
        attestation, entry = relay_answer(store, data)
        after = store.request(attestation.statement)
    verdict = str(attestation.verdict)
    if as_json:
        print_json(
            {
                "request": after.id,
                "verdict": verdict,
                "reason": attestation.reason,
                "entry": entry,
                "status": str(after.status),
                "approved_by": list(after.approved_by),
                "denied_by": list(after.denied_by),
                "needed": after.needed,
            }
        )
        return
    word = {"approve": "approval", "deny": "denial"}[verdict]
    line = f" of request {after.short}, entry {entry}: it is {after.status}, with "
    print_line(
        (
            Styled(f"Recorded the {word}", "good"),
            f"{line}{len(after.approved_by)} of {after.needed} approvals.",
        )
    )
