"""RECIPIENTS: no recipient gets an email of an installation that captures or redirects (docs/decisions/0387)."""

import email as parser
import re
from datetime import UTC, datetime, timedelta

import pytest
from aiosmtpd.controller import Controller
from django.conf import LazySettings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.counters.models import CounterDelta
from core.delivery.recipients import read_recipients
from core.lib.ids import to_uuid
from core.workspaces.models import Usage
from core.workspaces.quota import read_quota
from emails.feedback.opens_and_clicks import Hit, record_hits
from emails.feedback.reports import ReportedEvent, record_reports
from emails.feedback.unsubscribe import unsubscribe
from emails.links import UnsubscribeLink
from emails.models import Email, QueueEntry, Recipient
from emails.sending.emails_work import EmailQueueWork
from emails.sending.outcomes import SendResult, record_results
from emails.sending.outgoing_messages import rebuild_message
from emails.sending.transports import configured_transport
from emails.upkeep.reconcile import count_slice_differences, find_differences
from emails.upkeep.retention import delete_emails
from events.kinds import EventKind
from interfaces.inbound.inbox.models import CaughtMail
from suppressions.models import Suppression
from tests.conftest import Account, Api, make_domain, make_key
from tests.emails.builders import LATER, SENT, claim_entries, event_kinds, send
from tests.entrances import ENTRANCES, TEMPLATED, TO, in_an_hour, make_template, sendgrid_batch
from tests.events.feed import publish_committed
from tests.sending_process import relay_to_mail_host, send_everything
from tests.stack.stack import free_port
from webhooks.models import WebhookEvent

# The inbox is written by another thread.
pytestmark = pytest.mark.django_db(transaction=True)

DOMAIN = "alice.example"
QA = "qa@test-team.example"
CAPTURED, REDIRECTED, ALL = "captured", f"redirect:{QA}", "all"


@pytest.fixture
def account(alice: Account) -> Account:
    make_domain(alice.workspace, DOMAIN)
    make_template(alice.workspace, "welcome")
    return alice


@pytest.fixture
def api(account: Account) -> Api:
    return Api(make_key(account.workspace))


@pytest.fixture
def host(settings):
    with relay_to_mail_host(settings) as host:
        yield host


class Refusing:
    """The handler of a mail host that knows nobody."""

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802
        return "550 5.1.1 no such user"


def switch(settings: LazySettings, value: str) -> None:
    settings.RECIPIENTS = read_recipients(value)


def differences(account: Account) -> list[str]:
    """Return the wrong counters of emails; those of the queue are, because send_everything makes entries due."""
    return [one.key for one in find_differences(account.workspace.id) if not one.key.startswith("recipients.")]


def captured() -> list[str]:
    return sorted(CaughtMail.objects.filter(is_captured=True).values_list("recipient", flat=True))


@pytest.mark.parametrize("name", [name for name in ENTRANCES if name != "dry run"])
def test_an_email_of_any_entrance_goes_to_the_inbox(account, settings, host, name):
    switch(settings, CAPTURED)
    key = make_key(account.workspace)
    response = ENTRANCES[name](key, DOMAIN, "welcome" if name in TEMPLATED else None, TO)
    assert response.status_code in {200, 202}, response.content
    assert send_everything() == 1
    assert (host.connections, captured()) == (0, [TO])
    email = Email.objects.get()
    assert (email.status, email.is_diverted) == ("delivered", True)
    assert not Usage.objects.filter(used__gt=0).exists()


@pytest.mark.parametrize("name", [name for name in ENTRANCES if name != "dry run"])
def test_an_email_of_any_entrance_is_redirected(account, settings, host, name):
    switch(settings, REDIRECTED)
    ENTRANCES[name](make_key(account.workspace), DOMAIN, "welcome" if name in TEMPLATED else None, TO)
    assert send_everything() == 1
    (message,) = host.messages
    assert (host.recipients, parser.message_from_bytes(message)["X-Postrider-Recipient"]) == ([QA], TO)
    assert not CaughtMail.objects.exists()


def test_every_kind_of_recipient_is_captured_with_the_bytes_that_would_have_left(api, settings, host):
    fields = {
        "to": ["Ada <Ada@Example.COM>", '"eve"@example.com'],
        "cc": ["grüße@münchen.example.org", "ada+tag@example.com"],
        "bcc": ["secret@xn--bcher-kva.example.net"],
        "html": "<a href='https://shop.example'>Buy</a>",
    }
    send(api, **fields)
    switch(settings, CAPTURED)
    assert send_everything() == 5
    assert host.connections == 0
    assert captured() == sorted(recipient.address for recipient in Recipient.objects.all())
    sources = {mail.recipient: bytes(mail.source) for mail in CaughtMail.objects.all()}
    assert sources == {one.address: rebuild_message(one) for one in Recipient.objects.select_related("email")}
    assert b"DKIM-Signature" in sources["ada+tag@example.com"]
    assert {mail.workspace_id for mail in CaughtMail.objects.all()} == {Email.objects.get().workspace_id}


