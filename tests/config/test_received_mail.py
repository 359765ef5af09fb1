"""The check of messages that arrived at a sink of `tools.benchmarks.peers`."""

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from core.delivery.message.dkim import SigningKey, sign
from tools.benchmarks.peers.messages import SENDER_DOMAIN
from tools.benchmarks.peers.received import ReceivedMail

MESSAGE = (
    b"From: hello@demo.example\r\nTo: ada@example.com\r\nSubject: Your receipt\r\nMessage-ID: <1@demo.example>\r\n"
    b"Date: Sat, 21 Nov 2026 06:20:00 +0000\r\n\r\nThanks!\r\n"
)


@pytest.fixture(scope="module")
def key() -> SigningKey:
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return SigningKey(SENDER_DOMAIN, "first", private)


@pytest.fixture
def received(tmp_path: Path, key: SigningKey) -> ReceivedMail:
    der = key.private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return ReceivedMail(tmp_path, {"first": base64.b64encode(der).decode()})


def test_signed_messages_are_counted_verified_and_removed(received: ReceivedMail, key: SigningKey):
    for number in range(3):
        (received.directory / str(number)).write_bytes(sign(MESSAGE, key=key))
    received.take(3)
    assert received.count() == 0


def test_missing_unsigned_and_changed_messages_are_noticed(received: ReceivedMail, key: SigningKey):
    signed = sign(MESSAGE, key=key)
    for message, count, error in (
        (signed, 2, "1 of 2 messages arrived"),
        (MESSAGE, 1, None),
        (signed.replace(b"Thanks", b"Pay up"), 1, "does not verify"),
    ):
        (received.directory / "one").write_bytes(message)
        with pytest.raises(AssertionError, match=error):
            received.take(count)
