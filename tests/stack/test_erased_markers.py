"""Markers of a person in every feature of a running service: none after an erasure, or in sensitive emails.

See docs/guides/privacy.md, which lists what stays.
"""

import base64
import http.client
import json
import re
import smtplib
import urllib.request
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest

from tests.interfaces.inbound.dsns import dsn
from tests.stack.markers import find_markers, new_markers
from tests.stack.stack import Stack, running_stack, wait_for
from tests.webhooks.receiver import Receiver, status

pytestmark = pytest.mark.stack

# Sent and received in some way, so that they are stored before the erasure.
STORED = (
    "address", "to_name", "cc_name", "bcc_name", "reply_to", "subject", "html", "text", "template_data", "filename",
    "attachment", "header", "metadata", "tag", "idempotency_key", "batch_name", "batch_data", "smtp_subject",
    "smtp_text", "smtp_header", "smtp_cc", "postmark_subject", "postmark_metadata", "resend_html", "resend_header",
    "sendgrid_text", "sendgrid_argument", "scheduled", "mentioned_subject", "mentioned_metadata", "mentioned_data",
    "webhook_response", "link", "received_subject", "received_text", "received_file", "received_cc",
    "bounce_text", "suppression",
)  # fmt: skip
# In requests and answers that are not stored.
PASSING = ("dry_run", "refused_field", "search", "path")
# The program of a reader: whether it is stored depends on the stream.
READING = ("browser",)
# Counters of tags stay (docs/guides/privacy.md).
STAYS = {"tag": {"analytics_tally", "analytics_tallyday", "analytics_tallydelta"}}
SENSITIVE = ("html", "text", "filename", "attachment", "template_data", "batch_data", "smtp_text", "smtp_file", "link")


@pytest.fixture(scope="module")
def receiver():
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    options = {"RECEIVING_DOMAIN": "in.demo.example", "RECEIVING_MX": "mx.demo.example"}
    with running_stack(tmp_path_factory.mktemp("logs"), **options) as stack:
        stack.start("inbox", "web", "worker", "beat", "inbound", "submission")
        yield stack


