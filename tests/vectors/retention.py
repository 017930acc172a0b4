# SPDX-License-Identifier: Apache-2.0
"""The text of the frozen vectors of retention and restore.

The genuine chains are in `retention_chains.py`, what must be refused is in `retention_refused.py`.
"""

import json
from typing import Any

from tests.vectors import retention_chains as chains
from tests.vectors.ledger import vector_entry
from tests.vectors.retention_chains import Made, digest
from tests.vectors.retention_refused import refused_vectors, row

__all__ = ["retention_vectors"]


def _thread(made: Made, *trust: int) -> dict[str, Any]:
    """A thread, and after how many entries of the store chain it is believed."""
    place = made.ledger.place
    return {
        "place": {"namespace": place.ns, "thread": place.thread},
        "trust": trust,
        "blobs": {digest(blob): blob.hex() for blob in made.blobs},
        "entries": [{**vector_entry(record), **row(record)} for record in made.records],
    }


def retention_vectors() -> str:
    """The text of the frozen file: an entry or a case to a line."""
    store = chains.store_chain()
    threads = {
        "pruned": _thread(chains.pruned(), 1, 2, 5),
        "erased": _thread(chains.erased(), 1, 2, 5),
        "restored": _thread(chains.restored(), 4, 5),
        "begun again": _thread(chains.begun_again(), 4, 5),
    }
    parts = {
        "pin": json.dumps(json.loads(chains.trusted().encode())),
        "lists": json.dumps({digest(data): data.hex() for data in store.blobs.values()}),
        "store_chain": _lines([vector_entry(record) for record in store.records]),
        "threads": "{\n" + ",\n".join(_named(*each) for each in threads.items()) + "\n}",
        "refused": _lines(refused_vectors()),
    }
    body = ",\n".join(f"{json.dumps(name)}: {text}" for name, text in parts.items())
    return "{\n" + body + "\n}\n"


def _lines(vectors: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, vectors)) + "\n]"


def _named(name: str, thread: dict[str, Any]) -> str:
    entries = thread.pop("entries")
    head = json.dumps(thread)[:-1]
    return f'{json.dumps(name)}: {head}, "entries": {_lines(entries)}}}'
