"""The report in a message or a request: the first document that is one, by its first bytes, whatever it is called."""

from collections.abc import Iterator

from core.lib.mail.mime import read_message
from core.lib.mail.mime_policy import MimePolicy, TooManyParts
from domains.reports.reading.archives import GZIP, Inflater
from domains.reports.reading.dmarc import decode_xml, read_dmarc
from domains.reports.reading.results import ReadReport, ReportRefused, UnreadableReport
from domains.reports.reading.tls import read_tls

MAX_BYTES = 10 * 1024 * 1024
MESSAGE = MimePolicy(max_bytes=MAX_BYTES, max_depth=5, max_parts=40)
XML_STARTS = (b"<", b"\xef\xbb\xbf<", b"\xff\xfe<", b"\xfe\xff\x00<")
# A report begins within this part of a document.
START_BYTES = 4096
NO_REPORT = "The message has no report in XML or JSON, nor in a gzip or zip archive."


def read_report(source: bytes) -> ReadReport:
    """Return the report in the bytes that arrived. Raises UnreadableReport and ReportRefused."""
    unreadable = UnreadableReport(NO_REPORT)
    inflater = Inflater()
    for data in _candidates(source):
        try:
            if report := _read_document(inflater.unpack(data)):
                return report
        except UnreadableReport as error:
            unreadable = error
    raise unreadable


def _candidates(source: bytes) -> Iterator[bytes]:
    """Yield the bytes of a request, or the parts of a message."""
    if source.startswith((GZIP, b"{")) or source.lstrip()[:1] == b"{":
        yield source
        return
    message = read_message(source, MESSAGE)
    try:
        for part in message.walk():
            if not part.is_container:
                yield part.content
    except TooManyParts as error:
        raise ReportRefused("The message has too many parts.") from error


def _read_document(data: bytes) -> ReadReport | None:
    """Return the report of a document; None for one of another kind, such as text."""
    start = data[:START_BYTES].lstrip()
    if start.startswith(XML_STARTS):
        text = decode_xml(data.lstrip() if start[:1] == b"<" else data)
        return read_dmarc(text) if "feedback" in text[: 4 * START_BYTES] else None
    if start.removeprefix(b"\xef\xbb\xbf").startswith(b"{"):
        return read_tls(data.decode("utf-8-sig", "replace"))
    return None
