# SPDX-License-Identifier: Apache-2.0
r"""The leaves of a world: what can differ, each with a name of its own.

A name is `KIND.NAME`, after `agent.NAME/` for each sub-agent on the way. NAME is escaped, so that
two leaves never have one name and a name hides nothing: `agent.a\u{2f}b/tool.search`.
"""

from enum import StrEnum, unique
from typing import Any

from sealpoint.world._visible import escape, quoted, unescape

__all__ = ["LeafClass", "class_of", "leaf_words", "leaves_of", "split_leaf"]

_AGENT = "agent."
_MODULE = "module."
_CODE = "code"
_CODE_FIELDS = ("version", "revision")


@unique
class LeafClass(StrEnum):
    """What a leaf is about; each leaf has one class, also one of a sub-agent."""

    TOOLS = "tools"
    """What the run can call, with all that is told of it."""
    PERMISSIONS = "permissions"
    MODEL = "model"
    PROMPTS = "prompts"
    TOPOLOGY = "topology"
    """How steps follow each other, and which sub-agents there are."""
    CODE = "code"
    """The application's own."""
    RUNTIME = "runtime"
    """Versions of what it runs on: the interpreter, frameworks, packages."""
    OTHER = "other"
    """Whatever else the application put into its world."""


_CLASSES = {
    "tool": LeafClass.TOOLS,
    "permission": LeafClass.PERMISSIONS,
    "model": LeafClass.MODEL,
    "prompt": LeafClass.PROMPTS,
    "agent": LeafClass.TOPOLOGY,
    "topology": LeafClass.TOPOLOGY,
    _CODE: LeafClass.CODE,
    "runtime": LeafClass.RUNTIME,
    "extra": LeafClass.OTHER,
}
"""The class of each kind of leaf."""


def leaves_of(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The leaves of a world in its plain form, in no order."""
    rest = dict(data)
    code = rest.pop("code", {})
    made = {f"{prefix}code.{name}": code[name] for name in _CODE_FIELDS if name in code}
    for name, digest in code.get("modules", {}).items():
        made[f"{prefix}code.{_MODULE}{escape(name)}"] = digest
    for tool in rest.pop("tools", []):
        name = tool[0] if isinstance(tool, list) else tool["name"]
        made[f"{prefix}tool.{escape(name)}"] = tool
    for name in rest.pop("permissions", []):
        made[f"{prefix}permission.{escape(name)}"] = True
    for name, value in rest.pop("model", {}).items():
        made[f"{prefix}model.{escape(name)}"] = value
    for name, text in rest.pop("prompts", {}).items():
        made[f"{prefix}prompt.{escape(name)}"] = text
    for name, agent in rest.pop("agents", {}).items():
        # One leaf says that it is there, even if it can do nothing.
        path = f"{prefix}{_AGENT}{escape(name, also='/')}"
        made[path] = {}
        made |= leaves_of(agent, f"{path}/")
    for kind in ("topology", "runtime"):
        for name, value in rest.pop(kind, {}).items():
            made[f"{prefix}{kind}.{escape(name)}"] = value
    for name, value in rest.items():
        made[f"{prefix}extra.{escape(name)}"] = value
    return made


def split_leaf(leaf: str) -> tuple[tuple[str, ...], str, str]:
    """The leaves of the sub-agents around a leaf, outermost first; its kind; its escaped name."""
    around: list[str] = []
    start = 0
    while leaf.startswith(_AGENT, start):
        end = leaf.find("/", start)
        if end < 0:
            break
        around.append(leaf[:end])
        start = end + 1
    kind, _, name = leaf[start:].partition(".")
    return tuple(around), kind, name


def class_of(leaf: str) -> LeafClass:
    """The class of a leaf: that of its own kind, whatever sub-agents are around it."""
    return _CLASSES[split_leaf(leaf)[1]]


def leaf_words(leaf: str) -> str:
    """The name of a leaf for people: `tool shell_exec`, `agent researcher / prompt system`."""
    around, kind, name = split_leaf(leaf)
    words = [f"agent {_shown(agent.rpartition('/')[2].removeprefix(_AGENT))}" for agent in around]
    if kind == _CODE and name.startswith(_MODULE):
        words.append(f"{kind} {_module_words(name.removeprefix(_MODULE))}")
    else:
        words.append(f"{kind} {_shown(name)}")
    return " / ".join(words)


def _module_words(name: str) -> str:
    if name in _CODE_FIELDS:
        # A module that is called like one of our own fields is not taken for it.
        return f"module {name}"
    # The place of a function, and its name: `node.answer: answer`. Each by itself shows where it
    # ends, so that neither can pretend to be the other.
    place, colon, function = unescape(name).partition(": ")
    return f"{quoted(place)}: {quoted(function)}" if place and colon else _shown(name)


def _shown(name: str) -> str:
    return quoted(unescape(name))
