# SPDX-License-Identifier: Apache-2.0
"""`sealpoint provision`: an administrator prepares a database. Parts provide the verbs."""

import click

from sealpoint.cli.options import PartGroup


@click.group(cls=PartGroup)
def provision() -> None:
    """Prepare a database: schema, roles, grants and logins."""
