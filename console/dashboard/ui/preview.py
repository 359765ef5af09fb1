"""Responses with the content of messages: the only ones that contain untrusted content unescaped."""

from typing import Final

from django.http import HttpResponse
from django.utils.http import content_disposition_header

from interfaces.inbound.inbox.reading import replace_unencodable

MAX_SHOWN_BYTES: Final = 256 * 1024
# No scripts, forms or plugins, and no external requests, so that no tracking pixel loads. The origin is kept, so that
# the page can measure the height of the document (docs/decisions/0127).
PREVIEW_POLICY: Final = (
    "sandbox allow-same-origin; default-src 'none'; img-src data: cid:; style-src 'unsafe-inline'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'self'"
)
HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
}


def preview_response(html: str) -> HttpResponse:
    """Return the email's HTML for `<iframe sandbox="allow-same-origin">` (parts/preview.html)."""
    headers = {**HEADERS, "Content-Security-Policy": PREVIEW_POLICY, "X-Frame-Options": "SAMEORIGIN"}
    return HttpResponse(html, content_type="text/html; charset=utf-8", headers=headers)


def source_response(source: bytes, *, filename: str) -> HttpResponse:
    """Return the message source as a download."""
    return _download(source, content_type="message/rfc822", filename=filename)


def attachment_response(data: bytes, *, filename: str) -> HttpResponse:
    """Return a file of an email as a download, without its type: no browser opens it."""
    return _download(data, content_type="application/octet-stream", filename=filename)


def shown_source(source: bytes) -> tuple[str, bool]:
    """Return the beginning of a message source as text, and whether it is cut."""
    return replace_unencodable(source[:MAX_SHOWN_BYTES].decode("utf-8", "replace")), len(source) > MAX_SHOWN_BYTES


def _download(data: bytes, *, content_type: str, filename: str) -> HttpResponse:
    headers = {
        **HEADERS,
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Content-Disposition": content_disposition_header(as_attachment=True, filename=filename) or "attachment",
    }
    return HttpResponse(data, content_type=content_type, headers=headers)
