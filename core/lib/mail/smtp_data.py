"""Reading the message after DATA in blocks. aiosmtpd would keep an object for each line until its end."""

import asyncio
from collections.abc import AsyncIterator, Callable
from enum import Enum

from core.lib.mail.transfer_encodings import has_long_line

LINE_END = b"\r\n"
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
    """Append a message without transparency dots, which its size does not count; return why it is refused, if it is.

    take: counts the next bytes of the message; returns False if they find no room.
    """
    # The line end of DATA is the first part of END if the message is empty (RFC 5321, section 4.1.1.4).
    reader.feed_data(LINE_END)
    refusal = None
    async for piece in _read_pieces(reader):
        if len(content) + len(piece) > len(LINE_END) + max_bytes:
            refusal = refusal or DataRefusal.TOO_LARGE
        elif max_line_bytes and len(piece) > max_line_bytes and b"\n" not in piece:
            refusal = refusal or DataRefusal.LINE_TOO_LONG
        elif refusal is None and not take(len(piece)):
            refusal = DataRefusal.NO_MEMORY
        elif refusal is None:
            content += piece
        if refusal:
            content.clear()
    del content[: len(LINE_END)]
    if refusal is None and max_line_bytes and has_long_line(content, max_line_bytes):
        return DataRefusal.LINE_TOO_LONG
    return refusal


async def _read_pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the bytes until END, without the dots in front of lines and without the line end of the last dot."""
    kept, is_last = b"", False
    while not is_last:
        try:
            block = kept + await reader.readuntil(END)
            is_last = True
        except asyncio.LimitOverrunError as error:
            block = kept + await reader.readexactly(error.consumed)
        # A dot may follow in the next block.
        kept = LINE_END if block.endswith(LINE_END) else b"\r" if block.endswith(b"\r") else b""
        yield block[: len(block) - len(kept)].replace(b"\r\n.", LINE_END)
