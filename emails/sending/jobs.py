"""Send jobs: frozen values with everything needed to send, read in a few queries for any number of claims."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Sum

from delivery.message.compose import File
from domains.signing_identities import SigningIdentity, load_identities
from emails.models import Attachment, Content
from emails.rendered_content import RenderedContent, render_stored_template
from emails.sending.queue import EmailClaim
from lib.ids import from_uuid, to_uuid
from lib.sql import run_replanned
from templates_app.models import TemplateVersion
from templates_app.services import version_content

# Bytes of attachments in a process at a time; a composed message briefly takes about three times as much.
MEMORY_BYTES = 32 * 1024 * 1024

READ_JOBS = """
SELECT r.id, r.address, coalesce(r.reason, ''), coalesce(now() - r.replied_at, interval '0'),
       e.content_id, e.template_version_id, e.workspace_id, e.template_id, e.template_data, e.from_domain, e.sender,
       e.reply_to, e."to", e.cc, e.subject, e.tags, e.metadata::text, e.headers::text, e.track_opens, e.track_clicks,
       coalesce(e.scheduled_for, e.created_at)
  FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id
 WHERE r.id = ANY(%s)
"""


@dataclass(frozen=True)
class StoredEmail:
    """The stored fields of an email that all its recipients share. date: the time in the Date header."""

    workspace_id: str
    template_id: str | None
    template_data: str | None
    from_domain: str
    sender: str
    reply_to: str | None
    to: list[str]
    cc: list[str]
    subject: str
    tags: list[str]
    metadata: str | None
    headers: str
    track_opens: bool
    track_clicks: bool
    date: datetime


@dataclass(frozen=True)
class SendJob:
    """Everything needed to send to one recipient.

    reason: of the last attempt. age: time since its reply. identity: None if the domain was deleted since acceptance.
    """

    claim: EmailClaim
    address: str
    reason: str
    age: timedelta
    email: StoredEmail
    content: Content | None
    version: TemplateVersion | None
    identity: SigningIdentity | None
    files: tuple[File, ...]

    @property
    def key(self) -> str:
        return self.claim.recipient_id

    @property
    def attachment_bytes(self) -> int:
        """Bytes of its attachments: the memory that it adds to this process."""
        return sum(len(file.data) for file in self.files)

    def render(self) -> RenderedContent:
        """Return the content before links, pixel and footer are added for the recipient."""
        if self.version is None:
            content = self.content
            return RenderedContent(self.email.subject, content.html if content else "", content.text if content else "")
        return render_stored_template(self.email.subject, version_content(self.version), self.email.template_data)


@dataclass(frozen=True)
class _JobRow:
    claim: EmailClaim
    address: str
    reason: str
    age: timedelta
    content_id: str | None
    version_id: str | None
    email: StoredEmail

    @property
    def sender(self) -> tuple[str, str]:
        return self.email.workspace_id, self.email.from_domain


def load_jobs(claims: Sequence[EmailClaim], *, memory_bytes: int) -> list[SendJob]:
    """Load the send jobs of claims, leaving out those whose attachments do not fit into memory.

    memory_bytes: attachment bytes that may be read. An email with more than MEMORY_BYTES is loaded alone.
    """
    all_rows = list(_read_rows(claims))
    bytes_by_content = _attachment_bytes({row.content_id for row in all_rows if row.content_id})
    rows = list(_fit_memory(all_rows, bytes_by_content, memory_bytes))
    signing_identities = load_identities({row.sender for row in rows})
    contents = Content.objects.in_bulk([row.content_id for row in rows if row.content_id])
    versions = TemplateVersion.objects.in_bulk({row.version_id for row in rows if row.version_id})
    files = _read_files(bytes_by_content.keys() & {row.content_id for row in rows}) if bytes_by_content else {}
    return [
        SendJob(
            claim=row.claim,
            address=row.address,
            reason=row.reason,
            age=row.age,
            email=row.email,
            content=contents[row.content_id] if row.content_id else None,
            version=versions[row.version_id] if row.version_id else None,
            identity=signing_identities.get(row.sender),
            files=files.get(row.content_id or "", ()),
        )
        for row in rows
    ]


def _read_rows(claims: Sequence[EmailClaim]) -> Iterator[_JobRow]:
    by_id = {to_uuid(claim.recipient_id): claim for claim in claims}
    for recipient, address, reason, age, content, version, workspace, *email in run_replanned(READ_JOBS, [list(by_id)]):
        yield _JobRow(
            claim=by_id[recipient],
            address=address,
            reason=reason,
            age=age,
            content_id=content and from_uuid(content, prefix="con_"),
            version_id=version and from_uuid(version, prefix="tplv_"),
            email=StoredEmail(from_uuid(workspace, prefix="ws_"), *email),
        )


def _fit_memory(rows: Sequence[_JobRow], bytes_by_content: Mapping[str, int], memory_bytes: int) -> Iterator[_JobRow]:
    """Yield the rows whose attachments fit. The first one with attachments always fits into the full MEMORY_BYTES."""
    taken = 0
    for row in rows:
        attachment_bytes = bytes_by_content.get(row.content_id or "", 0)
        if attachment_bytes and taken + attachment_bytes > memory_bytes and (taken or memory_bytes < MEMORY_BYTES):
            continue
        taken += attachment_bytes
        yield row


def _attachment_bytes(content_ids: Collection[str]) -> dict[str, int]:
    """Return the attachment bytes of each content that has attachments."""
    if not content_ids:
        return {}
    rows = Attachment.objects.filter(content__in=content_ids).order_by().values_list("content_id")
    return dict(rows.annotate(Sum("size")))


def _read_files(content_ids: Collection[str]) -> dict[str, tuple[File, ...]]:
    files: dict[str, tuple[File, ...]] = {}
    for row in Attachment.objects.filter(content__in=content_ids).order_by("content_id", "position"):
        file = File(row.filename, row.content_type, bytes(row.data), row.cid)
        files[row.content_id] = (*files.get(row.content_id, ()), file)
    return files
