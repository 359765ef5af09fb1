"""The transports of TRANSPORTS_FILE, with their addresses."""

from collections.abc import Mapping

from django.conf import settings

from core.delivery.transports.transports_file import Transports, TransportSpec


def current_specs() -> Mapping[str, TransportSpec]:
    """Return the transports of the settings by name."""
    transports: Transports = settings.TRANSPORTS
    return transports.transports
