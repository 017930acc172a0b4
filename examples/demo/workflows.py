# SPDX-License-Identifier: Apache-2.0
"""The demo that `make demo-agent-framework` runs: one workflow, the same attacks, two storages.

Nothing is staged: workflows run, people sign, files are changed, and what is printed is what
happened. The model is scripted, so neither a network nor a key is needed.
"""

import asyncio
import base64
import json
import logging
import pickle
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_framework import FileCheckpointStorage, WorkflowCheckpointException
from attacks import sql
from bank import Bank
from screen import console, refused, say, scene, tell
from team import (
    DISK,
    FOLDER,
    PLACE,
    SEALED,
    URL,
    approve,
    scene_audit,
    scene_look,
    set_up,
    show_request,
    yesterday,
)
from workflow import INVOICES, NAME, build

import sealpoint
from sealpoint import Request, SealpointError
from sealpoint.errors import NeedsApproval
from sealpoint_agent_framework import SealedCheckpointStorage, guard

STOCK = DISK / "stock"
PLANTED = FOLDER / "made-by-a-checkpoint"
ASKED, PAID = "42.00 EUR", "99999 EUR"
logging.getLogger("agent_framework").setLevel(logging.ERROR)  # what it warns of is on the screen

# ---------------------------------------------------------------- the application


@dataclass(frozen=True)
class Office:
    """The application in a new process: it has the workflow built, and looks for what waits."""

    workflow: Any
    storage: Any

    async def begin(self, name: str) -> str:
        """Have an invoice read, and say what is asked about it."""
        (asked,) = (await self.workflow.run(INVOICES[name])).get_request_info_events()
        return str(asked.data)

    async def answer(self) -> str:
        """Show the clerk what the newest checkpoint asks, pass on the yes, say what was shown."""
        return await self._answer(await self.storage.get_latest(workflow_name=NAME))

    async def answer_again(self) -> str:
        """Pass on the yes to a question that was answered already."""
        found = await self.storage.list_checkpoints(workflow_name=NAME)
        return await self._answer(next(each for each in found if each.pending_request_info_events))

    async def look(self) -> None:
        """List what there is; nobody is shown anything."""
        await self.storage.list_checkpoints(workflow_name=NAME)

    async def _answer(self, checkpoint: Any) -> str:
        ((request, asked),) = checkpoint.pending_request_info_events.items()
        await self.workflow.run(checkpoint_id=checkpoint.checkpoint_id, responses={request: True})
        return str(asked.data)


@asynccontextmanager
async def sealed_office(bank: Bank, name: str) -> AsyncIterator[Office]:
    """With a sealed store, behind the gate."""
    with sealpoint.open_store(URL, **PLACE) as store:
        storage = SealedCheckpointStorage(store, thread=name)
        yield Office(guard(build(bank), storage, actor="clerk"), storage)


@asynccontextmanager
async def stock_office(bank: Bank, name: str) -> AsyncIterator[Office]:
    """The same with the stock storage, a directory for each invoice."""
    storage = FileCheckpointStorage(STOCK / name)
    yield Office(build(bank, storage), storage)


# ---------------------------------------------------------------- the attacks


@dataclass(frozen=True, kw_only=True)
class Attack:
    """What is done to what is stored, and what the application does next without knowing of it."""

    title: str
    invoice: str = "invoice-18"
    on_stock: Callable[[Path], object] | None = None
    on_sealed: Callable[[Path], object] | None = None
    then: Callable[[Office], Awaitable[str | None]] = Office.answer


def edit_stock(directory: Path) -> None:
    """States are plain text in the files; the question is pickled, and stays as it is."""
    for file in directory.glob("*.json"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(ASKED, PAID), encoding="utf-8")


def edit_sealed(database: Path) -> None:
    """The same, where states are kept in `payload`."""
    statement = "UPDATE entries SET payload = CAST(replace(payload, ?, ?) AS BLOB)"
    sql(database, statement, ASKED, PAID)


class Gadget:
    """A pickle that calls a class which the framework's allowlist lets pass: it makes a folder."""

    def __reduce__(self) -> Any:
        """What the pickle says to call, and with what."""
        return FileCheckpointStorage, (str(PLANTED),)


def plant_in_stock(directory: Path) -> None:
    """One more file, whose state is a pickle."""
    fields = json.loads(next(directory.glob("*.json")).read_text(encoding="utf-8"))
    code = base64.b64encode(pickle.dumps(Gadget())).decode()
    fields |= {"state": {"x": {"__pickled__": code, "__type__": "builtins:dict"}}}
    (directory / "planted.json").write_text(json.dumps(fields), encoding="utf-8")


def plant_in_sealed(database: Path) -> None:
    """The newest state is replaced by the pickle."""
    newest = "(SELECT max(number) FROM entries WHERE payload IS NOT NULL)"
    code = pickle.dumps(Gadget())
    sql(database, f"UPDATE entries SET payload = ? WHERE number = {newest}", code)  # noqa: S608


def roll_back(place: Path) -> None:
    """Put the copy of yesterday back."""
    copy(yesterday(place), place)


def copy(source: Path, target: Path) -> None:
    """Put a file or a directory in the place of another."""
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


