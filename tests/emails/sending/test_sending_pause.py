"""Sending pause: emails are accepted but not sent, as on a restored database."""

import pytest
from django.core.management import call_command

from config import health
from emails.models import QueueEntry
from emails.sending.sending_pause import is_sending_paused
from tests.conftest import mail
from tests.emails.builders import accept, claim_entries

pytestmark = pytest.mark.django_db


def test_nothing_is_claimed_until_sending_is_resumed(api, alice):
    accept(alice.workspace, "ada@example.com")
    call_command("hold")
    assert is_sending_paused()
    assert claim_entries() == []
    call_command("release")
    assert not is_sending_paused()
    assert len(claim_entries()) == 1


def test_pausing_and_resuming_are_idempotent(api, alice):
    for command in ("hold", "hold", "release", "release"):
        call_command(command)
    assert not is_sending_paused()


def test_emails_are_accepted_and_cancelled_while_sending_is_paused(api):
    call_command("hold")
    assert api.post("/emails/send", mail()).status_code == 202
    later = api.post("/emails/send", mail(scheduledFor="2026-12-01T00:00:00Z")).json()
    assert api.delete(f"/emails/{later['id']}").status_code == 200


def test_readiness_reports_the_pause(api, alice, settings):
    settings.READY_MAX_DELAY = 10
    accept(alice.workspace, "ada@example.com")
    call_command("hold")
    assert health.check_sending() is None
    QueueEntry.objects.update(due_at="2020-01-01T00:00:00Z")
    assert "manage.py release" in (health.check_sending() or "")
