"""Responses that hold no request thread: the thread of slow clients sends their bodies (docs/decisions/0178)."""

import errno
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from django.http import HttpRequest, StreamingHttpResponse
from django.utils.encoding import force_bytes

from core.api.errors import TooManyConcurrentRequests
from core.lib.network.slow_clients import FILE, slow_clients

HEAD_END = b"\r\n\r\n"
MAX_FILES = 50
MAX_FILES_PER_WORKSPACE = 4
# A large file over a slow line.
FILE_SECONDS = 15 * 60
# The media types that a browser would run or show as a page; everything else keeps its type.
ACTIVE_TYPES = ("html", "svg", "xml", "javascript", "ecmascript", "xsl", "pdf", "flash", "mhtml", "multipart")
BINARY = "application/octet-stream"
SAFE_TYPE_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789!#$&-^_.+/")
PIECE_BYTES = 4 * 1024


class TransferredResponse(StreamingHttpResponse):
    """A response whose socket is passed on when the web server begins to send its body.

    lines: the body on another server, or if there is no socket.
    client: the socket of gunicorn's connection.
    """

    def __init__(self, lines: Iterable[Any], *, client: socket.socket | None, **options: Any) -> None:
        super().__init__(_Transfer(self, client) if client else lines, **options)

    def transfer(self, connection: socket.socket, head: bytes) -> None:
        """Send this response in another thread. head: its status line and headers."""
        raise NotImplementedError


class FileResponse(TransferredResponse):
    """A file that is made while the client reads it.

    workspace_id: whose share it is. Raises TooManyConcurrentRequests if too many are open.
    """

    def __init__(self, request: HttpRequest, lines: Iterable[str], *, workspace_id: str, **options: Any) -> None:
        self.workspace_id, self.lines = workspace_id, map(force_bytes, lines if request.method != "HEAD" else ())
        client = request.META.get("gunicorn.socket") if request.method != "HEAD" else None
        if client and slow_clients().is_full(FILE, workspace_id, at_most=MAX_FILES, of_share=MAX_FILES_PER_WORKSPACE):
            raise TooManyConcurrentRequests("Too many files are being downloaded.", headers={"Retry-After": "10"})
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


# Files that other people wrote: a browser saves them and runs nothing, at the host of the dashboard
# (docs/decisions/0232).
def download_response(
    request: Any, pieces: Iterable[bytes], *, filename: str, content_type: str, workspace_id: str
) -> FileResponse:
    """Return a file to save. workspace_id: whose share of the open files it is."""
    # DRF's request delegates to Django's.
    plain = getattr(request, "_request", request)
    headers = {
        "Content-Disposition": content_disposition(filename),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-store",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    return FileResponse(plain, _small(pieces), workspace_id=workspace_id, content_type=content_type, headers=headers)


def safe_type(content_type: str) -> str:
    """Return a media type that no browser runs."""
    is_plain = content_type.count("/") == 1 and set(content_type) <= SAFE_TYPE_CHARACTERS
    is_active = any(name in content_type for name in ACTIVE_TYPES)
    return content_type if is_plain and not is_active else BINARY


def content_disposition(filename: str) -> str:
    """Return the field that makes a browser save a file: the name in UTF-8 (RFC 6266), without control characters."""
    name = "".join(character if character.isprintable() and character not in '/\\"' else "_" for character in filename)
    ascii_name = name.encode("ascii", "replace").decode().replace("?", "_")
    return f"attachment; filename=\"{ascii_name}\"; filename*=UTF-8''{quote(name, safe='')}"


def _small(pieces: Iterable[bytes]) -> Iterator[Any]:
    """Yield bytes in pieces of which the thread of slow clients joins some at a time."""
    for piece in pieces:
        for start in range(0, len(piece), PIECE_BYTES):
            yield piece[start : start + PIECE_BYTES]
