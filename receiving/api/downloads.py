"""Downloads of received content, with a key or with a link.

The host is that of the dashboard: nothing that a message brought may run there (docs/decisions/0232).
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from django.http import Http404, HttpRequest
from django.utils import timezone
from django.views.decorators.http import require_safe

from api.transfers import FileResponse
from lib.tokens import InvalidToken
from receiving.links import RAW, read_download
from receiving.models import ReceivedEmail
from receiving.source import read_attachment, read_source

# The media types that a browser would run or show as a page; everything else keeps its type.
ACTIVE_TYPES = ("html", "svg", "xml", "javascript", "ecmascript", "xsl", "pdf", "flash", "mhtml", "multipart")
BINARY = "application/octet-stream"
SAFE_TYPE_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789!#$&-^_.+/")
PIECE_BYTES = 4 * 1024


def raw_response(request: Any, email: ReceivedEmail) -> FileResponse:
    """Return the source of a message, with our fields in front."""
    return _file(request, email, read_source(email.message), filename=f"{email.id}.eml", content_type="message/rfc822")


def attachment_response(request: Any, email: ReceivedEmail, number: int) -> FileResponse:
    """Return the decoded bytes of an attachment."""
    entry = email.message.attachments[number]
    pieces = read_attachment(email.message, entry)
    filename = entry["filename"] or f"attachment-{number + 1}"
    return _file(request, email, pieces, filename=filename, content_type=safe_type(entry["contentType"]))


def safe_type(content_type: str) -> str:
    """Return a media type that no browser runs."""
    is_plain = content_type.count("/") == 1 and set(content_type) <= SAFE_TYPE_CHARACTERS
    is_active = any(name in content_type for name in ACTIVE_TYPES)
    return content_type if is_plain and not is_active else BINARY


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


def _file(
    request: Any, email: ReceivedEmail, pieces: Iterator[bytes], *, filename: str, content_type: str
) -> FileResponse:
    # DRF's request delegates to Django's.
    plain = getattr(request, "_request", request)
    headers = {
        "Content-Disposition": content_disposition(filename),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-store",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    share = email.workspace_id
    return FileResponse(plain, _small(pieces), workspace_id=share, content_type=content_type, headers=headers)


def content_disposition(filename: str) -> str:
    """Return the field that makes a browser save a file: the name in UTF-8 (RFC 6266), without control characters."""
    name = "".join(character if character.isprintable() and character not in '/\\"' else "_" for character in filename)
    ascii_name = name.encode("ascii", "replace").decode().replace("?", "_")
    return f"attachment; filename=\"{ascii_name}\"; filename*=UTF-8''{quote(name, safe='')}"


def _small(pieces: Iterator[bytes]) -> Iterator[Any]:
    """Yield bytes in pieces of which the thread of slow clients joins some at a time."""
    for piece in pieces:
        for start in range(0, len(piece), PIECE_BYTES):
            yield piece[start : start + PIECE_BYTES]
