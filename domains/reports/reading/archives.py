"""Documents in gzip and zip: unpacked up to a limit, with one member each."""

import struct
import zlib
from dataclasses import dataclass

from domains.reports.reading.results import ReportRefused, UnreadableReport

GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"
END_OF_ZIP = b"PK\x05\x06"
# Archives within archives; reporters send one.
MAX_LEVELS = 5
MAX_INFLATED_BYTES = 20 * 1024 * 1024
# A report of equal rows has 60.
MAX_RATIO = 200
# APPNOTE.TXT, section 4.3.7: version, flags, method, time, date, CRC, sizes, lengths of the name and the extra field.
LOCAL_HEADER = struct.Struct("<4sHHHHHIIIHH")
ENCRYPTED, SIZE_FOLLOWS = 0x1, 0x8
STORED, DEFLATED = 0, 8
TAIL_BYTES = 66_000


@dataclass
class Inflater:
    """The bytes that the archives of one message may still be unpacked to."""

    left: int = MAX_INFLATED_BYTES

    def unpack(self, data: bytes) -> bytes:
        """Return the document in an archive, and others as they are. Raises UnreadableReport and ReportRefused."""
        for _ in range(MAX_LEVELS):
            if data.startswith(GZIP):
                data = self._inflate(data, wbits=31, next_member=GZIP)
            elif data.startswith(ZIP):
                data = self._unzip(data)
            else:
                return data
        raise ReportRefused(f"Archives are nested deeper than {MAX_LEVELS} levels.")

    def _unzip(self, data: bytes) -> bytes:
        try:
            _, _, flags, method, *_, size, _, name, extra = LOCAL_HEADER.unpack_from(data)
        except struct.error as error:
            raise UnreadableReport("The zip archive is incomplete.") from error
        if flags & ENCRYPTED:
            raise ReportRefused("The zip archive is encrypted.")
        if _count_members(data) > 1:
            raise ReportRefused("The archive has more than one file.")
        content = data[LOCAL_HEADER.size + name + extra :]
        if method == DEFLATED:
            return self._inflate(content, wbits=-15, next_member=ZIP)
        if method != STORED or flags & SIZE_FOLLOWS:
            raise UnreadableReport("The zip archive has an unknown compression.")
        self._take(size := min(size, len(content)))
        return content[:size]

    def _inflate(self, data: bytes, *, wbits: int, next_member: bytes) -> bytes:
        inflater = zlib.decompressobj(wbits)
        limit = min(self.left, MAX_RATIO * len(data))
        try:
            document = inflater.decompress(data, limit + 1)
        except zlib.error as error:
            raise UnreadableReport("The archive is damaged.") from error
        if len(document) > limit:
            raise ReportRefused("The archive unpacks to more than 20 MiB, or to more than 200 times its size.")
        self._take(len(document))
        if not inflater.eof:
            raise UnreadableReport("The archive is incomplete.")
        if inflater.unused_data.startswith(next_member):
            raise ReportRefused("The archive has more than one file.")
        return document

    def _take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise ReportRefused("The archives unpack to more than 20 MiB.")


def _count_members(data: bytes) -> int:
    """Return the number of files in the directory of a zip archive; 1 without a directory."""
    start = data.rfind(END_OF_ZIP, max(len(data) - TAIL_BYTES, 0))
    return int.from_bytes(data[start + 10 : start + 12], "little") if start >= 0 else 1
