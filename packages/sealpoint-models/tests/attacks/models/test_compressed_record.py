# SPDX-License-Identifier: Apache-2.0
"""A compressed record grows a thousandfold while it is read; torch never writes one."""

import io
import zipfile

import pytest

from sealpoint.errors import RecordCompressed
from tests.pt_files import ours, records_of, saved, stock

_LETTERS = 8 << 20


def _zipped(value: object, method: int) -> bytes:
    """The same records, by another zip program."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archived:
        for name, content in records_of(saved(value)).items():
            archived.writestr(f"archive/{name}", content)
    return file.getvalue()


def test_compressed_pickle_is_refused() -> None:
    """Torch makes 8 MB of a file a thousandth of that; here it is refused before any of it."""
    data = _zipped("A" * _LETTERS, zipfile.ZIP_DEFLATED)

    assert len(data) < _LETTERS // 500
    assert len(stock(data)) == _LETTERS
    with pytest.raises(RecordCompressed, match=r"record 'archive/data\.pkl': expected it stored"):
        ours(data)


def test_stored_twin_loads() -> None:
    """The control: as torch writes it, the same value loads with both, and is equal."""
    data = saved("A" * _LETTERS)

    assert ours(data) == stock(data)
