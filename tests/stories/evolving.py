# SPDX-License-Identifier: Apache-2.0
"""A program that is started twice: with the old classes it writes a store, with the new it reads.

`python -m tests.stories.evolving write|read allow|graph URL`; the classes are in modules of their
own, which are found by the path. What it read, or why not, is printed as JSON.
"""

import importlib
import json
import sys
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph

import sealpoint
from sealpoint.errors import SealpointError
from sealpoint_langgraph import SealedSaver

HISTORIES = (
    *("added", "removed", "renamed", "reordered", "nested"),
    *("generic", "model", "plain", "attributes", "members"),
)
"""A module each, with the class `Invoice` and a function `make`."""


def _builder(module: Any) -> StateGraph[Any]:
    make: Any = TypedDict
    builder = StateGraph(make("State", {"value": module.DECLARED}, total=False))
    builder.add_node("make", lambda _: {"value": module.make()})
    builder.add_edge(START, "make")
    return builder


def _config(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def _allowed(module: Any) -> sealpoint.Registry:
    registry = sealpoint.Registry()
    for name in module.TYPES:
        registry.allow(getattr(module, name), name=f"shop.{module.TYPES[name]}")
    return registry


def _write(name: str, module: Any, door: str, url: str) -> None:
    if door == "allow":
        with sealpoint.open_store(url, registry=_allowed(module)) as store:
            store.thread(name).save({"value": module.make()})
        return
    with sealpoint.open_store(url) as store:
        builder = _builder(module)
        graph = builder.compile(checkpointer=SealedSaver.for_graph(builder, store))
        graph.invoke({}, _config(name))


def _read(name: str, module: Any, door: str, store: Any) -> Any:
    if door == "allow":
        return store.thread(name).load().state["value"]
    builder = _builder(module)
    graph = builder.compile(checkpointer=SealedSaver.for_graph(builder, store))
    return graph.get_state(_config(name)).values["value"]


def _told(name: str, module: Any, door: str, url: str) -> dict[str, Any]:
    """What a load gives, or its refusal and what the printed code gives."""
    events: list[str] = []

    def note(event: sealpoint.Event) -> None:
        if event.code == "fields-added":
            events.append(event.detail)

    registry = _allowed(module) if door == "allow" else None
    with sealpoint.open_store(url, registry=registry, on_event=note) as store:
        try:
            return {"value": repr(_read(name, module, door, store)), "events": events}
        except SealpointError as error:
            refused = error
    found = {"code": refused.code, "message": refused.message, "hint": refused.hint}
    scope: dict[str, Any] = {"url": url}
    if refused.code == "unknown-type":
        line = refused.hint.partition(": ")[2].splitlines()[0]
        code = (
            "import sealpoint\nregistry = sealpoint.Registry()\n"
            f"{line}\nstore = sealpoint.open_store(url, registry=registry)"
        )
        scope["TheType"] = module.DECLARED
    else:
        code = refused.hint.partition("\n\n")[2]
    exec(code, scope)  # noqa: S102 # the code is there to be pasted
    with scope["store"] as store:
        return {**found, "after": repr(_read(name, module, door, store))}


def main(act: str, door: str, url: str) -> None:
    """Write all histories, or read them."""
    if act == "write":
        sealpoint.init(url)
    found = {}
    for name in HISTORIES:
        module = importlib.import_module(f"shop_{name}")
        if act == "write":
            _write(name, module, door, url)
        else:
            found[name] = _told(name, module, door, url)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