class Person:
    """A person with markers in everything that the service does with them."""

    def __init__(self, stack: Stack, receiver: Receiver) -> None:
        self.stack, self.receiver = stack, receiver
        self.markers = new_markers(*STORED, *PASSING, *READING)
        self.address = f"{self.markers['address']}@example.com"
        self.suppressed = f"{self.markers['suppression']}+{self.address}"

    def call(self, method: str, path: str, body: Any = None, *, expected: int = 202) -> Any:
        reply = self.stack.call(method, path, body)
        assert reply.status == expected, reply.body
        return reply.body

    def use_all(self) -> None:
        marker = self.markers
        self.receiver.answer = status(200, body=marker["webhook_response"].encode())
        events = ["sent", "delivered", "bounced", "opened", "clicked", "received", "suppressed"]
        self.call("POST", "/webhooks", {"url": self.receiver.url(), "events": events}, expected=201)
        self.send_by_api()
        self.send_batch()
        self.send_by_smtp()
        self.send_by_dialects()
        self.send_to_others()
        self.ask()
        wait_for(self.is_idle, seconds=120, what="everything is sent")
        self.read_message()
        self.bounce()
        self.receive()
        wait_for(self.is_idle, seconds=120, what="everything is received and published")
        assert self.stack.call("POST", "/suppressions", {"email": self.address}).status in {200, 201}

    def send_by_api(self) -> None:
        marker = self.markers
        key = f"{marker['idempotency_key']}-{self.address}"
        body = {
            "from": "hello@demo.example",
            "to": f"{marker['to_name']} <{self.address}>",
            "cc": [f"{marker['cc_name']} <other@example.com>"],
            "bcc": [f"{marker['bcc_name']} <third@example.com>"],
            "replyTo": f"{marker['reply_to']} <reply@demo.example>",
            "subject": marker["subject"],
            "html": f'<p>{marker["html"]} <a href="https://x.example/?{marker["link"]}">x</a></p>',
            "text": marker["text"],
            "attachments": [attachment(f"{marker['filename']}.txt", marker["attachment"])],
            "headers": {"X-Order": marker["header"]},
            "metadata": {"order": marker["metadata"]},
            "tags": [marker["tag"]],
            "idempotencyKey": key,
        }
        self.first = self.call("POST", "/emails/send", body)["id"]
        self.call("POST", f"/emails/{self.first}/resend", {})
        later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        scheduled = {**body, "subject": marker["scheduled"], "scheduledFor": later, "idempotencyKey": "scheduled"}
        scheduled_id = self.call("POST", "/emails/send", scheduled)["id"]
        self.call("DELETE", f"/emails/{scheduled_id}", expected=200)

    def send_batch(self) -> None:
        template = {"name": "T", "alias": "hi", "subject": "Hi", "htmlContent": "<p>{{name}}</p>"}
        self.call("POST", "/templates", template, expected=201)
        one = {"from": "hello@demo.example", "to": self.address, "templateId": "hi"}
        self.call("POST", "/emails/send", {**one, "templateData": {"name": self.markers["template_data"]}})
        to = f"{self.markers['batch_name']} <{self.address}>"
        recipients = [{"to": to, "templateData": {"name": self.markers["batch_data"]}}]
        batch = {"from": "hello@demo.example", "templateId": "hi", "recipients": recipients}
        self.call("POST", "/emails/batch", {**batch, "idempotencyKey": "batch"})

    def send_by_smtp(self) -> None:
        marker = self.markers
        message = EmailMessage()
        message["From"], message["To"] = "hello@demo.example", self.address
        message["Cc"] = f"{marker['smtp_cc']} <shown@example.com>"
        message["Subject"], message["X-Order"] = marker["smtp_subject"], marker["smtp_header"]
        message.set_content(marker["smtp_text"])
        submit(self.stack, message, self.address)

    def send_by_dialects(self) -> None:
        marker, key = self.markers, self.stack.key
        postmark = {
            "From": "hello@demo.example",
            "To": self.address,
            "Subject": marker["postmark_subject"],
            "TextBody": "Hi",
            "Metadata": {"order": marker["postmark_metadata"]},
        }
        dialect(self.stack, "postmark/email", postmark, {"X-Postmark-Server-Token": key})
        resend = {
            "from": "hello@demo.example",
            "to": [self.address],
            "subject": "Hi",
            "html": f"<p>{marker['resend_html']}</p>",
            "headers": {"X-Order": marker["resend_header"]},
        }
        dialect(self.stack, "resend/emails", resend, {"Authorization": f"Bearer {key}"})
        sendgrid = {
            "from": {"email": "hello@demo.example"},
            "subject": "Hi",
            "personalizations": [
                {"to": [{"email": self.address}], "custom_args": {"order": marker["sendgrid_argument"]}}
            ],
            "content": [{"type": "text/plain", "value": marker["sendgrid_text"]}],
        }
        dialect(self.stack, "sendgrid/v3/mail/send", sendgrid, {"Authorization": f"Bearer {key}"})

    def send_to_others(self) -> None:
        """Send emails to others that name the person."""
        body = {"from": "hello@demo.example", "to": "other@example.com", "subject": "Hi", "html": "<p>Hi</p>"}
        marker = self.markers
        self.call("POST", "/emails/send", {**body, "subject": f"{marker['mentioned_subject']} of {self.address}"})
        metadata = {"customer": self.address, "order": marker["mentioned_metadata"]}
        self.call("POST", "/emails/send", {**body, "metadata": metadata})
        data = {"name": f"{marker['mentioned_data']} {self.address}"}
        named = {"from": "hello@demo.example", "to": "other@example.com", "templateId": "hi", "templateData": data}
        self.call("POST", "/emails/send", named)

    def ask(self) -> None:
        """Send requests that store nothing about the person."""
        marker = self.markers
        body = {"from": "hello@demo.example", "to": self.address, "subject": "Hi"}
        self.call("POST", "/emails/send", {**body, "html": marker["dry_run"], "dryRun": True}, expected=200)
        refused = {**body, "html": "x", marker["refused_field"]: self.address}
        self.call("POST", "/emails/send", refused, expected=422)
        self.call("GET", f"/emails?search={marker['search']}", expected=200)
        self.call("GET", f"/emails/{marker['path']}@example.com", expected=404)
        self.call("POST", "/suppressions", {"email": self.suppressed}, expected=201)
        (row,) = self.call("GET", f"/suppressions?search={marker['suppression']}", expected=200)["data"]
        self.call("DELETE", f"/suppressions/{row['id']}", expected=200)

    def read_message(self) -> None:
        """Open and click, as the mail program of the person does."""
        rows = self.stack.query(
            "SELECT source FROM inbox_caughtmail WHERE recipient = %s AND subject = %s",
            self.address, self.markers["subject"],
        )  # fmt: skip
        message = message_from_bytes(bytes(rows[0][0]), policy=policy.default)
        html = message.get_body(("html",)).get_content()
        paths = re.findall(rf"{self.stack.url}(/t/[^\"]+)", html)
        assert len(paths) == 2
        for path in paths:
            visit(self.stack, path, browser=f"Mozilla/5.0 {self.markers['browser']}")

    def bounce(self) -> None:
        """Return the message to the person, with a text."""
        sql = "SELECT envelope_from FROM inbox_caughtmail WHERE recipient = %s AND subject = %s"
        ((sender,), *_) = self.stack.query(sql, self.address, self.markers["smtp_subject"])
        deliver(self.stack, dsn(self.address, text=self.markers["bounce_text"]), to=sender, sender="")

    def receive(self) -> None:
        """Receive an email of the person, and one of somebody else that has the person in Cc."""
        address = self.call("GET", "/inbound", expected=200)["address"]
        marker = self.markers
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self.address, address, marker["received_subject"]
        message.set_content(marker["received_text"])
        message.add_attachment(marker["received_file"].encode(), maintype="text", subtype="plain", filename="a.txt")
        deliver(self.stack, message.as_bytes(policy=policy.SMTP), to=address, sender=self.address)
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = "other@example.com", address, "Hi"
        message["Cc"] = f'"{marker["received_cc"]}" <{self.address}>'
        message.set_content("Hi")
        deliver(self.stack, message.as_bytes(policy=policy.SMTP), to=address, sender="other@example.com")

    def is_idle(self) -> bool:
        waiting = """
        SELECT (SELECT count(*) FROM emails_pending) + (SELECT count(*) FROM webhooks_pending)
             + (SELECT count(*) FROM inbound_mailreport WHERE processed_at IS NULL)
             + (SELECT count(*) FROM receiving_message WHERE read_at IS NULL)
             + (SELECT count(*) FROM emails_event WHERE number > (
                    SELECT last FROM events_feedprogress WHERE source = 'log'))
        """
        return self.stack.query(waiting) == [(0,)]


