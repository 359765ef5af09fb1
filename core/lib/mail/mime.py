"""MIME parsing (RFC 2045, RFC 2046) for messages from any sender, strict or tolerant, in time linear in their size.

A message is read in one pass over its bytes, part after part; nothing is copied before it is asked for. The standard
library's parser takes a second for a megabyte of empty lines, holds several copies of the message, raises on some real
messages and does not return the exact bytes of an attached message (docs/decisions/0161).

Lines end with CRLF or LF; with CR if the message has no LF. A session refuses other line ends before. Malformed
structures are read as mail programs read them, or refused where these differ (docs/decisions/0311).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from core.lib.mail.boundaries import Delimiter, OpenBoundaries
from core.lib.mail.charsets import decode_strictly, decode_tolerantly
from core.lib.mail.encoded_words import decode_words
from core.lib.mail.header_bounds import find_header, start_of_header, with_line_feeds
from core.lib.mail.header_fields import DecisiveField, MessageField, decode_header, read_content_field, read_fields
from core.lib.mail.mime_policy import MalformedMime, MimePolicy, TooManyParts
from core.lib.mail.transfer_encodings import UNENCODED, decode_base64, decode_quoted_printable, encoding_name

# RFC 2046 allows 70 characters.
MAX_BOUNDARY = 200
# A delimiter in front of the first field of a part, for a multipart without its boundary.
LIKELY_DELIMITER = re.compile(rb"\n--([^\r\n]{1,200})\r?\n(?=Content-[a-z-]{1,40}[ \t]*+:)", re.IGNORECASE)
MESSAGES = ("message/rfc822", "message/global")
# The fields about the content that are read.
DECISIVE = frozenset({"content-type", "content-transfer-encoding", "content-disposition", "content-id"})
# Media types without a subtype. RFC 2045, section 5.2: a type that cannot be read is text/plain.
SHORT_TYPES = {
    "": "text/plain",
    "text": "text/plain",
    "plain": "text/plain",
    "html": "text/html",
    "multipart": "multipart/mixed",
}
FILE_TYPES = frozenset({"application", "audio", "font", "image", "message", "model", "video"})


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
    def content_type(self) -> DecisiveField:
        return self._read_field("content-type", "The Content-Type of a part is malformed")

    @cached_property
    def content_disposition(self) -> DecisiveField:
        return self._read_field("content-disposition", "The Content-Disposition of a part is malformed")

    @property
    def parameters(self) -> Mapping[str, str]:
        """The parameters of the content type."""
        return self.content_type.parameters

    @cached_property
    def kind(self) -> str:
        """The media type in lower case."""
        word = self.content_type.word
        # RFC 2046, section 5.1.5.
        if not word and self.parent is not None and self.parent.kind == "multipart/digest":
            return "message/rfc822"
        if "/" in word:
            return word
        if word not in SHORT_TYPES:
            self.policy.refuse("A media type has no subtype")
        is_file = word in FILE_TYPES or word.startswith("x-")
        return SHORT_TYPES.get(word) or ("application/octet-stream" if is_file else "text/plain")

    @property
    def depth(self) -> int:
        return self.parent.depth + 1 if self.parent else 0

    @property
    def disposition(self) -> str:
        return self.content_disposition.word

    @property
    def filename(self) -> str:
        name = self.content_disposition.parameters.get("filename") or self.parameters.get("name", "")
        return decode_words(name).strip()

    @property
    def content_id(self) -> str:
        return self.content_fields.get("content-id", "").removeprefix("<").removesuffix(">").strip()

    @cached_property
    def encoding(self) -> str:
        given = self.content_fields.get("content-transfer-encoding", "")
        name = encoding_name(given)
        if given and name != given.partition(";")[0].strip().lower():
            self.policy.repair("The transfer encoding of a part is misspelt")
        return name

    @property
    def body(self) -> bytes:
        """The body as received, with its transfer encoding."""
        return bytes(self._view)

    @property
    def content(self) -> bytes:
        """The body without its transfer encoding, which is never smaller. Raises MalformedMime."""
        if self.encoding == "quoted-printable":
            return decode_quoted_printable(self.body)
        if self.encoding == "base64":
            return self._from_base64()
        if self.encoding not in UNENCODED:
            self.policy.refuse(f"The transfer encoding {self.encoding[:40]} is not supported")
        return self.body

    @property
    def charset(self) -> str:
        return "".join(self.parameters.get("charset", "").split()[:1]).strip("'\"").lower()

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

    @property
    def _view(self) -> memoryview:
        return memoryview(self.source)[self.start : max(self.end, self.start)]

    def _read_field(self, name: str, problem: str) -> DecisiveField:
        found = read_content_field(self.content_fields.get(name, ""))
        if not found.is_exact and name in self.content_fields:
            self.policy.repair(problem)
        return found

    def _from_base64(self) -> bytes:
        decoded = decode_base64(self._view)
        if decoded.is_padded_within:
            self.policy.repair("The base64 of a part has padding within")
        if decoded.loss:
            self.policy.refuse(decoded.loss)
        return decoded.data


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
            if self._policy.opens_messages and part.kind in MESSAGES and part.encoding in UNENCODED:
                part.is_container = True
                yield part
                part = self.read_part(part.start, parent=part)
                continue
            delimiter = self._enter(part, part.boundary)
            if part.is_multipart and not part.is_container and (boundary := self._likely_boundary(part)):
                self._policy.repair("The boundary of a multipart was found in its body")
                delimiter = self._enter(part, boundary)
            if part.is_multipart and not part.is_container:
                part.kind = "text/plain"
            yield part
            part = self._next_part(delimiter)

    def _enter(self, part: MimePart, boundary: bytes) -> Delimiter | None:
        """Return the delimiter at the end of the body of a part, or of the text in front of the first of its parts."""
        if boundary:
            if self._boundaries.is_open(boundary):
                self._policy.refuse("A multipart has the boundary of the one that contains it")
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
        return delimiter

    def _likely_boundary(self, part: MimePart) -> bytes:
        """Return the boundary that the first part in a body shows; empty without one, and beyond the depth."""
        if self._policy.is_strict or part.depth >= self._policy.max_depth:
            return b""
        found = LIKELY_DELIMITER.search(self._source, max(part.start - 1, 0), max(part.end, part.start))
        return found[1].rstrip() if found else b""

    def read_part(self, start: int, *, parent: MimePart | None, is_first: bool = False) -> MimePart:
        """Return the part that begins at a position, with the rest of the source as its body.

        is_first: it is the message.
        """
        found = find_header(self._source, start, self._boundaries, self._policy, is_first=is_first)
        header = decode_header(found.data)
        fields = tuple(read_fields(header, limit=self._policy.max_fields, refuse=self._policy.refuse))
        # A part without a header, and without the empty line before its body.
        is_body = bool(header) and not fields
        return MimePart(self._source, self._policy, fields, start if is_body else found.body, len(self._source), parent)

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
    source = with_line_feeds(source, policy)
    start = start_of_header(source, policy)
    return _MessageReader(source, policy).read_part(start, parent=None, is_first=True)
