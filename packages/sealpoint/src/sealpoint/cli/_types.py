# SPDX-License-Identifier: Apache-2.0
"""`sealpoint types`: the types that may be saved."""

import inspect
from collections.abc import Callable
from typing import Any

import click

from sealpoint.cli.options import VerbGroup, import_object, json_option
from sealpoint.cli.stores import chosen_registry
from sealpoint.cli.terminal import print_json, print_line, print_table
from sealpoint.codec import BUILTINS, PLAIN_REASONS, Explanation, Registry
from sealpoint.errors import EncodeError, ObjectNotFound


@click.group(cls=VerbGroup)
def types() -> None:
    """List the types that may be saved, and how to allow more."""


@types.command("explain")
@click.argument("reference", metavar="MODULE:OBJECT")
@click.option(
    "--registry",
    "registry_reference",
    metavar="MODULE:OBJECT",
    help="The application's registry; without it, the module's own `registry`, else an empty one.",
)
@json_option
def explain(reference: str, registry_reference: str | None, *, as_json: bool) -> None:
    """List every type in OBJECT, whether it is allowed, and the line that allows it.

    OBJECT is a value in MODULE, or a function without arguments that returns one. The command
    imports MODULE, so its code runs. The exit status is 0 if the whole value can be saved, else 10.
    """
    value = import_object(reference)
    if inspect.isfunction(value):
        value = _returned(value, reference)
    registry = _registry(reference, registry_reference)
    explanation = registry.explain(value)
    if as_json:
        print_json(_document(explanation))
    else:
        _print(explanation)
    if not explanation.allowed:
        click.get_current_context().exit(EncodeError.exit_status)


def _returned(function: Callable[[], Any], reference: str) -> Any:
    try:
        return function()
    except Exception as exc:
        message = f"function {reference!r}: expected a value, found {type(exc).__name__}: {exc}"
        raise ObjectNotFound(message) from exc


def _registry(reference: str, registry_reference: str | None) -> Registry:
    if registry_reference is None:
        module = reference.partition(":")[0]
        try:
            found: Any = import_object(f"{module}:registry")
        except ObjectNotFound:
            return Registry()
        return found if isinstance(found, Registry) else Registry()
    return chosen_registry(registry_reference)


def _document(explanation: Explanation) -> dict[str, Any]:
    return {
        "allowed": explanation.allowed,
        "fault": explanation.fault,
        "types": [use.as_dict() for use in explanation.types],
    }


def _print(explanation: Explanation) -> None:
    print_table(
        ("allowed", "type", "count", "first at"),
        [
            ("yes" if use.allowed else "NO", use.type_name, str(use.count), use.path)
            for use in explanation.types
        ],
    )
    print_line("")
    if explanation.allowed:
        print_line("Everything in it can be saved.")
        return
    print_line("To save it, write or change:")
    for line in explanation.lines:
        print_line(f"  {line}")


@types.command("list")
@json_option
def list_types(*, as_json: bool) -> None:
    """List the types that need no rule, each with the reason why it is safe."""
    rows = [(_name(kind), reason) for kind, reason in PLAIN_REASONS.items()]
    rows += [
        (_name(kind), builtin.reason)
        for builtin in BUILTINS
        for kind in builtin.types
        if kind not in PLAIN_REASONS
    ]
    if as_json:
        print_json([{"type": name, "reason": reason} for name, reason in rows])
    else:
        print_table(("type", "why it is safe"), rows)


def _name(kind: type) -> str:
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
