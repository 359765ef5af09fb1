"""Resend's API: domains."""

import uuid

import pytest
from django.db.models.functions import Now

from domains.models import Domain, TrackingHost
from emails.models import Email
from tests.conftest import make_key
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_resend import error
from tests.rows import each

pytestmark = pytest.mark.django_db


def create(resend: Dialect, **fields) -> dict:
    response = resend.post("/domains", {"name": "mail.example.com", **fields})
    assert response.status_code == 201, response.content
    return response.json()


def test_a_created_domain_has_the_records_to_publish(resend):
    domain = create(resend, region="eu-west-1", tls="enforced", open_tracking=True)
    assert str(uuid.UUID(domain["id"])) == domain["id"]
    assert (domain["object"], domain["name"], domain["status"]) == ("domain", "mail.example.com", "not_started")
    assert [(one["record"], one["type"]) for one in domain["records"]] == [
        ("DKIM", "TXT"), ("SPF", "TXT"), ("SPF", "CNAME"),
    ]  # fmt: skip
    assert all(isinstance(one["ttl"], str) and one["value"] for one in domain["records"])
    assert domain["capabilities"] == {"sending": "enabled", "receiving": "disabled"}
    assert Domain.objects.get(name="mail.example.com").tls == "required"


def test_a_domain_is_read_listed_and_deleted(resend):
    domain = create(resend)
    assert resend.get(f"/domains/{domain['id']}").json() == domain
    listed = resend.get("/domains").json()
    assert (listed["object"], listed["has_more"]) == ("list", False)
    assert [one["name"] for one in listed["data"]] == ["mail.example.com", "alice.example"]
    assert "records" not in listed["data"][0]
    deleted = resend.call("DELETE", f"/domains/{domain['id']}").json()
    assert deleted == {"object": "domain", "id": domain["id"], "deleted": True}
    assert error(resend.get(f"/domains/{domain['id']}")) == (404, "not_found")


def test_the_tls_policy_is_changed(resend):
    domain = create(resend)
    answer = {"object": "domain", "id": domain["id"]}
    assert resend.call("PATCH", f"/domains/{domain['id']}", {"tls": "enforced"}).json() == answer
    assert Domain.objects.get(name="mail.example.com").tls == "required"
    assert resend.call("PATCH", f"/domains/{domain['id']}", {"open_tracking": True}).json() == answer
    assert error(resend.call("PATCH", f"/domains/{domain['id']}", {"tls": "off"})) == (422, "validation_error")
    assert Domain.objects.get(name="mail.example.com").tls == "required"


def test_tracking_is_read_and_changed(resend, settings):
    settings.TRACKING_HOST = "mail.service.example"
    domain = create(resend, open_tracking=False, click_tracking=False, tracking_subdomain="links")
    assert (domain["open_tracking"], domain["click_tracking"], domain["tracking_subdomain"]) == (False, False, "links")
    record = domain["records"][-1]
    assert record == {
        "record": "Tracking", "name": "links.mail.example.com", "type": "CNAME", "ttl": "3600", "status": "pending",
        "value": "mail.service.example",
    }  # fmt: skip
    path = f"/domains/{domain['id']}"
    for changes in ({"open_tracking": True}, {"tls": "enforced"}, {"tracking_subdomain": "click"}):
        assert resend.call("PATCH", path, changes).status_code == 200
    changed = resend.get(path).json()
    assert (changed["open_tracking"], changed["click_tracking"], changed["tracking_subdomain"]) == (
        True,
        False,
        "click",
    )
    resend.call("PATCH", path, {"tracking_subdomain": None})
    assert (resend.get(path).json()["tracking_subdomain"], resend.get(path).json()["open_tracking"]) == (None, True)


def test_the_switches_decide_what_emails_track(resend):
    domain = resend.get("/domains").json()["data"][0]
    resend.call("PATCH", f"/domains/{domain['id']}", {"click_tracking": False})
    assert (
        resend.post(
            "/emails", {"from": "a@alice.example", "to": "ada@example.com", "text": "x", "subject": "x"}
        ).status_code
        == 200
    )
    email = Email.objects.get()
    assert (email.track_opens, email.track_clicks) == (True, False)


@each(
    "fields",
    [{"tracking_subdomain": "a.b"}, {"tracking_subdomain": 7}, {"open_tracking": "yes"}, {"click_tracking": 1}],
)
def test_other_values_of_tracking_are_refused(resend, fields):
    answer = resend.post("/domains", {"name": "mail.example.com", **fields})
    assert error(answer) == (422, "validation_error")
    assert f"`{next(iter(fields))}`" in answer.json()["message"]
    assert Domain.objects.count() == 1


def test_a_taken_host_registers_no_domain(resend, bob, settings):
    settings.TRACKING_HOST = "mail.service.example"
    TrackingHost.objects.create(workspace=bob.workspace, name="links.mail.example.com", proven_at=Now())
    answer = resend.post("/domains", {"name": "mail.example.com", "tracking_subdomain": "links"})
    assert error(answer) == (403, "validation_error")
    assert Domain.objects.count() == 1


def test_a_verification_requests_a_check(resend, monkeypatch):
    # No worker records the result here.
    monkeypatch.setattr("domains.check_queue.verify.MAX_WAIT_SECONDS", 0)
    domain = create(resend)
    answer = resend.post(f"/domains/{domain['id']}/verify").json()
    assert answer == {"object": "domain", "id": domain["id"]}
    assert Domain.objects.get(name="mail.example.com").checks_begun == 1


@each(
    ("body", "expected"),
    [
        ({}, (422, "missing_required_field")),
        ({"name": "not a domain"}, (422, "validation_error")),
        ({"name": "localhost"}, (422, "validation_error")),
        ({"name": "mail.example.com", "tls": "off"}, (422, "validation_error")),
        ({"name": "alice.example"}, (403, "validation_error")),
    ],
)
def test_an_invalid_domain_is_refused(resend, body, expected):
    assert error(resend.post("/domains", body)) == expected
    assert Domain.objects.count() == 1


def test_a_page_does_not_begin_after_a_foreign_domain(resend, bob):
    foreign = create(Dialect("resend", make_key(bob.workspace)))
    assert error(resend.get(f"/domains?after={foreign['id']}")) == (404, "not_found")
