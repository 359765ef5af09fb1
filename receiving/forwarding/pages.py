"""The page of a link to a forwarding target: it confirms, and later ends, with a button."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from receiving.forwarding.targets import confirm_target, find_target, refuse_target

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
}


# The token is the permission; there is no session. Programs that open the links of an email send no POST.
@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def forward_target(request: HttpRequest, token: str) -> HttpResponse:
    """Show what a link is about; a POST confirms it, or ends the forwarding with `stop`."""
    target = find_target(token)
    if target is None:
        return _page(request, {"target": None}, status=404)
    if request.method == "POST" and "stop" in request.POST:
        refuse_target(target)
        return _page(request, {"target": target, "is_stopped": True})
    if request.method == "POST":
        confirm_target(target)
        target.refresh_from_db()
    return _page(request, {"target": target})


def _page(request: HttpRequest, context: dict[str, object], *, status: int = 200) -> HttpResponse:
    response = render(request, "receiving/forward.html", context, status=status)
    for name, value in HEADERS.items():
        response.headers[name] = value
    return response
