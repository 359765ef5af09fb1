"""The messages of CPython's email tests: each is sent with equal text, HTML and files, or refused with a clear reply.

Many of them are malformed on purpose, in the ways of real mail programs.
"""

import email
import re
import subprocess
from datetime import UTC, datetime
from email import policy
from email.message import EmailMessage
from pathlib import Path

import pytest

from delivery.message.compose import Mailbox, OutgoingMessage, compose
from lib.email_addresses import Address
from submission.drafts import read_email
from submission.errors import Refused
from tests.standards.tools import CACHE, DEBIAN

pytestmark = pytest.mark.full

PACKAGE = "libpython3.11-testsuite"
SENDER = re.compile(rb"^From:[^\r\n]*(\r\n[ \t][^\r\n]*)*", re.IGNORECASE | re.MULTILINE)
MBOX_LINE = re.compile(rb"\AFrom [^\r]*\r\n")
REPLY = re.compile(r"55[0-9] 5\.[0-9]\.[0-9] .{10,}")


@pytest.fixture(scope="module")
def messages() -> dict[str, bytes]:
    """Return the corpus as submitted: with CRLF and a sender of ours."""
    folder = CACHE / PACKAGE
    if not folder.exists():
        folder.mkdir(parents=True)
        fetch = f"cd {folder} && apt-get download {PACKAGE} && dpkg-deb -x *.deb ."
        if subprocess.run(["sh", "-c", fetch], env=DEBIAN, capture_output=True, timeout=120, check=False).returncode:
            folder.rmdir()
            pytest.skip(f"Debian's {PACKAGE} cannot be downloaded")
    files = sorted(folder.glob("usr/lib/python3.*/test/test_email/data/*.txt"))
    return {file.name: submitted(file) for file in files}


def submitted(file: Path) -> bytes:
    source = MBOX_LINE.sub(b"", re.sub(rb"\r\n|\r|\n", b"\r\n", file.read_bytes()))
    return SENDER.sub(b"From: hello@alice.example", source, count=1)


def sent(source: bytes) -> EmailMessage:
    """Return the message that is sent for a submitted one, without a footer. Raises Refused."""
    draft = read_email(source, recipients=[Address("", "ada@example.com")]).draft
    message = OutgoingMessage(
        return_path="", recipient="ada@example.com", message_id="<id@alice.example>", date=datetime.now(UTC),
        sender=Mailbox("", draft.sender.spec), to=(), subject=draft.subject or "", html=draft.html, text=draft.text,
        headers=tuple(draft.headers.items()), files=draft.files,
    )  # fmt: skip
    return email.message_from_bytes(compose(message), policy=policy.default)


def text_of(part: EmailMessage | None) -> str:
    return part.get_content().replace("\r\n", "\n").rstrip("\n") if part else ""


def files_of(message: EmailMessage) -> list[bytes]:
    """Return the contents of the leaves that are neither text nor an attached message."""
    if message.get_content_maintype() == "multipart":
        return [data for part in message.iter_parts() for data in files_of(part)]
    is_file = message.get_content_maintype() not in {"text", "message"}
    return [message.get_payload(decode=True)] if is_file else []


def test_every_message_is_sent_unchanged_or_refused(messages):
    outcomes: dict[str, str] = {}
    for name, source in messages.items():
        given = email.message_from_bytes(source, policy=policy.default)
        try:
            message = sent(source)
        except Refused as refusal:
            outcomes[name] = str(refusal)
            continue
        outcomes[name] = "sent"
        assert all(data in files_of(message) for data in files_of(given)), name
        if given.get_content_type() in {"text/plain", "multipart/alternative"} and not given.defects:
            assert text_of(message.get_body(("plain",))) == text_of(given.get_body(("plain",))), name
    refusals = [reply for reply in outcomes.values() if reply != "sent"]
    assert all(REPLY.fullmatch(reply) for reply in refusals), refusals
    assert len(outcomes) > 40
    assert len(refusals) < len(outcomes) / 2
