"""A program that reads the event stream and disconnects at random: it continues after the last event that it stored."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from tests.chaos.feed_reader import FeedReader

# A stream without events sends a heartbeat only every 15 seconds.
SILENT_SECONDS = 3


@dataclass
class StreamReader(FeedReader):
    """Stores each event together with its cursor. A death after an event loses it; the next connection gets it again.

    Its first read is a page of the feed, since a stream without a cursor begins with the next event.
    """

    name: str = "the stream"

    def read(self) -> None:
        """Read up to 200 events over one connection, which a fault of the service may end."""
        if not self.cursor:
            super().read()
            return
        events = self._events()
        with closing(events), suppress(OSError, http.client.HTTPException):
            for _ in range(self.random.randint(1, 200)):
                event = next(events, None)
                if event is None:
                    return
                if self.random.random() < 0.03:
                    self.deaths += 1
                    return
                self.store([event], event["cursor"])

    def _events(self) -> Iterator[dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SILENT_SECONDS)
        headers = {"Authorization": f"Bearer {self.tenant.key}", "Last-Event-ID": self.cursor}
        with closing(connection):
            connection.request("GET", "/v1/events/stream", headers=headers)
            response = connection.getresponse()
            if response.status != 200:
                return
            for line in response:
                if line.startswith(b"data: "):
                    yield json.loads(line.removeprefix(b"data: "))

    @property
    def port(self) -> int:
        return int(self.scenario.stack.environment["PORT"])
