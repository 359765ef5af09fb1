"""Middleware for pages in a browser: limits, compression, language and time zone, security headers of both sites."""

from collections.abc import Callable
from typing import Any, cast

from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.middleware.gzip import GZipMiddleware
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin

from console.dashboard.auth.preferences import language_of, time_zone_of
from console.dashboard.auth.session_policy import SessionPolicyMiddleware
from console.dashboard.auth.sessions import Client, SessionStore
from core.api.admission import API_PREFIXES
from core.api.exception_handler import method_not_allowed, too_large
from core.api.transfers import TransferredResponse
from core.lib.network.client_address import client_address
from core.lib.translation import reader_language

# The largest form is the import of suppressions, whose files have at most 1 MiB (docs/decisions/0079).
# The unsubscribe page never reads a body, and every POST to it counts (docs/decisions/0028). The preference page reads
# the beginning.
UNSUBSCRIBE_PREFIXES = ("/u/", "/p/")
MAX_PAGE_BODY_BYTES = 2 * 1024 * 1024
TRACKING_PREFIXES = ("/t/", *UNSUBSCRIBE_PREFIXES)
SITE_PREFIXES = ("/dashboard/", "/admin/")
TRANSLATED_PREFIXES = (*SITE_PREFIXES, *TRACKING_PREFIXES, "/inbound/forward/")

# 'unsafe-eval': Alpine 3 evaluates the attributes of unfold's templates. 'unsafe-inline' for styles only:
# unfold writes its colours into a <style> element and htmx adds another; there is no inline script.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class _Middleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response


class PageBodyMiddleware(_Middleware):
    """Refuses large bodies before the CSRF check reads them, and drops NUL from queries.

    The API has limits for each operation (core.api.parser). PostgreSQL cannot compare a text with NUL.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path_info.startswith((*API_PREFIXES, *UNSUBSCRIBE_PREFIXES)):
            return self.get_response(request)
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not length.isdecimal() or int(length) > MAX_PAGE_BODY_BYTES:
            return too_large(request)
        request.META["QUERY_STRING"] = request.META.get("QUERY_STRING", "").replace("%00", "")
        return self.get_response(request)


class _PagesOnly(MiddlewareMixin):
    """Skips the API. Its callers send a key with each request."""

    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request) if request.path_info.startswith(API_PREFIXES) else super().__call__(request)


class PageSessionMiddleware(_PagesOnly, SessionMiddleware):
    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        address = client_address(request.META)
        client = Client(str(address) if address else None, request.META.get("HTTP_USER_AGENT", ""))
        cast("SessionStore", request.session).client = client


class PageAuthenticationMiddleware(_PagesOnly, SessionPolicyMiddleware):
    pass


class PageMessageMiddleware(_PagesOnly, MessageMiddleware):
    pass


class PageCompressionMiddleware(_PagesOnly, GZipMiddleware):
    """Compresses pages. Django varies their length, so that it does not reveal a secret in them (BREACH)."""

    def process_response(self, request: HttpRequest, response: Any) -> Any:
        return response if isinstance(response, TransferredResponse) else super().process_response(request, response)


class PagePreferencesMiddleware(_Middleware):
    """Answers pages in the language and time zone of the member, and links of emails in the reader's language.

    Everything else is English and UTC, except for error pages (core.api.exception_handler). Both end with the request:
    the next one of the thread may be to the API.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(TRANSLATED_PREFIXES):
            return self.get_response(request)
        is_site = request.path_info.startswith(SITE_PREFIXES)
        request.LANGUAGE_CODE = language_of(request) if is_site else reader_language(request)
        with translation.override(request.LANGUAGE_CODE), timezone.override(time_zone_of(request) if is_site else None):
            response = self.get_response(request)
        patch_vary_headers(response, ["Accept-Language"])
        return response


class PageHeadersMiddleware(_Middleware):
    """Sets the Content-Security-Policy of both sites, unless the response already has one.

    Answers with a page where Django's response for the wrong method is empty.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not request.path_info.startswith(SITE_PREFIXES):
            return response
        if request.method == "GET" and "Allow" in response.headers:
            response = method_not_allowed(request, allowed=response.headers["Allow"])
        if "Content-Security-Policy" not in response.headers:
            response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
            response.headers["X-Frame-Options"] = "DENY"
        return response
