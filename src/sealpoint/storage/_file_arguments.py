# SPDX-License-Identifier: Apache-2.0
"""What may be asked of a file store: refused as `UsageError` before anything is touched.

Whatever passes can be read back: it has a name of the right length, a position that has a name,
and parts within the bounds that a reader takes.
"""

from collections.abc import Collection, Mapping, Sequence

from sealpoint.errors import UsageError
from sealpoint.storage._contract import Record
from sealpoint.storage._file_group import RECORDS_MAX, require_bounds
from sealpoint.storage._file_positions import SEQ_MAX

__all__ = [
    "DIGEST_BYTES",
    "THREAD_BYTES",
    "require_blob_bytes",
    "require_positions",
    "require_records",
    "require_sizes",
]

THREAD_BYTES = 16
DIGEST_BYTES = 32


def require_records(seq: int, records: Sequence[Record]) -> None:
    """Refuse records that could not be read again, or not at once."""
    if not 1 <= len(records) <= RECORDS_MAX:
        raise UsageError(f"append: expected 1 to {RECORDS_MAX} records, found {len(records)}")
    if not 0 <= seq <= SEQ_MAX - len(records):
        raise UsageError(f"position: expected 0 to {SEQ_MAX - len(records)}, found {seq}")
    for number, record in enumerate(records, start=seq):
        require_bounds(number, record)


def require_positions(head: int, positions: Collection[int]) -> None:
    """Refuse positions that no entry can have."""
    if head < -1 or any(number < 0 for number in positions):
        raise UsageError(
            f"drop: expected a head of -1 or more and positions of 0 or more, found head "
            f"{head} and positions from {min(positions, default=0)}"
        )


def require_sizes(thread: bytes, digests: Collection[bytes], label: bytes | None = None) -> None:
    """Refuse a thread, digest or label that could not be found again."""
    _require_size("thread", thread, THREAD_BYTES)
    for digest in digests:
        _require_size("digest", digest, DIGEST_BYTES)
    if label is not None:
        _require_size("label", label, DIGEST_BYTES)


def require_blob_bytes(blobs: Mapping[bytes, bytes]) -> None:
    """Refuse blobs that are no bytes."""
    for digest, data in blobs.items():
        if type(data) is not bytes:
            raise UsageError(f"blob {digest.hex()}: expected bytes, found {type(data).__name__}")


def _require_size(name: str, value: bytes, size_bytes: int) -> None:
    if type(value) is not bytes or len(value) != size_bytes:
        found = f"{len(value)} bytes" if type(value) is bytes else type(value).__name__
        raise UsageError(f"{name}: expected {size_bytes} bytes, found {found}")
