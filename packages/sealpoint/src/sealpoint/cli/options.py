# SPDX-License-Identifier: Apache-2.0
"""Options that many verbs share, and how a verb's help lists them. Does not load the store."""

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from sealpoint import _parts
from sealpoint.durations import parse_duration
from sealpoint.errors import ExtraMissing, ObjectNotFound, UsageError

__all__ = [
    "COMMON_OPTIONS",
    "PartGroup",
    "Verb",
    "VerbGroup",
    "common_option",
    "dry_run_option",
    "import_object",
    "json_option",
    "limit_option",
    "optional_reason_option",
    "parse_time",
    "part_help",
    "reason_option",
    "remember_json",
    "time_option",
    "wants_json",
    "yes_option",
]

COMMON_OPTIONS = {
    "store": ("--store URL", "The store, as sqlite:///agents.db; else SEALPOINT_STORE."),
    "namespace": ("--namespace NAME", "Of the threads; else SEALPOINT_NAMESPACE, 'default'."),
    "identity": ("--identity NAME", "Whose key signs; else SEALPOINT_IDENTITY, 'worker'."),
    "config_dir": ("--config-dir DIR", "Keys and pins; else SEALPOINT_CONFIG_DIR, your own."),
    "state_dir": ("--state-dir DIR", "The anchor; else SEALPOINT_STATE_DIR, your own."),
    "as_json": ("--json", "Print JSON, errors included."),
}
"""The options that `sealpoint --help` explains once, for all verbs; config.toml sets them too."""

_UNBROKEN = "\u2011"
_JSON_KEY = "sealpoint.json"


class _Formatter(click.HelpFormatter):
    """Help that is folded only between words: `--yes-to` is one word."""

    def write_text(self, text: str) -> None:
        super().write_text(text.replace("-", _UNBROKEN))

    def write_dl(self, rows: Any, col_max: int = 30, col_spacing: int = 2) -> None:
        rows = [(name, text.replace("-", _UNBROKEN)) for name, text in rows]
        super().write_dl(rows, col_max, col_spacing)

    def getvalue(self) -> str:
        return super().getvalue().replace(_UNBROKEN, "-")


class _Context(click.Context):
    formatter_class = _Formatter


class _CommonOption(click.Option):
    """An option that the help of a verb only names."""


class Verb(click.Command):
    """A command whose help explains its own options and names the common ones."""

    context_class = _Context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse `--json` before a verb that has no such output."""
        rest = super().parse_args(ctx, args)
        if wants_json(ctx) and "as_json" not in ctx.params:
            raise click.NoSuchOption("--json", ctx=ctx)
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verb's own options, then one line with the common ones."""
        rows, common = [], []
        for each in self.get_params(ctx):
            if isinstance(each, _CommonOption):
                common.append(COMMON_OPTIONS[each.name or ""][0])
            elif isinstance(each, click.Option):
                rows.append(each.get_help_record(ctx))
        with formatter.section("Options"):
            formatter.write_dl([row for row in rows if row is not None])
        if common:
            with formatter.section("Common options, explained by sealpoint --help"):
                formatter.write_text(", ".join(common))


class VerbGroup(click.Group):
    """A group of verbs, whose help shows the complete first sentence of each."""

    context_class = _Context
    command_class = Verb

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a row for each verb."""
        del ctx
        rows = [(name, verb.get_short_help_str(1000)) for name, verb in self.commands.items()]
        with formatter.section("Verbs"):
            formatter.write_dl(sorted(rows))


class PartGroup(VerbGroup):
    """A group to which parts add verbs: an entry point `GROUP.VERB` of `sealpoint.verbs`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return its own verbs, and those of parts, installed or not."""
        del ctx
        start = f"{self.name}."
        names = (name for name in _parts.names(_parts.VERBS) if name.startswith(start))
        return sorted({*self.commands, *(name.removeprefix(start) for name in names)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return one of its own verbs, or load the part that provides it.

        Raises:
            ExtraMissing: The part is not installed.
        """
        found = super().get_command(ctx, cmd_name)
        return found or _parts.load(_parts.VERBS, f"{self.name}.{cmd_name}")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a row for each verb."""
        rows = [(name, part_help(f"{self.name}.{name}")) for name in self.list_commands(ctx)]
        with formatter.section("Verbs"):
            formatter.write_dl(rows)


def part_help(name: str) -> str:
    """Return the first sentence of a part's verb, or how to install the part."""
    try:
        verb: click.Command = _parts.load(_parts.VERBS, name)
    except ExtraMissing as error:
        return f"Not installed: {error.message.rpartition(': ')[2]}"
    return verb.get_short_help_str(1000)


