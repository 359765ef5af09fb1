"""The check of messages that arrived at a sink of `benchmarks.peers`."""

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from benchmarks.peers.messages import SENDER_DOMAIN
from benchmarks.peers.received import ReceivedMail
from delivery.message.dkim import SigningKey, sign

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


def test_a_missing_message_is_noticed(received: ReceivedMail, key: SigningKey):
    (received.directory / "one").write_bytes(sign(MESSAGE, key=key))
    with pytest.raises(AssertionError, match="1 of 2 messages arrived"):
        received.take(2)


def test_a_message_without_a_signature_is_noticed(received: ReceivedMail):
    (received.directory / "one").write_bytes(MESSAGE)
    with pytest.raises(AssertionError):
        received.take(1)


def test_a_changed_message_is_noticed(received: ReceivedMail, key: SigningKey):
    (received.directory / "one").write_bytes(sign(MESSAGE, key=key).replace(b"Thanks", b"Pay up"))
    with pytest.raises(AssertionError, match="does not verify"):
        received.take(1)
