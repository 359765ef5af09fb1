"""Received emails for webhooks that contain the whole message: read for each attempt from the stored content.

The resource is that of the API without the bounds of a webhook; its URLs do not depend on the attempt.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.lib.email_addresses import quote_name
from receiving.models import ReceivedEmail
from receiving.rendering import RECEIVED_IN_WEBHOOKS
from receiving.source import (
    FIELD,
    read_attachment,
    read_head,
    read_source,
    split_header,
    without_forged_results,
)

# In a body without files: text, HTML, headers and their escapes.
SMALL_BYTES = 256 * 1024
# Fields with addresses, whose decoded text could be read as other addresses than those of the resource.
ADDRESS_FIELDS = {"from": "from", "to": "to", "cc": "cc", "reply-to": "replyTo"}
Mailboxes = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class InlinedFile:
    """An attachment with its bytes.

    entry: its entry in the resource.
    filename: never empty.
    """

    entry: Mapping[str, Any]
    filename: str
    data: bytes


@dataclass(frozen=True)
class InlinedEmail:
    """A received email for a body with its content.

    resource: as in the API.
    header: the bytes of its header.
    source: the message with our fields in front; None if its route does not include it.
    files: empty beside a source, and with links.
    """

    resource: dict[str, Any]
    header: bytes
    source: bytes | None = None
    files: list[InlinedFile] = field(default_factory=list)
    has_links: bool = False

    def header_text(self, name: str) -> str:
        """Return the decoded text of a header field, "" without one."""
        return next((value for key, value in self.resource["headers"] if key.lower() == name.lower()), "")


def header_fields(resource: Mapping[str, Any], *, without: Collection[str] = ()) -> list[list[str]]:
    """Return names and texts of the header fields of a resource; addresses are those that were read.

    without: names in lower case; one that ends in a hyphen is the beginning of names.
    """
    fields: list[list[str]] = []
    seen: set[str] = set()
    for name, value in resource["headers"]:
        lower = name.strip().lower()
        # The first field of a name has the addresses of all.
        if is_named(name, without) or (lower in ADDRESS_FIELDS and lower in seen):
            continue
        seen.add(lower)
        member = resource[ADDRESS_FIELDS[lower]] if lower in ADDRESS_FIELDS else None
        mailboxes = [member] if isinstance(member, dict) else member
        fields.append([name, value if lower not in ADDRESS_FIELDS else mailbox_list(mailboxes or [])])
    return fields


def measure_email(event: Mapping[str, Any]) -> int:
    """Return the approximate size of a body with the content of an event's email, in bytes."""
    return SMALL_BYTES + int(event["data"].get("size") or 0)


def load_inlined(data: Mapping[str, Any]) -> InlinedEmail | None:
    """Return the email of an event with its content, None if it was deleted. data: of the event.

    A sample has no stored email; its data is all there is.
    """
    email = ReceivedEmail.objects.select_related("message").with_replies().filter(id=data["id"]).first()
    if email is None:
        return None if data.get("raw") else InlinedEmail(dict(data), _header_bytes(data["headers"]))
    resource: dict[str, Any] = RECEIVED_IN_WEBHOOKS.to_representation(email)
    message = email.message
    header = without_forged_results(read_head(message)[0]).rstrip(b"\r\n") + b"\r\n"
    if email.includes_raw:
        return InlinedEmail(resource, header, source=b"".join(read_source(message)))
    return InlinedEmail(resource, header, files=_files(email, resource), has_links=not email.inlines_files)


def _files(email: ReceivedEmail, resource: Mapping[str, Any]) -> list[InlinedFile]:
    pairs = zip(resource["attachments"], email.message.attachments, strict=True)
    return [
        InlinedFile(
            shown, shown["filename"] or f"attachment-{number}", b"".join(read_attachment(email.message, stored))
        )
        for number, (shown, stored) in enumerate(pairs, 1)
    ]


def _header_bytes(fields: Sequence[Sequence[str]]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in fields).encode()


def mailbox_text(mailbox: Mapping[str, str]) -> str:
    """Return an address with its name, which is quoted if need be: `"Lovelace, Ada" <ada@example.com>`."""
    return f"{quote_name(mailbox['name'])} <{mailbox['email']}>" if mailbox["name"] else mailbox["email"]


def mailbox_list(mailboxes: Mailboxes) -> str:
    return ", ".join(map(mailbox_text, mailboxes))


def is_named(name: str, names: Collection[str]) -> bool:
    """Return whether a field has one of these names, in lower case, or begins with one that ends in a hyphen."""
    lower = name.strip().lower()
    return lower in names or any(lower.startswith(prefix) for prefix in names if prefix.endswith("-"))


def with_fields(source: bytes, added: Sequence[tuple[str, str]], *, without: Collection[str]) -> bytes:
    """Return a message with further header fields in front, and without those that a sender may have forged."""
    header, body = split_header(source)
    kept = [one for one in FIELD.findall(header) if not is_named(_name(one), without)]
    front = "".join(f"{name}: {value}\r\n" for name, value in added).encode()
    return front + b"".join(kept) + body


def _name(field: bytes) -> str:
    """Return the name of a field without NUL, which some programs drop."""
    return field.partition(b":")[0].replace(b"\0", b"").decode("latin-1")


def hash_of(address: str) -> str:
    """Return the part of an address after the first plus sign of its local part (RFC 5233)."""
    return address.rpartition("@")[0].partition("+")[2]
