# SPDX-License-Identifier: Apache-2.0
"""A provisioned database on a real server: an owner, and logins of the other duties."""

import secrets
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg

import sealpoint
from sealpoint import Store, api
from sealpoint_postgres import Duty, PostgresLogin, Provisioned, provision_postgres
from tests.postgres_server import PostgresServer

OWNER = "owner"


@dataclass
class DutyDatabase:
    """A database of its own for a store, and one for an anchor; they go with their server."""

    server: PostgresServer
    home: Path
    name: str = field(default_factory=lambda: f"d{secrets.token_hex(5)}")

    def __post_init__(self) -> None:
        with self.admin("postgres") as connection:
            connection.execute(f"CREATE DATABASE {self.name}")

    @property
    def url(self) -> str:
        """The store, as the administrator reaches it."""
        return self.server.url(database=self.name)

    @cached_property
    def anchor(self) -> str:
        """The anchor, as the administrator reaches it, in a database that is made now."""
        with self.admin("postgres") as connection:
            connection.execute(f"CREATE DATABASE {self.name}_anchor")
        return self.server.url(database=f"{self.name}_anchor")

    def provision(self, **options: Any) -> tuple[Provisioned, ...]:
        """Do so as the administrator."""
        secret = self.server.password
        given = {"password": secret, "anchor_password": secret, **options}
        return provision_postgres(given.pop("store", self.url), **given)

    def login(self, name: str, duty: str, *namespaces: str) -> str:
        """Make a login; its name is this database's own."""
        anchors = {"store": None, "anchor": self.anchor} if duty.startswith("anchor") else {}
        self.provision(
            login=PostgresLogin(
                name=self.login_name(name), duty=Duty(duty), namespaces=namespaces or None
            ),
            password_file=self.password_file(name),
            **anchors,
        )
        return name

    def login_name(self, name: str) -> str:
        """What a login is called on the server, which serves other tests as well."""
        return f"{self.name}_{name}"

    def password_file(self, name: str) -> Path:
        """Where the password of a login lies."""
        return self.home / f"{name}.password"

    def password(self, name: str) -> str:
        """What a program finds there."""
        return self.password_file(name).read_text().removesuffix("\n")

    def url_of(self, name: str) -> str:
        """The store, as a login reaches it."""
        return self.server.url(user=self.login_name(name), database=self.name)

    @property
    def places(self) -> dict[str, Any]:
        """Where keys and anchor lie, on the one machine that tests have."""
        return {"config_dir": self.home / "config", "state_dir": self.home / "state"}

    def initialise(self, policy: str = "solo") -> None:
        """Provision, and make a store as its owner."""
        self.login(OWNER, "owner")
        sealpoint.init(
            self.url_of(OWNER), password=self.password(OWNER), policy=policy, **self.places
        )

    def administer(self, name: str = OWNER) -> "api.Admin":
        """Administer the store as a login."""
        return api.admin(self.url_of(name), password=self.password(name), **self.places)

    def open(self, name: str, **options: Any) -> Store:
        """Open the store as a login."""
        given = {"password": lambda: self.password(name), **self.places, **options}
        return sealpoint.open_store(self.url_of(name), **given)

    def admin(self, database: str | None = None) -> psycopg.Connection:
        """What the superuser may do."""
        return self.server.admin(self.name if database is None else database)

    def connect(self, name: str, database: str | None = None) -> psycopg.Connection:
        """What somebody does who holds nothing but the password of a login."""
        return psycopg.connect(
            host="127.0.0.1",
            port=self.server.port,
            user=self.login_name(name),
            password=self.password(name),
            dbname=self.name if database is None else database,
            autocommit=True,
        )
