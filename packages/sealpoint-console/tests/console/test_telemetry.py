# SPDX-License-Identifier: Apache-2.0
"""Traces and metrics: by route and status, never with a name, an id or a body in them."""

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from sealpoint_console._telemetry import Telemetry

_HIDDEN = "4111-hidden"


class Measured:
    """A small application, and what is exported of it."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self._reader = InMemoryMetricReader()
        self.telemetry = Telemetry(tracers, MeterProvider([self._reader]))
        self.app = self.telemetry.around(
            Starlette(
                routes=[
                    Route("/threads/{thread}", _answer, methods=["GET", "POST"]),
                    Route("/fails/{thread:str}", _fail),
                    Route("/live", _stream),
                ]
            )
        )

    async def ask(self, method: str, path: str, **options: Any) -> int:
        """Ask for a page."""
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://console") as client:
            return (await client.request(method, path, **options)).status_code

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """All spans so far."""
        return self._spans.get_finished_spans()

    def points(self, name: str) -> list[tuple[Mapping[str, Any], Any]]:
        """Attributes and value of each point of a metric."""
        data = self._reader.get_metrics_data()
        found: list[tuple[Mapping[str, Any], Any]] = []
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    if metric.name == name:
                        found += [
                            (dict(each.attributes or {}), getattr(each, "value", None))
                            for each in metric.data.data_points
                        ]
        return found

    def everything(self) -> str:
        """All that would be exported, as text."""
        data = self._reader.get_metrics_data()
        return "".join(span.to_json() for span in self.spans) + (data.to_json() if data else "")


def _answer(request: Request) -> Response:
    return PlainTextResponse(f"{request.url.path} {_HIDDEN}")


def _fail(request: Request) -> Response:
    raise RuntimeError(f"{request.url.path} {_HIDDEN}")


def _stream(_: Request) -> Response:
    return StreamingResponse(iter([b"data: x\n\n"]), media_type="text/event-stream")


@pytest.fixture
def measured() -> Measured:
    """An application that is measured."""
    return Measured()


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of the standard library."""
    return "asyncio"


@pytest.mark.anyio
async def test_a_request_is_a_span_by_its_route(measured: Measured) -> None:
    """Method, template and status; what the address, the query and the body say is not in it."""
    await measured.ask(
        "POST",
        f"/threads/{_HIDDEN}?q={_HIDDEN}",
        content=_HIDDEN,
        headers={"x-name": _HIDDEN, "traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"},
    )
    (span,) = measured.spans

    assert span.name == "POST /threads/{thread}"
    assert dict(span.attributes or {}) == {
        "http.request.method": "POST",
        "http.route": "/threads/{thread}",
        "http.response.status_code": 200,
    }
    assert span.parent is None
    assert _HIDDEN not in measured.everything()


@pytest.mark.anyio
async def test_requests_are_counted_by_route_and_status(measured: Measured) -> None:
    """A page that is not there, a method of somebody's own and a failure have their lines."""
    for method, path in (
        ("GET", "/threads/a"),
        ("GET", "/threads/b"),
        ("GET", f"/{_HIDDEN}"),
        (_HIDDEN, "/threads/a"),
        ("GET", f"/fails/{_HIDDEN}"),
        ("GET", "/live"),
    ):
        await measured.ask(method, path)
    found = [attributes for attributes, _ in measured.points("http.server.request.duration")]
    lines = {
        (each["http.request.method"], each.get("http.route"), each["http.response.status_code"])
        for each in found
    }

    assert lines == {
        ("GET", "/threads/{thread}", 200),
        ("GET", None, 404),
        ("_OTHER", "/threads/{thread}", 405),
        ("GET", "/fails/{thread}", 500),
        ("GET", "/live", 200),
    }
    assert _HIDDEN not in measured.everything()


@pytest.mark.anyio
async def test_a_failure_is_told_by_its_kind_alone(measured: Measured) -> None:
    """The text of an exception may hold anything, and stays out."""
    status = await measured.ask("GET", f"/fails/{_HIDDEN}")
    (span,) = measured.spans

    assert status == 500
    assert not span.status.is_ok
    assert not span.events
    assert _HIDDEN not in measured.everything()


def test_the_store_and_the_hooks_are_measured(measured: Measured) -> None:
    """Open requests, threads by phase, looks with their failures, and deliveries by outcome."""
    telemetry = measured.telemetry
    telemetry.note_standing(2, {"paused": 1, "saved": 40})
    telemetry.note_standing(3, {"paused": 0, "saved": 41})
    telemetry.note_refresh(0.25)
    telemetry.note_refresh(0.5, "storage-unavailable")
    telemetry.note_delivery("desk", "delivered")
    telemetry.note_delivery("desk", "delivered")
    telemetry.note_delivery("desk", "failed")

    assert measured.points("sealpoint.console.requests.open") == [({}, 3)]
    assert sorted(
        (each["phase"], count) for each, count in measured.points("sealpoint.console.threads")
    ) == [("paused", 0), ("saved", 41)]
    assert [each for each, _ in measured.points("sealpoint.console.refresh.duration")] == [
        {},
        {"error.type": "storage-unavailable"},
    ]
    assert sorted(
        (each["outcome"], count) for each, count in measured.points("sealpoint.console.deliveries")
    ) == [("delivered", 2), ("failed", 1)]


def test_without_the_extra_nothing_is_measured_and_nothing_is_in_the_way() -> None:
    """The application is given back as it is, and notes go nowhere."""
    code = """
import sys
sys.modules["opentelemetry"] = None
from sealpoint_console._telemetry import Telemetry

async def app(scope, receive, send):
    pass

telemetry = Telemetry()
telemetry.note_refresh(1.0)
telemetry.note_standing(1, {"saved": 1})
telemetry.note_delivery("desk", "failed")
sys.exit(0 if telemetry.around(app) is app else 1)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
