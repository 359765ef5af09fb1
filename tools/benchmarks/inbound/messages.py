"""The signed messages with 20 kB of text that each program receives, and the DNS records of their sender."""

from collections.abc import Iterator
from functools import cached_property
from itertools import count, islice

import dkim

from tools.benchmarks.peers.messages import SENTENCE, MessageFiles

DOMAIN = "sender.example"
SENDER = f"ada@{DOMAIN}"
SELECTOR = "inbound"
MESSAGE_BYTES = 20_000
SIGNED = [b"From", b"To", b"Subject", b"Date"]


class SignedMessages:
    """Messages with one valid signature. They differ in a field that it does not cover, so that none is a repeat."""

    def __init__(self, files: MessageFiles) -> None:
        self._files = files
        self._numbers = count()

    @cached_property
    def zone(self) -> dict[str, dict[str, list[str]]]:
        # A string of a TXT record has at most 255 characters.
        key = f"v=DKIM1; k=rsa; p={self._files.public_key}"
        strings = " ".join(f'"{key[start : start + 255]}"' for start in range(0, len(key), 255))
        return {
            DOMAIN: {"TXT": ['"v=spf1 ip4:127.0.0.0/8 -all"']},
            f"_dmarc.{DOMAIN}": {"TXT": ['"v=DMARC1; p=reject"']},
            f"{SELECTOR}._domainkey.{DOMAIN}": {"TXT": [strings]},
        }

    def take(self, amount: int, *, to: str) -> Iterator[bytes]:
        signed = self._signed(to)
        for number in islice(self._numbers, amount):
            yield b"X-Number: %d\r\n" % number + signed

    def _signed(self, to: str) -> bytes:
        assert self._files.public_key
        lines = [f"{SENTENCE} {number}" for number in range(MESSAGE_BYTES // len(SENTENCE))]
        fields = [
            f"From: Ada <{SENDER}>",
            f"To: {to}",
            "Subject: Where is my order?",
            "Date: Thu, 26 Nov 2026 09:00:00 +0000",
            "MIME-Version: 1.0",
            "Content-Type: text/plain; charset=utf-8",
        ]
        message = "\r\n".join([*fields, "", *lines, ""]).encode()
        key = self._files.private_key.read_bytes()
        options = {"canonicalize": (b"relaxed", b"relaxed"), "include_headers": SIGNED}
        return bytes(dkim.sign(message, SELECTOR.encode(), DOMAIN.encode(), key, **options)) + message
