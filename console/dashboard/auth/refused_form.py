"""The page for a form that the CSRF check refuses: it explains the setting, proxy or browser that causes it."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import REASON_BAD_ORIGIN, REASON_NO_CSRF_COOKIE
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.api.exception_handler import error_page

HTTPS_NEEDED = (
    _("This form only works over https: browsers return the session cookie of this service over https only."),
    _("Open {url} instead. If you operate this service, make the reverse proxy redirect http to https."),
)
PROXY_NOT_TRUSTED = (
    _("A reverse proxy forwarded this request, but Postrider does not trust the proxy."),
    _("If you operate this service, add the address of the proxy, which manage.py doctor shows, to TRUSTED_PROXIES."),
)
OTHER_ORIGIN = (
    _("This page was opened at another address than {url}."),
    _("Open {url} instead. If you operate this service, compare PUBLIC_URL with the address that people open."),
    _("The reverse proxy must keep the Host header and set X-Forwarded-Proto."),
)
COOKIE_MISSING = (
    _("The browser sent the form without its cookie, or the form is too old."),
    _("Allow cookies for this site, reload the page and try again."),
)


def refuse_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Return the page for a refused form; the setting CSRF_FAILURE_VIEW."""
    texts = [str(text).format(url=settings.PUBLIC_URL) for text in _explanation(request, reason)]
    return error_page(request, title=gettext("The form was not accepted"), texts=texts, status=403)


def _explanation(request: HttpRequest, reason: str) -> tuple[Promise, ...]:
    lacks_https = settings.SECURE and not request.is_secure()
    is_forwarded_https = request.headers.get("X-Forwarded-Proto", "").lower() == "https"
    if lacks_https and is_forwarded_https:
        return PROXY_NOT_TRUSTED
    if lacks_https and reason == REASON_NO_CSRF_COOKIE:
        return HTTPS_NEEDED
    if reason.startswith(REASON_BAD_ORIGIN.partition("%")[0]):
        return OTHER_ORIGIN
    return COOKIE_MISSING