class TestRestored:
    """A database whose emails were accepted by the production system."""

    @pytest.fixture
    def queue(self, account, api) -> list[str]:
        """Return the recipients of a schedule, a batch of schedules, a retry and a claim that was never recorded."""
        send(api, to="scheduled@example.com", scheduledFor=in_an_hour())
        sendgrid_batch(make_key(account.workspace), DOMAIN)
        send(api, to="retried@example.com", cc=["also@example.com"])
        record_results([SendResult(claim, LATER) for claim in claim_entries()])
        send(api, to="claimed@example.com")
        (claimed,) = claim_entries()
        QueueEntry.objects.filter(recipient=claimed.key).update(due_at=datetime.now(UTC) - timedelta(seconds=1))
        send(api, to="ready@example.com")
        return sorted(Recipient.objects.values_list("address", flat=True))

    @pytest.mark.parametrize("value", [CAPTURED, REDIRECTED])
    def test_nothing_that_is_due_reaches_its_recipient(self, queue, settings, host, value):
        switch(settings, value)
        for _ in range(3):
            send_everything()
        assert not QueueEntry.objects.exists()
        assert {*host.recipients} == ({QA} if value == REDIRECTED else set())
        assert captured() == (queue if value == CAPTURED else [])
        assert {email.status for email in Email.objects.all()} == {"delivered" if value == CAPTURED else "sent"}

    def test_counts_and_quota_are_those_of_emails_that_nobody_got(self, account, queue, settings, host):
        assert read_quota(account.workspace).used == 5
        switch(settings, CAPTURED)
        for _ in range(3):
            send_everything()
        assert read_quota(account.workspace).used == 0
        totals: dict[str, int] = {}
        for delta in CounterDelta.objects.filter(workspace_id=account.workspace.id):
            totals[delta.key] = totals.get(delta.key, 0) + delta.change
        assert {key: n for key, n in totals.items() if n and key.startswith(("status.", "reached.", "rated."))} == {}
        assert totals["diverted.status.delivered"] == 5
        assert differences(account) == []
        assert count_slice_differences(account.workspace.id) == 0
        assert Api(make_key(account.workspace)).get("/emails").json()["total"] == 5

    def test_an_email_of_which_a_message_has_left_stays_counted(self, api, account, settings, host):
        send(api, to="left@example.com", cc=["waits@example.com"])
        first, second = claim_entries()
        record_results([SendResult(first, SENT), SendResult(second, LATER)])
        switch(settings, CAPTURED)
        send_everything()
        assert len(captured()) == 1
        email = Email.objects.get()
        assert email.is_diverted is False
        assert [one.diversion for one in email.recipients.order_by("sent_at", "position")].count("captured") == 1
        assert differences(account) == []


def test_an_email_that_was_accepted_while_nothing_left_does_not_leave_later(api, settings, host):
    switch(settings, REDIRECTED)
    send(api, scheduledFor=in_an_hour())
    switch(settings, ALL)
    send_everything()
    assert (host.connections, captured()) == (0, [TO])
    send(api, to="live@example.com")
    send_everything()
    assert host.recipients == ["live@example.com"]


def test_a_copy_is_judged_by_the_present_setting(api, settings, host):
    email_id = send(api)
    send_everything()
    switch(settings, CAPTURED)
    assert api.post(f"/emails/{email_id}/resend").status_code == 202
    send_everything()
    assert (host.recipients, captured()) == ([TO], [TO])
    switch(settings, ALL)
    copy = Email.objects.latest("created_at")
    assert api.post(f"/emails/{copy.id}/resend").status_code == 202
    send_everything()
    assert host.recipients == [TO, TO]


