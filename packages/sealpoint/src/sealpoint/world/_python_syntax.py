# SPDX-License-Identifier: Apache-2.0
"""Python code by its syntax tree: the meaning of a program, regardless of its layout.

The digest ignores comments, line numbers, blank lines, quotes, parentheses, the order of
consecutive imports, and the indentation of a docstring. Everything else counts, including
docstrings: a model reads them as the description of a tool. The digest is the same on every version
of Python that reads the program.

A tree has one encoding, in which nothing can move from one field to another. A program without a
tree (it does not parse, is nested too deeply, or is too long) has no digest here, and the caller
uses a digest of its bytes instead. This module never runs the code that it reads, and no program
makes it fail.
"""

import ast
import gc
import hashlib
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

# Each level takes one call, and a separate OS thread has stack space for twice as many.
_DEPTH_MAX = 500
_SOURCE_CHARS_MAX = 4 * 1024 * 1024
_CLASS_DEPTH = 1
"""The nesting depth of the statements of a module, and so of its classes."""
_LENGTH_BYTES = 8
_KEPT_MAX = 65_536
_KEPT_CHARS_MAX = 64
_SHORT_CHARS = 12
# Python source cannot contain a NUL, so no file's bytes equal the encoding of a tree.
_BEGIN = b"\0sealpoint syntax 1\0"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOCUMENTED = frozenset({ast.Module, ast.ClassDef, *_FUNCTIONS})
_IMPORTS = (ast.Import, ast.ImportFrom)
_IMPORTERS = frozenset({"__import__", "import_module"})
_ALL = "*"
# These fields do not count: the context of a name follows from its position, a `u` before a text
# means nothing, and type comments are comments.
_UNUSED = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
_CONSTANTS = frozenset({ast.Constant, ast.MatchSingleton})
_BODIES = frozenset({"body", "finalbody", "orelse"})
# The second exists since Python 3.14.
_TEXTS_JOINED = frozenset({"JoinedStr", "TemplateStr"})
_WARNINGS = threading.Lock()


