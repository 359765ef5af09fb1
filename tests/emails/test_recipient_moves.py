"""The statement that moves recipients, for every pair of statuses; and that there is no other."""

import re
import subprocess

import pytest
from django.db import transaction

from emails.models import QueueEntry, Recipient
from emails.recipient_moves import TIMES, RecipientMove, move_all_recipients, move_recipients
from emails.states import TRANSITIONS, EmailStatus
from tests.conftest import Api, mail
from tests.rows import each
from tests.stack.stack import REPOSITORY

SQL = re.compile(r"\bUPDATE\s+(?:ONLY\s+)?\"?emails_recipient\b", re.IGNORECASE)
ORM = re.compile(r"\b[Rr]ecipients?\b.{0,200}?\.(?:update\([^)]*\bstate=|bulk_update\(|state = )", re.DOTALL)
FAILURE = {"code": 550, "enhancedCode": "5.1.1", "message": "5.1.1 nobody", "reason": "unknown_user"}


@pytest.fixture
def recipients(api: Api) -> dict[EmailStatus, Recipient]:
    """Return a recipient of one email for each status."""
    with transaction.atomic():
        response = api.post("/emails/send", mail(to=[f"{status.value}@example.com" for status in EmailStatus]))
    assert response.status_code == 202, response.content
    for status in EmailStatus:
        Recipient.objects.filter(address=f"{status.value}@example.com").update(state=status)
    return {EmailStatus(recipient.state): recipient for recipient in Recipient.objects.all()}


def times_of(recipient: Recipient) -> set[str]:
    return {name for name in TIMES if getattr(recipient, name)}


def changes(recipients: dict[EmailStatus, Recipient]) -> dict[EmailStatus, tuple[str, set[str], bool]]:
    """Return status, times and reply of the recipients that changed, by their earlier status."""
    found = {}
    for before, recipient in recipients.items():
        recipient.refresh_from_db()
        change = (recipient.state, times_of(recipient), recipient.replied_at is not None)
        if change != (before, set(), False):
            found[before] = change
    return found


@each("target", EmailStatus)
def test_only_recipients_with_a_source_status_move(recipients, target):
    moved = move_recipients([RecipientMove(one.id, path=[target], failure=FAILURE) for one in recipients.values()])
    row = TRANSITIONS[target]
    assert changes(recipients) == {source: (target, set(row.times), True) for source in row.sources}
    assert moved.keys() == {recipients[source].id for source in row.sources}
    # Only a final status ends the work of the queue.
    assert QueueEntry.objects.exists() is ("finished_at" not in row.times)


@each("target", [EmailStatus.SENT, EmailStatus.BOUNCED, EmailStatus.FAILED])
def test_an_attempt_is_recorded_whatever_the_status(recipients, target):
    move_recipients([RecipientMove(one.id, path=[target], attempt=3, failure=FAILURE) for one in recipients.values()])
    row = TRANSITIONS[target]
    assert changes(recipients) == {
        before: (target if before in row.sources else before, set(row.times), True) for before in EmailStatus
    }
    assert set(Recipient.objects.values_list("attempts", "reply_code", "enhanced_code", "error_message", "reason")) == {
        (3, *FAILURE.values())
    }


def test_a_path_needs_a_source_of_its_first_status_and_ends_with_its_last(recipients):
    path = [EmailStatus.SENT, EmailStatus.DELIVERED]
    move_recipients([RecipientMove(one.id, path=path) for one in recipients.values()])
    times = {"sent_at", "delivered_at", "finished_at"}
    assert changes(recipients) == {EmailStatus.QUEUED: ("delivered", times, False)}


def test_a_time_that_is_set_is_kept(recipients):
    sent = recipients[EmailStatus.QUEUED]
    for target in (EmailStatus.SENT, EmailStatus.DELIVERED, EmailStatus.CLICKED):
        move_recipients([RecipientMove(sent.id, path=[target])])
    sent.refresh_from_db()
    finished_at, delivered_at = sent.finished_at, sent.delivered_at
    move_recipients([RecipientMove(sent.id, path=[EmailStatus.DELIVERED], attempt=1)])
    sent.refresh_from_db()
    assert (sent.state, sent.finished_at, sent.delivered_at) == ("clicked", finished_at, delivered_at)


@each("target", [EmailStatus.QUEUED, EmailStatus.CANCELLED])
def test_all_recipients_of_an_email_move_by_the_same_table(recipients, target):
    move_all_recipients([recipients[target].email_id], target=target)
    row = TRANSITIONS[target]
    assert changes(recipients) == {source: (target, set(row.times), False) for source in row.sources}


def test_no_other_statement_changes_the_status_of_a_recipient():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=REPOSITORY, check=True, capture_output=True, text=True,
    )  # fmt: skip
    product = [
        name
        for name in listed.stdout.split()
        if not name.startswith(("tests/", "benchmarks/")) and "/migrations/" not in name
    ]
    texts = {name: (REPOSITORY / name).read_text("utf-8") for name in product if (REPOSITORY / name).exists()}
    assert [name for name, text in texts.items() if SQL.search(text)] == ["emails/recipient_moves.py"]
    assert [name for name, text in texts.items() if ORM.search(text)] == []


@each("code", [
    'Recipient.objects.filter(email__in=ids, state__in=["queued"]).update(state=target, **times)',
    "email.recipients.update(state=EmailStatus.SENT)",
    "recipient.state = EmailStatus.SENT",
    'Recipient.objects.bulk_update(recipients, ["state"])',
])  # fmt: skip
def test_the_search_finds_other_ways_to_change_the_status(code):
    assert ORM.search(code)
