# SPDX-License-Identifier: Apache-2.0
"""Traces and metrics of the console, through OpenTelemetry where that is installed.

A span and a measurement for each request, by method, route and status; the state of the watch and
the hooks. A route is its template, such as `/threads/{thread}`: telemetry never contains a name, an
id, a body, a query or a client address. `on_event` reports the work of a store itself.

Without the extra `telemetry` nothing is measured, and `Telemetry.around` returns the application
unchanged. The operator of the process decides whether and where to export.
"""

import re
import time
from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

try:
    from opentelemetry import metrics, trace
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True

_NAME = "sealpoint.console"
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_OTHER_METHOD = "_OTHER"
_SERVER_FAULT = 500
_CONVERTER = re.compile(r":[a-z]+\}")
"""The converters in a route, which nobody needs in telemetry."""
# The buckets of OpenTelemetry's semantic conventions for HTTP servers.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)


class Telemetry:
    """The telemetry of a console.

    Args:
        tracer_provider: The target of spans; else the process's own.
        meter_provider: The target of measurements; else the process's own.
    """

    def __init__(self, tracer_provider: Any = None, meter_provider: Any = None) -> None:
        self._tracer: Any = None
        if not _INSTALLED:
            return
        self._tracer = trace.get_tracer(_NAME, tracer_provider=tracer_provider)
        meter = metrics.get_meter(_NAME, meter_provider=meter_provider)
        self._requests = meter.create_histogram(
            "http.server.request.duration",
            unit="s",
            description="Requests that were answered, by route and status.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._refreshes = meter.create_histogram(
            f"{_NAME}.refresh.duration",
            unit="s",
            description="Looks at the store.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._open_requests = meter.create_gauge(
            f"{_NAME}.requests.open", unit="{request}", description="Requests that wait for people."
        )
        self._threads = meter.create_gauge(
            f"{_NAME}.threads", unit="{thread}", description="Threads by what they are at."
        )
        self._deliveries = meter.create_counter(
            f"{_NAME}.deliveries", unit="{try}", description="Events that were sent to hooks."
        )

    def around(self, app: ASGIApp) -> ASGIApp:
        """The application with telemetry; outermost, so that refused requests count too."""
        return app if self._tracer is None else _Measured(app, self._tracer, self._requests)

    def note_refresh(self, seconds: float, fault: str = "") -> None:
        """Record the duration of a read of the store, and the code of the error that ended it."""
        if self._tracer is not None:
            self._refreshes.record(seconds, {"error.type": fault} if fault else {})

    def note_standing(self, open_requests: int, phases: Mapping[str, int]) -> None:
        """Record the number of open requests, and the number of threads by phase."""
        if self._tracer is not None:
            self._open_requests.set(open_requests)
            for phase, count in phases.items():
                self._threads.set(count, {"phase": str(phase)})

    def note_delivery(self, hook: str, outcome: str) -> None:
        """Record an attempt of a hook: `delivered`, `failed` or `given-up`."""
        if self._tracer is not None:
            self._deliveries.add(1, {"hook": hook, "outcome": outcome})


class _Measured:
    """An application whose requests are traced and measured."""

    def __init__(self, app: ASGIApp, tracer: Any, requests: Any) -> None:
        self._app = app
        self._tracer = tracer
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in _METHODS else _OTHER_METHOD
        # The trace context in a caller's headers is ignored: any client may send one.
        with self._tracer.start_as_current_span(
            method,
            kind=trace.SpanKind.SERVER,
            attributes={"http.request.method": method},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            request = _MeasuredRequest(scope, send, method)
            try:
                await self._app(scope, receive, request.send)
            except Exception as exc:
                request.note(type(exc).__name__)
                raise
            finally:
                request.end()
                span.set_attributes(request.attributes)
                route = request.attributes.get("http.route")
                if route:
                    span.update_name(f"{method} {route}")
                if "error.type" in request.attributes:
                    span.set_status(trace.StatusCode.ERROR)
                self._requests.record(request.seconds, request.attributes)


class _MeasuredRequest:
    """One request: its start, its status, and its duration."""

    def __init__(self, scope: Scope, send: Send, method: str) -> None:
        self._scope = scope
        self._send = send
        self._begun = time.perf_counter()
        self.seconds = 0.0
        self.attributes: dict[str, Any] = {"http.request.method": method}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            status = message["status"]
            self.attributes["http.response.status_code"] = status
            if status >= _SERVER_FAULT:
                self.note(str(status))
            headers = dict(message.get("headers", ()))
            if headers.get(b"content-type", b"").startswith(b"text/event-stream"):
                # The stream lasts as long as a page is open: its start counts.
                self.end()
        await self._send(message)

    def note(self, fault: str) -> None:
        """Record the error of a failed response."""
        self.attributes.setdefault("error.type", fault)

    def end(self) -> None:
        """Record the duration, once, and the route, if one matched."""
        self.seconds = self.seconds or time.perf_counter() - self._begun
        route = getattr(self._scope.get("route"), "path", None)
        if isinstance(route, str):
            self.attributes["http.route"] = _CONVERTER.sub("}", route)
