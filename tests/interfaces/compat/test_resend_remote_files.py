"""Attachments that an email of Resend's API names by URL."""

import pytest

from emails.models import Attachment, Email
from tests.interfaces.compat.test_resend import error, mail
from tests.rows import each
from tests.webhooks.receiver import Receiver, drip, silence, status

pytestmark = pytest.mark.django_db


@pytest.fixture
def files():
    with Receiver() as receiver:
        yield receiver


def send(resend, *attachments: dict, **headers: str):
    return resend.post("/emails", mail(attachments=list(attachments)), **headers)


def test_a_file_is_fetched_when_the_email_is_accepted(resend, files):
    files.answers["/invoices/7.pdf"] = status(200, body=b"%PDF-1.7")
    named = {"path": files.url("/invoices/7.pdf"), "filename": "invoice.pdf"}
    response = send(resend, {"path": files.url("/invoices/7.pdf")}, {"content": "QQ==", "filename": "a.txt"}, named)
    assert response.status_code == 200, response.content
    stored = [(file.filename, file.content_type, bytes(file.data)) for file in Attachment.objects.all()]
    pdf = ("application/pdf", b"%PDF-1.7")
    assert stored == [("7.pdf", *pdf), ("a.txt", "text/plain", b"A"), ("invoice.pdf", *pdf)]


def test_a_repeated_request_fetches_nothing(resend, files):
    first = send(resend, {"path": files.url("/a.txt")}, idempotency_key="k").json()
    assert send(resend, {"path": files.url("/a.txt")}, idempotency_key="k").json() == first
    assert len(files.received) == 1


def test_an_invalid_email_fetches_nothing(resend, files):
    refused = resend.post("/emails", mail(to=["nobody"], attachments=[{"path": files.url("/a.txt")}]))
    assert (refused.status_code, files.received) == (422, [])


@pytest.mark.parametrize(
    "answer",
    [status(404), status(302, "Location: http://127.0.0.1/"), status(200, body=b"a" * (10 * 1024 * 1024 + 1)), silence,
     drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", every_seconds=0.2)],
    ids=["missing", "redirect", "large", "silence", "drip"],
)  # fmt: skip
def test_a_file_that_cannot_be_fetched_is_refused(resend, files, answer, monkeypatch):
    monkeypatch.setattr("interfaces.compat.resend.remote_files.MAX_SECONDS", 1.0)
    files.answer = answer
    assert error(send(resend, {"path": files.url("/a.txt")})) == (422, "invalid_attachment")
    assert not Email.objects.exists()


@each(
    "attachment",
    [{"path": "http://127.0.0.1:1/a.txt"}, {"path": "ftp://example.com/a"}, {"path": "a.txt"}, {"path": 7},
     {"path": "https://example.com/a", "content": "QQ=="}, {"path": "https://user@example.com/a"}],
)  # fmt: skip
def test_an_invalid_path_is_refused(resend, attachment):
    assert error(send(resend, attachment)) == (422, "invalid_attachment")


@each("url", ["https://10.0.0.1/a", "https://[::1]/a", "https://localhost/a", "https://169.254.1.1/a"])
def test_private_addresses_are_refused(resend, url, settings):
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = False
    refused = send(resend, {"path": url})
    assert error(refused) == (422, "invalid_attachment")
    assert "could not be fetched" in refused.json()["message"]
