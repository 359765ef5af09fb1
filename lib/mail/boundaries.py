"""Delimiter lines between the parts of a message (RFC 2046, section 5.1.1), found in one pass for all multiparts."""

import re
from typing import NamedTuple

# A search holds the interpreter; other threads run between two steps of this size.
STEP_BYTES = 64 * 1024
CR = ord("\r")


class Delimiter(NamedTuple):
    """A delimiter line. start: its preceding line end, which belongs to it. end: its own line end.

    level: the position of its boundary among the open ones. is_last: no part follows it in its multipart.
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
        self._pattern: re.Pattern[bytes] | None = None

    def __len__(self) -> int:
        return len(self._boundaries)

    def open(self, boundary: bytes) -> None:
        self._boundaries.append(boundary)
        self._compile()

    def close(self, level: int) -> None:
        """Remove the boundaries from a level on."""
        if level < len(self):
            del self._boundaries[level:]
            self._compile()

    def find(self, position: int, end: int | None = None) -> Delimiter | None:
        """Return the next delimiter whose preceding line end is not before a position. end: the end of the search."""
        source, end = self._source, len(self._source) if end is None else end
        while self._pattern and position < end:
            line_end = source.find(b"\n", position + STEP_BYTES, end)
            found = self._pattern.search(source, position, line_end + 1 or end)
            if found:
                start = found.start() - (source[found.start() - 1] == CR)
                # Of two equal boundaries, the outer one counts.
                return Delimiter(start, found.end(), self._boundaries.index(found[1]), bool(found[2]))
            position = line_end if line_end >= 0 else end
        return None

    def _compile(self) -> None:
        names = b"|".join(map(re.escape, self._boundaries))
        self._pattern = re.compile(rb"\n--(%s)(--)?[ \t]*+\r?(?=\n|\Z)" % names) if names else None
