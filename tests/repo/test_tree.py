# SPDX-License-Identifier: Apache-2.0
"""The tree keeps the house rules on shape: sizes, docstrings, names, licence lines, places."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repo._tree import (
    PARTS,
    ROOT,
    SOURCES,
    below_source,
    committed_texts,
    parsed,
    shown,
    source_files,
    source_tree,
)

_FUNCTION_LINES_MAX = 70
_SPDX = "# SPDX-License-Identifier: Apache-2.0"
_DRAWERS = {"base", "common", "helper", "helpers", "misc", "util", "utils"}
_CHANGE_KINDS = ["Security", "Removed", "Deprecated", "Added", "Changed", "Fixed"]

# Put together here, so that this file does not hold what it looks for.
_MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(?:work|root)(?![\w.-])")
_REGISTRY_HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("debian", "org"),
        ("pytorch", "org", "whl"),
        ("download", "pytorch", "org"),
        ("anaconda", "org"),
    )
)
_REGISTRY_OPTIONS = ("--index-url", "--extra-index-url", "--find-links", "--trusted-host")


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    """Every module of every part, parsed once."""
    return {path: source_tree(path) for path in source_files()}


def _public_names(tree: ast.Module) -> list[str] | None:
    """Read the `__all__` of a module, or None where it has none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            value = ast.literal_eval(node.value)
            return [str(name) for name in value]
    return None


def _order(name: str) -> tuple[int, str]:
    """Sort as ruff's RUF022 does: constants, then classes, then the rest."""
    if name.isupper():
        return 0, name
    return (1, name) if name[:1].isupper() else (2, name)


def _is_public(path: Path) -> bool:
    parts = below_source(path).with_suffix("").parts
    return all(part == "__init__" or not part.startswith("_") for part in parts)


def test_functions_fit_on_a_screen(trees: dict[Path, ast.Module]) -> None:
    """A function has at most 70 lines, its docstring included."""
    long = [
        f"{shown(path)}: {node.name}: {lines} lines"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > _FUNCTION_LINES_MAX
    ]

    assert trees
    assert not long


def test_modules_open_with_their_licence_and_what_they_guarantee(
    trees: dict[Path, ast.Module],
) -> None:
    """A source file begins with the SPDX line, which it has once, then a docstring."""
    texts = {path: path.read_text(encoding="utf-8") for path in trees}

    assert not [shown(path) for path, text in texts.items() if text.split("\n")[0] != _SPDX]
    assert not [shown(path) for path, text in texts.items() if text.count(_SPDX) != 1]
    assert not [shown(path) for path, tree in trees.items() if not ast.get_docstring(tree)]


def test_public_names_are_listed_sorted_and_real(trees: dict[Path, ast.Module]) -> None:
    """A module that users may import lists its names, in order, each once and bound."""
    wrong = [f"{shown(path)}: {fault}" for path in trees for fault in _list_faults(path, trees)]

    assert not wrong


def _list_faults(path: Path, trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Say what is wrong with the list of names of a module."""
    names = _public_names(trees[path])
    if names is None:
        only_docstring = all(isinstance(node, ast.Expr) for node in trees[path].body)
        if _is_public(path) and not only_docstring:
            yield "a public module needs an __all__"
        return
    if names != sorted(set(names), key=_order):
        yield "its names are not sorted, or one is there twice"
    if unbound := set(names) - _bound_names(trees[path]):
        yield f"it does not bind {sorted(unbound)}"


def _bound_names(tree: ast.Module) -> set[str]:
    """Collect what the top level of a module binds."""
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    return bound


def test_no_module_is_a_drawer() -> None:
    """There is no module or package called utils, helpers, common, base or the like."""
    parts = {part.strip("_") for path in source_files() for part in _module_parts(path)}

    assert not parts & _DRAWERS


def _module_parts(path: Path) -> tuple[str, ...]:
    return below_source(path).with_suffix("").parts


def test_package_says_that_it_is_typed() -> None:
    """The package carries the marker that makes type checkers read it."""
    for source, module in zip(SOURCES, PARTS.values(), strict=True):
        assert (source / module / "py.typed").is_file(), module


def test_no_text_names_a_machine_or_a_registry() -> None:
    """No committed text holds a path of somebody's machine or the address of a registry."""
    found = [
        f"{shown(path)}:{number}: {line.strip()[:80]}"
        for path, text in committed_texts()
        for number, line in enumerate(text.splitlines(), start=1)
        if _MACHINE_PATH.search(line) or any(host in line for host in _REGISTRY_HOSTS)
    ]

    assert not found


def test_planted_machine_path_is_caught() -> None:
    """The pattern for machine paths finds them, and leaves relative paths alone."""
    slash = "/"

    assert _MACHINE_PATH.search(f"see {slash}work/main")
    assert _MACHINE_PATH.search(f'"{slash}root"')
    assert not _MACHINE_PATH.search(
        f"docs{slash}work{slash}notes, trees{slash}root, {slash}workers"
    )


def test_requirements_are_exact_hashed_and_name_no_address() -> None:
    """Every line of dev.txt pins one version with hashes; no requirements file names an index."""
    pinned = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    joined = pinned.replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if line and not line.startswith("#")]

    assert lines
    assert not [line[:60] for line in lines if not re.match(r"[a-z0-9][a-z0-9.-]*==\S+ ", line)]
    assert not [line[:60] for line in lines if "--hash=sha256:" not in line]
    for path in sorted((ROOT / "requirements").iterdir()):
        text = path.read_text(encoding="utf-8")
        assert not [option for option in _REGISTRY_OPTIONS if option in text], shown(path)
        assert "://" not in text, shown(path)


def test_every_test_states_its_claim_in_a_sentence() -> None:
    """Every test has a docstring that is one paragraph and ends with a full stop."""
    silent = [
        f"{shown(path)}: {node.name}"
        for folder in (ROOT / "tests", *ROOT.glob("packages/*/tests"))
        for path in sorted(folder.rglob("test_*.py"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not _is_one_sentence(ast.get_docstring(node) or "")
    ]

    assert not silent


def _is_one_sentence(docstring: str) -> bool:
    return docstring.endswith(".") and "\n\n" not in docstring


def test_changelog_keeps_the_order_of_kinds() -> None:
    """Under each version, the kinds of change come in the order that matters to users."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = text.split("\n## ")[1:]

    assert versions[0].startswith("Unreleased")
    for version in versions:
        kinds = [line.removeprefix("### ") for line in version.splitlines() if line[:4] == "### "]
        assert kinds == [kind for kind in _CHANGE_KINDS if kind in kinds]
        assert kinds, version.splitlines()[0]


def test_decision_records_are_numbered_without_holes() -> None:
    """Decision records count 0001, 0002, and so on."""
    numbers = sorted(path.name[:4] for path in (ROOT / "docs" / "adr").glob("0*.md"))

    assert numbers
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]
