"""Resources of SendGrid's API, from rows and stored results."""

from collections import Counter
from datetime import UTC
from typing import Any

from core.lib.ids import id_number, to_uuid, uuid_text
from core.workspaces.models import ApiKey
from domains.models import SENDING_STATUSES, Domain
from domains.records import DnsRecord, list_records
from emails.accept.idempotency import StoredResponse
from emails.models import EmailBatch
from interfaces.compat.sendgrid.requests import TEMPLATE_PREFIX
from suppressions.models import Suppression
from templates_app.models import Template

Resource = dict[str, Any]
# https://www.twilio.com/docs/sendgrid/api-reference/domain-authentication
RECORD_NAMES = {
    "DKIM": "dkim",
    "SPF": "subdomain_spf",
    "DMARC": "dmarc",
    "ReturnPath": "mail_server",
    "Tracking": "links",
    "TrackingCAA": "links_caa",
    "Receiving": "inbound_mx",
    "TLSReports": "tls_reports",
}
# https://www.twilio.com/docs/sendgrid/api-reference/api-key-permissions
SENDING_SCOPES = frozenset(
    {
        "asm.groups.read", "mail.batch.create", "mail.batch.read", "mail.send", "templates.read",
        "templates.versions.read", "user.scheduled_sends.create", "user.scheduled_sends.delete",
        "user.scheduled_sends.read", "user.scheduled_sends.update", "whitelabel.read",
    }
)  # fmt: skip
READING_SCOPES = frozenset(
    {
        "asm.groups.read", "asm.groups.suppressions.read", "asm.suppressions.global.read", "asm.suppressions.read",
        "mail.batch.read", "stats.read", "suppression.read", "templates.read",
        "templates.versions.read", "user.scheduled_sends.read", "user.webhooks.event.settings.read", "whitelabel.read",
    }
)  # fmt: skip
WRITING_SCOPES = frozenset(
    {
        "asm.groups.create", "asm.groups.delete", "asm.groups.suppressions.create", "asm.groups.suppressions.delete",
        "asm.groups.update", "asm.suppressions.global.create", "asm.suppressions.global.delete", "suppression.create",
        "suppression.delete",
        "templates.create", "templates.delete", "templates.update", "templates.versions.activate.create",
        "templates.versions.create", "templates.versions.delete", "templates.versions.update",
        "user.webhooks.event.settings.update", "user.webhooks.event.test.create", "whitelabel.create",
        "whitelabel.delete", "whitelabel.update",
    }
)  # fmt: skip
ALL_SCOPES = SENDING_SCOPES | READING_SCOPES | WRITING_SCOPES
SCOPES = {
    ApiKey.Scope.SENDING_ONLY: frozenset({"mail.send"}),
    ApiKey.Scope.SENDING_ACCESS: SENDING_SCOPES,
    ApiKey.Scope.READ_ONLY: READING_SCOPES,
    ApiKey.Scope.APPROVALS: frozenset(),
    ApiKey.Scope.FULL_ACCESS: ALL_SCOPES,
    ApiKey.Scope.WORKSPACE_ADMIN: ALL_SCOPES,
}


def message_id(stored: StoredResponse) -> str:
    """Return the X-Message-Id: the id of the first email."""
    return uuid_text(stored.body["results"][0]["id"])


def suppression_resource(suppression: Suppression) -> Resource:
    """Return a suppression with the members that its list has."""
    resource = {"created": int(suppression.created_at.timestamp()), "email": suppression.email}
    if suppression.reason == Suppression.Reason.BOUNCE:
        return {**resource, "reason": suppression.reason, "status": ""}
    # The address from which somebody complained is not known.
    return {**resource, "ip": ""} if suppression.reason == Suppression.Reason.COMPLAINT else resource


def batch_id(batch: EmailBatch) -> str:
    return uuid_text(batch.id, prefix="bat_")


def scheduled_send_resource(batch: EmailBatch) -> Resource:
    """Return a paused or cancelled batch."""
    return {"batch_id": batch_id(batch), "status": "pause" if batch.state == EmailBatch.State.PAUSED else "cancel"}


def template_item(template: Template) -> Resource:
    """Return a template in a list, without its content."""
    return {
        "id": _template_id(template),
        "name": template.name,
        "generation": "dynamic",
        "updated_at": _updated_at(template),
        "versions": [] if is_empty(template) else [_version_item(template)],
    }


def template_resource(template: Template) -> Resource:
    versions = [] if is_empty(template) else [version_resource(template)]
    return {**template_item(template), "versions": versions}


def version_resource(template: Template) -> Resource:
    content = {"html_content": template.version.html, "plain_content": template.version.text}
    return {**_version_item(template), **content, "test_data": "", "warnings": []}


def version_id(template: Template) -> str:
    return uuid_text(template.id, prefix="tpl_")


def is_empty(template: Template) -> bool:
    """Return whether a template has no version yet: only one that was created here has no subject."""
    return not template.version.subject


def domain_resource(domain: Domain) -> Resource:
    return {
        "id": id_number(domain.id, prefix="dom_"),
        "user_id": id_number(domain.workspace_id, prefix="ws_"),
        "subdomain": "",
        "domain": domain.name,
        "username": "",
        "subusers": [],
        "last_validation_attempt_at": int(domain.last_checked_at.timestamp()) if domain.last_checked_at else None,
        "ips": [],
        "custom_spf": False,
        "default": False,
        "legacy": False,
        "automatic_security": False,
        "valid": domain.status in SENDING_STATUSES,
        "dns": {name: _record(record) for name, record in _records(domain)},
    }


def validation_resource(domain: Domain) -> Resource:
    """Return the result of the last check of a domain."""
    results = {name: {"valid": _is_valid(record), "reason": record.error} for name, record in _records(domain)}
    valid = domain.status in SENDING_STATUSES
    return {"id": id_number(domain.id, prefix="dom_"), "valid": valid, "validation_results": results}


def _version_item(template: Template) -> Resource:
    return {
        "id": version_id(template),
        "template_id": _template_id(template),
        "active": 1,
        "name": template.name,
        "subject": template.version.subject,
        "updated_at": _updated_at(template),
        "editor": "code",
        "generate_plain_content": not template.version.text,
        "thumbnail_url": "",
    }


def _records(domain: Domain) -> list[tuple[str, DnsRecord]]:
    """Return the DNS records of a domain by SendGrid's names, of which a rotated key has one with a number."""
    numbers: Counter[str] = Counter()
    named = []
    for record in list_records(domain):
        name = RECORD_NAMES[record.record]
        numbers[name] += 1
        named.append((name if numbers[name] == 1 else f"{name}{numbers[name]}", record))
    return named


def _record(record: DnsRecord) -> Resource:
    return {"valid": _is_valid(record), "type": record.type.lower(), "host": record.fqdn, "data": record.value}


def _is_valid(record: DnsRecord) -> bool:
    return record.status == Domain.DomainStatus.VERIFIED


def _template_id(template: Template) -> str:
    # At most 36 characters, as declared.
    return f"{TEMPLATE_PREFIX}{to_uuid(template.id, prefix='tpl_').hex}"


def _updated_at(template: Template) -> str:
    return template.updated_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
