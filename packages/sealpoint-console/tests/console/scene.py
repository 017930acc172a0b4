# SPDX-License-Identifier: Apache-2.0
"""A team, its store, and a console that really serves it on this machine."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket

import sealpoint
from sealpoint import Registry, SealpointError, Store, World
from sealpoint.api import Admin
from sealpoint.errors import NeedsApproval
from sealpoint_console import Console, _render
from sealpoint_console.settings import ConsoleSettings
from tests.postgres_server import PostgresServer, schema_of

WORLD = World(tools=["pay"], model={"name": "m1"})
WIDER = World(tools=["pay", "shell"], model={"name": "m1"})
_PATIENCE_S = 1.5
# Trusts nobody: each client would read all certificates of the machine, and needs none.
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
ROLES = {
    "ann": ["approver"],
    "bob": ["approver"],
    "olga": ["operator"],
    "vera": ["auditor"],
}
"""The people beside the owner of the store, whose own identity is the console's."""


class _Compiled(BytecodeCache):
    """Templates as they were compiled before in this process, by what is in them."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        found = self._found.get((bucket.key, bucket.checksum))
        if found is not None:
            bucket.bytecode_from_string(found)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._found[bucket.key, bucket.checksum] = bucket.bytecode_to_string()


# To compile them takes most of the time in which a console starts.
_COMPILING_ONCE = partial(Environment, bytecode_cache=_Compiled())


@dataclass
class Scene:
    """A store with people, and a console of it."""

    folder: Path
    policy: str | bytes = "strict"
    settings: dict[str, Any] = field(default_factory=dict)
    server: PostgresServer | None = None
    """Where the store lies, if not in a file."""
    host: str = "localhost"
    """The name that people type."""

    @property
    def url(self) -> str:
        """Where the store is."""
        if self.server is not None:
            return self.server.url(schema=schema_of(self.folder))
        return f"sqlite:///{self.folder / 'disk' / 'agents.db'}"

    @property
    def place(self) -> dict[str, Any]:
        """Where keys and anchor lie, and what the database asks for."""
        found = {"config_dir": self.folder / "config", "state_dir": self.folder / "state"}
        return found if self.server is None else {**found, "password": self.server.password}

    @property
    def admin(self) -> Admin:
        """What administers the store."""
        return sealpoint.admin(self.url, **self.place)

    def make(self) -> "Scene":
        """Make the store, and give its people keys."""
        (self.folder / "disk").mkdir(parents=True)
        sealpoint.init(self.url, policy=self.policy, **self.place)
        for name, roles in ROLES.items():
            self.admin.keys.create(name)
            self.admin.keys.add(
                name,
                person=name,
                roles=roles,
                namespaces=["*"],
                break_glass=name == "olga",
            )
        return self

    def open(self, identity: str | None = None) -> Store:
        """The store, open as somebody."""
        return sealpoint.open_store(self.url, identity=identity, **self.place)

    def ask(self, thread: str = "invoice-17", *, pay: int = 42, world: World = WORLD) -> str:
        """Have a worker save a question, and ask for its answer to be let through."""
        with self.open() as store:
            handle = store.thread(thread)
            handle.save({"pay": pay}, question={"pay": f"{pay} EUR to ACME?"}, world=WORLD)
            try:
                handle.resume(world=world, answer={"approved": True})
            except NeedsApproval as needed:
                return needed.request.id
        raise AssertionError("the team's policy let it pass")

    def let_pass(self, resume: Callable[[], object]) -> None:
        """Resume what the policy has to be asked about, once two people have approved it."""
        try:
            resume()
        except NeedsApproval as needed:
            for name in ("ann", "bob"):
                with self.open(name) as store:
                    store.approve(needed.request.id, reason="as agreed")
            resume()

    def goes_on(self, thread: str = "invoice-17") -> bool:
        """Whether the worker may go on with what it asked for."""
        with self.open() as store:
            try:
                store.thread(thread).resume(world=WORLD, answer={"approved": True})
            except SealpointError:
                return False
        return True

    @contextmanager
    def serving(self) -> Iterator["Served"]:
        """The console, answering."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        origin = f"http://{self.host}:{port}"
        settings = ConsoleSettings(port=port, origin=origin, **self.settings)
        reading = sealpoint.open_store(
            self.url, read_only=True, registry=Registry().showing_untyped(""), **self.place
        )
        with reading, self.open("operator") as acting:
            with mock.patch.object(_render, "Environment", _COMPILING_ONCE):
                console = Console(reading, acting, settings, admin=self.admin)
            runs = threading.Thread(target=console.run, daemon=True)
            runs.start()
            try:
                until(lambda: console.is_up and console.desk.watch.state.refreshed is not None)
                yield Served(self, console, settings.origin)
            finally:
                console.stop()
                runs.join(timeout=20)


@dataclass
class Served:
    """A console that answers."""

    scene: Scene
    console: Console
    origin: str

    def client(self, person: str | None = None, **headers: str) -> httpx.Client:
        """A browser without a screen, signed in as somebody."""
        headers = {"sec-fetch-site": "same-origin", "origin": self.origin, **headers}
        client = httpx.Client(base_url=self.origin, headers=headers, timeout=20, verify=_NO_TLS)
        if person is not None:
            link = self.console.sign_in_link(person).partition("link=")[2]
            path = f"{self.origin}/sign-in/link"
            answer = httpx.post(path, json={"link": link}, headers=headers, verify=_NO_TLS)
            assert answer.status_code == 200, answer.text
            # httpx keeps a Secure cookie from a loopback address to itself.
            client.headers["cookie"] = f"__Host-sealpoint={_cookie(answer)}"
        return client

    def seen(self) -> None:
        """Wait until the console has seen everything that was saved so far."""
        desk, begun = self.console.desk, time.monotonic()
        before = desk.looks
        desk.catch_up()
        if time.monotonic() - begun > _PATIENCE_S:
            # It waits no longer than a page may.
            until(lambda: desk.looks > before + 1)


def _cookie(answer: httpx.Response) -> str:
    return answer.headers["set-cookie"].partition("=")[2].partition(";")[0]


def until(holds: Any, seconds: float = 20) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.02)
