# SPDX-License-Identifier: Apache-2.0
"""Every mutant of a module: where a fault is planted, and what it looks like in the source.

A mutant is called by its file, its function, and the source before and after, never by a line
number, so that a written reason survives every edit that does not concern it.
"""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mutants._operators import drops, replacements
from mutants._prose import is_prose_function, prose_nodes

__all__ = ["Key", "Module", "Mutant"]

Key = tuple[str, str, str, str, int]
"""File, function, source before, source after, and which of several that read the same."""

_KEYWORDS_LEFT = frozenset({"frozen", "hash", "hint", "kw_only", "repr", "slots"})
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One fault at one place."""

    file: str
    """Below the package, with forward slashes."""
    function: str
    """The qualified name of the innermost function or class, or `<module>`."""
    before: str
    after: str
    nth: int
    """From 1, of those that read the same in one function."""
    lines: tuple[int, int]
    """First and last line of what runs if the fault is reached."""
    top: str | None
    """The function of the module or of a class that it lies in; None: it is run by importing."""
    edit: tuple[ast.AST, str, object] = field(compare=False, repr=False)
    """What to set: node, field and value."""

    @property
    def key(self) -> Key:
        """What a reason calls it."""
        return self.file, self.function, self.before, self.after, self.nth


@dataclass(frozen=True, slots=True)
class _Site:
    """Where the walk is."""

    parent: ast.AST
    field: str
    place: int | None
    function: str = "<module>"
    top: str | None = None
    statement: ast.stmt | None = None

    def edit(self, new: ast.AST) -> tuple[ast.AST, str, object]:
        """What to set so that another node stands here."""
        if self.place is None:
            return self.parent, self.field, new
        row = list(getattr(self.parent, self.field))
        row[self.place] = new
        return self.parent, self.field, row


class Module:
    """A parsed module with all its mutants."""

    def __init__(self, path: Path, file: str) -> None:
        self.path = path
        self.file = file
        self.source = path.read_text(encoding="utf-8")
        self._lines = self.source.encode().split(b"\n")
        self.tree = ast.parse(self.source)
        self._prose = prose_nodes(self.tree)
        self._seen: Counter[tuple[str, str, str]] = Counter()
        self.mutants = tuple(self._walk(self.tree, "<module>", None, None))

    def changed(self, mutant: Mutant) -> ast.Module:
        """A copy of the tree with the fault in it."""
        node, name, value = mutant.edit
        kept = getattr(node, name)
        try:
            setattr(node, name, value)
            return ast.fix_missing_locations(copy.deepcopy(self.tree))
        finally:
            setattr(node, name, kept)

    # ------------------------------------------------------------------ the walk

    def _walk(
        self, node: ast.AST, function: str, top: str | None, statement: ast.stmt | None
    ) -> Iterator[Mutant]:
        for name, value in ast.iter_fields(node):
            if _is_left(node, name):
                continue
            inner, within = function, top
            if isinstance(node, _Scope) and name == "body":
                inner = _qualified(function, node.name)
                if isinstance(node, _Function) and top is None:
                    within = inner.removeprefix("<module>.")
            children = value if isinstance(value, list) else [value]
            for place, child in enumerate(children):
                if not isinstance(child, ast.AST):
                    continue
                index = place if isinstance(value, list) else None
                own = child if isinstance(child, ast.stmt) else statement
                yield from self._at(child, _Site(node, name, index, inner, within, own))
                yield from self._walk(child, inner, within, own)

    def _at(self, node: ast.AST, site: _Site) -> Iterator[Mutant]:
        if node in self._prose or is_prose_function(site.function):
            return
        if not _is_row(node, site):
            for part, new in drops(node):
                if part not in self._prose or isinstance(part, ast.Tuple):
                    yield self._mutant(part, "…", site, new)
        if _is_condition(site):
            for outcome in (True, False):
                if not (outcome and isinstance(site.parent, ast.While)):
                    yield self._mutant(node, str(outcome), site, ast.Constant(value=outcome))
        if not (isinstance(node, ast.stmt) and _is_alone(site)):
            for new in replacements(node):
                ast.copy_location(new, node)
                yield self._mutant(node, ast.unparse(new), site, new)

    # ------------------------------------------------------------------ how it reads

    def _mutant(self, shown: ast.AST, text: str, site: _Site, new: ast.AST) -> Mutant:
        first, last = _span(shown)
        begin, end = self._lines[first - 1], self._lines[last - 1]
        column, column_end = getattr(shown, "col_offset", 0), getattr(shown, "end_col_offset", 0)
        before = b" ".join(line.strip() for line in self._lines[first - 1 : last])
        after = begin[:column].lstrip() + text.encode() + end[column_end:].rstrip()
        reads = (site.function, before.decode(), after.decode())
        self._seen[reads] += 1
        start = site.statement.lineno if site.statement is not None else first
        if isinstance(site.statement, _Scope | ast.For | ast.While | ast.With | ast.Try):
            start = first
        return Mutant(
            file=self.file,
            function=site.function,
            before=_shortened(reads[1]),
            after=_shortened(reads[2]),
            nth=self._seen[reads],
            lines=(min(start, first), last),
            top=site.top,
            edit=site.edit(new),
        )


def _shortened(text: str, most: int = 160) -> str:
    return text if len(text) <= most else f"{text[: most - 20]} … {text[-17:]}"


def _qualified(function: str, name: str) -> str:
    return name if function == "<module>" else f"{function}.{name}"


def _span(node: ast.AST) -> tuple[int, int]:
    first = getattr(node, "lineno", 1)
    return first, getattr(node, "end_lineno", None) or first


def _is_left(node: ast.AST, name: str) -> bool:
    """Whether a field of a node is left as it is."""
    if name in ("decorator_list", "returns", "ctx", "type_ignores"):
        return True
    if name == "annotation":
        # A bound in an annotation is checked by whoever decodes; other annotations do nothing.
        inside = ast.walk(getattr(node, name) or ast.Pass())
        return not any(isinstance(each, ast.Call) for each in inside)
    if isinstance(node, ast.keyword):
        return node.arg in _KEYWORDS_LEFT
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id == "Callable"  # only a type
    if isinstance(node, ast.Assign) and name == "value":
        targets = {target.id for target in node.targets if isinstance(target, ast.Name)}
        return bool(targets & {"__all__", "__slots__"})
    return False


def _is_condition(site: _Site) -> bool:
    if site.field == "ifs":
        return True
    return site.field == "test" and isinstance(site.parent, ast.If | ast.IfExp | ast.While)


def _is_row(node: ast.AST, site: _Site) -> bool:
    """Whether a tuple is of fixed length, so that a shorter one says nothing."""
    if not isinstance(node, ast.Tuple):
        return False
    if isinstance(site.parent, ast.Compare):
        others = (site.parent.left, *site.parent.comparators)
        return all(isinstance(other, ast.Tuple) for other in others)
    if isinstance(site.parent, ast.Assign):
        return isinstance(site.parent.targets[0], ast.Tuple)
    return isinstance(
        site.parent, ast.Tuple | ast.List | ast.Return | ast.Yield | ast.Subscript | ast.ListComp
    )


def _is_alone(site: _Site) -> bool:
    """Whether a statement is all that a condition guards: then it is the one that never holds."""
    parent = site.parent
    return (
        isinstance(parent, ast.If)
        and site.field == "body"
        and len(parent.body) == 1
        and not parent.orelse
        and not isinstance(parent.body[0], ast.Return | ast.Continue | ast.Break | ast.AugAssign)
    )
