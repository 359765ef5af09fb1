"""Downloads of received content, with a key or with a link (docs/decisions/0232)."""

from typing import Any

from django.http import Http404, HttpRequest
from django.utils import timezone
from django.views.decorators.http import require_safe

from core.api.transfers import FileResponse, download_response, safe_type
from core.lib.tokens import InvalidToken
from receiving.links import RAW, read_download
from receiving.models import ReceivedEmail
from receiving.source import read_attachment, read_source


def raw_response(request: Any, email: ReceivedEmail) -> FileResponse:
    """Return the source of a message, with our fields in front."""
    pieces, owner = read_source(email.message), email.workspace_id
    return download_response(
        request, pieces, filename=f"{email.id}.eml", content_type="message/rfc822", workspace_id=owner
    )


def attachment_response(request: Any, email: ReceivedEmail, number: int) -> FileResponse:
    """Return the decoded bytes of an attachment."""
    entry = email.message.attachments[number]
    pieces = read_attachment(email.message, entry)
    filename = entry["filename"] or f"attachment-{number + 1}"
    type_, owner = safe_type(entry["contentType"]), email.workspace_id
    return download_response(request, pieces, filename=filename, content_type=type_, workspace_id=owner)


@require_safe
def download(request: HttpRequest, token: str) -> FileResponse:
    """Answer a link to a message or an attachment; 404 for an invalid and an expired one."""
    try:
        wanted = read_download(token, now=timezone.now())
    except InvalidToken as error:
        raise Http404 from error
    email = ReceivedEmail.objects.without_content().filter(id=wanted.email_id).first()
    if email is None:
        raise Http404
    if wanted.part == RAW:
        return raw_response(request, email)
    if wanted.part >= len(email.message.attachments):
        raise Http404
    return attachment_response(request, email, wanted.part)
