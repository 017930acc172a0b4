# SPDX-License-Identifier: Apache-2.0
"""Parts: distributions that add verbs, backends, anchors, frameworks and checks to the core.

A part registers an object under a name, as an entry point of its distribution: a verb by its name,
a backend by the scheme of its URLs. Only this module reads entry points. It imports nothing until a
name is requested, and treats third-party parts like ours. Callers look up names of the core first,
so that no part can replace them. Two parts with one name are refused.

For a name of one of our parts that is not installed, the error gives the command that installs it.
The names come from the user who runs the program, or from a configured URL, and never from stored
data: the lookup finds only parts that are installed in this environment.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

from sealpoint.errors import ConfigError, ExtraMissing

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ANCHORS = "sealpoint.anchors"
"""By the scheme of a URL: an `AnchorBackend`."""
CHECKS = "sealpoint.checks"
"""`PartChecks`, for `sealpoint doctor`."""
FRAMEWORKS = "sealpoint.frameworks"
"""By an outermost package of its classes: a `Framework`."""
STORAGES = "sealpoint.storages"
"""By the scheme of a URL: a `Backend`."""
VERBS = "sealpoint.verbs"
"""By the words of the verb, joined by a dot: a click command."""

_KINDS = {
    ANCHORS: "anchor",
    CHECKS: "checks",
    FRAMEWORKS: "framework",
    STORAGES: "store",
    VERBS: "verb",
}
_OURS = {
    ANCHORS: {"postgresql": "sealpoint-postgres"},
    CHECKS: {},
    FRAMEWORKS: {
        "agent_framework": "sealpoint-agent-framework",
        "agent_framework_declarative": "sealpoint-agent-framework",
        "agent_framework_orchestrations": "sealpoint-agent-framework",
        "langchain": "sealpoint-langgraph",
        "langchain_core": "sealpoint-langgraph",
        "langgraph": "sealpoint-langgraph",
    },
    STORAGES: {"postgresql": "sealpoint-postgres"},
    VERBS: {
        "import.agent-framework": "sealpoint-agent-framework",
        "model": "sealpoint-models",
        "openclaw": "sealpoint-openclaw",
        "provision.postgres": "sealpoint-postgres",
        "scan": "sealpoint-models",
        "serve": "sealpoint-console",
    },
}
"""The names that our own parts provide, installed or not."""


def names(group: str) -> tuple[str, ...]:
    """Return the names that parts have registered, and those of our missing parts."""
    return tuple(sorted({*installed_names(group), *_OURS[group]}))


def installed_names(group: str) -> tuple[str, ...]:
    """Return the names that installed parts have registered."""
    return tuple(sorted(_entry_points(group)))


def load(group: str, name: str) -> Any:
    """Load the object that a part has registered under a name; None if no part has.

    Raises:
        ExtraMissing: The part is not installed, or a package that it needs is not.
        ConfigError: Two distributions have registered the name.
    """
    found = _entry_points(group).get(name, ())
    if len(found) > 1:
        rivals = " and ".join(sorted(_distribution(each) for each in found))
        raise ConfigError(
            f"{_KINDS[group]} {name}: {rivals} both bring it",
            hint="Uninstall the one that is not meant: pip uninstall NAME",
        )
    if not found:
        if (ours := _OURS[group].get(name)) is None:
            return None
        raise _missing(group, name, ours, ours)
    (entry,) = found
    try:
        return entry.load()
    except ModuleNotFoundError as exc:
        package = str(exc.name).partition(".")[0]
        if package == entry.module.partition(".")[0]:
            raise  # a broken installation: the error is clear by itself
        ours = _OURS[group].get(name) or _distribution(entry)
        raise _missing(group, name, package, ours) from exc


def _missing(group: str, name: str, expected: str, part: str) -> ExtraMissing:
    name = name.replace(".", " ")
    return ExtraMissing(
        f"{_KINDS[group]} {name}: expected {expected}, found it missing: pip install {part}"
    )


def _distribution(entry: "EntryPoint") -> str:
    return "an unknown distribution" if entry.dist is None else entry.dist.name


@cache
def _entry_points(group: str) -> "dict[str, tuple[EntryPoint, ...]]":
    """Return the entry points of a group by name, without duplicates of one distribution."""
    # This import takes longer than a verb of the core, so it happens only when a part is requested.
    from importlib.metadata import entry_points  # noqa: PLC0415

    found: dict[str, dict[str, EntryPoint]] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, {}).setdefault(_distribution(entry), entry)
    return {name: tuple(each.values()) for name, each in found.items()}
