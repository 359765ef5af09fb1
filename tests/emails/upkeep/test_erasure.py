"""A person is forgotten: the whole database is searched for the address afterwards."""

from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from emails.models import Acceptance, Email
from emails.sending import queue
from emails.sending.outcomes import Result, record
from inbound.inbox.models import CaughtMail
from inbound.models import MailReport, ProviderReport
from suppressions.models import Suppression
from tests.conftest import mail
from webhooks.models import Pending as PendingPost
from webhooks.models import WebhookDelivery, WebhookEvent
from webhooks.services import create_webhook
from workspaces.models import AuditEntry

pytestmark = pytest.mark.django_db
OK = DeliveryOutcome(DeliveryStatus.DELIVERED, Reply(250, "2.0.0 ok"))


def send(api, **fields):
    response = api.post("/emails/send", mail(**fields))
    assert response.status_code == 202, response.content
    return response.json()["id"]


def deliver():
    record([Result(held, OK) for held in queue.claim(1000, after=UUID(int=0))])


def erase(address, capsys):
    call_command("erase_address", address)
    return capsys.readouterr().out


def places_of(address: str) -> set[str]:
    """Search every column of every table, whatever its type."""
    found = set()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT count(*) FROM "{table}" t WHERE t::text ILIKE %s', [f"%{address}%"])
            if cursor.fetchone()[0]:
                found.add(table)
    return found


def test_nothing_is_left_of_a_person_but_what_keeps_mail_away_from_him(api, alice, capsys):
    create_webhook(alice.workspace, url="http://127.0.0.1:9/hook", events=["sent", "delivered"])
    body = {
        "from": "x@alice.example",
        "templateId": api.post("/templates", {"name": "t", "subject": "s", "htmlContent": "<p>Hi</p>"}).json()["id"],
        "recipients": [{"to": "Ada@Example.com"}, {"to": "xada@example.com"}],
    }
    assert api.post("/emails/batch", body, idempotency_key="k").status_code == 202
    send(api, to=["bob@example.com"], cc=["ada@example.com"], subject="For ada@example.com")
    deliver()
    Suppression.objects.create(workspace=alice.workspace, email="ada@example.com", address_key="ada@example.com")
    assert {"emails_email", "webhooks_webhookevent", "emails_acceptance"} <= places_of("ada@example.com")

    assert erase("ADA@example.com", capsys) == "2 emails are erased.\n"

    WebhookEvent.objects.filter(body__contains="xada@example.com").delete()
    assert Email.objects.get().to == ["xada@example.com"]
    Email.objects.all().delete()
    (acceptance,) = Acceptance.objects.all()
    assert [one["to"] for one in acceptance.answer["emails"]] == ["erased@invalid", "xada@example.com"]
    acceptance.delete()
    assert places_of("ada@example.com") == {"suppressions_suppression"}


def test_what_was_to_be_posted_of_it_is_gone_and_the_rest_is_not(api, alice, capsys):
    create_webhook(alice.workspace, url="http://127.0.0.1:9/hook", events=["delivered"])
    send(api, to="ada@example.com")
    send(api, to="bob@example.com")
    deliver()
    erase("ada@example.com", capsys)
    (event,) = WebhookEvent.objects.all()
    assert "bob@example.com" in event.body
    assert WebhookDelivery.objects.get().event_id == event.id
    assert PendingPost.objects.count() == 1


def test_the_figures_stay(api, alice, capsys):
    send(api, to="ada@example.com")
    deliver()
    before = api.get("/analytics").json()
    erase("ada@example.com", capsys)
    assert api.get("/analytics").json() == before
    assert api.get("/emails").json()["total"] == 0
    call_command("reconcile")


def test_what_is_on_its_way_is_left_and_told(api, capsys):
    id_ = send(api, to="ada@example.com")
    assert "0 emails are erased.\n1 are still on their way" in erase("ada@example.com", capsys)
    assert Email.objects.get().id == id_
    deliver()
    assert erase("ada@example.com", capsys) == "1 emails are erased.\n"
    assert erase("ada@example.com", capsys) == "0 emails are erased.\n"


def test_all_workspaces_forget_and_their_logs_say_how_much_and_not_whom(api, bobs_api, alice, bob, capsys):
    send(api, to="ada@example.com")
    send(bobs_api, to="ada@example.com", **{"from": "x@bob.example"})
    deliver()
    erase("ada@example.com", capsys)
    assert not Email.objects.exists()
    for workspace in (alice.workspace, bob.workspace):
        entry = AuditEntry.objects.get(workspace=workspace, act="address_erased")
        assert (entry.about, entry.actor_kind) == ("1 emails", "service")


def test_reports_and_caught_mail_go_too(alice, capsys):
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


def test_no_address_is_refused():
    with pytest.raises(CommandError, match="is no address"):
        call_command("erase_address", "ada")


def test_a_key_goes_on_answering_for_what_was_erased(api, alice, capsys):
    first = api.post("/emails/send", mail(to="ada@example.com"), idempotency_key="k")
    deliver()
    erase("ada@example.com", capsys)
    again = api.post("/emails/send", mail(to="ada@example.com"), idempotency_key="k")
    assert again.json()["id"] == first.json()["id"]
