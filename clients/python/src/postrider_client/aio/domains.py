# Generated from domains.py by bin/async_client.py.
"""Domain operations: `client.domains`."""

from typing import Any, Optional

from postrider_client.aio.listing import AsyncListing
from postrider_client.aio.transport import AsyncTransport
from postrider_client.answers import Deleted, Domain
from postrider_client.transport import Call
from postrider_client.wire import body_of, read, wire_name


class AsyncDomains:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(self, name: str) -> Domain:
        """Register a sending domain. The response has the DNS records to publish."""
        return read(Domain, await self._transport.json(Call("POST", ["domains"], body={"name": name})))

    def list(self, *, page: Optional[int] = None, limit: Optional[int] = None) -> AsyncListing[Domain]:
        return AsyncListing(self._transport, ["domains"], kind=Domain, query=body_of(page=page, limit=limit))

    async def get(self, domain_id: str) -> Domain:
        return read(Domain, await self._transport.json(Call("GET", ["domains", domain_id])))

    async def update(self, domain_id: str, **changes: Any) -> Domain:
        """Update the given settings.

        tls: "required" or "opportunistic".
        open_tracking, click_tracking: the defaults of emails without the option.
        tracking: the host of the links in its emails, as {"subdomain": "links"}, or None for that of the service.
        receiving: whether email to its addresses is received, once its MX record is found.
        """
        body = {wire_name(name): value for name, value in changes.items()}
        return read(Domain, await self._transport.json(Call("PATCH", ["domains", domain_id], body=body)))

    async def verify(self, domain_id: str) -> Domain:
        """Check the DNS records now. The response has the result and the required changes."""
        return read(
            Domain, await self._transport.json(Call("POST", ["domains", domain_id, "verify"], is_repeatable=True))
        )

    async def rotate_dkim(self, domain_id: str) -> Domain:
        """Create a new DKIM key, unless an earlier one is not in the DNS yet. The response has its record."""
        call = Call("POST", ["domains", domain_id, "rotate-dkim"], is_repeatable=True)
        return read(Domain, await self._transport.json(call))

    async def delete(self, domain_id: str) -> Deleted:
        return read(Deleted, await self._transport.json(Call("DELETE", ["domains", domain_id])))
