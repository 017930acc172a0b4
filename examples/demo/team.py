# SPDX-License-Identifier: Apache-2.0
"""The store of the demos, and its people: the policy `strict`, two approvers with own keys."""

import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from screen import console, quote, say, scene, tell

import sealpoint
from sealpoint import Request
from sealpoint.cli import main as command_line

FOLDER = Path(mkdtemp(prefix="sealpoint-demo-"))
DISK = FOLDER / "disk"  # what an attacker has: keys and anchor lie apart from it
SEALED = DISK / "sealed.db"
URL = f"sqlite:///{SEALED}"
PLACE: dict[str, Any] = {"config_dir": FOLDER / "config", "state_dir": FOLDER / "state"}
APPROVERS = ("ann", "bob")


def set_up() -> None:
    """Make the store and the keys of its people."""
    tell("All of it happens now, with a scripted model: no network, no key.")
    DISK.mkdir()
    sealpoint.init(URL, policy="strict", **PLACE)
    admin = sealpoint.admin(URL, **PLACE)
    for name in APPROVERS:
        admin.keys.create(name)
        admin.keys.add(name, person=name, roles=["approver"], namespaces=["*"])


def yesterday(place: Path) -> Path:
    """Where somebody keeps a copy of what lies there, for later."""
    return place.with_stem(f"{place.stem}-yesterday")


def show_request(request: Request) -> None:
    """Print what approvers are shown."""
    tell(f"$ sealpoint requests {request.id[:12]}  # the beginning; digests stand below")
    with redirect_stdout(io.StringIO()) as printed:
        folders = ("--config-dir", str(FOLDER / "config"), "--state-dir", str(FOLDER / "state"))
        command_line(["requests", request.id, "--store", URL, *folders], standalone_mode=False)
    quote(printed.getvalue().partition("\n\nStatus:")[0])


def approve(request: Request) -> Iterator[tuple[str, Request]]:
    """Have everybody approve, one after the other, and say how the request stands then."""
    for name in APPROVERS:
        with sealpoint.open_store(URL, identity=name, **PLACE) as store:
            store.approve(request.id, reason="as agreed")
            yield name, store.request(request.id)


def scene_audit() -> None:
    """Print who decided what."""
    scene("5. Who decided what: the audit of invoice 17")
    with sealpoint.open_store(URL, read_only=True, **PLACE) as store:
        for record in store.audit(thread="invoice-17"):
            if record.kind in ("request", "approval", "resume"):
                say(f"entry {record.seq}", f"{record.kind} by {record.by}. {record.summary}")
        report = store.verify()
    tell(f"The whole store: {report.entries} entries verified, {len(report.findings)} findings.")


def scene_look(refusal: str) -> None:
    """Print how to go on looking."""
    scene("6. Look for yourself")
    settings = {"STORE": URL, "CONFIG_DIR": FOLDER / "config", "STATE_DIR": FOLDER / "state"}
    lines = [f"export SEALPOINT_{name}='{value}'\n" for name, value in settings.items()]
    (FOLDER / "env").write_text("".join(lines), encoding="utf-8")
    for line in (
        ". .venv/bin/activate",
        f". {FOLDER}/env",
        f"sealpoint audit --thread {refusal} is on record, too",
        "sealpoint log invoice-17",
        "sealpoint verify",
    ):
        console.print(f"  $ {line}")
    tell("Databases and keys are kept there; delete the folder when you are done.")
