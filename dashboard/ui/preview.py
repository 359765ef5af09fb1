"""Show mail that anybody may have written: the only two responses that carry it as it is."""

from typing import Final

from django.http import HttpResponse

# Without scripts, forms, plugins or an origin, and without one request to the outside: no pixel fires.
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
    """Return the mail's own HTML for `<iframe sandbox="" referrerpolicy="no-referrer">`."""
    headers = {**HEADERS, "Content-Security-Policy": PREVIEW_POLICY, "X-Frame-Options": "SAMEORIGIN"}
    return HttpResponse(html, content_type="text/html; charset=utf-8", headers=headers)


def source_response(source: bytes, *, filename: str) -> HttpResponse:
    """Return a whole message to keep as a file; filename is ours, never the mail's."""
    headers = {
        **HEADERS,
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Content-Disposition": f'attachment; filename="{filename}"',
    }
    return HttpResponse(source, content_type="message/rfc822", headers=headers)
