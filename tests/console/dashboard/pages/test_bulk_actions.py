from datetime import UTC, datetime, timedelta

import pytest

from console.dashboard.pages.emails import bulk
from core.lib.ids import new_id
from core.workspaces.models import AuditEntry
from emails.models import Email
from suppressions.models import Suppression
from tests.conftest import make_domain
from tests.console.dashboard.conftest import csv_rows, make_email, shown_text
from tests.emails.builders import accept

BULK = "/dashboard/emails/bulk/"


def post(owner, action: str, emails, **values):
    return owner.post(BULK, {"action": action, "selected": [email.id for email in emails], **values}, follow=True)


def confirm(owner, action: str, emails, **values):
    """Post the form of the confirmation page."""
    nonce = post(owner, action, emails).context["nonce"]
    return post(owner, action, emails, confirmed="1", nonce=nonce, **values)


def audited(action: str) -> list[str]:
    return list(AuditEntry.objects.filter(act=action).values_list("about", flat=True))


@pytest.fixture
def scheduled(alice):
    make_domain(alice.workspace, "alice.example")
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    for number in range(2):
        accept(alice.workspace, f"user{number}@example.com", scheduled_for=tomorrow)
    return list(Email.objects.all())


class TestSendAgain:
    def test_sends_a_copy_of_each_once(self, owner, alice):
        make_domain(alice.workspace, "alice.example")
        emails = [make_email(alice.workspace), make_email(alice.workspace)]
        nonce = post(owner, "resend", emails).context["nonce"]

        for _ in range(2):
            page = post(owner, "resend", emails, confirmed="1", nonce=nonce)

        assert "2 emails were sent again." in shown_text(page)
        assert Email.objects.count() == 4
        assert sorted(audited("email_resent")) == sorted(email.id for email in emails)

    def test_shows_each_reason_once(self, owner, alice):
        emails = [make_email(alice.workspace, from_domain="other.example") for _ in range(2)]
        make_domain(alice.workspace, "alice.example")
        sound = make_email(alice.workspace)

        page = confirm(owner, "resend", [*emails, sound])

        text = shown_text(page)
        assert "1 email was sent again." in text
        assert text.count("2 emails: ") == 1
        assert audited("email_resent") == [sound.id]


class TestCancel:
    def test_cancels_the_scheduled_ones(self, owner, alice, scheduled):
        sent = make_email(alice.workspace)

        page = confirm(owner, "cancel", [*scheduled, sent])

        assert "2 emails were cancelled." in shown_text(page)
        assert sorted(Email.objects.values_list("status", flat=True)) == ["cancelled", "cancelled", "delivered"]
        assert sorted(audited("email_cancelled")) == sorted(email.id for email in scheduled)

    def test_asks_first(self, owner, alice, scheduled):
        page = post(owner, "cancel", scheduled)

        assert "2 emails" in shown_text(page)
        assert set(Email.objects.values_list("status", flat=True)) == {"scheduled"}


class TestSuppress:
    def test_suppresses_all_recipients(self, owner, alice):
        emails = [make_email(alice.workspace), make_email(alice.workspace)]
        emails[1].recipients.update(address="Bo@example.com")

        asked = post(owner, "suppress", emails)
        page = confirm(owner, "suppress", emails)

        assert "2 addresses" in shown_text(asked)
        assert "2 addresses were suppressed." in shown_text(page)
        assert {(row.email, row.reason) for row in Suppression.objects.all()} == {
            ("ada@example.com", "manual"), ("Bo@example.com", "manual")
        }  # fmt: skip
        assert len(audited("suppression_added")) == 1


class TestExport:
    def test_has_the_selected_emails(self, owner, alice, bob):
        chosen = make_email(alice.workspace, subject="Chosen")
        make_email(alice.workspace, subject="Other")
        foreign = make_email(bob.workspace, subject="Foreign")

        rows = csv_rows(post(owner, "export", [chosen, foreign]))

        assert [row["subject"] for row in rows] == ["Chosen"]


class TestSelection:
    def test_of_nothing_or_of_foreign_emails_does_nothing(self, owner, bob):
        foreign = make_email(bob.workspace)
        for action in ("resend", "cancel", "suppress", "export", "nonsense", ""):
            page = post(owner, action, [], query="status=bounced&p=2")
            assert "Select emails first." in shown_text(page), action
            assert page.redirect_chain[-1][0] == "/dashboard/emails/?status=bounced", action
        for action in ("resend", "cancel", "suppress"):
            page = post(owner, action, [foreign], confirmed="1", nonce="x")
            assert "Select emails first." in shown_text(page), action
        assert not Suppression.objects.exists()

    def test_with_an_invalid_id_is_not_found(self, owner, alice):
        assert owner.post(BULK, {"action": "cancel", "selected": ["nonsense"]}).status_code == 404
        assert owner.post(BULK, {"action": "cancel", "selected": [new_id()]}).status_code == 302

    def test_is_limited(self, owner, alice, monkeypatch):
        monkeypatch.setattr("console.dashboard.pages.emails.section.MAX_SELECTED", 2)
        emails = [make_email(alice.workspace) for _ in range(3)]

        assert "2 emails" in shown_text(post(owner, "cancel", emails))
        assert bulk.MAX_SELECTED == 100


def test_actions_on_one_email_are_audited_too(owner, scheduled):
    email = scheduled[0]
    for path, action in (("resend", "email_resent"), ("cancel", "email_cancelled")):
        owner.post(f"/dashboard/emails/{email.id}/{path}/", {"nonce": "one"})
        assert audited(action) == [email.id]
