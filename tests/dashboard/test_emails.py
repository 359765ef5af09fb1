from datetime import UTC, datetime, timedelta

import pytest

from dashboard import listing
from emails.models import Event
from tests.dashboard.conftest import make_email
from workspaces.models import Usage


def test_the_list_shows_the_newest_first(owner, alice):
    now = datetime.now(UTC)
    make_email(alice.workspace, subject="Older", created_at=now - timedelta(hours=1))
    make_email(alice.workspace, subject="Newer", created_at=now)

    page = owner.get("/dashboard/emails/").content.decode()

    assert page.index("Newer") < page.index("Older")


def test_the_list_filters_by_status(owner, alice):
    make_email(alice.workspace, subject="Arrived")
    make_email(alice.workspace, subject="Came back", status="bounced")

    page = owner.get("/dashboard/emails/?status=bounced").content.decode()

    assert "Came back" in page
    assert "Arrived" not in page


def test_the_list_has_pages_and_ends_somewhere(owner, alice, monkeypatch):
    monkeypatch.setattr(listing, "MAX_PAGES", 2)
    for number in range(51):
        make_email(alice.workspace, subject=f"Number {number}")

    first, last, beyond = (owner.get(f"/dashboard/emails/?p={number}") for number in (1, 2, 3))

    assert [len(page.context["listing"].rows) for page in (first, last, beyond)] == [25, 25, 25]
    assert "Older" in first.content.decode()
    assert "Page 2; the API has all of it" in last.content.decode()
    assert "Older" not in last.content.decode()
    assert beyond.context["listing"].number == 2


def test_the_list_costs_the_same_for_many(owner, alice, django_assert_max_num_queries):
    for _ in range(25):
        make_email(alice.workspace)

    with django_assert_max_num_queries(6):
        owner.get("/dashboard/emails/")


def test_the_detail_tells_the_story(owner, alice):
    email = make_email(alice.workspace, tags=["receipt"], metadata={"order": 4711}, cc=["bo@example.com"])
    Event.objects.create(
        email=email,
        kind="deferred",
        payload={"to": "ada@example.com", "code": 450, "message": "Try again", "reason": "greylisted"},
        created_at=datetime.now(UTC),
    )

    page = owner.get(f"/dashboard/emails/{email.id}/").content.decode()

    for words in (
        "Accepted and queued",
        "another attempt follows",
        "450 Try again",
        "asks unknown senders to come back",
    ):
        assert words in page
    for fact in (email.id, "ada@example.com", "bo@example.com", "receipt", "4711"):
        assert fact in page
    assert 'sandbox=""' in page
    assert 'referrerpolicy="no-referrer"' in page


@pytest.mark.parametrize("payload", [[], "text", {"message": ["<b>", 1]}, {"to": {"a": None}}])
def test_the_detail_bears_any_payload(owner, alice, payload):
    email = make_email(alice.workspace)
    Event.objects.update(payload=payload, kind="from_tomorrow")

    assert owner.get(f"/dashboard/emails/{email.id}/").status_code == 200


def test_an_email_without_html_has_no_preview(owner, alice):
    email = make_email(alice.workspace, html="")

    assert "<iframe" not in owner.get(f"/dashboard/emails/{email.id}/").content.decode()
    assert owner.get(f"/dashboard/emails/{email.id}/preview/").status_code == 404


@pytest.mark.parametrize("path", ["add/", "{}/change/", "{}/delete/", "{}/history/"])
def test_there_is_nothing_to_change(owner, alice, path):
    email = make_email(alice.workspace)

    assert owner.get("/dashboard/emails/" + path.format(email.id)).status_code == 404


class TestOverview:
    def test_an_empty_workspace_is_told_what_to_do(self, owner):
        page = owner.get("/dashboard/").content.decode()

        assert "Three steps" in page
        assert "curl http" in page

    def test_shows_quota_and_latest(self, owner, alice):
        alice.workspace.plan = "free"
        alice.workspace.save(update_fields=["plan"])
        Usage.objects.create(workspace=alice.workspace, month=datetime.now(UTC).date().replace(day=1), used=120)
        make_email(alice.workspace, subject="The latest")

        page = owner.get("/dashboard/").content.decode()

        assert "380 left" in page
        assert "The latest" in page

    def test_says_when_sending_is_suspended(self, owner, alice):
        alice.workspace.suspended_at, alice.workspace.suspended_reason = datetime.now(UTC), "Too many complaints."
        alice.workspace.save()

        assert "Too many complaints." in owner.get("/dashboard/").content.decode()
