# SPDX-License-Identifier: Apache-2.0
"""Changed evidence: whatever is done to a bundle, by anybody, it is refused or proves less.

Outsiders hold the bundle. Insiders also hold the key of an identity that may export, and sign
whatever they have made of it.
"""

import base64
import copy
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sealpoint import api
from sealpoint.audit import _bundle_check as check_module
from sealpoint.errors import (
    BundleInvalid,
    Forged,
    Misplaced,
    NotTrusted,
    RolledBack,
    SealpointError,
    Tampered,
)
from sealpoint.signing import TrustPin
from tests.deployment import Deployment
from tests.ledgers import key, pin
from tests.unit.audit.bundles import exported, history, lines_of, resigned, unsigned
from tests.unit.gate.team import Team

_Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def scene() -> Iterator[tuple[bytes, TrustPin]]:
    """A bundle, and the pin of its store."""
    world = Deployment()
    team = Team(world)
    history(team)
    yield exported(team), world.pin
    world.close()


def _refused(data: bytes, trusted: TrustPin) -> SealpointError:
    with pytest.raises(SealpointError) as refused:
        api.verify_bundle(data, trusted)
    return refused.value


def test_the_bundle_itself_verifies(scene: tuple[bytes, TrustPin]) -> None:
    """The control: untouched, and signed anew by an insider, it is good."""
    data, trusted = scene

    assert api.verify_bundle(data, trusted).ok
    assert api.verify_bundle(resigned(lines_of(data), key("operator")), trusted).ok


