# SPDX-License-Identifier: Apache-2.0
"""The command and its groups. Errors of the tree become a message, a hint and an exit status."""

from typing import Any

import click

import sealpoint
from sealpoint.cli._anchor import anchor
from sealpoint.cli._audit import audit, export, verify, verify_bundle_, why
from sealpoint.cli._checkpoints import load_state, log, save, show
from sealpoint.cli._diff import diff
from sealpoint.cli._gate import handoff, pause, resume, unpause
from sealpoint.cli._init import init
from sealpoint.cli._keys import keys
from sealpoint.cli._model import model
from sealpoint.cli._options import wants_json
from sealpoint.cli._policy import policy
from sealpoint.cli._requests import approve, break_glass, deny, relay, request_, requests
from sealpoint.cli._restore import accept_restore_, roster
from sealpoint.cli._retention import erase, gc, prune
from sealpoint.cli._rollout import rollout
from sealpoint.cli._status import status
from sealpoint.cli._terminal import print_error
from sealpoint.cli._threads import threads
from sealpoint.cli._trust import trust
from sealpoint.cli._types import types
from sealpoint.errors import SealpointError, UsageError


class _Command(click.Group):
    """A group that ends with the status of the error that was raised."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SealpointError as error:
            print_error(error, as_json=wants_json(ctx))
            ctx.exit(error.exit_status)
        except click.UsageError as error:
            if not wants_json(ctx):
                raise
            print_error(UsageError(error.format_message()), as_json=True)
            ctx.exit(UsageError.exit_status)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order in which somebody new meets them."""
        del ctx
        return list(self.commands)


@click.group(cls=_Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(sealpoint.__version__, prog_name="sealpoint")
def main() -> None:
    """Sealed checkpoints for durable agents: saved state is an execution surface."""


for _verb in (
    *(init, status, threads, log, show, diff, save, load_state, verify),
    *(pause, unpause, resume, requests, approve, deny, break_glass, handoff, policy, rollout),
    *(request_, relay),
    *(audit, why, export, verify_bundle_, model),
    *(prune, erase, gc, anchor, keys, trust, roster, accept_restore_, types),
):
    main.add_command(_verb)
