"""Responses that hold no request thread: the thread of slow clients sends their bodies (docs/decisions/0178)."""

import errno
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, StreamingHttpResponse
from django.utils.encoding import force_bytes

from api.errors import RateLimitExceeded
from lib.network.slow_clients import FILE, slow_clients

HEAD_END = b"\r\n\r\n"
MAX_FILES = 50
MAX_FILES_PER_WORKSPACE = 4
# A large file over a slow line.
FILE_SECONDS = 15 * 60


class TransferredResponse(StreamingHttpResponse):
    """A response whose socket is passed on when the web server begins to send its body.

    lines: the body on another server, or if there is no socket. client: the socket of gunicorn's connection.
    """

    def __init__(self, lines: Iterable[Any], *, client: socket.socket | None, **options: Any) -> None:
        super().__init__(_Transfer(self, client) if client else lines, **options)

    def transfer(self, connection: socket.socket, head: bytes) -> None:
        """Send this response in another thread. head: its status line and headers."""
        raise NotImplementedError


class FileResponse(TransferredResponse):
    """A file that is made while the client reads it.

    workspace_id: whose share it is. Raises RateLimitExceeded if too many are open.
    """

    def __init__(self, request: HttpRequest, lines: Iterable[str], *, workspace_id: str, **options: Any) -> None:
        self.workspace_id, self.lines = workspace_id, map(force_bytes, lines if request.method != "HEAD" else ())
        client = request.META.get("gunicorn.socket") if request.method != "HEAD" else None
        if client and slow_clients().is_full(FILE, workspace_id, at_most=MAX_FILES, of_share=MAX_FILES_PER_WORKSPACE):
            raise RateLimitExceeded("Too many files are being downloaded.", headers={"Retry-After": "10"})
        super().__init__(self.lines, client=client, **options)
        # Without chunks, which HTTP/1.0 does not know, the file ends with the connection.
        self.is_chunked = request.META.get("SERVER_PROTOCOL") != "HTTP/1.0"

    def transfer(self, connection: socket.socket, head: bytes) -> None:
        if self.is_chunked:
            head = head.replace(HEAD_END, b"\r\nTransfer-Encoding: chunked" + HEAD_END)
        frame = _chunk if self.is_chunked else bytes
        share = self.workspace_id
        slow_clients().send_lines(connection, head, self.lines, frame=frame, share=share, seconds=FILE_SECONDS)


def csv_file(request: HttpRequest, lines: Iterable[str], **options: Any) -> FileResponse:
    """Return a file of comma-separated values."""
    return FileResponse(request, lines, content_type="text/csv; charset=utf-8", **options)


def _chunk(data: bytes) -> bytes:
    """Return a chunk of a body; the empty one is its end (RFC 9112, section 7.1)."""
    return b"%X\r\n%b\r\n" % (len(data), data)


@dataclass
class _Transfer:
    """The body of a response: the web server's first step through it passes the socket on."""

    response: TransferredResponse
    client: socket.socket

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        # Detached, because gunicorn shuts its socket down after the response.
        self.response.transfer(socket.socket(fileno=self.client.detach()), self._head())
        # Ends the response without another byte: gunicorn ignores that a client is gone.
        raise BrokenPipeError(errno.EPIPE, "the socket was passed to the thread of slow clients")

    def _head(self) -> bytes:
        status = HTTPStatus(self.response.status_code)
        headers = (f"{name}: {value}" for name, value in self.response.items())
        lines = [f"HTTP/1.1 {status.value} {status.phrase}", *headers, "Connection: close", "", ""]
        return "\r\n".join(lines).encode("latin-1")
