"""The bytes of received messages: put, open, delete. No other module reads or writes them.

They are rows of PostgreSQL, so that a message and its content are committed together; another store can take their
place here.
"""

import struct
from collections.abc import Collection, Iterator, Sequence
from uuid import UUID

from core.lib.ids import new_id, to_uuid
from core.lib.sql import copy_rows, run_binary

PREFIX = "rcc_"
# Pieces of a large value for the database: the client library copies what it is given.
PIECE_BYTES = 256 * 1024
# Pieces that are put together: libpq keeps a buffer that fits the largest row of a connection.
RANGE_BYTES = 1024 * 1024
READ = "SELECT substring(data FROM %s FOR %s) FROM receiving_content WHERE id = %s"
READ_TOGETHER = "SELECT id, data FROM receiving_content WHERE id = ANY(%s)"
COPY = "COPY receiving_content (id, size, data) FROM STDIN (FORMAT BINARY)"
# PostgreSQL's binary COPY format: signature, flags, length of the extension; a row has the number of its fields, each
# with its length; -1 ends the rows.
HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
ROW = struct.Struct(">hi16siii")
END = struct.pack(">h", -1)


def put(contents: Sequence[bytes | bytearray]) -> list[str]:
    """Store bytes in the caller's transaction; return the ids of the contents."""
    ids = [new_id(PREFIX) for _ in contents]
    with copy_rows(COPY) as copy:
        copy.write(HEADER)
        for content_id, data in zip(ids, contents, strict=True):
            view = memoryview(data)
            copy.write(ROW.pack(3, 16, to_uuid(content_id, prefix=PREFIX).bytes, 4, len(view), len(view)))
            for start in range(0, len(view), PIECE_BYTES):
                copy.write(bytes(view[start : start + PIECE_BYTES]))
        copy.write(END)
    return ids


def open_together(ids: Sequence[UUID]) -> dict[UUID, bytes]:
    """Return the bytes of small contents, by the UUIDs of their ids; without deleted ones."""
    return dict(run_binary(READ_TOGETHER, [ids])) if ids else {}


def open_range(content_id: str, start: int, end: int) -> bytes:
    """Return the bytes from `start` to before `end`, counted from 0; none if the content is deleted."""
    return b"".join(read_pieces(content_id, start=start, end=end, piece_bytes=RANGE_BYTES))


def read_pieces(content_id: str, *, start: int = 0, end: int, piece_bytes: int = PIECE_BYTES) -> Iterator[bytes]:
    """Yield the bytes of a range in pieces, each read when it is needed."""
    for position in range(start, end, piece_bytes):
        values = [position + 1, min(piece_bytes, end - position), to_uuid(content_id, prefix=PREFIX)]
        rows = run_binary(READ, values)
        if not rows or not rows[0][0]:
            return
        yield rows[0][0]


def delete(content_ids: Collection[str]) -> None:
    """Delete contents in the caller's transaction."""
    ids = [to_uuid(content_id, prefix=PREFIX) for content_id in content_ids]
    run_binary("DELETE FROM receiving_content WHERE id = ANY(%s)", [ids])
