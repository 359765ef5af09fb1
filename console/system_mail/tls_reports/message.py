"""Message with a TLS report (RFC 8460, section 5.3), and the key that signs it."""

import base64
import hashlib
from dataclasses import replace

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings

from console.system_mail.models import SystemMail
from console.system_mail.tls_reports.content import compress, file_name, sender_address
from core.delivery.message.compose import File, OutgoingMessage, Placement
from core.delivery.message.dkim import SigningKey
from core.delivery.message.encoding import encode_bytes
from core.lib.email_addresses import parse_address
from domains.models import SENDING_STATUSES, Domain
from domains.record_checks.tags import InvalidTags, parse_tags
from domains.signing_identities import load_identities

# The key is that of the sending domain; a record of its own announces the service type `tlsrpt` for it.
SELECTOR = SERVICE = "tlsrpt"
MEDIA_TYPE = "application/tlsrpt+gzip"
BODY = """--{boundary}\r
Content-Type: text/plain; charset=utf-8\r
Content-Transfer-Encoding: 7bit\r
\r
{text}\r
--{boundary}\r
Content-Type: {media_type}\r
Content-Transfer-Encoding: base64\r
Content-Disposition: attachment;\r
 filename="{filename}"\r
\r
{data}\r
--{boundary}--"""


class ReportNotSigned(Exception):
    """Raised when no key of TLSRPT_DOMAIN can sign a report; receivers ignore one without a signature."""


def report_message(mail: SystemMail) -> OutgoingMessage:
    """Return the message of a system email with a report. Raises ReportNotSigned, InvalidTag and UnknownKey.

    It leaves also if the TLS of the domain fails, which is its topic (section 5.3.1).
    """
    key, report = find_report_key(), mail.tls_report
    if key is None:
        raise ReportNotSigned
    boundary = f"=_{hashlib.sha256(mail.id.encode()).hexdigest()[:32]}"
    body = BODY.format(
        boundary=boundary,
        text=mail.text.replace("\n", "\r\n"),
        media_type=MEDIA_TYPE,
        filename=file_name(report.domain, report.day),
        data=b"".join(encode_bytes(compress(report.content))).decode().rstrip("\r\n"),
    )
    whole = File("", f'multipart/report; report-type="tlsrpt"; boundary="{boundary}"', body.encode(), None,
                 Placement.WHOLE)  # fmt: skip
    sender = parse_address(sender_address())
    return OutgoingMessage(
        return_path=sender.spec,
        recipient=mail.recipient,
        message_id=f"<{mail.id}@{sender.domain}>",
        date=mail.created_at,
        sender=sender,
        to=(parse_address(mail.recipient),),
        subject=mail.subject,
        text="",
        headers=(
            ("TLS-Report-Domain", report.domain),
            ("TLS-Report-Submitter", settings.TLSRPT_DOMAIN),
            ("TLS-Required", "No"),
        ),
        files=(whole,),
        key=key,
        attempt=mail.attempts,
        transport=mail.handed_to or "",
        is_pinned=bool(mail.handed_to),
    )


def find_report_key() -> SigningKey | None:
    """Return the key that signs reports; None unless a workspace has verified TLSRPT_DOMAIN."""
    key = find_domain_key(settings.TLSRPT_DOMAIN)
    return replace(key, selector=SELECTOR) if key else None


def report_key_record(key: SigningKey) -> str:
    """Return the DNS record of a key for reports."""
    return f"v=DKIM1; s={SERVICE}; k=rsa; p={_public_text(key)}"


def is_report_key_record(text: str, key: SigningKey) -> bool:
    """Return whether a DNS record has a key for reports, and announces their service type."""
    try:
        tags = parse_tags(text)
    except InvalidTags:
        return False
    published, services = "".join(tags.get("p", "").split()), tags.get("s", "").lower().split(":")
    return published == _public_text(key) and SERVICE in map(str.strip, services)


def _public_text(key: SigningKey) -> str:
    der = key.private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(der).decode()


def find_domain_key(name: str) -> SigningKey | None:
    """Return the DKIM key of a domain that a workspace has verified, else None.

    A domain that is only registered may belong to somebody else, and its key is not in DNS.
    """
    verified = Domain.objects.filter(name=name, status__in=SENDING_STATUSES).order_by("verified_at").first()
    if verified is None:
        return None
    pair = (verified.workspace_id, name)
    return load_identities({pair})[pair].key