ATTACKS = (
    Attack(
        title=f"An edited amount: {PAID} in the saved state, still {ASKED} in the question.",
        on_stock=edit_stock,
        on_sealed=edit_sealed,
    ),
    Attack(
        title="Planted code: a state that is a pickle. Then somebody lists the checkpoints.",
        on_stock=plant_in_stock,
        on_sealed=plant_in_sealed,
        then=Office.look,
    ),
    Attack(
        title="A rollback: yesterday's copy of what is stored, with invoice 17 not yet paid.",
        invoice="invoice-17",
        on_stock=roll_back,
        on_sealed=roll_back,
    ),
    Attack(
        title="A replay: nothing is changed; the yes to invoice 17 is sent a second time.",
        invoice="invoice-17",
        then=Office.answer_again,
    ),
)

# ---------------------------------------------------------------- the scenes


async def scene_pause(bank: Bank) -> Request:
    scene("1. A workflow that moves money stops for people")
    say("user", INVOICES["invoice-17"])
    async with sealed_office(bank, "invoice-17") as office:
        say("workflow", f"its agent reads the invoice; it asks: {await office.begin('invoice-17')}")
    copy(SEALED, yesterday(SEALED))  # somebody keeps a copy, for later
    say("clerk", "answers yes. By the policy `strict`, two others have to agree:")
    error = await _asked(bank, "invoice-17")
    refused(error)
    return error.request


async def scene_approve(bank: Bank, request: Request) -> None:
    scene("2. What the approvers see")
    show_request(request)
    for name, found in approve(request):
        say(name, f"approves with a key of their own: {len(found.approved_by)} of {found.needed}")
    async with sealed_office(bank, "invoice-17") as office:
        await office.answer()
    say("clerk", "makes the same call again, which passes now, once:")
    bank.tell([])


async def scene_attack(bank: Bank) -> None:
    scene("3. Somebody who can write to the database attacks")
    async with sealed_office(bank, "invoice-18") as office:
        await office.begin("invoice-18")
    tell(f"Invoice 18 waits for an answer: {ASKED} to globex.")
    people = [name for name, _ in approve((await _asked(bank, "invoice-18")).request)]
    tell(f"The clerk says yes, {' and '.join(people)} approve. Before the workflow goes on:")
    copy(SEALED, newest := FOLDER / "sealed-newest.db")
    paid = list(bank.transfers)
    for attack in ATTACKS:
        console.print(f"\n{attack.title}")
        if attack.on_sealed:
            attack.on_sealed(SEALED)
        try:
            async with sealed_office(bank, attack.invoice) as office:
                await attack.then(office)
            sys.exit(f"NOT REFUSED: {attack.title}")
        except (SealpointError, WorkflowCheckpointException) as error:
            refused(_reason(error))
        if attack.on_sealed:
            copy(newest, SEALED)
    bank.tell(paid)
    console.print("\nAnd with the database as it was approved:")
    async with sealed_office(bank, "invoice-18") as office:
        await office.answer()
    bank.tell(paid)


async def scene_stock(bank: Bank) -> None:
    scene("4. The same attacks on Agent Framework's FileCheckpointStorage")
    async with stock_office(bank, "invoice-17") as office:
        await office.begin("invoice-17")
        copy(STOCK / "invoice-17", yesterday(STOCK / "invoice-17"))
        await office.answer()
    async with stock_office(bank, "invoice-18") as office:
        await office.begin("invoice-18")
    tell("Invoice 17 is paid, the clerk said yes. Invoice 18 waits for an answer.")
    copy(STOCK, newest := FOLDER / "stock-newest")
    paid = list(bank.transfers)
    for attack in ATTACKS:
        console.print(attack.title)
        copy(newest, STOCK)
        bank.transfers[:] = paid
        if attack.on_stock:
            attack.on_stock(STOCK / attack.invoice)
        async with stock_office(bank, attack.invoice) as office:
            shown = await attack.then(office)
        say("ACCEPTED", f"the clerk was asked: {shown}" if shown else "nobody was asked")
        bank.tell(paid)
        if PLANTED.exists():
            say("disk", f"{PLANTED.name}: a folder that the pickle had made")
            PLANTED.rmdir()


def _reason(error: BaseException | None) -> SealpointError:
    """What was refused; a storage tells it in the framework's words, with ours as the cause."""
    while not isinstance(error, SealpointError):
        assert error is not None, "something else went wrong"
        error = error.__cause__
    return error


async def _asked(bank: Bank, name: str) -> NeedsApproval:
    """Answer yes, which needs the approval of others, and give that error."""
    async with sealed_office(bank, name) as office:
        try:
            await office.answer()
        except NeedsApproval as error:
            return error
    sys.exit(f"NOT REFUSED: an answer in {name} that nobody approved")


async def main() -> None:
    sealed_bank, stock_bank = Bank(), Bank()
    tell("Sealpoint demo: one workflow, two checkpoint storages, the same attacks.")
    set_up()
    request = await scene_pause(sealed_bank)
    await scene_approve(sealed_bank, request)
    await scene_attack(sealed_bank)
    await scene_stock(stock_bank)
    scene_audit()
    scene_look("invoice-17  # the refused replay")


if __name__ == "__main__":
    asyncio.run(main())
