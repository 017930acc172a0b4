# SPDX-License-Identifier: Apache-2.0
"""What an adapter says when its framework is not installed: one sentence with the command."""

from sealpoint.errors import ExtraMissing

__all__ = ["extra_missing"]


def extra_missing(extra: str, packages: tuple[str, ...], cause: ModuleNotFoundError) -> Exception:
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
    return ExtraMissing(
        f"sealpoint.adapters.{extra}: expected {package.replace('_', '-')}, found it missing: "
        f"pip install 'sealpoint[{extra}]'"
    )
