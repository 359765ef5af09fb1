"""The transport that DELIVERY_TRANSPORT names."""

from collections.abc import Callable

from django.conf import settings

from delivery.transports.interface import Transport
from delivery.transports.lanes import Limits
from delivery.transports.relay import RelayTransport, inbox_transport
from delivery.transports.smtp_url import parse_smtp_url


def chosen_transport() -> Transport:
    """Return a transport for this process, with the simulator in front of it."""
    return TRANSPORTS[settings.DELIVERY_TRANSPORT]()


def _inbox() -> Transport:
    return inbox_transport(port=settings.INBOX_PORT, ehlo_name=settings.EHLO_NAME)


def _relay() -> Transport:
    # One server for everything: it gets all the sessions that this process may have.
    limits = Limits(connections=settings.DELIVERY_CONNECTIONS)
    return RelayTransport(parse_smtp_url(settings.SMTP_URL), ehlo_name=settings.EHLO_NAME, limits=limits)


TRANSPORTS: dict[str, Callable[[], Transport]] = {"inbox": _inbox, "smtp": _relay}
