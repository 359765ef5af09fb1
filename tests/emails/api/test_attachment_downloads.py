"""Downloads of the attachments of sent emails: exact bytes, with a key or a link, and nothing that a browser runs."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from emails.listing.attachments import attachment_url, list_attachments
from emails.models import Content, Email
from tests.conftest import Api, mail, make_domain, make_key
from tests.interfaces.compat.conftest import Dialect

pytestmark = pytest.mark.django_db

DATA = bytes(range(256)) * 3_000
PAGE = b"<script>alert(1)</script>"
FILES = [
    {"filename": "a.png", "content": base64.b64encode(DATA).decode(), "contentType": "image/png"},
    {"filename": "p\u00e4ge.html", "content": base64.b64encode(PAGE).decode(), "contentType": "text/html"},
]


@pytest.fixture
def email_id(api: Api) -> str:
    return api.post("/emails/send", mail(attachments=FILES)).json()["id"]


def fetch(url: str):
    response = Client().get(url.partition(":8000")[2])
    return response, b"".join(response.streaming_content) if response.streaming else response.content


def test_files_have_their_exact_bytes(api, email_id):
    listed = api.get(f"/emails/{email_id}/attachments").json()["data"]
    assert [(file["filename"], file["contentType"], file["size"], file["contentId"]) for file in listed] == [
        ("a.png", "image/png", len(DATA), None), ("p\u00e4ge.html", "text/html", len(PAGE), None),
    ]  # fmt: skip
    for file, content in zip(listed, (DATA, PAGE), strict=True):
        response = api.get(f"/emails/{email_id}/attachments/{file['id']}")
        assert b"".join(response.streaming_content) == content
        linked, body = fetch(file["url"])
        assert (linked.status_code, body) == (200, content)
        assert linked["Content-Disposition"].startswith("attachment; ")
        assert linked["X-Content-Type-Options"] == "nosniff"
        assert linked["Content-Security-Policy"].startswith("sandbox")
    assert fetch(listed[0]["url"])[0]["Content-Type"] == "image/png"
    assert fetch(listed[1]["url"])[0]["Content-Type"] == "application/octet-stream"
    assert api.get(f"/emails/{email_id}/attachments/att_{'0' * 22}").status_code == 404


def test_links_expire_and_cannot_be_changed(email_id):
    email = Email.objects.get(id=email_id)
    file = list_attachments(email)[0]
    now = datetime.now(UTC)
    url = attachment_url(email, file, expires_at=now + timedelta(seconds=30))
    assert fetch(url)[0].status_code == 200
    assert fetch(attachment_url(email, file, expires_at=now - timedelta(seconds=1)))[0].status_code == 404
    for place in (-30, -5):
        changed = url[:place] + ("A" if url[place] != "A" else "B") + url[place + 1 :]
        assert fetch(changed)[0].status_code == 404
    assert Client().post(url.partition(":8000")[2]).status_code == 405


def test_without_content_there_are_no_files(api, email_id):
    (url, _) = [file["url"] for file in api.get(f"/emails/{email_id}/attachments").json()["data"]]
    Email.objects.update(content=None)
    Content.objects.all().delete()
    assert api.get(f"/emails/{email_id}/attachments").json() == {"data": []}
    assert fetch(url)[0].status_code == 404


def test_resends_api_has_download_urls(alice):
    make_domain(alice.workspace, "resend.example")
    resend = Dialect("resend", make_key(alice.workspace))
    body = {"from": "hi@resend.example", "to": "ada@example.com", "subject": "Hi", "text": "Hi"}
    files = [{"filename": "a.txt", "content": "QQ=="}, {"filename": "b.txt", "content": "Qg=="}]
    sent = resend.post("/emails", {**body, "attachments": files}).json()["id"]
    listed = resend.get(f"/emails/{sent}/attachments").json()
    first, second = listed["data"]
    assert (first["filename"], first["size"], first["content_type"]) == ("a.txt", 1, "text/plain")
    one = resend.get(f"/emails/{sent}/attachments/{second['id']}").json()
    assert (one["object"], one["id"], fetch(one["download_url"])[1]) == ("attachment", second["id"], b"B")
    page = resend.get(f"/emails/{sent}/attachments?limit=1").json()
    assert (page["has_more"], [file["id"] for file in page["data"]]) == (True, [first["id"]])
    assert resend.get(f"/emails/{sent}/attachments?after={first['id']}").json()["data"][0]["id"] == second["id"]
    assert resend.get(f"/emails/{sent}/attachments/{sent}").status_code == 404
