# SPDX-License-Identifier: Apache-2.0
"""Two users of one machine and one store, each in processes of their own with their own uid."""

import grp
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealpoint.errors import (
    DirectoryUnusable,
    ListIncomplete,
    RolledBack,
    StorageUnavailable,
    Tampered,
    UsageError,
)
from tests.effort import in_soak
from tests.stories.user import User

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0,
    reason="acting as two users needs root",
)

_GROUP = "users"


class Machine:
    """A directory that every user of the machine can enter, and its users."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sealpoint-group-"))
        self.folder.chmod(0o755)
        self.group = grp.getgrnam(_GROUP).gr_gid
        self.srv = self.folder / "srv"
        self.store = self.srv / "store"
        self.srv.mkdir()
        self._users: list[User] = []

    def share(self) -> None:
        """Let an administrator make a directory for the group."""
        os.chown(self.srv, -1, self.group)
        self.srv.chmod(0o2770)

    def open_to_all(self, owner: int = 0) -> None:
        """Let somebody who knows no better make the directory of the store."""
        self.store.mkdir()
        self.store.chmod(0o777)
        os.chown(self.store, owner, owner)

    def user(
        self,
        name: str,
        uid: int,
        scheme: str = "sqlite",
        *,
        shared: bool = True,
        member: bool = True,
    ) -> User:
        """Somebody who uses the store, with the group's anchor or their own."""
        home = self.folder / f"home-{uid}"
        state = self.srv / "state" if shared else home / "state"
        groups = (self.group,) if member else ()
        url = f"{scheme}:///{self.store}/agents"
        self._users.append(User(name, uid, home=home, url=url, state=state, groups=groups))
        return self._users[-1]

    def two(self, scheme: str = "sqlite", *, shared: bool = True) -> tuple[User, User]:
        """The one who makes the store, and a second one."""
        worker = self.user("worker", 64001, scheme, shared=shared)
        return worker, self.user("ann", 64002, scheme, shared=shared)

    def end(self) -> None:
        """Let everybody go, and clean up."""
        for user in self._users:
            user.end()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine with a directory below which users can meet."""
    made = Machine()
    yield made
    made.end()


def _init(user: User) -> str:
    return user.done("init", "--group", _GROUP, "--state-dir", str(user.state))


def _join(one: User, two: User) -> None:
    """The second user imports the pin, makes a key, and is entered by the first."""
    pin = one.done("trust", "export")
    two.done(*("trust", "import", "-", "--group", _GROUP, "--state-dir", str(two.state)), stdin=pin)
    public = two.json("keys", "new", "ann")["public"]
    one.done(
        *("keys", "add", "ann", "--public-key", public, "--person", "Ann"),
        *("--role", "writer", "--namespace", "*"),
    )


@pytest.mark.parametrize("scheme", ["sqlite", in_soak("file")])
def test_two_users_share_a_store_and_its_anchor(machine: Machine, scheme: str) -> None:
    """Each sees what the other saved, at once and without adopting anything."""
    machine.share()
    one, two = machine.two(scheme)
    assert f"sealpoint trust import PIN --group {_GROUP}" in _init(one)
    one.done("save", "first", stdin="[1]")
    _join(one, two)
    assert two.json("threads")["threads"] == ["first"]
    two.done("save", "second", stdin="[2]")
    two.done("save", "second", stdin="[4]")
    one.done("save", "first", stdin="[3]")

    for user in (one, two):
        assert user.json("threads")["threads"] == ["first", "second"]
        assert user.json("load", "first") == [3]
        assert user.json("load", "second") == [4]
        user.done("verify")
        assert user.json("doctor", "--quick")["facts"]["group"] == _GROUP


@pytest.mark.parametrize("scheme", ["sqlite", in_soak("file")])
def test_what_one_user_saved_is_missed_by_the_other(machine: Machine, scheme: str) -> None:
    """The store is put back to before the second user's save, which the first never looked at."""
    machine.share()
    one, two = machine.two(scheme)
    _init(one)
    _join(one, two)
    two.done("save", "t", stdin="[1]")
    backup = machine.folder / "backup"
    _copy(machine.store, backup)
    two.done("save", "t", stdin="[2]")
    shutil.rmtree(machine.store)
    _copy(backup, machine.store)

    for user in (one, two):
        assert user.run("load", "t")[0] == RolledBack.exit_status


