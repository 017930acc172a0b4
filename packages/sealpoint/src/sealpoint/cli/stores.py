# SPDX-License-Identifier: Apache-2.0
"""The store that a verb works on: the options that select it, and opening it.

An option takes precedence over the environment, `config.toml` and the default, in this order;
`sealpoint.config` reads all of them. Verbs that only read open the store read-only: they need no
private key, and write nothing, not even to the anchor.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from sealpoint import api
from sealpoint.adapters import framework_of
from sealpoint.api import Store, open_store
from sealpoint.cli._input_files import parse_json, read_document
from sealpoint.cli.options import common_option, import_object
from sealpoint.cli.terminal import ask_hidden, can_ask, print_line
from sealpoint.codec import Registry
from sealpoint.config import (
    Settings,
    StoreFiles,
    StoreUrl,
    environment_passphrase,
    lasting_forms,
    load_settings,
    read_passphrase_file,
)
from sealpoint.errors import KeyLocked, ObjectNotFound, UrlInvalid, UsageError
from sealpoint.limits import BUNDLE_BYTES_MAX, WORLD_BYTES_MAX
from sealpoint.views import values
from sealpoint.views.words import Styled
from sealpoint.world import World

__all__ = [
    "NEW_FILE_OPTION",
    "StoreOptions",
    "asked_passphrase",
    "bundle_options",
    "chosen_registry",
    "declared_world",
    "first_passphrase",
    "graph_world",
    "import_made",
    "next_passphrase",
    "operator_option",
    "passphrase_option",
    "print_seen_by",
    "reading_bundle",
    "registry_option",
    "shown_registry",
    "shown_registry_options",
    "store_options",
]

# Passphrases on the command line: from the environment, or typed on a terminal.
#
# No option takes a passphrase, because the arguments of a command are in the history of the shell
# and in the list of processes. Typed passphrases are not displayed, and a new one is typed twice.


NEW_FILE_OPTION = "--new-passphrase-file"
_VARIABLES = "set SEALPOINT_PASSPHRASE or SEALPOINT_PASSPHRASE_FILE"

passphrase_option = click.option(
    "--passphrase",
    "encrypt",
    is_flag=True,
    help="Encrypt under a passphrase, from the environment or typed on the terminal.",
)
"""`--passphrase`, on every verb that makes keys."""


def asked_passphrase(name: str) -> str:
    """Return the passphrase of an existing key.

    Raises:
        KeyLocked: The environment has none, and there is no terminal to ask on.
    """
    found = environment_passphrase()
    return _ask("Passphrase of", f"key {name!r}", _VARIABLES) if found is None else found


def first_passphrase(thing: str) -> Callable[[str], str]:
    """Make the function that returns the passphrase of new keys; it asks once for all of them.

    Args:
        thing: The new keys, for the question.
    """
    chosen: list[str] = []

    def choose(_: str) -> str:
        if not chosen:
            found = environment_passphrase()
            chosen.append(_ask_new(thing, _VARIABLES) if found is None else found)
        return chosen[0]

    return choose


def next_passphrase(path: str | None) -> Callable[[str], str]:
    """Make the function that returns the next passphrase of a key: from a file, or typed.

    It never uses the environment, which has the current passphrase of the key.
    """

    def choose(name: str) -> str:
        if path is not None:
            return read_passphrase_file(path, NEW_FILE_OPTION)
        return _ask_new(f"key {name!r}", f"give {NEW_FILE_OPTION}")

    return choose


def _ask_new(thing: str, other_way: str) -> str:
    return _ask("New passphrase of", thing, other_way, again="The same again")


def _ask(question: str, thing: str, other_way: str, *, again: str | None = None) -> str:
    if not can_ask():
        raise KeyLocked(
            f"{thing}: it needs a passphrase, none is set, and there is no terminal to ask on",
            hint=f"Run it on a terminal, or {other_way}.",
        )
    return ask_hidden(f"{question} {thing}", again=again)


_OPERATOR = "operator"
_Function = Callable[..., Any]

registry_option = click.option(
    "--registry",
    "registry_reference",
    metavar="MODULE:OBJECT",
    help="The application's registry, or a graph or workflow that names its types, whose module "
    "is imported; without it, plain types only.",
)
"""`--registry`, on every verb that decodes a state."""


def shown_registry_options(function: _Function) -> _Function:
    """`--registry` and `--untyped`, on verbs that only show a state."""
    untyped = click.option(
        "--untyped/--typed",
        default=None,
        help="Show values of unknown types as plain data, with the type's name, or refuse them. "
        "People are shown plain data by default, programs are not. Types of a framework always "
        "appear this way.",
    )
    return registry_option(untyped(function))


def operator_option(text: str) -> Callable[[_Function], _Function]:
    """`--identity` for verbs of people: the operator unless something names another identity.

    `store_options` adds the value of the environment and the settings file.
    """
    return click.option(
        "--identity",
        "signer",
        metavar="NAME",
        help=f"{text} Else SEALPOINT_IDENTITY, config.toml, 'operator', or the only key here.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """The store that a verb works on, and its directories."""

    url: str
    settings: Settings
    given_config_dir: str | None
    given_state_dir: str | None

    @property
    def directories(self) -> dict[str, Any]:
        """The arguments with the directories of keys and anchor."""
        return {"config_dir": self.settings.config_dir, "state_dir": self.settings.state_dir}

    @property
    def files(self) -> StoreFiles:
        """The files of the store on this machine."""
        return StoreFiles.find(self.settings, StoreUrl.parse(self.url))

    @property
    def operator(self) -> str:
        """The identity of a person who names none: the operator, or the only one with a key."""
        names = self.files.keys.names()
        return names[0] if len(names) == 1 else _OPERATOR

    @property
    def anchor(self) -> str:
        """The widest anchor that records new entries: `local`, `group` or `shared`."""
        if self.files.shared_anchor.url() is not None:
            return "shared"
        return "local" if self.files.group() is None else "group"

    @property
    def admin(self) -> "api.Admin":
        """The administration of the store; it asks for the passphrases of keys that it opens."""
        return api.admin(
            self.url,
            secrets_dir=self.settings.secrets_dir,
            passphrase=asked_passphrase,
            **self.directories,
        )

    def reading(self, registry: Registry | None = None) -> Store:
        """Open the store read-only."""
        return open_store(
            self.url,
            namespace=self.settings.namespace,
            registry=registry,
            read_only=True,
            **self.directories,
        )

    def writing(self, identity: str | None = None, registry: Registry | None = None) -> Store:
        """Open the store for writing as the chosen identity, or as another."""
        return open_store(
            self.url,
            identity=identity or self.settings.identity,
            namespace=self.settings.namespace,
            passphrase=asked_passphrase,
            registry=registry,
            **self.directories,
        )


def store_options(
    *names: str, unless: str | None = None, only_with: str | None = None
) -> Callable[[_Function], _Function]:
    """Give a verb the options `--store`, `--config-dir` and `--state-dir`, and the named ones.

    The function is called with `where`, the resulting `StoreOptions`. It is None if the option
    `unless` is given, because the verb then needs no store, or if `only_with` is not given.
    """
    taken = ("store", *names, "config_dir", "state_dir")

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def run(*args: Any, **options: Any) -> Any:
            chosen = {name: options.pop(name) for name in taken}
            apart = (unless is not None and options[unless] is not None) or (
                only_with is not None and options[only_with] is None
            )
            where = None if apart else _find(**chosen, instead=unless)
            if where is not None and "signer" in options:
                named = options["signer"] or where.settings.identity
                options["signer"] = named or where.operator
            return function(*args, where=where, **options)

        decorated: _Function = run
        for name in reversed(taken):
            decorated = common_option(name)(decorated)
        return decorated

    return decorate


def _find(
    *,
    store: str | None,
    config_dir: str | None,
    state_dir: str | None,
    namespace: str | None = None,
    identity: str | None = None,
    instead: str | None = None,
) -> StoreOptions:
    settings = load_settings(
        store=store,
        identity=identity,
        namespace=namespace,
        config_dir=config_dir,
        state_dir=state_dir,
    )
    if settings.store is None:
        other = "" if instead is None else f"Give --{instead}, which needs no store. Else: "
        raise UsageError(
            "store: no store was named",
            hint=f"{other}Give --store sqlite:///agents.db, set SEALPOINT_STORE, or write "
            f'store = "sqlite:////path/agents.db" into {settings.config_dir / "config.toml"}.',
        )
    if not StoreUrl.parse(settings.store).backend.outlives_process:
        raise UrlInvalid(
            "store: memory: lives in one process alone, and the command line needs a store on disk",
            hint=f"Write {lasting_forms()}.",
        )
    return StoreOptions(
        url=settings.store,
        settings=settings,
        given_config_dir=config_dir,
        given_state_dir=state_dir,
    )


def shown_registry(reference: str | None, *, untyped: bool) -> Registry:
    """Return a registry for viewing a state, which may show unknown types as plain data.

    Raises:
        ObjectNotFound: There is no such object, or it is not a registry.
    """
    return values.shown_registry(chosen_registry(reference), untyped=untyped)


def import_made(reference: str) -> Any:
    """Import a graph, a workflow or another object; call it if it is a plain function.

    Raises:
        ObjectNotFound: There is no such object, or the function fails.
    """
    found = import_object(reference)
    if framework_of(found) is not None or not callable(found):
        return found
    try:
        return found()
    except Exception as exc:
        raise ObjectNotFound(
            f"object {reference!r}: calling it to make what runs raised {type(exc).__name__}",
            hint="Name an object, or a function without parameters that makes it.",
        ) from exc


def chosen_registry(reference: str | None) -> Registry:
    """Return the registry that `--registry` names, that of a graph or workflow, or a plain one.

    Raises:
        ObjectNotFound: There is no such object, or it is none of these.
    """
    found = Registry() if reference is None else import_made(reference)
    if isinstance(found, Registry):
        return found
    framework = framework_of(found)
    if framework is None:
        raise ObjectNotFound(
            f"--registry: expected a sealpoint.Registry, found {type(found).__name__}",
            hint="Name a registry, a graph or workflow whose types are allowed, or a function "
            "without parameters that makes one of them.",
        )
    return framework.declared_types(found)


def graph_world(reference: str) -> World:
    """Return the world of a graph or workflow, or of a function's result; or a named world.

    Raises:
        ObjectNotFound: There is no such object, or the function fails.
        UsageError: It is none of these.
    """
    found = import_made(reference)
    if isinstance(found, World):
        return found
    framework = framework_of(found)
    if framework is None:
        raise UsageError(
            f"object {reference!r}: expected a graph or workflow of a framework that has an "
            f"adapter, found {type(found).__name__}",
            hint="Name what runs, a function without parameters that makes it, or a World.",
        )
    return framework.declared_world(found)


def declared_world(graph: str | None, file: str | None) -> World | None:
    """Return the world that `--graph` names or the file of `--world` holds; None without both.

    Raises:
        UsageError: Both were given, or there is no such object or file.
        WorldInvalid: The document is not a world.
    """
    if graph is not None and file is not None:
        raise UsageError(
            "--graph and --world: expected one of them, found both",
            hint="Give --graph MODULE:OBJECT, or --world FILE.",
        )
    if graph is not None:
        return graph_world(graph)
    if file is None:
        return None
    data = read_document(file, "--world", bytes_max=WORLD_BYTES_MAX)
    document = parse_json(data, "--world")
    if not isinstance(document, dict):
        raise UsageError(f"--world: expected an object, found {type(document).__name__}")
    return World.from_dict(document)


def bundle_options(function: _Function) -> _Function:
    """`--bundle` and `--trust`, on verbs that read an evidence bundle as well as a store."""
    bundle = click.option(
        "--bundle", metavar="FILE", help="Read an evidence bundle of sealpoint export instead."
    )
    trust = click.option(
        "--trust",
        metavar="PIN",
        help="With a bundle: the pin of its store; else the pin of --store.",
    )
    return bundle(trust(function))


def reading_bundle(bundle: str | None, trust: str | None, where: StoreOptions | None) -> Store:
    """Open the store, or the content of a bundle, read-only.

    Raises:
        UsageError: The arguments do not name the input, or the pin to trust.
    """
    if bundle is None:
        if where is None:
            raise UsageError("--trust is the pin of a bundle: name that with --bundle FILE")
        return where.reading()
    pin = trust if where is None else where.files.pin()
    if pin is None:
        raise UsageError("name the pin of the bundle's store with --trust PIN, or its --store")
    return api.open_bundle(read_document(bundle, "--bundle", bytes_max=BUNDLE_BYTES_MAX), pin)


def print_seen_by(where: StoreOptions) -> None:
    """Print the limits of a pause or a denial: anchors of other accounts have not seen it."""
    if where.anchor == "local":
        print_line(
            Styled(
                "Only the anchor of this account has seen it: until a worker under another account "
                "looks at the thread, anyone who can write to the store can revert it unnoticed.",
                "quiet",
            )
        )
