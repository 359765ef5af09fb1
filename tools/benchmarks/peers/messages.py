"""The email with 10 kB of HTML that every program sends, and the key with which the peers sign it."""

import base64
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, localtime
from functools import cached_property
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.stack.stack import REPOSITORY

SENDER_DOMAIN = "demo.example"
SENDER = f"hello@{SENDER_DOMAIN}"
SELECTOR = "peer"
# A realistic welcome email with six links, filled up with paragraphs to 10 kB.
WELCOME = (REPOSITORY / "tests" / "corpus" / "welcome.html").read_text(encoding="utf-8")
SENTENCE = "Your account is ready, and everything that you need to begin is explained on the pages behind these links."
FILLING = f"<p>Dear {{{{name}}}}, {SENTENCE} {SENTENCE}</p>\n" * 16
HTML = WELCOME.replace("</body>", f"{FILLING}</body>")
TEXT = f"Dear {{{{name}}}},\n\n{SENTENCE}\n" * 8
SUBJECT = "Your receipt, {{name}}"


@dataclass(frozen=True)
class MessageFiles:
    """The files that the peers read, in one directory."""

    directory: Path

    @property
    def message(self) -> Path:
        return self.directory / "message.eml"

    @property
    def private_key(self) -> Path:
        return self.directory / "key.pem"

    @cached_property
    def public_key(self) -> str:
        """Return the public key in the form of a DNS record; both keys are created at the first use."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.private_key.touch(mode=0o600)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self.private_key.write_bytes(pem)
        der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return base64.b64encode(der).decode()

    def write(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.message.write_bytes(_message_for("Ada"))
        (self.directory / "mail.html").write_text(HTML)
        (self.directory / "mail.txt").write_text(TEXT)


def _message_for(name: str) -> bytes:
    """Return the message that Postrider makes of the template, without its own headers and links."""
    message = EmailMessage(policy=SMTP)
    message["From"], message["To"], message["Subject"] = SENDER, "u@example.com", SUBJECT.replace("{{name}}", name)
    message["Date"], message["Message-ID"] = format_datetime(localtime()), f"<welcome@{SENDER_DOMAIN}>"
    message.set_content(TEXT.replace("{{name}}", name), cte="quoted-printable")
    message.add_alternative(HTML.replace("{{name}}", name), subtype="html", cte="quoted-printable")
    return message.as_bytes().replace(b"\r\n", b"\n")
