# SPDX-License-Identifier: Apache-2.0
"""Python code by its syntax tree: what a program says, without how it is written down.

Comments, line numbers, blank lines, quotes, parentheses and how a docstring is indented do not
count. Everything else does, docstrings too: they are what a model reads of a tool. The digest is
the same on every version of Python that reads the program.

A tree has one encoding, in which nothing can move from one field to another. A program without a
tree (it does not parse, is nested too deeply, or is too long) has no digest here, and whoever asks
falls back to its bytes; nothing that is read here runs, and no program makes this fail.
"""

import ast
import hashlib
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# The parser gives up somewhere above this, depending on who calls it; this is the same for all.
_DEPTH_MAX = 500
_SOURCE_CHARS_MAX = 4 * 1024 * 1024
_LENGTH_BYTES = 8
# No source that Python reads has a NUL, so that no file's bytes are the encoding of a tree.
_BEGIN = b"\0sealpoint syntax 1\0"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# How a name is used follows from where it stands; a `u` before a text means nothing; comments with
# types are comments.
_UNUSED = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
# The second since Python 3.14.
_TEXTS_JOINED = frozenset({"JoinedStr", "TemplateStr"})
_WARNINGS = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSyntax:
    """One function or lambda of a program, however deep inside of others."""

    name: str
    line: int
    """Where it begins, with its decorators: what compiled code has as `co_firstlineno`."""
    begin: tuple[int, int]
    """Where its body begins: line and byte."""
    end: tuple[int, int]
    """Where its body ends."""
    digest: str
    """The SHA-256 of its tree: name, decorators, parameters, defaults, annotations and body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Syntax:
    """What was found in a program."""

    digest: str
    """The SHA-256 of the whole tree, in hexadecimal."""
    functions: tuple[FunctionSyntax, ...]


def read_syntax(source: str | bytes) -> Syntax | None:
    """Read a program; None if it has no tree.

    Args:
        source: Its text, or its bytes in whatever encoding they say they have.
    """
    if len(source) > _SOURCE_CHARS_MAX:
        return None
    try:
        # Python said what it has to say about escapes and literals when it compiled the program.
        # One at a time, since the filters belong to the whole process.
        with _WARNINGS, warnings.catch_warnings():
            for category in (DeprecationWarning, SyntaxWarning):
                warnings.simplefilter("ignore", category)
            tree = ast.parse(source)
        return _SyntaxWalk().read(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError, _TooDeep):
        return None


class _TooDeep(Exception):
    """A tree has more levels than are read."""


@dataclass(slots=True)
class _End:
    """Where a function ends, on the stack of what is still to be written."""

    function: Any


class _SyntaxWalk:
    """One tree being written, without recursion.

    Each function has a hash of its own, and what lies around it has that digest in its place: so
    one walk gives the digests of all of them.
    """

    def __init__(self) -> None:
        self._hashes = [hashlib.sha256(_BEGIN)]
        self._functions: list[FunctionSyntax] = []

    def read(self, tree: ast.Module) -> Syntax:
        waiting: list[tuple[Any, int]] = [(tree, 0)]
        while waiting:
            item, depth = waiting.pop()
            if isinstance(item, ast.AST):
                if depth > _DEPTH_MAX:
                    raise _TooDeep
                if isinstance(item, _FUNCTIONS):
                    self._hashes.append(hashlib.sha256(_BEGIN))
                    waiting.append((_End(item), depth))
                below = [(each, depth + 1) for each in _node(item)]
                below.reverse()
                waiting += below
            elif isinstance(item, bytes):
                self._hashes[-1].update(item)
            else:
                digest = self._hashes.pop()
                self._hashes[-1].update(b"d" + digest.digest())
                self._functions.append(_function(item.function, digest.hexdigest()))
        return Syntax(digest=self._hashes[0].hexdigest(), functions=tuple(self._functions))


def _function(node: Any, digest: str) -> FunctionSyntax:
    if isinstance(node, ast.Lambda):
        name, first, body = "<lambda>", node.lineno, [node.body]
    else:
        name, body = node.name, node.body
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    last: Any = body[-1]
    return FunctionSyntax(
        name=name,
        line=first,
        begin=(body[0].lineno, body[0].col_offset),
        end=(last.end_lineno, last.end_col_offset),
        digest=digest,
    )


def _node(node: ast.AST) -> Iterator[bytes | ast.AST]:
    """The encoding of a node, with the nodes in it where theirs belong."""
    yield b"(" + _text(type(node).__name__)
    if isinstance(node, ast.Constant | ast.MatchSingleton):
        yield _constant(node.value)
    else:
        # In the order of their names; which Python version knows of an empty field does not show.
        for name in sorted(node._fields):
            value = getattr(node, name, None)
            if name in _UNUSED or value is None or value == []:
                continue
            if name == "format_spec" and not list(_joined(value.values)):
                continue
            yield _text(name)
            if isinstance(value, list):
                yield b"["
                yield from _list(node, name, value)
                yield b"]"
            else:
                yield value if isinstance(value, ast.AST) else _constant(value)
    yield b")"


def _list(node: ast.AST, name: str, values: list[Any]) -> Iterator[bytes | ast.AST]:
    if type(node).__name__ in _TEXTS_JOINED:
        yield from _joined(values)
        return
    if name == "body" and isinstance(node, _DOCUMENTED) and _is_text(values[0]):
        yield b"D" + _text(_plain_docstring(values[0].value.value))
        values = values[1:]
    for value in values:
        yield value if isinstance(value, ast.AST) else _constant(value)


def _joined(values: list[ast.expr]) -> Iterator[bytes | ast.AST]:
    """The parts of an f-string: what is plain text in it is one text, in however many parts."""
    text = ""
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            text += value.value
            continue
        if text:
            yield _constant(text)
            text = ""
        yield value
    if text:
        yield _constant(text)


def _is_text(statement: ast.AST) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and type(statement.value.value) is str
    )


def _plain_docstring(text: str) -> str:
    """A docstring without the indentation of the code around it, nor blanks where lines end."""
    first, *rest = text.expandtabs().split("\n")
    margins = [len(line) - len(line.lstrip(" ")) for line in rest if line.strip(" ")]
    margin = min(margins, default=0)
    return "\n".join(
        line.rstrip(" ") for line in (first.lstrip(" "), *(each[margin:] for each in rest))
    ).strip("\n")


def _constant(value: Any) -> bytes:
    """A value that is no node, with its type: 1, 1.0 and True are three."""
    kind = type(value)
    if kind is str:
        return b"s" + _text(value)
    if kind is bytes:
        return b"b" + _framed(value)
    if kind is int:
        return b"i" + _text(f"{value:x}")
    if kind is float:
        return b"f" + _text(value.hex())
    if kind is complex:
        return b"c" + _text(value.real.hex()) + _text(value.imag.hex())
    # What is left is one of None, True, False and the ellipsis.
    return b"v" + _text(repr(value))


def _text(text: str) -> bytes:
    return _framed(text.encode("utf-8", "surrogatepass"))


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(_LENGTH_BYTES, "big") + data
