# SPDX-License-Identifier: Apache-2.0
"""The world of a gateway: what an operator decided, as its exact rows and files say it.

Every exact row and file is in exactly one leaf, with its keyed digest; the files of a plugin or
skill share one. So a change of any of them is a difference of the world, whatever the guard knows
about its meaning. Names and settings that
classes.toml and `_CONFIG_SHOWN` list are shown too; tokens, keys and message histories never are.
"""

import itertools
import json
import pwd
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from sealpoint.errors import StorageUnavailable
from sealpoint.world import World
from sealpoint_openclaw._classes import (
    DatabaseKind,
    StateClass,
    TableRule,
    file_class,
    is_known_version,
    table_rule,
)
from sealpoint_openclaw._differences import Difference, shown_row
from sealpoint_openclaw._folder import STATE_DATABASE, Folder
from sealpoint_openclaw._inventory import Inventory, Table

VERSION = "version of "
"""The beginning of the place of a changed version."""
ACCEPTED = "accepted by people"
"""The leaf with the digest of the differences that people accepted last."""

_CONFIG = "openclaw.json"
_EXEC_POLICY = "exec_approvals_config"
_CONFIG_BYTES_MAX = 4 << 20
_TEXT_LETTERS_MAX = 200
# The settings that name folders, by the ends of their paths.
_CONFIG_FOLDERS = (".workspace", ".agentDir", ".transformsDir", ".load.paths", ".load.extraDirs")
# The settings that are shown, by the beginnings of their paths, and the class that each belongs to.
_CONFIG_SHOWN = {
    "agents.defaults.model": "model",
    "agents.defaults.heartbeat": "topology",
    "gateway.bind": "permissions",
    "gateway.mode": "permissions",
    "gateway.auth.mode": "permissions",
    "plugins.load.paths": "permissions",
    "plugins.entries": "permissions",
    "tools": "permissions",
}
# A plugin, a hook or a skill: a folder, or a file, in the first folder of its kind.
_PART = re.compile(r"(?:plugins[^/]*|extensions|(?:.*?/)??(?:hooks|[^/]*skills))/[^/]+", re.DOTALL)
_PROMPTS = ("AGENTS.md", "SOUL.md", "USER.md", "IDENTITY.md", "TOOLS.md", "HEARTBEAT.md", "BOOT.md")