def attachment(filename: str, text: str) -> dict[str, str]:
    return {"filename": filename, "content": base64.b64encode(text.encode()).decode()}


def submit(stack: Stack, message: EmailMessage, *to: str) -> None:
    with smtplib.SMTP("127.0.0.1", int(stack.environment["SUBMISSION_PORTS"]), timeout=30) as client:
        client.login("x", stack.key)
        client.send_message(message, "hello@demo.example", to)


def deliver(stack: Stack, message: bytes, *, to: str, sender: str) -> None:
    """Deliver a message as another mail server does."""
    with smtplib.SMTP("127.0.0.1", int(stack.environment["INBOUND_PORT"]), timeout=30) as client:
        client.sendmail(sender, [to], message)


def dialect(stack: Stack, path: str, body: Any, headers: dict[str, str]) -> None:
    data, headers = json.dumps(body).encode(), {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(f"{stack.url}/compat/{path}", data, headers, method="POST")
    with urllib.request.urlopen(request, timeout=30) as response:
        assert response.status in {200, 202}


def visit(stack: Stack, path: str, *, browser: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", int(stack.environment["PORT"]), timeout=30)
    connection.request("GET", path, headers={"User-Agent": browser})
    assert connection.getresponse().status in {200, 302}
    connection.close()


def leftovers(found: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the places of markers where no page says that they stay."""
    rest = {name: places - STAYS.get(name, set()) for name, places in found.items()}
    return {name: places for name, places in rest.items() if places}


def test_an_erasure_leaves_no_marker_of_a_person(service, receiver):
    person = Person(service, receiver)
    person.use_all()
    export_id = person.call("POST", "/subject-exports", {"email": person.address})["id"]
    is_made = lambda: person.call("GET", f"/subject-exports/{export_id}", expected=200)["status"] == "completed"  # noqa: E731
    wait_for(is_made, seconds=120, what="the export")
    before = find_markers(service, person.markers)
    assert set(STORED) - before.keys() == set(), "each of them is stored somewhere, or this test shows nothing"
    assert "privacy_subjectexportpart" in before["html"]
    assert leftovers({name: before[name] for name in PASSING if name in before}) == {}
    for address in (person.suppressed, person.address):
        erasure = person.call("POST", "/erasures", {"email": address})["id"]
        is_erased = lambda: person.call("GET", f"/erasures/{erasure}", expected=200)["status"] == "completed"  # noqa: B023, E731
        wait_for(is_erased, seconds=180, what="the erasure")
    # What is written behind requests is written by now.
    assert leftovers(find_markers(service, person.markers)) == {}
    response = person.stack.call("POST", "/emails/send", {"from": "hello@demo.example", "to": person.address,
        "subject": "Hi", "html": "x"})  # fmt: skip
    assert response.body["code"] == "recipient_suppressed"


def test_the_content_of_a_sensitive_email_is_gone_after_its_outcome(service, receiver):
    """The test runs the periodic task, which is due every 20 seconds, in place of a minute of waiting."""
    marker = new_markers(*SENSITIVE)
    receiver.answer = status(200)
    to = "sensitive@example.com"
    body = {
        "from": "hello@demo.example",
        "to": to,
        "subject": "Your code",
        "html": f'<p>{marker["html"]} <a href="https://x.example/?{marker["link"]}">x</a></p>',
        "text": marker["text"],
        "attachments": [attachment(f"{marker['filename']}.txt", marker["attachment"])],
        "sensitive": True,
        "idempotencyKey": "sensitive",
    }
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    scheduled = service.call("POST", "/emails/send", {**body, "scheduledFor": later})
    assert scheduled.status == 202
    stored = find_markers(service, marker)
    assert {"html", "text", "filename", "attachment", "link"} <= stored.keys(), "it is stored while it is on its way"
    assert service.call("PATCH", f"/emails/{scheduled.body['id']}", {"scheduledFor": None}).status == 200
    template = {"name": "Code", "alias": "code", "subject": "Code", "htmlContent": "<p>{{code}}</p>"}
    assert service.call("POST", "/templates", template).status == 201
    one = {"from": "hello@demo.example", "templateId": "code", "sensitive": True}
    for path, fields in (
        ("send", {"to": to, "templateData": {"code": marker["template_data"]}}),
        ("batch", {"recipients": [{"to": to, "templateData": {"code": marker["batch_data"]}}]}),
    ):
        assert service.call("POST", f"/emails/{path}", {**one, **fields}).status == 202
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "hello@demo.example", to, "Your code"
    message["X-Postrider-Sensitive"] = "true"
    message.set_content(marker["smtp_text"])
    message.add_attachment(marker["smtp_file"].encode(), maintype="text", subtype="plain", filename="a.txt")
    submit(service, message, to)
    sent = "SELECT count(*) FROM emails_email WHERE sensitive AND finished_at IS NOT NULL"
    wait_for(lambda: service.query(sent) == [(4,)], seconds=120, what="the outcomes")
    service.manage("shell", "--verbosity", "0", "-c", "from emails.tasks import remove_contents; remove_contents()")
    assert find_markers(service, marker) == {}
