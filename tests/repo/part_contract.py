# SPDX-License-Identifier: Apache-2.0
"""A contract for import-linter: what one part may import of another, module by module.

A module whose path has a name with an underscore in front belongs to its part alone. Any other is
open to other parts if the page of the contract lists it. Names are checked by
`test_part_contract.py`, which reads the same page.
"""

import re
from pathlib import Path
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

__all__ = ["PublicModulesContract", "listed_names"]

_ROW = re.compile(r"^\| `(sealpoint[\w.]*)` \| (.*) \|$", re.MULTILINE)
_NAME = re.compile(r"`(\w+)`")


def listed_names(page: str) -> dict[str, frozenset[str]]:
    """The modules that a page lists, each with its names."""
    rows = _ROW.findall(page.partition("## What a part may use")[2])
    return {module: frozenset(_NAME.findall(names)) for module, names in rows}


def _is_private(module: str) -> bool:
    return any(name.startswith("_") for name in module.split("."))


class PublicModulesContract(Contract):
    """Parts import only public modules of each other, and only those on a page."""

    type_name = "public_modules"
    page = fields.StringField()

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: FBT001
        """Go through every import that crosses from one part to another."""
        del verbose
        listed = listed_names(Path(str(self.page)).read_text(encoding="utf-8"))
        found = sorted(
            f"{module} -> {imported}"
            for module in graph.modules
            for imported in graph.find_modules_directly_imported_by(module)
            if module.partition(".")[0] != imported.partition(".")[0]
            if _is_private(imported) or imported not in listed
        )
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: Any) -> None:
        """Print each import that is not allowed."""
        for line in check.metadata["found"]:
            output.print_error(line)
