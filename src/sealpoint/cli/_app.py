# SPDX-License-Identifier: Apache-2.0
"""The command and its groups. Errors of the tree become a message, a hint and an exit status."""

from typing import Any

import click

import sealpoint
from sealpoint.cli._options import wants_json
from sealpoint.cli._terminal import print_error
from sealpoint.cli._types import types
from sealpoint.errors import SealpointError

__all__ = ["main"]


class _Command(click.Group):
    """A group that ends with the status of the error that was raised."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SealpointError as error:
            print_error(error, as_json=wants_json(ctx))
            ctx.exit(error.exit_status)


@click.group(cls=_Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(sealpoint.__version__, prog_name="sealpoint")
def main() -> None:
    """Sealed checkpoints for durable agents: saved state is an execution surface."""


main.add_command(types)
