"""Webhook operations: `client.webhooks`."""

from collections.abc import Mapping, Sequence
from typing import Optional, Union

from postrider_client.answers import Deleted, Webhook, WebhookDelivery, WebhookEvent
from postrider_client.listing import Listing
from postrider_client.signatures import TOLERANCE_SECONDS, Headers, verify_webhook
from postrider_client.transport import Call, Transport
from postrider_client.wire import body_of, read


class Webhooks:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        *,
        url: str,
        events: Sequence[str],
        streams: Optional[Sequence[str]] = None,
        format: Optional[str] = None,  # noqa: A002 - the API's name
        headers: Optional[Mapping[str, str]] = None,
    ) -> Webhook:
        """Create a webhook. Store the secret of the response: it cannot be read again.

        streams: ids of streams; events about emails of others are not delivered. None or empty: all of them.
        format: "standard", or another service whose events it receives: "resend", "postmark" or "sendgrid".
        headers: further headers of the requests, such as Authorization. Their values are not shown again.
        """
        body = body_of(url=url, events=list(events), streams=streams, format=format, headers=headers)
        call = Call("POST", ["webhooks"], body=body)
        return read(Webhook, self._transport.json(call))

    def list(self, *, page: Optional[int] = None, limit: Optional[int] = None) -> Listing[Webhook]:
        return Listing(self._transport, ["webhooks"], kind=Webhook, query=body_of(page=page, limit=limit))

    def get(self, webhook_id: str) -> Webhook:
        return read(Webhook, self._transport.json(Call("GET", ["webhooks", webhook_id])))

    def update(
        self,
        webhook_id: str,
        *,
        url: Optional[str] = None,
        events: Optional[Sequence[str]] = None,
        streams: Optional[Sequence[str]] = None,
        format: Optional[str] = None,  # noqa: A002 - the API's name
        headers: Optional[Mapping[str, str]] = None,
        active: Optional[bool] = None,
    ) -> Webhook:
        """Change the given fields. headers: all of them; a value as it is shown keeps the present one."""
        body = body_of(url=url, events=events, streams=streams, format=format, headers=headers, active=active)
        return read(Webhook, self._transport.json(Call("PATCH", ["webhooks", webhook_id], body=body)))

    def delete(self, webhook_id: str) -> Deleted:
        return read(Deleted, self._transport.json(Call("DELETE", ["webhooks", webhook_id])))

    def test(self, webhook_id: str) -> WebhookDelivery:
        """Post a sample event."""
        return read(WebhookDelivery, self._transport.json(Call("POST", ["webhooks", webhook_id, "test"])))

    def rotate_secret(self, webhook_id: str) -> Webhook:
        """Create a new secret. The old one stays valid for 24 hours."""
        return read(Webhook, self._transport.json(Call("POST", ["webhooks", webhook_id, "rotate-secret"])))

    def deliveries(
        self,
        webhook_id: str,
        *,
        status: Optional[str] = None,
        event: Optional[str] = None,
        page: Optional[int] = None,
        limit: Optional[int] = None,
    ) -> Listing[WebhookDelivery]:
        path = ["webhooks", webhook_id, "deliveries"]
        query = body_of(status=status, event=event, page=page, limit=limit)
        return Listing(self._transport, path, kind=WebhookDelivery, query=query)

    def delivery(self, webhook_id: str, delivery_id: str) -> WebhookDelivery:
        path = ["webhooks", webhook_id, "deliveries", delivery_id]
        return read(WebhookDelivery, self._transport.json(Call("GET", path)))

    def replay(self, webhook_id: str, delivery_id: str) -> WebhookDelivery:
        """Post a delivery again."""
        path = ["webhooks", webhook_id, "deliveries", delivery_id, "replay"]
        return read(WebhookDelivery, self._transport.json(Call("POST", path)))

    @staticmethod
    def verify(
        raw_body: Union[bytes, str],
        header: Union[str, Headers],
        secret: str,
        *,
        tolerance_seconds: float = TOLERANCE_SECONDS,
    ) -> WebhookEvent:
        """Verify a webhook request. See `verify_webhook`, which works without a client."""
        return verify_webhook(raw_body, header, secret, tolerance_seconds=tolerance_seconds)
