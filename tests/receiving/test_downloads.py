"""Downloads: exact bytes, with a key or a link, and nothing that a browser would run."""

import base64
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from core.api.transfers import content_disposition, safe_type
from receiving.inlining import with_fields
from receiving.links import RAW, download_url, read_download, webhook_expiry
from receiving.models import Message, ReceivedEmail
from receiving.source import MAX_HEADER_BYTES, without_forged_results
from tests.receiving.builders import PLAIN, arrive, make_route, receive
from tests.rows import each

pytestmark = pytest.mark.django_db

PNG = bytes(range(256)) * 3_000
SOURCE = (
    b"From: ada@example.com\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    b"--b\r\nContent-Type: text/plain\r\n\r\nHi\r\n"
    b"--b\r\nContent-Type: image/png; name=logo.png\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    + base64.encodebytes(PNG).replace(b"\n", b"\r\n")
    + b"--b\r\nContent-Type: text/html\r\nContent-Disposition: attachment; filename*=UTF-8''p%C3%A4ge%22.html\r\n\r\n"
    b"<script>alert(1)</script>\r\n"
    b"--b\r\nContent-Type: text/plain; name=a.txt\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
    b"Gr=FC=DFe=\r\n\r\n"
    b"--b--\r\n"
)


@pytest.fixture
def email(key, alice) -> ReceivedEmail:
    make_route(alice.workspace)
    return receive(SOURCE)


def fetch(url: str):
    response = Client().get(url.partition(":8000")[2])
    return response, b"".join(response.streaming_content) if response.streaming else response.content


def test_attachments_have_their_exact_bytes(key, email):
    attachments = key.get(f"/inbound/emails/{email.id}").json()["attachments"]
    contents = [PNG, b"<script>alert(1)</script>", b"Gr\xfc\xdfe"]
    wanted = [("logo.png", len(PNG)), ('p\u00e4ge".html', 25), ("a.txt", 5)]
    assert [(entry["filename"], entry["size"]) for entry in attachments] == wanted
    for entry, content in zip(attachments, contents, strict=True):
        response = key.get(f"/inbound/emails/{email.id}/attachments/{entry['id']}")
        assert b"".join(response.streaming_content) == content
        linked, body = fetch(entry["url"])
        assert (linked.status_code, body) == (200, content)
        assert linked["Content-Disposition"].startswith("attachment; ")
        assert linked["X-Content-Type-Options"] == "nosniff"
        assert linked["Content-Security-Policy"].startswith("sandbox")
    assert fetch(attachments[0]["url"])[0]["Content-Type"] == "image/png"
    page = fetch(attachments[1]["url"])[0]
    assert page["Content-Type"] == "application/octet-stream"
    assert page["Content-Disposition"].endswith("filename*=UTF-8''p%C3%A4ge_.html")
    assert key.get(f"/inbound/emails/{email.id}/attachments/att_{'0' * 22}").status_code == 404


def test_the_source_has_our_trace_in_front(key, email):
    raw = b"".join(key.get(f"/inbound/emails/{email.id}/raw").streaming_content)
    assert raw.startswith(b"Received: from mx.example.com ([192.0.2.7])")
    assert raw.endswith(SOURCE)
    linked, body = fetch(key.get(f"/inbound/emails/{email.id}").json()["raw"]["url"])
    assert (linked["Content-Type"], body) == ("message/rfc822", raw)


def test_links_expire_and_cannot_be_changed(key, email):
    now = timezone.now()
    url = download_url(email.id, RAW, expires_at=now + timedelta(seconds=30))
    assert fetch(url)[0].status_code == 200
    assert fetch(download_url(email.id, RAW, expires_at=now - timedelta(seconds=1)))[0].status_code == 404
    for place in (30, -5):
        changed = url[:place] + ("A" if url[place] != "A" else "B") + url[place + 1 :]
        assert fetch(changed)[0].status_code == 404
    assert fetch(download_url(email.id, 99, expires_at=now + timedelta(seconds=30)))[0].status_code == 404
    assert read_download(url.rpartition("/")[2], now=now).part == RAW
    assert Client().post(url.partition(":8000")[2]).status_code == 405
    key.delete(f"/inbound/emails/{email.id}")
    assert fetch(url)[0].status_code == 404


def test_urls_of_the_api_last_an_hour_and_those_of_webhooks_a_week(key, email):
    shown = key.get(f"/inbound/emails/{email.id}").json()["raw"]["urlExpiresAt"]
    assert shown[:16] in {f"{timezone.now() + timedelta(minutes=m):%Y-%m-%dT%H:%M}" for m in (59, 60)}
    at = email.received_at
    assert webhook_expiry(at, store_days=365) == at + timedelta(days=7)
    assert webhook_expiry(at, store_days=2) == at + timedelta(days=2)
    assert webhook_expiry(at, store_days=0) == at + timedelta(days=2)


