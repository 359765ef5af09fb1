"""The page of a link that shows the DNS records of a domain, without signing in (docs/decisions/0392)."""

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from console.dashboard.auth.rendering import PageRenderer, expired_link_page
from console.dashboard.auth.throttle import SHARED_RECORDS, throttle_network, throttled_message
from console.dashboard.pages.domains.records import records_context, records_refresh
from console.dashboard.ui.labels import DOMAIN_TONES
from domains.shared_records import find_shared_domain

HEADERS = {"Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow"}
REGIONS = ("summary", "records", "provider")


def shared_records(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Show the records behind the link, and nothing else of the workspace."""
    response = _respond(request, page)
    for name, value in HEADERS.items():
        response.headers[name] = value
    return response


def _respond(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    if wait_seconds := throttle_network(request, SHARED_RECORDS):
        return HttpResponse(
            throttled_message(wait_seconds), "text/plain", 429, headers={"Retry-After": str(wait_seconds)}
        )
    domain = find_shared_domain(request.GET.get("token", ""))
    if domain is None:
        advice = _("It has expired or was withdrawn. Ask the person who sent it for a new one.")
        return expired_link_page(request, page, title=_("This link is no longer valid"), advice=advice)
    refresh = records_refresh(domain, regions=REGIONS)
    return refresh.unchanged(request) or page(
        request,
        "dashboard/domains/shared.html",
        title=_("DNS records of %(name)s") % {"name": domain.name},
        refresh=refresh,
        tones=DOMAIN_TONES,
        **records_context(domain),
    )
