# SPDX-License-Identifier: Apache-2.0
"""Chat templates, which are programs for Jinja: whether one accesses more than its data.

A template is judged by the tree of Jinja's own parser, and never run. It may use its data: names,
their fields and items, loops, conditions, filters and tests. It goes beyond that with an attribute
that begins with an underscore, a name that it assembles itself, a filter that takes attributes by
name, `format`, which takes them out of a text, and other templates.

A key that comes with the data belongs to the data; one that the template assembles does not,
because its value is unknown.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeGuard

from jinja2 import Environment, TemplateSyntaxError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from sealpoint_models.scan._byte_source import Budget
from sealpoint_models.scan._format_detection import TEMPLATE_SUFFIXES, suffix_of
from sealpoint_models.scan._report import ScanFinding
from sealpoint_models.scan._torch_zip import shown

_BY_ATTRIBUTE = {
    **dict.fromkeys(("attr", "groupby", "rejectattr", "selectattr", "sum"), 0),
    **dict.fromkeys(("max", "min", "unique"), 1),
    "sort": 2,
}
"""Filters that look an attribute up, with the place at which they are given its name."""
_FORMATS = frozenset({"format", "format_map"})
_ELSEWHERE = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
_KEEPS = frozenset(
    {
        *("default", "dictsort", "first", "float", "get", "int", "items", "keys", "last", "length"),
        *("list", "lower", "lstrip", "reject", "rejectattr", "reverse", "rstrip", "select"),
        *("selectattr", "sort", "split", "strip", "trim", "unique", "upper", "values"),
    }
)
"""Filters and methods that return the values of the data, or a part of them."""
_NAMES_MAX = 256
_GIVEN_MAX = 4096
_TOKENS = ("_token", "_tokens")
_TRUTHS = (nodes.Compare, nodes.Not, nodes.Test)


class _Generation(Extension):
    """The tag by which trainers mark what a model has said: what is in it counts as it is."""

    tags = {"generation"}  # noqa: RUF012 - Jinja reads it from the class

    def parse(self, parser: Parser) -> nodes.Node:
        number = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=number)


_ENVIRONMENT = Environment(
    extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do", _Generation],
    autoescape=True,  # nothing is rendered
)


def templates_in(name: str, text: bytes) -> Iterator[tuple[str, str]]:
    """The templates in such a text, each with what it is called.

    Raises:
        ValueError: It is not text, or not JSON where it should be.
    """
    if suffix_of(name) in TEMPLATE_SUFFIXES:
        yield "the template", text.decode("utf-8")
        return
    found = json.loads(text)
    given = found.get("chat_template") if isinstance(found, dict) else None
    for number, each in enumerate(given if isinstance(given, list) else [given]):
        told = each.get("template") if isinstance(each, dict) else each
        if isinstance(told, str):
            yield f"template {number + 1}" if number else "chat_template", told


def judge_template(
    named: str, template: str, budget: Budget, offset: int | None = None
) -> Iterator[ScanFinding]:
    """A note that there is a template, and a finding if it accesses more than its data.

    Raises:
        ModelLimitExceeded: All templates of the file together are longer than they may be.
    """
    yield ScanFinding(
        rule="template",
        message=f"{named} is text for a template engine, which has to be sandboxed",
        offset=offset,
    )
    budget.template(len(template), named)
    try:
        reaches = next(template_reaches(template), None)
    except ValueError as error:
        yield ScanFinding(rule="malformed", message=f"{named}: {error}", offset=offset)
        return
    if reaches is not None:
        yield ScanFinding(
            rule="names-code",
            message=f"{named} reaches for more than its data: {shown(reaches)[1:-1]}",
            offset=offset,
        )


def template_reaches(template: str) -> Iterator[str]:
    """All ways in which a template accesses more than its data, in words.

    Raises:
        ValueError: It is not a template of Jinja.
    """
    try:
        tree = _ENVIRONMENT.parse(template)
        yield from _Judge(tree).found()
    except (TemplateSyntaxError, RecursionError) as exc:
        raise ValueError("no template that Jinja reads") from exc


class _Judge:
    """One template, with what its names are given anywhere in it."""

    def __init__(self, tree: nodes.Template) -> None:
        self._tree = tree
        self._given: dict[str, list[nodes.Node | None]] = {}
        """By name, or name and field of a namespace; None is an unknown value."""
        self._calls: dict[str, list[nodes.Call]] = {}
        self._given_count = 0
        for name in ("varargs", "kwargs", "caller", "self"):
            self._note(name, None)
        self._loads = Counter(each.name for each in tree.find_all(nodes.Name) if each.ctx == "load")
        for call in tree.find_all(nodes.Call):
            if isinstance(call.node, nodes.Name):
                self._calls.setdefault(call.node.name, []).append(call)
        for node in _each(tree):
            self._learn(node)
        # Names may be given one another in circles: what is not plain spreads until it stops.
        self._plain = dict.fromkeys(self._given, True)
        changed = True
        while changed:
            changed = False
            for name, values in self._given.items():
                if self._plain[name] and not all(map(self._is_plain, values)):
                    self._plain[name], changed = False, True

    def found(self) -> Iterator[str]:
        for node in _each(self._tree):
            if isinstance(node, _ELSEWHERE):
                yield "it takes another template in"
            elif isinstance(node, nodes.Getattr):
                if node.attr.startswith("_"):
                    yield f"the attribute {node.attr}"
                elif node.attr in _FORMATS and self._may_name(node.node):
                    yield f"a text whose {node.attr} takes attributes"
            elif isinstance(node, nodes.Getitem):
                if not self._is_plain(node.arg):
                    yield "an item by a name that it makes itself, or begins with an underscore"
                elif _constant(node.arg)[1] in _FORMATS and self._may_name(node.node):
                    yield "a text whose format takes attributes"
            elif isinstance(node, nodes.Filter) and node.name in (*_BY_ATTRIBUTE, "map"):
                yield from _filter(node)

    # ------------------------------------------------------------------ what names are given

    def _learn(self, node: nodes.Node) -> None:
        if isinstance(node, nodes.Assign):
            self._give(node.target, node.node)
        elif isinstance(node, nodes.AssignBlock):
            self._give(node.target, None)
        elif isinstance(node, nodes.For):
            self._give(node.target, None if node.recursive else node.iter)
        elif isinstance(node, nodes.With):
            for name, given in zip(node.targets, node.values, strict=True):
                self._give(name, given)
        elif isinstance(node, nodes.Macro):
            self._give_arguments(node)
        elif isinstance(node, nodes.CallBlock):
            for argument in node.args:
                self._give(argument, None)

    def _note(self, name: str, value: nodes.Node | None) -> None:
        self._given.setdefault(name, []).append(value)
        self._given_count += 1
        if len(self._given) > _NAMES_MAX or self._given_count > _GIVEN_MAX:
            raise ValueError(
                f"expected at most {_NAMES_MAX} names that are given something, and {_GIVEN_MAX} "
                "values for them, found more"
            )

    def _give(self, target: nodes.Node, value: nodes.Node | None) -> None:
        if isinstance(target, nodes.Name):
            self._note(target.name, value)
            if _is_namespace(value):
                for field in value.kwargs:
                    self._note(f"{target.name}.{field.key}", field.value)
        elif isinstance(target, nodes.NSRef):
            self._note(f"{target.name}.{target.attr}", value)
        elif isinstance(target, nodes.Tuple):
            for each in target.items:
                self._give(each, value)

    def _give_arguments(self, macro: nodes.Macro) -> None:
        """The arguments of all calls of a macro, and their defaults."""
        names = [each.name for each in macro.args]
        if self._loads[macro.name] > len(self._calls.get(macro.name, ())):
            for name in names:  # the macro may have another name, too
                self._note(name, None)
        for name, value in zip(reversed(names), reversed(macro.defaults), strict=False):
            self._note(name, value)
        for call in self._calls.get(macro.name, ()):
            given = [*zip(names, call.args, strict=False)]
            given += [(each.key, each.value) for each in call.kwargs]
            for name, value in given:
                self._note(name, value)
            if call.dyn_args is not None or call.dyn_kwargs is not None:
                for name in names:
                    self._note(name, None)

    # ------------------------------------------------------------------ what a key may be

    def _is_plain(self, node: nodes.Node | None) -> bool:
        """Whether an expression returns a value of the data, or is a harmless value or number."""
        if node is None:
            return False
        known, value = _constant(node)
        if known:
            return not _is_private(value)
        if isinstance(node, nodes.Name):
            # Special tokens come with the template, and are no data.
            return self._plain.get(node.name, not node.name.endswith(_TOKENS))
        if isinstance(node, nodes.Getattr):
            return self._is_plain_field(node)
        if isinstance(node, nodes.Getitem):
            return self._is_plain(node.node)
        if isinstance(node, nodes.Filter):
            return node.name in _KEEPS and all(map(self._is_plain, (node.node, *node.args)))
        if isinstance(node, nodes.Call):
            return self._is_plain_call(node)
        if isinstance(node, nodes.CondExpr):
            return self._is_plain(node.expr1) and (node.expr2 is None or self._is_plain(node.expr2))
        if isinstance(node, nodes.And | nodes.Or):
            return self._is_plain(node.left) and self._is_plain(node.right)
        if isinstance(node, nodes.List | nodes.Tuple):
            return all(map(self._is_plain, node.items))
        if isinstance(node, nodes.Dict):
            return all(
                self._is_plain(part) for each in node.items for part in (each.key, each.value)
            )
        if isinstance(node, nodes.Add | nodes.Mul | nodes.Mod) and not _makes_text(node):
            return self._is_plain(node.left) and self._is_plain(node.right)
        return isinstance(node, _TRUTHS) or _is_number(node)

    def _may_name(self, text: nodes.Node) -> bool:
        """Whether the text whose `format` is called may access Python internals."""
        known, value = _constant(text)
        if known:
            return any(sign in str(value) for sign in ("__", "._", "[_"))
        return not self._is_plain(text)

    def _is_plain_field(self, node: nodes.Getattr) -> bool:
        held = node.node
        if isinstance(held, nodes.Name) and f"{held.name}.{node.attr}" in self._plain:
            return self._plain[f"{held.name}.{node.attr}"]
        return self._is_plain(held)

    def _is_plain_call(self, call: nodes.Call) -> bool:
        if call.dyn_args is not None or call.dyn_kwargs is not None or call.kwargs:
            return False
        if isinstance(call.node, nodes.Name):
            return call.node.name == "range"
        if not isinstance(call.node, nodes.Getattr) or call.node.attr not in _KEEPS:
            return False
        return all(map(self._is_plain, (call.node.node, *call.args)))


def _each(tree: nodes.Node) -> Iterator[nodes.Node]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.iter_child_nodes())


def _is_namespace(value: nodes.Node | None) -> TypeGuard[nodes.Call]:
    if not isinstance(value, nodes.Call) or not isinstance(value.node, nodes.Name):
        return False
    return value.node.name == "namespace"


def _is_private(value: object) -> bool:
    """Whether a value names Python internals, or a part of it may, read from either end."""
    if isinstance(value, dict):
        return any(map(_is_private, (*value, *value.values())))
    if isinstance(value, list | tuple):
        return any(map(_is_private, value))
    return isinstance(value, str) and ("__" in value or value.strip("_") != value)


def _filter(node: nodes.Filter) -> Iterator[str]:
    if node.dyn_args is not None or node.dyn_kwargs is not None:
        yield f"the filter {node.name} with what nobody can see"
    name, args = node.name, node.args
    if name == "map" and args:  # another filter, and what that is given
        known, name = _constant(args[0])
        if not known:
            yield "the filter map with another that nobody can see"
        args = args[1:]
    at = _BY_ATTRIBUTE.get(name)
    given = [*(() if at is None else args[at : at + 1])]
    given += [each.value for each in node.kwargs if each.key in ("attribute", "name")]
    for each in given:
        known, value = _constant(each)
        parts = str(value).split(".") if known else ["_"]
        if any(part.startswith("_") or part in _FORMATS for part in parts):
            yield f"the filter {node.name} with an attribute that is not its data's"


def _constant(node: nodes.Node) -> tuple[bool, Any]:
    """Whether an expression is a value already, and which: texts that are put together are one.

    No operator is asked that could take long, or much memory.
    """
    if isinstance(node, nodes.Const):
        return True, node.value
    parts: Iterable[nodes.Node] = ()
    if isinstance(node, nodes.Concat):
        parts = node.nodes
    elif isinstance(node, nodes.Add):
        parts = (node.left, node.right)
    elif isinstance(node, nodes.List | nodes.Tuple):
        found = [_constant(each) for each in node.items]
        return all(known for known, _ in found), tuple(value for _, value in found)
    texts = [_constant(each) for each in parts]
    if texts and all(known and isinstance(text, str) for known, text in texts):
        return True, "".join(text for _, text in texts)
    return False, None


def _makes_text(node: nodes.BinExpr) -> bool:
    """Whether two values may become a text that neither is: a text added, repeated or filled in."""
    sides = [_constant(side) for side in (node.left, node.right)]
    if any(known and isinstance(value, str) for known, value in sides):
        return True
    if not isinstance(node, nodes.Add):
        return False
    is_list = nodes.List in (type(node.left), type(node.right))
    return not is_list and not any(known and _is_counted(value) for known, value in sides)


def _is_counted(value: object) -> bool:
    return isinstance(value, int | float)


def _is_number(node: nodes.Node) -> bool:
    """Whether an expression counts: it gives no text, whatever is in it."""
    counts = (nodes.Slice, nodes.Neg, nodes.Pos, nodes.Sub, nodes.FloorDiv, nodes.Pow, nodes.Div)
    return isinstance(node, counts)
