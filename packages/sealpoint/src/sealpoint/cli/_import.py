# SPDX-License-Identifier: Apache-2.0
"""`sealpoint import`: import checkpoints of another storage into the store.

Parts provide the verbs, one for each kind of storage.
"""

import click

from sealpoint.cli.options import PartGroup


@click.group("import", cls=PartGroup)
def import_() -> None:
    """Import checkpoints from another storage, and execute nothing in them."""
