"""Request ids: one per request, in X-Request-Id, in every error and in every log line; also the access log."""

import logging
import time
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from core.api import latency
from core.lib.ids import new_id

HEADER = "X-Request-Id"

_current: ContextVar[str | None] = ContextVar("request_id", default=None)
log = logging.getLogger("postrider.request")


def current_request_id() -> str | None:
    """Return the id of the current request, None outside of a request."""
    return _current.get()


class RequestIdMiddleware:
    """Sets the request id and writes the access log. Outermost, so that all responses have an id."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request_id = new_id("req_")
        token = _current.set(request_id)
        started = time.perf_counter()
        try:
            response = self.get_response(request)
            _write_log(request, response, seconds=time.perf_counter() - started)
        finally:
            _current.reset(token)
        response.headers[HEADER] = request_id
        return response


def _write_log(request: HttpRequest, response: HttpResponseBase, *, seconds: float) -> None:
    # The route, not the path: paths contain tokens of recipients.
    match = request.resolver_match
    data = {
        "method": request.method,
        "route": match.route if match else None,
        "status": response.status_code,
        "milliseconds": round(seconds * 1000, 1),
    }
    log.info("request", extra={"data": data})
    if operation := _operation(request):
        latency.observe(operation, status=response.status_code, seconds=seconds)


def _operation(request: HttpRequest) -> str | None:
    """Return the name of an operation of an API: that of its route, or the one set by a compatibility endpoint."""
    match = request.resolver_match
    if match and match.route.startswith("v1/"):
        return match.url_name
    return getattr(request, "operation", None)
