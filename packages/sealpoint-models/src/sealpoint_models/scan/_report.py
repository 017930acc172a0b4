# SPDX-License-Identifier: Apache-2.0
"""The report of a scan about one file: a verdict, and each finding with its place.

A verdict is the worst of its findings and nothing else: a file without any is safe, and no setting
makes a finding count for less. Every finding follows one rule of a closed table. A message repeats
a name from the file only quoted, escaped and cut; it never repeats contents.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ScanVerdict(StrEnum):
    """The verdict about a file, from the best to the worst."""

    SAFE = "safe"
    """All of it was read, and it is data."""
    NOT_READ = "not-read"
    """It is not a model file, or a part of it is not, and that was not read."""
    NOT_PLAIN = "not-plain"
    """It builds objects of classes that only store their arguments; the classes are listed."""
    UNREADABLE = "unreadable"
    """It could not be read to its end, or its format can hold code and is not analyzed."""
    DANGEROUS = "dangerous"
    """It names code that can act, or two readers see different content in it."""

    @property
    def rank(self) -> int:
        """Its position in this order: 0 is the best."""
        return list(ScanVerdict).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRule:
    """One kind of finding."""

    verdict: ScanVerdict
    """The verdict of a finding of this kind; a note leaves the file safe."""
    title: str


RULES = {
    "name-unknown": ScanRule(
        verdict=ScanVerdict.DANGEROUS,
        title="A pickle names an unknown class or function, which may do anything.",
    ),
    "call-unresolved": ScanRule(
        verdict=ScanVerdict.DANGEROUS,
        title="A pickle calls something that it does not name: a result, a number of a registry.",
    ),
    "call-irregular": ScanRule(
        verdict=ScanVerdict.DANGEROUS,
        title="A call has arguments that the known type never writes, or a tensor does not fit.",
    ),
    "nested-pickle": ScanRule(
        verdict=ScanVerdict.DANGEROUS,
        title="Bytes or text inside a pickle are a pickle that names an unknown class or function.",
    ),
    "names-code": ScanRule(
        verdict=ScanVerdict.DANGEROUS,
        title="Data names code that a framework imports and calls after the load.",
    ),
    "source-code": ScanRule(
        verdict=ScanVerdict.DANGEROUS,
        title="A file of Python, which frameworks import from the folder of a model.",
    ),
    "keras-code": ScanRule(
        verdict=ScanVerdict.DANGEROUS,
        title="A Keras model holds a function, or names a class that is not one of Keras' own.",
    ),
    "archive-irregular": ScanRule(
        verdict=ScanVerdict.DANGEROUS,
        title="An archive is encrypted, or can be read in two ways: flags, sizes or names differ.",
    ),
    "path-escapes": ScanRule(
        verdict=ScanVerdict.DANGEROUS,
        title="A name inside the file leads to another place on the disk, or is a link.",
    ),
    "two-formats": ScanRule(
        verdict=ScanVerdict.DANGEROUS,
        title="The file has one format at its beginning, and another further in or at its end.",
    ),
    "wrong-name": ScanRule(
        verdict=ScanVerdict.DANGEROUS,
        title="The name of the file promises one format, and its content is another one.",
    ),
    "limit": ScanRule(
        verdict=ScanVerdict.UNREADABLE,
        title="The file needs more bytes, values, nesting or time than a model file may.",
    ),
    "malformed": ScanRule(
        verdict=ScanVerdict.UNREADABLE,
        title="The file breaks a rule of its format, so readers may interpret it differently.",
    ),
    "holds-code": ScanRule(
        verdict=ScanVerdict.UNREADABLE,
        title="The format can hold programs, and is not taken apart.",
    ),
    "not-opened": ScanRule(
        verdict=ScanVerdict.UNREADABLE,
        title="The scan cannot open this kind of container.",
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
        title="The scanner itself failed, which is a defect of Sealpoint; the file does not pass.",
    ),
    "known-class": ScanRule(
        verdict=ScanVerdict.NOT_PLAIN,
        title="A pickle builds an object of a listed class of a library, or of a class of yours.",
    ),
    "not-read": ScanRule(
        verdict=ScanVerdict.NOT_READ,
        title="The file is not a model file, and was not read.",
    ),
    "weights-not-read": ScanRule(
        verdict=ScanVerdict.NOT_READ,
        title="HDF5 weights of a Keras archive, which may name other files, were not read.",
    ),
    "template": ScanRule(
        verdict=ScanVerdict.SAFE,
        title="A note: a chat template, which is text for a template engine.",
    ),
    "external-data": ScanRule(
        verdict=ScanVerdict.SAFE,
        title="A note: a part of the model is in another file of the same folder.",
    ),
    "custom-operators": ScanRule(
        verdict=ScanVerdict.SAFE,
        title="A note: the model uses operators that a runtime must provide.",
    ),
}
"""Every rule by its id. A rule whose verdict is `safe` is a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFinding:
    """One finding of a scan about a file."""

    rule: str
    """An id of `RULES`."""
    message: str
    where: str = ""
    """The path inside of archives, parts joined by `!`; empty for the file itself."""
    offset: int | None = None
    """The byte position in the part that `where` names."""
    name: str | None = None
    """The name that would be imported, such as `os.system`."""
    called: bool = False
    """Whether it would be called as well."""

    @property
    def verdict(self) -> ScanVerdict:
        """The verdict of this finding alone."""
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
    """The findings in one file."""

    path: str
    format: str
    """The format by content, such as `torch-zip` or `unknown`."""
    size: int
    findings: tuple[ScanFinding, ...] = ()
    notes: tuple[ScanFinding, ...] = ()
    accepted: bool = False
    """Whether the caller accepts exactly these bytes, though they are not plain or not read."""

    @property
    def verdict(self) -> ScanVerdict:
        """The worst verdict of a finding; `safe` if there is none."""
        verdicts = (finding.verdict for finding in self.findings)
        return max(verdicts, key=lambda verdict: verdict.rank, default=ScanVerdict.SAFE)

    def is_refused(self, least: ScanVerdict = ScanVerdict.NOT_PLAIN) -> bool:
        """Whether the verdict is `least` or worse, and the file is not accepted."""
        return self.verdict.rank >= least.rank and not self.accepted

    def as_dict(self) -> dict[str, Any]:
        """Its form in JSON."""
        return {
            "path": self.path,
            "format": self.format,
            "bytes": self.size,
            "verdict": str(self.verdict),
            "accepted": self.accepted,
            "findings": [finding.as_dict() for finding in self.findings],
            "notes": [note.as_dict() for note in self.notes],
        }
