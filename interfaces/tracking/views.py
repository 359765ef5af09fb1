"""Recipient views: no API key, cookie or session, and no recipient data in a URL.

At a tracking host, links of other workspaces do not work: they would use the good name of its domain.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.loader import render_to_string
from django.utils.encoding import iri_to_uri
from django.utils.translation import override
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from core.lib.translation import known_language
from emails.links import UnsubscribeLink, preferences_url, read_click, read_unsubscribe
from interfaces.tracking import services
from interfaces.tracking.suspensions import suspended_workspaces

# One transparent pixel.
GIF = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b")
HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow"}
PAGE_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
}
# A one-click body has 26 bytes, as multipart about 200. Its content does not matter: only the button of the page or of
# a mail client sends a POST. The body is read because some clients do not read the response before.
BODY_BYTES = 16_384


@require_safe
def pixel(request: HttpRequest, token: str) -> HttpResponse:
    """Return the same response for every token, so that valid tokens cannot be guessed."""
    if request.method == "GET":
        services.record_open(token, meta=request.META)
    return HttpResponse(GIF, content_type="image/gif", headers=HEADERS)


@require_safe
def click(request: HttpRequest, token: str) -> HttpResponse:
    """Redirect to the target in the token, and nowhere else; for a suspended sender, show a page first.

    Needs no database.
    """
    link = services.read_link(read_click, token)
    if link is None or not services.is_served(link.workspace_id, request):
        return _page("broken", status=404)
    if request.method == "GET":
        services.record_click(link, meta=request.META)
    if link.workspace_id in suspended_workspaces:
        return _page("suspended", target=link.target, location=iri_to_uri(link.target))
    # Not HttpResponseRedirect: it refuses some targets that browsers open.
    return HttpResponse(status=302, headers={**HEADERS, "Location": iri_to_uri(link.target)})


@require_safe
def style(request: HttpRequest) -> HttpResponse:
    """Return the style sheet of the pages, which is no static file: tracking hosts have none."""
    headers = {"Cache-Control": "public, max-age=3600"}
    return HttpResponse(render_to_string("tracking/page.css"), content_type="text/css; charset=utf-8", headers=headers)


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Show a page with a button. Only a POST unsubscribes, with any body (RFC 8058)."""
    link = services.read_link(read_unsubscribe, token)
    if link is None or not services.is_served(link.workspace_id, request):
        return _page("broken", status=404)
    if request.method != "POST":
        return _page("unsubscribe", **_context(link))
    request.read(BODY_BYTES)
    if services.try_unsubscribe(link):
        return _page("unsubscribed", can_undo=services.can_undo(link), **_context(link))
    return _try_later(method="post")


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def preferences(request: HttpRequest, token: str) -> HttpResponse:
    """Show the streams that the recipient of a link can choose; save the choice of a POST."""
    link = services.read_link(read_unsubscribe, token)
    if link is None or not services.is_served(link.workspace_id, request):
        return _page("broken", status=404)
    form = QueryDict(request.read(BODY_BYTES))
    is_saved = request.method == "POST" and services.try_saving(link, form)
    choices = services.find_preferences(link)
    if choices is None or is_saved is not (request.method == "POST"):
        # Another POST would have no fields.
        return _try_later(method="get")
    return _page("preferences", preferences=choices, is_saved=is_saved, is_undone="undo" in form, **_context(link))


def _try_later(*, method: str) -> HttpResponse:
    """Return a page with a button that repeats the request. method: the method of its form."""
    response = _page("later", status=503, method=method)
    response.headers["Retry-After"] = "60"
    return response


def _context(link: UnsubscribeLink) -> dict[str, Any]:
    return {
        "sender": services.find_sender(link),
        "address": services.mask_address(link.address),
        "preferences_path": urlsplit(preferences_url(link)).path,
    }


def _page(name: str, *, status: int = 200, **context: Any) -> HttpResponse:
    sender = context.get("sender")
    with _language_of(sender.locale if sender else None):
        text = render_to_string(f"tracking/{name}.html", context)
    return HttpResponse(text, status=status, headers=PAGE_HEADERS)


def _language_of(locale: str | None) -> AbstractContextManager[Any]:
    """Return the context of a page in the language of an email, or in English if it is not translated.

    Without a language, the page follows the browser.
    """
    if not locale:
        return nullcontext()
    return override(known_language(locale) or settings.LANGUAGE_CODE)