def common_option(name: str, **attributes: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return one of the options that `sealpoint --help` explains."""
    flag, text = COMMON_OPTIONS[name]
    words = flag.split()
    if len(words) > 1:
        attributes["metavar"] = words[1]
    return click.option(words[0], name, cls=_CommonOption, help=text, **attributes)


def remember_json(ctx: click.Context, _: click.Parameter, value: bool) -> bool:  # noqa: FBT001
    """Remember that JSON is requested, even if the option precedes the verb."""
    ctx.meta[_JSON_KEY] = value or wants_json(ctx)
    return wants_json(ctx)


json_option = common_option("as_json", is_flag=True, is_eager=True, callback=remember_json)
"""`--json`, on every verb that reads; errors are then JSON as well."""

reason_option = click.option("--reason", required=True, metavar="TEXT", help="Why; it is recorded.")
"""`--reason`, on every verb that decides something about a thread."""

optional_reason_option = click.option("--reason", metavar="TEXT", help="Why; it is recorded.")
"""`--reason`, where it is optional."""

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Only show what would happen, and change nothing."
)
"""`--dry-run`, on verbs that give something up."""

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
"""`--yes`, on verbs that ask on a terminal."""


def limit_option(shown: int) -> Callable[[Callable[..., Any]], Any]:
    """`--limit`, with its default."""
    return click.option(
        "--limit",
        type=click.IntRange(min=0),
        default=shown,
        show_default=True,
        help="How many to list at most; 0 lists all.",
    )


def wants_json(ctx: click.Context) -> bool:
    """Whether the user requested JSON."""
    return bool(ctx.meta.get(_JSON_KEY, False))


# Times as people write them on the command line: a day, a time, or a span from now.


_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2}))?"
)


def time_option(
    flag: str, *, past: bool, words: tuple[str, ...] = (), **attributes: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Make an option that takes a time: with a zone, a day in UTC, or a span from now.

    Args:
        flag: The option.
        past: Whether a span goes back from now, instead of ahead.
        words: Values that are returned unchanged, such as `never`.
        attributes: Further arguments for click.
    """

    def read(_ctx: click.Context, _param: click.Parameter, text: str | None) -> Any:
        if text is None or text in words:
            return text
        return parse_time(text, datetime.now(UTC), flag, past=past)

    return click.option(flag, metavar="TIME", callback=read, **attributes)


def parse_time(text: str, now: datetime, option: str, *, past: bool) -> datetime:
    """Parse a time as people write it.

    Raises:
        UsageError: It is not a time.
    """
    found = None
    with suppress(OverflowError, ValueError):  # no such day, or out of range
        if span := parse_duration(text, "smhdw"):
            found = now - span if past else now + span
        elif _MOMENT.fullmatch(text):
            found = datetime.fromisoformat(text)
    if found is None:
        kind = "an age" if past else "a span"
        raise UsageError(
            f"{option}: expected a day, a time with a zone or {kind}, found {text!r}",
            hint="Write 2026-01-31, 2026-01-31T09:30:00Z, or 30d (s, m, h, d or w).",
        )
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


# Objects that the user names on the command line: MODULE:OBJECT.
#
# This is the only place in the package that imports by name. The name comes from the command line
# of the user, who could just as well start Python; it never comes from stored data.


def import_object(reference: str) -> Any:
    """Import MODULE and return its OBJECT, searching the current directory first.

    Raises:
        ObjectNotFound: There is no such module or object, or the module fails to import.
    """
    module_name, colon, path = reference.partition(":")
    if not colon or not module_name or not path:
        raise ObjectNotFound(f"object: expected MODULE:OBJECT, found {reference!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = import_module(module_name)
    except Exception as exc:
        message = (
            f"module {module_name!r}: expected it to import, found {type(exc).__name__}: {exc}"
        )
        raise ObjectNotFound(message) from exc
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as exc:
            message = f"object {reference!r}: expected it to exist, found no {name!r}"
            raise ObjectNotFound(message) from exc
    return found
