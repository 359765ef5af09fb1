"""Every available endpoint of the tables in docs/migrate/: a request, for keys of the workspace only.

test_published_shapes sends the requests with the workspace's key.
"""

import json
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from core.lib.ids import from_any_spelling, uuid_text
from domains.receiving.services import active_cache
from emails.feedback.reports import ReportedEvent, record_reports
from emails.models import Recipient
from events.kinds import EventKind
from tests.conftest import Account, make_domain, make_key
from tests.conventions.test_foreign_objects import all_rows
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_tables import PLACEHOLDER, table
from tests.receiving.builders import make_route, receive, receive_for
from tests.rows import each, undone
from webhooks.models import Webhook
from webhooks.services import create_webhook, send_test

pytestmark = pytest.mark.django_db

HOOK = "https://hooks.example.com/events"
RESEND_MAIL = {"from": "hi@alice.example", "to": "ada@example.com", "subject": "Hi", "text": "Hi"}
INLINE = {"filename": "a.png", "content": "QQ==", "content_id": "a"}
WITH_FILE = {**RESEND_MAIL, "html": '<img src="cid:a">', "attachments": [INLINE]}
POSTMARK_MAIL = {"From": "hi@alice.example", "To": "ada@example.com", "Subject": "Hi", "TextBody": "Hi"}
POSTMARK_TEMPLATED = {
    "From": "hi@alice.example",
    "To": "ada@example.com",
    "TemplateAlias": ":template",
    "TemplateModel": {},
}
BULK = {"From": "hi@alice.example", "Subject": "Hi", "TextBody": "Hi", "Messages": [{"To": "ada@example.com"}]}
SENDGRID_MAIL = {
    "personalizations": [{"to": [{"email": "ada@example.com"}]}],
    "from": {"email": "hi@alice.example"},
    "subject": "Hi",
    "content": [{"type": "text/plain", "value": "Hi"}],
}
STREAM = "/message-streams/:stream"
EVENT_WEBHOOK = "/v3/user/webhooks/event"
SETTINGS = f"{EVENT_WEBHOOK}/settings"
PARSE = "/v3/user/webhooks/parse"
PARSE_SETTING = {"hostname": "old-parse.example", "url": f"{HOOK}/5", "send_raw": False}
GLOBAL = "/v3/asm/suppressions/global"
GROUPS = "/v3/asm/groups"
SENDS = "/v3/user/scheduled_sends"
DOMAINS = "/v3/whitelabel/domains"
TEMPLATES = "/v3/templates"
RESEND_WEBHOOK = {"endpoint": HOOK, "events": ["email.sent"]}
POSTMARK_WEBHOOK = {"Url": HOOK, "Triggers": {"Open": {"Enabled": True}}}
POSTMARK_STREAM = {"ID": "old", "Name": "Old", "MessageStreamType": "Broadcasts"}
TOPIC = {"name": "Topic", "default_subscription": "opt_in"}
POSTMARK_TEMPLATE = {"Name": "Hello", "Alias": "hello", "Subject": "Hi", "TextBody": "Hi"}
LEAVE = {"recipient_emails": ["left@example.com"]}
UNSUBSCRIBE = {"recipient_emails": ["unsubscribed@example.com"]}
EVENT_SETTINGS = {"url": f"{HOOK}/4", "open": True}
PAUSE = {"batch_id": ":open_batch", "status": "pause"}
VERSION = {"subject": "Hi", "html_content": "<p>Hi</p>"}
# Requests and their bodies, which name objects of MAKERS.
REQUESTS: dict[str, dict[str, Any]] = {
    "resend": {
        "POST /emails": RESEND_MAIL,
        "POST /emails/batch": [RESEND_MAIL],
        "GET /emails": None,
        "GET /emails/:email": None,
        "PATCH /emails/:email": {"scheduled_at": "in 2 hours"},
        "POST /emails/:email/cancel": None,
        "GET /emails/:with_file/attachments": None,
        "GET /emails/:with_file/attachments/:file": None,
        "GET /emails/receiving": None,
        "GET /emails/receiving/:received": None,
        "GET /emails/receiving/:received/attachments": None,
        "GET /emails/receiving/:received/attachments/:attachment": None,
        "POST /domains": {"name": "new.example"},
        "GET /domains": None,
        "GET /domains/:resend_domain": None,
        "PATCH /domains/:resend_domain": {"tls": "enforced"},
        "DELETE /domains/:resend_domain": None,
        "POST /domains/:resend_domain/verify": None,
        "GET /templates": None,
        "POST /templates": {"name": "New", "html": "Hi"},
        "GET /templates/:template": None,
        "PATCH /templates/:template": {"name": "New"},
        "DELETE /templates/:template": None,
        "POST /templates/:template/publish": None,
        "POST /templates/:template/duplicate": None,
        "GET /topics": None,
        "POST /topics": {"name": "New", "default_subscription": "opt_in"},
        "GET /topics/:topic": None,
        "PATCH /topics/:topic": {"name": "New"},
        "DELETE /topics/:topic": None,
        "GET /suppressions": None,
        "POST /suppressions": {"email": "new@example.com"},
        "GET /suppressions/:bounced": None,
        "DELETE /suppressions/:bounced": None,
        "POST /suppressions/batch/add": {"emails": ["new@example.com"]},
        "POST /suppressions/batch/remove": {"emails": [":bounced"]},
        "GET /webhooks": None,
        "POST /webhooks": RESEND_WEBHOOK,
        "GET /webhooks/:resend_webhook": None,
        "PATCH /webhooks/:resend_webhook": {"status": "disabled"},
        "DELETE /webhooks/:resend_webhook": None,
        "POST /webhooks/:resend_webhook/signing-secret/rotate": None,
        "GET /webhooks/:resend_webhook/events": None,
        "GET /webhooks/:resend_webhook/events/:event": None,
        "POST /webhooks/:resend_webhook/events/:event/replay": None,
        "GET /webhooks/:resend_webhook/events/:event/attempts": None,
        "GET /api-keys": None,
        "POST /api-keys": {"name": "New"},
        "DELETE /api-keys/:api_key": None,
    },
    "postmark": {
        "POST /email": POSTMARK_MAIL,
        "POST /email/batch": [POSTMARK_MAIL],
        "POST /email/withTemplate": POSTMARK_TEMPLATED,
        "POST /email/batchWithTemplates": {"Messages": [POSTMARK_TEMPLATED]},
        "POST /email/bulk": BULK,
        "GET /email/bulk/:bulk_request": None,
        "GET /deliveryStats": None,
        "GET /bounces": None,
        "GET /bounces/tags": None,
        "GET /bounces/:bounce": None,
        "GET /bounces/:bounce/dump": None,
        "PUT /bounces/:bounce/activate": None,
        "GET /templates": None,
        "POST /templates": {"Name": "New", "Subject": "Hi", "TextBody": "Hi"},
        "GET /templates/:template": None,
        "PUT /templates/:template": {"Name": "New"},
        "DELETE /templates/:template": None,
        "POST /templates/validate": {"Subject": "Hi", "TextBody": "Hi"},
        "PUT /templates/push": {"SourceServerID": ":server", "DestinationServerID": ":server", "PerformChanges": True},
        "GET /server": None,
        "PUT /server": {"InboundHookUrl": f"{HOOK}/inbound", "InboundDomain": "parse.example", "RawEmailEnabled": True},
        "GET /messages/inbound": None,
        "GET /messages/inbound/:received/details": None,
        "PUT /messages/inbound/:blocked/bypass": None,
        "PUT /messages/inbound/:received/retry": None,
        "GET /triggers/inboundRules?count=10&offset=0": None,
        "POST /triggers/inboundRules": {"Rule": "new.example"},
        "DELETE /triggers/inboundRules/:rule": None,
        "GET /messages/outbound": None,
        "GET /messages/outbound/:email/details": None,
        "GET /messages/outbound/opens/:email": None,
        "GET /messages/outbound/clicks/:email": None,
        f"GET {STREAM}/suppressions/dump": None,
        f"POST {STREAM}/suppressions": {"Suppressions": [{"EmailAddress": "new@example.com"}]},
        f"POST {STREAM}/suppressions/delete": {"Suppressions": [{"EmailAddress": ":bounced"}]},
        "GET /message-streams": None,
        "POST /message-streams": {"ID": "new", "Name": "New", "MessageStreamType": "Broadcasts"},
        f"GET {STREAM}": None,
        f"PATCH {STREAM}": {"Name": "New"},
        f"POST {STREAM}/archive": None,
        f"POST {STREAM}/unarchive": None,
        "GET /webhooks": None,
        "POST /webhooks": POSTMARK_WEBHOOK,
        "GET /webhooks/:postmark_webhook": None,
        "PUT /webhooks/:postmark_webhook": {"Url": f"{HOOK}/2"},
        "DELETE /webhooks/:postmark_webhook": None,
        "GET /stats/outbound": None,
        "GET /stats/outbound/sends": None,
        "GET /stats/outbound/bounces": None,
        "GET /stats/outbound/spam": None,
        "GET /stats/outbound/opens": None,
        "GET /stats/outbound/clicks": None,
    },
    "sendgrid": {
        "POST /v3/mail/send": SENDGRID_MAIL,
        "POST /v3/mail/batch": None,
        "GET /v3/mail/batch/:open_batch": None,
        f"POST {SENDS}": {"batch_id": ":open_batch", "status": "cancel"},
        f"GET {SENDS}": None,
        f"GET {SENDS}/:paused_batch": None,
        f"PATCH {SENDS}/:paused_batch": {"status": "cancel"},
        f"DELETE {SENDS}/:paused_batch": None,
        "GET /v3/scopes": None,
        f"GET {TEMPLATES}": None,
        f"POST {TEMPLATES}": {"name": "New", "generation": "dynamic"},
        f"GET {TEMPLATES}/:sendgrid_template": None,
        f"PATCH {TEMPLATES}/:sendgrid_template": {"name": "New"},
        f"DELETE {TEMPLATES}/:sendgrid_template": None,
        f"POST {TEMPLATES}/:sendgrid_template/versions": VERSION,
        f"GET {TEMPLATES}/:sendgrid_template/versions/:version": None,
        f"PATCH {TEMPLATES}/:sendgrid_template/versions/:version": VERSION,
        f"DELETE {TEMPLATES}/:sendgrid_template/versions/:version": None,
        f"POST {TEMPLATES}/:sendgrid_template/versions/:version/activate": None,
        "GET /v3/suppression/bounces": None,
        "DELETE /v3/suppression/bounces": {"emails": [":bounced"]},
        "GET /v3/suppression/bounces/:bounced": None,
        "DELETE /v3/suppression/bounces/:bounced": None,
        "GET /v3/suppression/spam_reports": None,
        "DELETE /v3/suppression/spam_reports": {"delete_all": True},
        "GET /v3/suppression/spam_reports/:complained": None,
        "DELETE /v3/suppression/spam_reports/:complained": None,
        "GET /v3/suppression/unsubscribes": None,
        "GET /v3/suppression/blocks": None,
        "DELETE /v3/suppression/blocks": {"delete_all": True},
        "GET /v3/suppression/blocks/:bounced": None,
        "DELETE /v3/suppression/blocks/:bounced": None,
        "GET /v3/suppression/invalid_emails": None,
        "DELETE /v3/suppression/invalid_emails": {"delete_all": True},
        "GET /v3/suppression/invalid_emails/:bounced": None,
        "DELETE /v3/suppression/invalid_emails/:bounced": None,
        f"POST {GLOBAL}": {"recipient_emails": ["new@example.com"]},
        f"GET {GLOBAL}/:unsubscribed": None,
        f"DELETE {GLOBAL}/:unsubscribed": None,
        f"GET {GROUPS}": None,
        f"POST {GROUPS}": {"name": "New", "description": "New"},
        f"GET {GROUPS}/:group": None,
        f"PATCH {GROUPS}/:group": {"name": "New"},
        f"DELETE {GROUPS}/:group": None,
        f"GET {GROUPS}/:group/suppressions": None,
        f"POST {GROUPS}/:group/suppressions": {"recipient_emails": ["new@example.com"]},
        f"POST {GROUPS}/:group/suppressions/search": {"recipient_emails": ["left@example.com"]},
        f"DELETE {GROUPS}/:group/suppressions/:left": None,
        "GET /v3/asm/suppressions": None,
        "GET /v3/asm/suppressions/:left": None,
        f"GET {DOMAINS}": None,
        f"POST {DOMAINS}": {"domain": "new.example"},
        f"GET {DOMAINS}/:sendgrid_domain": None,
        f"DELETE {DOMAINS}/:sendgrid_domain": None,
        f"POST {DOMAINS}/:sendgrid_domain/validate": None,
        f"GET {SETTINGS}": None,
        f"PATCH {SETTINGS}": {"enabled": True, "url": f"{HOOK}/2", "open": True},
        f"GET {SETTINGS}/signed": None,
        f"PATCH {SETTINGS}/signed": {"enabled": True},
        f"POST {SETTINGS}": {"url": f"{HOOK}/3", "open": True},
        f"GET {SETTINGS}/all": None,
        f"GET {SETTINGS}/:event_webhook": None,
        f"PATCH {SETTINGS}/:event_webhook": {"open": True},
        f"DELETE {SETTINGS}/:event_webhook": None,
        f"GET {SETTINGS}/signed/:event_webhook": None,
        f"PATCH {SETTINGS}/signed/:event_webhook": {"enabled": True},
        f"POST {EVENT_WEBHOOK}/test": {"url": HOOK},
        f"GET {PARSE}/settings": None,
        f"POST {PARSE}/settings": {"hostname": "parse.example", "url": f"{HOOK}/parse", "send_raw": True},
        f"GET {PARSE}/settings/:hostname": None,
        f"PATCH {PARSE}/settings/:hostname": {"send_raw": True},
        f"DELETE {PARSE}/settings/:hostname": None,
        f"GET {PARSE}/stats?start_date=2026-01-01&end_date=2026-01-02": None,
        "GET /v3/stats?start_date=2026-01-01&end_date=2026-01-02": None,
    },
}
# The ErrorCodes of an unknown template, and of an unknown stream in a path and in a body.
POSTMARK_UNKNOWN = {1101, 1226, 1235}
# An unknown address has the groups of the workspace.
ASM_OF_ADDRESS = "GET /v3/asm/suppressions/:left"
SMALLER_SCOPES = ("read_only", "sending_access")
READ_BY_POST = {"POST /templates/validate"}
# Requests of sending_access that are no GET.
SENDING = {
    "POST /emails", "POST /emails/batch", "PATCH /emails/:email", "POST /emails/:email/cancel", "POST /email",
    "POST /email/batch", "POST /email/bulk", "POST /email/withTemplate", "POST /email/batchWithTemplates",
    "POST /v3/mail/send", "POST /v3/mail/batch", f"POST {SENDS}", f"PATCH {SENDS}/:paused_batch",
    f"DELETE {SENDS}/:paused_batch", *READ_BY_POST,
}  # fmt: skip
# Sections without a request of sending_access.
MANAGEMENT = re.compile("suppressions?|webhooks|api-keys|bounces|stats|server|inboundRules", re.IGNORECASE)
# Lists without entries, from which nothing can be deleted.
EMPTY_LISTS = {"DELETE /v3/suppression/blocks/:bounced", "DELETE /v3/suppression/invalid_emails/:bounced"}


