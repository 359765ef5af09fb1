"""Sending pause: emails are accepted but not sent, as on a restored database."""

import pytest
from django.core.management import call_command
from django.db.models.functions import Now

from config import health
from config.doctor.diagnosis import DoctorOptions, Verdict
from config.doctor.installation import check_queue
from core.lib.worker.lease_queue import Stage
from core.workspaces.models import Usage
from emails.models import Email, QueueEntry, Recipient
from emails.queue_stats import read_queue_stats
from emails.sending.emails_work import EmailQueueWork
from emails.sending.scheduling import promote_due
from emails.sending.sending_checks import is_sending_paused
from events.models import Event
from tests.conftest import later
from tests.console.dashboard.conftest import signed_in
from tests.emails.builders import LATER, LONG_AGO, accept, claim_entries, counter_values, deliver, event_kinds, send
from tools.embedded.run import PAUSED

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


def test_readiness_and_doctor_report_the_pause_at_once():
    assert health.check_sending() is None
    call_command("hold")
    complaint = health.check_sending() or ""
    # bin/run, which starts a paused service, knows the sentence.
    assert complaint.startswith(f"{PAUSED} since 20")
    assert "manage.py release" in complaint
    diagnosis = check_queue(DoctorOptions())
    assert (diagnosis.verdict, diagnosis.message) == (Verdict.FAILED, complaint)
    call_command("release")
    assert health.check_sending() is None


def schedule(api, **fields) -> str:
    """Send an email whose scheduled time has passed, as in a restored database."""
    email_id = send(api, scheduledFor=later(days=1), **fields)
    QueueEntry.objects.filter(recipient__email=email_id).update(due_at=LONG_AGO, since=LONG_AGO)
    Email.objects.filter(id=email_id).update(scheduled_for=LONG_AGO)
    return email_id


def status_of(email_id: str) -> str:
    return str(Email.objects.get(id=email_id).status)


class TestWhilePaused:
    @pytest.fixture(autouse=True)
    def _paused(self, api):
        call_command("hold")

    def test_due_emails_stay_scheduled_and_can_be_cancelled(self, api):
        email_id = schedule(api, to=["ada@example.com", "eve@example.com"])
        promote_due()
        assert status_of(email_id) == "scheduled"
        assert api.delete(f"/emails/{email_id}").json()["status"] == "cancelled"
        call_command("release")
        promote_due()
        assert claim_entries() == []

    def test_due_emails_can_be_rescheduled(self, api):
        email_id = schedule(api)
        promote_due()
        assert api.patch(f"/emails/{email_id}", {"scheduledFor": later(days=5)}).status_code == 200
        call_command("release")
        promote_due()
        assert status_of(email_id) == "scheduled"

    def test_they_are_sent_after_the_release(self, api):
        email_id = schedule(api)
        promote_due()
        call_command("release")
        promote_due()
        assert status_of(email_id) == "queued"
        assert len(claim_entries()) == 1

    def test_waiting_and_leased_entries_are_not_promoted(self, api):
        for stage in (Stage.WAITING, Stage.LEASED):
            email_id = send(api)
            QueueEntry.objects.filter(recipient__email=email_id).update(stage=stage, due_at=LONG_AGO)
        promote_due()
        assert set(QueueEntry.objects.values_list("stage", flat=True)) == {Stage.WAITING, Stage.LEASED}

    def test_a_queued_email_without_an_attempt_can_be_cancelled(self, api, alice):
        email_id = send(api, to=["ada@example.com", "eve@example.com"])
        assert api.delete(f"/emails/{email_id}").status_code == 200
        assert api.delete(f"/emails/{email_id}").status_code == 200
        assert set(Recipient.objects.values_list("state", flat=True)) == {"cancelled"}
        assert event_kinds() == ["queued", "cancelled"]
        assert Usage.objects.get().used == 0
        assert counter_values()["status.cancelled"] == 1
        stats = read_queue_stats(alice.workspace)
        assert (stats.waiting, stats.delayed) == (0, 0)
        call_command("release")
        assert claim_entries() == []

    def test_a_parked_email_without_an_attempt_can_be_cancelled(self, api, alice):
        email_id = send(api)
        QueueEntry.objects.update(stage=Stage.WAITING, due_at="2030-01-01T00:00:00Z")
        assert api.delete(f"/emails/{email_id}").status_code == 200

    def test_an_email_with_an_attempt_cannot_be_cancelled(self, api):
        call_command("release")
        email_id = send(api, to=["ada@example.com", "eve@example.com"])
        deliver(LATER)
        call_command("hold")
        response = api.delete(f"/emails/{email_id}")
        assert (response.status_code, response.json()["code"]) == (409, "email_not_cancellable")
        assert QueueEntry.objects.count() == 2
        assert status_of(email_id) == "queued"

    def test_the_dashboard_offers_to_cancel_a_queued_email(self, api, alice):
        email_id = send(api)
        page = signed_in(alice.owner).get(f"/dashboard/emails/{email_id}/")
        assert f"/dashboard/emails/{email_id}/cancel/" in page.content.decode()


def reasons_of(email_id: str) -> list[str]:
    events = Event.objects.filter(email=email_id, kind="deferred").order_by("number")
    return [event.payload["reason"] for event in events]


def claim_as_a_worker() -> int:
    return len(EmailQueueWork(None, sessions=10).claim(10).jobs)


@pytest.mark.django_db(transaction=True)
class TestSecondCopies:
    """Messages that may have been sent before the database was restored."""

    def test_the_first_attempt_after_a_release_is_noted_on_the_timeline(self, api):
        queued, scheduled = send(api), schedule(api)
        call_command("hold")
        during = send(api)
        call_command("release")
        after, scheduled_after = send(api), send(api, scheduledFor=later(days=1))
        assert claim_as_a_worker() == 4
        assert reasons_of(queued) == reasons_of(scheduled) == ["sending_was_paused"]
        assert reasons_of(during) == reasons_of(after) == reasons_of(scheduled_after) == []

    def test_a_retry_is_not_noted_again(self, api):
        email_id = send(api)
        for command in ("hold", "release"):
            call_command(command)
        claim_as_a_worker()
        Recipient.objects.update(replied_at=Now())
        QueueEntry.objects.update(stage=Stage.READY)
        assert claim_as_a_worker() == 1
        assert reasons_of(email_id) == ["sending_was_paused"]

    def test_an_email_scheduled_for_later_is_not_noted(self, api):
        email_id = send(api, scheduledFor=later(days=1))
        for command in ("hold", "release"):
            call_command(command)
        QueueEntry.objects.update(stage=Stage.READY)
        assert claim_as_a_worker() == 1
        assert reasons_of(email_id) == []
