"""Readers of messages: Postrider's, Python's email, and mailparser and postal-mime with Node.js."""

import email
import email.policy
import hashlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.message import EmailMessage, MIMEPart
from pathlib import Path
from typing import Any

from receiving.reading.budget import ProcessorBudget
from receiving.reading.message import Reading, read_received

SCRIPT = Path(__file__).parent / "readers.mjs"
# Those that the tests use, too.
PACKAGES = ("mailparser@3.7.5", "postal-mime@2.7.6")


@dataclass(frozen=True)
class Attached:
    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Found:
    """The content of a message as a reader shows it. error: why it did not read it."""

    subject: str = ""
    sender: tuple[str, ...] = ()
    to: tuple[str, ...] = ()
    text: str = ""
    html: str = ""
    attachments: tuple[Attached, ...] = ()
    is_text_generated: bool = False
    problems: tuple[str, ...] = ()
    error: str = ""


def read_with_postrider(source: bytes) -> tuple[Found, float]:
    """Return what Postrider reads, and the processor time in seconds."""
    began = time.thread_time()
    reading = read_received(source, envelope_from="a@b.example", budget=ProcessorBudget())
    return _own(reading), time.thread_time() - began


def _own(reading: Reading) -> Found:
    return Found(
        reading.subject,
        tuple(one.email for one in reading.mailboxes["from"]),
        tuple(one.email for one in reading.mailboxes["to"]),
        reading.text,
        reading.html,
        tuple(Attached(one["filename"], one["size"], one["sha256"]) for one in reading.attachments),
        reading.text_generated,
        tuple(reading.errors),
    )


def read_with_python(source: bytes) -> Found:
    """Return what Python's email reads: its first text and HTML only."""
    try:
        message = email.message_from_bytes(source, policy=email.policy.default)
        bodies = [message.get_body((kind,)) for kind in ("plain", "html")]
        text, html = (_content(body) if body is not None else "" for body in bodies)
        sender, to = (_addresses(message, name) for name in ("From", "To"))
        attachments = tuple(map(_attached, message.iter_attachments())) if message.is_multipart() else ()
        return Found(str(message["Subject"] or ""), sender, to, text, html, attachments)
    # It raises many types for malformed messages.
    except Exception as error:  # noqa: BLE001
        return Found(error=f"{type(error).__name__}: {error}")


def _content(body: MIMEPart) -> str:
    content = body.get_content()
    return content if isinstance(content, str) else ""


def _addresses(message: EmailMessage, name: str) -> tuple[str, ...]:
    return tuple(one.addr_spec for field in message.get_all(name, []) for one in field.addresses)


def _attached(part: EmailMessage) -> Attached:
    data = part.get_payload(decode=True)
    content = data if isinstance(data, bytes) else part.as_bytes()
    return Attached(part.get_filename() or "", len(content), hashlib.sha256(content).hexdigest())


class NodeReaders:
    """mailparser and postal-mime, in a folder outside of the repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(SCRIPT, folder)
        if not (folder / "node_modules").exists():
            command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", ".", *PACKAGES]
            subprocess.run(command, cwd=folder, check=True, capture_output=True)

    def read(self, sources: Sequence[bytes]) -> Iterator[dict[str, Found]]:
        """Yield what each reader finds in each message. Answers are kept in the folder for the next time."""
        digests = [hashlib.sha256(source).hexdigest() for source in sources]
        files, answers = self.folder / "messages", self.folder / "answers"
        for folder in (files, answers):
            folder.mkdir(exist_ok=True)
        new = {one: source for one, source in zip(digests, sources, strict=True) if not (answers / one).exists()}
        for digest, source in new.items():
            (files / digest).write_bytes(source)
        given = "".join(f"{digest}\n" for digest in new)
        done = subprocess.run(
            ["node", SCRIPT.name], cwd=self.folder, input=given, text=True, capture_output=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        for digest in digests:
            yield {name: _theirs(answer) for name, answer in json.loads((answers / digest).read_text()).items()}


def _theirs(answer: dict[str, Any]) -> Found:
    if "error" in answer:
        return Found(error=answer["error"])
    return Found(
        answer["subject"],
        tuple(answer["from"]),
        tuple(answer["to"]),
        answer["text"],
        answer["html"],
        tuple(Attached(**one) for one in answer["attachments"]),
    )
