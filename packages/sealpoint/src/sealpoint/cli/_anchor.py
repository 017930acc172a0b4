# SPDX-License-Identifier: Apache-2.0
"""`sealpoint anchor`: show the anchors of a store, adopt a store into one, and share one."""

import dataclasses

import click

from sealpoint.api import Adopted, AnchorStanding
from sealpoint.cli.options import VerbGroup, dry_run_option, json_option, yes_option
from sealpoint.cli.references import thread_text
from sealpoint.cli.stores import StoreOptions, operator_option, store_options
from sealpoint.cli.terminal import (
    agree,
    print_fields,
    print_json,
    print_line,
    print_lines,
    print_table,
    working,
)
from sealpoint.views.words import Styled, count_text, shown_name

_WORDS = {
    AnchorStanding.IN_STEP: Styled("in step", "good"),
    AnchorStanding.ANCHOR_BEHIND: Styled(
        "anchor behind: the next load or save catches up", "warning"
    ),
    AnchorStanding.STORE_BEHIND: Styled("STORE BEHIND: it was rolled back", "bad"),
    AnchorStanding.FORKED: Styled("FORKED: the store has something else there", "bad"),
    AnchorStanding.MISSING: Styled("MISSING from the store", "bad"),
    AnchorStanding.UNANCHORED: Styled("unanchored: the anchor does not know it", "warning"),
    AnchorStanding.RESERVED: Styled("reserved: nothing was saved yet", "quiet"),
    AnchorStanding.ERASED: Styled("erased on purpose", "quiet"),
    AnchorStanding.UNREADABLE: Styled("UNREADABLE in the store", "bad"),
}
_REFUSED = frozenset({AnchorStanding.STORE_BEHIND, AnchorStanding.FORKED, AnchorStanding.MISSING})


@click.group(cls=VerbGroup)
def anchor() -> None:
    """Manage the record of how far each thread was seen: this machine's, and a shared one."""


@anchor.command("show")
@click.argument("thread", required=False)
@store_options("namespace")
@json_option
def show(thread: str | None, *, where: StoreOptions, as_json: bool) -> None:
    """Compare the position that the anchor holds for each thread with the end of the store.

    Verifies nothing, so it also works when reading is refused.
    """
    with working("comparing anchor and store"):
        found = where.admin.anchor.positions(
            threads=None if thread is None else [thread], namespace=where.settings.namespace
        )
    if as_json:
        print_json(found)
        return
    shared = where.files.shared_anchor.url() is not None
    print_table(
        ("thread", *(("here", "shared") if shared else ("anchor",)), "store", "standing"),
        [
            (
                thread_text(each.name, each.thread),
                *map(_number, (each.local, each.shared) if shared else (each.anchored,)),
                _number(each.head),
                _WORDS[each.standing],
            )
            for each in found
        ],
    )


def _number(seq: int | None) -> str:
    return "-" if seq is None else str(seq)


@anchor.command("adopt")
@click.argument("threads", nargs=-1, metavar="[THREAD]...")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is recorded in each chain.")
@dry_run_option
@yes_option
@operator_option("The operator whose key signs.")
@store_options("namespace")
@json_option
def adopt_(
    threads: tuple[str, ...],
    reason: str,
    signer: str,
    *,
    dry_run: bool,
    yes: bool,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Add threads that only the store knows to the anchor; without THREAD, all of them.

    Do this only if the store is the newest copy that exists: the anchor would accept an older one
    from then on. The command verifies every entry first, and does not change what the anchor
    already knows.
    """

    def run(names: tuple[str, ...] | None, *, dry: bool) -> Adopted:
        with working("looking at the store" if dry else "verifying and adopting"):
            return where.admin.anchor.adopt(
                reason=reason,
                threads=names,
                dry_run=dry,
                identity=signer,
                namespace=where.settings.namespace,
            )

    planned = run(threads or None, dry=True)
    nothing = not planned.store_chain and not planned.threads
    if not as_json:
        _print_plan(planned)
        if nothing:
            _print_refused(where)
    if not (dry_run or nothing):
        question = "Is this store the newest copy there is, and shall it be adopted?"
        agree(question, "adopted", yes=yes, as_json=as_json)
        planned = run(planned.threads, dry=False)
    done = not (dry_run or nothing)
    if as_json:
        print_json({**dataclasses.asdict(planned), "adopted": done, "reason": reason})
    elif done:
        print_line((Styled("Adopted", "good"), f", with the reason {reason!r}."))
    elif not nothing:
        print_line("Nothing was adopted: this was a dry run.")


@anchor.command("join")
@click.argument("url", metavar="URL")
@click.option(
    "--reason", metavar="TEXT", help="Why, if the shared anchor learns something; it is recorded."
)
@operator_option("The operator whose key signs that record.")
@store_options()
@json_option
def join(url: str, *, reason: str | None, signer: str, where: StoreOptions, as_json: bool) -> None:
    """Use the anchor at URL, which other machines share, in addition to this machine's own.

    The first machine that joins passes on what its own anchor has seen, and records that. A new
    machine needs its pin and a login; SEALPOINT_ANCHOR_PASSWORD_FILE names the file of the
    password.
    """
    with working("comparing anchors and store"):
        joined = where.admin.anchor.join(url, reason=reason, identity=signer)
    if as_json:
        print_json(joined)
        return
    print_fields([("anchor", joined.url), ("threads", f"{joined.threads:,}")])
    if joined.taken:
        taken = count_text(joined.taken, "chain", "chains")
        print_line(f"It learned what this machine has seen of {taken}, with the reason {reason!r}.")


@anchor.command("leave")
@yes_option
@store_options()
@json_option
def leave(*, yes: bool, where: StoreOptions, as_json: bool) -> None:
    """Stop using the shared anchor, once this machine has seen as much.

    After that, this machine does not notice entries that only other machines have seen.
    """
    where.files.pin()  # a store that is unknown here does not share an anchor either
    url = where.files.shared_anchor.url()
    agree("Shall this machine judge by its own memory alone?", "left", yes=yes, as_json=as_json)
    with working("following the shared anchor"):
        where.admin.anchor.leave()
    if as_json:
        print_json({"left": str(url)})
    else:
        print_line(f"Left {url}.")


def _print_plan(planned: Adopted) -> None:
    if not planned.store_chain and not planned.threads:
        print_line("Nothing to adopt: the anchor knows everything in this namespace.")
        return
    print_line("To be believed from now on as the newest copy:")
    lines = ["  the store chain"] if planned.store_chain else []
    print_lines([*lines, *(f"  thread {shown_name(name)}" for name in planned.threads)])
    print_line("")


def _print_refused(where: StoreOptions) -> None:
    """Tell the user that adoption does not help with threads that the store lacks."""
    found = where.admin.anchor.positions(namespace=where.settings.namespace)
    count = sum(each.standing in _REFUSED for each in found)
    if count:
        are = count_text(count, "thread is", "threads are")
        print_line(
            f"{are} behind the anchor, diverged or missing, which adoption does not fix: "
            "sealpoint anchor show"
        )
