"""Attachments of sent emails in `/v1`, and their download by a link."""

from typing import Any

from django.http import Http404, HttpRequest
from django.utils import timezone
from django.views.decorators.http import require_safe

from core.api.transfers import FileResponse, download_response, safe_type
from emails.api.serializers import SentAttachmentsSerializer
from emails.listing.attachments import LINK_LIFETIME, attachment_url, id_of, list_attachments, read_link
from emails.models import Attachment, Email


def describe_attachments(email: Email) -> dict[str, Any]:
    """Return the files of an email with URLs that are valid for an hour."""
    expires_at = timezone.now() + LINK_LIFETIME
    files = [
        {
            "id": id_of(email, file),
            "filename": file.filename,
            "contentType": file.content_type,
            "size": file.size,
            "contentId": file.cid,
            "url": attachment_url(email, file, expires_at=expires_at),
            "urlExpiresAt": expires_at,
        }
        for file in list_attachments(email)
    ]
    body: dict[str, Any] = SentAttachmentsSerializer({"data": files}).data
    return body


def sent_file_response(request: Any, email: Email, file: Attachment) -> FileResponse:
    pieces, type_ = [bytes(file.data)], safe_type(file.content_type.partition(";")[0].strip().lower())
    share = email.workspace_id
    return download_response(request, pieces, filename=file.filename, content_type=type_, workspace_id=share)


@require_safe
def download_attachment(request: HttpRequest, token: str) -> FileResponse:
    """Answer a link to an attachment; 404 for an invalid and an expired one."""
    link = read_link(token)
    email = Email.objects.select_related("content").filter(id=link.email_id).first() if link else None
    files = list_attachments(email) if email else []
    for file in files:
        if email and link and file.position == link.position:
            return sent_file_response(request, email, file)
    raise Http404
