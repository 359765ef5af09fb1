"""Send jobs: frozen values with everything needed to send, read in a few queries for any number of claims."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.conf import settings

from core.delivery.message.compose import File, Placement
from core.delivery.recipients import Diversion
from core.lib.email_addresses import Address, read_stored_address, split_address_list
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run_binary, run_replanned
from core.lib.worker.leases import boot_seconds
from core.workspaces.recipients.rules import AppliedRules, RecipientRules, Treatment, read_stored_rules
from domains.signing_identities import SigningIdentity, WorkspaceDomain, load_identities
from emails.models import Content
from emails.recipient_caps import OwnedCap
from emails.recipient_rules import applied_rules, treat_address
from emails.send_options import SendOptions
from emails.sending.expiry import Expiry
from emails.sending.queue import EmailClaim
from streams.models import Stream
from streams.services import load_streams
from templates_app.content import SetParts
from templates_app.models import TemplateVersion
from templates_app.sets import load_parts

# Bytes of attachments in a process at a time; a composed message briefly takes about three times as much.
MEMORY_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class SendJob(SendOptions):
    """One claimed recipient with everything needed to send to it: a row of READ_JOBS and the rows that it refers to.

    address: of the recipient.
    metadata: strings, as providers expect it.
    date: the time in the Date header.
    last_reason: of the attempt before.
    last_reply_age: the time since its reply.
    seconds_left: until its expiry, by the database; None without one.
    read_at: a time of the boot clock before the row was read.
    may_be_second_copy: the email was in the queue when sending was paused, and this is its first attempt since.
    attachment_bytes: the memory that it adds to this process.
    transport: the one that is assigned to it, empty if none is (emails.sending.assignments).
    identity: None if the domain was deleted since acceptance.
    properties: of its stream; None for `main` without a row.
    parts: the layout and partials of its template, if it has any.
    api_key_id: of the key that accepted the email.
    workspace_rules, key_rules: those of this time (emails.recipient_rules).
    diversion: where its message goes in place of the recipient (emails.sending.diversion).
    redirect_to: the address that gets a redirected message.
    """

    claim: EmailClaim
    email_id: str
    content_id: str | None
    template_version_id: str | None
    template_set_id: str | None
    locale_used: str | None
    address: str
    last_reason: str
    last_reply_age: timedelta
    template_id: str | None
    template_data: str | None
    from_domain: str
    sender: Address
    reply_to: tuple[Address, ...]
    reply_domain: str | None
    to: tuple[Address, ...]
    cc: tuple[Address, ...]
    subject: str
    metadata: Mapping[str, str]
    is_test: bool
    is_diverted: bool
    api_key_id: str | None
    workspace_rules: RecipientRules | None
    key_rules: RecipientRules | None
    diversion: Diversion | None
    date: datetime
    may_be_second_copy: bool
    attachment_bytes: int
    seconds_left: float | None
    read_at: float = 0.0
    content: Content | None = None
    version: TemplateVersion | None = None
    parts: SetParts | None = None
    identity: SigningIdentity | None = None
    properties: Stream | None = None
    files: tuple[File, ...] = ()
    transport: str = ""
    redirect_to: str = ""

    @property
    def key(self) -> str:
        return self.claim.recipient_id

    @property
    def expiry(self) -> Expiry:
        return Expiry(self.read_at, self.seconds_left)

    @property
    def unsubscribe(self) -> str:
        """How recipients can unsubscribe (Stream.Unsubscribe); the reader of a redirected message is none."""
        if self.is_redirected:
            return Stream.Unsubscribe.NONE
        return self.properties.unsubscribe if self.properties else Stream.Unsubscribe.LINK

    @property
    def rules(self) -> AppliedRules:
        return applied_rules(workspace=self.workspace_rules, key=self.key_rules)

    @cached_property
    def treatment(self) -> Treatment | None:
        """The treatment of the recipient by the rules; None if they get the message."""
        return treat_address(self.rules, self.address, is_test=self.is_test)

    @cached_property
    def caps(self) -> tuple[OwnedCap, ...]:
        """The caps of workspace, key and installation, each with the id of its owner."""
        return self.rules.owned_caps(workspace_id=self.claim.workspace_id, key_id=self.api_key_id or "")

    @property
    def is_redirected(self) -> bool:
        return self.diversion is Diversion.REDIRECTED

    @property
    def ignores_unsubscribes(self) -> bool:
        return self.properties is not None and self.properties.ignores_unsubscribes

    @property
    def route(self) -> str:
        """The name of the route of transports."""
        chosen = self.properties.transport_route if self.properties else ""
        return str(settings.TRANSPORTS.route_of(self.claim.workspace_id, chosen=chosen))

    @property
    def workspace_stream(self) -> tuple[str, str]:
        return self.claim.workspace_id, self.stream

    @property
    def workspace_domain(self) -> WorkspaceDomain:
        return self.claim.workspace_id, self.from_domain


def _read_addresses(texts: Iterable[str]) -> tuple[Address, ...]:
    return tuple(map(read_stored_address, texts))


def _metadata_texts(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in metadata.items()
    }


# Read in other queries, or not of the row.
LOADED_LATER = frozenset(
    {"claim", "read_at", "content", "version", "parts", "identity", "properties", "files", "transport", "redirect_to"}
)
COLUMNS = [column.name for column in fields(SendJob) if column.name not in LOADED_LATER]
# A field without an expression is the email's column of its name. attachment_bytes is read first: the files of all
# claimed recipients together may not fit into memory.
EXPRESSIONS = {
    "email_id": "e.id",
    "address": "r.address",
    "last_reason": "coalesce(r.reason, '')",
    "last_reply_age": "coalesce(now() - r.replied_at, interval '0')",
    "date": "coalesce(e.scheduled_for, e.created_at)",
    "seconds_left": "extract(epoch FROM e.expires_at - statement_timestamp())::float",
    "may_be_second_copy": """EXISTS (
        SELECT FROM emails_past_hold h
         WHERE e.created_at < h.since AND coalesce(e.scheduled_for, e.created_at) < h.until
           AND coalesce(r.replied_at, '-infinity') < h.until)""",
    "workspace_rules": "(SELECT recipient_rules::text FROM workspaces_workspace WHERE id = e.workspace_id)",
    "key_rules": "(SELECT recipient_rules::text FROM workspaces_apikey WHERE id = e.api_key_id)",
    "diversion": "r.diversion",
    "attachment_bytes": "(SELECT coalesce(sum(size), 0) FROM emails_attachment WHERE content_id = e.content_id)",
}
READ_JOBS = f"""
SELECT r.id, {", ".join(EXPRESSIONS.get(name, f'e."{name}"') for name in COLUMNS)}
  FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id
 WHERE r.id = ANY(%s)