@each(("declared", "sent"), [
    ("image/png", "image/png"), ("text/plain", "text/plain"), ("application/zip", "application/zip"),
    ("text/html", "application/octet-stream"), ("image/svg+xml", "application/octet-stream"),
    ("application/xhtml+xml", "application/octet-stream"), ("text/xml", "application/octet-stream"),
    ("application/pdf", "application/octet-stream"), ("text/javascript", "application/octet-stream"),
    ("text/plain; charset=x\r\nX-Injected: 1", "application/octet-stream"), ("", "application/octet-stream"),
    ("image", "application/octet-stream"),
])  # fmt: skip
def test_no_type_is_sent_that_a_browser_runs(declared, sent):
    assert safe_type(declared) == sent


@each("name", ["a\r\nX: 1", 'a"; filename=b', "../../etc/passwd", "\u202egnp.exe", "\x00"])
def test_a_file_name_cannot_leave_its_parameter(name):
    field = content_disposition(name)
    assert field.isascii()
    assert field.isprintable()
    assert field.count('"') == 2
    assert "/" not in field


# Fields that a program may take for ours, by the readers of RFC 8601 and by those that are less exact.
FORGED = {
    "plain": b"Authentication-Results: mx.demo.example; dmarc=pass",
    "white space before the colon": b"Authentication-Results \t: mx.demo.example; dmarc=pass",
    "a fold before the colon": b"Authentication-Results\r\n : mx.demo.example; dmarc=pass",
    "a folded value": b"Authentication-Results:\r\n\tmx.demo.example;\r\n\tdmarc=pass",
    "case": b"AUTHENTICATION-results:MX.Demo.Example;dmarc=pass",
    "a trailing dot and a version": b"Authentication-Results: mx.demo.example. 1; dmarc=pass",
    "a quoted name": b'Authentication-Results: "mx.demo.example"; dmarc=pass',
    "quoted pairs": b'Authentication-Results: "mx\\.demo\\.example"; dmarc=pass',
    "quoted pairs outside of quotes": b"Authentication-Results: mx\\.demo.\\example; dmarc=pass",
    "a folded quoted pair": b'Authentication-Results: "mx.demo.\\\r\n example"; dmarc=pass',
    "a name in part in quotes": b'Authentication-Results: mx."demo".example; dmarc=pass',
    "empty quotes in front": b'Authentication-Results: "" mx.demo.example; dmarc=pass',
    "comments in the name": b"Authentication-Results: mx(a (b)).demo(;).example 1; dmarc=pass",
    "white space in the name": b"Authentication-Results: mx . demo .\r\n\texample; dmarc=pass",
    "brackets and a version": b"Authentication-Results: <mx.demo.example>/1; dmarc=pass",
    "a control character": b"Authentication-Results: \x01mx.demo\x7f.example; dmarc=pass",
    "a comment in front": b"Authentication-Results: (a \\) comment)\r\n (another) mx.demo.example; dmarc=pass",
    "a comment behind": b"Authentication-Results: mx.demo.example(comment); dmarc=pass",
    "nested comments": b"Authentication-Results: (a (nested (comment))) mx.demo.example; dmarc=pass",
    "an open comment": b"Authentication-Results: ( mx.demo.example; dmarc=pass",
    "a long comment": b"Authentication-Results: (" + b"x" * 5000 + b") mx.demo.example; dmarc=pass",
    "no name": b"Authentication-Results: ; dmarc=pass",
    "an encoded word": b"Authentication-Results: =?utf-8?q?mx=2Edemo.?= =?utf-8?b?ZXhhbXBsZQ==?=; dmarc=pass",
    "NUL": b"\0Authen\0tication-Results\0:\0 mx.demo\0.example; dmarc=pass",
    "odd white space": b"\v\fAuthentication-Results\f: \v mx.demo.example; dmarc=pass",
}
FOREIGN = b"Authentication-Results: other.example (mx.demo.example); mx.demo.example=pass\r\n"


@each("end", [b"\r\n", b"\n", b"\r"])
def test_no_spelling_of_a_forged_field_is_shown(end):
    for name, field in FORGED.items():
        forged = field.replace(b"\r\n", end) + end
        for before in (b"", b"Subject: Hi" + end, FOREIGN, FOREIGN + forged):
            shown = without_forged_results(before + forged + b"To: a@b.example\r\n\r\n")
            assert shown == before.removesuffix(forged) + b"To: a@b.example\r\n\r\n", (name, before)


def test_forged_fields_are_in_no_headers(key, alice):
    """Not in those of `/v1` either, from which webhooks and the other APIs take theirs."""
    make_route(alice.workspace)
    for name, forged in FORGED.items():
        email = receive(FOREIGN + forged + b"\r\n" + PLAIN)
        headers = key.get(f"/inbound/emails/{email.id}").json()["headers"]
        found = [value for field, value in headers if field.lower() == "authentication-results"]
        assert found == [FOREIGN.partition(b": ")[2].decode().strip()], name


