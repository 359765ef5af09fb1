# Generated from alerts.py by bin/async_client.py.
"""Alert operations: `client.alerts`."""

from typing import Optional

from postrider_client.aio.listing import AsyncListing
from postrider_client.aio.transport import AsyncTransport
from postrider_client.answers import Alert, Deleted
from postrider_client.transport import Call
from postrider_client.wire import body_of, read


class AsyncAlerts:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self, *, metric: str, threshold: float, stream: Optional[str] = None, email_owners: Optional[bool] = None
    ) -> Alert:
        """Watch a rate or the quota. The owners and webhooks are notified when the value reaches the threshold.

        metric: "bounce_rate", "complaint_rate", "failure_rate" or "quota_used".
        threshold: a percentage.
        stream: the only stream whose emails count for a rate; None for all.
        email_owners: True by default.
        """
        body = body_of(metric=metric, threshold=threshold, stream=stream, email_owners=email_owners)
        return read(Alert, await self._transport.json(Call("POST", ["alerts"], body=body)))

    def list(self, *, page: Optional[int] = None, limit: Optional[int] = None) -> AsyncListing[Alert]:
        """Return the alerts with their present values, newest first."""
        return AsyncListing(self._transport, ["alerts"], kind=Alert, query=body_of(page=page, limit=limit))

    async def get(self, alert_id: str) -> Alert:
        return read(Alert, await self._transport.json(Call("GET", ["alerts", alert_id])))

    async def update(
        self, alert_id: str, *, threshold: Optional[float] = None, email_owners: Optional[bool] = None
    ) -> Alert:
        """Update the given fields. The metric and the stream cannot be changed."""
        body = body_of(threshold=threshold, email_owners=email_owners)
        return read(Alert, await self._transport.json(Call("PATCH", ["alerts", alert_id], body=body)))

    async def delete(self, alert_id: str) -> Deleted:
        return read(Deleted, await self._transport.json(Call("DELETE", ["alerts", alert_id])))
