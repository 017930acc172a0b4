# SPDX-License-Identifier: Apache-2.0
"""The faults: for one node of the syntax tree, the nodes that could stand there by mistake.

Each fault is what a tired programmer or a bad merge would write: another comparison, a condition
that always or never holds, a check that is not made, a member that a table lacks.
"""

import ast
import copy
from collections.abc import Iterator

__all__ = ["drops", "replacements"]

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_FUNCTIONS = {"all": "any", "any": "all", "max": "min", "min": "max", "sorted": "list"}

# Of how a record is printed, built and kept in memory nothing is decided.
_KEYWORDS_LEFT = frozenset({"frozen", "hash", "hint", "kw_only", "repr", "slots"})


def replacements(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand in place of a node."""
    match node:
        case ast.Compare():
            yield from _compare(node)
        case ast.BoolOp(op=op):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield ast.BoolOp(op=other, values=node.values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BinOp(op=op) if type(op) in _ARITHMETIC:
            yield ast.BinOp(left=node.left, op=_ARITHMETIC[type(op)](), right=node.right)
        case ast.AugAssign(op=op) if type(op) in _ARITHMETIC:
            yield ast.AugAssign(target=node.target, op=_ARITHMETIC[type(op)](), value=node.value)
            yield ast.Pass()
        case ast.Constant(value=value):
            yield from (ast.Constant(value=each) for each in _constants(value))
        case ast.Call(func=ast.Name(id=name)) if name in _FUNCTIONS:
            made = copy.copy(node)
            made.func = ast.Name(id=_FUNCTIONS[name], ctx=ast.Load())
            yield made
        case ast.Return(value=ast.expr() as value):
            yield from (ast.Return(value=each) for each in _returned(value))
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()):
            yield ast.Pass()
        case ast.Raise() | ast.Delete():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.Continue():
            yield from (ast.Break(), ast.Pass())
        case ast.Break():
            yield from (ast.Continue(), ast.Pass())
        case _:
            pass


def _compare(node: ast.Compare) -> Iterator[ast.AST]:
    for place, op in enumerate(node.ops):
        for other in _COMPARISONS[type(op)]:
            ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            yield ast.Compare(left=node.left, ops=ops, comparators=node.comparators)
    left, right = node.left, node.comparators[0]
    if isinstance(left, ast.Tuple) and isinstance(right, ast.Tuple):
        # Two rows of fields: the same one left out of both.
        for place in range(min(len(left.elts), len(right.elts))):
            yield ast.Compare(
                left=_without(left, place), ops=node.ops, comparators=[_without(right, place)]
            )


def _without(row: ast.Tuple, place: int) -> ast.Tuple:
    return ast.Tuple(elts=[*row.elts[:place], *row.elts[place + 1 :]], ctx=ast.Load())


def _constants(value: object) -> Iterator[bool | int | str | bytes]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1)
    elif isinstance(value, str):
        yield f"{value}x"
    elif isinstance(value, bytes):
        yield value + b"x"


def _returned(value: ast.expr) -> Iterator[ast.expr]:
    if isinstance(value, ast.Constant):
        return
    yield ast.Constant(value=None)
    if isinstance(value, ast.Call | ast.Name | ast.Attribute):
        return  # not known to be a truth value; its own function has the faults
    if isinstance(value, ast.BoolOp):
        yield ast.UnaryOp(op=ast.Not(), operand=value)


def drops(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The parts that a node could lack: each with the node as it would be without it."""
    match node:
        case ast.BoolOp(values=values):
            for place, value in enumerate(values):
                left = [*values[:place], *values[place + 1 :]]
                yield value, left[0] if len(left) == 1 else ast.BoolOp(op=node.op, values=left)
        case ast.Tuple(elts=elements, ctx=ast.Load()):
            for place, element in enumerate(elements):
                yield element, _without(node, place)
        case ast.Set(elts=elements) | ast.List(elts=elements, ctx=ast.Load()):
            for place, element in enumerate(elements):
                made = copy.copy(node)
                made.elts = [*elements[:place], *elements[place + 1 :]]
                yield element, made
        case ast.Dict(keys=keys, values=values):
            for place, key in enumerate(keys):
                without = [*keys[:place], *keys[place + 1 :]]
                others = [*values[:place], *values[place + 1 :]]
                yield key or values[place], ast.Dict(keys=without, values=others)
        case ast.Call(keywords=keywords):
            for place, keyword in enumerate(keywords):
                if keyword.arg is not None and keyword.arg not in _KEYWORDS_LEFT:
                    call = copy.copy(node)
                    call.keywords = [*keywords[:place], *keywords[place + 1 :]]
                    yield keyword, call
        case ast.Match(cases=cases):
            for place, case in enumerate(cases[:-1]):
                others_left = [*cases[:place], *cases[place + 1 :]]
                yield case.pattern, ast.Match(subject=node.subject, cases=others_left)
        case _:
            pass
