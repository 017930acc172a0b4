# SPDX-License-Identifier: Apache-2.0
"""Requests and the answers to them: `requests`, `approve`, `deny`, `break-glass`, `relay`.

The approver's machine needs the pin and the approver's key, and no access to the store: the pin
proves everything that is shown there. A person who carries the files can only lose them.

Before approving, the approver sees the whole statement, and types digits of its id, so that no one
approves one request while reading another. No option skips this without naming the request, by so
many digits that no one can make another request with the same digits. With `--offline` the verb
answers a request that was exported elsewhere. It shows the request and asks for agreement in the
same way; only the input and the output differ.
"""

import dataclasses
import shlex
from collections.abc import Callable
from typing import Any

import click

from sealpoint.api import (
    ExaminedRequest,
    ExportedRequest,
    Store,
    examine,
    export_request,
    open_request,
    relay_answer,
)
from sealpoint.cli._input_files import read_document, write_document
from sealpoint.cli._request_display import print_examined
from sealpoint.cli.options import Verb, VerbGroup, json_option, reason_option
from sealpoint.cli.stores import (
    StoreOptions,
    asked_passphrase,
    chosen_registry,
    operator_option,
    print_seen_by,
    registry_option,
    shown_registry,
    store_options,
)
from sealpoint.cli.terminal import (
    ask,
    can_ask,
    can_show,
    print_code,
    print_fields,
    print_json,
    print_line,
    print_note,
    print_table,
    working,
)
from sealpoint.codec import Registry
from sealpoint.errors import IntegrityError, SealpointError, UsageError
from sealpoint.gate import Request, Requests, Status
from sealpoint.limits import REQUEST_BYTES_MAX
from sealpoint.signing import DIGITS_LEAST, Action, Verdict
from sealpoint.views.documents import examined_document, requests_document
from sealpoint.views.requests import standing
from sealpoint.views.summaries import answer_line, question_line, shorten_alike
from sealpoint.views.words import Styled, count_text, short_hex, shown_name, when
from sealpoint.world import json_form, visible

_ANSWER_BYTES_MAX = 64 * 1024
_LINE_CHARS = 60


@click.command(cls=Verb)
@click.argument("request", required=False)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also requests that were denied or have expired, until the thread continues.",
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
    """List the requests that wait for approval, or show all of one REQUEST.

    REQUEST is an id or its first 8 digits or more. The exit status is 30 if a thread cannot be
    read, or the anchor does not know it: its requests are unknown.
    """
    if request is not None:
        _show(request, where, registry_reference, as_json=as_json)
        return
    with where.reading() as store, working("reading requests"):
        found = store.requests()
        namespace = store.namespace
        shown = [each for each in found.requests if everything or each.status is Status.OPEN]
        lines = [] if as_json else [_lines_of(store, each) for each in shown]
    if as_json:
        print_json(requests_document(namespace, shown, found))
    else:
        _print_requests(shown, lines, found, namespace, everything=everything)
    if found.failures:
        click.get_current_context().exit(IntegrityError.exit_status)


def _lines_of(store: Store, request: Request) -> tuple[str, str]:
    """Return the question and the answer of a request, in a line each."""
    if request.statement.action is not Action.RESUME:
        return "", ""
    try:
        question = store.thread(request.thread).release_of(request).question
    except SealpointError:  # showing the request itself says why
        question = None
    return question_line(question), answer_line(request.answer, question)


def _print_requests(
    shown: list[Request],
    lines: list[tuple[str, str]],
    found: Requests,
    namespace: str,
    *,
    everything: bool,
) -> None:
    if shown:
        columns = [shorten_alike(column, _LINE_CHARS) for column in zip(*lines, strict=True)]
        print_table(
            ("request", "thread", "asks to", "by", "expires", "approvals", "question", "answer"),
            [(*_row(each), *told) for each, *told in zip(shown, *columns, strict=True)],
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
        visible(told.asked_by),
        when(told.expires),
        standing(request),
    )


