# SPDX-License-Identifier: Apache-2.0
"""What an adapter says when its framework is missing or too old: one sentence with the command."""

from contextlib import suppress

from sealpoint.config import code_of
from sealpoint.errors import ExtraMissing, WorldInvalid


def extra_missing(extra: str, packages: tuple[str, ...], cause: ImportError) -> Exception:
    """The error for an import that failed.

    Args:
        extra: The extra that brings the packages, and the name of its adapter.
        packages: The packages of the framework, as they are imported.
        cause: Why the import failed.

    Returns:
        An error that says what to install, or `cause` itself when something else was missing: an
        installation that is broken says so itself.
    """
    package = str(cause.name).partition(".")[0]
    if package not in packages:
        return cause
    name = package.replace("_", "-")
    found, command = "it missing", "pip install"
    if cause.name != package:
        # A part of it is missing: it is there, and too old.
        with suppress(WorldInvalid):
            found = f"release {code_of(name).version}, which lacks {_lacking(cause)}"
            command = "pip install -U"
    return ExtraMissing(
        f"sealpoint.adapters.{extra}: expected {name}, found {found}: "
        f"{command} 'sealpoint[{extra}]'"
    )


def _lacking(cause: ImportError) -> str:
    """What could not be imported: a module, or a name of one."""
    name = getattr(cause, "name_from", None)
    return str(cause.name) if name is None else f"{cause.name}.{name}"
