# SPDX-License-Identifier: Apache-2.0
"""Pages of the audit: each continues at the end of the previous one.

An audit lists events from the first entry, and verifies every entry on the way. Finding a page by
its number would cost as much as all pages before it. So a page names the next one, which continues
the read. Each person has a few reads to continue, and one active read.
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
"""The number of pages per person that can be continued, or shown again."""


class AuditPage(NamedTuple):
    """Some records, and the name of the next page."""

    records: list[AuditRecord]
    after: str
    """Empty: there are no more records."""


@dataclass(slots=True)
class _Read:
    """The continuation of a page: records that are still to be read, or the finished page."""

    records: Iterator[AuditRecord]
    first: AuditRecord
    page: AuditPage | None = None


_Reads = OrderedDict[tuple[str, str], _Read]
"""By the question and the name of a page."""


class AuditReads:
    """The reads of the audit that people can continue."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._people: dict[str, tuple[threading.Lock, _Reads]] = {}

    def page(
        self, person: str, asked: str, records: Iterator[AuditRecord], after: str, size: int
    ) -> AuditPage:
        """The first page of some records, or the page with a given name.

        Args:
            person: The reader.
            asked: The question: a page can only be continued with the same question.
            records: The matching records, from the first.
            after: The name of the page; empty: the first one.
            size: The number of records on a page.

        Raises:
            UsageError: No current page of this person has this name.
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
    """A page of some records, and a name for the next one if there are more."""
    following = next(rest, None)
    if following is None:
        return AuditPage(shown, "")
    name = secrets.token_urlsafe(12)
    reads[asked, name] = _Read(rest, following)
    while len(reads) > KEPT_MAX:
        reads.popitem(last=False)
    return AuditPage(shown, name)