@dataclass(frozen=True, slots=True)
class Import:
    """A module that a program imports, or from which it may import a name."""

    module: str
    """The module after `import` or `from`."""
    level: int = 0
    """How many packages up the import starts; 0: an absolute import."""
    names: tuple[str, ...] = ()
    """The imported names, each of which may itself be a module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Syntax:
    """The result of reading a program."""

    digest: str
    """The SHA-256 of the whole tree, in hexadecimal."""
    definitions: dict[str, str]
    """Prefixes of the digests of its functions, classes and methods (`Desk.step`), long enough to
    show which of them differ. Constants have none, because a short secret could be guessed from a
    digest."""
    imports: tuple[Import, ...]


def read_syntax(source: str | bytes) -> Syntax | None:
    """Read a program; None if it has no tree.

    Args:
        source: Its text, or its bytes in the encoding that they declare.
    """
    if len(source) > _SOURCE_CHARS_MAX:
        return None
    try:
        return _read(source)
    except RecursionError:
        # The caller may have used up the stack. The result for a program must not depend on that.
        return _in_thread(source)
    except (SyntaxError, ValueError, MemoryError, _TooDeep):
        return None


def _in_thread(source: str | bytes) -> Syntax | None:
    found: list[Syntax] = []

    def read() -> None:
        try:
            found.append(_read(source))
        except (SyntaxError, ValueError, MemoryError, RecursionError, _TooDeep):
            return

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    return found[0] if found else None


def read_imports(source: str | bytes) -> tuple[Import, ...]:
    """Return the imports of a program, even if it is nested too deeply for `read_syntax`."""
    try:
        with _quietly():
            tree = ast.parse(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ()
    nodes = (node for node in ast.walk(tree) if isinstance(node, (*_IMPORTS, ast.Call)))
    return tuple(dict.fromkeys(found for node in nodes for found in _imported(node)))


def _read(source: str | bytes) -> Syntax:
    with _quietly():
        return _SyntaxReader().read(ast.parse(source))


@contextmanager
def _quietly() -> Iterator[None]:
    """Suppress warnings about literals: Python already gave them when it compiled the program."""
    # One at a time, since the filters belong to the whole process.
    with _WARNINGS, warnings.catch_warnings(), _no_collection():
        for category in (DeprecationWarning, SyntaxWarning):
            warnings.simplefilter("ignore", category)
        yield


@contextmanager
def _no_collection() -> Iterator[None]:
    """Turn off the garbage collector: trees have no cycles, and it doubles the time."""
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()


class _TooDeep(Exception):
    """A tree has more levels than the limit."""


class _Statement(NamedTuple):
    """A statement of a module, or of one of its classes, and the place of its encoding."""

    node: ast.AST
    begin: int
    end: int
    members: "tuple[_Statement, ...]" = ()
    """The statements of a class."""


class _SyntaxReader:
    """One tree being read."""

    def __init__(self) -> None:
        self._made: list[bytes] = []
        self._append = self._made.append
        self._statements: list[_Statement] = []
        self._members: list[_Statement] = []
        self._imports: dict[Import, None] = {}

    def read(self, tree: ast.Module) -> Syntax:
        self._encode(tree, 0)
        return Syntax(
            digest=hashlib.sha256(_BEGIN + b"".join(self._made)).hexdigest(),
            definitions=self._definitions(),
            imports=tuple(self._imports),
        )

    def _encode(self, node: Any, depth: int) -> None:
        """Encode a node, or a value in the place of a node."""
        append, kind = self._append, node.__class__
        if kind is ast.Name:
            append(_NAME + _TEXTS[node.id] + b")")
            return
        form = _FORMS[kind]
        if form is None:
            append(_value(node))
            return
        if depth > _DEPTH_MAX:
            raise _TooDeep
        begin, fields, is_constant, may_import = form
        append(begin)
        if is_constant:
            append(_value(node.value) + b")")
            return
        if may_import:
            for found in _imported(node):
                self._imports[found] = None
        get = node.__dict__.get
        for name, framed in fields:
            value = get(name)
            if value is None:
                continue
            if value.__class__ is list:
                if value:
                    append(framed)
                    self._encode_list(node, name, value, depth)
            elif name != "format_spec" or any(True for _ in _joined(value.values)):
                append(framed)
                self._encode(value, depth + 1)
        append(b")")

    def _encode_list(self, node: Any, name: str, values: Sequence[Any], depth: int) -> None:
        append, encode, kind = self._append, self._encode, node.__class__
        append(b"[")
        if name in _BODIES:
            if name == "body" and kind in _DOCUMENTED and _is_text(values[0]):
                append(b"D" + _TEXTS[_plain_docstring(values[0].value.value)])
                values = values[1:]
            values = _in_order(values)
            if depth < _CLASS_DEPTH or (depth == _CLASS_DEPTH and kind is ast.ClassDef):
                self._encode_statements(values, depth)
                append(b"]")
                return
        elif kind.__name__ in _TEXTS_JOINED:
            values = list(_joined(values))
        for each in values:
            encode(each, depth + 1)
        append(b"]")

    def _encode_statements(self, statements: Sequence[Any], depth: int) -> None:
        """Encode the statements of a module or of one of its classes, and record their places."""
        for node in statements:
            begin = len(self._made)
            self._encode(node, depth + 1)
            if depth == _CLASS_DEPTH:
                self._members.append(_Statement(node, begin, len(self._made)))
            else:
                members, self._members = tuple(self._members), []
                self._statements.append(_Statement(node, begin, len(self._made), members))

    def _definitions(self) -> dict[str, str]:
        """Return the definitions of the module: each name, with a digest of all its definitions."""
        digests: dict[str, Any] = {}
        for name, encoded in self._named():
            found = digests.setdefault(name, hashlib.sha256())
            found.update(len(encoded).to_bytes(_LENGTH_BYTES, "big") + encoded)
        return {name: found.hexdigest()[:_SHORT_CHARS] for name, found in digests.items()}

    def _named(self) -> Iterator[tuple[str, bytes]]:
        made = self._made
        for node, begin, end, members in self._statements:
            if isinstance(node, _FUNCTIONS):
                yield node.name, b"".join(made[begin:end])
            if not isinstance(node, ast.ClassDef):
                continue
            # A method has its own entry; everything else in a class belongs to the entry of the
            # class.
            rest, at = list[bytes](), begin
            for each, first, last, _ in members:
                if isinstance(each, _FUNCTIONS):
                    yield f"{node.name}.{each.name}", b"".join(made[first:last])
                    rest += made[at:first]
                    at = last
            yield node.name, b"".join([*rest, *made[at:end]])


def _imported(node: Any) -> Iterator[Import]:
    """Yield the imports of a statement, or of a call of an importer with a text."""
    if isinstance(node, ast.Import):
        yield from (Import(alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        names = tuple(alias.name for alias in node.names)
        yield Import(node.module or "", node.level, names)
    else:
        called = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
        first = node.args[0] if node.args and called in _IMPORTERS else None
        if isinstance(first, ast.Constant) and type(first.value) is str:
            name = first.value.lstrip(".")
            yield Import(name, len(first.value) - len(name))


def _in_order(statements: Sequence[Any]) -> Sequence[Any]:
    """Split consecutive imports into single ones and sort them; other statements stay in place."""
    if not any(each.__class__ in _IMPORTS for each in statements):
        return statements
    made, imports = list[ast.AST](), list[ast.AST]()
    for statement in statements:
        if statement.__class__ in _IMPORTS:
            imports += _singly(statement)
            continue
        made += _sorted_imports(imports)
        imports.clear()
        made.append(statement)
    return [*made, *_sorted_imports(imports)]


def _singly(statement: Any) -> Iterator[ast.AST]:
    for alias in statement.names:
        if isinstance(statement, ast.Import):
            yield ast.Import(names=[alias])
        else:
            yield ast.ImportFrom(module=statement.module, names=[alias], level=statement.level or 0)


def _sorted_imports(imports: list[Any]) -> Iterable[ast.AST]:
    """Sort imports, unless one may override a name of another: then their order counts."""
    found: dict[str, tuple[Any, ...]] = {}
    for each in imports:
        alias = each.names[0]
        name: str = alias.asname or alias.name
        source: tuple[Any, ...] = (alias.name,)
        if isinstance(each, ast.ImportFrom):
            source = each.level, each.module or "", alias.name
        elif alias.asname is None:
            name = alias.name.partition(".")[0]
            source = (name,)
        if name == _ALL or found.setdefault(name, source) != source:
            return imports
    return sorted(imports, key=_import_key)


def _import_key(node: Any) -> tuple[str, int, str, str, str]:
    alias = node.names[0]
    level, module = getattr(node, "level", 0), getattr(node, "module", None)
    return type(node).__name__, level, module or "", alias.name, alias.asname or ""


def _joined(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the parts of an f-string, with adjacent pieces of plain text joined."""
    text = ""
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            text += value.value
            continue
        if text:
            yield text
            text = ""
        yield value
    if text:
        yield text


