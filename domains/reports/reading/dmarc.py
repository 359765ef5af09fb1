"""DMARC aggregate reports: RFC 9990, RFC 7489, and the drafts before it, as reporters really write them.

The XML of strangers: without a document type there are no entities, and every element is dropped once it is read.
"""

import re
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate

from core.lib.mail.charsets import decode_tolerantly, find_codec
from domains.reports.reading.results import (
    MAX_ROWS,
    MAX_TEXT_BYTES,
    DkimResult,
    PolicyReason,
    ReadDmarcRow,
    ReadReport,
    ReportRefused,
    SpfResult,
    UnreadableReport,
    limit_text,
)

MAX_DEPTH = 10
# The most elements in one record, or in another child of the root.
MAX_ELEMENTS = 2_000
# Reports have none but namespaces; an element with millions takes ten times its size in memory.
MAX_ATTRIBUTES = 2 * MAX_ROWS
# The elements of policy_published that are kept.
POLICY = (
    "domain", "p", "sp", "np", "adkim", "aspf", "pct", "fo", "testing", "discovery_method", "version_published",
)  # fmt: skip
# Signatures and reasons of one row.
MAX_RESULTS = 20
MAX_COUNT = 10**12
MAX_RESULT = 16
DECLARED = re.compile(rb"""^[^>]{0,200}?encoding=["']([A-Za-z0-9._-]{1,40})["']""")
# Characters that XML 1.0 does not allow.
FORBIDDEN = dict.fromkeys([*range(9), 11, 12, *range(14, 32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF])
# A schema that some reporters begin with, and never close.
SCHEMA = re.compile(r"</?xs:schema[^>]{0,500}>")
ELEMENTS = (
    "feedback|version|report_metadata|org_name|email|extra_contact_info|report_id|date_range|begin|end|error|generator|"
    "policy_published|domain|version_published|adkim|aspf|p|sp|np|pct|fo|testing|discovery_method|record|row|source_ip|"
    "count|policy_evaluated|disposition|dkim|spf|reason|type|comment|identifiers|identities|header_from|envelope_from|"
    "envelope_to|auth_results|selector|scope|result|human_result|extension"
)
# A character that begins neither an element of a report nor a reference: texts are not always escaped.
UNESCAPED = re.compile(rf"<(?!/?(?:[\w.-]{{1,20}}:)?(?:{ELEMENTS})[\s/>]|[?!])|&(?!#?\w{{1,8}};)")

# An element: its children with their names, or the text of one without children.
Value = list[tuple[str, Any]] | str


def decode_xml(data: bytes) -> str:
    """Return a document as text: in UTF-8, or in the encoding of its byte order mark or its declaration."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        declared = DECLARED.match(data)
    charset = declared[1].decode() if declared else ""
    # Some codecs of Python take quadratic time, and Python keeps each unknown name.
    is_other = find_codec(charset) not in {"", "utf-8"}
    return decode_tolerantly(data, charset) if is_other else data.decode("utf-8", "replace")


def read_dmarc(text: str) -> ReadReport:
    """Return the report of a document. Raises UnreadableReport and ReportRefused."""
    text = SCHEMA.sub("", text.translate(FORBIDDEN)).lstrip()
    if text.count("=") > MAX_ATTRIBUTES:
        raise ReportRefused(f"The XML has more than {MAX_ATTRIBUTES} attributes.")
    try:
        return _FeedbackReader().read(text)
    except ExpatError:
        pass
    try:
        return _FeedbackReader().read(UNESCAPED.sub(lambda match: "&lt;" if match[0] == "<" else "&amp;", text))
    except ExpatError as error:
        raise UnreadableReport(f"The XML is malformed: {error}.") from error


class _FeedbackReader:
    """Reads the children of the root, each before the next one.

    _open: the children of each open element. The builders of the standard library's trees took twice the time.
    """

    def __init__(self) -> None:
        self._open: list[list[tuple[str, Any]]] = []
        self._elements = 0
        self._text = ""
        self._metadata: dict[str, Any] = {}
        self._policy: dict[str, str] = {}
        self._rows: list[ReadDmarcRow] = []

    def read(self, text: str) -> ReadReport:
        parser = ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse_document_type
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        parser.Parse(text, True)
        if not self._policy.get("domain"):
            raise UnreadableReport("The report has no policy_published with a domain.")
        return _build_report(self._metadata, self._policy, tuple(self._rows))

    def _start(self, name: str, _attributes: dict[str, str]) -> None:
        self._elements += 1
        self._text = ""
        if not self._open and _local(name) != "feedback":
            raise UnreadableReport("The XML is no DMARC report: its first element is not feedback.")
        if len(self._open) >= MAX_DEPTH or self._elements > MAX_ELEMENTS:
            raise ReportRefused("The XML is nested too deeply, or a record has too many elements.")
        self._open.append([])

    def _add_text(self, text: str) -> None:
        if len(self._text) < MAX_TEXT_BYTES:
            self._text += text

    def _end(self, name: str) -> None:
        value: Value = self._open.pop() or self._text
        self._text = ""
        if len(self._open) > 1:
            self._open[-1].append((_local(name), value))
        elif self._open:
            self._elements = 0
            self._read_child(_local(name), value)

    def _read_child(self, name: str, value: Value) -> None:
        if name == "record":
            if len(self._rows) >= MAX_ROWS:
                raise ReportRefused(f"The report has more than {MAX_ROWS} rows.")
            self._rows.append(_read_record(value))
        elif name == "report_metadata":
            self._metadata = _children(value)
        elif name == "policy_published":
            found = _children(value)
            self._policy = {member: _text(found, member) for member in POLICY if member in found}


def _refuse_document_type(*_: object) -> None:
    raise ReportRefused("The report has a document type.")


def _build_report(metadata: dict[str, Any], policy: dict[str, str], rows: tuple[ReadDmarcRow, ...]) -> ReadReport:
    dates = _children(metadata.get("date_range", ""))
    contact, report_id = _text(metadata, "email"), _text(metadata, "report_id")
    if not report_id:
        raise UnreadableReport("The report has no report_id.")
    return ReadReport(
        kind="dmarc",
        reporter=_text(metadata, "org_name") or contact.rpartition("@")[2].strip("<> "),
        contact=contact,
        report_id=report_id,
        begin_at=_time(_text(dates, "begin")),
        end_at=_time(_text(dates, "end")),
        domains=(policy["domain"],),
        policy=policy,
        rows=rows,
    )


def _read_record(record: Value) -> ReadDmarcRow:
    sections = _children(record)
    row = _children(sections.get("row", ""))
    evaluated = row.get("policy_evaluated", "")
    policy = _children(evaluated)
    identifiers = _children(sections.get("identifiers") or sections.get("identities", ""))
    results = sections.get("auth_results", "")
    return ReadDmarcRow(
        source_ip=_address(_text(row, "source_ip")),
        count=_count(_text(row, "count")),
        disposition=_result(policy, "disposition"),
        dkim=_result(policy, "dkim"),
        spf=_result(policy, "spf"),
        header_from=_text(identifiers, "header_from").lower(),
        envelope_from=_text(identifiers, "envelope_from").lower(),
        envelope_to=_text(identifiers, "envelope_to").lower(),
        dkim_results=tuple(
            DkimResult(domain.lower(), _text(found, "selector"), _result(found, "result"))
            for found in _all(results, "dkim")
            if (domain := _text(found, "domain"))
        ),
        spf_results=tuple(
            SpfResult(domain.lower(), _text(found, "scope").lower(), _result(found, "result"))
            for found in _all(results, "spf")
            if (domain := _text(found, "domain"))
        ),
        reasons=tuple(
            PolicyReason(kind.lower(), _text(found, "comment"))
            for found in _all(evaluated, "reason")
            if (kind := _text(found, "type"))
        ),
    )


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _children(value: Value) -> dict[str, Any]:
    """Return the children of an element by their names; the first of several."""
    return {} if isinstance(value, str) else dict(reversed(value))


def _all(value: Value, name: str) -> list[dict[str, Any]]:
    """Return the children of the first MAX_RESULTS elements with a name."""
    found = [] if isinstance(value, str) else [member for member_name, member in value if member_name == name]
    return [_children(member) for member in found[:MAX_RESULTS]]


def _text(elements: dict[str, Any], name: str) -> str:
    value = elements.get(name)
    return limit_text(value) if isinstance(value, str) else ""


def _result(elements: dict[str, Any], name: str) -> str:
    return _text(elements, name)[:MAX_RESULT].lower()


def _address(text: str) -> str | None:
    try:
        # PostgreSQL stores no scope.
        return None if "%" in text else str(ip_address(text))
    except ValueError:
        return None


def _count(text: str) -> int:
    try:
        count = int(text)
    except ValueError as error:
        raise UnreadableReport("A row has no count.") from error
    if not 0 <= count <= MAX_COUNT:
        raise UnreadableReport("The count of a row is out of range.")
    return count


def _time(text: str) -> datetime:
    try:
        return datetime.fromtimestamp(int(float(text)), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise UnreadableReport("The report has no date_range.") from error
