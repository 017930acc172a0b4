# SPDX-License-Identifier: Apache-2.0
"""Words to avoid, each with a plain replacement, and how many of them each area still has.

`python -m tests.repo.words` prints the counts by area; `AREA...` prints every place of these areas,
and `--write` lowers the counts of `words.toml` to what is there. An area that is not in that file
has none of these words.

Code does not count: neither fenced blocks and inline code of pages, nor the names in a module.
"""

import argparse
import ast
import functools
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from sealpoint import errors
from sealpoint.cli import main as command
from tests.repo._tree import ROOT, shown, source_files, source_tree
from tests.repo.messages import all_messages

CEILINGS = Path(__file__).with_name("words.toml")

WORDS = {
    "anew": "again, or new",
    "as (?:ever|told)": "as before, or as shown",
    "beside": "next to, along with, or compared with",
    "(?:go|goes|going|gone|went) on": "continue, resume, or happen",
    r"(?<!there\s)is no(?! longer)": "is not a, or has no",
    "lies? (?:apart|elsewhere|here|in|on|there|where)": "is in, or is stored in",
    "meanwhile": "at the same time, since, or in the meantime",
    "mend(?:s|ed|ing)?": "fix, or repair",
    "now and then": "occasionally",
    "of one's own": "of your own",
    "set-ups?": "setup",
    "somebody(?:'s)?": "someone, or the role: caller, approver, attacker",
    "that which": "what",
    "there is one": "if it exists",
    "(?:there|where)of": "of it, or of which",
    "told(?! apart)": "said, shown, or notified",
    "whoever": "anyone who, or the role: caller, approver, attacker",
    "(?:behaviour|colour|honour|licence|neighbour)(?:s|ed)?": "the American spelling",
}
"""Patterns of words, each with what to write in their place."""

_CLAUSE = "a sentence that begins with What or Who"
REPLACEMENTS = {**WORDS, _CLAUSE: "a noun as the subject"}

_ANY_SPACE = r"\s+"
# One pattern of them all: the number of the group that matched says which word it is.
_ANY_WORD = re.compile(
    r"(?i)\b(?:" + "|".join(f"({word.replace(' ', _ANY_SPACE)})" for word in WORDS) + r")\b"
)
_CLAUSES = re.compile(r"(?m)(?:^|(?<=[.:;?!]\s)|(?<=^[-*]\s))Wh(?:at|o)\s[^.?!|]*\.(?=\s|$)")

