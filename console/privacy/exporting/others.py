"""Other records in an export: received and caught messages, reports, audit, suppressions, accounts and settings."""

from typing import Any
from uuid import UUID

from console.privacy.exporting.emails import NOT_KEPT, add_deliveries
from console.privacy.exporting.parts import PartWriter
from console.privacy.models import Erasure, SubjectExport
from core.erasing.audit_log import find_entries
from core.erasing.steps import ErasureScope
from core.lib.email_addresses import normalize_address
from core.lib.ids import from_uuid, to_uuid
from core.workspaces.models import Invitation, Membership, Workspace
from events.models import Event
from interfaces.inbound.inbox.models import CaughtMail
from interfaces.inbound.inbox.retention import find_named
from interfaces.inbound.queue import find_mail_reports, find_provider_reports
from receiving.deletion import scan_received
from receiving.models import ForwardTarget, InboundRoute, ReceivedEmail, SenderBlock
from receiving.source import read_source
from streams.services import read_streams
from suppressions.erased import all_keys
from suppressions.models import Suppression


def export_reports(scope: ErasureScope, place: Any, writer: PartWriter) -> Any:
    """Export reports of mail servers and providers about emails to the person."""
    kind, after = place or ("mail", 0)
    reports: Any = (
        find_mail_reports(scope, after=after) if kind == "mail" else find_provider_reports(scope, after=after)
    )
    for report in reports:
        writer.add("reports", _describe_report(report))
    if reports:
        return [kind, reports[-1].number]
    return ["provider", 0] if kind == "mail" else None


def _describe_report(report: Any) -> dict[str, Any]:
    record = {"receivedAt": report.received_at, "processedAt": report.processed_at}
    if hasattr(report, "source"):
        return {**record, "sender": report.sender, "source": bytes(report.source).decode("utf-8", "replace")}
    return {**record, "provider": report.provider, "event": report.event}


def export_received(scope: ErasureScope, place: Any, writer: PartWriter) -> Any:
    """Export received emails to, from and about the person, with their messages."""
    page = scan_received(scope, place)
    ids = [from_uuid(id_, prefix="inb_") for id_ in page.named]
    rows = ReceivedEmail.objects.filter(id__in=ids).select_related("message").order_by("received_at", "id")
    for email in rows.iterator(chunk_size=1):
        name = f"received/{email.id}.eml"
        is_kept = writer.add_file(name, read_source(email.message), size=email.message.size)
        record = {**_describe_received(email), "message": name if is_kept else None}
        writer.add("receivedEmails", record, about=to_uuid(email.id, prefix="inb_"))
    events = [event for row in rows.values_list("event_id", "unread_event_id") for event in row if event]
    for event in Event.objects.filter(id__in=events).order_by("number"):
        record = {"id": event.id, "emailId": None, "type": event.kind, "createdAt": event.created_at}
        writer.add("events", {**record, "payload": event.shown_payload})
    add_deliveries(events, writer)
    return page.place


def _describe_received(email: ReceivedEmail) -> dict[str, Any]:
    message = email.message
    return {
        "id": email.id,
        "recipient": email.recipient,
        "envelopeFrom": message.envelope_from,
        "addresses": message.addresses,
        "subject": email.subject,
        "date": message.date,
        "receivedAt": email.received_at,
        "status": email.status,
        "remoteIp": message.remote_ip,
        "answeredEmailId": email.reply_email_id,
        "forwards": list(email.forwards.values("address", "created_at")),
    }


def export_caught(scope: ErasureScope, place: Any, writer: PartWriter) -> Any:
    """Export messages in the inbox of a development installation; the source of those to the person only."""
    (address,) = scope.addresses
    found = find_named(scope, after=UUID(place) if place else UUID(int=0))
    ids = [from_uuid(id_, prefix="mail_") for id_, _ in found]
    for mail in CaughtMail.objects.filter(id__in=ids).order_by("id").iterator(chunk_size=1):
        record = {"id": mail.id, "recipient": mail.recipient, "from": mail.sender, "subject": mail.subject}
        writer.add("caughtMessages", {**record, "receivedAt": mail.received_at, **_source(mail, address, writer)})
    return str(found[-1][0]) if found else None


