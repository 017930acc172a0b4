# SPDX-License-Identifier: Apache-2.0
"""Options that many verbs share."""

import click

__all__ = ["json_option", "reason_option", "wants_json"]

_KEY = "sealpoint.json"


def _remember(ctx: click.Context, _: click.Parameter, value: bool) -> bool:  # noqa: FBT001
    ctx.meta[_KEY] = value
    return value


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    is_eager=True,
    callback=_remember,
    help="Print JSON instead of a table.",
)
"""`--json`, on every verb that reads; errors are then JSON as well."""

reason_option = click.option("--reason", required=True, metavar="TEXT", help="Why; it is recorded.")
"""`--reason`, on every verb that decides something about a thread."""


def wants_json(ctx: click.Context) -> bool:
    """Whether the verb that ran was asked for JSON."""
    return bool(ctx.meta.get(_KEY, False))
