"""What keeps an email from being sent: no claim takes it, and `waitingFor` of the API says why."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db.models import F
from django.db.models.functions import Now

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import deferred
from core.lib.datetimes import format_datetime
from core.workspaces.key_limits import NO_LIMITS
from domains.models import DkimKey
from emails.accept.batches import create_batch, pause_batch, resume_batch
from emails.models import Email, QueueEntry, Recipient
from emails.sending.outcomes import SendResult, record_results
from emails.sending.sending_checks import find_wait, pause_sending
from emails.sending.transport_status import drain_transport
from emails.states import WaitCause
from streams.services import create_stream, pause_stream, resume_stream
from tests.conftest import later
from tests.emails.builders import (
    LATER,
    LONG_AGO,
    OK,
    PARKED,
    change_workspace,
    claim_entries,
    deliver,
    deliver_all,
    make_ready,
    send,
)
from tests.rows import each
from tests.sending_process import send_everything

pytestmark = pytest.mark.django_db
FILE = {"filename": "a.txt", "content": "aGVsbG8=", "contentType": "text/plain"}


@pytest.fixture(autouse=True)
def newsletter(alice, api):
    create_stream(alice.workspace, slug="newsletter", name="Newsletter")


def waiting_for(api, email_id):
    return api.get(f"/emails/{email_id}").json()["waitingFor"]


def cause_of(api, email_id):
    wait = waiting_for(api, email_id)
    return wait and wait["cause"]


def pause_all(workspace):
    pause_sending()


def suspend(workspace):
    change_workspace(workspace, suspended_at=Now())


def pause_newsletter(workspace):
    pause_stream(workspace, "newsletter", reason="Complaints.")


STOPS = [
    (pause_all, "sending_paused", "The operator has paused all sending."),
    (suspend, "workspace_suspended", "The workspace is suspended."),
    (pause_newsletter, "stream_paused", "The stream newsletter is paused."),
]


@each(("stop", "cause", "detail"), STOPS)
def test_a_stopped_email_says_what_it_waits_for(api, alice, sending, stop, cause, detail):
    email_id = send(api, stream="newsletter")
    assert waiting_for(api, email_id) is None
    stop(alice.workspace)
    for _ in range(2):
        wait = waiting_for(api, email_id)
        assert (wait["cause"], wait["detail"].startswith(detail)) == (cause, True)
        assert wait["since"] >= format_datetime(QueueEntry.objects.get().since)
        assert sending.claim(10).jobs == []


def test_the_first_cause_is_shown(api, alice, sending):
    email_id = send(api, stream="newsletter")
    deliver(LATER)
    for stop, _, _ in STOPS:
        stop(alice.workspace)
    assert cause_of(api, email_id) == "sending_paused"
    call_command("release")
    assert cause_of(api, email_id) == "workspace_suspended"
    change_workspace(alice.workspace, suspended_at=None)
    assert cause_of(api, email_id) == "stream_paused"
    resume_stream(alice.workspace, "newsletter")
    assert cause_of(api, email_id) == "retry"
    QueueEntry.objects.update(due_at=LONG_AGO)
    assert waiting_for(api, email_id) is None
    assert len(sending.claim(10).jobs) == 1


def test_a_deleted_workspace_is_a_cause_that_only_staff_see(api, alice, sending):
    email_id = send(api)
    change_workspace(alice.workspace, deletes_at=Now() + timedelta(days=7))
    assert sending.claim(10).jobs == []
    assert find_wait(Email.objects.get()).cause is WaitCause.WORKSPACE_DELETED
    assert api.get(f"/emails/{email_id}").status_code == 403


def test_an_email_of_a_paused_batch_waits_from_its_scheduled_time(api, alice, sending):
    email_id = send(api, scheduledFor=later(days=1))
    batch = create_batch(alice.workspace, limits=NO_LIMITS)
    Email.objects.update(batch=batch)
    pause_batch(batch, limits=NO_LIMITS)
    assert waiting_for(api, email_id) is None
    Email.objects.update(scheduled_for=LONG_AGO)
    QueueEntry.objects.update(since=LONG_AGO)
    assert sending.claim(10).jobs == []
    wait = waiting_for(api, email_id)
    assert (wait["cause"], wait["since"]) == ("batch_paused", "2020-01-01T00:00:00.000Z")
    resume_batch(batch, limits=NO_LIMITS)
    assert len(sending.claim(10).jobs) == 1


def test_a_retry_names_its_time_and_waits_since_the_last_attempt(api):
    email_id = send(api)
    deliver(LATER)
    wait = waiting_for(api, email_id)
    replied_at = format_datetime(Recipient.objects.get().replied_at)
    assert (wait["cause"], wait["since"]) == ("retry", replied_at)
    assert format_datetime(QueueEntry.objects.get().due_at) in wait["detail"]


def test_a_parked_email_waits_since_it_was_due(api):
    email_id = send(api)
    deliver_all(PARKED)
    wait = waiting_for(api, email_id)
    assert (wait["cause"], wait["since"]) == ("destination", format_datetime(QueueEntry.objects.get().since))
    make_ready()
    deliver(LATER)
    assert cause_of(api, email_id) == "retry"
    # A later version, which was replaced by this one, may have stored another cause.
    QueueEntry.objects.update(waits_for="moon")
    assert cause_of(api, email_id) == "retry"


def test_the_daily_limit_of_the_transports(api):
    email_id = send(api)
    deliver(deferred(FailureReason.DAILY_LIMIT, "The daily limit is reached."))
    assert cause_of(api, email_id) == "daily_limit"


def test_a_drained_transport(api):
    email_id = send(api)
    drain_transport("default")
    assert send_everything() == 1
    assert cause_of(api, email_id) == "transport"


def test_an_unreadable_dkim_key(api, sending):
    email_id = send(api)
    DkimKey.objects.update(sealed_private_key="gone.x")
    assert sending.claim(10).jobs == []
    assert cause_of(api, email_id) == "signing_key"


def test_memory_for_attachments(api, sending, monkeypatch):
    email_id = send(api, attachments=[FILE])
    monkeypatch.setattr("emails.sending.emails_work.MEMORY_BYTES", 0)
    assert sending.claim(10).jobs == []
    assert cause_of(api, email_id) == "memory"


def test_the_recipient_with_the_first_cause_counts(api):
    email_id = send(api, to=["ada@example.com", "eve@example.com", "bob@example.com"])
    deliver(LATER)
    deliver(PARKED)
    deliver_all()
    assert cause_of(api, email_id) in {"retry", "destination"}
    QueueEntry.objects.update(due_at=F("due_at") - timedelta(days=1))
    pause_sending()
    assert cause_of(api, email_id) == "sending_paused"


def test_an_email_that_is_scheduled_or_being_sent_or_finished_waits_for_nothing(api):
    scheduled, sent = send(api, scheduledFor=later(days=1)), send(api)
    (claim,) = claim_entries()
    pause_sending()
    assert (waiting_for(api, scheduled), waiting_for(api, sent)) == (None, None)
    # The lease of a dead worker has expired.
    QueueEntry.objects.filter(recipient__email=sent).update(due_at=LONG_AGO)
    assert cause_of(api, sent) == "sending_paused"
    record_results([SendResult(claim, OK)])
    assert waiting_for(api, sent) is None


def test_lists_do_not_show_it(api):
    email_id = send(api)
    pause_sending()
    (item,) = api.get("/emails").json()["data"]
    assert (item["id"], "waitingFor" in item) == (email_id, False)
