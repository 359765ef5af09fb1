"""Complaints sent to abuse@: only those that prove that the sender has the message are believed (0078)."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from core.delivery.message import dkim
from domains.models import DkimKey
from events.models import Event
from interfaces.inbound.models import MailReport
from interfaces.inbound.processing import process_reports
from suppressions.models import Suppression
from tests.conftest import make_account, make_domain
from tests.interfaces.inbound.dsns import complaint
from tests.interfaces.inbound.fixtures import return_path_of, sent_recipient
from tests.rows import each

pytestmark = pytest.mark.django_db


def message_of(recipient) -> bytes:
    lines = f"From: hi@alice.example\nMessage-ID: <{recipient.id}@alice.example>\nSubject: Hello\n\nHello  Ada\n\n"
    return lines.replace("\n", "\r\n").encode()


def signed(message: bytes, domain) -> bytes:
    row = domain.dkim_keys.get()
    private = load_pem_private_key(row.private_key(), None)
    assert isinstance(private, RSAPrivateKey)
    return dkim.sign(message, key=dkim.SigningKey(domain.name, row.selector, private))


def verdict_of(source: bytes) -> str:
    """Process a complaint to abuse@; return its final status."""
    row = MailReport.objects.create(recipient_id=None, sender="fbl@provider.example", peer="192.0.2.1", source=source)
    process_reports()
    row.refresh_from_db()
    assert Suppression.objects.exists() is Event.objects.filter(kind="complained").exists()
    assert Suppression.objects.exists() is (row.verdict == "recorded")
    return row.verdict


@pytest.fixture
def recipient(workspace):
    return sent_recipient(workspace)


@pytest.fixture
def domain(workspace):
    return workspace.domains.get()


def test_a_complaint_with_only_a_message_id_is_left_to_staff(recipient):
    assert verdict_of(complaint(message_of(recipient))) == "for_people"


@each("name", ["Return-Path", "Original-Mail-From"])
def test_a_complaint_with_the_sealed_return_path_is_recorded(recipient, name):
    line = f"{name}: <{return_path_of(recipient)}>\r\n"
    is_field = name == "Original-Mail-From"
    source = complaint(b"redacted", fields=line) if is_field else complaint(line.encode() + message_of(recipient))
    assert verdict_of(source) == "recorded"


def test_a_complaint_with_our_signature_is_recorded(recipient, domain):
    assert verdict_of(complaint(signed(message_of(recipient), domain))) == "recorded"


def test_a_signature_of_another_workspace_with_the_same_domain_proves_nothing(recipient, domain):
    message = signed(message_of(recipient), domain)
    other = make_domain(make_account("bob").workspace, "alice.example")
    DkimKey.objects.filter(domain=domain).update(public_key=other_public_key())
    assert other.dkim_keys.get().public_key != DkimKey.objects.get(domain=domain).public_key
    assert verdict_of(complaint(message)) == "for_people"


def other_public_key() -> str:
    public = generate_private_key(65537, 2048).public_key()
    return base64.b64encode(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()


CHANGES = [
    (b"Hello  Ada", b"Hello Eve"), (b"Subject: Hello", b"Subject: Hi"),
    (b"Message-ID:", b"Message-ID: <x@alice.example>\r\nMessage-ID:"), (b"d=alice.example", b"d=eve.example"),
    (b"rsa-sha256", b"rsa-sha1"), (b"bh=", b"l=1; bh="), (b"message-id:", b""), (b"\r\n b=", b"\r\n b=AAAA"),
    (b"b=", b"b=\xff\x00;"),
]  # fmt: skip


@each(("old", "new"), CHANGES)
def test_a_changed_message_proves_nothing(recipient, domain, old, new):
    message = signed(message_of(recipient), domain)
    changed = message.replace(old, new)
    assert changed != message
    assert verdict_of(complaint(changed)) == "for_people"


def test_an_opt_out_needs_the_same_proof(recipient):
    source = complaint(message_of(recipient)).replace(b"Feedback-Type: abuse", b"Feedback-Type: opt-out")
    assert verdict_of(source) == "for_people"
    assert not Event.objects.filter(kind="unsubscribed").exists()
