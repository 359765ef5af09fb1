"""MIME parsing (RFC 2045, RFC 2046) for messages from any sender, strict or tolerant, in time linear in their size.

A message is read in one pass over its bytes, part after part; nothing is copied before it is asked for. The standard
library's parser takes a second for a megabyte of empty lines, holds several copies of the message, raises on some real
messages and does not return the exact bytes of an attached message (docs/decisions/0161).

Lines end with CRLF or LF; with CR if the message has no LF. A session refuses other line ends before.
"""

import binascii
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from core.lib.mail.boundaries import Delimiter, OpenBoundaries
from core.lib.mail.charsets import decode_strictly, decode_tolerantly
from core.lib.mail.encoded_words import decode_words
from core.lib.mail.header_fields import MessageField, decode_header, read_fields, read_parameters

# RFC 2046 allows 70 characters.
MAX_BOUNDARY = 200
END_OF_HEADER = re.compile(rb"\n\r?\n")
EMPTY_LINES = (b"\r\n", b"\n")
UNENCODED = ("7bit", "8bit", "binary")
MESSAGES = ("message/rfc822", "message/global")
# The fields about the content that are read.
DECISIVE = frozenset({"content-type", "content-transfer-encoding", "content-disposition", "content-id"})
# Texts to add to broken base64, and the number of bytes that they add: some programs omit the padding.
BASE64_ENDS = ((b"", 0), (b"==", 0), (b"A==", 1))


class MalformedMime(ValueError):
    """Raised with an explanation for a message that cannot be read without guessing."""


class TooManyParts(MalformedMime):
    """Raised with either policy after the last part that is read."""


@dataclass(frozen=True)
class MimePolicy:
    """The bounds of a message, and whether it is refused beyond them or where a reader would have to guess.

    is_strict: raise MalformedMime; otherwise the rest is dropped, and the content is read as well as possible.
    max_header_bytes, max_fields: limits of each header.
    max_parameters: characters of a field about the content.
    opens_messages: the parts of attached messages are parts of the message.
    """

    is_strict: bool = False
    max_bytes: int = 25 * 1024 * 1024
    max_header_bytes: int = 64 * 1024
    max_fields: int = 400
    max_parameters: int = 4_000
    max_depth: int = 10
    max_parts: int = 100
    opens_messages: bool = False

    def refuse(self, problem: str) -> None:
        if self.is_strict:
            raise MalformedMime(problem)


@dataclass(eq=False)
class MimePart:
    """A message or a part of it, which does not change after `walk` has yielded it.

    start, end: its body in the source.
    parent: the part that contains it.
    is_container: its parts follow, and it has no content beside them.
    """

    source: bytes | bytearray
    policy: MimePolicy
    fields: tuple[MessageField, ...]
    start: int
    end: int
    parent: "MimePart | None" = None
    is_container: bool = False

    @cached_property
    def content_fields(self) -> Mapping[str, str]:
        """The values of the fields about the content, by name in lower case."""
        values: dict[str, str] = {}
        for field in self.fields:
            name = field.name.lower()
            if not name.startswith("content-"):
                continue
            if len(field.value) > self.policy.max_parameters:
                self.policy.refuse(f"{field.name} is too long")
            value = field.value[: self.policy.max_parameters]
            known = values.setdefault(name, value)
            # Filters repeat fields; equal ones leave no doubt.
            if name in DECISIVE and known.split() != value.split():
                self.policy.refuse(f"A part has {field.name} more than once, with different values")
        return values

    @cached_property
    def parameters(self) -> Mapping[str, str]:
        """The parameters of the content type."""
        return read_parameters(self.content_fields.get("content-type", ""))

    @cached_property
    def kind(self) -> str:
        """The media type in lower case."""
        # RFC 2046, section 5.1.5.
        is_in_digest = self.parent is not None and self.parent.kind == "multipart/digest"
        kind = self._first_word("content-type") or ("message/rfc822" if is_in_digest else "text/plain")
        return kind if kind.count("/") == 1 else "text/plain"

    @property
    def depth(self) -> int:
        return self.parent.depth + 1 if self.parent else 0

    @property
    def disposition(self) -> str:
        return self._first_word("content-disposition")

    @property
    def filename(self) -> str:
        disposition = read_parameters(self.content_fields.get("content-disposition", ""))
        return decode_words(disposition.get("filename") or self.parameters.get("name", "")).strip()

    @property
    def content_id(self) -> str:
        return self.content_fields.get("content-id", "").removeprefix("<").removesuffix(">").strip()

    @property
    def encoding(self) -> str:
        return self._first_word("content-transfer-encoding") or "7bit"

    @property
    def body(self) -> bytes:
        """The body as received, with its transfer encoding."""
        return bytes(memoryview(self.source)[self.start : max(self.end, self.start)])

    @property
    def content(self) -> bytes:
        """The body without its transfer encoding, which is never smaller. Raises MalformedMime."""
        if self.encoding == "quoted-printable":
            return binascii.a2b_qp(self.body)
        if self.encoding == "base64":
            return self._from_base64()
        if self.encoding not in UNENCODED:
            self.policy.refuse(f"The transfer encoding {self.encoding[:40]} is not supported")
        return self.body

    @property
    def charset(self) -> str:
        return self.parameters.get("charset", "").lower()

    @property
    def text(self) -> str:
        """The content as text with LF at line ends. Raises MalformedMime."""
        decode = decode_strictly if self.policy.is_strict else decode_tolerantly
        try:
            return decode(self.content, self.charset, kind=self.kind).replace("\r\n", "\n")
        except UnicodeError as error:
            raise MalformedMime(str(error)) from error

    @property
    def is_multipart(self) -> bool:
        return self.kind.startswith("multipart/")

    @property
    def boundary(self) -> bytes:
        """The boundary of its parts; empty for another part, and for one that is read as a whole.

        Raises MalformedMime.
        """
        if not self.is_multipart:
            return b""
        if self.depth >= self.policy.max_depth:
            self.policy.refuse(f"The parts are nested deeper than {self.policy.max_depth} levels")
            return b""
        if self.encoding not in UNENCODED:
            self.policy.refuse("A multipart has a transfer encoding")
        boundary = self.parameters.get("boundary", "").rstrip()
        if not boundary:
            self.policy.refuse("A multipart has no boundary")
        if len(boundary) > MAX_BOUNDARY:
            self.policy.refuse(f"The boundary of a multipart is longer than {MAX_BOUNDARY} characters")
            return b""
        return boundary.encode("utf-8", "replace")

    def walk(self) -> Iterator["MimePart"]:
        """Yield this message and its parts in order, containers before their parts.

        Raises MalformedMime in the place of a malformed part, and TooManyParts.
        """
        for number, part in enumerate(_MessageReader(self.source, self.policy).read(self)):
            if number > self.policy.max_parts:
                raise TooManyParts(f"The message has more than {self.policy.max_parts} parts")
            yield part

    def _first_word(self, name: str) -> str:
        return self.content_fields.get(name, "").partition(";")[0].strip().lower()

    def _from_base64(self) -> bytes:
        return decode_base64(memoryview(self.source)[self.start : max(self.end, self.start)], self.policy)