class Objects(dict[str, str]):
    """The objects of one workspace by the names of MAKERS, each made when a request or another object names it."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.clients = {dialect: Dialect(dialect, key) for dialect in REQUESTS}

    def __missing__(self, name: str) -> str:
        self[name] = str(MAKERS[name](self))
        return self[name]

    def fill(self, text: str) -> str:
        return PLACEHOLDER.sub(lambda found: self[found[0][1:]], text)

    def send(self, dialect: str, request: str, body: Any = None) -> Any:
        filled = json.loads(self.fill(json.dumps(body)))
        return self.clients[dialect].call(*self.fill(request).split(" "), filled)

    def made(self, dialect: str, request: str, body: Any = None) -> Any:
        response = self.send(dialect, request, body)
        assert response.status_code < 300, response.content
        return response.json()


def reported(own: Objects, kind: EventKind) -> str:
    """Send an email, record an event of its recipient, and return the address."""
    address = f"{kind}@example.com"
    own.made("postmark", "POST /email", POSTMARK_MAIL | {"To": address})
    record_reports([ReportedEvent(Recipient.objects.get(address=address).id, kind, is_recipient_fault=True)])
    return address


def webhook_event(own: Objects) -> Any:
    send_test(Webhook.objects.get(pk=from_any_spelling(own["resend_webhook"], prefix="wh_")))
    return own.made("resend", "GET /webhooks/:resend_webhook/events")["data"][0]["id"]


# With an attachment that has a Content-ID.
MESSAGE = (
    b"From: Ada <ada@example.com>\r\nTo: hi@alice.example\r\nSubject: Hi\r\nMessage-ID: <1@example.com>\r\n"
    b"Content-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\n\r\nHi\r\n--m\r\nContent-Type: text/html\r\n\r\n<p>Hi\r\n"
    b"--m\r\nContent-Type: image/png; name=a.png\r\nContent-ID: <a>\r\n\r\n1\r\n--m--\r\n"
)


def received(own: Objects, *, sender: str = "ada@example.com") -> str:
    """Receive a message for alice.example; return its id as a UUID."""
    email = receive(MESSAGE.replace(b"ada@example.com", sender.encode()), "hi@alice.example")
    return uuid_text(email.id, prefix="inb_")


def blocked(own: Objects) -> str:
    own.made("postmark", "POST /triggers/inboundRules", {"Rule": "blocked@example.com"})
    return received(own, sender="blocked@example.com")


MAKERS: dict[str, Callable[[Objects], Any]] = {
    "email": lambda own: own.made("resend", "POST /emails", RESEND_MAIL | {"scheduled_at": "in 1 hour"})["id"],
    "server": lambda own: own.made("postmark", "GET /server")["ID"],
    # Not a name, but the end of `cid:a`.
    "a": lambda _: ":a",
    "with_file": lambda own: own.made("resend", "POST /emails", WITH_FILE)["id"],
    "file": lambda own: own.made("resend", "GET /emails/:with_file/attachments")["data"][0]["id"],
    "template": lambda own: own.made("postmark", "POST /templates", POSTMARK_TEMPLATE)["Alias"],
    "sendgrid_template": lambda own: f"d-{own['template']}",
    "version": lambda own: own.made("sendgrid", f"GET {TEMPLATES}/:sendgrid_template")["versions"][0]["id"],
    "resend_domain": lambda own: own.made("resend", "POST /domains", {"name": "old.example"})["id"],
    "sendgrid_domain": lambda own: own.made("sendgrid", f"POST {DOMAINS}", {"domain": "older.example"})["id"],
    "resend_webhook": lambda own: own.made("resend", "POST /webhooks", RESEND_WEBHOOK)["id"],
    "event": webhook_event,
    "received": received,
    "blocked": blocked,
    "attachment": lambda own: own.made("resend", "GET /emails/receiving/:received")["attachments"][0]["id"],
    "rule": lambda own: own.made("postmark", "POST /triggers/inboundRules", {"Rule": "old.example"})["ID"],
    "hostname": lambda own: own.made("sendgrid", f"POST {PARSE}/settings", PARSE_SETTING)["hostname"],
    "postmark_webhook": lambda own: own.made("postmark", "POST /webhooks", POSTMARK_WEBHOOK)["ID"],
    "event_webhook": lambda own: own.made("sendgrid", f"POST {SETTINGS}", EVENT_SETTINGS)["id"],
    "api_key": lambda own: own.made("resend", "POST /api-keys", {"name": "Old"})["id"],
    "bounced": lambda own: reported(own, EventKind.BOUNCED),
    "bounce": lambda own: own.made("postmark", "GET /bounces?emailFilter=:bounced")["Bounces"][0]["ID"],
    "complained": lambda own: reported(own, EventKind.COMPLAINED),
    "unsubscribed": lambda own: own.made("sendgrid", f"POST {GLOBAL}", UNSUBSCRIBE)["recipient_emails"][0],
    "bulk_request": lambda own: own.made("postmark", "POST /email/bulk", BULK)["Id"],
    "stream": lambda own: own.made("postmark", "POST /message-streams", POSTMARK_STREAM)["ID"],
    "topic": lambda own: own.made("resend", "POST /topics", TOPIC)["id"],
    "group": lambda own: own.made("sendgrid", f"POST {GROUPS}", {"name": "Old", "description": "Old"})["id"],
    "left": lambda own: own.made("sendgrid", f"POST {GROUPS}/:group/suppressions", LEAVE)["recipient_emails"][0],
    "open_batch": lambda own: own.made("sendgrid", "POST /v3/mail/batch")["batch_id"],
    "paused_batch": lambda own: own.made("sendgrid", f"POST {SENDS}", PAUSE)["batch_id"],
}


@pytest.fixture
def own(alice: Account, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Objects:
    settings.RECEIVING_DOMAIN, settings.RECEIVING_MX = "in.demo.example", ["mx.demo.example"]
    active_cache.clear()
    # No worker checks domains, so the requests do not wait for the result.
    monkeypatch.setattr("domains.check_queue.verify.MAX_WAIT_SECONDS", 0)
    receive_for(make_domain(alice.workspace, "alice.example"))
    make_route(alice.workspace)
    for name in ("parse.example", "old-parse.example"):
        make_domain(alice.workspace, name)
    create_webhook(alice.workspace, url=HOOK, events=["opened"], format="sendgrid")
    objects = Objects(make_key(alice.workspace, "workspace_admin"))
    for name in MAKERS:
        objects[name]
    return objects


@each("dialect", REQUESTS)
def test_the_requests_are_those_of_the_table(dialect):
    requests = {PLACEHOLDER.sub(":id", request.partition("?")[0]) for request in REQUESTS[dialect]}
    assert requests == {" ".join(call) for call, state in table(dialect).items() if state != "absent"}


@each("dialect", REQUESTS)
def test_an_id_of_another_workspace_and_an_unknown_one_are_not_found(own, bob, dialect):
    stranger = Objects(make_key(bob.workspace, "workspace_admin"))
    requests = {line: body for line, body in REQUESTS[dialect].items() if PLACEHOLDER.findall(line)}
    filled = [(own.fill(line), json.loads(own.fill(json.dumps(body)))) for line, body in requests.items()]
    before = all_rows()
    responses = {line: stranger.send(dialect, line, body) for line, body in filled}
    assert {line: found.content for line, found in responses.items() if not is_not_found(dialect, found)} == {}
    for unknown in ("x", str(UUID(int=0))):
        lines = {line: PLACEHOLDER.sub(unknown, line) for line in requests if line != ASM_OF_ADDRESS}
        responses = {line: own.send(dialect, lines[line], requests[line]) for line in lines}
        assert {line: found.content for line, found in responses.items() if not is_not_found(dialect, found)} == {}
    assert all_rows() == before
    unnamed = [line for line in REQUESTS[dialect] if line.startswith("GET") and ":" not in line]
    listed = "".join(str(stranger.send(dialect, line).json()) for line in unnamed)
    assert [name for name, value in own.items() if len(value) > 10 and value in listed] == []


def is_not_found(dialect: str, response: Any) -> bool:
    """Return whether a response is that for an unknown object; SendGrid's suppressions are an object or a list."""
    body = response.json()
    if dialect == "resend":
        return (response.status_code, body.get("name")) == (404, "not_found") or body == {"data": []}
    if dialect == "postmark":
        return (response.status_code, body["ErrorCode"]) == (404, 404) or body["ErrorCode"] in POSTMARK_UNKNOWN
    return (response.status_code == 404 and body.keys() == {"errors"}) or body in ({}, [], {"suppressions": []})


