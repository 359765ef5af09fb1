"""Batches of emails, and requests that meet."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

from core.api.errors import InvalidFields
from core.lib.email_addresses import parse_recipient
from core.workspaces.key_limits import NO_LIMITS
from emails.accept.batches import cancel_batch, create_batch, pause_batch, resume_batch
from emails.accept.drafts import Draft
from emails.accept.services import accept_emails
from emails.models import Email, EmailBatch, QueueEntry
from tests.conftest import make_domain
from tests.rows import each
from tests.threads import own_connection


def accept(batch: EmailBatch, *recipients: str) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    sender = parse_recipient("hi@alice.example")
    drafts = [
        Draft(sender, (parse_recipient(one),), "Hi", text="Hi", scheduled_for=later, batch_id=batch.id)
        for one in recipients
    ]
    accept_emails(batch.workspace, drafts=drafts, key=None, limits=NO_LIMITS, all_or_nothing=True)


@pytest.fixture
def batch(alice) -> EmailBatch:
    make_domain(alice.workspace, "alice.example")
    return create_batch(alice.workspace, limits=NO_LIMITS)


@pytest.mark.django_db(transaction=True)
def test_a_cancellation_waits_for_emails_that_are_being_accepted(batch):
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            accept(batch, "ada@example.com")
            cancelling = pool.submit(own_connection(lambda: cancel_batch(batch, limits=NO_LIMITS)))
        cancelling.result(timeout=60)
    assert list(Email.objects.values_list("status", flat=True)) == ["cancelled"]
    with pytest.raises(InvalidFields):
        accept(batch, "bob@example.com")
    assert Email.objects.count() == 1


@pytest.mark.django_db
def test_a_pause_moves_the_entries_of_its_batch_only(batch):
    other = create_batch(batch.workspace, limits=NO_LIMITS)
    accept(batch, "ada@example.com", "bob@example.com")
    accept(other, "carol@example.com")
    due = dict(QueueEntry.objects.values_list("recipient__address", "due_at"))
    pause_batch(batch, limits=NO_LIMITS)
    paused = dict(QueueEntry.objects.values_list("recipient__address", "due_at"))
    assert {address for address, at in paused.items() if at.year == 9999} == {"ada@example.com", "bob@example.com"}
    resume_batch(batch, limits=NO_LIMITS)
    assert dict(QueueEntry.objects.values_list("recipient__address", "due_at")) == due


@pytest.mark.django_db
@each("change", [pause_batch, cancel_batch])
def test_a_change_is_made_once(batch, change):
    change(batch, limits=NO_LIMITS)
    with pytest.raises(InvalidFields):
        change(batch, limits=NO_LIMITS)


@pytest.mark.django_db
def test_cancelling_takes_a_fixed_number_of_statements(batch, django_assert_max_num_queries):
    accept(batch, *[f"user{number}@example.com" for number in range(50)])
    with django_assert_max_num_queries(22):
        cancel_batch(batch, limits=NO_LIMITS)
    assert not QueueEntry.objects.exists()
