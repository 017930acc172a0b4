# SPDX-License-Identifier: Apache-2.0
"""What a scan says of one file: a verdict, and each thing that led to it, with its place.

A verdict is made of findings and of nothing else: a file without any is safe, and no setting makes
a finding count for less. Every finding follows one rule of a closed table. What a file chose stands
in a message only as a name, quoted, escaped and cut; contents never do.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ScanVerdict(StrEnum):
    """What a file is, from the best to the worst."""

    SAFE = "safe"
    """All of it was read, it is data, and nothing in it names code."""
    UNREADABLE = "unreadable"
    """Not all of it could be read, or may be read by us: counts as unsafe."""
    UNSAFE = "unsafe"
    """It names or hides code, or was made so that two readers see two things."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRule:
    """One kind of finding."""

    verdict: ScanVerdict
    """What a finding of this kind makes of the file; a note leaves it safe."""
    title: str


RULES = {
    "name-unknown": ScanRule(
        verdict=ScanVerdict.UNSAFE,
        title="A pickle names a class or function that is not one of tensors and plain data.",
    ),
    "call-unresolved": ScanRule(
        verdict=ScanVerdict.UNSAFE,
        title="A pickle calls something that it does not name: a result, a number of a registry.",
    ),
    "call-irregular": ScanRule(
        verdict=ScanVerdict.UNSAFE,
        title="A known name is called with what its type never writes, or a tensor does not fit.",
    ),
    "nested-pickle": ScanRule(
        verdict=ScanVerdict.UNSAFE,
        title="Bytes or text inside of a pickle are a pickle that names what is not known.",
    ),
    "names-code": ScanRule(
        verdict=ScanVerdict.UNSAFE,
        title="Data names code that a framework imports and calls after the file was loaded.",
    ),
    "keras-code": ScanRule(
        verdict=ScanVerdict.UNSAFE,
        title="A Keras model holds a function, or names a class that is not one of Keras' own.",
    ),
    "archive-irregular": ScanRule(
        verdict=ScanVerdict.UNSAFE,
        title="An archive is encrypted, or can be read in two ways: flags, sizes or names differ.",
    ),
    "path-escapes": ScanRule(
        verdict=ScanVerdict.UNSAFE,
        title="A name inside of the file leads to another place of the disk, or is a link.",
    ),
    "two-formats": ScanRule(
        verdict=ScanVerdict.UNSAFE,
        title="The file is one format by its beginning, and another one further in or by its end.",
    ),
    "wrong-name": ScanRule(
        verdict=ScanVerdict.UNSAFE,
        title="The name of the file promises one format, and its content is another one.",
    ),
    "limit": ScanRule(
        verdict=ScanVerdict.UNSAFE,
        title="It asks for more bytes, values, nesting or time than a model file may.",
    ),
    "malformed": ScanRule(
        verdict=ScanVerdict.UNREADABLE,
        title="It breaks a rule of its format, so that nobody knows what a reader makes of it.",
    ),
    "holds-code": ScanRule(
        verdict=ScanVerdict.UNREADABLE,
        title="The format can hold programs, and is not taken apart.",
    ),
    "not-opened": ScanRule(
        verdict=ScanVerdict.UNREADABLE,
        title="A container that is not opened: it is packed in a way that is not read.",
    ),
    "format-unknown": ScanRule(
        verdict=ScanVerdict.UNREADABLE,
        title="The content is not of a known format.",
    ),
    "not-accessible": ScanRule(
        verdict=ScanVerdict.UNREADABLE,
        title="The file cannot be opened or read.",
    ),
    "reader-failed": ScanRule(
        verdict=ScanVerdict.UNREADABLE,
        title="The scanner itself failed: a defect of ours, and no pass.",
    ),
    "template": ScanRule(
        verdict=ScanVerdict.SAFE,
        title="A note: a chat template, which is text for a template engine.",
    ),
    "external-data": ScanRule(
        verdict=ScanVerdict.SAFE,
        title="A note: a part of the model lies in another file of the same folder.",
    ),
    "custom-operators": ScanRule(
        verdict=ScanVerdict.SAFE,
        title="A note: the model uses operators that a runtime has to bring itself.",
    ),
    "weights-not-read": ScanRule(
        verdict=ScanVerdict.SAFE,
        title="A note: HDF5 weights of a Keras archive, which may name other files, were not read.",
    ),
}
"""Every rule by its id. A rule whose verdict is `safe` is a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFinding:
    """One thing that a scan has to say about a file."""

    rule: str
    """An id of `RULES`."""
    message: str
    where: str = ""
    """The path inside of archives, parts joined by `!`; empty for the file itself."""
    offset: int | None = None
    """At which byte of what `where` names."""
    name: str | None = None
    """What would be imported, such as `os.system`."""
    called: bool = False
    """Whether it would be called as well."""

    @property
    def verdict(self) -> ScanVerdict:
        """What this alone makes of the file."""
        return RULES[self.rule].verdict

    def as_dict(self) -> dict[str, Any]:
        """Its form in JSON."""
        return {
            "rule": self.rule,
            "verdict": str(self.verdict),
            "message": self.message,
            "where": self.where,
            "offset": self.offset,
            "name": self.name,
            "called": self.called,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """What was found in one file."""

    path: str
    format: str
    """What it is by its content, such as `torch-zip` or `unknown`."""
    size: int
    findings: tuple[ScanFinding, ...] = ()
    notes: tuple[ScanFinding, ...] = ()

    @property
    def verdict(self) -> ScanVerdict:
        """`unsafe` or `unreadable` if a finding says so, else `safe`."""
        verdicts = {finding.verdict for finding in self.findings}
        for verdict in (ScanVerdict.UNSAFE, ScanVerdict.UNREADABLE):
            if verdict in verdicts:
                return verdict
        return ScanVerdict.SAFE

    def as_dict(self) -> dict[str, Any]:
        """Its form in JSON."""
        return {
            "path": self.path,
            "format": self.format,
            "bytes": self.size,
            "verdict": str(self.verdict),
            "findings": [finding.as_dict() for finding in self.findings],
            "notes": [note.as_dict() for note in self.notes],
        }
