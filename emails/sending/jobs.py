"""Turn claimed rows into frozen values that know no database: a few queries for any number of them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Sum

from delivery.message.compose import File
from domains.signing_identities import Identity, identities
from emails.models import Attachment, Content
from emails.rendered_content import RenderedContent, render_stored
from emails.sending.queue import Claim
from lib.ids import from_uuid, to_uuid
from lib.sql import run_planned
from templates_app.models import TemplateVersion
from templates_app.services import content_of

# Bytes of attachments in a process at a time; a composed message takes about three times as much for a moment.
MEMORY_BYTES = 32 * 1024 * 1024

READ = """
SELECT r.id, r.address, coalesce(r.reason, ''), coalesce(now() - r.replied_at, interval '0'),
       e.content_id, e.template_version_id, e.workspace_id, e.template_id, e.template_data, e.from_domain, e.sender,
       e.reply_to, e."to", e.cc, e.subject, e.tags, e.metadata::text, e.headers::text, e.track_opens, e.track_clicks,
       coalesce(e.scheduled_for, e.created_at)
  FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id
 WHERE r.id = ANY(%s)
"""


@dataclass(frozen=True)
class Mail:
    """What an email says to all its recipients, as it is stored. date is that of the header."""

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
    """All that it takes to send to one recipient.

    reason and age are those of the last attempt. identity is None when the domain was deleted meanwhile.
    """

    claim: Claim
    address: str
    reason: str
    age: timedelta
    mail: Mail
    content: Content | None
    version: TemplateVersion | None
    identity: Identity | None
    files: tuple[File, ...]

    @property
    def key(self) -> str:
        return self.claim.recipient_id

    @property
    def weight(self) -> int:
        """Bytes of its files: what it adds to the memory of this process."""
        return sum(len(file.data) for file in self.files)

    def wording(self) -> RenderedContent:
        if self.version is None:
            content = self.content
            return RenderedContent(self.mail.subject, content.html if content else "", content.text if content else "")
        return render_stored(self.mail.subject, content_of(self.version), self.mail.template_data)


@dataclass(frozen=True)
class _Row:
    claim: Claim
    address: str
    reason: str
    age: timedelta
    content_id: str | None
    version_id: str | None
    mail: Mail

    @property
    def sender(self) -> tuple[str, str]:
        return self.mail.workspace_id, self.mail.from_domain


def load_jobs(claims: Sequence[Claim], *, room: int) -> list[SendJob]:
    """Read what the claimed recipients are to be sent; what has no room is left out.

    room: bytes of files that may be read; with less than one email has, it alone is read.
    """
    found = list(_read(claims))
    weights = _weights({row.content_id for row in found if row.content_id})
    rows = list(_fitting(found, weights, room))
    known = identities({row.sender for row in rows})
    contents = Content.objects.in_bulk([row.content_id for row in rows if row.content_id])
    versions = TemplateVersion.objects.in_bulk({row.version_id for row in rows if row.version_id})
    files = _files(weights.keys() & {row.content_id for row in rows}) if weights else {}
    return [
        SendJob(
            claim=row.claim,
            address=row.address,
            reason=row.reason,
            age=row.age,
            mail=row.mail,
            content=contents[row.content_id] if row.content_id else None,
            version=versions[row.version_id] if row.version_id else None,
            identity=known.get(row.sender),
            files=files.get(row.content_id or "", ()),
        )
        for row in rows
    ]


def _read(claims: Sequence[Claim]) -> Iterator[_Row]:
    by_id = {to_uuid(held.recipient_id): held for held in claims}
    for recipient, address, reason, age, content, version, workspace, *mail in run_planned(READ, [list(by_id)]):
        yield _Row(
            claim=by_id[recipient],
            address=address,
            reason=reason,
            age=age,
            content_id=content and from_uuid(content, prefix="con_"),
            version_id=version and from_uuid(version, prefix="tplv_"),
            mail=Mail(from_uuid(workspace, prefix="ws_"), *mail),
        )


def _fitting(rows: Sequence[_Row], weights: Mapping[str, int], room: int) -> Iterator[_Row]:
    """Leave out what would take more memory than there is; the first heavy one always fits into all of it."""
    taken = 0
    for row in rows:
        weight = weights.get(row.content_id or "", 0)
        if weight and taken + weight > room and (taken or room < MEMORY_BYTES):
            continue
        taken += weight
        yield row


def _weights(content_ids: Collection[str]) -> dict[str, int]:
    """Return the bytes of files of each content that has some."""
    if not content_ids:
        return {}
    weighed = Attachment.objects.filter(content__in=content_ids).order_by().values_list("content_id")
    return dict(weighed.annotate(Sum("size")))


def _files(content_ids: Collection[str]) -> dict[str, tuple[File, ...]]:
    found: dict[str, tuple[File, ...]] = {}
    for file in Attachment.objects.filter(content__in=content_ids).order_by("content_id", "position"):
        packed = File(file.filename, file.content_type, bytes(file.data), file.cid)
        found[file.content_id] = (*found.get(file.content_id, ()), packed)
    return found
