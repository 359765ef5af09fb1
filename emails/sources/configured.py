"""The addresses of transports as in TRANSPORTS_FILE now: a change needs no restart (docs/decisions/0368)."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from django.conf import settings

from core.delivery.transports.transports_file import InvalidTransportsFile, Transports, TransportSpec, read_transports

# The file is looked at as often, while email is sent.
CHECK_SECONDS = 5.0
log = logging.getLogger("postrider.emails")


@dataclass
class _Reading:
    """The last reading of the file.

    configured: the transports of the settings, which it replaces in part.
    stamp: the time of its last change, and its size; None before the first reading, since the file may have changed
        after the start.
    """

    configured: Transports
    specs: Mapping[str, TransportSpec]
    stamp: tuple[int, int] | None = None
    checked_at: float = float("-inf")

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        now = time.monotonic()
        if now - self.checked_at < CHECK_SECONDS:
            return
        self.checked_at = now
        if (stamp := _stamp()) not in (None, self.stamp):
            self.stamp = stamp
            self.specs = _read(self.configured, former=self.specs)


_readings: dict[str, _Reading] = {}


def current_specs() -> Mapping[str, TransportSpec]:
    """Return the transports of the settings, with the addresses of the file as it is now.

    What else is in the file takes effect with a restart. A file with a mistake changes nothing, and is logged once.
    """
    configured: Transports = settings.TRANSPORTS
    reading = _readings.get(settings.TRANSPORTS_FILE)
    if reading is None or reading.configured is not configured:
        reading = _readings[settings.TRANSPORTS_FILE] = _Reading(configured, configured.transports)
    reading.refresh()
    return reading.specs


def _stamp() -> tuple[int, int] | None:
    try:
        found = Path(settings.TRANSPORTS_FILE).stat() if settings.TRANSPORTS_FILE else None
    except OSError:
        return None
    return found and (found.st_mtime_ns, found.st_size)


def _read(configured: Transports, *, former: Mapping[str, TransportSpec]) -> Mapping[str, TransportSpec]:
    try:
        found = read_transports(Path(settings.TRANSPORTS_FILE)).transports
    except InvalidTransportsFile as error:
        log.warning("TRANSPORTS_FILE was not read again", extra={"data": {"error": str(error)}})
        return former
    return {name: _with_addresses(spec, found.get(name)) for name, spec in configured.transports.items()}


def _with_addresses(spec: TransportSpec, found: TransportSpec | None) -> TransportSpec:
    """Return a spec with the addresses of another one, if it may be changed so: it has addresses before and after."""
    if found is None or found.kind != spec.kind or bool(found.source_addresses) is not bool(spec.source_addresses):
        return spec
    return replace(
        spec,
        source_addresses=found.source_addresses,
        since=found.since,
        overflow=found.overflow,
        leave_when_listed=found.leave_when_listed,
    )
