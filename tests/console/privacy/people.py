"""Records of every kind about a person, for tests of erasures and exports."""

from datetime import UTC, datetime

from django.db import connection

from core.request_log.recording import recorder as request_recorder
from core.workspaces.members import invite_member
from emails.models import Recipient
from interfaces.inbound.models import MailReport, ProviderReport
from receiving.models import ForwardTarget
from receiving.services import block_sender
from tests.conftest import Account, Api, mail
from tests.console.dashboard.conftest import make_caught, make_received
from tests.emails.builders import deliver_all, send
from tests.events.feed import publish_committed
from webhooks.services import create_webhook

ADA = "ada@example.com"


def tables_containing(text: str) -> set[str]:
    found = set()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT count(*) FROM "{table}" t WHERE t::text ILIKE %s', [f"%{text}%"])
            if cursor.fetchone()[0]:
                found.add(table)
    return found


def use_everything(api: Api, account: Account) -> None:
    """Let the workspace have records of every kind about Ada."""
    create_webhook(account.workspace, url="http://127.0.0.1:9/hook", events=["sent", "delivered", "suppressed"])
    template = {"name": "t", "subject": "Hi", "htmlContent": "<p>{{name}}</p>", "alias": "hi"}
    api.post("/templates", template)
    batch = {"from": "x@alice.example", "templateId": "hi", "recipients": [{"to": "Ada@Example.com"}]}
    api.post("/emails/batch", batch, idempotency_key="batch")
    api.post("/emails/send", mail(to=ADA), idempotency_key=f"welcome-{ADA}")
    send(api, to=["bob@example.com"], cc=[f"Ada <{ADA}>"])
    # To others, about Ada.
    send(api, to="bob@example.com", subject=f"Order of {ADA}")
    send(api, to="bob@example.com", metadata={"customer": ADA})
    send(api, to="bob@example.com", html=None, templateId="hi", templateData={"name": ADA})
    send(api, to="bob@example.com", replyTo=ADA)
    deliver_all()
    publish_committed()
    api.post("/suppressions", {"email": ADA})
    make_received(account.workspace, sender=ADA)
    make_received(account.workspace, recipient=ADA)
    make_caught(account.workspace, recipient=ADA)


def use_all(api: Api, account: Account) -> None:
    """Add what a person may have besides: a sensitive email, reports, requests, an invitation and settings."""
    send(api, to=ADA, subject="Secret", html="<p>marker-of-a-secret</p>", sensitive=True)
    use_everything(api, account)
    first = Recipient.objects.filter(address=ADA).order_by("id")[0]
    report = {"recipient_id": first.id, "sender": "", "peer": "192.0.2.1", "source": b"Final-Recipient: ada"}
    MailReport.objects.create(**report, processed_at=datetime.now(UTC))
    Recipient.objects.filter(id=first.id).update(provider_message_id="provider-1")
    event = {"provider": "mailgun", "message_id": "provider-1", "digest": b"1", "event": {"recipient": ADA}}
    ProviderReport.objects.create(**event, processed_at=datetime.now(UTC))
    invite_member(account.workspace, email=ADA, role="member", by=account.owner)
    block_sender(account.workspace, sender=ADA)
    ForwardTarget.objects.create(workspace=account.workspace, address=ADA)
    assert request_recorder.flush()
