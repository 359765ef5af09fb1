"""Downloads: exact bytes, with a key or a link, and nothing that a browser would run."""

import base64
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from api.transfers import content_disposition, safe_type
from receiving.links import RAW, download_url, read_download, webhook_expiry
from receiving.models import ReceivedEmail
from tests.conftest import Api, make_key
from tests.receiving.builders import make_route, receive

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
    assert [(entry["filename"], entry["size"]) for entry in attachments] == [
        ("logo.png", len(PNG)),
        ('p\u00e4ge".html', 25),
        ("a.txt", 5),
    ]
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


def test_another_workspace_downloads_nothing(bob, email):
    other = Api(make_key(bob.workspace))
    number = email.message.attachments[0]["id"]
    assert other.get(f"/inbound/emails/{email.id}/raw").status_code == 404
    assert other.get(f"/inbound/emails/{email.id}/attachments/{number}").status_code == 404


@pytest.mark.parametrize(
    ("declared", "sent"),
    [
        ("image/png", "image/png"),
        ("text/plain", "text/plain"),
        ("application/zip", "application/zip"),
        ("text/html", "application/octet-stream"),
        ("image/svg+xml", "application/octet-stream"),
        ("application/xhtml+xml", "application/octet-stream"),
        ("text/xml", "application/octet-stream"),
        ("application/pdf", "application/octet-stream"),
        ("text/javascript", "application/octet-stream"),
        ("text/plain; charset=x\r\nX-Injected: 1", "application/octet-stream"),
        ("", "application/octet-stream"),
        ("image", "application/octet-stream"),
    ],
)
def test_no_type_is_sent_that_a_browser_runs(declared, sent):
    assert safe_type(declared) == sent


@pytest.mark.parametrize("name", ["a\r\nX: 1", 'a"; filename=b', "../../etc/passwd", "\u202egnp.exe", "\x00"])
def test_a_file_name_cannot_leave_its_parameter(name):
    field = content_disposition(name)
    assert field.isascii()
    assert field.isprintable()
    assert field.count('"') == 2
    assert "/" not in field