def test_other_fields_are_shown_as_they_were_received():
    kept = [
        FOREIGN,
        b"Authentication-Results: mx.demo.example.other.example; dmarc=pass\r\n",
        b"Authentication-Results: mx.demo.examples; dmarc=pass\r\n",
        b'Authentication-Results: "other.example" mx.demo.example; dmarc=pass\r\n',
        b"Authentication-Results: mx.demo.example=pass (mx.demo.example)\r\n",
        b"Authentication-Results: spf=pass (sender IP is 192.0.2.1) smtp.mailfrom=mx.demo.example\r\n",
        b"X-Authentication-Results: mx.demo.example; dmarc=pass\r\n",
        b"ARC-Authentication-Results: i=1; mx.demo.example; dmarc=pass\r\n",
        b"Subject: Hi\r\n Authentication-Results: mx.demo.example; dmarc=pass\r\n",
        b"Subject: \xff \0 (((\r\n",
        b"no field\r\n",
    ]
    for field in kept:
        assert without_forged_results(field + b"\r\n") == field + b"\r\n"
    assert without_forged_results(b"".join(kept)) == b"".join(kept)
    # The header is empty.
    assert without_forged_results(b"\r\n" + FORGED["plain"]) == b"\r\n" + FORGED["plain"]


def test_a_host_name_is_ours_as_u_labels_too(settings):
    settings.EHLO_NAME = "xn--bcher-kva.example"
    for name in ("b\u00fccher.example", "XN--BCHER-KVA.example"):
        assert without_forged_results(f"Authentication-Results: {name}; dmarc=pass\r\n\r\n".encode()) == b"\r\n"


@each("start", [b" ", b"\t", b"\0 ", b"\f", b"\r ", b" x: y\r\n\t", b" \r\n "])
def test_no_line_in_front_of_the_first_field_continues_ours(start):
    for forged in (b"", *FORGED.values()):
        header = forged + b"\r\n" * bool(forged) + start + b"; dkim=pass header.d=bank.example\r\n"
        assert without_forged_results(header + b"To: a@b.example\r\n\r\n") == b"To: a@b.example\r\n\r\n"
    assert without_forged_results(start + b"; dkim=pass") == b""


def test_a_header_that_is_too_long_ends_at_its_last_line_in_what_is_shown(key, alice):
    make_route(alice.workspace)
    long = b"X: " + b"x" * 995 + b"\r\n"
    whole = long * (MAX_HEADER_BYTES // len(long) + 1)
    fields = b"Subject: Hi\r\n" + long * ((MAX_HEADER_BYTES - 13) // len(long))
    forged = FORGED["plain"] + b"\r\n" + PLAIN
    for source, header in (
        (b"Subject: Hi\r\n" + whole + forged, fields),
        (fields.ljust(MAX_HEADER_BYTES, b"x") + b"\r" * 100 + forged, fields),
        (b"X:" + b"x" * MAX_HEADER_BYTES + forged, b"X:" + b"x" * (MAX_HEADER_BYTES - 2) + b"\r\n"),
    ):
        email = receive(source)
        raw = b"".join(key.get(f"/inbound/emails/{email.id}/raw").streaming_content)
        shown, _, body = raw.partition(b"\r\n\r\n")
        assert (shown + b"\r\n").endswith(header)
        assert body == source[len(header.removesuffix(b"\r\n")) :].removeprefix(b"\r\n")
        assert forged in body
        assert shown.count(b"Authentication-Results: mx.demo.example") == 1


def test_forged_fields_are_removed_before_a_message_is_read_and_if_it_cannot_be(key, alice):
    make_route(alice.workspace)
    email = arrive(b"\t; dkim=pass\r\n" + FORGED["nested comments"] + b"\r\n" + PLAIN)
    for values in ({}, {"read_at": email.received_at, "parse_errors": ["The message could not be read"]}):
        Message.objects.update(**values)
        raw = b"".join(key.get(f"/inbound/emails/{email.id}/raw").streaming_content)
        assert raw == email.message.trace.encode() + PLAIN


def test_forged_fields_of_other_services_are_removed_in_each_spelling():
    source = b"Received: by us\r\nA: 1\rX-Spam-Score: 1\r\nX-\0Spam-Score : 2\nB: 2\r\n 3\r\n\r\nX-Spam-Score: 4\r\n"
    shown = with_fields(source, [("X-Spam-Score", "9")], without={"x-spam-score"})
    assert shown == b"X-Spam-Score: 9\r\nReceived: by us\r\nA: 1\rB: 2\r\n 3\r\n\r\nX-Spam-Score: 4\r\n"
