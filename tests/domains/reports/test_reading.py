"""Reading of DMARC and TLS reports: those of real reporters as parsedmarc reads them, and those of attackers."""

import contextlib
import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domains.reports.reading.archives import MAX_INFLATED_BYTES
from domains.reports.reading.documents import read_report
from domains.reports.reading.results import (
    MAX_TEXT_BYTES,
    PolicyReason,
    ReadReport,
    ReportRefused,
    UnreadableReport,
    limit_text,
)
from tests.domains.reports.builders import dmarc_report, dmarc_row, message, nested, tls_report, zipped
from tests.rows import each

# From github.com/domainaware/parsedmarc (Apache License 2.0), as of 6358c364; expected.json is the output of its
# version 11.1.0, reduced to the values that both have.
SAMPLES = Path(__file__).parent / "samples"
EXPECTED = json.loads((SAMPLES / "expected.json").read_text("utf-8"))
EXPANSION = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
BILLION_LAUGHS = f'<!DOCTYPE feedback [<!ENTITY a0 "ha">{EXPANSION}]>'
ATTRIBUTE = 'a{}=">"'
EXTERNAL = '<!DOCTYPE feedback [<!ENTITY x SYSTEM "file:///etc/passwd">]>'


# By sample: what parsedmarc drops, or writes in another way.
OTHER_READINGS = {
    "empty_reason.xml": {"reasons": [[]]},
    "invalid_utf_8.xml": {"header_from": ["bad_byte\ufffd"]},
    "invalid_xml.xml": {"header_from": ["bad<xml.net"]},
    "protection.outlook.com_example.com_1711756800_1711843200.xml": {"reporter": "Outlook.com"},
}
DMARC_COLUMNS = (
    "source_ip", "count", "disposition", "dkim", "spf", "header_from", "dkim_results", "spf_results", "reasons",
)  # fmt: skip
TLS_COLUMNS = ("policy_type", "policy_domain", "result_type", "successful", "failed")


def shown(report: ReadReport) -> dict:
    """Return the values of a report by their names; of rows, a list for each column."""
    columns = DMARC_COLUMNS if report.kind == "dmarc" else TLS_COLUMNS
    rows = [[plain(getattr(row, column)) for column in columns] for row in report.rows]
    return {
        "reporter": report.reporter,
        "report_id": report.report_id,
        "range": [int(report.begin_at.timestamp()), int(report.end_at.timestamp())],
        **({"domain": report.domains[0]} if report.kind == "dmarc" else {}),
        **named(rows, columns),
    }


def plain(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    return [item.type if isinstance(item, PolicyReason) else [item.domain, item.result] for item in value]


def named(rows: list[list], columns: tuple[str, ...]) -> dict:
    return dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))


def expected(name: str) -> dict:
    values = dict(EXPECTED[name])
    rows = values.pop("rows")
    columns = DMARC_COLUMNS if "domain" in values else TLS_COLUMNS
    return {**values, **named(rows, columns), **OTHER_READINGS.get(name, {})}


def in_utf_16(document: bytes) -> bytes:
    return document.decode().replace("UTF-8", "UTF-16").encode("utf-16")


def sample(name: str) -> bytes:
    content = (SAMPLES / name).read_bytes()
    return content if name.endswith((".eml", ".json")) else message(content)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_sample_is_read_as_parsedmarc_reads_it(name):
    assert shown(read_report(sample(name))) == expected(name)


def test_every_sample_has_an_expectation():
    files = {path.name for path in SAMPLES.iterdir()} - {"expected.json"}
    assert files == set(EXPECTED)


@each(("wrap",), [
    (lambda xml: xml,), (gzip.compress,), (zipped,), (lambda xml: zipped(gzip.compress(xml)),),
    (lambda xml: b"\xef\xbb\xbf" + xml,), (lambda xml: b"\n\n" + xml,),
    (in_utf_16,),
])  # fmt: skip
def test_a_report_is_recognized_by_its_bytes(wrap):
    report = read_report(message(wrap(dmarc_report(dmarc_row("2001:db8::1", count=7)))))
    assert [(row.source_ip, row.count, row.dkim) for row in report.rows] == [("2001:db8::1", 7, "pass")]


def test_the_body_of_a_message_may_be_the_report():
    source = b"From: a@b.example\r\nContent-Type: application/gzip\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    assert read_report(source + gzip.compress(dmarc_report())).report_id == "r1"


@each(("body",), [(tls_report(),), (gzip.compress(tls_report()),), (b" \n" + tls_report(),)])
def test_the_body_of_a_request_is_a_tls_report(body):
    report = read_report(body)
    assert report.kind == "tls"
    assert [(row.result_type, row.successful, row.failed) for row in report.rows] == [
        ("", 40, 2),
        ("certificate-expired", 0, 2),
    ]


def test_namespaces_and_spellings_do_not_matter():
    root = 'feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0"'
    report = read_report(message(dmarc_report(dmarc_row(dkim="PASS"), root=root)))
    assert report.rows[0].dkim == report.rows[0].dkim_results[0].result == "pass"
    prefixed = dmarc_report().replace(b"<", b"<d:").replace(b"<d:/", b"</d:").replace(b"<d:?", b"<?")
    assert read_report(message(prefixed)).report_id == "r1"