def _registry(reference: str | None, *, as_json: bool = False) -> Registry:
    """Return the registry for a request: people see values of unknown types as plain data."""
    return chosen_registry(reference) if as_json else shown_registry(reference, untyped=True)


def _show(request_id: str, where: StoreOptions, registry: str | None, *, as_json: bool) -> None:
    with (
        where.reading(_registry(registry, as_json=as_json)) as store,
        working("reading the request"),
    ):
        examined = examine(store, store.request(request_id), states=True)
    if as_json:
        print_json(examined_document(examined))
    else:
        print_examined(examined)


@click.group("request", cls=VerbGroup)
def request_() -> None:
    """Carry a request to an approver who works elsewhere."""


@request_.command("export")
@click.argument("request")
@click.option("--output", required=True, metavar="FILE", help="The file to write.")
@store_options("namespace")
@json_option
def export(request: str, *, output: str, where: StoreOptions, as_json: bool) -> None:
    """Write REQUEST with everything that an approver sees, to be answered without the store.

    REQUEST is an id or its first 8 digits or more. The file holds everything that the request
    shows, but no key and no state. Answer it with approve --offline or deny --offline.
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
@operator_option("Any identity of the namespace, whose key records the answer.")
@store_options("namespace")
@json_option
def relay(file: str, *, signer: str, where: StoreOptions, as_json: bool) -> None:
    """Record the answer in FILE, which an approver gave with --offline; - reads standard input.

    The answer counts by the approver's own signature, so any identity may relay it. The command
    refuses an answer that does not fit the request as it is now.
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
                **json_form(after, "status", "approved_by", "denied_by", "needed"),
            }
        )
        return
    word = {"approve": "approval", "deny": "denial"}.get(verdict, verdict)
    line = f" of request {after.short}, entry {entry}: it is {after.status}, with "
    print_line(
        (
            Styled(f"Recorded the {word}", "good"),
            f"{line}{len(after.approved_by)} of {after.needed} approvals.",
        )
    )


# The digits that a person types below the displayed request. Without the display, these digits
# alone identify the request, so more are needed.
_NAMED_DIGITS = 32

_NEXT = {
    Action.RESUME: "It resumes, once, when its worker takes it, with the same answer.",
    Action.HANDOFF: "The operator who asked runs sealpoint handoff again.",
    Action.ROLLOUT: "Runs may resume in the new world now.",
}
_yes_option = click.option(
    "--yes-to",
    metavar="DIGITS",
    help="Do not ask: the request's whole id, or its first 32 digits or more.",
)


