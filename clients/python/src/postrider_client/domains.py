"""Domain operations: `client.domains`."""

from typing import Any, Optional

from postrider_client.answers import Deleted, Domain
from postrider_client.listing import Listing
from postrider_client.transport import Call, Transport
from postrider_client.wire import body_of, read, wire_name


class Domains:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, name: str) -> Domain:
        """Register a sending domain. The response has the DNS records to publish."""
        return read(Domain, self._transport.json(Call("POST", ["domains"], body={"name": name})))

    def list(self, *, page: Optional[int] = None, limit: Optional[int] = None) -> Listing[Domain]:
        return Listing(self._transport, ["domains"], kind=Domain, query=body_of(page=page, limit=limit))

    def get(self, domain_id: str) -> Domain:
        return read(Domain, self._transport.json(Call("GET", ["domains", domain_id])))

    def update(self, domain_id: str, **changes: Any) -> Domain:
        """Update the given settings.

        tls: "required" or "opportunistic".
        open_tracking, click_tracking: the defaults of emails without the option.
        tracking: the host of the links in its emails, as {"subdomain": "links"}, or None for that of the service.
        receiving: whether email to its addresses is received, once its MX record is found.
        """
        body = {wire_name(name): value for name, value in changes.items()}
        return read(Domain, self._transport.json(Call("PATCH", ["domains", domain_id], body=body)))

    def verify(self, domain_id: str) -> Domain:
        """Check the DNS records now. The response has the result and the required changes."""
        return read(Domain, self._transport.json(Call("POST", ["domains", domain_id, "verify"], is_repeatable=True)))

    def rotate_dkim(self, domain_id: str) -> Domain:
        """Create a new DKIM key, unless an earlier one is not in the DNS yet. The response has its record."""
        call = Call("POST", ["domains", domain_id, "rotate-dkim"], is_repeatable=True)
        return read(Domain, self._transport.json(call))

    def delete(self, domain_id: str) -> Deleted:
        return read(Deleted, self._transport.json(Call("DELETE", ["domains", domain_id])))
