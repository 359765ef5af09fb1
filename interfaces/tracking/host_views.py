"""Views of tracking hosts: the proof, errors without any detail, and the question of the proxy about certificates."""

from django.http import HttpRequest, HttpResponse, HttpResponseForbidden
from django.views.decorators.http import require_safe

from core.lib.network.client_address import is_from_proxy_itself
from domains.tracking_hosts import proofs
from interfaces.tracking.hosts import tracking_hosts

TEXT = "text/plain; charset=utf-8"


@require_safe
def proof(request: HttpRequest) -> HttpResponse:
    """Return the values by which domain checks recognize this installation."""
    return HttpResponse("\n".join([*proofs(), ""]), content_type=TEXT, headers={"Cache-Control": "no-store"})


@require_safe
def may_have_certificate(request: HttpRequest) -> HttpResponse:
    """Return 200 if the proxy may obtain a certificate for `domain`, otherwise 403. Only for the proxy itself.

    The interface of Caddy's on_demand_tls. Answered from memory: the proxy asks within TLS handshakes.
    """
    name = request.GET.get("domain", "").lower().rstrip(".")
    host = tracking_hosts.find(name) if is_from_proxy_itself(request.META) else None
    return HttpResponse(content_type=TEXT) if host and host.has_certificate else HttpResponseForbidden()


def not_served(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return HttpResponse("Not found\n", status=404, content_type=TEXT)


def failed(request: HttpRequest) -> HttpResponse:
    return HttpResponse("Please try again.\n", status=503, content_type=TEXT, headers={"Retry-After": "60"})
