"""Turn away what has waited too long for a free process: beyond its capacity the service says so, early.

Connections queue in the kernel until a process takes them. Without a bound everybody waits longer and longer under
too much load, and at last for answers that nobody reads any more (docs/decisions/0062).
"""

import socket
import struct
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from api import errors, latency
from api.exception_handler import problem_answer

# Where Linux' struct tcp_info has tcpi_last_data_recv: milliseconds since bytes came last.
LAST_DATA_AT = 52
CHUNK_BYTES = 65_536


def waited_seconds(connection: socket.socket | None) -> float:
    """Return for how long a request has lain in the kernel.

    Its last bytes came while nobody had taken the connection, so their age is the wait; a body that is still coming has
    none. 0 where it cannot be known: on other systems, and on sockets that are not TCP.
    """
    if connection is None or not hasattr(socket, "TCP_INFO"):
        return 0.0
    try:
        found = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LAST_DATA_AT + 4)
    except OSError:
        return 0.0
    if len(found) < LAST_DATA_AT + 4:
        return 0.0
    (milliseconds,) = struct.unpack_from("=I", found, LAST_DATA_AT)
    return float(milliseconds) / 1000


class AdmissionMiddleware:
    """Guards /v1 alone: a recipient's click, a probe of health and an owner's page are few, and are always answered."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith("/v1/"):
            return self.get_response(request)
        waited = waited_seconds(request.META.get("gunicorn.socket"))
        if waited * 1000 <= settings.WEB_MAX_WAIT_MS:
            return self.get_response(request)
        latency.observe("turned-away", status=errors.Overloaded.status, seconds=waited)
        return _turn_away(request)


def _turn_away(request: HttpRequest) -> HttpResponse:
    # An answer to a body that was not read may be cut off by its sender's own kernel.
    while request.read(CHUNK_BYTES):
        pass
    return problem_answer(errors.overloaded())
