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
    assert not list(two.heads())


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


def test_what_is_dropped_is_not_kept_anywhere() -> None:
    """No part of the storage still refers to bytes that went, so their memory can be used again."""
    storage = MemoryStorage()
    record = Record(b"h", b"s", b"body", b"payload")
    storage.append(_THREAD, 0, [record], blobs={bytes(32): b"blob"}, label=bytes(32))
    storage.drop(_THREAD, 0, bodies=[0], blobs=[bytes(32)], label=bytes(32))
    storage.compact()

    assert storage._records == {_THREAD: {0: Record(b"h", b"s", None)}}
    assert not storage._blobs
    assert not storage._digests
    assert not storage._labels


def test_list_of_blobs_goes_on_over_new_ones() -> None:
    """A blob that comes behind the place of a list is listed, one before it is not."""
    storage = MemoryStorage()
    digests = [bytes([number]) * 32 for number in range(5)]
    storage.put_blobs(_THREAD, {digests[3]: b"3", digests[1]: b"1"})
    listing = storage.stored_blobs(_THREAD)
    first = next(listing)
    storage.put_blobs(_THREAD, {digests[4]: b"four", digests[0]: b"", digests[2]: b"22"})

    assert first == (digests[1], 1)
    assert list(listing) == [(digests[2], 2), (digests[3], 1), (digests[4], 4)]


def test_closing_ends_a_list_of_blobs_under_way() -> None:
    """A list that was begun before the close does not go on after it."""
    storage = MemoryStorage()
    storage.put_blobs(_THREAD, {bytes(32): b"", b"\x01" * 32: b""})
    listing = storage.stored_blobs(_THREAD)
    next(listing)
    storage.close()

    with pytest.raises(UsageError, match="closed"):
        next(listing)
