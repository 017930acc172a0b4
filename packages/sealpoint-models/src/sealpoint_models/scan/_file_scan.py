# SPDX-License-Identifier: Apache-2.0
"""Scanning one file: its format, the code that it would run, and the place of that code.

`scan_path` and `scan_bytes` always return a report, never an error: an unreadable part is a
finding. They read, and do nothing else: nothing is written, imported, called or unpacked to a disk,
and neither torch nor numpy nor a framework is needed. A file is safe only if every part of it was
read and is data; a file that is not a model is `not-read`.

The readers of single formats return members, or findings about themselves. This module combines
them: content decides which reader is used, and archives inside archives are followed down to a
depth, within one budget for the whole file.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sealpoint.disk import FILE, Unsafe, kind_of, open_plain
from sealpoint.errors import (
    FormatRefused,
    GlobalNotAllowed,
    ModelLimitExceeded,
    ModelMalformed,
    SealpointError,
)
from sealpoint.limits import (
    MODEL_PICKLE_BYTES_MAX,
    SCAN_DEPTH_MAX,
    SCAN_FINDINGS_MAX,
)
from sealpoint_models.scan._byte_source import Budget, Member, Source
from sealpoint_models.scan._compressed_streams import (
    STREAMS,
    is_torch_tar,
    tar_members,
    unpack_stream,
)
from sealpoint_models.scan._format_detection import (
    CODE_SUFFIXES,
    DOCUMENT_SUFFIXES,
    EXPECTED,
    HOLDS_CODE,
    MODEL_SUFFIXES,
    NOT_OPENED,
    TEMPLATE_SUFFIXES,
    YAML_SUFFIXES,
    calls_as_pickle,
    detect,
    has_templates,
    is_hdf5,
    second_format,
    suffix_of,
    zip_kind,
)
from sealpoint_models.scan._gguf import scan_gguf
from sealpoint_models.scan._hidden_code import (
    NamedCode,
    document_names_code,
    is_index,
    names_outside,
    text_names_code,
)
from sealpoint_models.scan._keras import (
    KERAS_CONFIG,
    KERAS_METADATA,
    KERAS_WEIGHTS,
    is_keras_config,
    is_keras_metadata,
    read_json,
    scan_keras,
)
from sealpoint_models.scan._known_classes import known_classes
from sealpoint_models.scan._npy import read_npy
from sealpoint_models.scan._onnx import leaves_folder, scan_onnx
from sealpoint_models.scan._pickle_judge import PickleJudge
from sealpoint_models.scan._report import ScanFinding, ScanReport, ScanVerdict
from sealpoint_models.scan._safetensors import LENGTH_BYTES, header_end, read_header
from sealpoint_models.scan._torch_wrappings import HEAD_BYTES as WRAPPING_HEAD_BYTES
from sealpoint_models.scan._torch_wrappings import wrapping_kind
from sealpoint_models.scan._torch_zip import PICKLE, shown
from sealpoint_models.scan._zip_members import zip_entries, zip_members

_FILE = "the file"


_ACCEPTABLE = (ScanVerdict.NOT_PLAIN, ScanVerdict.NOT_READ)


def scan_bytes(data: bytes, name: str = "", *, own_classes: Collection[str] = ()) -> ScanReport:
    """Scan bytes that are in memory.

    Args:
        data: All of a file.
        name: The name of the file; only its base name and extension matter.
        own_classes: As for `scan_path`.
    """
    return _Scan(name, len(data), own_classes).run(Source.of(data))


def scan_path(
    path: str | os.PathLike[str],
    *,
    own_classes: Collection[str] = (),
    accepted: Collection[str] = (),
) -> ScanReport:
    """Scan one file. A link to a file is followed.

    Args:
        path: The path of the file.
        own_classes: Classes of yours, as `module.Class`, whose objects are `not-plain` and not
            `dangerous` where a pickle only sets their attributes.
        accepted: SHA-256 digests, in hexadecimal digits, of files that are accepted though they
            are not plain data or were not read. Nothing accepts a file of a worse verdict.
    """
    name = os.fspath(path)
    try:
        descriptor = open_plain(Path(path), FILE, follow=True)
    except (OSError, Unsafe, ValueError) as error:
        return _not_accessible(name, error)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return _not_accessible(name, f"expected a file, found {kind_of(found)}")

        def read(offset: int, length: int) -> bytes:
            parts: list[bytes] = []
            while length > 0 and (part := os.pread(descriptor, length, offset)):
                parts.append(part)
                offset += len(part)
                length -= len(part)
            return parts[0] if len(parts) == 1 else b"".join(parts)

        report = _Scan(name, found.st_size, own_classes).run(Source(read, found.st_size))
        if accepted and report.verdict in _ACCEPTABLE:
            with open(descriptor, "rb", closefd=False) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            report = replace(report, accepted=digest in accepted)
        if _version(os.fstat(descriptor)) == _version(found):
            return report
        # The bytes that were read belong partly to one file and partly to another.
        changed = ScanFinding(rule="not-accessible", message="it was changed while it was scanned")
        return replace(report, findings=(*report.findings, changed), accepted=False)
    finally:
        os.close(descriptor)


def _version(found: os.stat_result) -> tuple[int, int, int]:
    """A number that changes when a file is written to."""
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _not_accessible(name: str, error: Exception | str) -> ScanReport:
    return ScanReport(path=name, format="unknown", size=0, findings=(_inaccessible(error),))


def _inaccessible(error: Exception | str) -> ScanFinding:
    if isinstance(error, OSError):
        error = f"expected a file to read: {error.strerror}"
    return ScanFinding(rule="not-accessible", message=str(error))


@dataclass(slots=True, kw_only=True)
class _Thing:
    """A scanned object: the file, or a part of it."""

    source: Source
    name: str
    where: str
    depth: int
    kind: str
    """The format; its reader may know better than its first bytes."""

    @property
    def what(self) -> str:
        """The name for messages."""
        return self.where or _FILE

    def inside(self, name: str) -> str:
        """The place of a part of it."""
        return f"{self.where}!{name}" if self.where else name


class _Scan:
    """One scan of one file."""

    def __init__(self, name: str, size: int, own_classes: Collection[str]) -> None:
        self._name = name
        self._size = size
        self._classes = known_classes(own_classes)
        self._budget = Budget(size)
        # Findings that are not plain or not read have a separate list: no number of them may
        # displace a worse one.
        self._findings: list[ScanFinding] = []
        self._lesser: list[ScanFinding] = []
        self._notes: list[ScanFinding] = []
        self._handlers: dict[str, Callable[[_Thing], Iterator[ScanFinding]]] = {
            "empty": self._empty,
            "zip": self._zip,
            "torch-zip": self._torch_zip,
            "keras": self._keras,
            "npz": self._archive,
            "tar": self._tar,
            "npy": self._npy,
            "gguf": lambda thing: scan_gguf(thing.source, self._budget, thing.what),
            "onnx": lambda thing: scan_onnx(thing.source, self._budget, thing.what),
            "safetensors": self._safetensors,
            "pickle": self._pickle,
            "text": self._text,
            "unknown": self._unknown,
            "git-lfs-pointer": self._pointer,
            **dict.fromkeys(STREAMS, self._stream),
            **dict.fromkeys(HOLDS_CODE, self._holds_code),
            **dict.fromkeys(NOT_OPENED, self._not_opened),
        }

    def run(self, source: Source) -> ScanReport:
        kind = "unknown"
        try:
            kind = self._visit(source, self._name, "", 0)
        except OSError as error:
            self._add(_inaccessible(error), "")
        return ScanReport(
            path=self._name,
            format=kind,
            size=self._size,
            findings=(*self._findings, *self._lesser),
            notes=tuple(self._notes),
        )

    def _add(self, finding: ScanFinding, where: str) -> None:
        # Errors begin with their subject, which the report shows as the place.
        message = finding.message.removeprefix(f"{where or _FILE}: ")
        finding = replace(finding, message=message, where=finding.where or where)
        kept = self._findings
        if finding.verdict is ScanVerdict.SAFE:
            kept = self._notes
        elif finding.verdict in _ACCEPTABLE:
            kept = self._lesser
        if len(kept) < SCAN_FINDINGS_MAX:
            kept.append(finding)
        elif len(kept) == SCAN_FINDINGS_MAX:
            kept.append(replace(finding, message=f"more than {SCAN_FINDINGS_MAX} findings"))

    def _visit(self, source: Source, name: str, where: str, depth: int) -> str:
        """Scan an object, and return its format."""
        thing = _Thing(source=source, name=name, where=where, depth=depth, kind="unknown")
        try:
            if depth > SCAN_DEPTH_MAX:
                raise ModelLimitExceeded(f"expected at most {SCAN_DEPTH_MAX} archives in archives")
            thing.kind = detect(source, name)
            if thing.kind == "zip":
                directory = zip_entries(source, thing.what)
                thing.kind = zip_kind([entry.name for entry in directory.entries])
            is_found = False
            for finding in self._found(thing):
                # It adds nothing about an object with a worse finding.
                if finding.rule == "not-read" and is_found:
                    continue
                is_found = is_found or finding.verdict.rank > ScanVerdict.NOT_READ.rank
                self._add(finding, where)
                if len(self._findings) > SCAN_FINDINGS_MAX:
                    break
        except SealpointError as error:
            self._add(_finding_of(error, thing.kind), where)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - a defect of a reader must not be a pass
            message = f"the reader of {thing.kind} failed: {type(error).__name__}"
            self._add(ScanFinding(rule="reader-failed", message=message), where)
        return thing.kind

    def _found(self, thing: _Thing) -> Iterator[ScanFinding]:
        yield from self._judge(thing)
        if is_index(thing.name):
            for name in names_outside(read_json(thing.source, self._budget, thing.what)):
                message = f"an index names the file {shown(name)}"
                yield ScanFinding(rule="path-escapes", message=message)

    def _judge(self, thing: _Thing) -> Iterator[ScanFinding]:
        expected = EXPECTED.get(suffix_of(thing.name))
        if expected is not None and thing.kind not in expected | _NO_CONTENT:
            yield ScanFinding(
                rule="wrong-name",
                message=f"expected {' or '.join(sorted(expected))}, as the name says, "
                f"found {thing.kind}",
            )
        if suffix_of(thing.name) in CODE_SUFFIXES and thing.kind != "empty":
            yield ScanFinding(
                rule="source-code", message="frameworks import such a file from a model's folder"
            )
        if thing.kind != "tar":  # after its members, which may be zips
            yield from _second_format(thing)
        if thing.kind not in _READ_AS_PICKLE and self._calls(thing, imports=True):
            yield ScanFinding(
                rule="two-formats",
                message=f"the bytes are {thing.kind}, and a pickle that imports something",
            )
        if thing.kind in self._handlers:
            yield from self._handlers[thing.kind](thing)
        else:
            yield self._not_a_model(thing)

    def _not_a_model(self, thing: _Thing) -> ScanFinding:
        """Report that something was not read; under the name of a model file that is a fault."""
        suffix = suffix_of(thing.name)
        if suffix in MODEL_SUFFIXES:
            message = f"expected a model file, found {thing.kind}"
            return ScanFinding(rule="format-unknown", message=message)
        if suffix in DOCUMENT_SUFFIXES | TEMPLATE_SUFFIXES and thing.kind != "text":
            message = f"expected a text in UTF-8, found {thing.kind}"
            return ScanFinding(rule="format-unknown", message=message)
        return ScanFinding(rule="not-read", message=f"{thing.kind} is not a model, and is not read")

    def _calls(self, thing: _Thing, *, imports: bool = False) -> bool:
        return calls_as_pickle(thing.source, self._budget, thing.what, imports=imports)

    def _members(self, members: Iterator[Member], thing: _Thing) -> Iterator[ScanFinding]:
        for member in members:
            self._budget.step(0, thing.what)
            if leaves_folder(member.name):
                yield ScanFinding(
                    rule="path-escapes", message=f"a member is called {shown(member.name)}"
                )
            where = thing.inside(shown(member.name)[1:-1])
            self._visit(member.source, member.name, where, thing.depth + 1)

    # Containers.

    def _archive(self, thing: _Thing) -> Iterator[ScanFinding]:
        directory = zip_entries(thing.source, thing.what)
        members = zip_members(thing.source, directory, self._budget, thing.what)
        yield from self._members(members, thing)

    _zip = _archive

    def _tar(self, thing: _Thing) -> Iterator[ScanFinding]:
        if is_torch_tar(thing.source, thing.what):
            yield from _second_format(thing)
            yield ScanFinding(
                rule="format-unknown",
                message="torch wrote this tar before 0.1.10 (2017), and it is not read",
            )
            return
        members: list[Member] = []
        for member in tar_members(thing.source, self._budget, thing.what):
            members.append(member)
            yield from self._members(iter((member,)), thing)
        yield from _second_format(thing, members)

    def _stream(self, thing: _Thing) -> Iterator[ScanFinding]:
        data = unpack_stream(thing.source, thing.kind, self._budget, thing.what)
        # The content has the name without the last extension, and a name that promises something.
        name = thing.name[: len(thing.name) - len(suffix_of(thing.name))] or thing.name
        if suffix_of(name) not in MODEL_SUFFIXES:
            name += ".data"
        self._visit(Source.of(data), name, thing.inside(thing.kind), thing.depth + 1)
        yield from ()

    def _keras(self, thing: _Thing) -> Iterator[ScanFinding]:
        directory = zip_entries(thing.source, thing.what)
        for member in zip_members(thing.source, directory, self._budget, thing.what):
            if member.name == KERAS_CONFIG:
                for finding in scan_keras(member.source, self._budget, KERAS_CONFIG):
                    yield replace(finding, where=thing.inside(KERAS_CONFIG))
            elif member.name == KERAS_METADATA and is_keras_metadata(member.source, self._budget):
                pass
            elif member.name == KERAS_WEIGHTS and is_hdf5(member.source):
                yield ScanFinding(
                    rule="weights-not-read",
                    message="weights in HDF5, which may name other files, were not read",
                    where=thing.inside(KERAS_WEIGHTS),
                )
            else:
                yield from self._members(iter((member,)), thing)

    # Arrays and tensors.

    def _npy(self, thing: _Thing) -> Iterator[ScanFinding]:
        header = read_npy(thing.source, self._budget, thing.what)
        if header.objects:
            rest = thing.source.window(header.begin, thing.source.size - header.begin)
            judge = self._judge_of(thing)
            for finding in self._findings_of(judge, judge.judge_pickle, rest):
                yield replace(finding, offset=_moved(finding.offset, header.begin))

    def _safetensors(self, thing: _Thing) -> Iterator[ScanFinding]:
        source = thing.source
        end = header_end(source.read(0, LENGTH_BYTES), source.size, thing.what)
        raw = source.read(0, end)
        self._budget.step(raw.count(b","), thing.what)
        header = read_header(raw, source.size, thing.what)
        for text in header.metadata.values():
            for each in text_names_code(text):
                yield _code_finding("metadata", each)

    # Pickles.

    def _findings_of(
        self, judge: PickleJudge, read: Callable[[Source], None], source: Source, kind: str = ""
    ) -> Iterator[ScanFinding]:
        """The findings of a judge while it reads; then the error that stopped it."""
        try:
            read(source)
        except SealpointError as error:
            broken = "pickle" if judge.error is error else kind
            judge.findings.append(_finding_of(error, broken))
        yield from judge.findings
        yield from judge.objects.values()

    def _judge_of(self, thing: _Thing, *, joblib: bool = False) -> PickleJudge:
        return PickleJudge(
            thing.what, self._budget, thing.depth, joblib=joblib, classes=self._classes
        )

    def _torch_zip(self, thing: _Thing) -> Iterator[ScanFinding]:
        judge = self._judge_of(thing)
        for finding in self._findings_of(judge, judge.judge_wrapping, thing.source, thing.kind):
            yield replace(finding, where=thing.inside(PICKLE))

    def _pickle(self, thing: _Thing) -> Iterator[ScanFinding]:
        if wrapping_kind(thing.source.read(0, WRAPPING_HEAD_BYTES)) == "stream":
            thing.kind = "torch-legacy"
            judge = self._judge_of(thing)
            yield from self._findings_of(judge, judge.judge_wrapping, thing.source)
        else:
            judge = self._judge_of(thing, joblib=True)
            yield from self._findings_of(judge, judge.judge_pickle, thing.source)

    # Files that are not models, or not of a supported format.

    def _text(self, thing: _Thing) -> Iterator[ScanFinding]:
        """Text is not a model; but the first protocols of pickle are text."""
        found = self._without_magic(thing)
        yield from found or ()
        if is_keras_config(thing.name, thing.source, self._budget, thing.what):
            yield from scan_keras(thing.source, self._budget, thing.what)
        if has_templates(thing.name):
            yield from self._templates(thing)
        suffix = suffix_of(thing.name)
        if suffix in DOCUMENT_SUFFIXES:
            data = thing.source.whole(MODEL_PICKLE_BYTES_MAX, thing.what)
            for each in document_names_code(data, is_yaml=suffix in YAML_SUFFIXES):
                yield _code_finding("the document", each)
        if found is None and self._calls(thing):
            yield ScanFinding(
                rule="malformed", message="a pickle that is not spelled as Python spells it"
            )
        elif found is None and suffix not in TEMPLATE_SUFFIXES:
            yield self._not_a_model(thing)

    def _templates(self, thing: _Thing) -> Iterator[ScanFinding]:
        from sealpoint_models.scan._chat_templates import judge_template, templates_in  # noqa: PLC0415

        try:
            for named, template in templates_in(
                thing.name, read_json(thing.source, self._budget, thing.what)
            ):
                yield from judge_template(named, template, self._budget)
        except (ValueError, RecursionError):
            yield ScanFinding(
                rule="malformed", message="expected a template, or JSON with one, found none"
            )

    def _unknown(self, thing: _Thing) -> Iterator[ScanFinding]:
        found = self._without_magic(thing)
        yield from found or ()
        if found is not None:
            return
        if suffix_of(thing.name) and not self._calls(thing, imports=True):
            yield self._not_a_model(thing)
        else:
            yield ScanFinding(rule="format-unknown", message="the content is not of a known format")

    def _without_magic(self, thing: _Thing) -> list[ScanFinding] | None:
        """The findings in a pickle of protocol 0 or 1, which has no signature; None: it is not one.

        A truncated pickle counts if it called something before.
        """
        if thing.source.size > MODEL_PICKLE_BYTES_MAX:
            return None
        judge = self._judge_of(thing)
        found = list(self._findings_of(judge, judge.judge_old, thing.source))
        if judge.error is not None and not any(finding.called for finding in found):
            return None
        thing.kind = "pickle"
        return found

    def _empty(self, thing: _Thing) -> Iterator[ScanFinding]:
        if suffix_of(thing.name) in MODEL_SUFFIXES:
            yield ScanFinding(rule="malformed", message="expected a model file, found no bytes")

    def _pointer(self, thing: _Thing) -> Iterator[ScanFinding]:
        del thing
        yield ScanFinding(
            rule="format-unknown",
            message="a pointer of Git LFS, not the file itself: git lfs pull fetches it",
        )

    def _holds_code(self, thing: _Thing) -> Iterator[ScanFinding]:
        if thing.kind == "script" and suffix_of(thing.name) not in MODEL_SUFFIXES:
            yield self._not_a_model(thing)
            return
        yield ScanFinding(rule="holds-code", message=f"it is {HOLDS_CODE[thing.kind]}")

    def _not_opened(self, thing: _Thing) -> Iterator[ScanFinding]:
        message = f"{NOT_OPENED[thing.kind]} is not opened: unpack the file and scan what was in it"
        yield ScanFinding(rule="not-opened", message=message)


_ZIPS = frozenset({"zip", "torch-zip", "keras", "npz", "torchscript", "torch-package"}) | {
    "torch-export",
    "torch-serve",
}
_ARCHIVES = _ZIPS | {"tar"}
_NO_CONTENT = frozenset({"empty", "git-lfs-pointer"})
"""Files without content promise nothing."""
_READ_AS_PICKLE = frozenset({"pickle", "text", "unknown", "empty"})
"""Formats that may also be a pickle, or are never safe."""


def _second_format(thing: _Thing, members: Iterable[Member] = ()) -> Iterator[ScanFinding]:
    kind = "zip" if thing.kind in _ZIPS else thing.kind
    second = second_format(thing.source, kind, members)
    if second is not None:
        yield ScanFinding(
            rule="two-formats", message=f"the bytes are {thing.kind} and {second} at once"
        )


def _code_finding(what: str, code: NamedCode) -> ScanFinding:
    named = "" if code.name is None else f", here {shown(code.name)}"
    message = f"{what} with the key {shown(code.key)}{named}: {code.reason}"
    return ScanFinding(rule="names-code", message=message, name=code.name)


def _moved(offset: int | None, by: int) -> int | None:
    return None if offset is None else offset + by


def _finding_of(error: SealpointError, kind: str) -> ScanFinding:
    """The verdict for an error while reading."""
    rule = "malformed"
    if isinstance(error, ModelLimitExceeded):
        rule = "limit"
    elif isinstance(error, FormatRefused):
        rule = "holds-code"
    elif isinstance(error, GlobalNotAllowed):
        rule = "name-unknown"
    elif kind in _ARCHIVES:
        rule = "archive-irregular"
    elif not isinstance(error, ModelMalformed):
        rule = "call-irregular"
    return ScanFinding(rule=rule, message=error.message)
