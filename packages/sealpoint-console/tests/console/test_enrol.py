# SPDX-License-Identifier: Apache-2.0
"""Making a passkey, and what whoever holds the root key is told to type for it."""

import re
import shlex
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from sealpoint.cli import main
from sealpoint.errors import UsageError
from sealpoint_console._sign_in import bytes_of, text_of
from tests.console.scene import ROLES, Scene, Served
from tests.unit.signing.authenticator import Authenticator


def _enrol(client: httpx.Client, name: str, device: int = 1) -> dict[str, Any]:
    begun = client.post("/enrol/begin", json={"name": name}).json()
    made_by = Authenticator(device, origin=str(client.base_url).rstrip("/"))
    client_data, data = made_by.create(bytes_of(begun["challenge"], "challenge"))
    body = {"client_data": text_of(client_data), "authenticator_data": text_of(data)}
    made = client.post("/enrol", json={"ticket": begun["ticket"], "name": name, **body})
    assert made.status_code == 200, made.text
    found: dict[str, Any] = made.json()
    return found


def _type(scene: Scene, made: dict[str, Any], folder: Path, line: str = "command") -> Result:
    """Do with what a page shows as it says."""
    file = folder / "passkey.json"
    file.write_text(made["enrolment"])
    words = shlex.split(made[line].replace("passkey.json", str(file)))[1:]
    place = [f"--{name.replace('_', '-')}={where}" for name, where in scene.place.items()]
    return CliRunner().invoke(main, [*words, "--yes", "--store", scene.url, *place])


@pytest.mark.parametrize("name", ROLES)
def test_a_passkey_gives_no_role_to_whom_the_roster_has(
    served: Served, tmp_path: Path, name: str
) -> None:
    """An auditor who makes one is no approver after it, and an operator keeps break-glass."""
    before = served.console.desk.watch.roster.identity(name)
    with served.client() as client:
        done = _type(served.scene, _enrol(client, name), tmp_path)
    after = served.console.desk.watch.roster.identity(name)

    assert done.exit_code == 0, done.output
    assert before is not None
    assert after is not None
    assert (after.person, after.roles, after.namespaces, after.break_glass) == (
        *(before.person, before.roles, before.namespaces, before.break_glass),
    )
    assert len(after.keys) == len(before.keys) + 1


def test_what_somebody_new_may_do_is_for_the_administrator_to_say(
    served: Served, tmp_path: Path
) -> None:
    """The command alone is refused, and says what is missing."""
    with served.client() as client:
        refused = _type(served.scene, _enrol(client, "zoe"), tmp_path)

    assert refused.exit_code == UsageError.exit_status
    assert "--person WHO --role ROLE --namespace NAMESPACE" in " ".join(refused.stderr.split())
    assert served.console.desk.watch.roster.identity("zoe") is None


def test_a_passkey_takes_the_place_of_one_that_was_lost(served: Served, tmp_path: Path) -> None:
    """By the other line of the page: the lost one ends, and its own file will not do."""
    roster = served.console.desk.watch
    with served.client() as client:
        _type(served.scene, _enrol(client, "ann"), tmp_path)
        before = roster.roster.identity("ann")
        same = _type(served.scene, _enrol(client, "ann"), tmp_path, "instead")
        done = _type(served.scene, _enrol(client, "ann", device=2), tmp_path, "instead")
    after = roster.roster.identity("ann")

    assert same.exit_code == UsageError.exit_status
    assert "nothing ends" in same.stderr
    assert done.exit_code == 0, done.output
    assert "Approvals by them that nobody has used yet do not count any more." in done.output
    assert before is not None
    assert after is not None
    schemes = [each.scheme for each in after.keys]
    assert sorted(schemes) == sorted(each.scheme for each in before.keys)
    assert len({each.public for each in after.keys} & {each.public for each in before.keys}) == 1


def test_the_name_is_that_of_the_identity_and_of_nobody_else(served: Served) -> None:
    """Whoever has several, or makes it for somebody else, types it: it decides whose key it is."""
    with served.client("ann") as ann, served.client("owner") as owner:
        pages = [ann.get("/enrol"), ann.get("/enrol?other=1"), owner.get("/enrol")]

    found = [re.search('name="name" value="([^"]*)"', each.text) for each in pages]
    assert [each and each[1] for each in found] == ["ann", "", ""]


def test_the_terminal_is_named_only_where_one_listens(served: Served) -> None:
    """A service has none: people would look for it."""
    with served.client() as client:
        without = client.get("/enrol").text
        served.console.desk.on_enrolled = lambda *_: None
        beside = client.get("/enrol").text

    assert "Do you see the terminal" not in without
    assert "Do you see the terminal" in beside


def test_nobody_learns_from_it_what_the_roster_has(served: Served) -> None:
    """The page is for everybody, and says the same of a name that is there as of any other."""
    with served.client() as client:
        known, new = (_enrol(client, name)["command"] for name in ("vera", "zoe"))

    assert known.replace("vera", "zoe") == new
