# SPDX-License-Identifier: Apache-2.0
"""Fresh stores for tests: each saver that a test asks for has one of its own.

A sealed one lies in a temporary directory or in a schema of a server, with a policy, and allows
whatever types the framework's tests define, which is counted. The peer is the framework's own
SQLite saver, on a file.
"""

import asyncio
import dataclasses
import functools
import os
import secrets
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite
import psycopg
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

import sealpoint
from sealpoint.errors import PolicyInvalid, RuleInvalid, SealpointError, TypeNotAllowed
from sealpoint.gate import Measure, Policy, Rule, shipped_policy
from sealpoint_langgraph import SealedSaver

__all__ = ["ALLOW", "Stores", "allowing_policy"]

ALLOW = "allow"
"""The policy that asks for as little as a policy can."""
_TESTS = "tests."
_T = TypeVar("_T")


def allowing_policy() -> bytes:
    """A policy with the least measure that each rule may have."""
    solo = Policy.parse(shipped_policy("solo")).rules
    return _policy({rule: _least(rule, solo) for rule in Rule})


def _least(rule: Rule, others: Mapping[Rule, Measure]) -> Measure:
    for measure in (Measure.ALLOW, Measure.RECORD, Measure.REASON, Measure.approve(1)):
        try:
            Policy.parse(_policy({**others, rule: measure}))
        except PolicyInvalid:
            continue
        return measure
    raise AssertionError("no measure is allowed")


def _policy(measures: Mapping[Rule, Measure]) -> bytes:
    rules = "\n".join(f'{rule} = "{measure}"' for rule, measure in measures.items())
    return (
        f'version = 2\nname = "{ALLOW}"\n[rules]\n{rules}\n[approvals]\n'
        'expires = "24h"\n[session]\ntakeover_after = "0s"\n'
    ).encode()


class Stores:
    """Makes savers, and closes what they were made on when a test is over."""

    def __init__(self, policy: str, server: str = "") -> None:
        self._server = server
        self._policy: str | bytes = allowing_policy() if policy == ALLOW else policy
        self._open = ExitStack()
        self._lasting = ExitStack()
        """What modules made when they were imported, for all of their tests."""
        self.made = 0
        """How many savers the test has asked for."""
        self.allowed: set[str] = set()
        """Which types of tests were allowed because a value of them was saved."""
        self.refused: list[str] = []
        """Codes of the errors that savers raised in the test."""

    def begin(self) -> None:
        """Forget what the test before this one did."""
        self._lasting.push(self._open.pop_all())
        self.made = 0
        self.allowed.clear()
        self.refused.clear()

    def close(self) -> None:
        """Close and remove what the test made."""
        self._open.close()

    def end(self) -> None:
        """Close and remove everything."""
        self._open.close()
        self._lasting.close()

    def sealed(self) -> SealedSaver:
        """A saver of ours on a store of its own."""
        home = self._home()
        where: dict[str, Any] = {"config_dir": home / "config", "state_dir": home / "state"}
        if self._server:
            url, where["password"] = self._schema(), os.environ["PGPASSWORD"]
        else:
            (home / "data").mkdir()
            url = f"sqlite:///{home / 'data' / 'agents.db'}"
        sealpoint.init(url, policy=self._policy, **where)
        registry = _TestTypes(self.allowed)
        store = self._open.enter_context(sealpoint.open_store(url, registry=registry, **where))
        return _NotingSaver(store, self.refused)

    def peer(self) -> SqliteSaver | AsyncSqliteSaver:
        """The framework's own saver on a SQLite file; the asynchronous one inside of a loop."""
        path = self._home() / "peer.db"
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            connection = sqlite3.connect(path, check_same_thread=False)
            self._open.callback(connection.close)
            return SqliteSaver(connection)
        aio = aiosqlite.connect(path)
        self._open.callback(aio.stop)
        return AsyncSqliteSaver(aio)

    def _schema(self) -> str:
        name = f"suite_{secrets.token_hex(6)}"
        self._open.callback(self._drop, name)
        return f"{self._server}?schema={name}"

    def _drop(self, schema: str) -> None:
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")

    def _home(self) -> Path:
        self.made += 1
        home = Path(tempfile.mkdtemp(prefix="suite-"))
        self._open.callback(shutil.rmtree, home, ignore_errors=True)
        return home


class _TestTypes(sealpoint.Registry):
    """Allows a type of the framework's tests when a value of it is first saved."""

    def __init__(self, allowed: set[str]) -> None:
        super().__init__()
        self._allowed = allowed
        self._changing = threading.Lock()

    def encode(self, value: Any) -> bytes:
        """As the registry does, with the types of tests allowed."""
        return self._encoded(value, lambda: super(_TestTypes, self).encode(value))

    def encode_tree(self, value: Any, put: Any, **named: Any) -> Any:
        """As the registry does, with the types of tests allowed."""
        return self._encoded(
            value, lambda: super(_TestTypes, self).encode_tree(value, put, **named)
        )

    def encode_short(self, value: Any, memo: Any = None) -> bytes | None:
        """As the registry does, with the types of tests allowed."""
        return self._encoded(value, lambda: super(_TestTypes, self).encode_short(value, memo))

    def _encoded(self, value: Any, encode: Callable[[], _T]) -> _T:
        while True:
            try:
                return encode()
            except TypeNotAllowed:
                if not self._allow_more(value):
                    raise

    def _allow_more(self, value: Any) -> bool:
        """Allow the types of tests in a value; False if there is none to allow."""
        with self._changing:
            there = {rule.cls for rule in self.rules}
            found = {type(each) for each in _objects(value)} - there
            added = False
            for cls in found:
                if f"{cls.__module__}.".startswith(_TESTS):
                    added = self._allow_one(cls) or added
            return added

    def _allow_one(self, cls: type) -> bool:
        try:
            self.allow(cls, name=f"app.test-{len(self.rules)}")
        except RuleInvalid:
            return False
        self._allowed.add(f"{cls.__module__}.{cls.__qualname__}")
        return True


def _objects(value: Any) -> Iterator[Any]:
    """Everything that a value holds, itself first."""
    seen: dict[int, Any] = {}
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen[id(each)] = each
        yield each
        waiting.extend(_inside(each))


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    found = getattr(value, "__dict__", None)
    return found.values() if isinstance(found, dict) and not isinstance(value, type) else ()


class _NotingSaver(SealedSaver):
    """Writes down what it refuses: the framework keeps some of that to itself."""

    def __init__(self, store: sealpoint.Store, refused: list[str]) -> None:
        super().__init__(store)
        self.refused = refused


def _noting(method: Callable[..., Any]) -> Callable[..., Any]:
    # The framework looks at the parameters of some of these.
    @functools.wraps(method)
    def noting(self: _NotingSaver, *positional: Any, **named: Any) -> Any:
        try:
            return method(self, *positional, **named)
        except SealpointError as error:
            self.refused.append(error.code)
            raise

    return noting


def _noting_async(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    async def noting(self: _NotingSaver, *positional: Any, **named: Any) -> Any:
        try:
            return await method(self, *positional, **named)
        except SealpointError as error:
            self.refused.append(error.code)
            raise

    return noting


for _name in ("get_tuple", "put", "put_writes"):
    setattr(_NotingSaver, _name, _noting(getattr(SealedSaver, _name)))
for _name in ("aput", "aput_writes"):
    setattr(_NotingSaver, _name, _noting_async(getattr(SealedSaver, _name)))
