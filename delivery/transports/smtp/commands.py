"""What a message looks like on the wire: MAIL and RCPT with their parameters, and the body with its dots."""

import re
from collections.abc import Mapping

from delivery.message.delivery_request import Envelope
from delivery.message.errors import UnsafeAddress

LINE_END = re.compile(rb"\r\n|\r|\n")
# What could end a path or a command line. Requests with such addresses were refused long before.
UNSAFE = re.compile(r"[\x00-\x20\x7f<>]")
NOT_XTEXT = re.compile(r"[^!-*,-<>-~]")
MAX_ENVID = 100


def mail_command(envelope: Envelope, *, size: int, extensions: Mapping[str, str]) -> bytes:
    """Return MAIL FROM with the parameters that the host offers. Raises UnsafeAddress."""
    command = f"MAIL FROM:<{_safe(envelope.sender)}>"
    if "SIZE" in extensions:
        command += f" SIZE={size}"
    if not (envelope.recipient + envelope.sender).isascii():
        command += " SMTPUTF8"
    if "DSN" in extensions:
        # The reports go to an address that is the recipient's own, so it names the envelope as well.
        envid = _xtext(envelope.sender)
        command += " RET=HDRS" + (f" ENVID={envid}" if len(envid) <= MAX_ENVID else "")
    return f"{command}\r\n".encode()


def rcpt_command(envelope: Envelope, *, notify: str, extensions: Mapping[str, str]) -> bytes:
    """Return RCPT TO; notify: which DSNs (RFC 3461, section 4.1) to ask for. Raises UnsafeAddress."""
    command = f"RCPT TO:<{_safe(envelope.recipient)}>"
    if "DSN" in extensions and envelope.recipient.isascii():
        command += f" NOTIFY={notify} ORCPT=rfc822;{_xtext(envelope.recipient)}"
    return f"{command}\r\n".encode()


def dot_stuffed(message: bytes) -> bytes:
    """Return what follows DATA, the final dot included (RFC 5321, section 4.5.2).

    A bare CR or LF would be a line end to some hosts and none to others, which is how mail is smuggled
    (F27); so only CRLF leaves here.
    """
    if _has_bare_line_ends(message):
        message = LINE_END.sub(b"\r\n", message)
    if message.startswith(b"."):
        message = b"." + message
    stuffed = message.replace(b"\r\n.", b"\r\n..")
    return stuffed + (b".\r\n" if stuffed.endswith(b"\r\n") or not stuffed else b"\r\n.\r\n")


def _has_bare_line_ends(message: bytes) -> bool:
    # A third of what counting the three kinds takes.
    rest = message.replace(b"\r\n", b"")
    return b"\n" in rest or b"\r" in rest


def _safe(address: str) -> str:
    if UNSAFE.search(address):
        raise UnsafeAddress("an envelope address may not contain blanks, angle brackets or control characters")
    return address


def _xtext(text: str) -> str:
    """RFC 3461, section 4."""
    return NOT_XTEXT.sub(lambda match: f"+{ord(match[0]):02X}", text)
