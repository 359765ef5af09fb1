"""Messages read back by independent parsers: Python's, without a defect, and mailparser."""

import email
import hashlib
import json
import re
from datetime import datetime
from email import policy
from email.message import EmailMessage
from pathlib import Path

import pytest

from core.delivery.message.compose import OutgoingMessage
from core.delivery.message.text import html_to_text
from core.lib.email_addresses import Address
from tests.rows import each
from tests.standards import shapes
from tests.standards.tools import node

READ = Path(__file__).parent / "scripts" / "read.cjs"
SINGLE = (
    "From", "To", "Cc", "Reply-To", "Subject", "Date", "Message-ID", "MIME-Version", "List-Unsubscribe", "Feedback-ID",
)  # fmt: skip
OUTGOING_MESSAGES = shapes.outgoing_messages()


def line_ends(text: str) -> str:
    """Return text with LF line ends and none at the end."""
    return re.sub("\r\n|\r", "\n", text).rstrip("\n")


def expected_text(outgoing_message: OutgoingMessage) -> str:
    return line_ends(outgoing_message.text or (html_to_text(outgoing_message.html) if outgoing_message.html else ""))


def content_of(part: EmailMessage) -> bytes:
    """Return the content of a file; an attached message is a part with one part."""
    if part.get_content_type() != "message/rfc822":
        return part.get_payload(decode=True)
    return part.get_payload(0).as_bytes(policy=policy.SMTP)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_strictly(name: str) -> EmailMessage:
    message = email.message_from_bytes(shapes.signed()[name], policy=policy.strict)
    assert [defect for part in message.walk() for defect in part.defects] == []
    return message


@each("name", OUTGOING_MESSAGES)
def test_python_finds_no_defect_and_reads_the_message(name):
    outgoing_message, message = OUTGOING_MESSAGES[name], read_strictly(name)
    assert {header: len(message.get_all(header, [])) for header in SINGLE if len(message.get_all(header, [])) > 1} == {}
    assert "Bcc" not in message
    assert message["Subject"] == outgoing_message.subject
    assert message["Date"].datetime == outgoing_message.date
    assert message["Message-ID"] == outgoing_message.message_id
    for header, mailboxes in (("To", outgoing_message.to), ("Cc", outgoing_message.cc)):
        found = [address.addr_spec for address in message[header].addresses] if mailboxes else []
        assert found == [mailbox.spec for mailbox in mailboxes]
    plain = message.get_body(("plain",))
    assert line_ends(plain.get_content()) == expected_text(outgoing_message)
    rich = message.get_body(("html",))
    assert line_ends(rich.get_content() if rich else "") == line_ends(outgoing_message.html)
    found = [content_of(part) for part in message.walk() if part.get_filename()]
    assert sorted(map(digest, found)) == sorted(digest(file.data) for file in outgoing_message.files)


@pytest.fixture(scope="module")
def read_by_mailparser(good: dict[str, Path]) -> dict[str, dict]:
    """Return mailparser's reading of every shape, from one process."""
    given = json.dumps({"files": [str(path) for path in good.values()]})
    found = json.loads(node(READ, given=given))
    return {name: found[str(path)] for name, path in good.items()}


def pairs(mailboxes: tuple[Address, ...]) -> list[list[str]]:
    return [[mailbox.name.strip(), mailbox.spec] for mailbox in mailboxes]


def as_sent(found: list[list[str]]) -> list[list[str]]:
    """Return addresses with domains in A-labels; mailparser decodes them to U-labels."""
    split = [(name.strip(), *spec.rpartition("@")) for name, spec in found]
    return [[name, local + at + domain.encode("idna").decode()] for name, local, at, domain in split]


@each("name", OUTGOING_MESSAGES)
def test_mailparser_reads_the_message(name, read_by_mailparser):
    outgoing_message, found = OUTGOING_MESSAGES[name], read_by_mailparser[name]
    assert found["subject"].strip() == outgoing_message.subject.strip()
    assert found["messageId"] == outgoing_message.message_id
    assert datetime.fromisoformat(found["date"]) == outgoing_message.date
    assert as_sent(found["from"]) == pairs((outgoing_message.sender,))
    assert as_sent(found["to"]) == pairs(outgoing_message.to)
    assert as_sent(found["cc"]) == pairs(outgoing_message.cc)
    assert as_sent(found["replyTo"]) == pairs(outgoing_message.reply_to)
    assert found["bcc"] == []
    assert line_ends(found["text"]) == expected_text(outgoing_message)
    assert line_ends(found["html"]) == line_ends(outgoing_message.html)
    assert [
        (file["filename"], file["contentType"], file["disposition"], file["cid"], file["digest"])
        for file in found["attachments"]
    ] == [
        (
            file.filename,
            file.content_type,
            "inline" if file.content_id else "attachment",
            file.content_id,
            digest(file.data),
        )
        for file in outgoing_message.files
    ]
    listed, wanted = found["list"], outgoing_message.unsubscribe_url
    assert (listed["unsubscribe"]["url"] if listed else None) == wanted
    assert (listed["unsubscribe-post"]["name"] if listed else None) == (
        "List-Unsubscribe=One-Click" if wanted else None
    )


@each("name", OUTGOING_MESSAGES)
def test_lines_stay_within_their_limits(name):
    message = shapes.signed()[name]
    assert message.isascii()
    assert message.endswith(b"\r\n")
    assert re.search(rb"\r(?!\n)|(?<!\r)\n", message) is None
    head, _, body = message.partition(b"\r\n\r\n")
    assert max(map(len, body.split(b"\r\n"))) <= 78
    for line in head.split(b"\r\n"):
        assert len(line) <= 998
        # A longer line has no space after the header's name at which to fold it.
        value = re.sub(rb"^[\w-]+:", b"", line).strip()
        assert len(line) <= 78 or b" " not in value
