"""Emails that tests of the clients send and receive, and the webhooks that get them."""

from uuid import uuid4

from postrider_client import Postrider


def someone() -> str:
    """Return an address that no other test uses."""
    return f"ada-{uuid4()}@example.com"


def send_email(client: Postrider, **fields: str) -> str:
    """Send an email to someone and return its id."""
    defaults = {"from_": "hello@demo.example", "to": someone(), "subject": "Hi", "text": "Hi"}
    return client.emails.send(**defaults | fields).id


def latest_cursor(client: Postrider) -> str:
    return client.events.list(after="latest").fetch().cursor


def received_message(*, subject: str = "Where is it?", to: str = "support@in.demo.example") -> str:
    """Return a message of ada@example.com with the text "Where is my order?" and a file of 5 bytes."""
    lines = (
        "From: Ada <ada@example.com>",
        f"To: <{to}>",
        f"Subject: {subject}",
        "Date: Fri, 20 Nov 2026 09:12:29 +0000",
        "Message-ID: <order@example.com>",
        "MIME-Version: 1.0",
        'Content-Type: multipart/mixed; boundary="x"',
        "",
        "--x",
        "Content-Type: text/plain; charset=utf-8",
        "",
        "Where is my order?",
        "--x",
        'Content-Type: text/plain; name="a.txt"',
        'Content-Disposition: attachment; filename="a.txt"',
        "Content-Transfer-Encoding: base64",
        "",
        "aGVsbG8=",
        "--x--",
        "",
    )
    return "\r\n".join(lines)


def count_receiving_webhooks(client: Postrider) -> int:
    """Return how many webhooks of the shared service get received email: other tests leave some."""
    return sum(webhook.active and "received" in webhook.events for webhook in client.webhooks.list())
