"""Templates in SendGrid's API: a template, and its version with the content."""

import uuid

import pytest

from emails.models import Email
from templates_app.models import Template
from tests.interfaces.compat.test_sendgrid import error, mail
from tests.rows import each

pytestmark = pytest.mark.django_db

VERSION = {"name": "v1", "subject": "Hi {{name}}", "html_content": "<p>{{name}}</p>", "active": 1}


@pytest.fixture
def path(sendgrid) -> str:
    created = sendgrid.post("/v3/templates", {"name": "Welcome", "generation": "dynamic"})
    assert (created.status_code, created.json()["versions"]) == (201, [])
    return f"/v3/templates/{created.json()['id']}"


def test_a_template_gets_a_version_and_is_sent(sendgrid, path):
    created = sendgrid.post(f"{path}/versions", VERSION)
    version = created.json()
    assert (created.status_code, version["html_content"], version["active"]) == (201, "<p>{{name}}</p>", 1)
    template = sendgrid.get(path).json()
    assert template["versions"] == [version]
    to = {"to": [{"email": "ada@example.com"}], "dynamic_template_data": {"name": "Ada"}}
    body = mail(personalizations=[to], template_id=template["id"], content=None, subject=None)
    assert sendgrid.post("/v3/mail/send", body).status_code == 202
    assert Email.objects.get().subject == "Hi Ada"


def test_a_version_keeps_its_id_when_it_changes(sendgrid, path):
    version = sendgrid.post(f"{path}/versions", VERSION).json()
    own = f"{path}/versions/{version['id']}"
    changed = sendgrid.call("PATCH", own, {"subject": "Hello {{name}}"}).json()
    assert (changed["id"], changed["subject"]) == (version["id"], "Hello {{name}}")
    assert sendgrid.get(own).json() == changed
    assert sendgrid.post(f"{own}/activate").json() == changed
    second = sendgrid.post(f"{path}/versions", {**VERSION, "subject": "Second"}).json()
    assert (second["id"], sendgrid.get(path).json()["versions"][0]["subject"]) == (version["id"], "Second")
    assert sendgrid.call("DELETE", own).status_code == 204
    assert sendgrid.get(path).json()["versions"] == []
    assert error(sendgrid.get(own)) == (404, None)


def test_a_template_is_renamed_listed_and_deleted(sendgrid, path):
    assert sendgrid.call("PATCH", path, {"name": "Hello"}).json()["name"] == "Hello"
    assert [one["name"] for one in sendgrid.get("/v3/templates?generations=dynamic").json()["result"]] == ["Hello"]
    assert sendgrid.call("DELETE", path).status_code == 204
    assert error(sendgrid.call("DELETE", path)) == (404, None)


def test_a_template_may_have_text_only(sendgrid, path):
    version = {"subject": "Hi", "plain_content": "Hi {{name}}"}
    assert sendgrid.post(f"{path}/versions", version).json()["plain_content"] == "Hi {{name}}"


@each(
    ("change", "field"),
    [
        ({"subject": None}, "subject"),
        ({"subject": 7}, "subject"),
        ({"html_content": "<p>{{#if}}</p>"}, None),
        ({"html_content": []}, "html_content"),
        ({"active": 0}, "active"),
    ],
)
def test_an_invalid_version_is_refused(sendgrid, path, change, field):
    assert error(sendgrid.post(f"{path}/versions", VERSION | change)) == (400, field)
    assert sendgrid.get(path).json()["versions"] == []


def test_a_template_needs_a_name(sendgrid):
    for name in (None, "", 7, "a" * 101):
        assert error(sendgrid.post("/v3/templates", {"name": name})) == (400, "name")
    assert not Template.objects.exists()


def test_an_unknown_version_is_not_found(sendgrid, path):
    assert error(sendgrid.get(f"{path}/versions/{uuid.uuid4()}")) == (404, None)
