"""Messages of every shape that Postrider can send, signed, and tampered versions of one."""

import base64
import functools
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from core.delivery.message.compose import File, OutgoingMessage
from core.delivery.message.dkim import SigningKey
from core.delivery.message.footer import html_footer, text_footer
from core.lib.email_addresses import Address
from tests.conftest import _private_key
from tests.corpus import emails

DOMAIN = "alice.example"
SELECTOR = "pr1"
RECORD_NAME = f"{SELECTOR}._domainkey.{DOMAIN}"
UNSUBSCRIBE = "https://mail.alice.example/u/" + "t0kEn-_" * 20
PNG = b"\x89PNG\r\n\x1a\n\x00\xff" * 200
TEXT = "Dear Ada,\n\nyour order has left our house this morning and should be with you on Tuesday.\n\nAlice\n"
HTML = (
    "<!DOCTYPE html><html><head><title>Your order</title></head><body><p>Dear Ada,</p><p>your order has left our house"
    " this morning and should be with you on Tuesday.</p><p>Alice</p></body></html>"
)
UNICODE_TEXT = "Grüße aus Köln 😀👩‍👩‍👧, 你好 世界, مرحبا بالعالم, नमस्ते, e\u0301\n"
AWKWARD = ".\n..\nFrom here on\n" + "blank at the end \n" + "\ttab\t\n=\n=20\n" + "x" * 3000 + "\n\n\n"
FILES_TYPE = "application/octet-stream"
FILES = (
    File("terms.pdf", "application/pdf", b"%PDF-1.4\n" + bytes(range(256)) * 30),
    File("Übersicht, größer als gedacht, und mit einem sehr langen Namen 😀.csv", "text/csv", "é;1\r\n".encode()),
    # SpamAssassin compares the lengths of the last text and the HTML.
    File("forwarded.eml", "message/rfc822", f"From: a@b.co\nSubject: x\n\n{TEXT}".replace("\n", "\r\n").encode()),
)
LOGO = File("logo.png", "image/png", PNG, "logo@alice.example")
WITH_LOGO = HTML.replace("<p>Alice", '<img src="cid:logo@alice.example" alt="Logo" width="10" height="10"><p>Alice')
LONG_NAME = "The Customer Success and Wellbeing Team at Example & Company"
FIFTY = tuple(Address(f"Empfänger {number}" if number % 2 else "", f"r{number}@example.com") for number in range(50))


def outgoing_message(**fields: Any) -> OutgoingMessage:
    values: dict[str, Any] = {
        "return_path": "bounces@alice.example",
        "recipient": "ada@example.com",
        "message_id": "<0192f0c4-6b1e-7cc3-98c4-dc0c0c07398f@alice.example>",
        "date": datetime(2025, 11, 21, 6, 20, tzinfo=UTC),
        "sender": Address("Alice's Shop", "hi@alice.example"),
        "to": (Address("Ada Lovelace", "ada@example.com"),),
        "subject": "Your order has left our house",
        "html": HTML.replace("</body>", html_footer(UNSUBSCRIBE) + "</body>"),
        "text": TEXT + text_footer(UNSUBSCRIBE),
        "unsubscribe_url": UNSUBSCRIBE,
        "feedback_id": "welcome:ws1:alice",
    }
    return OutgoingMessage(**{**values, **fields})


def outgoing_messages() -> dict[str, OutgoingMessage]:
    """Return one outgoing message for each shape, and one for each real email of the corpus."""
    shapes = {
        "both": outgoing_message(),
        "text only": outgoing_message(html=""),
        "html only": outgoing_message(text=""),
        "inline image": outgoing_message(html=WITH_LOGO, files=(LOGO,)),
        "attachments": outgoing_message(files=FILES),
        "text with attachments": outgoing_message(html="", files=FILES),
        "all together": outgoing_message(
            html=WITH_LOGO, files=(LOGO, *FILES), cc=FIFTY[:2], reply_to=(Address("Öffice", "o@a.co"),)
        ),
        "unicode everywhere": outgoing_message(
            sender=Address("Ålice 😀, „Köln“", "hi@alice.example"),
            to=(Address("Ада " * 30, "ada@xn--e1afmkfd.example"),),
            subject=UNICODE_TEXT.strip() * 4,
            text=UNICODE_TEXT,
            html=f"<p>{UNICODE_TEXT}</p>",
            headers=(("X-Note", UNICODE_TEXT.strip()),),
        ),
        "50 recipients": outgoing_message(to=FIFTY, cc=FIFTY),
        "bcc copy": outgoing_message(to=(Address("", "somebody.else@example.com"),)),
        "awkward lines": outgoing_message(text=AWKWARD, html=f"<pre>{AWKWARD}</pre>"),
        "custom headers": outgoing_message(
            headers=(
                ("X-Entity-Ref-ID", "r" * 200),
                ("References", " ".join(f"<{'m' * 80}{number}@example.com>" for number in range(12))),
                ("X-Blanks", "  two  and one at the end "),
            )
        ),
        "long subject": outgoing_message(subject="every word of it " * 50),
        "empty subject": outgoing_message(subject=""),
        "empty text": outgoing_message(html="", text="", files=()),
        "no unsubscribe link": outgoing_message(unsubscribe_url=None, feedback_id=None),
        "long names": outgoing_message(
            sender=Address(LONG_NAME, "hi@alice.example"), to=(Address(LONG_NAME + ", Inc.", "a@b.co"),)
        ),
        "huge": outgoing_message(
            html=HTML * 100, text=TEXT * 100, files=(File("a.bin", FILES_TYPE, bytes(range(256)) * 4096),)
        ),
    }
    return shapes | {
        f"corpus: {real.name}": outgoing_message(html=real.html, text="", subject=real.subject) for real in emails()
    }


@functools.cache
def signed() -> dict[str, bytes]:
    key = SigningKey(DOMAIN, SELECTOR, _private_key())
    return {name: replace(message, key=key).to_bytes() for name, message in outgoing_messages().items()}


@functools.cache
def record() -> str:
    """Return the DNS record of the key."""
    public = _private_key().public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"v=DKIM1; k=rsa; p={base64.b64encode(public).decode()}"


def tampered() -> dict[str, bytes]:
    """Return one message for each attack that must break the signature."""
    whole = signed()["attachments"]
    head, _, body = whole.partition(b"\r\n\r\n")
    added = {
        name: name.encode() + b": <https://eve.example>\r\n" + whole
        for name in ("From", "Sender", "Reply-To", "To", "Cc", "Subject", "Date", "Message-ID", "List-Unsubscribe")
    } | {
        "List-Unsubscribe-Post": b"List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" + whole,
        "Feedback-ID": b"Feedback-ID: eve\r\n" + whole,
        "Content-Type": b"Content-Type: text/html\r\n" + whole,
        "Content-Transfer-Encoding": b"Content-Transfer-Encoding: 7bit\r\n" + whole,
        "In-Reply-To": b"In-Reply-To: <eve@eve.example>\r\n" + whole,
    }
    return {f"added {name}": message for name, message in added.items()} | {
        "added at the end of the headers": head + b"\r\nFrom: eve@eve.example\r\n\r\n" + body,
        "changed subject": whole.replace(b"left our house\r\nDate", b"left the house\r\nDate"),
        "changed recipient": whole.replace(b"ada@example.com", b"eve@example.com"),
        "removed one-click header": whole.replace(b"List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n", b""),
        "appended": whole + b"<p>Send money</p>\r\n",
        "changed body": whole.replace(b"on Tuesday", b"on Monday", 1),
        "cut off": whole[:-40] + b"\r\n",
    }
