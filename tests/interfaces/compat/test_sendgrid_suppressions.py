"""Suppressions in SendGrid's API: one list for each reason, and the global unsubscribes."""

import time

import pytest

from suppressions.models import Suppression
from suppressions.services import suppress_addresses
from tests.conftest import make_key
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_sendgrid import error
from tests.rows import each

pytestmark = pytest.mark.django_db


@pytest.fixture
def bounced(alice, key) -> list[str]:
    addresses = [f"gone{number}@example.com" for number in range(3)]
    suppress_addresses(alice.workspace, addresses=addresses, reason="bounce")
    suppress_addresses(alice.workspace, addresses=["angry@example.com"], reason="complaint")
    return addresses


def emails(response) -> set[str]:
    return {entry["email"] for entry in response.json()}


def test_suppressions_are_listed_by_reason_and_deleted(sendgrid, bounced):
    assert emails(sendgrid.get("/v3/suppression/bounces")) == set(bounced)
    assert emails(sendgrid.get("/v3/suppression/spam_reports")) == {"angry@example.com"}
    for name in ("blocks", "invalid_emails", "unsubscribes"):
        assert sendgrid.get(f"/v3/suppression/{name}").json() == []
    (bounce,) = sendgrid.get("/v3/suppression/bounces/Gone1@example.com").json()
    assert (bounce["email"], type(bounce["created"])) == ("gone1@example.com", int)
    assert sendgrid.call("DELETE", "/v3/suppression/bounces/gone1@example.com").status_code == 204
    assert error(sendgrid.call("DELETE", "/v3/suppression/bounces/gone1@example.com")) == (404, None)
    assert error(sendgrid.call("DELETE", "/v3/suppression/bounces/angry@example.com")) == (404, None)


def test_a_list_is_paged_and_limited_to_a_time(sendgrid, bounced):
    pages = [emails(sendgrid.get(f"/v3/suppression/bounces?limit=2&offset={offset}")) for offset in (0, 2)]
    assert (len(pages[0]), pages[0] | pages[1]) == (2, set(bounced))
    now = int(time.time())
    assert len(emails(sendgrid.get(f"/v3/suppression/bounces?start_time={now - 60}&end_time={now + 60}"))) == 3
    assert not emails(sendgrid.get(f"/v3/suppression/bounces?start_time={now + 60}"))
    for query in ("limit=501", "limit=0", "offset=10001", "start_time=soon", "limit=-1"):
        assert sendgrid.get(f"/v3/suppression/bounces?{query}").status_code == 400


def test_several_or_all_entries_of_a_list_are_deleted(sendgrid, bounced):
    some = {"emails": [bounced[0], "angry@example.com", "unknown@example.com"]}
    assert sendgrid.call("DELETE", "/v3/suppression/bounces", some).status_code == 204
    assert emails(sendgrid.get("/v3/suppression/bounces")) == set(bounced[1:])
    assert sendgrid.call("DELETE", "/v3/suppression/bounces", {"delete_all": True}).status_code == 204
    assert list(Suppression.objects.values_list("email", flat=True)) == ["angry@example.com"]


def test_spam_reports_are_read_and_deleted(sendgrid, bounced, alice):
    suppress_addresses(alice.workspace, addresses=["cross@example.com"], reason="complaint")
    path = "/v3/suppression/spam_reports"
    assert emails(sendgrid.get(f"{path}/Angry@example.com")) == {"angry@example.com"}
    assert sendgrid.call("DELETE", f"{path}/angry@example.com").status_code == 204
    assert sendgrid.get(f"{path}/angry@example.com").json() == []
    assert emails(sendgrid.get(path)) == {"cross@example.com"}
    assert sendgrid.call("DELETE", path, {"delete_all": True}).status_code == 204
    assert set(Suppression.objects.values_list("email", flat=True)) == set(bounced)


@each("name", ["blocks", "invalid_emails"])
def test_a_list_without_a_reason_is_empty_and_deletes_nothing(sendgrid, bounced, name):
    path = f"/v3/suppression/{name}"
    assert sendgrid.get(f"{path}/{bounced[0]}").json() == []
    assert error(sendgrid.call("DELETE", f"{path}/{bounced[0]}")) == (404, None)
    for body in ({"delete_all": True}, {"emails": bounced}):
        assert sendgrid.call("DELETE", path, body).status_code == 204
    assert Suppression.objects.count() == 4


def test_a_long_list_is_not_deleted_at_once(sendgrid, bounced, monkeypatch):
    monkeypatch.setattr("interfaces.compat.sendgrid.suppressions.MAX_ADDRESSES", 2)
    assert error(sendgrid.call("DELETE", "/v3/suppression/bounces", {"delete_all": True})) == (400, "delete_all")
    assert Suppression.objects.count() == 4


def test_global_unsubscribes_are_added_read_and_deleted(sendgrid):
    added = sendgrid.post("/v3/asm/suppressions/global", {"recipient_emails": ["Ada@example.com", "bob@example.com"]})
    assert (added.status_code, added.json()["recipient_emails"][1]) == (201, "bob@example.com")
    path = "/v3/asm/suppressions/global/ada@example.com"
    assert sendgrid.get(path).json() == {"recipient_email": "Ada@example.com"}
    assert "bob@example.com" in emails(sendgrid.get("/v3/suppression/unsubscribes"))
    assert sendgrid.call("DELETE", path).status_code == 204
    assert sendgrid.get(path).json() == {}
    for body in ({}, {"recipient_emails": ["nobody"]}, {"recipient_emails": "ada@example.com"}):
        assert sendgrid.post("/v3/asm/suppressions/global", body).status_code == 400


def test_a_bounce_is_not_deleted_as_an_unsubscribe(sendgrid, bounced):
    assert error(sendgrid.call("DELETE", f"/v3/asm/suppressions/global/{bounced[0]}")) == (404, None)
    assert sendgrid.get(f"/v3/asm/suppressions/global/{bounced[0]}").json() == {}


def test_a_list_of_another_workspace_is_not_deleted(bounced, bob):
    stranger = Dialect("sendgrid", make_key(bob.workspace))
    stranger.call("DELETE", "/v3/suppression/bounces", {"delete_all": True})
    assert Suppression.objects.count() == 4