def _copy(source: Path, target: Path) -> None:
    """With owners and modes."""
    shutil.copytree(source, target)
    for path in (source, *source.rglob("*")):
        found, copy = path.stat(), target / path.relative_to(source)
        os.chown(copy, found.st_uid, found.st_gid)
        copy.chmod(found.st_mode & 0o7777)


@pytest.mark.parametrize("scheme", ["sqlite", in_soak("file")])
def test_without_a_group_the_second_user_is_told_why(machine: Machine, scheme: str) -> None:
    """Permission denied, whose file it is, and what to do; never that all is well."""
    machine.srv.chmod(0o755)
    one, two = machine.two(scheme, shared=False)
    machine.open_to_all(one.uid)
    one.done("init")
    one.done("save", "t", stdin="[1]")
    two.done("trust", "import", "-", stdin=one.done("trust", "export"))
    status, _, told = two.run("threads")

    assert status == StorageUnavailable.exit_status
    assert "permission denied" in told
    assert f"of user {one.uid}" in told
    assert "sealpoint init --group NAME" in told


@pytest.mark.parametrize(
    ("verb", "expected"),
    [("threads", ListIncomplete.exit_status), ("requests", Tampered.exit_status)],
)
def test_a_list_that_leaves_something_out_says_so(
    machine: Machine, verb: str, expected: int
) -> None:
    """Two users with anchors of their own: what the other one's has not seen is named."""
    machine.srv.chmod(0o755)
    one, two = machine.two(shared=False)
    machine.open_to_all()
    one.done("init")
    shutil.copytree(one.home / ".config", two.home / ".config")
    for path in (two.home, *two.home.rglob("*")):
        os.chown(path, two.uid, two.uid)
    for path in machine.store.iterdir():
        path.chmod(0o666)
    why = ("--reason", "an anchor of my own")
    two.done("anchor", "adopt", *why, "--yes", "--identity", "operator")
    one.done("save", "t", stdin="[1]")
    status, printed, told = two.run(verb)

    assert status == expected, (printed, told)
    assert "thread 't'" in printed or "'t', which the anchor does not know" in told
    assert one.run(verb)[0] == 0


def test_somebody_who_is_not_of_the_group_is_kept_out(machine: Machine) -> None:
    """They read neither store nor anchor nor its secret; a member joins in the same way."""
    machine.share()
    one, two = machine.two()
    eve = machine.user("eve", 64003, member=False)
    _init(one)
    pin = one.done("trust", "export")
    status, _, told = eve.run("trust", "import", "-", "--group", _GROUP, stdin=pin)

    assert status == UsageError.exit_status
    assert "this user is not a member of it" in told
    _join(one, two)
    two.done("threads")


def test_a_mode_that_lets_others_write_is_refused_and_repaired(machine: Machine) -> None:
    """`doctor` names the file and the command; until then nothing is read."""
    machine.share()
    one = machine.user("worker", 64001)
    _init(one)
    anchor = next((machine.srv / "state" / "anchors").iterdir()) / "anchor.slots"
    anchor.chmod(0o666)
    refused, _, told = one.run("threads")
    status, printed, _ = one.run("doctor", "--quick")

    assert (refused, status) == (DirectoryUnusable.exit_status, 96)
    assert f"chmod o-w {anchor}" in told
    assert f"chgrp -h -- {_GROUP} {anchor}; chmod -- 660 {anchor}" in printed
    anchor.chmod(0o660)
    assert "Nothing was found." in one.done("doctor", "--quick")
    one.done("threads")


def test_a_group_that_was_not_declared_shares_nothing(machine: Machine) -> None:
    """The modes alone say nothing: who has not declared the group is refused."""
    machine.share()
    one, two = machine.two()
    _init(one)
    _join(one, two)
    declared = next((two.home / ".config").rglob("group.json"))
    kept = declared.read_bytes()
    declared.unlink()
    status, _, told = two.run("threads")

    assert status == DirectoryUnusable.exit_status, told
    declared.write_bytes(kept)
    os.chown(declared, two.uid, two.uid)
    two.done("threads")


def test_a_home_is_not_shared(machine: Machine) -> None:
    """A directory that the other members cannot reach is refused before anything is made."""
    machine.share()
    one = machine.user("worker", 64001)
    one.home.chmod(0o700)
    status, _, told = one.run("init", "--group", _GROUP, "--state-dir", str(one.home / "state"))

    assert status == DirectoryUnusable.exit_status
    assert "keeps them out" in told
    _init(one)