def test_a_redirected_message_has_no_link_of_its_recipient(api, settings, host):
    fields = {
        "html": '<a href="https://shop.example/">Buy</a> <a href="%unsubscribe_url%">Bye</a>',
        "text": "Buy: https://shop.example/ %unsubscribe_url%",
        "headers": {"List-Unsubscribe": "<https://shop.example/bye>", "x-postrider-recipient": "eve@example.com"},
    }
    response = api.post("/emails/send", {"from": f"hi@{DOMAIN}", "to": TO, "subject": "Hi", **fields})
    if response.status_code == 422:
        del fields["headers"]["List-Unsubscribe"]
        assert send(api, **fields)
    switch(settings, REDIRECTED)
    send_everything()
    (source,) = host.messages
    message = parser.message_from_bytes(source)
    assert message.get_all("X-Postrider-Recipient") == [TO]
    assert message["To"] == TO
    assert message["List-Unsubscribe"] is None
    bodies = "".join(
        part.get_payload(decode=True).decode()
        for part in message.walk()
        if not part.is_multipart()  # type: ignore[union-attr]
    )
    links = {*re.findall(r"https?://[^\s\"'<>]+", bodies)}
    assert links == {"https://shop.example/", settings.PUBLIC_URL}
    assert rebuild_message(Recipient.objects.select_related("email").get()) == source


@pytest.mark.parametrize("value", [CAPTURED, REDIRECTED])
def test_what_a_reader_does_changes_nothing_for_the_recipient(api, account, settings, host, value):
    email_id = send(api, tags=["news"])
    switch(settings, value)
    send_everything()
    recipient = Recipient.objects.get()
    record_reports([ReportedEvent(recipient.id, EventKind.COMPLAINED)])
    record_reports([ReportedEvent(recipient.id, EventKind.BOUNCED, is_recipient_fault=True)])
    record_hits([Hit(recipient.id, url="https://shop.example/")])
    unsubscribe(UnsubscribeLink(recipient_id=recipient.id, workspace_id=account.workspace.id, address=TO))
    assert {"complained", "unsubscribed"} <= {*event_kinds(email_id)}
    assert not Suppression.objects.exists()
    deltas = CounterDelta.objects.filter(workspace_id=account.workspace.id)
    assert not deltas.filter(key__startswith="rated.").exists()
    assert not deltas.filter(key__startswith="reached.").exists()
    assert differences(account) == []
    delete_emails(account.workspace.id, [to_uuid(email_id)])
    assert differences(account) == []


def test_a_refusal_of_the_other_address_suppresses_nobody(api, settings):
    refusing = Controller(Refusing(), hostname="127.0.0.1", port=free_port())
    refusing.start()
    try:
        settings.DELIVERY_TRANSPORT, settings.SMTP_URL = "smtp", f"smtp://127.0.0.1:{refusing.port}"
        settings.SUPPRESS_ON = "every_bounce"
        switch(settings, REDIRECTED)
        send(api)
        send_everything()
    finally:
        refusing.stop()
    assert Email.objects.get().status == "bounced"
    assert not Suppression.objects.exists()


def test_without_a_diversion_a_claim_has_no_further_statement(api, settings, host):
    counts = {}
    for value in (ALL, CAPTURED):
        switch(settings, ALL)
        send(api), send(api, to="eve@example.com")
        switch(settings, value)
        work = EmailQueueWork(configured_transport(), sessions=50)
        with CaptureQueriesContext(connection) as queries:
            assert len(work.claim(50).jobs) == 2
        counts[value] = [query["sql"] for query in queries if "diversion = locked" in query["sql"]]
    assert (len(counts[ALL]), len(counts[CAPTURED])) == (0, 1)


def test_simulated_recipients_and_test_emails_stay_with_the_simulator(api, account, settings, host):
    switch(settings, CAPTURED)
    bounced = send(api, to="bounced@simulator.test")
    send_everything()
    assert (host.connections, captured()) == (0, [])
    assert Email.objects.get(id=bounced).status == "bounced"


@pytest.mark.parametrize(("value", "member"), [(CAPTURED, "captured"), (REDIRECTED, "redirected")])
def test_events_and_webhooks_say_so(api, settings, host, value, member):
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True
    assert api.post("/webhooks", {"url": "http://127.0.0.1:9/hook", "events": ["sent"]}).status_code == 201
    switch(settings, value)
    email_id = send(api)
    send_everything()
    events = api.get(f"/emails/{email_id}/events").json()["data"]
    told = {event["eventType"]: event["payload"].get(member) for event in events}
    assert told.pop("queued") is None
    assert set(told.values()) == {True}
    publish_committed()
    assert f'"{member}":true' in WebhookEvent.objects.get().body.replace(": ", ":")


@pytest.mark.parametrize("value", [ALL, CAPTURED, REDIRECTED])
def test_a_key_shows_the_setting(api, settings, value):
    switch(settings, value)
    assert api.get("/me").json()["recipients"] == value
