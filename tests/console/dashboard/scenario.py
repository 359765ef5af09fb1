"""Scenario: workspaces with data on every page of the dashboard, optionally hostile text in all external input."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from django.db.models.functions import Now

from alerts.models import Alert
from alerts.services import create_alert
from core.counters import counters
from core.lib.ids import new_id
from core.lib.worker.stages import Stage
from core.workspaces.models import ApiKey, AuditEntry, Membership, Usage, User, Workspace
from core.workspaces.services import issue_api_key
from domains.models import Domain, ReceivingDomain
from domains.services import new_selector
from emails.models import Attachment, Content, Email, QueueEntry, ReceiverPace, Recipient
from events.models import Event
from receiving.models import InboundRoute, SenderBlock
from receiving.services import block_sender
from receiving.states import NOT_READ
from streams.models import Stream
from streams.services import create_stream
from suppressions.models import Suppression
from suppressions.services import suppress_address
from templates_app import services as templates
from templates_app.models import Template
from tests.conftest import Account, make_domain, make_key
from tests.console.dashboard.conftest import make_caught, make_email, make_received, verdicts
from tests.emails.receivers.builders import make_limited, make_suspended
from webhooks.models import Webhook, WebhookDelivery
from webhooks.services import create_webhook, send_test

STATUSES = ("delivered", "opened", "clicked", "bounced", "failed", "queued", "sent", "scheduled", "cancelled")
FORGED = verdicts("fail", policy="reject")
GMAIL_UNKNOWN = (
    "5.1.1 The email account that you tried to reach does not exist. Please try double-checking the recipient's email "
    "address for typos or unnecessary spaces. See https://support.google.com/mail/?p=NoSuchUser "
    "a640c23a62f3a-b76e1f2c4d5si1234567666b.17 - gsmtp"
)
MICROSOFT_UNKNOWN = (
    "5.4.1 Recipient address rejected: Access denied. [AM4PEPF00027A6A.eurprd04.prod.outlook.com 2026-11-21T06:20:00Z]"
)
SUBJECTS = ("Your receipt", "Reset your password", "Welcome aboard", "Invoice 2026-118", "Your order has left")


def fill_workspace(account: Account) -> dict[str, Any]:
    """Fill a workspace with realistic data; return one object per kind, by the name of its pages."""
    workspace, now = account.workspace, datetime.now(UTC)
    make_key(workspace)
    for place, status in enumerate(STATUSES):
        subject = SUBJECTS[place % len(SUBJECTS)]
        make_email(workspace, subject=subject, status=status, created_at=now - timedelta(hours=place), tags=["shop"])
    make_bounces(workspace)
    count_days(workspace, now=now)
    Usage.objects.create(workspace=workspace, month=now.date().replace(day=1), used=12_480)
    Usage.objects.create(
        workspace=workspace, month=(now.date().replace(day=1) - timedelta(days=1)).replace(day=1), used=9_311
    )
    let_wait_for_receiver(Recipient.objects.filter(email__workspace=workspace, email__status="queued").get())
    webhook, _ = create_webhook(workspace, url="https://shop.example/hooks/mail", events=["delivered", "bounced"])
    domain = checked_domain(workspace)
    return {
        "emails_email": failed_email(workspace),
        **make_receiving(workspace, domain),
        "inbox_caughtmail": make_caught(workspace, subject="Your receipt"),
        "domains_domain": domain,
        "templates_app_template": make_template_set(workspace)["template"],
        "webhooks_webhook": webhook,
        "webhooks_webhookdelivery": failed_delivery(webhook, answer="upstream is down"),
        "streams_stream": make_streams(workspace),
        "alerts_alert": create_alert(workspace, metric="bounce_rate", threshold=4, stream="newsletter"),
        "suppressions_suppression": suppress_address(workspace, address="gone@example.com", reason="bounce")[0],
        "workspaces_apikey": workspace.api_keys.get(),
        "workspaces_membership": add_member(workspace),
    }


def let_wait_for_receiver(recipient: Recipient, reply: str = "421 4.7.28 Gmail has detected an unusual rate") -> None:
    """Let a recipient wait for the pace of a receiver; another receiver is suspended."""
    make_suspended("yahoo", accepted=1_204)
    pair = make_limited("google", accepted=18_310)
    ReceiverPace.objects.filter(id=pair.id).update(signal=reply[:1100], release_at=Now())
    QueueEntry.objects.create(
        recipient=recipient,
        workspace_id=recipient.email.workspace_id,
        domain="gmail.com",
        stage=Stage.PACED,
        due_at=datetime.now(UTC) + timedelta(hours=20),
        since=datetime.now(UTC) - timedelta(minutes=5),
        waits_for="receiver_pace",
        pair=pair.id,
    )


def fill_workspace_with(account: Account, text: str) -> dict[str, Any]:
    """Fill a workspace with the same text in every field that external parties can set."""
    workspace, now = account.workspace, datetime.now(UTC)
    email = failed_email(
        workspace, subject=text, sender=text, to=[text], cc=[text], bcc=[text], reply_to=text, tags=[text]
    )
    email.metadata, email.headers = {text: text}, {f"X-{text}": text}
    email.save()
    email.recipients.update(address=text[:254], error_message=text)
    let_wait_for_receiver(email.recipients.get(), text)
    email.events.update(payload={"to": text, "message": text, "url": text, "reason": text, "scheduledFor": text})
    Attachment.objects.create(
        content=email.content, position=0, filename=text[:255], content_type=text[:255], size=1, data=b""
    )
    Content.objects.filter(id=email.content_id).update(text=text)
    AuditEntry.objects.create(
        workspace=workspace, act="domain_added", about=text[:320], actor_kind="key", actor=text[:320]
    )
    domain = checked_domain(workspace, found=text)
    webhook, _ = create_webhook(workspace, url="https://shop.example/hook", events=["delivered"])
    delivery = failed_delivery(webhook, answer=text)
    # Bypasses the validation of URLs, which would refuse the text.
    Webhook.objects.filter(id=webhook.id).update(url=f"https://shop.example/{text}", active=False, disabled_reason=text)
    source = f"Subject: {text}\r\nFrom: {text}\r\nX-{text}: {text}\r\n\r\n{text}".encode()
    template = make_template(workspace, text[:100], "x", "x")
    for kind, html in (("layout", "{{{content}}}"), ("partial", "x")):
        content = templates.TemplateContent("", html)
        templates.create_template(
            workspace, name=text[:100], content=content, alias=None, strict_variables=False, kind=kind
        )
    stream = create_stream(workspace, slug=f"s{uuid4().hex[:12]}", name=text[:100], description=text[:500], kind="bulk")
    Stream.objects.filter(id=stream.id).update(paused_at=now, archived_at=now, paused_reason=text[:500])
    suppress_address(workspace, address=email.recipients.get().address, reason="unsubscribe", stream=stream.slug)
    # Bypasses the template syntax, which would refuse some texts.
    type(template.version).objects.filter(id=template.version_id).update(subject=text)
    return {
        "emails_email": email,
        **receive_hostile(workspace, text, source),
        "inbox_caughtmail": make_caught(workspace, source, subject=text, sender=text, recipient=text[:254]),
        "domains_domain": domain,
        "templates_app_template": template,
        "webhooks_webhook": webhook,
        "webhooks_webhookdelivery": delivery,
        "streams_stream": stream,
        "alerts_alert": Alert.objects.create(
            workspace=workspace, metric="bounce_rate", threshold=4, stream=text[:40], triggered_at=now
        ),
        "suppressions_suppression": Suppression.objects.create(
            workspace=workspace, email=text[:254], address_key=text[:254].casefold(), reason="manual"
        ),
        "workspaces_apikey": issue_api_key(workspace, name=text[:100], scope=ApiKey.Scope.READ_ONLY)[0],
        "workspaces_membership": add_member(workspace),
    }


def make_receiving(workspace: Workspace, domain: Domain) -> dict[str, Any]:
    """Let a domain receive, with a route, a blocked sender, and received emails in several states."""
    ReceivingDomain.objects.create(
        domain=domain, workspace=workspace, name=domain.name, status="active", proven_at=datetime.now(UTC)
    )
    route = InboundRoute.objects.create(
        workspace=workspace, name="Newsletter", domain=domain.name, match="support*", literals=7, spam_above=8
    )
    answered = Email.objects.filter(workspace=workspace).order_by("created_at").first()
    blocked = {"status": "blocked", "blocked_reason": "not_authenticated", "recipient": "support@alice.example"}
    make_received(workspace, subject="Your receipt", authentication=FORGED, **blocked)
    make_received(workspace, subject="Your receipt", status="unreadable", authentication=None, parse_errors=[NOT_READ])
    email = make_received(
        workspace,
        subject="Your receipt",
        route_id=route.id,
        tag="shop",
        **answer_to(answered),
        event_id=new_id("evt_"),
    )
    return {
        "receiving_receivedemail": email,
        "receiving_inboundroute": route,
        "receiving_senderblock": block_sender(workspace, sender="spam.example")[0],
    }


def answer_to(email: Email | None) -> dict[str, Any]:
    """Return the columns of a received email that answers a sent one."""
    if email is None:
        return {}
    recipient = email.recipients.get()
    return {
        "reply_email_id": email.id,
        "reply_recipient_id": recipient.id,
        "reply_address": recipient.address,
        "reply_matched_by": "address",
        "is_from_recipient": True,
    }


def receive_hostile(workspace: Workspace, text: str, source: bytes) -> dict[str, Any]:
    """Receive an email with the same text in every field that its sender can set."""
    address = {"email": text[:320], "name": text}
    attachment = {"filename": text[:255], "contentType": text[:100], "contentId": text}
    email = make_received(
        workspace,
        source,
        attachments=[attachment],
        recipient=text[:320],
        tag=text[:64],
        sender=text[:320],
        subject=text,
        status="blocked",
        blocked_reason="spam",
        authentication=verdicts("fail", domain=text),
        addresses={
            "from": [address],
            "to": [address],
            "cc": [address],
            "replyTo": [{**address, "email": "x@example.com"}],
        },
        headers=[[f"X-{text}", text]],
        text=text,
        reply_text=text,
        envelope_from=text[:320],
        helo=text[:255],
        tls=text[:16],
        message_id=text,
        parse_errors=[text],
        **{**answer_to(make_email(workspace, subject=text)), "reply_address": text[:254]},
    )
    return {
        "receiving_receivedemail": email,
        "receiving_inboundroute": InboundRoute.objects.create(
            workspace=workspace, name=text[:100], domain="shared", match="*", literals=0
        ),
        "receiving_senderblock": SenderBlock.objects.create(workspace=workspace, sender=text[:254]),
    }


def make_streams(workspace: Workspace) -> Stream:
    """Create two streams beside `main`; the recipient of failed_email unsubscribed from the returned one."""
    newsletter = create_stream(
        workspace, slug="newsletter", name="Newsletter", description="News of the shop, once a month.", kind="bulk"
    )
    create_stream(workspace, slug="receipts", name="Receipts")
    make_email(workspace, subject="News in May", stream="newsletter", created_at=datetime.now(UTC) - timedelta(days=1))
    suppress_address(workspace, address="ada@example.com", reason="unsubscribe", stream="newsletter")
    return newsletter


def add_member(workspace: Workspace) -> Membership:
    user = User.objects.create(email=f"{new_selector()}@grace.example", password="!")
    return Membership.objects.create(workspace=workspace, user=user, role=Membership.Role.MEMBER)


# Reason, address, code and text of a bounce.
BOUNCES: tuple[tuple[str, str, int, str], ...] = (
    *(("unknown_user", f"r{place}@gmail.com", 550, GMAIL_UNKNOWN) for place in range(9)),
    *(("unknown_user", f"r{place}@acme.example", 550, MICROSOFT_UNKNOWN) for place in range(4)),
    *(
        ("mailbox_full", f"f{place}@web.de", 552, "5.2.2 Requested mail action aborted: exceeded quota")
        for place in range(3)
    ),
    ("spam", "s@yahoo.com", 554, "5.7.9 Message not allowed - https://senders.yahooinc.com/smtp-error-codes"),
    ("authentication", "d@bank.example", 550, "5.7.26 Unauthenticated email from shop.example is not accepted (DMARC)"),
)


def make_bounces(workspace: Workspace) -> None:
    """Create an email with many recipients, and the event of a bounce of each."""
    email = failed_email(workspace, to=["list@example.com"])
    now = datetime.now(UTC)
    for place, (reason, address, code, message) in enumerate(BOUNCES):
        recipient = Recipient.objects.create(
            email=email, kind="bcc", position=place + 1, address=address, state="bounced"
        )
        payload = {
            "to": address, "code": code, "enhancedCode": message.split()[0], "message": message, "reason": reason,
        }  # fmt: skip
        Event.objects.create(
            workspace_id=workspace.id, email=email, recipient=recipient, kind="bounced", payload=payload,
            created_at=now - timedelta(hours=place),
        )  # fmt: skip


def failed_email(workspace: Workspace, **fields: Any) -> Email:
    """Create an email that the receiving server rejected."""
    html = "<h1>Thank you</h1><p>Your order has left.</p>"
    values = {"subject": "Your receipt", "html": html, "status": "bounced", "finished_at": datetime.now(UTC)}
    email = make_email(workspace, **{**values, **fields})
    refused = {"code": 550, "enhancedCode": "5.1.1", "message": "5.1.1 No such user here", "reason": "unknown_user"}
    email.recipients.update(
        state="bounced", reply_code=550, error_message="5.1.1 No such user here", reason="unknown_user", attempts=2
    )
    Event.objects.filter(email=email, kind="delivered").update(
        kind="bounced", payload={"to": "ada@example.com", **refused}
    )
    return email


def checked_domain(workspace: Workspace, *, found: str = "v=spf1 -all") -> Domain:
    domain = make_domain(workspace, f"{new_selector()}.example")
    selector = domain.dkim_keys.get().selector
    right = {"verdict": "right", "found": found, "error": None, "note": found, "value": None}
    wrong = {"verdict": "wrong", "found": found, "error": f"This names no server: {found}", "note": None, "value": None}
    domain.findings = {
        "keys": {selector: right},
        "spf": wrong,
        "dmarc": right,
        "return_path": {**wrong, "verdict": "absent"},
        "mail": wrong,
    }
    domain.status, domain.last_checked_at = "failed", datetime.now(UTC)
    domain.save()
    return domain


def make_template(workspace: Workspace, name: str, subject: str, html: str) -> Template:
    content = templates.TemplateContent(subject, html)
    return templates.create_template(workspace, name=name, content=content, alias=None, strict_variables=False)


def make_template_set(workspace: Workspace) -> dict[str, Template]:
    """Create a template in English and German with a layout and a partial; return them by kind."""
    texts = {
        "partial": templates.TemplateContent("", "<p>Bye</p>", locales={"de": {"html": "<p>Tschüss</p>"}}),
        "layout": templates.TemplateContent("", "<html><body>{{{content}}}{{> footer}}</body></html>"),
        "template": templates.TemplateContent(
            "Your order {{order}}",
            "<h1>Hello {{name}}</h1>",
            locale="en",
            locales={"de": {"subject": "Ihre Bestellung {{order}}", "html": "<h1>Hallo {{name}}</h1>"}},
            layout_id="brand",
        ),
    }
    names = {"partial": ("Footer", "footer"), "layout": ("Brand", "brand"), "template": ("Receipt", None)}
    return {
        kind: templates.create_template(
            workspace, name=names[kind][0], alias=names[kind][1], content=content, kind=kind, strict_variables=False
        )
        for kind, content in texts.items()
    }


def failed_delivery(webhook: Webhook, *, answer: str) -> WebhookDelivery:
    delivery = send_test(webhook)
    attempt = {
        "at": "2026-11-21T06:20:00.000Z", "durationMs": 213, "statusCode": 503, "error": "status", "answer": answer,
    }  # fmt: skip
    delivery.status, delivery.attempts, delivery.attempt_count, delivery.status_code = "exhausted", [attempt], 1, 503
    delivery.save()
    return delivery


def count_days(workspace: Workspace, *, now: datetime) -> None:
    """Add three weeks of email to the counters."""
    for back in range(21):
        at, base = now - timedelta(days=back), 300 + 90 * (back % 5)
        counts = {"status.delivered": base, "reached.delivered": base - 9, "reached.bounced": 7}
        counts |= {"reached.opened": base // 2, "reached.clicked": base // 6}
        counts |= {"status.bounced": 7 + back % 9, "status.failed": back % 4}
        counts |= {"rated.sent": base, "rated.bounced": 7 + back % 9, "rated.complained": int(back % 6 == 0)}
        counters.add((counters.CounterKey(workspace.id, at, key), count) for key, count in counts.items())
