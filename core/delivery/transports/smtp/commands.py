"""SMTP commands on the wire: MAIL and RCPT with their parameters, and the dot-stuffed body."""

import re
from collections.abc import Mapping

from core.delivery.message.compose import OutgoingMessage
from core.delivery.message.errors import UnsafeAddress

LINE_END = re.compile(rb"\r\n|\r|\n")
# Characters that could end a path or a command line. The API refuses such addresses; this is a last check.
UNSAFE = re.compile(r"[\x00-\x20\x7f<>]")
NOT_XTEXT = re.compile(r"[^!-*,-<>-~]")
MAX_ENVID = 100


def mail_command(message: OutgoingMessage, *, size: int, extensions: Mapping[str, str]) -> bytes:
    """Return MAIL FROM with the parameters that the host supports. Raises UnsafeAddress."""
    command = f"MAIL FROM:<{_safe(message.return_path)}>"
    if "SIZE" in extensions:
        command += f" SIZE={size}"
    if not (message.recipient + message.return_path).isascii():
        # The headers are in UTF-8, too. RFC 6531, section 3.1: a host that offers SMTPUTF8 offers 8BITMIME.
        command += " SMTPUTF8 BODY=8BITMIME"
    if message.asks_for_requiretls and "REQUIRETLS" in extensions:
        # RFC 8689: the host passes the message on with TLS only, too.
        command += " REQUIRETLS"
    if "DSN" in extensions:
        # Each recipient has a separate return path, so it identifies the envelope as well.
        envid = _xtext(message.return_path)
        command += " RET=HDRS" + (f" ENVID={envid}" if len(envid) <= MAX_ENVID else "")
    return f"{command}\r\n".encode()


def rcpt_command(message: OutgoingMessage, *, notify: str, extensions: Mapping[str, str]) -> bytes:
    """Return RCPT TO. notify: the DSNs (RFC 3461, section 4.1) to request. Raises UnsafeAddress."""
    command = f"RCPT TO:<{_safe(message.recipient)}>"
    if "DSN" in extensions:
        command += f" NOTIFY={notify}"
        # RFC 3461, section 4.2: an original recipient is ASCII.
        command += f" ORCPT=rfc822;{_xtext(message.recipient)}" if message.recipient.isascii() else ""
    return f"{command}\r\n".encode()


def dot_stuffed(message: bytes) -> bytes:
    """Return the message as sent after DATA, with the final dot (RFC 5321, section 4.5.2).

    A bare CR or LF is a line end to some hosts and not to others, which allows SMTP smuggling (F27); all are
    replaced with CRLF.
    """
    if _has_bare_line_ends(message):
        message = LINE_END.sub(b"\r\n", message)
    if message.startswith(b"."):
        message = b"." + message
    stuffed = message.replace(b"\r\n.", b"\r\n..")
    return stuffed + (b".\r\n" if stuffed.endswith(b"\r\n") or not stuffed else b"\r\n.\r\n")


def _has_bare_line_ends(message: bytes) -> bool:
    # Takes a third of the time of counting CRLF, CR and LF.
    rest = message.replace(b"\r\n", b"")
    return b"\n" in rest or b"\r" in rest


def _safe(address: str) -> str:
    if UNSAFE.search(address):
        raise UnsafeAddress("an envelope address must not contain spaces, angle brackets or control characters")
    return address


def _xtext(text: str) -> str:
    """Return text in xtext encoding (RFC 3461, section 4)."""
    return NOT_XTEXT.sub(lambda match: f"+{ord(match[0]):02X}", text)
