"""Erasure of an address: afterwards no table of the database contains it."""

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from core.workspaces.models import AuditEntry
from emails.models import Acceptance, Email
from interfaces.inbound.inbox.models import CaughtMail
from interfaces.inbound.models import MailReport, ProviderReport
from suppressions.models import Suppression
from suppressions.services import find_suppressed
from tests.conftest import mail, make_domain, make_key
from tests.emails.builders import deliver_all, send
from tests.events.feed import publish_committed
from tests.interfaces.submission.fixtures import run_submission
from webhooks.models import PendingDelivery, WebhookDelivery, WebhookEvent
from webhooks.services import create_webhook

pytestmark = pytest.mark.django_db


def erase(address, capsys):
    call_command("erase_address", address)
    return capsys.readouterr().out


def tables_containing(address: str) -> set[str]:
    """Return the tables in which any column contains the address."""
    found = set()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT count(*) FROM "{table}" t WHERE t::text ILIKE %s', [f"%{address}%"])
            if cursor.fetchone()[0]:
                found.add(table)
    return found


def test_nothing_with_an_erased_address_is_left(api, alice, capsys):
    create_webhook(alice.workspace, url="http://127.0.0.1:9/hook", events=["sent", "delivered"])
    body = {
        "from": "x@alice.example",
        "templateId": api.post("/templates", {"name": "t", "subject": "s", "htmlContent": "<p>Hi</p>"}).json()["id"],
        "recipients": [{"to": "Ada@Example.com"}, {"to": "xada@example.com"}],
    }
    assert api.post("/emails/batch", body, idempotency_key="k").status_code == 202
    send(api, to=["bob@example.com"], cc=["ada@example.com"], subject="For ada@example.com")
    deliver_all()
    publish_committed()
    Suppression.objects.create(workspace=alice.workspace, email="ada@example.com", address_key="ada@example.com")
    assert {"emails_email", "webhooks_webhookevent", "emails_acceptance"} <= tables_containing("ada@example.com")

    assert erase("ADA@example.com", capsys) == "2 emails erased.\n"

    WebhookEvent.objects.filter(body__contains="xada@example.com").delete()
    assert Email.objects.get().to == ["xada@example.com"]
    Email.objects.all().delete()
    (acceptance,) = Acceptance.objects.all()
    assert [one["to"] for one in acceptance.answer["emails"]] == ["erased@invalid", "xada@example.com"]
    acceptance.delete()
    assert tables_containing("ada@example.com") == set()
    assert find_suppressed(alice.workspace.id, ["ada@example.com"])


@pytest.mark.django_db(transaction=True)
def test_submitted_messages_that_only_name_the_address_are_erased(alice, settings, capsys):
    make_domain(alice.workspace, "alice.example")
    fields = [
        b"To: Ada Lovelace <Ada@Example.com>",
        b"To: bob@example.com\r\nCc: Bob <bob@example.com>, ada@example.com",
        b"To: bob@example.com\r\nX-Forwarded-For: <ada@example.com>",
        b"To: xada@example.com\r\nCc: ada@example.com.au, ada@example.community",
    ]
    with run_submission(settings, key=make_key(alice.workspace)) as port:
        for number, field in enumerate(fields):
            source = b"From: Alice <hi@alice.example>\r\n%s\r\nSubject: %d\r\n\r\nHello\r\n" % (field, number)
            assert port.submit(source, "bob@example.com")[0] == 250
    deliver_all()

    assert erase("ada@example.com", capsys) == "3 emails erased.\n"

    assert Email.objects.get().subject == "3"


def test_pending_webhook_deliveries_of_the_address_are_deleted(api, alice, capsys):
    create_webhook(alice.workspace, url="http://127.0.0.1:9/hook", events=["delivered"])
    send(api, to="ada@example.com")
    send(api, to="bob@example.com")
    deliver_all()
    publish_committed()
    erase("ada@example.com", capsys)
    (event,) = WebhookEvent.objects.all()
    assert "bob@example.com" in event.body
    assert WebhookDelivery.objects.get().event_id == event.id
    assert PendingDelivery.objects.count() == 1


def test_erasure_keeps_the_counters(api, alice, capsys):
    send(api, to="ada@example.com")
    deliver_all()
    before = api.get("/analytics").json()
    erase("ada@example.com", capsys)
    assert api.get("/analytics").json() == before
    assert api.get("/emails").json()["total"] == 0
    call_command("reconcile")


def test_emails_in_progress_are_kept_and_reported(api, capsys):
    id_ = send(api, to="ada@example.com")
    assert "0 emails erased.\n1 still in progress" in erase("ada@example.com", capsys)
    assert Email.objects.get().id == id_
    deliver_all()
    assert erase("ada@example.com", capsys) == "1 emails erased.\n"
    assert erase("ada@example.com", capsys) == "0 emails erased.\n"


def test_erasure_covers_all_workspaces_and_the_audit_log_has_no_address(api, bobs_api, alice, bob, capsys):
    send(api, to="ada@example.com")
    send(bobs_api, to="ada@example.com", **{"from": "x@bob.example"})
    deliver_all()
    erase("ada@example.com", capsys)
    assert not Email.objects.exists()
    for workspace in (alice.workspace, bob.workspace):
        entry = AuditEntry.objects.get(workspace=workspace, act="address_erased")
        assert (entry.about, entry.actor_kind) == ("1 emails", "service")


def test_inbound_reports_and_inbox_messages_are_erased(alice, capsys):
    read = {"processed_at": timezone.now()}
    for name in ("Ada", "eve"):
        source = f"Final-Recipient: rfc822; {name}@example.com".encode()
        MailReport.objects.create(sender="", peer="", source=source, **read)
    ProviderReport.objects.create(provider="p", digest=b"1", event={"to": "ada@example.com"}, **read)
    CaughtMail.objects.create(workspace=alice.workspace, recipient="Ada@example.com", source=b"x")
    erase("ada@example.com", capsys)
    assert bytes(MailReport.objects.get().source).endswith(b"eve@example.com")
    assert not ProviderReport.objects.exists()
    assert not CaughtMail.objects.exists()


def test_reports_about_an_address_beyond_ascii_are_erased(db, capsys):
    for name in ("jörg", "eve"):
        source = f"Final-Recipient: utf-8; {name}@example.com".encode()
        MailReport.objects.create(sender="", peer="", source=source, processed_at=timezone.now())
    erase("jörg@example.com", capsys)
    assert bytes(MailReport.objects.get().source).endswith(b"eve@example.com")


def test_an_invalid_address_is_refused():
    with pytest.raises(CommandError, match="is not an email address"):
        call_command("erase_address", "ada")


def test_idempotency_keys_that_contain_the_address_are_deleted(api, capsys):
    for key in ("welcome-Ada@Example.com-1", "ada@example.com", "k"):
        api.post("/emails/send", mail(to="bo@example.com"), idempotency_key=key)
    deliver_all()
    erase("ada@example.com", capsys)
    assert list(Acceptance.objects.values_list("key", flat=True)) == ["k"]


def test_an_idempotency_key_still_replays_after_erasure(api, alice, capsys):
    first = api.post("/emails/send", mail(to="ada@example.com"), idempotency_key="k")
    deliver_all()
    erase("ada@example.com", capsys)
    again = api.post("/emails/send", mail(to="ada@example.com"), idempotency_key="k")
    assert again.json()["id"] == first.json()["id"]