_FENCE = re.compile(r"^(?P<marks>`{3,}).*?^(?P=marks)$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"(?:^[ ]*#.*\n)+", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_LINK_TARGET = re.compile(r"\]\([^)\s]*\)")
_TEMPLATE = re.compile(r"\{[{%#].*?[}%#]\}|<[^>]*>|\{[^}]*\}", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One word to avoid: which pattern found it, where, and in what line."""

    word: str
    where: str
    line: str

    def __str__(self) -> str:
        return f"{self.where}: {self.line}\n    {self.word}: write {REPLACEMENTS[self.word]}"


def find(text: str, where: str, first_line: int = 0) -> Iterator[Place]:
    """Every word to avoid in a text; a text of a file says at which line it begins."""
    lines = text.splitlines()
    names = tuple(WORDS)
    found = [
        (match.start(), names[(match.lastindex or 1) - 1]) for match in _ANY_WORD.finditer(text)
    ]
    found += [(match.start(), _CLAUSE) for match in _CLAUSES.finditer(text)]
    for start, word in sorted(found):
        before = text.count("\n", 0, start)
        place = f"{where}:{first_line + before}" if first_line else where
        yield Place(word=word, where=place, line=lines[before].strip()[:160])


def _blank(match: re.Match[str]) -> str:
    """The same lines without what is in them, so that places keep their numbers."""
    return re.sub(r"[^\n]", "`", match[0])


def _in_page(path: Path) -> Iterator[Place]:
    text = path.read_text(encoding="utf-8")
    for pattern in (_FENCE, _CODE, _LINK_TARGET):
        text = pattern.sub(_blank, text)
    yield from find(text, shown(path), 1)


def _in_template(path: Path) -> Iterator[Place]:
    yield from find(_TEMPLATE.sub(_blank, path.read_text(encoding="utf-8")), shown(path), 1)


@functools.cache
def _texts(path: Path) -> tuple[tuple[ast.Constant, bool], ...]:
    """Every text in a module, and whether it is a docstring."""
    found = []
    docstrings = set[ast.expr]()
    for node in ast.walk(source_tree(path)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as text):
                docstrings.add(text)
            case ast.Constant(value=str()):
                found.append((node, node in docstrings))
            case _:
                pass
    return tuple(found)


def _in_comments(path: Path) -> Iterator[Place]:
    """In the docstrings of a module, and in the comments that have a line of their own."""
    for node, is_docstring in _texts(path):
        if is_docstring:
            yield from find(_CODE.sub(_blank, str(node.value)), shown(path), node.lineno)
    source = path.read_text(encoding="utf-8")
    for block in _COMMENT.finditer(source):
        text = re.sub(r"(?m)^\s*#", "", _CODE.sub(_blank, block[0]))
        yield from find(text, shown(path), source.count("\n", 0, block.start()) + 1)


def _in_texts(path: Path) -> Iterator[Place]:
    """In the texts of a module that are not docstrings: messages, labels, output."""
    for node, is_docstring in _texts(path):
        if not is_docstring:
            yield from find(str(node.value), shown(path), node.lineno)


def _in_messages() -> Iterator[Place]:
    for name in errors.__all__:
        yield from find(getattr(errors, name).hint, f"errors.{name}")
    for message in all_messages():
        own = message.hints if message.own_hint else ()
        for text in (*message.texts, *own):
            yield from find(_TEMPLATE.sub("`", text), f"{shown(message.path)}:{message.line}")


def _in_help(verb: click.Command = command, words: str = "sealpoint") -> Iterator[Place]:
    root = verb.get_help(click.Context(verb, **verb.context_settings)) if verb is command else ""
    texts = [root, verb.help, verb.short_help, verb.epilog]
    texts += [option.help for option in verb.params if isinstance(option, click.Option)]
    for text in texts:
        yield from find(text or "", words)
    if isinstance(verb, click.Group):
        context = click.Context(verb)
        for name in sorted(verb.list_commands(context)):
            child = verb.get_command(context, name)
            if child is not None and not child.hidden:
                yield from _in_help(child, f"{words} {name}")


def _pages() -> Iterator[tuple[str, Path]]:
    """The pages of the documentation, each with its area."""
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))):
        is_first = path.parent in (ROOT, ROOT / "docs")
        yield "first pages" if is_first else shown(path.parent), path


@functools.cache
def places() -> dict[str, tuple[Place, ...]]:
    """Every word to avoid, by area."""
    found: dict[str, list[Place]] = {}
    for area, path in _pages():
        found.setdefault(area, []).extend(_in_page(path))
    templates = sorted(ROOT.glob("packages/*/src/**/*.html"))
    files = source_files()
    found |= {
        "--help": list(_in_help()),
        "console templates": [place for path in templates for place in _in_template(path)],
        "docstrings and comments": [place for path in files for place in _in_comments(path)],
        "messages": list(_in_messages()),
        "texts in code": [place for path in files for place in _in_texts(path)],
    }
    return {area: tuple(there) for area, there in found.items()}


def ceilings() -> dict[str, int]:
    """How many words each area may have; none where it is not listed."""
    return tomllib.loads(CEILINGS.read_text(encoding="utf-8"))


def _write() -> None:
    """Lower the ceilings to what is there."""
    comment = CEILINGS.read_text(encoding="utf-8").splitlines()[0]
    known = ceilings()
    counts = {area: min(len(found), known.get(area, 0)) for area, found in places().items()}
    rows = [f'"{area}" = {count}' for area, count in sorted(counts.items()) if count]
    CEILINGS.write_text("\n".join([comment, "", *rows, ""]), encoding="utf-8")


def main() -> None:
    """Print the counts, or the places of the areas that are named."""
    parser = argparse.ArgumentParser(prog="python -m tests.repo.words", description=__doc__)
    parser.add_argument("areas", nargs="*", help="print every place of these areas")
    parser.add_argument("--write", action="store_true", help="lower the counts of words.toml")
    options = parser.parse_args()
    if unknown := set(options.areas) - set(places()):
        sys.exit(f"no such area: {', '.join(sorted(unknown))}")
    for area in options.areas:
        for place in places()[area]:
            print(place)  # noqa: T201 -- it is a command
    if not options.areas:
        for area, found in sorted(places().items()):
            print(f"{len(found):6} of {ceilings().get(area, 0):6}  {area}")  # noqa: T201
    if options.write:
        _write()


if __name__ == "__main__":
    main()
