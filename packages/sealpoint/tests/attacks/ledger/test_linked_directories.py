# SPDX-License-Identifier: Apache-2.0
"""Another store in the place of this one, by a link in the place of its directory.

The attacker writes the directory above the stores, and holds no key. One user trusts two stores on
this machine, so both would verify; whoever names one must not get the other.
"""

import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import sealpoint
from sealpoint import api
from sealpoint.cli import main
from sealpoint.errors import NoPin, NotTrusted, SealpointError, StoreExists
from sealpoint.storage.file import FileStorage
from sealpoint.storage.sqlite import SqliteStorage
from tests.attacks.ledger.tampered_store import WORLD

_FORMS = {"sqlite": "sqlite:///{}/agents.db", "file": "file://{}/agents"}


@dataclass(frozen=True)
class Site:
    """Two stores of one user, each in a directory of its own."""

    folder: Path
    kind: str

    @property
    def places(self) -> dict[str, Any]:
        """Where keys and anchor lie."""
        return {"config_dir": self.folder / "config", "state_dir": self.folder / "state"}

    @property
    def disk(self) -> Path:
        """What the attacker writes."""
        return self.folder / "disk"

    def url(self, name: str) -> str:
        """The address of a store in a directory of the disk."""
        return _FORMS[self.kind].format(self.disk / name)

    def make(self, name: str, note: str) -> None:
        """A store with one state."""
        (self.disk / name).mkdir(parents=True)
        sealpoint.init(self.url(name), **self.places)
        with self.open(name) as store:
            store.thread("t").save({"note": note}, world=WORLD)

    def open(self, name: str, **options: Any) -> sealpoint.Store:
        """Open a store as its user would."""
        return sealpoint.open_store(self.url(name), **self.places, **options)

    def note(self, name: str) -> object:
        """What a read of a store gives."""
        with self.open(name, read_only=True) as store:
            return store.thread("t").load().state["note"]

    def run(self, *words: str) -> tuple[int, str]:
        """Run the command line; its exit status and all that it said."""
        directories = ["--config-dir", str(self.places["config_dir"])]
        directories += ["--state-dir", str(self.places["state_dir"])]
        result = CliRunner().invoke(main, [*words, *directories])
        return result.exit_code, result.output

    def content(self, name: str) -> dict[str, bytes]:
        """Every file of a store."""
        files = (path for path in (self.disk / name).rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in files if path.suffix != ".db-shm"}


@pytest.fixture(params=_FORMS)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    """A test store and a production store."""
    site = Site(tmp_path.resolve(), request.param)
    site.make("test", "a trial")
    site.make("live", "in earnest")
    return site


def _link(site: Site, name: str, target: str) -> None:
    """Put a link in the place of a directory."""
    (site.disk / name).rename(site.disk / f"{name}-away")
    (site.disk / name).symlink_to(target)


def test_a_linked_directory_does_not_open_another_trusted_store(site: Site) -> None:
    """Neither a read nor a write of one store reaches the other, which stays as it was."""
    assert (site.note("test"), site.note("live")) == ("a trial", "in earnest")
    _link(site, "test", "live")
    before = site.content("live")
    assert (site.disk / "test").samefile(site.disk / "live"), "the link leads nowhere"
    for read_only in (True, False):
        with pytest.raises(NotTrusted, match="found that it leads to") as caught:
            site.open("test", read_only=read_only)
        assert str(site.disk / "test") in caught.value.message
        assert str(site.disk / "live") in caught.value.message
    for call in (
        lambda: sealpoint.init(site.url("test"), **site.places),
        api.admin(site.url("test"), **site.places).trust.export_pin,
        api.admin(site.url("test"), **site.places).keys.list,
        lambda: api.admin(site.url("test"), **site.places).anchor.adopt(reason="why not"),
    ):
        with pytest.raises(NotTrusted):
            call()
    status, said = site.run("load", "t", "--store", site.url("test"))

    assert (status, "earnest" in said) == (39, False)
    assert site.content("live") == before
    assert site.note("live") == "in earnest"
    (site.disk / "test").unlink()
    (site.disk / "test-away").rename(site.disk / "test")
    assert site.note("test") == "a trial"


def test_a_link_further_up_is_no_other_way(site: Site) -> None:
    """Any directory on the way may become a link."""
    (site.disk / "a" / "deep").mkdir(parents=True)
    (site.disk / "b").mkdir()
    for name in ("a/deep/test", "b/test"):
        site.make(name, name)
    (site.disk / "a" / "deep").rename(site.disk / "a" / "away")
    (site.disk / "a" / "deep").symlink_to(site.disk / "b")

    with pytest.raises(NotTrusted, match="found that it leads to"):
        site.open("a/deep/test")
    assert site.note("b/test") == "b/test"


def test_a_link_as_the_last_name_is_refused_as_before(site: Site) -> None:
    """The file or directory of the store itself is never followed."""
    name = "agents.db" if site.kind == "sqlite" else "agents"
    path = site.disk / "test" / name
    path.rename(path.with_name("away"))
    path.symlink_to(site.disk / "live" / name)

    with pytest.raises(SealpointError, match=r"found a (symbolic )?link"):
        site.open("test")


def test_another_directory_under_the_name_is_another_store(site: Site) -> None:
    """Without a link, the pin of the address says which store belongs there."""
    (site.disk / "test").rename(site.disk / "test-away")
    (site.disk / "live").rename(site.disk / "test")

    with pytest.raises(SealpointError) as caught:
        site.open("test")
    assert caught.value.code in {"misplaced", "not-trusted", "unanchored", "rolled-back"}