def test_any_changed_byte_is_refused(scene: tuple[bytes, TrustPin]) -> None:
    """Bytes all over the bundle, each changed, left out and doubled."""
    data, trusted = scene
    for place in range(0, len(data), max(1, len(data) // 150)):
        changed = bytes([data[place] ^ 1])
        for made in (changed, b"", data[place : place + 1] * 2):
            _refused(data[:place] + made + data[place + 1 :], trusted)

    _refused(data + b"\n", trusted)
    _refused(data + data, trusted)


def test_every_line_is_needed_and_in_its_place(scene: tuple[bytes, TrustPin]) -> None:
    """Each line left out, doubled, and swapped with the next one."""
    data, trusted = scene
    lines = data.splitlines(keepends=True)
    for place in range(len(lines)):
        before, line, after = lines[:place], lines[place], lines[place + 1 :]
        _refused(b"".join(before + after), trusted)
        _refused(b"".join([*before, line, line, *after]), trusted)
        if after:
            _refused(b"".join([*before, after[0], line, *after[1:]]), trusted)


def test_another_spelling_is_refused(scene: tuple[bytes, TrustPin]) -> None:
    """One space, another order of fields, an unknown field."""
    data, trusted = scene
    first, _, rest = data.partition(b"\n")

    assert isinstance(_refused(first + b" \n" + rest, trusted), BundleInvalid)
    assert isinstance(_refused(first[:-1] + b',"x":1}\n' + rest, trusted), BundleInvalid)


def _threads(lines: _Lines) -> list[int]:
    return [place for place, line in enumerate(lines) if line["line"] == "thread"]


def _entries(lines: _Lines, number: int) -> list[int]:
    """The places of the entries of a thread; -1 for the store chain."""
    starts = [0, *_threads(lines), len(lines)]
    return [
        place
        for place in range(starts[number + 1], starts[number + 2])
        if lines[place]["line"] == "entry"
    ]


def _drop(lines: _Lines) -> None:
    del lines[_entries(lines, 0)[2]]


def _reorder(lines: _Lines) -> None:
    first, second = _entries(lines, 0)[1:3]
    lines[first], lines[second] = lines[second], lines[first]


def _swap_threads(lines: _Lines) -> None:
    first, second = _threads(lines)
    lines[first], lines[second] = lines[second], lines[first]


def _swap_all(lines: _Lines) -> None:
    first, second = _threads(lines)
    lines[first:-1] = [*lines[second:-1], *lines[first:second]]


def _twice(lines: _Lines) -> None:
    first, second = _threads(lines)
    lines[second:second] = lines[first:second]


def _splice(lines: _Lines) -> None:
    mine, other = _entries(lines, 0), _entries(lines, 1)
    lines[mine[-1]] = lines[other[-1]]


def _body(lines: _Lines) -> None:
    mine = _entries(lines, 0)
    lines[mine[2]]["body"] = lines[mine[3]]["body"]


def _no_body(lines: _Lines) -> None:
    lines[_entries(lines, 0)[-1]]["body"] = None


def _seals(lines: _Lines) -> None:
    mine = _entries(lines, 0)
    lines[mine[2]]["seals"] = lines[mine[3]]["seals"]


def _header(lines: _Lines) -> None:
    line = lines[_entries(lines, 0)[2]]
    line["header"] = line["header"].replace('"gen":0', '"gen":1')


def _older_roster(lines: _Lines) -> None:
    del lines[_entries(lines, -1)[-1]]


def _no_roster(lines: _Lines) -> None:
    for place in reversed(_entries(lines, -1)):
        del lines[place]


def _no_policy(lines: _Lines) -> None:
    del lines[next(place for place, line in enumerate(lines) if line["line"] == "blob")]


def _other_policy(lines: _Lines) -> None:
    line = next(line for line in lines if line["line"] == "blob")
    line["data"] = "eHh4"


def _more_blobs(lines: _Lines) -> None:
    place = next(place for place, line in enumerate(lines) if line["line"] == "blob")
    lines.insert(place, copy.deepcopy(lines[place]))


def _unnamed_blobs(lines: _Lines) -> None:
    place = next(place for place, line in enumerate(lines) if line["line"] == "blob")
    data = b"nobody names this"
    unnamed = {
        "line": "blob",
        "digest": hashlib.sha256(data).hexdigest(),
        "data": base64.b64encode(data).decode(),
    }
    lines[place + 1 : place + 1] = [unnamed] * 3


def _raw_body(lines: _Lines) -> None:
    line = lines[_entries(lines, 0)[2]]
    line["raw"], line["body"] = base64.b64encode(line["body"].encode()).decode(), None


def _two_bodies(lines: _Lines) -> None:
    lines[_entries(lines, 0)[2]]["raw"] = base64.b64encode(b"\xff").decode()


def _namespace(lines: _Lines) -> None:
    lines[0]["ns"] = "billing"


def _no_thread(lines: _Lines) -> None:
    del lines[_threads(lines)[0]]


_CHANGES: dict[str, tuple[Callable[[_Lines], None], type[SealpointError]]] = {
    "an entry dropped": (_drop, SealpointError),
    "entries reordered": (_reorder, Misplaced),
    "thread ids swapped": (_swap_threads, SealpointError),
    "threads reordered": (_swap_all, BundleInvalid),
    "a thread twice": (_twice, BundleInvalid),
    "an entry of another thread": (_splice, Misplaced),
    "a body of another entry": (_body, Tampered),
    "a body left out": (_no_body, SealpointError),
    "seals of another entry": (_seals, Forged),
    "an edited header": (_header, Forged),
    "an older roster": (_older_roster, SealpointError),
    "no roster": (_no_roster, NotTrusted),
    "no policy": (_no_policy, BundleInvalid),
    "another policy": (_other_policy, BundleInvalid),
    "a blob twice": (_more_blobs, SealpointError),
    "blobs that nobody names": (_unnamed_blobs, BundleInvalid),
    "a body in another spelling": (_raw_body, BundleInvalid),
    "two bodies": (_two_bodies, BundleInvalid),
    "another namespace": (_namespace, SealpointError),
    "no line for a thread": (_no_thread, SealpointError),
}


@pytest.mark.parametrize("name", _CHANGES)
def test_an_insider_cannot_sign_a_changed_history(scene: tuple[bytes, TrustPin], name: str) -> None:
    """The key of an exporter signs the bundle, and no entry of it."""
    data, trusted = scene
    change, error = _CHANGES[name]
    lines = lines_of(data)
    change(lines)

    assert isinstance(_refused(resigned(lines, key("operator")), trusted), error)


def test_an_insider_can_leave_out_the_newest_and_the_report_says_how_far_it_goes(
    scene: tuple[bytes, TrustPin],
) -> None:
    """No bundle proves that it is the newest; it never says so."""
    data, trusted = scene
    lines = lines_of(data)
    last = _entries(lines, 1)[-1]
    whole = api.verify_bundle(data, trusted).threads[1]
    del lines[last:-1]
    shorter = api.verify_bundle(resigned(lines, key("operator")), trusted)

    assert shorter.threads[1].seq == whole.seq - 1
    assert "later entries may exist" in shorter.claim


def test_a_blob_that_nobody_names_is_refused_before_it_is_kept(
    scene: tuple[bytes, TrustPin], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one ends it, however many follow: nothing beyond is read."""
    data, trusted = scene
    lines = lines_of(data)
    _unnamed_blobs(lines)
    checked: list[str] = []
    monkeypatch.setattr(check_module, "_check_blob", lambda line: checked.append(line.digest))
    refused = _refused(resigned(lines, key("operator")), trusted)

    assert "found another blob after 1" in refused.message
    assert len(checked) == 1


def test_an_exporter_whom_the_roster_does_not_know_is_refused(
    scene: tuple[bytes, TrustPin],
) -> None:
    """A key of nobody, of another namespace, or of somebody else than the line says."""
    data, trusted = scene
    lines = lines_of(data)

    assert isinstance(_refused(resigned(lines, key("mallory")), trusted), NotTrusted)
    assert isinstance(_refused(resigned(lines, key("far")), trusted), NotTrusted)
    posing = resigned(lines, key("mallory"), by=key("operator").key)
    assert isinstance(_refused(posing, trusted), Forged)


def test_the_end_of_a_bundle_fits_no_other(scene: tuple[bytes, TrustPin]) -> None:
    """A signature is for one content, one time and one number of lines."""
    data, trusted = scene
    lines = lines_of(data)
    for field, value in (("at", "2030-01-01T00:00:00Z"), ("lines", 1), ("content", "00" * 32)):
        changed = copy.deepcopy(lines)
        changed[-1][field] = value

        assert isinstance(_refused(unsigned(changed), trusted), BundleInvalid | Forged)


def test_a_bundle_of_another_store_is_refused(scene: tuple[bytes, TrustPin]) -> None:
    """Neither under its pin, nor with its store chain in front of these threads."""
    data, trusted = scene
    other = pin("another-root")

    assert isinstance(_refused(data, other), SealpointError)
    lines = lines_of(data)
    lines[0]["store"] = "00" * 16
    assert isinstance(_refused(resigned(lines, key("operator")), trusted), NotTrusted)


def test_a_roster_older_than_the_pin_is_refused(scene: tuple[bytes, TrustPin]) -> None:
    """Who knows a newer roster believes no bundle that ends before it."""
    data, trusted = scene

    assert isinstance(_refused(data, trusted.with_roster(99)), RolledBack)
