# SPDX-License-Identifier: Apache-2.0
"""Pages of the audit: each goes on where the one before it ended.

An audit tells what happened from the first entry on, and verifies every entry on the way. So a page
is not found by its number, which would cost as much as all pages before it: a page names the next
one, and that one reads on. Each person has a few reads that can be continued, and one that reads.
"""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from sealpoint.audit import AuditRecord
from sealpoint.errors import UsageError

KEPT_MAX = 8
"""So many pages of each person can be gone on from, or shown again."""


class AuditPage(NamedTuple):
    """Some records, and what names the page after them."""

    records: list[AuditRecord]
    after: str
    """Empty: there are no more."""


@dataclass(slots=True)
class _Read:
    """What comes after a page: records that are still to be read, or the page that they made."""

    records: Iterator[AuditRecord]
    first: AuditRecord
    page: AuditPage | None = None


_Reads = OrderedDict[tuple[str, str], _Read]
"""By the question and the name of a page."""


class AuditReads:
    """The reads of the audit that people can go on with."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._people: dict[str, tuple[threading.Lock, _Reads]] = {}

    def page(
        self, person: str, asked: str, records: Iterator[AuditRecord], after: str, size: int
    ) -> AuditPage:
        """The first page of some records, or the one that another page names.

        Args:
            person: Who reads.
            asked: What for: a page is gone on from with the same question.
            records: What fits that, from the first on.
            after: What names the page; empty: the first one.
            size: How many records a page holds.

        Raises:
            UsageError: No page of this person has this name any more.
        """
        with self._lock:
            turn, reads = self._people.setdefault(person, (threading.Lock(), OrderedDict()))
        with turn:
            if not after:
                return _page(reads, asked, list(islice(records, size)), records)
            read = reads.pop((asked, after), None)
            if read is None:
                raise UsageError(
                    "after: expected the name that one of your last pages gave, found "
                    f"{after[:40]!r}",
                    hint="Begin with the first page again.",
                )
            if read.page is None:
                shown = [read.first, *islice(read.records, size - 1)]
                read.page = _page(reads, asked, shown, read.records)
            reads[asked, after] = read  # for who loads the page again
            return read.page


def _page(
    reads: _Reads, asked: str, shown: list[AuditRecord], rest: Iterator[AuditRecord]
) -> AuditPage:
    """A page of some records, and a name for the one after it if there are more."""
    following = next(rest, None)
    if following is None:
        return AuditPage(shown, "")
    name = secrets.token_urlsafe(12)
    reads[asked, name] = _Read(rest, following)
    while len(reads) > KEPT_MAX:
        reads.popitem(last=False)
    return AuditPage(shown, name)
