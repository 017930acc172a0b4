# SPDX-License-Identifier: Apache-2.0
"""Names in data (paths, zones, patterns, types) reach no file, no network and no compiler."""

import builtins
import os
import re
import socket
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sealpoint.errors import DecodeError, TypeNotAllowed
from tests.application import make_registry
from tests.wire import array, extension, text

REGISTRY = make_registry()

_TRAVERSALS = [
    "../../etc/passwd",
    "/etc/passwd",
    "..\\..\\x",
    "~/.ssh/id",
    "Europe/../Europe/Paris",
]


@pytest.fixture
def _sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every way to the file system and the network fail the test."""

    def refuse(*_: Any, **__: Any) -> Any:
        pytest.fail("something was opened or looked at")

    for owner, name in [
        *((builtins, "open"), (os, "open"), (os, "stat"), (os, "lstat"), (os, "listdir")),
        *((os, "scandir"), (os, "readlink"), (os, "getcwd"), (socket, "socket")),
        *((socket, "getaddrinfo"), (re, "compile")),
    ]:
        monkeypatch.setattr(owner, name, refuse)


@pytest.mark.usefixtures("_sealed")
@pytest.mark.parametrize("name", _TRAVERSALS)
@pytest.mark.parametrize("code", [0, 1, 2])
def test_a_path_with_traversal_is_only_a_name(code: int, name: str) -> None:
    """A path is built, or refused, without a look at any disk."""
    try:
        decoded = REGISTRY.decode(extension(17, bytes((code,)) + name.encode()))
    except DecodeError:
        return

    assert type(decoded) in (PurePosixPath, PureWindowsPath, type(Path()))
    assert str(decoded) == name


@pytest.mark.usefixtures("_sealed")
@pytest.mark.parametrize(
    "name",
    [
        *_TRAVERSALS,
        "",
        ".",
        "..",
        "/",
        "posixrules",
        "tzdata.zi",
        "Europe/Paris\x00",
        "europe/paris",
        "leapseconds",
        "�",
        "Europe",
        "Nowhere/City",
        "x" * 100000,
        "Europe/Paris/../Rome",
    ],
    ids=lambda name: repr(name[:20]),
)
def test_a_zone_name_is_looked_up_in_a_table_only(name: str) -> None:
    """Zone names that are no IANA names are refused, with nothing opened to find out."""
    zone = b"z" + name.encode("utf-8", "surrogatepass")

    for data in (
        extension(24, zone),
        extension(10, bytes.fromhex("07e80101000000") + bytes(4) + zone),
        extension(12, bytes(7) + zone),
    ):
        with pytest.raises(DecodeError):
            REGISTRY.decode(data)


@pytest.mark.usefixtures("_sealed")
def test_a_known_zone_needs_no_file_either() -> None:
    """The table of zones is built before anything is decoded."""
    decoded = REGISTRY.decode(extension(24, b"zEurope/Paris"))

    assert type(decoded) is ZoneInfo
    assert decoded.key == "Europe/Paris"


def test_patterns_are_neither_saved_nor_built() -> None:
    """A compiled pattern is no built-in type, and no tag compiles one."""
    with pytest.raises(TypeNotAllowed, match=r"re\.Pattern"):
        REGISTRY.encode(re.compile("a"))


@pytest.mark.usefixtures("_sealed")
def test_no_tag_compiles_a_pattern() -> None:
    """A text that is a costly pattern stays a text under every tag."""
    evil = "(" * 20 + "a+" + ")+" * 20 + "$"

    for tag in range(256):
        for payload in (evil.encode(), text(evil), array(text(evil)), array(text(evil), b"\x00")):
            try:
                decoded = REGISTRY.decode(extension(tag, payload))
            except DecodeError:
                continue
            assert not isinstance(decoded, re.Pattern)


@pytest.mark.usefixtures("_sealed")
@pytest.mark.parametrize("host", ["localhost", "example.invalid", "0x7f.1", "1.2.3.4/33", "::%a%b"])
def test_a_host_name_is_no_address(host: str) -> None:
    """Addresses are bytes; nothing is resolved."""
    for code in range(7):
        try:
            decoded = REGISTRY.decode(extension(18, bytes((code,)) + host.encode()))
        except DecodeError:
            continue
        assert type(decoded).__module__ == "ipaddress"
