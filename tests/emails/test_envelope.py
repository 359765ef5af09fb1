"""Drafts with an envelope: To and Cc name addresses that do not receive the message."""

from core.lib.email_addresses import Address
from core.workspaces.key_limits import NO_LIMITS
from core.workspaces.quota import read_quota
from emails.accept.drafts import Draft
from emails.accept.services import resend_email, send_email
from emails.models import Email, Entrance, Recipient
from emails.sending.scheduling import cancel_email
from suppressions.services import suppress_address

ADA, BOB, EVE = (Address("", f"{name}@example.com") for name in ("Ada", "bob", "eve"))


def send(workspace, **fields):
    values = {"to": (ADA,), "cc": (BOB,), "bcc": (EVE,), "envelope": frozenset({"ada@example.com", "eve@example.com"})}
    draft = Draft(sender=Address("", "hi@alice.example"), subject="Hello", text="Hi", **values, **fields)
    return Email.objects.get(id=send_email(workspace, draft=draft, key=None, limits=NO_LIMITS).body["id"])


def test_only_addresses_of_the_envelope_are_recipients(workspace):
    email = send(workspace)
    assert (email.to, email.cc, email.bcc) == (["Ada@example.com"], ["bob@example.com"], ["eve@example.com"])
    recipients = list(email.recipients.values_list("kind", "address"))
    assert recipients == [("to", "Ada@example.com"), ("bcc", "eve@example.com")]


def test_a_suppressed_address_outside_the_envelope_refuses_nothing(workspace):
    suppress_address(workspace, address="bob@example.com", reason="bounce")
    assert send(workspace)


def test_a_copy_has_the_same_recipients(workspace):
    copy_id = resend_email(
        workspace, email=send(workspace), key=None, limits=NO_LIMITS, entrance=Entrance.DASHBOARD
    ).body["id"]
    addresses = Recipient.objects.filter(email_id=copy_id).values_list("address", flat=True)
    assert list(addresses) == ["Ada@example.com", "eve@example.com"]


def test_quota_is_taken_and_refunded_by_recipient(workspace, settings):
    from datetime import UTC, datetime, timedelta

    settings.QUOTA_UNIT = "recipient"
    email = send(workspace, scheduled_for=datetime.now(UTC) + timedelta(hours=1))
    assert read_quota(workspace).used == 2
    cancel_email(email, limits=NO_LIMITS)
    assert read_quota(workspace).used == 0