def _source(mail: CaughtMail, address: str, writer: PartWriter) -> dict[str, Any]:
    if mail.recipient.lower() != address:
        return {}
    if not mail.keeps_content:
        return {"message": NOT_KEPT}
    name, source = f"caught/{mail.id}.eml", bytes(mail.source)
    return {"message": name if writer.add_file(name, [source], size=len(source)) else None}


def export_audit(scope: ErasureScope, place: Any, writer: PartWriter) -> Any:
    """Export entries of the audit log about the person, and of what they did as a member."""
    entries = find_entries(scope, after=place or 0)
    for entry in entries:
        record = {
            "action": entry.act,
            "about": entry.about,
            "actor": entry.actor if entry.actor_kind == "person" else "",
        }
        writer.add("auditEntries", {**record, "createdAt": entry.created_at})
    return entries[-1].pk if entries else None


def export_suppressions(scope: ErasureScope, _place: Any, writer: PartWriter) -> None:
    """Export the suppressions of the address, also one that is a hash since an erasure."""
    (address,) = scope.addresses
    slugs = ("", *read_streams(Workspace.objects.get(id=scope.workspace_id)))
    keys = [key for slug in slugs for key in all_keys(address, stream=slug)]
    for row in Suppression.objects.filter(workspace=scope.workspace_id, address_key__in=keys).order_by("stream"):
        record = {"email": row.email, "stream": row.stream or None, "reason": row.reason, "createdAt": row.created_at}
        writer.add("suppressions", record)


def export_requests(scope: ErasureScope, _place: Any, writer: PartWriter) -> None:
    """Export earlier requests about the person: exports, and erasures that are not completed."""
    (address,) = scope.addresses
    exports = SubjectExport.objects.filter(workspace=scope.workspace_id, email=address).exclude(id=writer.export.id)
    erasures = Erasure.objects.filter(workspace=scope.workspace_id, email=address)
    for kind, rows in (("export", exports), ("erasure", erasures)):
        for row in rows.order_by("created_at", "id"):
            writer.add("privacyRequests", {"id": row.id, "kind": kind, "createdAt": row.created_at})


def export_accounts(scope: ErasureScope, _place: Any, writer: PartWriter) -> None:
    """Export the membership and the invitation of the person."""
    (address,) = scope.addresses
    members = Membership.objects.filter(workspace=scope.workspace_id, user__email__iexact=address)
    for member in members.select_related("user"):
        record = {"kind": "member", "email": member.user.email, "role": member.role, "createdAt": member.created_at}
        writer.add("accounts", record)
    for one in Invitation.objects.filter(workspace=scope.workspace_id, email__iexact=address):
        record = {"kind": "invitation", "email": one.email, "role": one.role, "createdAt": one.created_at}
        writer.add("accounts", record)


def export_settings(scope: ErasureScope, _place: Any, writer: PartWriter) -> None:
    """Export the settings of the workspace that have the address: blocks and forwarding."""
    (address,) = scope.addresses
    for block in SenderBlock.objects.filter(workspace=scope.workspace_id, sender=address):
        writer.add("configuration", {"kind": "blockedSender", "email": block.sender, "createdAt": block.created_at})
    for target in ForwardTarget.objects.filter(workspace=scope.workspace_id, address=normalize_address(address)):
        record = {"kind": "forwardTarget", "email": target.address, "confirmedAt": target.confirmed_at}
        writer.add("configuration", record)
    for route in InboundRoute.objects.filter(workspace=scope.workspace_id).order_by("created_at", "id"):
        if address in map(normalize_address, route.forward_to):
            writer.add("configuration", {"kind": "route", "name": route.name, "createdAt": route.created_at})