def _is_text(statement: Any) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and type(statement.value.value) is str
    )


def _plain_docstring(text: str) -> str:
    """Return a docstring without the indentation of its code, and without trailing blanks."""
    first, *rest = text.expandtabs().split("\n")
    margins = [len(line) - len(line.lstrip(" ")) for line in rest if line.strip(" ")]
    margin = min(margins, default=0)
    return "\n".join(
        line.rstrip(" ") for line in (first.lstrip(" "), *(each[margin:] for each in rest))
    ).strip("\n")


def _value(value: Any) -> bytes:
    """Encode a value that is not a node, with its type: 1, 1.0 and True are different."""
    kind = value.__class__
    if kind is str:
        return b"s" + _TEXTS[value]
    if kind is bytes:
        return b"b" + _framed(value)
    if kind is int:
        return b"i" + _TEXTS[f"{value:x}"]
    if kind is float:
        return b"f" + _TEXTS[value.hex()]
    if kind is complex:
        return b"c" + _TEXTS[value.real.hex()] + _TEXTS[value.imag.hex()]
    # Only None, True, False and the ellipsis remain.
    return b"v" + _TEXTS[repr(value)]


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(_LENGTH_BYTES, "big") + data


class _Texts(dict[str, bytes]):
    """A cache of encoded texts: programs use the same few names over and over."""

    def __missing__(self, text: str) -> bytes:
        framed = _framed(text.encode("utf-8", "surrogatepass"))
        if len(text) <= _KEPT_CHARS_MAX and len(self) < _KEPT_MAX:
            self[text] = framed
        return framed


_Form = tuple[bytes, tuple[tuple[str, bytes], ...], bool, bool]


class _Forms(dict[type, _Form | None]):
    """The encoding of nodes by class; None for a class that is not a node.

    An entry holds the beginning of the encoding, the fields sorted by name, whether the node is a
    constant, and whether it may import.
    """

    def __missing__(self, kind: type) -> _Form | None:
        self[kind] = None
        if issubclass(kind, ast.AST):
            names = sorted(name for name in kind._fields if name not in _UNUSED)
            fields = tuple((name, _TEXTS[name]) for name in names)
            may_import = kind in (*_IMPORTS, ast.Call)
            self[kind] = b"(" + _TEXTS[kind.__name__], fields, kind in _CONSTANTS, may_import
        return self[kind]


_TEXTS = _Texts()
_FORMS = _Forms()
_NAME = b"(" + _TEXTS["Name"] + _TEXTS["id"] + b"s"
