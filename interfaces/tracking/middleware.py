"""Requests to tracking hosts, which serve the links of emails and nothing else."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host
from django.http.response import HttpResponseBase

from interfaces.tracking.host_views import not_served
from interfaces.tracking.hosts import tracking_hosts

URLS = "interfaces.tracking.host_urls"
PATHS = ("/t/", "/u/", "/p/", "/.well-known/postrider")


class TrackingHostMiddleware:
    """Answers requests to tracking hosts with `interfaces.tracking.host_urls`. First of all middleware.

    No page, API, dialect or static file of the service is at a tracking host, regardless of the other middleware.
    A host that is neither a tracking host nor in ALLOWED_HOSTS is refused later, by config.health.HostMiddleware.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        name, _ = split_domain_port(request.META.get("HTTP_HOST", ""))
        if validate_host(name, settings.ALLOWED_HOSTS):
            return self.get_response(request)
        host = tracking_hosts.find(name)
        if host is None:
            return self.get_response(request)
        if not request.path_info.startswith(PATHS):
            return not_served(request)
        request.tracking_host = host  # type: ignore[attr-defined]
        request.urlconf = URLS
        return self.get_response(request)
