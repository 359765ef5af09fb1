"""DNS answers of the tests, in place of the lookups of one message."""

from collections.abc import Mapping, Sequence
from typing import Any

from receiving.reading.dns_lookups import DnsUnavailable

# In a zone, instead of records.
FAILS = "SERVFAIL"


class ZoneLookups:
    """Answers from a zone: records by name and type, as receiving.reading.dns_lookups.MessageLookups returns them."""

    seconds_left = 5.0

    def __init__(self, zone: Mapping[str, Mapping[str, Sequence[Any] | str]]) -> None:
        self._zone = zone

    def look_up(self, name: str, kind: str) -> tuple[Any, ...]:
        records = self._zone.get(name.rstrip(".").lower(), {}).get(kind, ())
        if records == FAILS:
            raise DnsUnavailable(name)
        return tuple(tuple(record) if isinstance(record, list) else record for record in records)