"""  # noqa: S608 - constants
READ_FILES = """
SELECT content_id, filename, content_type, data, cid, placement FROM emails_attachment
 WHERE content_id = ANY(%s) ORDER BY content_id, position
"""
# Values that are stored in another form. Addresses were checked and normalized when the email was accepted.
READERS: dict[str, Callable[[Any], Any]] = {
    "email_id": from_uuid,
    "content_id": lambda content_id: content_id and from_uuid(content_id, prefix="con_"),
    "template_version_id": lambda version_id: version_id and from_uuid(version_id, prefix="tplv_"),
    "template_set_id": lambda set_id: set_id and from_uuid(set_id, prefix="tpls_"),
    "sender": read_stored_address,
    "reply_to": lambda text: _read_addresses(split_address_list(text or "")),
    "to": _read_addresses,
    "cc": _read_addresses,
    "headers": json.loads,
    "api_key_id": lambda key_id: key_id and from_uuid(key_id, prefix="key_"),
    "workspace_rules": read_stored_rules,
    "key_rules": read_stored_rules,
    "diversion": lambda text: text and Diversion(text),
    "metadata": lambda text: _metadata_texts(json.loads(text)) if text else {},
}


def load_jobs(claims: Sequence[EmailClaim], *, memory_bytes: int) -> list[SendJob]:
    """Load the send jobs of claims, leaving out those whose attachments do not fit into memory.

    memory_bytes: attachment bytes that may be read. An email with more than MEMORY_BYTES is loaded alone.
    """
    jobs = list(_fit_memory(_read_rows(claims), memory_bytes))
    content_ids = {job.content_id for job in jobs if job.content_id}
    contents = Content.objects.in_bulk(content_ids)
    versions = TemplateVersion.objects.in_bulk({job.template_version_id for job in jobs if job.template_version_id})
    parts = load_parts({job.template_set_id for job in jobs if job.template_set_id})
    files = _read_files(content_ids)
    identities = load_identities({job.workspace_domain for job in jobs})
    streams = load_streams({job.workspace_stream for job in jobs})
    return [
        replace(
            job,
            content=contents[job.content_id] if job.content_id else None,
            version=versions[job.template_version_id] if job.template_version_id else None,
            parts=parts[job.template_set_id] if job.template_set_id else None,
            identity=identities.get(job.workspace_domain),
            properties=streams.get(job.workspace_stream),
            files=files.get(job.content_id or "", ()),
        )
        for job in jobs
    ]


def _read_rows(claims: Sequence[EmailClaim]) -> Iterator[SendJob]:
    by_id = {to_uuid(claim.recipient_id): claim for claim in claims}
    read_at = boot_seconds()
    for recipient, *columns in run_replanned(READ_JOBS, [list(by_id)]):
        row = dict(zip(COLUMNS, columns, strict=True))
        values = row | {name: read(row[name]) for name, read in READERS.items()}
        yield SendJob(claim=by_id[recipient], read_at=read_at, **values)


def _fit_memory(jobs: Iterable[SendJob], memory_bytes: int) -> Iterator[SendJob]:
    """Yield the jobs whose attachments fit. The first one with attachments always fits into the full MEMORY_BYTES."""
    taken = 0
    for job in jobs:
        is_too_large = taken + job.attachment_bytes > memory_bytes and (taken or memory_bytes < MEMORY_BYTES)
        if job.attachment_bytes and is_too_large:
            continue
        taken += job.attachment_bytes
        yield job


def _read_files(content_ids: Collection[str]) -> dict[str, tuple[File, ...]]:
    files: dict[str, tuple[File, ...]] = {}
    if not content_ids:
        return files
    ids = [to_uuid(content_id, prefix="con_") for content_id in content_ids]
    for number, filename, content_type, data, cid, placement in run_binary(READ_FILES, [ids]):
        content_id = from_uuid(number, prefix="con_")
        file = File(filename, content_type, data, cid, Placement(placement))
        files[content_id] = (*files.get(content_id, ()), file)
    return files
