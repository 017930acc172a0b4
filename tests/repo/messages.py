# SPDX-License-Identifier: Apache-2.0
"""Every message and hint of the package in one list, read from the syntax trees of src.

`python -m tests.repo.messages` prints each place that makes an error: class, code, message, hint,
file and line; `--class NAME` and `--grep TEXT` narrow it. A message is shown as it is written,
with `{names}` for what is filled in. Where a text is put together elsewhere (by a function, or
from an argument), the call is shown in `<angle brackets>`.
"""

import argparse
import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sealpoint import errors
from sealpoint.errors import SealpointError
from tests.repo._tree import shown, source_files, source_tree

_CLASSES: dict[str, type[SealpointError]] = {name: getattr(errors, name) for name in errors.__all__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One place that makes an error.

    Attributes:
        error: The class of it.
        texts: What it says; more than one where the code chooses between texts.
        hints: What it hints at; more than one where the code chooses, none where it is computed.
        own_hint: Whether the place gives a hint of its own instead of the one of its class.
        path: The file.
        line: The line in it.
    """

    error: type[SealpointError]
    texts: tuple[str, ...]
    hints: tuple[str, ...]
    own_hint: bool
    path: Path
    line: int

    def __str__(self) -> str:
        place = f"{shown(self.path)}:{self.line}"
        lines = [f"{self.error.__name__} [{self.error.code}] {place}"]
        lines += [f"    {text}" for text in self.texts]
        origin = "" if self.own_hint else " (of the class)"
        lines += [f"    hint{origin}: {hint}" for hint in self.hints]
        return "\n".join(lines)


class _Texts:
    """Reads the texts of one module, following names to what they were given nearby."""

    def __init__(self, tree: ast.Module) -> None:
        self._module = _assignments(tree.body)

    def read(self, node: ast.expr, local: dict[str, list[ast.expr]], depth: int = 0) -> list[str]:
        """Every text that an expression can be, as templates."""
        if depth > 8:
            return [f"<{ast.unparse(node)}>"]
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.Constant(value=None):
                return []
            case ast.JoinedStr(values=values):
                return self._joined(values, local, depth)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                ends = self.read(right, local, depth + 1) or [""]
                return [a + b for a in self.read(left, local, depth + 1) or [""] for b in ends]
            case ast.IfExp(body=body, orelse=orelse):
                return self.read(body, local, depth + 1) + self.read(orelse, local, depth + 1)
            case ast.BoolOp(values=values):
                return [text for each in values for text in self.read(each, local, depth + 1)]
            case ast.Name(id=name):
                given = local.get(name) or self._module.get(name)
                if given:
                    return [text for each in given for text in self.read(each, local, depth + 1)]
            case _:
                pass
        return [f"<{ast.unparse(node)}>"]

    def _joined(
        self, values: list[ast.expr], local: dict[str, list[ast.expr]], depth: int
    ) -> list[str]:
        made = [""]
        for value in values:
            match value:
                case ast.Constant(value=text):
                    ends = [str(text)]
                case ast.FormattedValue(value=ast.Name(id=name)) if name in self._module:
                    ends = self._constant(name, local, depth)
                case ast.FormattedValue(value=ast.IfExp() as choice):
                    ends = self.read(choice, local, depth + 1)
                case ast.FormattedValue(value=inner):
                    ends = [f"{{{ast.unparse(inner)}}}"]
                case _:
                    ends = [ast.unparse(value)]
            made = [text + end for text in made for end in ends]
        return made

    def _constant(self, name: str, local: dict[str, list[ast.expr]], depth: int) -> list[str]:
        if name in local or not all(_is_text(each) for each in self._module[name]):
            return [f"{{{name}}}"]
        return [text for each in self._module[name] for text in self.read(each, local, depth + 1)]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _assignments(body: list[ast.stmt]) -> dict[str, list[ast.expr]]:
    """What names are given in these statements, and below them."""
    given: dict[str, list[ast.expr]] = {}
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for node in ast.walk(statement):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    given.setdefault(name, []).append(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    given.setdefault(name, []).append(value)
                case _:
                    pass
    return given


def _calls(
    node: ast.AST, local: dict[str, list[ast.expr]]
) -> Iterator[tuple[ast.Call, dict[str, list[ast.expr]]]]:
    """Every call below a node, with what the function around it gives to names."""
    for child in ast.iter_child_nodes(node):
        inner = local
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = local | _assignments(child.body)
        if isinstance(child, ast.Call):
            yield child, inner
        yield from _calls(child, inner)


def _class_of(call: ast.Call) -> type[SealpointError] | None:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name, value=ast.Name(id="errors")):
            return _CLASSES.get(name)
        case _:
            return None


def messages_of(path: Path) -> Iterator[Message]:
    """Every place of one file that makes an error."""
    tree = source_tree(path)
    texts = _Texts(tree)
    for call, local in _calls(tree, {}):
        error = _class_of(call)
        if error is None or not call.args:
            continue
        hint = next((each.value for each in call.keywords if each.arg == "hint"), None)
        own = [] if hint is None else texts.read(hint, local)
        yield Message(
            error=error,
            texts=tuple(dict.fromkeys(texts.read(call.args[0], local))),
            hints=tuple(dict.fromkeys(own)) or (error.hint,),
            own_hint=bool(own),
            path=path,
            line=call.lineno,
        )


@functools.cache
def all_messages() -> tuple[Message, ...]:
    """Every place of the package that makes an error, file by file."""
    return tuple(message for path in source_files() for message in messages_of(path))


def main() -> None:
    """Print the list."""
    parser = argparse.ArgumentParser(prog="python -m tests.repo.messages", description=__doc__)
    parser.add_argument("--class", dest="name", help="only errors of this class")
    parser.add_argument("--grep", default="", help="only what says this text")
    options = parser.parse_args()
    found = all_messages()
    for message in found:
        if options.name in (None, message.error.__name__) and options.grep in str(message):
            print(message, end="\n\n")  # noqa: T201 -- it is a command
    print(f"{len(found)} places, {len({m.error for m in found})} classes")  # noqa: T201


if __name__ == "__main__":
    main()
