"""Message previews: the only two responses that contain untrusted email content unescaped."""

from typing import Final

from django.http import HttpResponse

# No scripts, forms, plugins or origin, and no external requests, so that no tracking pixel loads.
PREVIEW_POLICY: Final = (
    "sandbox; default-src 'none'; img-src data: cid:; style-src 'unsafe-inline'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'self'"
)
HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
}


def preview_response(html: str) -> HttpResponse:
    """Return the email's HTML for `<iframe sandbox="" referrerpolicy="no-referrer">`."""
    headers = {**HEADERS, "Content-Security-Policy": PREVIEW_POLICY, "X-Frame-Options": "SAMEORIGIN"}
    return HttpResponse(html, content_type="text/html; charset=utf-8", headers=headers)


def source_response(source: bytes, *, filename: str) -> HttpResponse:
    """Return the message source as a download. filename: generated, never taken from the message."""
    headers = {
        **HEADERS,
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Content-Disposition": f'attachment; filename="{filename}"',
    }
    return HttpResponse(source, content_type="message/rfc822", headers=headers)
