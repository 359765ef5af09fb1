"""The door for providers' webhooks: django-anymail's own views, shut unless a secret is set.

It stays open when DELIVERY_TRANSPORT moves on: a provider still tells what became of yesterday's mail.
"""

from collections.abc import Callable

from anymail.signals import tracking
from anymail.urls import urlpatterns as anymail_patterns
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from inbound.providers import write_down

tracking.connect(write_down, dispatch_uid="inbound")

VIEWS: dict[str, Callable[..., HttpResponseBase]] = {
    str(entry.pattern).removesuffix("/").removesuffix("/tracking"): entry.callback
    for entry in anymail_patterns
    if str(entry.pattern).endswith("/tracking/")
}


@csrf_exempt
def provider_events(request: HttpRequest, provider: str) -> HttpResponseBase:
    """Check the secret, read the events, store them (anymail does the first two). 404 without a secret."""
    view = VIEWS.get(provider)
    if not settings.ANYMAIL_WEBHOOK_SECRET or view is None:
        raise Http404
    return view(request)
