# SPDX-License-Identifier: Apache-2.0
"""Encode the state of an agent, attack what was saved, and see what is refused and why."""

import sys
from dataclasses import dataclass, make_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from http import HTTPStatus
from textwrap import fill
from zoneinfo import ZoneInfo

from ormsgpack import Ext, packb

from sealpoint import Registry, SealpointError
from sealpoint.ids import Digest

registry = Registry()  # the types that this agent may save and load
blobs: dict[bytes, bytes] = {}


@registry.allow(name="chat.message")
@dataclass
class Message:
    role: str
    text: str
    at: datetime


@registry.allow(name="invoice.plan")
@dataclass
class Plan:
    steps: tuple[str, ...]
    budget: Decimal


def put(blob: bytes) -> bytes:  # a blob is called by its digest
    blobs[name := Digest.of(blob).raw] = blob
    return name


now = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
state = {
    "messages": [Message("user", "Pay invoice 17.", now), Message("agent", "Checking.", now)],
    "plan": Plan(("check", "pay"), Decimal("250.00")),
    "next_run": datetime(2026, 1, 6, 8, 0, tzinfo=ZoneInfo("Europe/Berlin")),
    "paid": {("acme", 4): Decimal("80.10")},
    "seen": {"inv-4", "inv-9"},
}
data = registry.encode(state)
print(f"The state of an agent, saved in {len(data)} bytes, comes back:")
for key, part in registry.decode(data).items():
    assert (part, type(part)) == (state[key], type(state[key])), f"{key} changed"
    print(f"  {key:9} {type(part).__name__:9} equal, of the same type")

history = [Message("agent", f"note {n}: {'pay 250 EUR; ' * 75}", now) for n in range(400)]
root = registry.encode_tree(history, put)
stored = sum(map(len, blobs.values()))
later = Registry()  # newer code, in which Message has other fields and still version 1
later.allow(make_dataclass("Message", ["text", "is_admin"]), name="chat.message")
flood = registry.encode([n * sys.hash_info.modulus for n in range(50_000)])  # all of one hash
for title, attack, *arguments in (
    ("Make the loader run os.system.", registry.decode, packb(Ext(0, packb(["os", "system"])))),
    ("Rename a type.", registry.decode, data.replace(b"chat.message", b"shell.plugin")),
    ("Load old bytes into a class that changed.", later.decode, data),
    ("Hide a byte behind the value.", registry.decode, data + b"\x00"),
    (f"Hang a hash table with {len(flood):,} bytes.", registry.decode, packb(Ext(7, flood))),
    ("Edit a stored blob.", registry.decode_tree, root, lambda n: blobs[n].replace(b"250", b"950")),
    ("Save what nobody allowed.", registry.encode, {**state, "replies": [HTTPStatus.OK]}),
):
    try:
        attack(*arguments)
        sys.exit(f"\nNOT REFUSED: {title}")
    except SealpointError as error:
        lines = (f"  refused  {error.code}: {error.message}", f"  hint     {error.hint}")
        print("", title, *(fill(line, 80, subsequent_indent=" " * 11) for line in lines), sep="\n")

registry.encode_tree([*history, Message("user", "Thanks.", now)], put)
written = sum(map(len, blobs.values())) - stored
print(f"\nOne more message in a history of {stored:,} bytes writes {written:,} bytes.")
