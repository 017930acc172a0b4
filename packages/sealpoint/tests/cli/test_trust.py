# SPDX-License-Identifier: Apache-2.0
"""`sealpoint trust`: a pin goes from one machine to another."""

import json
from pathlib import Path

from sealpoint import TrustPin
from tests.cli.machine import Machine


def test_export_prints_the_pin_and_nothing_else(machine: Machine) -> None:
    """Standard output is the pin, byte for byte; the fingerprint is beside it."""
    result = machine.run("trust", "export")
    pin = TrustPin.parse(result.stdout_bytes)

    assert result.exit_code == 0
    assert str(pin.fingerprint()) in result.stderr


def test_a_pin_moves_trust_to_another_machine(
    machine: Machine, other: Machine, tmp_path: Path
) -> None:
    """Both sides show one fingerprint; before the import, nothing is believed."""
    machine.done("save", "t", stdin="1")
    file = tmp_path / "pin.json"

    assert other.refused("load", "t") == (39, "no-pin")
    exported = machine.json("trust", "export", "--output", str(file))
    imported = other.json("trust", "import", str(file))
    assert imported["fingerprint"] == exported["fingerprint"]
    assert exported["output"] == str(file)
    assert TrustPin.parse(file.read_bytes()).encode() == file.read_bytes()
    assert other.refused("load", "t") == (30, "unanchored")
    assert exported["fingerprint"] in other.done("trust", "import", str(file))


def test_a_pin_is_read_from_standard_input(machine: Machine, other: Machine) -> None:
    """`trust export | trust import -` works."""
    pin = machine.run("trust", "export").stdout_bytes

    assert "fingerprint" in other.done("trust", "import", "-", stdin=pin)


def test_another_pin_needs_replace(machine: Machine, tmp_path: Path) -> None:
    """A pin that is there gives way only when told to."""
    stranger = Machine(tmp_path / "disk" / "strange.db", tmp_path / "three")
    stranger.done("init")
    pin = stranger.run("trust", "export").stdout_bytes

    assert machine.refused("trust", "import", "-", stdin=pin) == (60, "store-exists")
    machine.done("trust", "import", "-", "--replace", stdin=pin)
    assert machine.refused("threads")[0] != 0


def test_what_is_no_pin_is_refused(machine: Machine, other: Machine, tmp_path: Path) -> None:
    """A file that is none, is missing, or is too large changes nothing."""
    document = json.loads(machine.run("trust", "export").stdout)
    large = tmp_path / "large"
    large.write_bytes(b" " * 100_000)

    assert other.refused("trust", "import", "-", stdin="{}") == (39, "trust-file-invalid")
    assert other.refused("trust", "import", "-", stdin=json.dumps(document)) == (
        39,
        "trust-file-invalid",
    )
    assert other.refused("trust", "import", str(tmp_path / "none")) == (2, "usage")
    assert other.refused("trust", "import", str(tmp_path)) == (2, "usage")
    assert other.refused("trust", "import", str(large)) == (2, "usage")
    assert other.refused("threads") == (39, "no-pin")


def test_a_moved_store_goes_on(machine: Machine, tmp_path: Path) -> None:
    """Before `trust move` nothing is believed at the new place, after it nothing at the old one."""
    machine.done("save", "t", stdin="1")
    fingerprint = machine.json("trust", "export")["fingerprint"]
    moved = Machine(tmp_path / "disk" / "moved.db", machine.home)
    machine.path.rename(moved.path)
    result = moved.run("load", "t")

    assert result.exit_code == 39
    assert (
        f"sealpoint trust move OLD-URL for one that was moved. Stores known here: {machine.url}."
        in (result.stderr)
    )
    document = moved.json("trust", "move", machine.url)
    assert (document["url"], document["fingerprint"]) == (moved.url, fingerprint)
    assert document["store"].startswith("store:")
    assert moved.json("load", "t") == 1
    moved.done("save", "t", stdin="2")
    assert moved.json("verify")["ok"] is True
    assert machine.refused("load", "t") == (39, "no-pin")
    assert machine.refused("trust", "move", machine.url) == (39, "no-pin")
    other = Machine(tmp_path / "disk" / "other.db", machine.home)
    other.done("init")
    assert other.refused("trust", "move", moved.url) == (60, "store-exists")
    assert moved.done("trust", "move", moved.url).startswith(f"trusted  {moved.url}\n")
    moved.path.rename(machine.path)
    assert machine.done("trust", "move", moved.url).splitlines() == [
        f"trusted  {machine.url}",
        f"store    {document['store']}",
    ]
    assert machine.json("load", "t") == 2


def test_a_pin_of_a_store_that_is_known_here_is_not_imported(
    machine: Machine, tmp_path: Path
) -> None:
    """Under another URL it would get a secret that does not open the anchor which is here."""
    pin = machine.run("trust", "export").stdout_bytes
    moved = Machine(tmp_path / "disk" / "moved.db", machine.home)
    machine.path.rename(moved.path)

    assert moved.refused("trust", "import", "-", stdin=pin) == (60, "store-exists")
    assert machine.url in moved.run("trust", "import", "-", stdin=pin).stderr
    assert moved.refused("threads") == (39, "no-pin")
    moved.done("trust", "move", machine.url)
    moved.done("threads")


def test_a_file_that_cannot_be_written_is_a_usage_error(machine: Machine, tmp_path: Path) -> None:
    """The message names the option and the file."""
    assert machine.refused("trust", "export", "--output", str(tmp_path / "no" / "pin")) == (
        2,
        "usage",
    )
