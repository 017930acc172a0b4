# SPDX-License-Identifier: Apache-2.0
"""`sealpoint provision`: a database made ready by its administrator. Parts bring the verbs."""

import click

from sealpoint.cli.options import PartGroup


@click.group(cls=PartGroup)
def provision() -> None:
    """Make a database ready: schema, roles, grants and logins."""
