"""Delimiter lines between the parts of a message (RFC 2046, section 5.1.1), found in one pass for all multiparts."""

import re
from typing import NamedTuple

# A search holds the interpreter; other threads run between two steps of this size.
STEP_BYTES = 64 * 1024
CR = ord("\r")
# A line that may be a delimiter. An expression of the boundaries themselves would take longer to compile, for each part
# that opens one, than the message to read.
DASHED_LINE = re.compile(rb"\n--([^\r\n][^\n]*)")


class Delimiter(NamedTuple):
    """A delimiter line.

    start: its preceding line end, which belongs to it.
    end: its own line end.
    level: the position of its boundary among the open ones.
    is_last: no part follows it in its multipart.
    """

    start: int
    end: int
    level: int
    is_last: bool


class OpenBoundaries:
    """The boundaries of the multiparts around a position in the source, outermost first."""

    def __init__(self, source: bytes | bytearray) -> None:
        self._source = source
        self._boundaries: list[bytes] = []
        # By the text of a delimiter line: its level, and whether it is the last one.
        self._lines: dict[bytes, tuple[int, bool]] = {}

    def __len__(self) -> int:
        return len(self._boundaries)

    def is_open(self, boundary: bytes) -> bool:
        return boundary in self._boundaries

    def open(self, boundary: bytes) -> None:
        self._boundaries.append(boundary)
        self._list_lines()

    def close(self, level: int) -> None:
        """Remove the boundaries from a level on."""
        if level < len(self):
            del self._boundaries[level:]
            self._list_lines()

    def find(self, position: int, end: int | None = None) -> Delimiter | None:
        """Return the next delimiter whose preceding line end is not before a position. end: the end of the search."""
        source, end = self._source, len(self._source) if end is None else end
        while self._lines and position < end:
            line_end = source.find(b"\n", position + STEP_BYTES, end)
            for line in DASHED_LINE.finditer(source, position, line_end + 1 or end):
                if known := self._lines.get(line[1].rstrip(b" \t\r")):
                    start, level, is_last = line.start(), *known
                    return Delimiter(start - (source[start - 1] == CR), line.end(), level, is_last)
            position = line_end if line_end >= 0 else end
        return None

    def _list_lines(self) -> None:
        self._lines = {}
        # The line of the inner boundary counts if two are equal, as it does for mail programs.
        for level, boundary in enumerate(self._boundaries):
            self._lines |= {boundary: (level, False), boundary + b"--": (level, True)}