def read_world(
    folder: Folder,
    inventory: Inventory,
    *,
    runtime: Mapping[str, str] | None = None,
    accepted: str | None = None,
) -> World:
    """Return the world of a folder whose inventory has just been read.

    Args:
        folder: The folder.
        inventory: Its inventory, read from the folder and not from a seal.
        runtime: Versions of what runs the gateway.
        accepted: The digest of the differences that people accepted last.
    """
    draft = _Draft()
    versions = dict(runtime or {})
    for path, database in inventory.databases.items():
        kind = DatabaseKind.STATE if path == STATE_DATABASE else DatabaseKind.AGENT
        place = "" if kind is DatabaseKind.STATE else f" of {_plain(path)}"
        versions[f"schema{place or ' of the gateway'}"] = str(database.version)
        draft.other[f"tables{place or ' of the gateway'}"] = database.schema.hex()
        if not is_known_version(kind, database.version):
            draft.other[f"unknown schema version{place}"] = database.version
        for name, table in database.tables.items():
            rule = table_rule(kind, name)
            if not rule.known:
                _put(draft.other, f"unknown table {name}{place}", value=True)
            elif rule.state_class is StateClass.EXACT:
                draft.add_rows(name, place, rule, table)
    draft.add_files(inventory.files)
    draft.add_config(folder)
    if accepted is not None:
        draft.other[ACCEPTED] = accepted
    return World(
        permissions=draft.permissions,
        model=draft.model or None,
        prompts=draft.prompts,
        tools=[{"name": name, "digest": digest} for name, digest in draft.tools.items()],
        topology=draft.topology,
        runtime=versions,
        extra=draft.other,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """The name of a thing that changed, and the part of the change that worlds show."""

    name: str
    former: str = ""
    """Its name before, if that is another."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """The part of it that one world shows."""
    values: tuple[str, ...] = ()
    """The differences between two worlds."""
    is_part: bool = False
    """Whether it is a plugin, a hook or a skill, of which several files may have changed."""


def describe(
    difference: Difference,
    before: tuple[World | None, bytes | None],
    after: tuple[World | None, bytes | None],
) -> Described:
    """Describe a change by the worlds before and after it, and the digests of the row there."""
    old, new = (_described(difference, *each) for each in (before, after))
    values = []
    for key in dict.fromkeys([*old.facts, *new.facts]):
        one, other = old.facts.get(key), new.facts.get(key)
        mark = "+" if one is None else "-" if other is None else ""
        value = f"{one} -> {other}" if one is not None and other is not None else one or other
        if one != other:
            values.append(" ".join(word for word in (mark, key, value) if word))
    is_renamed = bool(old.facts and new.facts) and old.name != new.name
    return Described(
        name=(new if new.facts else old).name,
        former=old.name if is_renamed else "",
        values=tuple(values),
        is_part=new.is_part,
    )


def _described(each: Difference, world: World | None, digest: bytes | None) -> Described:
    """Return what a world shows of the thing that changed."""
    world = World() if world is None else world
    kind, _, rest = each.place.partition(" ")
    if each.place.startswith(VERSION):
        version = world.runtime.get(each.place.removeprefix(VERSION))
        return Described(name=each.place, facts={} if version is None else {"": version})
    if kind == "file" and (part := _PART.match(rest)):
        word = "skill" if "skills/" in part[0] else "plugin"
        return Described(name=f"{word} {part[0].rpartition('/')[2]} ({part[0]})", is_part=True)
    if kind == "file" and rest == _CONFIG:
        return Described(name=each.place, facts=dict(_shown_settings(world)))
    if kind != "table" or each.row is None:
        return Described(name=each.place)
    table, _, path = rest.partition(" of ")
    is_state = path == STATE_DATABASE
    label = table_rule(DatabaseKind.STATE if is_state else DatabaseKind.AGENT, table).label
    place = "" if is_state else f" of {_plain(path)}"
    if not label:
        return Described(name=f"{each.place}, row {shown_row(each.row)}")
    return _row_leaf(world, table, (label, each.row, place), "" if digest is None else digest.hex())


def _row_leaf(world: World, table: str, called: tuple[str, str, str], digest: str) -> Described:
    """Return what a world shows of a row of a table whose rows have a name for people.

    The leaf is found by the digest of the row: a name may imitate that of another row.
    """
    label, row, place = called
    try:
        key = _row_name(row, {})
    except ValueError:  # of an ordered table, which is never in a world
        return Described(name=f"{label} {shown_row(row)}{place}")
    for text in world.permissions:
        if digest and text.startswith(f"{label} ") and text.endswith(f", row {digest[:16]}"):
            name = _title(text, key, place)
            shown = text.removeprefix(name).rpartition(", row ")[0].removeprefix(", ")
            facts = {"": shown} if shown else {}
            if table == _EXEC_POLICY:
                rules = [each for each in world.permissions if each.startswith(f"{label} of ")]
                facts = dict.fromkeys(rules, "")
            return Described(name=name, facts=facts)
    for name, value in world.topology.items():
        if isinstance(value, Mapping) and digest and value.get("row") == digest:
            facts = {key: str(shown) for key, shown in value.items() if key != "row"}
            return Described(name=name, facts=facts)
    return Described(name=f"{label} {key}{place}")


def _title(text: str, key: str, place: str) -> str:
    """Return the name of a row in the text of a permission, which ends with its key."""
    end = f"({key}){place}"
    return text[: text.index(end) + len(end)] if end in text else text.partition(", ")[0]


def _shown_settings(world: World) -> Iterator[tuple[str, str]]:
    """Yield each setting of the configuration that a world shows."""
    for text in world.permissions:
        if text.startswith("setting "):
            name, _, value = text.removeprefix("setting ").partition(": ")
            yield name, value
    for name, shown in [*world.topology.items(), *(world.model or {}).items()]:
        if isinstance(shown, str):
            yield name.removeprefix("setting "), shown


def unguarded_folders(folder: Folder, *own: Path) -> list[str]:
    """Return the folders elsewhere that OpenClaw uses and the guard does not read, with why.

    A workspace may be a link, and the configuration may name folders. If it is not plain JSON,
    nobody knows which.

    Args:
        folder: The folder of the gateway, and those that the guard reads with it.
        own: The guard's own folders, such as that of its plugin, which each start writes again.
    """
    named = [(str(path), "a link") for path in folder.root.glob("workspace*") if path.is_symlink()]
    document = _config(folder)
    named += _named_folders(document)
    covered = [path.resolve() for path in (folder.root, *folder.others.values(), *own)]
    try:
        home = pwd.getpwuid(folder.root.stat().st_uid).pw_dir
    except KeyError:
        home = "~"
    found = []
    for text, setting in named:
        path = Path(home + text[1:] if text == "~" or text.startswith("~/") else text)
        whole = path.resolve() if path.is_absolute() and "\0" not in text else path
        if not any(whole.is_relative_to(each) for each in covered):
            found.append(_plain(f"{path} ({setting})"))
    if document is None and (folder.root / _CONFIG).exists():
        found.append(f"any folder that {_CONFIG} names, because it is not plain JSON")
    return list(dict.fromkeys(found))


def _named_folders(node: Any, setting: str = "") -> Iterator[tuple[str, str]]:
    """Yield each folder that a configuration names, with its setting."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _named_folders(value, f"{setting}.{key}" if setting else key)
    elif isinstance(node, list):
        for value in node:
            yield from _named_folders(value, setting)
    elif isinstance(node, str) and setting.endswith(_CONFIG_FOLDERS):
        yield node, setting


def _config(folder: Folder) -> Any:
    """Return the configuration; None if there is none that is plain JSON."""
    path = folder.root / _CONFIG
    try:
        if not path.is_file() or path.stat().st_size > _CONFIG_BYTES_MAX:
            return None
        return json.loads(path.read_text("utf-8"))
    except OSError as exc:
        raise StorageUnavailable(f"{path}: it cannot be read: {exc.strerror}") from exc
    except (ValueError, RecursionError):
        return None


class _Draft:
    """The leaves of a world that is being read."""

    def __init__(self) -> None:
        self.permissions: list[str] = []
        self.model: dict[str, Any] = {}
        self.prompts: dict[str, str] = {}
        self.tools: dict[str, str] = {}
        self.topology: dict[str, Any] = {}
        self.other: dict[str, Any] = {}

    def add_rows(self, name: str, place: str, rule: TableRule, table: Table) -> None:
        """Add a leaf for each row of an exact table."""
        for key, digest in table.rows.items():
            shown = table.shown.get(key, {})
            if name == _EXEC_POLICY:
                self.permissions += _exec_policy(shown)
                shown = {}
            called = _plain(f"{rule.label or name} {_row_name(key, shown)}{place}")
            if rule.world == "permissions":
                # The digest is part of the text: any change of the row is a new permission.
                parts = [f"{path} {_short(value)}" for path, value in shown.items()]
                self.permissions.append(", ".join([called, *parts, f"row {digest.hex()[:16]}"]))
            elif rule.world == "topology":
                words = {path: _short(value) for path, value in shown.items()}
                _put(self.topology, called, {"row": digest.hex()} | words)
            else:
                _put(self.other, called, digest.hex())

    def add_files(self, files: Mapping[str, bytes]) -> None:
        """Add a leaf for each plugin, hook and skill, and one for each other exact file.

        A plugin may have 10,000 files, and a world has a limit.
        """
        parts: dict[str, Any] = {}
        for path, digest in sorted(files.items()):
            if file_class(path) is not StateClass.EXACT:
                continue
            if part := _PART.match(path):
                parts.setdefault(part[0], sha256()).update(path.encode() + b"\0" + digest)
            elif path.rpartition("/")[2] in _PROMPTS:
                self.prompts[path] = digest.hex()
            else:
                _put(self.other, f"file {path}", digest.hex())
        for name, whole in parts.items():
            if "skills/" in name:
                self.prompts[f"skill {name}"] = whole.hexdigest()
            else:
                self.tools[name] = whole.hexdigest()

    def add_config(self, folder: Folder) -> None:
        """Add what the configuration says, if it is plain JSON; its digest counts in any case."""
        for setting, value in _settings(_config(folder)):
            for start, world in _CONFIG_SHOWN.items():
                if setting == start or setting.startswith(f"{start}."):
                    self._add_setting(world, _short(setting), _short(value))

    def _add_setting(self, world: str, setting: str, value: str) -> None:
        if world == "model":
            _put(self.model, setting, value)
        elif world == "topology":
            _put(self.topology, f"setting {setting}", value)
        else:
            self.permissions.append(f"setting {setting}: {value}")


def _put(leaves: dict[str, Any], name: str, value: Any) -> None:
    """Add a leaf; if its name is taken, under the next number: no leaf replaces another one."""
    names = itertools.chain([name], (f"{name} ({number})" for number in itertools.count(2)))
    leaves[next(each for each in names if each not in leaves)] = value


def _exec_policy(shown: Mapping[str, Any]) -> Iterator[str]:
    """Yield a permission for each setting of the approval policy for commands."""
    for name, policy in [("defaults", shown.get("defaults")), *_agents(shown)]:
        if not isinstance(policy, dict):
            continue
        for setting, value in sorted(policy.items()):
            if setting == "allowlist" and isinstance(value, list):
                for entry in value:
                    pattern = entry.get("pattern") if isinstance(entry, dict) else entry
                    yield f"exec policy of {name}: may run {_short(pattern)}"
            else:
                yield f"exec policy of {name}: {_short(setting)} {_short(value)}"


def _agents(shown: Mapping[str, Any]) -> list[tuple[str, Any]]:
    agents = shown.get("agents")
    if not isinstance(agents, dict):
        return []
    return [(_short(name), policy) for name, policy in sorted(agents.items())]


def _settings(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each setting of a configuration that is not an object, with its path."""
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from _settings(value, f"{path}.{key}" if path else key)
    else:
        yield path, node


def _row_name(key: str, shown: Mapping[str, Any]) -> str:
    """Return what people call a row: its name, which may be cut, and its key, which is not."""
    parts = json.loads(key) if key.startswith("[") else [key]
    texts = "/".join(str(part) for part in parts if part is not None)
    named = next((shown[each] for each in ("name", "display_name") if shown.get(each)), None)
    return texts if named is None else f"{_short(named)} ({texts})"


def _plain(text: str) -> str:
    """Return a text that every world can hold: halves of a character are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _short(value: Any) -> str:
    """Return a value as a short text."""
    text = _plain(value if isinstance(value, str) else json.dumps(value, sort_keys=True))
    return text if len(text) <= _TEXT_LETTERS_MAX else f"{text[:_TEXT_LETTERS_MAX]}..."
