"""Send jobs: frozen values with everything needed to send, read in a few queries for any number of claims."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from delivery.message.compose import File, Placement
from domains.signing_identities import SigningIdentity, WorkspaceDomain, load_identities
from emails.models import Attachment, Content
from emails.sending.queue import EmailClaim
from lib.ids import from_uuid, to_uuid
from lib.sql import run_replanned
from templates_app.models import TemplateVersion

# Bytes of attachments in a process at a time; a composed message briefly takes about three times as much.
MEMORY_BYTES = 32 * 1024 * 1024

# attachment_bytes is read first: the files of all claimed recipients together may not fit into memory.
READ_JOBS = """
SELECT r.id, e.id, e.content_id, e.template_version_id, r.address, coalesce(r.reason, ''),
       coalesce(now() - r.replied_at, interval '0'), e.template_id, e.template_data, e.from_domain, e.sender,
       e.reply_to, e."to", e.cc, e.subject, e.tags, e.metadata::text, e.headers::text, e.track_opens, e.track_clicks,
       e.is_test, coalesce(e.scheduled_for, e.created_at),
       EXISTS (SELECT FROM emails_past_hold h
                WHERE e.created_at < h.since AND coalesce(e.scheduled_for, e.created_at) < h.until
                  AND coalesce(r.replied_at, '-infinity') < h.until),
       (SELECT coalesce(sum(size), 0) FROM emails_attachment WHERE content_id = e.content_id)
  FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id
 WHERE r.id = ANY(%s)
"""


@dataclass(frozen=True)
class SendJob:
    """One claimed recipient with everything needed to send to it: a row of READ_JOBS and the rows that it refers to.

    last_reason: of the attempt before. last_reply_age: the time since its reply. date: the time in the Date header.
    may_be_second_copy: the email was in the queue when sending was paused, and this is its first attempt since.
    attachment_bytes: the memory that it adds to this process.
    identity: None if the domain was deleted since acceptance.
    """

    claim: EmailClaim
    email_id: str
    content_id: str | None
    version_id: str | None
    address: str
    last_reason: str
    last_reply_age: timedelta
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
    is_test: bool
    date: datetime
    may_be_second_copy: bool
    attachment_bytes: int
    content: Content | None = None
    version: TemplateVersion | None = None
    identity: SigningIdentity | None = None
    files: tuple[File, ...] = ()

    @property
    def key(self) -> str:
        return self.claim.recipient_id

    @property
    def workspace_domain(self) -> WorkspaceDomain:
        return self.claim.workspace_id, self.from_domain


def load_jobs(claims: Sequence[EmailClaim], *, memory_bytes: int) -> list[SendJob]:
    """Load the send jobs of claims, leaving out those whose attachments do not fit into memory.

    memory_bytes: attachment bytes that may be read. An email with more than MEMORY_BYTES is loaded alone.
    """
    jobs = list(_fit_memory(_read_rows(claims), memory_bytes))
    content_ids = {job.content_id for job in jobs if job.content_id}
    contents = Content.objects.in_bulk(content_ids)
    versions = TemplateVersion.objects.in_bulk({job.version_id for job in jobs if job.version_id})
    files = _read_files(content_ids)
    identities = load_identities({job.workspace_domain for job in jobs})
    return [
        replace(
            job,
            content=contents[job.content_id] if job.content_id else None,
            version=versions[job.version_id] if job.version_id else None,
            identity=identities.get(job.workspace_domain),
            files=files.get(job.content_id or "", ()),
        )
        for job in jobs
    ]


def _read_rows(claims: Sequence[EmailClaim]) -> Iterator[SendJob]:
    by_id = {to_uuid(claim.recipient_id): claim for claim in claims}
    for recipient, email, content, version, *columns in run_replanned(READ_JOBS, [list(by_id)]):
        content_id = content and from_uuid(content, prefix="con_")
        version_id = version and from_uuid(version, prefix="tplv_")
        yield SendJob(by_id[recipient], from_uuid(email), content_id, version_id, *columns)


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
    for row in Attachment.objects.filter(content__in=content_ids).order_by("content_id", "position"):
        file = File(row.filename, row.content_type, bytes(row.data), row.cid, Placement(row.placement))
        files[row.content_id] = (*files.get(row.content_id, ()), file)
    return files