def test_texts_are_cut_and_have_no_control_characters():
    long = "é" * 2_000
    report = read_report(message(dmarc_report(reporter=long)))
    assert len(report.reporter.encode()) == MAX_TEXT_BYTES
    xml = dmarc_report(reporter="evil\x00\x1b[31m\nname\u202e")
    assert read_report(message(xml)).reporter.isprintable()
    assert limit_text(" a\r\nb\0 ") == "a b"


def test_an_invalid_source_address_does_not_hide_the_row():
    report = read_report(message(dmarc_report(dmarc_row("fe80::1%eth0"), dmarc_row("not-an-address"))))
    assert [(row.source_ip, row.count) for row in report.rows] == [(None, 3), (None, 3)]


@each(("document", "reason"), [
    (dmarc_report(head=BILLION_LAUGHS), "document type"),
    (dmarc_report(head=EXTERNAL).replace(b"google.com", b"&x;"), "document type"),
    (in_utf_16(dmarc_report(head="<!DOCTYPE feedback>")), "document type"),
    (gzip.compress(bytes(MAX_INFLATED_BYTES + 1)), "20 MiB"),
    (gzip.compress(dmarc_report() + b" " * 3_000_000, 9), "200 times"),
    (zipped(bytes(MAX_INFLATED_BYTES + 1)), "20 MiB"),
    (nested(bytes(200_000_000), levels=2), "200 times"),
    (nested(dmarc_report(), levels=6), "nested deeper than 5"),
    (nested(b"", levels=500), "nested deeper than 5"),
    (zipped(dmarc_report(), dmarc_report()), "more than one file"),
    (gzip.compress(dmarc_report()) * 2, "more than one file"),
    (dmarc_report("<a>" * 5_000), "nested too deeply"),
    (dmarc_report(f"<record>{'<a/>' * 5_000}</record>"), "too many elements"),
    (dmarc_report("<record><row><count>1</count></row></record>" * 50_001), "more than 50000 rows"),
    (dmarc_report(f"<record {' '.join(map(ATTRIBUTE.format, range(100_001)))}/>"), "more than 100000 attributes"),
    (tls_report(policies=[{"policy": {}, "summary": {}, "failure-details": [{}] * 60_000}]), "more than 50000 rows"),
])  # fmt: skip
def test_a_bomb_is_refused(document, reason):
    with pytest.raises(ReportRefused, match=reason):
        read_report(message(document))


@each(("charset",), [("punycode",), ("idna",), ("unicode_escape",), ("zip",), ("x" * 40,)])
def test_a_charset_that_is_none_is_not_used(charset):
    document = dmarc_report(dmarc_row() * 4_000).replace(b"UTF-8", charset.encode()) + "<!-- é -->".encode("latin-1")
    report = read_report(message(document))
    assert len(report.rows) == 4_000


@each(("body",), [
    (b'{"policies": ' + b"[" * 100_000,), (b'{"policies": [' + b"{}," * 900_000 + b"{}]}",),
    (b'{"policies": 1' + b"0" * 10_000 + b"}",), (tls_report(policies=[]),), (tls_report(policies=[None]),),
    (tls_report(policies=[{"policy": {"mx-host": {}}, "summary": {}, "failure-details": 1}]),),
    (tls_report(**{"date-range": {}}),), (b"{}",), (b"{",),
])  # fmt: skip
def test_json_that_is_no_tls_report_is_not_counted(body):
    with pytest.raises((UnreadableReport, ReportRefused)):
        read_report(body)


@each(("source",), [
    (b"",), (b"\0",), (b"Subject: Hi\r\n\r\nHello\r\n",), (message(b"<html><body>Hello</body></html>"),),
    (message(dmarc_report()[:400]),), (message(gzip.compress(dmarc_report())[:-9]),), (message(zipped(b"x")[:20]),),
    (message(dmarc_report(dmarc_row(count=-1))),), (message(dmarc_report(dates=(10**20, 10**20))),),
    (message(dmarc_report(domain="")),), (message(dmarc_report(report_id="")),),
])  # fmt: skip
def test_another_message_is_unreadable(source):
    with pytest.raises(UnreadableReport):
        read_report(source)


def test_ten_mebibytes_of_rows_take_little_memory():
    count = 10 * 1024 * 1024 // len(dmarc_row())
    rows = "".join(dmarc_row(f"192.0.{n % 251}.{n % 241}", count=n * 7919) for n in range(count))
    source = message(gzip.compress(dmarc_report(rows)))
    tracemalloc.start()
    report = read_report(source)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(report.rows) == count > 20_000
    assert peak < 400 * 1024 * 1024


@given(st.binary(max_size=400), st.integers(0, 2_000), st.sampled_from([dmarc_report(), tls_report()]))
def test_damaged_documents_raise_only_the_documented_errors(noise, place, document):
    damaged = document[:place] + noise + document[place + len(noise) :]
    for source in (
        damaged,
        message(damaged),
        message(gzip.compress(damaged)),
        message(gzip.compress(document)[:place]),
    ):
        try:
            assert isinstance(read_report(source), ReadReport)
        except (UnreadableReport, ReportRefused):
            continue


@given(st.text(), st.integers(0, 50), st.sampled_from(["zip", "gzip"]))
def test_damaged_archives_raise_only_the_documented_errors(text, place, kind):
    archive = bytearray(zipped(dmarc_report()) if kind == "zip" else gzip.compress(dmarc_report()))
    archive[place : place + 4] = text.encode()[:4]
    with contextlib.suppress(UnreadableReport, ReportRefused):
        assert read_report(message(bytes(archive))).report_id == "r1"
