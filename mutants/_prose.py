# SPDX-License-Identifier: Apache-2.0
"""Which parts of a module are only texts for people: no fault is planted in those.

What a message says is held to its form by other tests. Here belong docstrings, `raise` with its
whole message, formatted texts, strings of several words, and local names that nothing but such
texts uses.
"""

import ast
from collections.abc import Iterator

__all__ = ["is_prose_function", "prose_names", "prose_nodes"]

_PROSE_FUNCTIONS = frozenset(
    {"KindRule.roles_text", "_by", "_found", "_listed", "_short", "_shown", "Request.short"}
)
"""Functions that make a part of a message and nothing else."""

_LABELS = frozenset({"name", "what"})
"""What a loop calls the first column of a table of checks: the word for it in the message."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_prose_function(qualified_name: str) -> bool:
    """Whether a function only makes texts."""
    return qualified_name in _PROSE_FUNCTIONS


def prose_nodes(module: ast.Module) -> set[ast.AST]:
    """Every node that is a text, or a part of one."""
    found: set[ast.AST] = set()
    for node in ast.walk(module):
        found.update(_texts_of(node))
        if isinstance(node, _Function):
            names = prose_names(node)
            for each in ast.walk(node):
                if isinstance(each, ast.Assign) and _bound(each.targets) <= names:
                    found.update(ast.walk(each))
    return found


def _texts_of(node: ast.AST) -> Iterator[ast.AST]:
    """The texts that a node is, or that its own form makes out of its children."""
    if isinstance(node, ast.JoinedStr):
        yield from ast.walk(node)
    elif isinstance(node, ast.Raise):
        for part in (node.exc, node.cause):
            if part is not None:
                yield from ast.walk(part)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
        yield node
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield node.value
    elif isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple):
        yield from _labels(node.target, node.iter)


def _labels(target: ast.expr, table: ast.Tuple) -> Iterator[ast.AST]:
    if not isinstance(target, ast.Tuple):
        return
    for row in table.elts:
        if isinstance(row, ast.Tuple):
            for name, cell in zip(target.elts, row.elts, strict=False):
                if isinstance(name, ast.Name) and name.id in _LABELS:
                    yield from ast.walk(cell)


def prose_names(function: ast.AST) -> set[str]:
    """The local names of a function that nothing but texts uses."""
    assigned = {
        name
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for name in _bound(node.targets)
    }
    prose: set[str] = set()
    while True:
        used = set(_used(function, prose))
        more = {name for name in assigned if name not in used} - prose
        if not more:
            return prose
        prose |= more


def _used(node: ast.AST, prose: set[str]) -> Iterator[str]:
    """The names that are read outside texts, and outside assignments to names of texts."""
    if isinstance(node, ast.JoinedStr | ast.Raise):
        return
    if isinstance(node, ast.Assign) and _bound(node.targets) <= prose:
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _used(child, prose)


def _bound(targets: list[ast.expr]) -> set[str]:
    """The names that an assignment binds; something that is no name, if it binds anything else."""
    return {target.id if isinstance(target, ast.Name) else "." for target in targets}
