"""Webhook endpoints for email providers: django-anymail's views, disabled unless ANYMAIL_WEBHOOK_SECRET is set.

Each named transport has its own path, with the secrets of its settingsFile.
They stay enabled after DELIVERY_TRANSPORT changes: a provider still sends events for messages sent earlier.
"""

from collections.abc import Callable
from functools import cache

from anymail.signals import tracking
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from interfaces.inbound.providers import calling_transport, store_event

tracking.connect(store_event, dispatch_uid="inbound")


@cache
def _views() -> dict[str, Callable[..., HttpResponseBase]]:
    """Return anymail's view of each provider."""
    # Few installations need them, and with the packages of development they load 18 MB in 0.5 s.
    from anymail.urls import urlpatterns  # noqa: PLC0415

    return {
        str(entry.pattern).removesuffix("/").removesuffix("/tracking"): entry.callback
        for entry in urlpatterns
        if str(entry.pattern).endswith("/tracking/")
    }


def _view_of(provider: str, *, secret: str | None) -> Callable[..., HttpResponseBase]:
    """Return anymail's view of a provider. 404 without a secret, and for an unknown provider."""
    view = _views().get(provider) if secret else None
    if view is None:
        raise Http404
    return view


@csrf_exempt
def provider_events(request: HttpRequest, provider: str) -> HttpResponseBase:
    """Check the secret, parse the events (both by anymail) and store them. 404 if no secret is configured."""
    return _view_of(provider, secret=settings.ANYMAIL_WEBHOOK_SECRET)(request)


@csrf_exempt
def named_events(request: HttpRequest, transport: str, provider: str) -> HttpResponseBase:
    """Do the same for the events of one transport, whose ids are looked up among its own messages."""
    spec = settings.TRANSPORTS.transports.get(transport) if settings.TRANSPORTS.is_named else None
    if spec is None or not spec.has_provider(provider):
        raise Http404
    view = _view_of(provider, secret=spec.options.get("webhook_secret") or settings.ANYMAIL_WEBHOOK_SECRET)
    instance = view.view_class(**spec.options)  # type: ignore[attr-defined]  # set by View.as_view
    instance.setup(request)
    with calling_transport(transport):
        response: HttpResponseBase = instance.dispatch(request)
    return response
