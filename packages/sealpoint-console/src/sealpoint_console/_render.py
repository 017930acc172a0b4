# SPDX-License-Identifier: Apache-2.0
"""Templates and static files: everything comes from the package, and everything is escaped."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from sealpoint.views.decision import AskedQuestion
from sealpoint.views.readable import TextField
from sealpoint.views.words import Line, Styled
from sealpoint.world import visible

if TYPE_CHECKING:
    from sealpoint_console._console_state import ConsoleState, Viewer

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_ROWS_MAX, _ROW_CHARS = 12, 60
_NOW, _MINUTE, _HOUR, _DAY = 5, 60, 3600, 86400


def ago(moment: datetime | None) -> str:
    """The age of a time, in words."""
    if moment is None:
        return "never"
    seconds = int((datetime.now(UTC) - moment).total_seconds())
    ahead, seconds = seconds < 0, abs(seconds)
    if seconds < _NOW:
        return "just now"
    for unit, word in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute"), (1, "second")):
        if seconds >= unit:
            count = seconds // unit
            words = f"{count} {word}{'' if count == 1 else 's'}"
            return f"in {words}" if ahead else f"{words} ago"
    return "just now"


def day(moment: datetime) -> str:
    """The day of a time, in the form for addresses."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d")


def machine_time(moment: datetime) -> str:
    """A time in the exact form for programs, and for people who need it."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _pieces(line: Line) -> list[tuple[str, str]]:
    """The texts of a line, each with its label for people."""
    spans = (line,) if isinstance(line, str | Styled) else line
    return [(each, "") if isinstance(each, str) else (each.text, each.style) for each in spans]


def _is_long(question: AskedQuestion) -> bool:
    """Whether a question and its calls need a region of their own to scroll in."""
    fields = [*question.fields, *(each for call in question.calls for each in call.arguments)]
    lines = [*question.text, *(line for each in fields for line in each.lines)]
    rows = sum(1 + len(line) // _ROW_CHARS for line in lines) + 2 * len(question.calls)
    return rows > _ROWS_MAX


def _is_code(field: TextField) -> bool:
    """Whether the place of each character matters: lines of it are indented."""
    return any(line.startswith("  ") for line in field.lines)


class Renderer:
    """Creates pages from templates."""

    def __init__(self, desk: "ConsoleState") -> None:
        self._desk = desk
        self._static = _read_static()
        self._environment = Environment(
            loader=PackageLoader("sealpoint_console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            cache_size=-1,
        )
        self._environment.filters |= {
            "ago": ago,
            "machine_time": machine_time,
            "day": day,
            "pieces": _pieces,
            "shown": lambda text: visible(str(text)),
        }
        self._environment.tests |= {"long": _is_long, "code": _is_code}
        self._environment.globals["static"] = self._static_path
        # All at once, as for the files: an upgrade under a running console would give it templates
        # of the new version, which its code cannot fill.
        for name in self._environment.list_templates(extensions=["html"]):
            self._environment.get_template(name)

    def page(
        self,
        request: Request,
        viewer: "Viewer | None",
        template: str,
        /,
        *,
        status: int = 200,
        **values: Any,
    ) -> Response:
        """Fill a template."""
        desk = self._desk
        text = self._environment.get_template(template).render(
            nonce=request.state.nonce,
            viewer=viewer,
            page=values.pop("page_path", request.url.path),
            namespace=desk.store.namespace,
            store_id=str(desk.store.id),
            freshness=desk.freshness if viewer else "",
            reading=desk.watch.state if desk.watch.state.refreshed is None else None,
            open_requests=desk.open_requests if viewer else 0,
            alarms=desk.alarms if viewer else 0,
            **values,
        )
        return HTMLResponse(text, status)

    # ------------------------------------------------------------------ static files

    def _static_path(self, name: str) -> str:
        return f"/static/{name}?v={self._static[name][1]}"

    def static_route(self) -> Route:
        """The route of the package's static files."""

        async def answer(request: Request) -> Response:
            found = self._static.get(request.path_params["name"])
            if found is None:
                return Response("no such file\n", 404, media_type="text/plain")
            data, digest, kind = found
            fresh = request.query_params.get("v") == digest
            age = "public, max-age=31536000, immutable" if fresh else "no-cache"
            return Response(data, media_type=kind, headers={"cache-control": age})

        return Route("/static/{name}", answer, methods=["GET"])


def _read_static() -> Mapping[str, tuple[bytes, str, str]]:
    found = {}
    for file in (Path(__file__).parent / "static").iterdir():
        kind = _TYPES.get(file.name.rpartition(".")[2])
        if kind is not None:
            data = file.read_bytes()
            found[file.name] = (data, hashlib.sha256(data).hexdigest()[:16], kind)
    return found
