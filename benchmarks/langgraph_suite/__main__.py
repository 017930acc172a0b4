# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks.langgraph_suite CHECKOUT`: LangGraph's own tests on `SealedSaver`.

CHECKOUT is the unpacked source distribution of langgraph, which holds its tests:

    pip download --no-deps --no-binary :all: langgraph==VERSION langgraph-prebuilt==VERSION

with the versions that are installed. The tests need some packages that ours do not; in an
environment that has ours:

    pip install syrupy pytest-mock pycryptodome redis 'psycopg[binary]' psycopg-pool \
        langgraph-checkpoint-postgres

No server is needed; `--storage postgres` starts one for our stores. The tests run first with the
stock saver (`--baseline FILE` keeps what that gave, and reads it the next time), then in each mode
with ours: `bare`, or every graph behind `guard`, and either with LANGGRAPH_STRICT_MSGPACK
(`strict`, `guard-strict`). What fails is run once more, alone; and with the stock `SqliteSaver`, if
it was no error of ours. The policy `allow` asks for as little as a policy can, and the calls carry
a reason.

`--time` measures instead what the core tests cost on a SQLite file, beside the stock `SqliteSaver`.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks._record import SUITE_HEADING, write_section
from benchmarks.langgraph_suite._cost import measure_cost
from benchmarks.langgraph_suite._report import Row, failing_lines, table
from benchmarks.langgraph_suite._session import Outcome, Plan, SuiteError, missing_packages, run
from tests.postgres_server import PostgresServer

_MODES = ("bare", "guard", "strict", "guard-strict")
_PEERS = ("langgraph", "langgraph-checkpoint", "langgraph-prebuilt")
_POLICIES = ("allow", "solo", "team")
_STORAGES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


def _arguments() -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="benchmarks.langgraph_suite", description=__doc__, formatter_class=form
    )
    parser.add_argument("checkout", type=Path, help="the unpacked sources of langgraph")
    parser.add_argument("--prebuilt", type=Path, help="those of langgraph-prebuilt, to run too")
    parser.add_argument("--mode", nargs="+", choices=_MODES, default=["bare"])
    parser.add_argument("--policy", choices=_POLICIES, default="allow")
    parser.add_argument("--storage", choices=_STORAGES, default="sqlite", help="of our stores")
    parser.add_argument(
        "--reason",
        action=argparse.BooleanOptionalAction,
        help="whether calls carry a reason; without this, only with the policy allow",
    )
    parser.add_argument("--jobs", type=int, default=2, help="how many processes")
    parser.add_argument("--baseline", type=Path, help="keep the stock runs in this file, or read")
    parser.add_argument("--only", nargs="+", default=["tests"], help="some files or tests alone")
    parser.add_argument("--time", action="store_true", help="measure the core tests instead")
    parser.add_argument("--rounds", type=int, default=2, help="how often --time measures")
    parser.add_argument("--write", action="store_true", help="write benchmarks/RESULTS.md")
    return parser.parse_args()


