# SPDX-License-Identifier: Apache-2.0
"""What memory does beyond the suite that every backend passes."""

import pytest

from sealpoint.errors import UsageError
from sealpoint.storage import Record
from sealpoint.storage.memory import MemoryStorage

_THREAD = bytes(16)


def test_two_storages_share_nothing() -> None:
    """Each instance is a store of its own."""
    one, two = MemoryStorage(), MemoryStorage()
    one.append(_THREAD, 0, [Record(b"h", b"s", None)], blobs={bytes(32): b"blob"})

    assert two.read(_THREAD, 0) is None
    assert two.blob(_THREAD, bytes(32), 10) is None
    assert not list(two.threads())


def test_closing_forgets_everything_and_ends_a_scan_under_way() -> None:
    """A scan that was begun before the close does not go on after it."""
    storage = MemoryStorage()
    storage.append(_THREAD, 0, [Record(b"h", b"s", b"b")] * 3, blobs={})
    scan = storage.scan(_THREAD, 0)
    next(scan)
    storage.close()

    with pytest.raises(UsageError, match="closed"):
        next(scan)
    assert not storage._records


def test_caller_keeps_no_hold_on_what_was_stored() -> None:
    """Changing the mapping or list that was given changes nothing in the store."""
    storage = MemoryStorage()
    blobs = {bytes(32): b"blob"}
    records = [Record(b"h", b"s", b"b")]
    storage.append(_THREAD, 0, records, blobs=blobs)
    blobs.clear()
    records.clear()

    assert storage.read(_THREAD, 0) == Record(b"h", b"s", b"b")
    assert storage.blob(_THREAD, bytes(32), 10) == b"blob"
