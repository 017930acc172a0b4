# SPDX-License-Identifier: Apache-2.0
"""`sealpoint requests`, `request export` and `relay`: what is asked, here and for people elsewhere.

The approver's machine needs the pin and the approver's key, and nothing of the store: what is
shown there is proven by the pin. Whoever carries the files can lose them and nothing else.
"""

import dataclasses
from typing import Any

import click

from sealpoint.api import (
    ExaminedRequest,
    examine,
    export_request,
    relay_answer,
)
from sealpoint.cli._json import read_document, write_document
from sealpoint.cli._options import Verb, VerbGroup, json_option
from sealpoint.cli._references import when
from sealpoint.cli._statement import (
    print_examined,
    release_document,
    request_document,
    standing,
)
from sealpoint.cli._store import (
    StoreOptions,
    chosen_registry,
    operator_option,
    registry_option,
    store_options,
)
from sealpoint.cli._terminal import (
    Styled,
    count_text,
    print_fields,
    print_json,
    print_line,
    print_table,
    short_hex,
    shown_name,
    working,
)
from sealpoint.errors import Tampered
from sealpoint.gate import Request, Requests, Status
from sealpoint.signing import Action
from sealpoint.world import visible

_ANSWER_BYTES_MAX = 64 * 1024


@click.command(cls=Verb)
@click.argument("request", required=False)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also those that were denied or have expired, until the thread goes on.",
)
@registry_option
@store_options("namespace")
@json_option
def requests(
    request: str | None,
    *,
    everything: bool,
    registry_reference: str | None,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """List what is waiting for approval, or show all of one REQUEST.

    REQUEST is an id or its first 8 digits or more. The exit status is 30 if a thread cannot be
    read, or the anchor does not know it: what is asked there is not known.
    """
    if request is not None:
        _show(request, where, registry_reference, as_json=as_json)
        return
    with where.reading() as store, working("reading requests"):
        found = store.requests()
        namespace = store.namespace
    shown = [each for each in found.requests if everything or each.status is Status.OPEN]
    if as_json:
        print_json(
            {
                "namespace": namespace,
                "requests": [request_document(each) for each in shown],
                "failures": [
                    {"thread": thread, "message": message} for thread, message in found.failures
                ],
            }
        )
    else:
        _print_requests(shown, found, namespace, everything=everything)
    if found.failures:
        click.get_current_context().exit(Tampered.exit_status)


def _print_requests(
    shown: list[Request], found: Requests, namespace: str, *, everything: bool
) -> None:
    if shown:
        print_table(
            ("request", "thread", "asks to", "by", "expires", "approvals"),
            [_row(each) for each in shown],
        )
        print_line("")
    count = len(found.requests) if everything else len(shown)
    kind = "request" if everything else "open request"
    line = f"{count_text(count, kind)} in namespace '{visible(namespace)}'"
    others = len(found.requests) - len(shown)
    if others:
        line += f"; {others:,} approved or closed, which --all lists"
    print_line(f"{line}.")
    if shown:
        print_line(
            Styled("sealpoint requests REQUEST shows all of one; so does approving it.", "quiet")
        )
    if found.failures:
        print_line("")
        print_line(
            (Styled("NOT READABLE", "bad"), ", so what is asked on these threads is not known:")
        )
        print_table(
            ("thread", "message"),
            [(short_hex(thread), visible(message)) for thread, message in found.failures],
        )


def _row(request: Request) -> tuple[str | Styled, ...]:
    told = request.statement
    return (
        request.short,
        "(rollouts)" if told.action is Action.ROLLOUT else shown_name(request.thread),
        str(told.action) if told.to is None else f"{told.action} to {visible(told.to)}",
        visible(told.requester),
        when(told.expires),
        standing(request),
    )


def _show(request_id: str, where: StoreOptions, registry: str | None, *, as_json: bool) -> None:
    with where.reading(chosen_registry(registry)) as store, working("reading the request"):
        request = store.request(request_id)
        examined = examine(store, request)
    if as_json:
        print_json(examined_document(examined))
    else:
        print_examined(examined)


def examined_document(examined: ExaminedRequest) -> dict[str, Any]:
    """The JSON form of one request with all that people are shown of it."""
    diff = examined.diff
    return {
        **request_document(examined.request),
        "release": None if examined.shown is None else release_document(examined.shown),
        "diff": None if diff is None else list(diff.lines()),
        "difference": None if diff is None else dataclasses.asdict(diff),
        "fault": None if examined.fault is None else examined.fault.as_dict(),
    }


@click.group("request", cls=VerbGroup)
def request_() -> None:
    """Carry a request to an approver who works elsewhere."""


@request_.command("export")
@click.argument("request")
@click.option("--output", required=True, metavar="FILE", help="Where the export is written.")
@store_options("namespace")
@json_option
def export(request: str, *, output: str, where: StoreOptions, as_json: bool) -> None:
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


@click.command(cls=Verb)
@click.argument("file", metavar="FILE")
@operator_option("Anybody of the namespace, whose key records the answer.")
@store_options("namespace")
@json_option
def relay(file: str, *, signer: str, where: StoreOptions, as_json: bool) -> None:
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