def decode_base64(body: bytes | memoryview, policy: MimePolicy) -> bytes:
    """Return a body without base64. Raises MalformedMime."""
    for end, added in BASE64_ENDS[: 2 if policy.is_strict else 3]:
        with suppress(binascii.Error):
            data = binascii.a2b_base64(b"".join((body, end)) if end else body)
            return data[: len(data) - added]
    raise MalformedMime("A part is not valid base64")


class _MessageReader:
    """The current place in a message: the multiparts that contain it, with their boundaries, outermost first."""

    def __init__(self, source: bytes | bytearray, policy: MimePolicy) -> None:
        self._source = source
        self._policy = policy
        self._multiparts: list[MimePart] = []
        self._boundaries = OpenBoundaries(source)

    def read(self, message: MimePart) -> Iterator[MimePart]:
        """Yield a message and its parts in order."""
        part: MimePart | None = message
        while part:
            if self._policy.opens_messages and part.kind in MESSAGES:
                part.is_container = True
                yield part
                part = self.read_part(part.start, parent=part)
                continue
            boundary = part.boundary
            if boundary:
                self._boundaries.open(boundary)
                self._multiparts.append(part)
            # The line end of a header may be that of a delimiter.
            delimiter = self._boundaries.find(part.start - 1)
            part.end = delimiter.start if delimiter else len(self._source)
            is_innermost = delimiter is not None and delimiter.level == len(self._multiparts) - 1
            part.is_container = bool(boundary) and is_innermost
            if boundary and not part.is_container:
                self._policy.refuse("A multipart has no part")
                self._close(len(self._multiparts) - 1)
            if part.is_multipart and not part.is_container:
                part.kind = "text/plain"
            yield part
            part = self._next_part(delimiter)

    def read_part(self, start: int, *, parent: MimePart | None) -> MimePart:
        """Return the part that begins at a position, with the rest of the source as its body."""
        header_end, body = self._header_bounds(start)
        header = decode_header(bytes(self._source[start:header_end]).rstrip(b"\r\n"))
        fields = tuple(read_fields(header, limit=self._policy.max_fields, refuse=self._policy.refuse))
        # A part without a header, and without the empty line before its body.
        is_body = bool(header) and not fields
        return MimePart(self._source, self._policy, fields, start if is_body else body, len(self._source), parent)

    def _header_bounds(self, start: int) -> tuple[int, int]:
        """Return the end of a header, which is an empty line or a delimiter, and the start of the body."""
        if self._source.startswith(EMPTY_LINES, start):
            return start, self._source.index(b"\n", start) + 1
        limit = min(start + self._policy.max_header_bytes, len(self._source))
        empty = END_OF_HEADER.search(self._source, start, limit)
        end, body = empty.span() if empty else (limit, limit)
        if delimiter := self._boundaries.find(start - 1, end + 1):
            return delimiter.start, delimiter.start + 1
        if body == limit < len(self._source):
            name = "The header of a part" if start else "The header"
            self._policy.refuse(f"{name} is longer than {self._policy.max_header_bytes:,} bytes")
            # Once, not for each part: the search may go to the end.
            if not start and (empty := END_OF_HEADER.search(self._source, limit)):
                body = empty.end()
        return end, body

    def _next_part(self, delimiter: Delimiter | None) -> MimePart | None:
        """Return the part after a delimiter, or after the next one that a part follows."""
        while delimiter and delimiter.is_last:
            self._close(delimiter.level)
            delimiter = self._boundaries.find(delimiter.end)
        if delimiter is None:
            return None
        self._close(delimiter.level + 1)
        return self.read_part(delimiter.end + 1, parent=self._multiparts[-1])

    def _close(self, level: int) -> None:
        del self._multiparts[level:]
        self._boundaries.close(level)


def read_message(source: bytes | bytearray, policy: MimePolicy) -> MimePart:
    """Return a message, without reading its parts. Raises MalformedMime."""
    if len(source) > policy.max_bytes:
        policy.refuse(f"The message is longer than {policy.max_bytes:,} bytes")
        source = source[: policy.max_bytes]
    if b"\n" not in source:
        source = source.replace(b"\r", b"\n")
    if source.startswith(EMPTY_LINES):
        policy.refuse("The message has no header")
    return _MessageReader(source, policy).read_part(0, parent=None)
