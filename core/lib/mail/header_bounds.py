"""Bounds of a header in a message or a part, with what programs write in front of it (docs/decisions/0311)."""

import re
from typing import NamedTuple

from core.lib.mail.boundaries import OpenBoundaries
from core.lib.mail.mime_policy import MimePolicy

END_OF_HEADER = re.compile(rb"\n\r?\n")
EMPTY_LINES = (b"\r\n", b"\n")
BARE_CR = re.compile(rb"\r(?!\n)")
# More lines than a message of 25 MiB has: replacing as many takes 0.2 s.
MAX_BARE_CR = 1_000_000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Empty lines, if a field that headers begin with is behind them: in front of another line, they end an empty header.
LINES_IN_FRONT = re.compile(
    rb"(?:[ \t]*+\r?\n)+(?=(?:From|To|Cc|Subject|Date|Sender|Reply-To|Received|Return-Path|Delivered-To|Message-ID"
    rb"|MIME-Version|Content-[a-z-]{1,40}|X-[!-9;-~]{1,100}|[a-z]{1,20}-Signature)[ \t]*+:)",
    re.IGNORECASE,
)
FIELD_START = re.compile(rb"[!-9;-~]{1,200}[ \t]*+:")
CONTINUED = (b" ", b"\t")
# A piece of a value that lost the white space in front of it: a parameter, or a long word.
PIECE = re.compile(rb"(?!--)(?:[^\s=;]*+[=;]\S*+|\S{41,}+)\r?\Z")

SKIPPED_LINES = "Empty lines in front of the header were skipped"
SKIPPED_CHARACTERS = "White space or a byte order mark in front of a header was skipped"


class Header(NamedTuple):
    """The lines of a header, and the start of the body behind it."""

    data: bytes
    body: int


def with_line_feeds(source: bytes | bytearray, policy: MimePolicy) -> bytes | bytearray:
    """Return a message whose lines end with LF, or CRLF, of the same length. Some end with CR: all, or the first one.

    The second is left to a policy that refuses what programs read differently.
    """
    first_line = source.find(b"\n") + 1 or len(source)
    if b"\r" not in source or (policy.is_strict and b"\n" in source) or not BARE_CR.search(source, 0, first_line):
        return source
    return BARE_CR.sub(b"\n", source, count=MAX_BARE_CR)


def start_of_header(source: bytes | bytearray, policy: MimePolicy) -> int:
    """Return the place behind a byte order mark and empty lines."""
    start = 0
    if not policy.is_strict and source.startswith(BYTE_ORDER_MARK):
        policy.repair(SKIPPED_CHARACTERS)
        start = len(BYTE_ORDER_MARK)
    if not policy.is_strict and (lines := LINES_IN_FRONT.match(source, start, start + policy.max_header_bytes)):
        policy.repair(SKIPPED_LINES)
        start = lines.end()
    if source.startswith(EMPTY_LINES, start):
        policy.refuse("The message has no header")
    return start


def find_header(
    source: bytes | bytearray,
    start: int,
    boundaries: OpenBoundaries,
    policy: MimePolicy,
    *,
    is_first: bool,
) -> Header:
    """Return the header at a position. It ends at an empty line or a delimiter.

    is_first: it is that of the message.
    """
    if source.startswith(EMPTY_LINES, start):
        return Header(b"", source.index(b"\n", start) + 1)
    limit = min(start + policy.max_header_bytes, len(source))
    empty = END_OF_HEADER.search(source, start, limit)
    end, body = empty.span() if empty else (limit, limit)
    if delimiter := boundaries.find(start - 1, end + 1):
        end, body = delimiter.start, delimiter.start + 1
    elif body == limit < len(source):
        name = "The header" if is_first else "The header of a part"
        policy.refuse(f"{name} is longer than {policy.max_header_bytes:,} bytes")
        # Once, not for each part: the search may go to the end.
        empty = END_OF_HEADER.search(source, limit) if is_first else None
        return Header(_lines(source, start, end), empty.end() if empty else body)
    header = Header(_lines(source, start, end), body)
    return header if policy.is_strict else _repaired(header, start, policy)


def _lines(source: bytes | bytearray, start: int, end: int) -> bytes:
    return bytes(source[start:end]).rstrip(b"\r\n")


def _repaired(header: Header, start: int, policy: MimePolicy) -> Header:
    """Return a header without white space in front of it, and without lines at its end that belong to the body."""
    size = _size_of_fields(header.data)
    if size < len(header.data):
        policy.repair("The empty line behind a header is missing")
        header = Header(header.data[:size], start + size)
    if header.data.startswith(CONTINUED):
        policy.repair(SKIPPED_CHARACTERS)
    return header._replace(data=header.data.lstrip(b" \t"))


def _size_of_fields(header: bytes) -> int:
    """Return the size of a header without the lines at its end that are neither fields nor continue one."""
    size = end = len(header)
    while end > 0:
        start = header.rfind(b"\n", 0, end) + 1
        if FIELD_START.match(header, start, end):
            return size
        is_continued = header.startswith(CONTINUED, start) or PIECE.match(header, start, end)
        if not is_continued or (not start and not FIELD_START.match(header.lstrip(b" \t"))):
            size = start
        end = start - 1
    return size