@each("dialect", REQUESTS)
def test_a_smaller_scope_allows_reading_or_sending(own, alice, dialect):
    reading, sending = (allowed_lines(own, dialect, make_key(alice.workspace, scope)) for scope in SMALLER_SCOPES)
    reads = {line for line in REQUESTS[dialect] if line.startswith("GET") and "api-keys" not in line}
    assert reading == reads | READ_BY_POST & REQUESTS[dialect].keys()
    assert sending == SENDING & REQUESTS[dialect].keys() | {line for line in reads if not MANAGEMENT.search(line)}


def allowed_lines(own: Objects, dialect: str, key: str) -> set[str]:
    client = Objects(key)
    client.update(own)
    allowed = set()
    for line, body in REQUESTS[dialect].items():
        with undone():
            response = client.send(dialect, line, body)
        if not is_refused(dialect, response):
            # A key that sends reads no received email but those that it simulated.
            assert response.status_code < 300 or response.status_code == 404, (line, response.content)
            allowed.add(line)
    return allowed


def is_refused(dialect: str, response: Any) -> bool:
    if dialect == "sendgrid":
        return response.status_code == 403
    name, expected = ("name", "restricted_api_key") if dialect == "resend" else ("ErrorCode", 10)
    return response.status_code == 401 and response.json()[name] == expected


@each("dialect", REQUESTS)
def test_without_a_key_every_endpoint_is_401(db, dialect):
    nobody = Dialect(dialect, None)
    statuses = {line: nobody.call(*line.split(" ")).status_code for line in REQUESTS[dialect]}
    assert statuses == dict.fromkeys(statuses, 401)
