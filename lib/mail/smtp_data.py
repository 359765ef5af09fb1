"""Reading the message after DATA in blocks. aiosmtpd would keep an object for each line until its end."""

import asyncio
from collections.abc import AsyncIterator, Callable
from enum import Enum

from lib.mail.lines import has_long_line

END = b"\r\n.\r\n"


class DataRefusal(Enum):
    """Why a message is refused; it was read to its end."""

    TOO_LARGE = "too_large"
    LINE_TOO_LONG = "line_too_long"
    NO_MEMORY = "no_memory"


async def read_message(
    reader: asyncio.StreamReader,
    content: bytearray,
    *,
    max_bytes: int,
    take: Callable[[int], bool],
    max_line_bytes: int | None = None,
) -> DataRefusal | None:
    """Append a message with the line end before it and END after it; return why it is refused, if it is.

    take: counts the next bytes of the message; returns False if they find no room.
    """
    # The line end of DATA is the first part of END if the message is empty (RFC 5321, section 4.1.1.4).
    reader.feed_data(b"\r\n")
    refusal = None
    async for block in _read_blocks(reader):
        if len(content) + len(block) > max_bytes + len(END):
            refusal = refusal or DataRefusal.TOO_LARGE
        elif max_line_bytes and len(block) > max_line_bytes and b"\n" not in block:
            refusal = refusal or DataRefusal.LINE_TOO_LONG
        elif refusal is None and not take(len(block)):
            refusal = DataRefusal.NO_MEMORY
        elif refusal is None:
            content += block
        if refusal:
            content.clear()
    if refusal is None and max_line_bytes and has_long_line(content, max_line_bytes):
        return DataRefusal.LINE_TOO_LONG
    return refusal


async def _read_blocks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield what arrives until END, in blocks of at least the size of the reader's buffer."""
    while True:
        try:
            last = await reader.readuntil(END)
        except asyncio.LimitOverrunError as error:
            yield await reader.readexactly(error.consumed)
        else:
            yield last
            return


def without_framing(content: bytearray) -> bytearray:
    """Return a message without the line end before it, END after its last line, and transparency dots.

    The bytes are in memory once: those in `content` are gone, unless they are what it returns.
    """
    del content[-len(b".\r\n") :]
    if b"\r\n." in content:
        framed, content = content, content.replace(b"\r\n.", b"\r\n")
        framed.clear()
    del content[: len(b"\r\n")]
    return content
