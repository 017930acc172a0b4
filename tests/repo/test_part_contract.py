# SPDX-License-Identifier: Apache-2.0
"""What a part may use of another one stands on one page, name by name."""

import ast
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.repo._tree import PARTS, REFERENCE, ROOT, shown, source_files, source_tree
from tests.repo.part_contract import listed_names

_PAGE = listed_names((REFERENCE / "parts.md").read_text(encoding="utf-8"))


def _across(path: Path) -> Iterator[tuple[str, str]]:
    """The module and the name of whatever a file imports from another part."""
    own = next(module for module in PARTS.values() if f"/src/{module}/" in path.as_posix())
    for node in ast.walk(source_tree(path)):
        if isinstance(node, ast.ImportFrom):
            base = str(node.module)
            if base.partition(".")[0] in PARTS.values() and base.partition(".")[0] != own:
                yield from ((base, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                if top in PARTS.values() and top != own:
                    yield alias.name, ""


def _is_listed(module: str, name: str) -> bool:
    if f"{module}.{name}" in _PAGE:
        return True  # a module that is listed itself
    return module in _PAGE and (not name or name in _PAGE[module])


def test_parts_use_only_names_of_the_page() -> None:
    """A name of another part is one that the page lists."""
    found = [
        f"{shown(path)}: {module} {name}"
        for path in source_files()
        for module, name in _across(path)
        if not _is_listed(module, name)
    ]

    assert not found


@pytest.mark.parametrize("module", sorted(_PAGE))
def test_listed_names_are_there(module: str) -> None:
    """The page lists names that the module has."""
    found = import_module(module)

    assert not [name for name in _PAGE[module] if not hasattr(found, name)]


def test_parts_have_one_version_and_one_licence() -> None:
    """Each pyproject.toml has the version of the core, and asks for the same of other parts."""
    version = import_module("sealpoint").__version__
    licence = (ROOT / "LICENSE").read_bytes()
    for name in PARTS:
        folder = ROOT / "packages" / name
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        named = [*project["dependencies"]]
        for extra in project.get("optional-dependencies", {}).values():
            named += extra
        others = [each for each in named if each.startswith("sealpoint") and "==" in each]

        assert project["version"] == version, name
        assert all(each.endswith(f"=={version}") for each in others), name
        assert (folder / "LICENSE").read_bytes() == licence, name
        assert (folder / "README.md").is_file(), name
