# SPDX-License-Identifier: Apache-2.0
"""The newest roster, kept beside the keys."""

import os
from pathlib import Path

import pytest

from sealpoint.config._store_files import keep_roster, kept_roster
from sealpoint.errors import KeyFileUnsafe, Missing

_HASHES = [bytes([number]) * 32 for number in range(4)]


def _keep(directory: Path, seq: int, newest: bytes | None = None) -> bool:
    return keep_roster(directory, seq, newest or _HASHES[seq], lambda: b"roster %d" % seq)


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_the_newest_roster_takes_the_place_of_older_ones(tmp_path: Path) -> None:
    """One file is left, only its owner can read it, and it is what comes back."""
    (tmp_path / "pin.json").write_bytes(b"{}")
    assert kept_roster(tmp_path) is None
    assert all(_keep(tmp_path, seq) for seq in (0, 1, 3))

    assert _names(tmp_path) == ["pin.json", "roster-4-0303030303030303.json"]
    assert kept_roster(tmp_path) == b"roster 3"
    if os.name == "posix":
        assert (tmp_path / "roster-4-0303030303030303.json").stat().st_mode & 0o777 == 0o600


def test_a_roster_that_is_kept_is_not_made_again(tmp_path: Path) -> None:
    """Opening a store costs one look at a name."""
    _keep(tmp_path, 2)

    def fail() -> bytes:
        raise AssertionError

    assert keep_roster(tmp_path, 2, _HASHES[2], fail)


def test_a_roster_that_goes_further_stays(tmp_path: Path) -> None:
    """An older store that was adopted does not take the newest roster away."""
    _keep(tmp_path, 3)
    assert _keep(tmp_path, 1)
    assert _keep(tmp_path, 3, b"x" * 32)

    assert len(_names(tmp_path)) == 2
    assert kept_roster(tmp_path) == b"roster 3"


def test_a_directory_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """And neither is a roster that cannot be read: there is no copy then."""

    def missing() -> bytes:
        raise Missing("a list is gone")

    assert not _keep(tmp_path / "none", 0)
    assert not keep_roster(tmp_path, 0, _HASHES[0], missing)
    assert kept_roster(tmp_path / "none") is None
    assert _names(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="the system has no modes")
def test_a_roster_that_others_can_change_is_refused(tmp_path: Path) -> None:
    """It would prove itself all the same; whoever may write here may do worse."""
    _keep(tmp_path, 0)
    next(tmp_path.iterdir()).chmod(0o666)

    with pytest.raises(KeyFileUnsafe):
        kept_roster(tmp_path)
