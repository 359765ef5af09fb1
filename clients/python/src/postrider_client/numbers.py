"""Analytics and queue statistics: `client.analytics` and `client.queue`."""

from datetime import datetime
from typing import Optional, Union

from postrider_client.answers import Analytics as Totals
from postrider_client.answers import BounceCauses, DailyVolume, QueueStats
from postrider_client.transport import Call, Transport
from postrider_client.wire import body_of, read


class Analytics:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(
        self,
        *,
        from_: Union[datetime, str, None] = None,
        to: Union[datetime, str, None] = None,
        stream: Optional[str] = None,
    ) -> Totals:
        """Return totals and rates of the emails created in the range: of one stream, whole UTC days."""
        query = body_of(from_=from_, to=to, stream=stream)
        return read(Totals, self._transport.json(Call("GET", ["analytics"], query=query)))

    def daily(self, days: Optional[int] = None, *, stream: Optional[str] = None) -> list[DailyVolume]:
        """Return daily volumes, oldest first.

        days: 1 to 90, default 14.
        stream: only its emails are counted.
        """
        answer = self._transport.json(Call("GET", ["analytics", "daily"], query=body_of(days=days, stream=stream)))
        return [read(DailyVolume, day) for day in answer["data"]]

    def bounces(
        self,
        *,
        event: Optional[str] = None,
        from_: Union[datetime, str, None] = None,
        to: Union[datetime, str, None] = None,
        stream: Optional[str] = None,
    ) -> BounceCauses:
        """Return the most frequent reasons and receiving hosts of the last 30 days, or of a range, with advice.

        event: bounced (the default), failed or deferred.
        stream: only its emails are counted.
        """
        query = body_of(event=event, from_=from_, to=to, stream=stream)
        return read(BounceCauses, self._transport.json(Call("GET", ["analytics", "bounces"], query=query)))


class Queue:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def stats(self) -> QueueStats:
        """Return the queue depth by state, counted in recipients."""
        return read(QueueStats, self._transport.json(Call("GET", ["queue", "stats"])))
