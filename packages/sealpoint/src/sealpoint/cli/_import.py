# SPDX-License-Identifier: Apache-2.0
"""`sealpoint import`: checkpoints of another storage, brought into the store.

Parts bring the verbs, one for each kind of storage.
"""

import click

from sealpoint.cli.options import PartGroup


@click.group("import", cls=PartGroup)
def import_() -> None:
    """Bring checkpoints of another storage into the store, executing nothing."""
