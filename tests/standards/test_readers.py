"""Independent parsers read back what was given: Python's, with no defect, and mailparser."""

import email
import hashlib
import json
import re
from datetime import datetime
from email import policy
from email.message import EmailMessage
from pathlib import Path

import pytest

from delivery.message.compose import Mailbox, OutgoingMessage
from delivery.message.text import text_of_html
from tests.standards import shapes
from tests.standards.tools import node

READ = Path(__file__).parent / "scripts" / "read.cjs"
SINGLE = (
    "From",
    "To",
    "Cc",
    "Reply-To",
    "Subject",
    "Date",
    "Message-ID",
    "MIME-Version",
    "List-Unsubscribe",
    "Feedback-ID",
)
LETTERS = shapes.letters()


def line_ends(text: str) -> str:
    """Return a text as a reader shows it; the last line may end or not."""
    return re.sub("\r\n|\r", "\n", text).rstrip("\n")


def expected_text(letter: OutgoingMessage) -> str:
    return line_ends(letter.text or (text_of_html(letter.html) if letter.html else ""))


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_strictly(name: str) -> EmailMessage:
    message = email.message_from_bytes(shapes.signed()[name], policy=policy.strict)
    assert [defect for part in message.walk() for defect in part.defects] == []
    return message


@pytest.mark.parametrize("name", LETTERS)
def test_python_finds_no_defect_and_reads_the_letter(name):
    letter, message = LETTERS[name], read_strictly(name)
    assert {header: len(message.get_all(header, [])) for header in SINGLE if len(message.get_all(header, [])) > 1} == {}
    assert "Bcc" not in message
    assert message["Subject"] == letter.subject
    assert message["Date"].datetime == letter.date
    assert message["Message-ID"] == letter.message_id
    for header, mailboxes in (("To", letter.to), ("Cc", letter.cc)):
        found = [address.addr_spec for address in message[header].addresses] if mailboxes else []
        assert found == [mailbox.spec for mailbox in mailboxes]
    plain = message.get_body(("plain",))
    assert line_ends(plain.get_content()) == expected_text(letter)
    rich = message.get_body(("html",))
    assert line_ends(rich.get_content() if rich else "") == line_ends(letter.html)
    found = [part.get_payload(decode=True) for part in message.walk() if part.get_filename()]
    assert sorted(map(digest, found)) == sorted(digest(file.data) for file in letter.files)


@pytest.fixture(scope="module")
def read_by_mailparser(good: dict[str, Path]) -> dict[str, dict]:
    """What mailparser makes of every shape, in one process."""
    given = json.dumps({"files": [str(path) for path in good.values()]})
    found = json.loads(node(READ, given=given))
    return {name: found[str(path)] for name, path in good.items()}


def pairs(mailboxes: tuple[Mailbox, ...]) -> list[list[str]]:
    return [[mailbox.name.strip(), mailbox.spec] for mailbox in mailboxes]


def as_sent(found: list[list[str]]) -> list[list[str]]:
    """Return addresses with A-labels again, which mailparser shows as people read them."""
    split = [(name.strip(), *spec.rpartition("@")) for name, spec in found]
    return [[name, local + at + domain.encode("idna").decode()] for name, local, at, domain in split]


@pytest.mark.parametrize("name", LETTERS)
def test_mailparser_reads_the_letter(name, read_by_mailparser):
    letter, found = LETTERS[name], read_by_mailparser[name]
    assert found["subject"].strip() == letter.subject.strip()
    assert found["messageId"] == letter.message_id
    assert datetime.fromisoformat(found["date"]) == letter.date
    assert as_sent(found["from"]) == pairs((letter.sender,))
    assert as_sent(found["to"]) == pairs(letter.to)
    assert as_sent(found["cc"]) == pairs(letter.cc)
    assert as_sent(found["replyTo"]) == pairs((letter.reply_to,) if letter.reply_to else ())
    assert found["bcc"] == []
    assert line_ends(found["text"]) == expected_text(letter)
    assert line_ends(found["html"]) == line_ends(letter.html)
    assert [
        (file["filename"], file["contentType"], file["disposition"], file["cid"], file["digest"])
        for file in found["attachments"]
    ] == [
        (
            file.filename,
            # That of a forwarded message is not on the wire: like mail programs, it goes by the name.
            file.content_type,
            "inline" if file.content_id else "attachment",
            file.content_id,
            digest(file.data),
        )
        for file in letter.files
    ]


@pytest.mark.parametrize("name", LETTERS)
def test_mailparser_finds_the_way_to_unsubscribe(name, read_by_mailparser):
    found, wanted = read_by_mailparser[name]["list"], LETTERS[name].unsubscribe_url
    assert (found["unsubscribe"]["url"] if found else None) == wanted
    assert (found["unsubscribe-post"]["name"] if found else None) == ("List-Unsubscribe=One-Click" if wanted else None)


@pytest.mark.parametrize("name", LETTERS)
def test_lines_stay_within_their_limits(name):
    message = shapes.signed()[name]
    assert message.isascii()
    assert message.endswith(b"\r\n")
    assert re.search(rb"\r(?!\n)|(?<!\r)\n", message) is None
    head, _, body = message.partition(b"\r\n\r\n")
    assert max(map(len, body.split(b"\r\n"))) <= 78
    for line in head.split(b"\r\n"):
        assert len(line) <= 998
        # What is longer has no blank behind the header's name, so that it could not be folded.
        value = re.sub(rb"^[\w-]+:", b"", line).strip()
        assert len(line) <= 78 or b" " not in value
