# SPDX-License-Identifier: Apache-2.0
"""Just enough Markdown to test documentation: fenced blocks, sections, and sentences."""

import re
from dataclasses import dataclass

_FENCE = re.compile(r"^(?P<marks>`{3,})(?P<language>[^`]*)$")
_HEADING = re.compile(r"^#{1,6} +(?P<title>.*)$")
_SENTENCE_WORDS_MIN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block: its language, its text, and the line it starts on."""

    language: str
    text: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One heading with everything up to the next heading of any level."""

    title: str
    prose: str
    blocks: tuple[Block, ...]


def blocks(text: str) -> list[Block]:
    """List the fenced blocks of a document, in order."""
    return [block for section in sections(text) for block in section.blocks]


def sections(text: str) -> list[Section]:
    """Split a document at its headings; what stands before the first has an empty title."""
    found: list[Section] = []
    title, prose, fenced = "", list[str](), list[Block]()
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        if fence := _FENCE.match(line):
            inside: list[str] = []
            for _, inner in lines:
                if inner.rstrip() == fence["marks"]:
                    break
                inside.append(inner)
            body = "".join(f"{inner}\n" for inner in inside)
            fenced.append(Block(language=fence["language"].strip(), text=body, line=number))
        elif heading := _HEADING.match(line):
            found.append(Section(title=title, prose="\n".join(prose), blocks=tuple(fenced)))
            title, prose, fenced = heading["title"], [], []
        else:
            prose.append(line)
    found.append(Section(title=title, prose="\n".join(prose), blocks=tuple(fenced)))
    return found


def holds_sentence(text: str) -> bool:
    """Tell whether a text says something: at least four words that end with a full stop."""
    parts = [part for cell in re.split(r"\||\n\n", text) for part in re.split(r"(?<=[.])\s", cell)]
    return any(
        part.rstrip().endswith(".") and len(part.split()) >= _SENTENCE_WORDS_MIN for part in parts
    )


def names(text: str, word: str) -> bool:
    """Tell whether a text names `word` as code, alone or as a call or attribute."""
    return re.search(rf"`[^`\n]*(?<![\w-]){re.escape(word)}(?![\w-])[^`\n]*`", text) is not None