def test_what_is_opened_is_the_place_that_was_checked(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backend is given no link: who exchanges one in this moment changes nothing."""
    opened: list[Path] = []
    for backend in (SqliteStorage, FileStorage):

        def look(self: Any, path: Path, *, begin: Any = backend.__init__, **options: Any) -> None:
            opened.append(path)
            begin(self, path, **options)

        monkeypatch.setattr(backend, "__init__", look)
    (site.disk / "way").symlink_to("test")
    api.admin(site.url("way"), **site.places).trust.move_from(site.url("test"))
    note = site.note("way")

    assert note == "a trial"
    assert [path.parent for path in opened] == [site.disk / "test"]


# ---------------------------------------------------------------------- honest set-ups


@pytest.fixture(params=_FORMS)
def kind(request: pytest.FixtureRequest) -> str:
    """A backend."""
    return str(request.param)


def test_a_directory_that_was_a_link_from_the_start_is_used(kind: str, tmp_path: Path) -> None:
    """A home or temporary directory may be reached through a link, as on many systems."""
    (tmp_path / "volume" / "disk").mkdir(parents=True)
    (tmp_path / "home").symlink_to("volume")
    site = Site(tmp_path / "home", kind)
    site.make("test", "a trial")

    assert site.note("test") == "a trial"
    with site.open("test") as store:
        store.thread("t").save({"note": "more"}, world=WORLD)
    assert site.note("test") == "more"
    # The link leads elsewhere now, where there is a store that this user trusts too.
    shutil.copytree(tmp_path / "volume", tmp_path / "other")
    (tmp_path / "home").unlink()
    (tmp_path / "home").symlink_to("other")
    with pytest.raises(NotTrusted, match="found that it leads to"):
        site.open("test")


def test_an_address_is_the_same_from_every_directory(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An absolute URL, and for SQLite a relative one with or without dots."""
    site = Site(tmp_path.resolve(), kind)
    site.make("test", "a trial")
    ways = {Path("/"): site.url("test"), site.folder: site.url("test")}
    if kind == "sqlite":
        ways[site.disk] = "sqlite:///test/agents.db"
        ways[site.disk / "test"] = "sqlite:///agents.db"
        ways[site.places["config_dir"]] = "sqlite:///../disk/test/agents.db"
    for here, url in ways.items():
        monkeypatch.chdir(here)
        with sealpoint.open_store(url, **site.places) as store:
            assert store.thread("t").load().state["note"] == "a trial"


def test_a_directory_that_was_moved_behind_a_link_is_accepted_by_name(site: Site) -> None:
    """The hint, followed to the letter, lets the store go on where its directory leads now."""
    _link(site, "test", "test-away")
    with pytest.raises(NotTrusted) as caught:
        site.open("test")
    command = caught.value.hint.partition("yourself: sealpoint ")[2]
    status, said = site.run(*command.split())

    assert status == 0, said
    assert site.note("test") == "a trial"
    with site.open("test") as store:
        store.thread("t").save({"note": "more"}, world=WORLD)
        assert store.verify().ok
    # Going back is a move as well.
    (site.disk / "test").unlink()
    (site.disk / "test-away").rename(site.disk / "test")
    with pytest.raises(NotTrusted, match="found that it leads to"):
        site.open("test")
    assert site.run(*command.split())[0] == 0
    assert site.note("test") == "more"


def test_accepting_a_link_to_another_store_does_not_open_it(site: Site) -> None:
    """Even whoever follows the hint without a look does not get another store under this name."""
    _link(site, "test", "live")
    api.admin(site.url("test"), **site.places).trust.move_from(site.url("test"))

    with pytest.raises(SealpointError) as caught:
        site.open("test")
    assert caught.value.code in {"misplaced", "not-trusted", "unanchored", "rolled-back"}
    assert site.note("live") == "in earnest"


def test_a_second_address_of_a_store_is_told_the_first(site: Site) -> None:
    """A link that nobody used before is not trusted; the hint names the address that is."""
    (site.disk / "way").symlink_to("test")
    with pytest.raises(NoPin, match="this machine has no pin") as caught:
        site.open("way")

    assert caught.value.hint == f"This store is known here as {site.url('test')}: use that URL."
    with pytest.raises(StoreExists):
        sealpoint.init(site.url("way"), **site.places)
    api.admin(site.url("way"), **site.places).trust.move_from(site.url("test"))
    assert site.note("way") == "a trial"
    with pytest.raises(NotTrusted):
        site.open("test")


def test_an_imported_pin_remembers_where_its_store_lies(site: Site, tmp_path: Path) -> None:
    """Another machine reads through a link from the start, and refuses when it leads elsewhere."""
    there: Any = {"config_dir": tmp_path / "config2", "state_dir": tmp_path / "state2"}
    (site.disk / "way").symlink_to("test")
    for name in ("way", "live"):
        source = "test" if name == "way" else name
        pin = api.admin(site.url(source), **site.places).trust.export_pin()
        api.admin(site.url(name), **there).trust.import_pin(pin.encode())
        key = api.admin(site.url(name), **there).keys.create(f"far-{name}")
        api.admin(site.url(source), **site.places).keys.add(
            f"far-{name}", public=str(key), person="far", roles=["operator"], namespaces=["*"]
        )
        api.admin(site.url(name), **there).anchor.adopt(
            reason="reads along", identity=f"far-{name}"
        )
    with closing(sealpoint.open_store(site.url("way"), read_only=True, **there)) as store:
        assert store.thread("t").load().state["note"] == "a trial"
    (site.disk / "way").unlink()
    (site.disk / "way").symlink_to("live")

    with pytest.raises(NotTrusted, match="found that it leads to"):
        sealpoint.open_store(site.url("way"), read_only=True, **there)
