"""How much of an HTTP/1.1 request has arrived, as far as needed to know its end (RFC 9112, section 6).

gunicorn's parser reads the request afterwards, and refuses a malformed one; here, such a request is complete.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

HEAD_BYTES = 64 * 1024
# Many small objects would take several times the memory of their bytes.
SMALL_PIECE_BYTES = 4096
HEAD_END = b"\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,12})[ \t]*\r\n", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
EXPECTS_CONTINUE = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*\r\n", re.IGNORECASE)
# The least average size of chunks, after the first FREE_CHUNKS.
LEAST_CHUNK_BYTES = 64
FREE_CHUNKS = 1_000
CHUNK_LINE_BYTES = 8190
CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")


class HeadTooLarge(Exception):
    """The head of a request exceeds HEAD_BYTES."""


@dataclass
class ArrivingRequest:
    """The bytes of a request until it is complete.

    max_body_bytes: only the beginning of a larger body is received.
    head: the request line and the headers, empty until they are complete.
    body_bytes: the length of the body, or the most that a chunked one may have.
    is_cut: the rest of the body is not received, because it is too large or malformed.
    """

    max_body_bytes: int
    head: bytes = b""
    body_bytes: int = 0
    received: int = 0
    is_complete: bool = False
    is_cut: bool = False
    _pieces: deque[bytes] = field(default_factory=deque)
    _start: bytearray = field(default_factory=bytearray)
    _chunks: "ChunkedBody | None" = None

    def feed(self, data: bytes) -> None:
        """Add the next bytes. Raises HeadTooLarge."""
        self.received += len(data)
        if self._pieces and len(self._pieces[-1]) < SMALL_PIECE_BYTES:
            self._pieces[-1] += data
        else:
            self._pieces.append(data)
        if self.head:
            self._feed_body(data)
            return
        searched = max(0, len(self._start) - len(HEAD_END))
        self._start += data
        end = self._start.find(HEAD_END, searched)
        if end >= 0:
            self._read_head(bytes(self._start[: end + len(HEAD_END)]))
            self._feed_body(bytes(self._start[end + len(HEAD_END) :]))
            self._start.clear()
        elif len(self._start) > HEAD_BYTES:
            raise HeadTooLarge

    def take(self) -> Iterator[bytes]:
        """Yield the bytes for the parser, and forget them."""
        while self._pieces:
            yield self._pieces.popleft()

    @property
    def expects_continue(self) -> bool:
        """Return whether the client waits for a reply before it sends the body."""
        return EXPECTS_CONTINUE.search(self.head) is not None

    def _read_head(self, head: bytes) -> None:
        self.head = head
        if CHUNKED.search(head):
            self._chunks, self.body_bytes = ChunkedBody(), self.max_body_bytes
        elif length := LENGTH.search(head):
            self.body_bytes = int(length[1])

    def _feed_body(self, data: bytes) -> None:
        received = self.received - len(self.head)
        if self._chunks:
            self._chunks.feed(data)
            # The sizes of chunks come on top of their content.
            self.is_cut = self._chunks.is_malformed or received > 2 * self.max_body_bytes
            self.is_complete = self._chunks.is_complete or self.is_cut
        else:
            self.is_cut = self.body_bytes > self.max_body_bytes
            self.is_complete = received >= self.body_bytes or self.is_cut


@dataclass
class ChunkedBody:
    """Finds the end of a chunked body (RFC 9112, section 7.1).

    is_malformed: also if the chunks are so small that reading them takes longer than the network does.
    """

    is_complete: bool = False
    is_malformed: bool = False
    _chunk_bytes_left: int = 0
    _line: bytearray = field(default_factory=bytearray)
    _is_in_trailers: bool = False
    _chunks: int = 0
    _received: int = 0

    def feed(self, data: bytes) -> None:
        self._received += len(data)
        position = 0
        while position < len(data) and not (self.is_complete or self.is_malformed):
            if self._chunk_bytes_left:
                step = min(self._chunk_bytes_left, len(data) - position)
                self._chunk_bytes_left -= step
                position += step
            else:
                end = data.find(b"\n", position) + 1 or len(data)
                self._line += data[position:end]
                position = end
                self._read_line()

    def _read_line(self) -> None:
        if not self._line.endswith(b"\n"):
            self.is_malformed = len(self._line) > CHUNK_LINE_BYTES
            return
        line = bytes(self._line).strip()
        self._line.clear()
        if self._is_in_trailers:
            self.is_complete = not line
        elif size := CHUNK_SIZE.match(line):
            self._begin_chunk(int(size[0], 16))
        else:
            self.is_malformed = True

    def _begin_chunk(self, size: int) -> None:
        self._chunks += 1
        self._is_in_trailers = size == 0
        self._chunk_bytes_left = size + len(b"\r\n") if size else 0
        self.is_malformed = self._chunks > FREE_CHUNKS and self._chunks * LEAST_CHUNK_BYTES > self._received
