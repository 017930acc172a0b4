# SPDX-License-Identifier: Apache-2.0
"""Numbers of things and of bytes, as people say them."""

__all__ = ["exact_size_text", "number_text", "size_text"]

_SIZE_UNITS = ("kB", "MB", "GB", "TB")
_SIZE_STEP = 1000


def number_text(count: int, one: str, many: str) -> str:
    """A number with the word for so many."""
    return f"{count:,} {one if count == 1 else many}"


def size_text(size_bytes: int) -> str:
    """A number of bytes as people say it."""
    if size_bytes < _SIZE_STEP:
        return number_text(size_bytes, "byte", "bytes")
    size, unit = size_bytes / _SIZE_STEP, 0
    while size >= _SIZE_STEP and unit + 1 < len(_SIZE_UNITS):
        size, unit = size / _SIZE_STEP, unit + 1
    return f"{size:,.1f} {_SIZE_UNITS[unit]}"


def exact_size_text(size_bytes: int) -> str:
    """A number of bytes as people say it, and to the byte."""
    said, exact = size_text(size_bytes), number_text(size_bytes, "byte", "bytes")
    return exact if said == exact else f"{said} ({exact})"
