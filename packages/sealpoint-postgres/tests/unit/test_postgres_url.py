# SPDX-License-Identifier: Apache-2.0
"""How a PostgreSQL database is named: strictly, in one way, and never with a password."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.errors import UrlInvalid
from sealpoint_postgres._url import ANCHOR_SCHEMA, PostgresUrl

_NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.$-]{0,20}", fullmatch=True)
_PORTS = st.integers(1, 65535)
_HOSTS = st.one_of(
    st.from_regex(r"[a-z0-9_][a-z0-9_.-]{0,20}", fullmatch=True),
    st.just("[::1]"),
    st.just("[2001:db8::7]"),
)
_PATHS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffd\x7f"),
    min_size=1,
    max_size=20,
)
_SOCKETS = st.from_regex(r"/[A-Za-z0-9_./-]{1,20}", fullmatch=True)


@st.composite
def _urls(draw: st.DrawFn) -> PostgresUrl:
    hosts: Any = st.lists(st.tuples(_HOSTS, _PORTS), min_size=1, max_size=3).map(tuple)
    socket: Any = st.tuples(st.tuples(_SOCKETS, _PORTS))
    ways = draw(
        st.dictionaries(st.sampled_from(["sslcert", "sslkey", "sslrootcert"]), _PATHS)
        | st.just({"sslmode": "verify-ca", "channel_binding": "require"})
    )
    return PostgresUrl(
        hosts=draw(hosts | socket),
        database=draw(_NAMES),
        schema=draw(st.from_regex(r"[a-z_][a-z0-9_]{0,20}", fullmatch=True)),
        user=draw(st.just("") | _NAMES),
        ways=tuple(sorted(ways.items())),
    )


@given(_urls(), st.sampled_from(["sealpoint", ANCHOR_SCHEMA]))
def test_a_url_is_read_back_as_it_was_written(url: PostgresUrl, schema: str) -> None:
    """Whichever schema is meant where none is named."""
    assert PostgresUrl.parse(str(url)) == url
    assert PostgresUrl.parse(url.spelled_out, schema=schema) == url
    assert PostgresUrl.parse(f"postgresql://{url.place}").place == url.place


@given(_urls(), _NAMES)
def test_workers_with_logins_of_their_own_mean_one_place(url: PostgresUrl, user: str) -> None:
    """Who logs in, and how, is not part of where a store is."""
    other = PostgresUrl(hosts=url.hosts, database=url.database, schema=url.schema, user=user)

    assert other.place == url.place


@given(st.text(max_size=60))
def test_anything_else_is_refused_as_what_it_is(text: str) -> None:
    """A text is a URL that is written as it was read, or refused; nothing else happens."""
    for given_text in (text, f"postgresql://{text}", f"postgresql://u@h/d?{text}"):
        try:
            found = PostgresUrl.parse(given_text)
        except UrlInvalid:
            continue
        assert PostgresUrl.parse(str(found)) == found
        assert "password" not in found.parameters()


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://h",
        "postgresql:///d",
        "postgres://u@h/d",
        "postgresql://u@h:/d",
        "postgresql://u@h:0/d",
        "postgresql://u@h:05432/d",
        "postgresql://u@h:0000099999999/d",
        "postgresql://u@h:" + "0" * 5000 + "1/d",
        "postgresql://u@h:65536/d",
        "postgresql://u@h:\u0665/d",
        "postgresql://@h/d",
        "postgresql://u@h/d/e",
        "postgresql://u@h/d#f",
        "postgresql://u@h/d?schema=A",
        "postgresql://u@h/d?schema=a&schema=b",
        "postgresql://u@h/d?schema=",
        "postgresql://u@h/d?options=-c%20x",
        "postgresql://u@h/d?password=hunter2",
        "postgresql://u@h/d?sslmode=sometimes",
        "postgresql://u@h/d?sslrootcert=%00",
        "postgresql://u@h/d?sslrootcert=%ff",
        "postgresql://u@h/d?host=/run",
        "postgresql://u@/d?host=run",
        "postgresql://u@h/%64%2f",
        "postgresql://u;@h/d",
    ],
)
def test_what_would_be_ignored_is_refused(text: str) -> None:
    """Everything that libpq would guess about, or that is not a place and a way."""
    with pytest.raises(UrlInvalid) as told:
        PostgresUrl.parse(text)

    assert "hunter2" not in str(told.value)


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    """With where it belongs instead."""
    with pytest.raises(UrlInvalid, match="no password") as told:
        PostgresUrl.parse("postgresql://u:hunter2@h/d")

    assert "hunter2" not in str(told.value)
    assert "SEALPOINT_STORE_PASSWORD_FILE" in str(told.value)


def test_another_machine_proves_its_name_unless_the_url_says_otherwise() -> None:
    """To this machine itself, nothing needs to be proven."""
    far = PostgresUrl.parse("postgresql://u@db.example,localhost/d")
    near = PostgresUrl.parse("postgresql://u@127.0.0.1,[::1]:5433/d")

    assert far.parameters()["sslmode"] == "verify-full"
    assert "sslmode" not in near.parameters()
    said = PostgresUrl.parse("postgresql://u@db.example/d?sslmode=require")
    assert said.parameters()["sslmode"] == "require"


_WITHOUT = """
import sys
sys.modules["psycopg"] = None
import sealpoint
try:
    sealpoint.init("postgresql://u@localhost/d", config_dir=sys.argv[1], state_dir=sys.argv[1])
except sealpoint.errors.SealpointError as error:
    print(error.code, error)
"""


def test_without_the_client_the_extra_is_named(tmp_path: Path) -> None:
    """A URL of a database needs an extra, and nothing else does."""
    command = [sys.executable, "-c", _WITHOUT, str(tmp_path / "places")]
    found = subprocess.run(command, capture_output=True, text=True, check=True)

    assert found.stdout.startswith("extra-missing"), found.stdout + found.stderr
    assert "pip install sealpoint-postgres" in found.stdout
