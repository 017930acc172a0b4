# SPDX-License-Identifier: Apache-2.0
"""A store never lies where its keys or its anchor lie, however its place is spelt."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from sealpoint.config import StoreFiles, StoreUrl
from sealpoint.errors import StoreMisplaced
from tests.unit.config.samples import settings


def _at(base: Path, path: str) -> StoreFiles:
    return StoreFiles(settings(base), StoreUrl.parse(f"sqlite:///{base}/{path}"))


def test_a_store_apart_from_the_directories_is_well_placed(tmp_path: Path) -> None:
    """Before anything exists and afterwards."""
    files = _at(tmp_path, "data/store.db")
    files.check_placement()
    files.ensure_secret(os.urandom)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "store.db").touch()
    files.check_placement()


def test_a_store_in_memory_has_no_place(tmp_path: Path) -> None:
    """There is nothing to misplace."""
    StoreFiles(settings(tmp_path), StoreUrl.parse("memory:")).check_placement()


@pytest.mark.parametrize("made", [(), ("config", "state", "data")], ids=["absent", "made"])
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("config/store.db", "configuration"),
        ("config/stores/a/store.db", "configuration"),
        ("config", "configuration"),
        ("state/store.db", "state"),
        ("state/anchors/a/b/store.db", "state"),
        ("data/../state/store.db", "state"),
    ],
)
def test_a_store_among_keys_or_anchors_is_misplaced(
    tmp_path: Path, path: str, kind: str, made: tuple[str, ...]
) -> None:
    """Whether or not the directories exist yet."""
    for name in made:
        (tmp_path / name).mkdir()
    files = _at(tmp_path, path)

    with pytest.raises(StoreMisplaced, match=f"outside the {kind} directory"):
        files.check_placement()


@pytest.mark.parametrize("path", ["home", "home/config", "home/config/stores", "home/state/x"])
def test_a_directory_apart_from_keys_and_anchor_is_well_placed(tmp_path: Path, path: str) -> None:
    """A directory that holds keys or anchor, or lies in theirs, is none; one beside them is."""
    (tmp_path / "home").mkdir()
    where = replace(
        settings(tmp_path),
        config_dir=tmp_path / "home" / "config",
        state_dir=tmp_path / "home" / "state",
    )
    StoreFiles(where, StoreUrl.parse(f"file://{tmp_path}/home/store")).check_placement()
    StoreFiles(where, StoreUrl.parse(f"file://{tmp_path}/hom")).check_placement()

    with pytest.raises(StoreMisplaced):
        StoreFiles(where, StoreUrl.parse(f"file://{tmp_path}/{path}")).check_placement()


@pytest.mark.parametrize("made", [False, True], ids=["absent", "made"])
@pytest.mark.parametrize("path", ["store.db", "link/store.db", "x/../store.db"])
def test_keys_or_anchor_beside_a_file_are_misplaced(tmp_path: Path, path: str, made: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """In the directory of the file or anywhere below it, and however that is reached."""
    home = tmp_path / "home"
    (home / "x").mkdir(parents=True)
    (home / "link").symlink_to(home)
    (tmp_path / "way").symlink_to(home)
    elsewhere = tmp_path / "elsewhere"
    if made:
        for name in ("config", "a/b/state"):
            (home / name).mkdir(parents=True)
    url = StoreUrl.parse(f"sqlite:///{home}/{path}")
    apart = replace(settings(tmp_path), config_dir=elsewhere / "c", state_dir=elsewhere / "s")
    StoreFiles(apart, url).check_placement()

    dotted = replace(apart, config_dir=home / ".." / "elsewhere", state_dir=home / "x/../../s")
    StoreFiles(dotted, url).check_placement()
    for beside in (
        *(home / "config", home / "a" / "b" / "state", tmp_path / "way" / "config"),
        *(home / "x" / ".." / "config", tmp_path / "x" / ".." / "home" / "config"),
    ):
        for where, kind in (
            (replace(apart, config_dir=beside), "configuration"),
            (replace(apart, state_dir=beside), "state"),
        ):
            with pytest.raises(StoreMisplaced, match=f"the {kind} directory outside of") as caught:
                StoreFiles(where, url).check_placement()
            assert "mkdir -p" in caught.value.hint


def test_a_file_in_the_home_directory_has_its_keys_further_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's own directories lie below the home directory; beside the file they may not."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    url = StoreUrl.parse(f"sqlite:///{home}/agents.db")
    usual = replace(
        settings(tmp_path),
        config_dir=home / ".config" / "sealpoint",
        state_dir=home / ".local" / "state" / "sealpoint",
    )
    StoreFiles(usual, url).check_placement()

    for where in (
        replace(usual, config_dir=home / "config"),
        replace(usual, state_dir=home / "state"),
    ):
        with pytest.raises(StoreMisplaced, match="directory outside of"):
            StoreFiles(where, url).check_placement()
    above = StoreUrl.parse(f"sqlite:///{tmp_path}/agents.db")
    with pytest.raises(StoreMisplaced, match="directory outside of"):
        StoreFiles(usual, above).check_placement()


def test_links_do_not_hide_keys_in_a_directory(tmp_path: Path) -> None:
    """The configuration directory may be a link into the store, or be reached through one."""
    (tmp_path / "store" / "inside").mkdir(parents=True)
    (tmp_path / "config").symlink_to("store/inside")
    (tmp_path / "way").symlink_to("store")
    (tmp_path / "outside").mkdir()
    (tmp_path / "store" / "link").symlink_to(tmp_path / "outside")
    url = StoreUrl.parse(f"file://{tmp_path}/store")

    for config in ("config", "way/inside", "store/link", "way/link", "way/new"):
        where = replace(settings(tmp_path), config_dir=tmp_path / config)
        with pytest.raises(StoreMisplaced, match="expected the configuration directory outside"):
            StoreFiles(where, url).check_placement()


def test_links_do_not_hide_a_misplaced_store(tmp_path: Path) -> None:
    """A link to the directory, from the directory, of the store itself, or one that dangles."""
    (tmp_path / "real").mkdir()
    (tmp_path / "config").symlink_to("real")
    (tmp_path / "way").symlink_to("config")
    (tmp_path / "file.db").symlink_to("real/file.db")
    (tmp_path / "real" / "out.db").symlink_to(tmp_path / "outside.db")
    (tmp_path / "soon").symlink_to("state")

    for path in (
        *("real/store.db", "config/store.db", "way/store.db", "way/new/store.db"),
        *("file.db", "real/out.db", "soon/store.db"),
    ):
        files = _at(tmp_path, path)
        with pytest.raises(StoreMisplaced):
            files.check_placement()
    _at(tmp_path, "real2/store.db").check_placement()


def test_two_names_of_one_directory_do_not_hide_a_misplaced_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where case does not count, other letters are the same directory."""
    (tmp_path / "config").mkdir()
    files = _at(tmp_path, "CONFIG/new/store.db")
    true_stat = os.stat

    def without_case(path: Path | str, *, follow_symlinks: bool = True) -> os.stat_result:
        return true_stat(str(path).replace("CONFIG", "config"), follow_symlinks=follow_symlinks)

    files.check_placement()
    monkeypatch.setattr(os, "stat", without_case)

    with pytest.raises(StoreMisplaced):
        files.check_placement()