class _Suite:
    """The tests of one or two checkouts."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        found = {"langgraph": arguments.checkout, "langgraph-prebuilt": arguments.prebuilt}
        self.checkouts: dict[str, Path] = {name: path for name, path in found.items() if path}
        self._jobs: int = arguments.jobs
        self._only: list[str] = arguments.only
        self._baseline: Path | None = arguments.baseline
        for path in self.checkouts.values():
            if not (path / "tests" / "conftest_checkpointer.py").is_file():
                raise SuiteError(f"{path}: expected the unpacked sources with tests/, found none")

    def row(self, mode: str, policy: str, plan: Plan, upstream: frozenset[str]) -> Row:
        """Run everything, and what fails once more."""
        outcomes: list[Outcome] = []
        unsteady: set[str] = set()
        peer: set[str] = set()
        for name, checkout in self.checkouts.items():
            only = self._only if name == "langgraph" else ["tests"]
            found = run(checkout, plan, jobs=self._jobs, chosen=only)
            failed = [each.test for each in found if each.outcome == "failed"]
            again = run(checkout, plan, chosen=sorted(failed)) if failed else []
            unsteady |= {f"{name}/{each.test}" for each in again if each.outcome == "passed"}
            strange = [each.test for each in again if each.outcome == "failed" and not each.ours]
            theirs = Plan(saver="peer", strict=plan.strict)
            other = run(checkout, theirs, chosen=sorted(strange)) if strange else []
            peer |= {f"{name}/{each.test}" for each in other if each.outcome == "failed"}
            outcomes += (replace(each, test=f"{name}/{each.test}") for each in found)
        return Row(
            mode=mode,
            policy=policy,
            outcomes=outcomes,
            unsteady=frozenset(unsteady),
            upstream=upstream,
            peer=frozenset(peer),
        )

    def stock(self, *, strict: bool) -> Row:
        """The run that ours are compared with."""
        name = "stock-strict" if strict else "stock"
        kept = self._kept()
        key = " ".join([name, *(path.name for path in self.checkouts.values()), *self._only])
        if key not in kept:
            row = self.row(name, "", Plan(strict=strict), frozenset())
            kept[key] = {
                "outcomes": [asdict(each) for each in row.outcomes],
                "unsteady": sorted(row.unsteady),
            }
            if self._baseline is not None:
                self._baseline.write_text(json.dumps(kept), encoding="utf-8")
        outcomes = [Outcome(**each) for each in kept[key]["outcomes"]]
        unsteady = frozenset(kept[key]["unsteady"])
        return Row(mode=name, policy="", outcomes=outcomes, unsteady=unsteady)

    def _kept(self) -> dict[str, Any]:
        if self._baseline is None or not self._baseline.exists():
            return {}
        found: dict[str, Any] = json.loads(self._baseline.read_text("utf-8"))
        return found


@contextmanager
def _server(storage: str) -> Iterator[str]:
    """The URL of a server, whose password is then in the environment; empty if none is needed."""
    if storage == "sqlite":
        yield ""
        return
    server = PostgresServer.create("max_connections=400")
    try:
        server.start()
        os.environ["PGPASSWORD"] = server.password
        yield server.url()
    finally:
        server.remove()


def _run_modes(arguments: argparse.Namespace, server: str) -> list[str]:
    suite = _Suite(arguments)
    reason = arguments.policy == "allow" if arguments.reason is None else arguments.reason
    policy = arguments.policy + (" + reason" if reason else "")
    rows: dict[str, Row] = {}
    for mode in arguments.mode:
        strict = "strict" in mode
        stock = suite.stock(strict=strict)
        rows.setdefault(stock.mode, stock)
        plan = Plan(
            saver="sealed",
            policy=arguments.policy,
            guard="guard" in mode,
            strict=strict,
            reason=reason,
            server=server,
        )
        upstream = frozenset(each.test for each in stock.failed)
        row = rows[mode] = suite.row(mode, policy, plan, upstream)
        _say([f"{mode}, {policy}:", *failing_lines(row), ""])
    return table(list(rows.values()))


def _say(lines: list[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run the framework's tests.

    Returns:
        0 if they could be run, whatever became of them; else 2.
    """
    arguments = _arguments()
    if missing := missing_packages():
        needed = " ".join(f"'{name}'" for name in missing)
        sys.stderr.write(f"The framework's tests need more packages. Run: pip install {needed}\n")
        return 2
    try:
        if arguments.time:
            guarded = "guard" in arguments.mode
            _say(measure_cost(arguments.checkout, rounds=arguments.rounds, guarded=guarded))
            return 0
        with _server(arguments.storage) as server:
            lines = _run_modes(arguments, server)
    except SuiteError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    _say(lines)
    if arguments.write:
        command = "python -m benchmarks.langgraph_suite CHECKOUT --write"
        said = f"Written by `{command}` on {datetime.now(UTC):%Y-%m-%d}"
        where = _STORAGES[arguments.storage]
        versions = ", ".join(f"{name} {version(name)}" for name in _PEERS)
        write_section(SUITE_HEADING, ["", f"{said}; {versions}. {where}.", "", *lines])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
