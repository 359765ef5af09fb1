"""Admission control: requests that waited too long for a free process are rejected with 503.

Connections queue in the kernel until a process accepts them. Without a limit, overload makes every request wait longer
and longer, in the end for responses after the client has given up (docs/decisions/0062).
"""

import socket
import struct
import time
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from api import errors, latency
from api.exception_handler import problem_http_response

# Offset of tcpi_last_data_recv in Linux' struct tcp_info: milliseconds since the last bytes arrived.
LAST_DATA_OFFSET = 52
CHUNK_BYTES = 65_536
API_PREFIXES = ("/v1/", "/compat/")
MIB = 1024 * 1024
# systemd keeps the socket during a restart: requests that arrive before the start have not waited because of overload.
# config/gunicorn.py sets it when a process is ready.
STARTED = time.monotonic()


def waited_seconds(connection: socket.socket | None) -> float:
    """Return how long a request has waited in the kernel's queue.

    The last bytes arrived before a process accepted the connection, so their age is the wait; a request whose body is
    still arriving has not waited. Returns 0 where the time is unknown: on other systems and for non-TCP sockets.
    """
    if connection is None or not hasattr(socket, "TCP_INFO"):
        return 0.0
    try:
        tcp_info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LAST_DATA_OFFSET + 4)
    except OSError:
        return 0.0
    if len(tcp_info) < LAST_DATA_OFFSET + 4:
        return 0.0
    (milliseconds,) = struct.unpack_from("=I", tcp_info, LAST_DATA_OFFSET)
    return float(milliseconds) / 1000


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
        waited = min(waited_seconds(request.META.get("gunicorn.socket")), time.monotonic() - STARTED)
        if waited * 1000 <= settings.WEB_MAX_WAIT_MS * max(1, _content_length(request) / MIB):
            return self.get_response(request)
        latency.observe("turned-away", status=errors.Overloaded.status, seconds=waited)
        return _reject(request)


def _content_length(request: HttpRequest) -> int:
    length = request.META.get("CONTENT_LENGTH") or ""
    return int(length) if length.isascii() and length.isdigit() and len(length) < 12 else 0


def _reject(request: HttpRequest) -> HttpResponse:
    # If the body is left unread, the client's kernel may discard the response.
    while request.read(CHUNK_BYTES):
        pass
    return problem_http_response(errors.overloaded())
