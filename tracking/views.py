"""The recipient's doors: no key, no cookie, no session, and nothing about a recipient in any address."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.encoding import iri_to_uri
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from emails.sending.links import UnsubscribeLink
from tracking import services

# One transparent dot.
GIF = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b")
HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow"}
PAGE_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
}
# One-click bodies have 26 bytes, in multipart some 200. What a body says does not matter: only who presses the button
# or a mail reader's own sends a POST. It is read for the client's sake, which may not get an answer before.
BODY_BYTES = 16_384


@require_safe
def pixel(request: HttpRequest, token: str) -> HttpResponse:
    """Answer every token alike, so that nobody can try which ones are good."""
    if request.method == "GET":
        services.note_open(token, meta=request.META)
    return HttpResponse(GIF, content_type="image/gif", headers=HEADERS)


@require_safe
def click(request: HttpRequest, token: str) -> HttpResponse:
    """Redirect to the target inside of the token, and nowhere else; needs no database."""
    link = services.click_link(token)
    if link is None:
        return _page("broken", status=404)
    if request.method == "GET":
        services.note_click(link, meta=request.META)
    # Not HttpResponseRedirect, which parses the target and refuses some that browsers open.
    return HttpResponse(status=302, headers={**HEADERS, "Location": iri_to_uri(link.target)})


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Show a page with a button; only a POST, with whatever body, unsubscribes (RFC 8058)."""
    link = services.unsubscribe_link(token)
    if link is None:
        return _page("broken", status=404)
    if request.method != "POST":
        return _page("unsubscribe", **_context(link))
    request.read(BODY_BYTES)
    if services.has_unsubscribed(link):
        return _page("unsubscribed", **_context(link))
    response = _page("later", status=503)
    response.headers["Retry-After"] = "60"
    return response


def _context(link: UnsubscribeLink) -> dict[str, Any]:
    return {"sender": services.sender_of(link), "address": services.masked(link.address)}


def _page(name: str, *, status: int = 200, **context: Any) -> HttpResponse:
    return HttpResponse(render_to_string(f"tracking/{name}.html", context), status=status, headers=PAGE_HEADERS)
