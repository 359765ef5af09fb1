"""MIME parsing of submitted messages: exact bytes, strict limits, and a refusal where a reader would have to guess.

Lines end with CRLF only, which the session has checked. The standard library's parser takes a second for a megabyte of
empty lines, holds several copies of the message, and does not return the exact bytes of an attached message.
"""

import binascii
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from email.message import Message
from functools import cached_property

from lib.mail.charsets import SLOW, UNENCODABLE, codec_name, find_codec
from lib.mail.encoded_words import decode_words
from submission.errors import MalformedMessage

MAX_HEADER_BYTES = 64 * 1024
MAX_FIELDS = 400
# The standard library reads the parameters of a header in quadratic time.
MAX_PARAMETERS = 4_000
MAX_DEPTH = 10
MAX_PARTS = 100

END_OF_HEADER = b"\r\n\r\n"
FIELD = re.compile(r"([!-9;-~]{1,200})[ \t]*:(.*)", re.DOTALL)
FOLD = re.compile(r"\r\n(?=[ \t])")
BASE64_PAD = b"=="
# Charsets whose names are used for a larger one, which has more characters at unused positions.
SUPERSETS = {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs"}


@dataclass(frozen=True)
class MimePart:
    """A message or a part of it.

    fields: names and unfolded values in order. start, end: its body in the source. default_kind: its media type if the
    fields have none.
    """

    source: bytes | bytearray
    start: int
    end: int
    fields: tuple[tuple[str, str], ...]
    depth: int = 0
    default_kind: str = "text/plain"

    @cached_property
    def mime(self) -> Message:
        """The fields about the content, for the parsing of their parameters."""
        mime = Message()
        mime.set_default_type(self.default_kind)
        for name, value in self.fields:
            if not name.lower().startswith("content-"):
                continue
            if len(value) > MAX_PARAMETERS:
                raise MalformedMessage(f"{name} is too long")
            if name in mime:
                raise MalformedMessage(f"A part has {name} more than once")
            mime[name] = value
        return mime

    @property
    def kind(self) -> str:
        """The media type in lower case."""
        return self.mime.get_content_type()

    @property
    def is_multipart(self) -> bool:
        return self.kind.startswith("multipart/")

    @property
    def disposition(self) -> str:
        return self.mime.get_content_disposition() or ""

    @property
    def filename(self) -> str:
        name = self.mime.get_filename() or ""
        return decode_words(name)

    @property
    def content_id(self) -> str:
        return str(self.mime.get("Content-ID", "")).strip().removeprefix("<").removesuffix(">").strip()

    @property
    def body(self) -> bytes:
        """The body as received, with its transfer encoding."""
        return bytes(memoryview(self.source)[self.start : max(self.end, self.start)])

    @property
    def encoding(self) -> str:
        return str(self.mime.get("Content-Transfer-Encoding", "")).partition(";")[0].strip().lower() or "7bit"

    @property
    def content(self) -> bytes:
        """The body without its transfer encoding. Raises MalformedMessage."""
        match self.encoding:
            case "7bit" | "8bit" | "binary":
                return self.body
            case "quoted-printable":
                return binascii.a2b_qp(self.body)
            case "base64":
                return _from_base64(memoryview(self.source)[self.start : max(self.end, self.start)])
            case unknown:
                raise MalformedMessage(f"The transfer encoding {unknown[:40]} is not supported")

    @property
    def text(self) -> str:
        """The content as text with LF at line ends. Raises MalformedMessage."""
        return decode_text(self.content, self.mime.get_content_charset("")).replace("\r\n", "\n")

    def parts(self) -> Iterator["MimePart"]:
        """Yield the parts of a multipart. Raises MalformedMessage."""
        if self.depth >= MAX_DEPTH:
            raise MalformedMessage(f"The parts are nested deeper than {MAX_DEPTH} levels")
        if self.encoding not in {"7bit", "8bit", "binary"}:
            raise MalformedMessage("A multipart has a transfer encoding")
        boundary = self.mime.get_boundary()
        if not boundary:
            raise MalformedMessage("A multipart has no boundary")
        # RFC 2046, section 5.1.5.
        default_kind = "message/rfc822" if self.kind == "multipart/digest" else "text/plain"
        for start, end in self._between(boundary.encode("utf-8", "replace")):
            part = _read_part(self.source, start, end)
            yield replace(part, depth=self.depth + 1, default_kind=default_kind)

    def _between(self, boundary: bytes) -> Iterator[tuple[int, int]]:
        """Yield the start and the end of each part between the delimiter lines (RFC 2046, section 5.1.1)."""
        delimiter = re.compile(rb"(?:\r\n|\A)--" + re.escape(boundary) + rb"(--)?[ \t]*(?:\r\n|\Z)")
        # The line end before a delimiter belongs to it, also that of an empty body.
        position, start, count = max(self.start - 2, 0), -1, 0
        while found := delimiter.search(self.source, position, self.end):
            if start >= 0:
                yield start, max(found.start(), start)
            if found[1]:
                return
            count += 1
            if count > MAX_PARTS:
                raise MalformedMessage(f"A multipart has more than {MAX_PARTS} parts")
            start = found.end()
            # The line end of this delimiter may be that of the next one.
            position = max(start - 2, position + 1)
        if start < 0:
            raise MalformedMessage("A multipart has no part")
        yield start, self.end


def read_message(source: bytes | bytearray) -> MimePart:
    """Return a message, without reading its parts. Raises MalformedMessage."""
    end = len(source)
    if source.startswith(b"\r\n"):
        raise MalformedMessage("The message has no header")
    found = source.find(END_OF_HEADER, 0, MAX_HEADER_BYTES)
    if found < 0 and end > MAX_HEADER_BYTES:
        raise MalformedMessage(f"The header is longer than {MAX_HEADER_BYTES:,} bytes")
    header_end, start = (found, found + len(END_OF_HEADER)) if found >= 0 else (end, end)
    return MimePart(source, start, end, tuple(_fields(source[:header_end])))


def decode_text(data: bytes, charset: str) -> str:
    """Decode text by its charset, or as UTF-8 if that is unknown or ASCII. Raises MalformedMessage."""
    for codec in _candidates(charset, data):
        try:
            text = data.decode(codec)
        except (UnicodeError, ValueError):
            continue
        if UNENCODABLE.search(text):
            raise MalformedMessage("A text contains NUL or an unpaired surrogate")
        return text
    raise MalformedMessage(f"A text is not valid {charset[:40] or 'UTF-8'}")


def _candidates(charset: str, data: bytes) -> Iterator[str]:
    name = codec_name(charset)
    if name in SLOW:
        raise MalformedMessage(f"The charset {name} is not supported")
    codec = find_codec(charset)
    yield codec
    yield SUPERSETS.get(codec, "utf-8")
    yield "utf-8"


def _read_part(source: bytes | bytearray, start: int, end: int) -> MimePart:
    """Return a part. One without fields begins with the empty line, or with its body if a line is not a field."""
    if source.startswith(b"\r\n", start):
        return MimePart(source, start + 2, end, ())
    found = source.find(END_OF_HEADER, start, min(end, start + MAX_HEADER_BYTES))
    header_end, body = (found, found + len(END_OF_HEADER)) if found >= 0 else (end, end)
    if header_end - start > MAX_HEADER_BYTES:
        raise MalformedMessage(f"The header of a part is longer than {MAX_HEADER_BYTES:,} bytes")
    return MimePart(source, min(body, end), end, tuple(_fields(source[start:header_end])))


def _fields(header: bytes | bytearray) -> Iterator[tuple[str, str]]:
    """Yield the unfolded fields of a header. Raises MalformedMessage."""
    try:
        text = header.decode()
    except UnicodeDecodeError:
        # Older programs send the charset of their machine unencoded.
        text = header.decode("latin-1")
    lines = FOLD.sub("", text).removesuffix("\r\n").split("\r\n", MAX_FIELDS)
    if len(lines) > MAX_FIELDS:
        raise MalformedMessage(f"The header has more than {MAX_FIELDS} fields")
    for line in filter(None, lines):
        field = FIELD.fullmatch(line)
        if field is None:
            raise MalformedMessage(f"A header line is not a field: {line[:60]!a}")
        yield field[1], field[2].replace("\t", " ").strip()


def _from_base64(body: memoryview) -> bytes:
    for padding in (b"", BASE64_PAD):
        # Some programs omit the padding, which the decoder needs.
        with suppress(binascii.Error):
            return binascii.a2b_base64(bytes(body) + padding if padding else body)
    raise MalformedMessage("A part is not valid base64")