def offline_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--offline FILE` and `--output FILE`, on the verbs that answer a request."""
    output = click.option(
        "--output", metavar="FILE", help="With --offline: the file for the answer."
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
    where: StoreOptions,
    identity: str,
    registry: Registry,
) -> ExportedRequest:
    """Open the exported request of a verb, verified by the pin of this machine.

    Raises:
        UsageError: The arguments name neither an id nor both files.
    """
    if offline is None or output is None or request is not None:
        raise UsageError(
            "give a REQUEST, or both --offline FILE and --output FILE",
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
    """Print the source of the information, and its limits."""
    if not as_json:
        print_line(
            Styled(
                f"From an export of store {exported.request.statement.store[:12]}, verified by the "
                f"pin of this machine up to entry {exported.last}. Later changes are not known "
                "here; they are checked when the answer is recorded. An export has no state: the "
                "conversation is shown where the store is.",
                "quiet",
            )
        )
        print_line("")


@click.command(cls=Verb)
@click.argument("request", required=False)
@reason_option
@_yes_option
@offline_options
@operator_option("The approver whose key signs.")
@registry_option
@store_options("namespace")
@json_option
def approve(
    request: str | None,
    *,
    reason: str,
    yes_to: str | None,
    offline: str | None,
    output: str | None,
    signer: str,
    registry_reference: str | None,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Approve REQUEST, after reading all of it.

    REQUEST is an id or its first 8 digits or more. On a terminal the command shows the whole
    statement, and you type the first 8 digits of its id; elsewhere --yes-to must name its id. With
    --offline the command reads REQUEST from a file instead, and writes the answer to --output.
    """
    registry = _registry(registry_reference, as_json=as_json)
    if offline is not None or output is not None or request is None:
        with opened_request(
            request, offline, output, where=where, identity=signer, registry=registry
        ) as exported:
            print_origin(exported, as_json=as_json)
            examined = _shown(exported.examine(), as_json=as_json)
            found = _agreed(examined, "approve", yes_to=yes_to, as_json=as_json)
            _answer_offline(exported, found, Verdict.APPROVE, reason, output, as_json=as_json)
        return
    with where.reading(registry) as shown, where.writing(signer) as store:
        examined = _shown(_examined(shown, request), as_json=as_json)
        found = _agreed(examined, "approve", yes_to=yes_to, as_json=as_json)
        with working("approving"):
            said = store.approve(found.request.id, reason=reason)
            after = _after(store, found.request)
    already = said in found.request.attestations
    if as_json:
        print_json({**_answered(found, after, "approve", said.reason), "already": already})
        return
    line = f" request {after.short}: {len(after.approved_by)} of {after.needed} approvals"
    ready = "." if after.status is not Status.APPROVED else f". {_NEXT[after.statement.action]}"
    word = "Approved already, and nothing more was written:" if already else "Approved"
    print_line((Styled(word, "warning" if already else "good"), line + ready))


@click.command(cls=Verb)
@click.argument("request", required=False)
@reason_option
@offline_options
@operator_option("The approver, or the requester, whose key signs.")
@registry_option
@store_options("namespace")
@json_option
def deny(
    request: str | None,
    *,
    reason: str,
    offline: str | None,
    output: str | None,
    signer: str,
    registry_reference: str | None,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Deny REQUEST for good.

    REQUEST is an id or its first 8 digits or more. The command shows all of it. A single denial
    ends it, even after approvals; the requester may deny it too, to withdraw it. With --offline the
    command reads REQUEST from a file instead, and writes the answer to --output.
    """
    registry = _registry(registry_reference, as_json=as_json)
    if offline is not None or output is not None or request is None:
        with opened_request(
            request, offline, output, where=where, identity=signer, registry=registry
        ) as exported:
            print_origin(exported, as_json=as_json)
            found = _shown(exported.examine(), as_json=as_json)
            _answer_offline(exported, found, Verdict.DENY, reason, output, as_json=as_json)
        return
    with where.reading(registry) as shown, where.writing(signer) as store:
        found = _shown(_examined(shown, request), as_json=as_json)
        with working("denying"):
            store.deny(found.request.id, reason=reason)
            after = _after(store, found.request)
    if as_json:
        print_json({**_answered(found, after, "deny", reason), "anchor": where.anchor})
        return
    print_line((Styled("Denied", "good"), f" request {after.short}, for good."))
    print_seen_by(where)


def _answer_offline(
    exported: ExportedRequest,
    found: ExaminedRequest,
    verdict: Verdict,
    reason: str,
    output: str | None,
    *,
    as_json: bool,
) -> None:
    """Sign the answer to an exported request, and write it to a file."""
    write_document(output or "", exported.answer(verdict, reason=reason), "--output")
    if as_json:
        answered = _answered(found, found.request, str(verdict), reason)
        print_json({**answered, "output": output})
        return
    word = {Verdict.APPROVE: "Signed an approval", Verdict.DENY: "Signed a denial"}[verdict]
    print_line((Styled(word, "good"), f" of request {found.request.short} into {output}."))
    print_line("It counts when someone of the namespace has recorded it, where the store is:")
    print_code([f"  sealpoint relay {shlex.quote(output or '')}"])


@click.command("break-glass", cls=Verb)
@click.argument("request")
@reason_option
@_yes_option
@operator_option("The operator whose key signs; the roster must mark it for break-glass.")
@registry_option
@store_options("namespace")
@json_option
def break_glass(
    request: str,
    *,
    reason: str,
    yes_to: str | None,
    signer: str,
    registry_reference: str | None,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Let REQUEST pass in an emergency, without the approvals that it needs.

    REQUEST is an id or its first 8 digits or more. The command shows it and asks for its digits, as
    approve does. It records for good who did this and why; it overrides neither a pause nor a
    denial.
    """
    with (
        where.reading(_registry(registry_reference, as_json=as_json)) as shown,
        where.writing(signer) as store,
    ):
        examined = _shown(_examined(shown, request), as_json=as_json)
        found = _agreed(examined, "break-glass", yes_to=yes_to, as_json=as_json)
        with working("breaking the glass"):
            entry = store.break_glass(found.request.id, reason=reason)
            after = _after(store, found.request)
    if as_json:
        print_json({**_answered(found, after, "break-glass", reason), "entry": entry})
        return
    print_line(
        (Styled("GLASS BROKEN", "bad"), f": request {after.short} may proceed without approvals.")
    )
    print_line(f"Entry {entry} records it, with your name and the reason.")


def _examined(store: Store, request_id: str) -> ExaminedRequest:
    with working("reading the request"):
        request = store.request(request_id)
        return examine(store, request, states=True)


def _shown(examined: ExaminedRequest, *, as_json: bool) -> ExaminedRequest:
    """Return the request, after showing all of it to people."""
    if not as_json:
        print_examined(examined)
        print_line("")
    return examined


def _agreed(
    examined: ExaminedRequest, verb: str, *, yes_to: str | None, as_json: bool
) -> ExaminedRequest:
    """Return the request if the user agreed to it by typing digits of its id.

    Raises:
        UsageError: The user did not agree to this request.
        RequestClosed: It is closed.
        NotTrusted: It shows something other than what would be signed.
    """
    request = examined.request
    examined.require_agreeable()
    least = DIGITS_LEAST if yes_to is None else _NAMED_DIGITS
    digits = _typed(examined, verb, as_json=as_json) if yes_to is None else yes_to
    if not request.id.startswith(digits):
        raise UsageError(
            f"{verb}: what was typed are not the first {least} digits of the request's id",
            hint="Nothing was changed. Read the request again: is it the one that you mean?",
        )
    if len(digits) < least:
        raise UsageError(
            f"{verb}: at least the first {least} digits of the request's id are needed, and "
            f"{len(digits)} were given",
            hint=f"Nothing was changed. The id of the request that was read is {request.id}.",
        )
    return examined


def _typed(examined: ExaminedRequest, verb: str, *, as_json: bool) -> str:
    request = examined.request
    if as_json or not (can_ask() and can_show()):
        raise UsageError(
            f"{verb}: it shows the request and asks, and there is no terminal for that",
            hint=f"Read it with sealpoint requests {request.id}, then give --yes-to {request.id}",
        )
    # What the requester and the agent wrote above may be so long that the question is out of view.
    if examined.shown is not None and examined.shown.release.question is not None:
        question = examined.shown.release.question
        lines = (question_line(question), answer_line(request.answer, question))
        asked, answer = (shorten_alike([line], 2 * _LINE_CHARS)[0] for line in lines)
        print_line(("Question: ", Styled(asked, "heading")))
        print_line(("Answer: ", Styled(answer or "none", "heading")))
    act = {"approve": "approve it", "break-glass": "let it pass without approvals"}[verb]
    return ask(f"Type the first {DIGITS_LEAST} digits of the id to {act}")


def _after(store: Store, request: Request) -> Request:
    """Return the current request, or the one that was read if it was used or ended since."""
    try:
        return store.request(request.id)
    except SealpointError as error:
        print_note(f"What has become of it since is not known: {error.message}")
        return request


def _answered(found: ExaminedRequest, after: Request, verdict: str, reason: str) -> dict[str, Any]:
    """Return the answer, and the request: its content as read before, its current status."""
    return {
        "request": after.id,
        "verdict": verdict,
        "reason": reason,
        **json_form(examined_document(dataclasses.replace(found, request=after))),
    }
