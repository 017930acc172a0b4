# SPDX-License-Identifier: Apache-2.0
"""Pickles, judged: their imports and calls, their meaning, and the dangers in their data.

Every name that a pickle mentions has to be in the closed table of the reader, used or not, or be a
known class; then all of it has to have a meaning, by the same function that `load_checkpoint`
calls. Nothing is imported, looked up or called. Findings before a fault of the pickle are reported
as well: a payload comes before the fault that is meant to hide it.

Only the data that joblib writes between the opcodes of a pickle is read here and not by
`load_checkpoint`.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from sealpoint.errors import ModelLimitExceeded, SealpointError
from sealpoint.limits import MODEL_PICKLE_BYTES_MAX, SCAN_DEPTH_MAX, SCAN_FINDINGS_MAX
from sealpoint_models.scan._byte_source import Budget, Source
from sealpoint_models.scan._compressed_streams import unpack_stream
from sealpoint_models.scan._format_detection import END_LINES, names_as_opcodes
from sealpoint_models.scan._hidden_code import literals, may_hide, may_name_code, names_of_code
from sealpoint_models.scan._joblib import WRAPPER, ArraySkipper
from sealpoint_models.scan._known_classes import KnownClass
from sealpoint_models.scan._pickle_allowed_calls import KNOWN_NAMES, read_meaning
from sealpoint_models.scan._pickle_reader import run_pickle
from sealpoint_models.scan._pickle_symbols import Global, Mentions, Program, Reading
from sealpoint_models.scan._report import ScanFinding
from sealpoint_models.scan._torch_wrappings import (
    HEAD_BYTES,
    LOADED,
    given_literals,
    given_storages,
    may_be_pickle,
    read_given,
    read_wrapping,
    sizes_of,
    wrapping_kind,
)
from sealpoint_models.scan._torch_zip import shown

_NAMES_SHOWN_MAX = 40
_LITERALS_MAX = 4096
_FOLLOWING_MAX = 4
"""How many pickles after the first are checked, where only one is allowed."""
_PACKED = {b"\x1f\x8b": "gzip", b"BZ": "bzip2", b"\xfd7": "xz"}
_ABOUT_NAMES = frozenset({"name-unknown", "call-unresolved"})


@dataclass(slots=True)
class PickleJudge:
    """Judges the pickles of one file, and keeps its findings even if a later part fails."""

    what: str
    budget: Budget
    depth: int = 0
    joblib: bool = False
    """Whether elements of arrays may lie between opcodes."""
    gives: bool = False
    """Whether storages may be given as bytes: a caller reads them."""
    classes: Mapping[Global, KnownClass] = field(default_factory=dict)
    """Names whose objects only store their arguments."""
    findings: list[ScanFinding] = field(default_factory=list)
    objects: dict[Global, ScanFinding] = field(default_factory=dict)
    """The first mention of each known class, separate from worse findings, which are limited."""
    error: SealpointError | None = None
    """The reason why a pickle could not be read to its end."""

    def judge_wrapping(self, source: Source) -> None:
        """Judge a file of torch: its pickles, and the tensors in them against its storages.

        Raises:
            SealpointError: It is damaged, or is not such a file.
        """
        wrapping = read_wrapping(
            source.read, source.size, self.what, run=self.run, work=self.budget.work
        )
        self._judge_meaning(wrapping.program, source.size, wrapping.sizes, views=wrapping.views)

    def judge_pickle(self, source: Source) -> None:
        """Judge a file that is one pickle.

        Raises:
            SealpointError: It is damaged, or too long.
        """
        # The elements of its arrays may make a file of joblib longer than a pickle may be.
        data = source.read(0, min(source.size, MODEL_PICKLE_BYTES_MAX))
        self.gives = True
        program = self.run(data, self.what, whole=False)
        if program.end == source.size:
            self._judge_meaning(program, source.size, self._given(program))
            return
        self.findings.append(
            ScanFinding(
                rule="malformed",
                message=f"expected one pickle, found {source.size - program.end} bytes after it",
                offset=program.end,
            )
        )
        for _ in range(_FOLLOWING_MAX):
            program = self.run(data, self.what, start=program.end, whole=False)

    def judge_old(self, source: Source) -> None:
        """Judge a possible pickle of protocol 0 or 1 without further data.

        Raises:
            SealpointError: It is not one, or is damaged.
        """
        data = source.whole(MODEL_PICKLE_BYTES_MAX, self.what)
        self.gives = True
        program = self.run(data, self.what)
        if may_be_pickle(data[:HEAD_BYTES]):
            self._judge_meaning(program, source.size, self._given(program))
        else:
            self.findings.append(
                ScanFinding(rule="format-unknown", message="the content is of no known format")
            )

    def run(
        self,
        data: bytes,
        what: str,
        *,
        start: int = 0,
        whole: bool = True,
        mentions: Mentions | None = None,
    ) -> Program:
        """Run a pickle as `run_pickle` does, and judge its names and its data."""
        mentions = Mentions() if mentions is None else mentions
        skip = self._skipper(data) if self.joblib else None
        try:
            program = run_pickle(
                data,
                what,
                start=start,
                whole=whole,
                mentions=mentions,
                skip=skip,
                work=self.budget.work,
            )
        except SealpointError as error:
            self.error = error
            raise
        finally:
            self._keep(self._names(mentions))
            self._note_objects(mentions)
        self._keep(self._hidden(program, data, start))
        if skip is not None:
            self._keep(self._opcodes(skip, data, loads=LOADED in program.names))
        return program

    def run_nested(self, data: bytes) -> None:
        """Run the pickle, or the pickles of a stream of torch, inside some bytes."""
        if wrapping_kind(data[:HEAD_BYTES]) == "stream":
            source, work = Source.of(data), self.budget.work
            read_wrapping(source.read, source.size, self.what, run=self.run, work=work)
        else:
            self.run(data, self.what, whole=False)

    def _keep(self, findings: Iterable[ScanFinding]) -> None:
        """Keep findings, up to the limit of a report."""
        room = SCAN_FINDINGS_MAX + 1 - len(self.findings)
        self.findings.extend(islice(findings, max(room, 0)))

    def _skipper(self, data: bytes) -> ArraySkipper:
        return ArraySkipper(data, self.what, self.budget, partial(self._objects, data))

    def _opcodes(self, skip: ArraySkipper, data: bytes, *, loads: bool) -> Iterator[ScanFinding]:
        """Arrays whose elements import something in a reader that does not know joblib.

        A function that `loads` bytes runs anything in them: where the pickle around an array names
        it, no import is needed, and the pickle of an array of objects may have another meaning.
        """
        if skip.bare_elements:
            data += END_LINES
        for at in skip.bare_elements:
            if names_as_opcodes(data, at, self.budget, self.what, or_calls=loads):
                message = "without joblib, the elements of an array are opcodes that import"
                yield ScanFinding(rule="two-formats", message=message, offset=at)
        for at in skip.objects[:1] if loads else ():
            message = f"without joblib, the objects of an array may be given to {LOADED}"
            yield ScanFinding(rule="two-formats", message=message, offset=at)

    def _objects(self, data: bytes, at: int) -> int:
        """An array of objects in a file of joblib is a pickle for Python's own reader.

        A reader that does not know joblib has another memo there, so that it gives no storages.
        """
        inner = PickleJudge(
            self.what, self.budget, self.depth, classes=self.classes, objects=self.objects
        )
        try:
            program = inner.run(data, self.what, start=at, whole=False)
            inner._judge_meaning(program, program.end - at, {})
            if program.mentions.recalled_at is not None:
                message = "without joblib, the objects of an array name something else"
                place = program.mentions.recalled_at
                inner._keep([ScanFinding(rule="two-formats", message=message, offset=place)])
        finally:
            self._keep(inner.findings)
        return program.end

    def _judge_meaning(
        self,
        program: Program,
        file_bytes: int,
        storages: Mapping[str, int],
        *,
        views: bool = False,
    ) -> None:
        """Judge the meaning of a pickle, if all of its names are known."""
        if any(finding.rule in _ABOUT_NAMES for finding in self.findings):
            return
        beside: dict[Global, Reading] = (
            {LOADED: partial(read_given, what=self.what)} if self.gives else {}
        )
        if self.joblib:
            beside[WRAPPER] = self._skipper(b"").read
        try:
            read_meaning(
                program,
                storages=storages,
                file_bytes=file_bytes,
                what=self.what,
                views=views,
                beside=beside,
                classes=self.classes if self.objects else {},
                work=self.budget.work,
            )
        except SealpointError as error:
            rule = "limit" if isinstance(error, ModelLimitExceeded) else "call-irregular"
            self.findings.append(ScanFinding(rule=rule, message=error.message))

    def _given(self, program: Program) -> dict[str, int]:
        """The sizes of the storages that a pickle gives as bytes, which are judged as well."""
        inner = PickleJudge(self.what, self.budget, self.depth)
        try:
            return sizes_of(given_storages(program, self.what, inner.run, self.budget.work))
        except SealpointError:
            # With unexpected arguments, the name counts as unknown.
            self.gives = False
            names = self._names(program.mentions)
            self._keep(each for each in names if each.name == str(LOADED))
            raise
        finally:
            self._keep(
                replace(each, message=f"in the bytes of a storage: {each.message}", offset=None)
                for each in inner.findings
            )

    def _note_objects(self, mentions: Mentions) -> None:
        new = self.classes.keys() & mentions.names.keys() - self.objects.keys()
        called = frozenset(mentions.called) if new else ()
        for name, at in mentions.names.items():
            if name in new:
                self.objects[name] = ScanFinding(
                    rule="known-class",
                    message=f"the pickle names {shown(str(name))}: {self.classes[name].reason}",
                    offset=at,
                    name=str(name),
                    called=name in called,
                )

    def _names(self, mentions: Mentions) -> Iterator[ScanFinding]:
        # The first mention of each, since later ones are put in first.
        called = dict(zip(mentions.called[::-1], mentions.called_at[::-1], strict=True))
        unknown = [name for name in mentions.names if name.module and not self._knows(name)]
        for name in unknown[:_NAMES_SHOWN_MAX]:
            at = called.get(name)
            acts = "imports" if at is None else "imports and calls"
            yield ScanFinding(
                rule="name-unknown",
                message=f"the pickle {acts} {shown(str(name))}",
                offset=mentions.names[name],
                name=str(name),
                called=at is not None,
            )
        if len(unknown) > _NAMES_SHOWN_MAX:
            more = len(unknown) - _NAMES_SHOWN_MAX
            yield ScanFinding(rule="name-unknown", message=f"{more} more names that are not known")
        for function, at in called.items():
            if not function.module:
                yield ScanFinding(
                    rule="call-unresolved",
                    message=f"the pickle calls {function.name}",
                    offset=at,
                    called=True,
                )
        for name, at in mentions.names.items():
            if not name.module and name not in called:
                yield ScanFinding(
                    rule="call-unresolved", message=f"the pickle refers to {name.name}", offset=at
                )

    def _knows(self, name: Global) -> bool:
        return (
            name in KNOWN_NAMES
            or name in self.classes
            or (self.joblib and name == WRAPPER)
            or (self.gives and name == LOADED)
        )

    def _hidden(self, program: Program, data: bytes, start: int) -> Iterator[ScanFinding]:
        if may_name_code(data, start, program.end):
            for each in names_of_code(program):
                named = "" if each.name is None else f", here {shown(each.name)}"
                yield ScanFinding(
                    rule="names-code",
                    message=f"data with the key {shown(each.key)}{named}: {each.reason}",
                    name=each.name,
                )
        if may_hide(data, start, program.end):
            yield from self._nested(program)

    def _nested(self, program: Program) -> Iterator[ScanFinding]:
        if self.depth >= SCAN_DEPTH_MAX:
            yield ScanFinding(
                rule="limit", message=f"pickles inside of pickles, more than {SCAN_DEPTH_MAX} deep"
            )
            return
        given = given_literals(program) if self.gives else ()
        texts = [text for text in program.texts if id(text) not in given]
        for number, literal in enumerate(literals(texts)):
            if number >= _LITERALS_MAX:
                yield ScanFinding(
                    rule="limit", message=f"more than {_LITERALS_MAX} texts that may be pickles"
                )
                return
            unpacked = self._unpacked(literal)
            if unpacked is None:
                continue
            self.budget.unpack(len(unpacked), self.what)
            # Only its names: its own reader knows which storages it may have.
            inner = PickleJudge(self.what, self.budget, self.depth + 1, joblib=True)
            with contextlib.suppress(SealpointError):  # it may only have begun as one
                inner.run_nested(unpacked)
            for finding in inner.findings:
                yield ScanFinding(
                    rule="nested-pickle",
                    message=f"in a pickle inside a text or bytes: {finding.message}",
                    name=finding.name,
                    called=finding.called,
                )

    def _unpacked(self, literal: bytes) -> bytes | None:
        kind = _PACKED.get(literal[:2]) or ("zlib" if literal[:1] == b"x" else None)
        if kind is None:
            return literal
        try:
            return unpack_stream(Source.of(literal), kind, self.budget, self.what)
        except SealpointError:
            return None
