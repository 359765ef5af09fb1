"""Admission control: a request that waited too long for a thread is rejected, with 503 or 429.

Without a limit, overload makes every request wait longer and longer, in the end for responses after the client has
given up (docs/decisions/0062). A batch whose client has closed its connection stops (docs/decisions/0298).
"""

import socket
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import TypeVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from core.api import errors, latency
from core.api.exception_handler import problem_http_response

# The connection of the current request, whose response nobody waits for once the client has closed it.
_client: ContextVar[socket.socket | None] = ContextVar("client", default=None)
T = TypeVar("T")
API_PREFIXES = ("/v1/", "/compat/")
MIB = 1024 * 1024


class AdmissionMiddleware:
    """Limits the wait of API requests; clicks, health checks and dashboard pages are few and always served.

    The limit is per MiB of the body: a client that uploads attachments waits longer anyway, and reading the body to
    reject it would take half as long as accepting it (docs/decisions/0087).
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(API_PREFIXES):
            return self.get_response(request)
        # Set by config.web.worker; other servers do not know it.
        client = request.META.get("gunicorn.socket")
        waited = getattr(client, "waited_seconds", 0.0)
        if waited * 1000 <= settings.WEB_MAX_WAIT_MS * max(1, _content_length(request) / MIB):
            return self._answer(request, client if isinstance(client, socket.socket) else None)
        # The other threads were free, or busy for other workspaces.
        problem = errors.too_many_waiting() if getattr(client, "waits_for_share", False) else errors.overloaded()
        latency.observe(latency.TURNED_AWAY, status=problem.status, seconds=waited)
        return problem_http_response(problem)

    def _answer(self, request: HttpRequest, client: socket.socket | None) -> HttpResponseBase:
        token = _client.set(client)
        try:
            return self.get_response(request)
        finally:
            _client.reset(token)


def until_client_leaves(items: Iterable[T]) -> Iterator[T]:
    """Yield the items of a batch, each of which takes long.

    Raises ClientClosedRequest before each but the first if the client of the current request has closed its connection.
    It costs a system call.
    """
    client = _client.get()
    for index, item in enumerate(items):
        if index and client is not None and _is_closed(client):
            raise errors.ClientClosedRequest("The client closed the connection. Nothing was accepted.")
        yield item


def _is_closed(client: socket.socket) -> bool:
    # The whole request has been read: without an end of the stream, there is nothing to read.
    try:
        return not client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _content_length(request: HttpRequest) -> int:
    length = request.META.get("CONTENT_LENGTH") or ""
    return int(length) if length.isascii() and length.isdigit() and len(length) < 12 else 0
