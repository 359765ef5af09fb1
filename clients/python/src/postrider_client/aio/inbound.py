# Generated from inbound.py by bin/async_client.py.
"""Received emails, routes and blocked senders: `client.inbound`."""

from collections.abc import Sequence
from typing import Any, Optional, Union

from postrider_client.aio.listing import AsyncListing
from postrider_client.aio.transport import AsyncTransport
from postrider_client.answers import Deleted
from postrider_client.emails import DateOrTime
from postrider_client.inbound_answers import (
    Forwarded,
    InboundSettings,
    ReceivedEmail,
    ReceivedItem,
    Redelivered,
    Reread,
    Route,
    RouteMatch,
    SenderBlock,
    UnblockedSender,
)
from postrider_client.transport import Call
from postrider_client.wire import body_of, read, wire_name, word


class AsyncInbound:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self.emails = AsyncReceivedEmails(transport)
        self.routes = AsyncRoutes(transport)
        self.blocks = AsyncSenderBlocks(transport)

    async def get(self) -> InboundSettings:
        """Return the workspace's address without any DNS, the hosts for MX records, and the use of its storage."""
        return read(InboundSettings, await self._transport.json(Call("GET", ["inbound"])))


class AsyncReceivedEmails:
    """Received emails. Their content was written by others: check `authentication` before acting on it."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        recipient: Optional[str] = None,
        from_: Optional[str] = None,
        subject: Optional[str] = None,
        tag: Optional[str] = None,
        status: Optional[str] = None,
        route_id: Optional[str] = None,
        email_id: Optional[str] = None,
        after: Optional[DateOrTime] = None,
        before: Optional[DateOrTime] = None,
        test: Optional[bool] = None,
        page: Optional[int] = None,
        limit: Optional[int] = None,
    ) -> AsyncListing[ReceivedItem]:
        """Return matching emails, newest first, without text, HTML and headers.

        recipient, from_, subject: parts of them.
        status: "stored", "processed", "blocked" or "unreadable".
        email_id: answers to this sent email.
        after, before: range of times; a date includes the whole day.
        test: only simulated emails, or only others.
        """
        filters = {"recipient": recipient, "from_": from_, "subject": subject, "tag": tag, "status": status}
        places = {"route_id": route_id, "email_id": email_id, "after": after, "before": before}
        query = body_of(**filters, **places, test=word(test), page=page, limit=limit)
        return AsyncListing(self._transport, ["inbound", "emails"], kind=ReceivedItem, query=query)

    async def get(self, received_id: str) -> ReceivedEmail:
        return read(ReceivedEmail, await self._transport.json(Call("GET", ["inbound", "emails", received_id])))

    async def raw(self, received_id: str) -> bytes:
        """Return the message as it was received, with Received and Authentication-Results of the service in front."""
        return (await self._transport.reply(Call("GET", ["inbound", "emails", received_id, "raw"]))).body

    async def attachment(self, received_id: str, attachment_id: str) -> bytes:
        """Return the decoded bytes of an attachment."""
        path = ["inbound", "emails", received_id, "attachments", attachment_id]
        return (await self._transport.reply(Call("GET", path))).body

    async def bypass(self, received_id: str) -> ReceivedEmail:
        """Publish a blocked email. Raises NotBlocked for another one."""
        return read(
            ReceivedEmail, await self._transport.json(Call("POST", ["inbound", "emails", received_id, "bypass"]))
        )

    async def forward(self, received_id: str, *, to: str) -> Forwarded:
        """Send an email with this one attached. Raises NotForwarded for one that could cause a loop.

        to: an address that has confirmed it; until then, the error has the code `forward_not_confirmed`.
        """
        call = Call("POST", ["inbound", "emails", received_id, "forward"], body={"to": to})
        return read(Forwarded, await self._transport.json(call))

    async def redeliver(self, received_id: str, *, webhook_ids: Optional[Sequence[str]] = None) -> Redelivered:
        """Post the event of an email again. webhook_ids: only these webhooks; None for all that got it."""
        body = body_of(webhook_ids=webhook_ids) or None
        call = Call("POST", ["inbound", "emails", received_id, "redeliver"], body=body)
        return read(Redelivered, await self._transport.json(call))

    async def reread(self, received_id: str) -> Reread:
        """Queue the message of an email that could not be read to be read again; its status changes if that succeeds.

        Raises NotUnreadable for another email, and RereadTooSoon within an hour after it was read again.
        """
        return read(Reread, await self._transport.json(Call("POST", ["inbound", "emails", received_id, "reread"])))

    async def delete(self, received_id: str) -> Deleted:
        return read(Deleted, await self._transport.json(Call("DELETE", ["inbound", "emails", received_id])))

    async def simulate(
        self, *, recipient: str, raw: Union[str, bytes], envelope_from: Optional[str] = None
    ) -> ReceivedEmail:
        """Store a message as if a mail server had delivered it. Requires a test key; no mail server is needed.

        raw: the message (RFC 5322) in UTF-8, at most 5 MiB. Raises RecipientRefused if no route accepts the recipient.
        envelope_from: without it the email is automatic, as a delivery report is. The email is read within a second:
        until then its status is "stored".
        """
        text = raw.decode() if isinstance(raw, bytes) else raw
        body = body_of(recipient=recipient, raw=text, envelope_from=envelope_from)
        return read(ReceivedEmail, await self._transport.json(Call("POST", ["inbound", "emails"], body=body)))


class AsyncRoutes:
    """Rules for recipient addresses: of those that match, the first decides."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self,
        *,
        name: str,
        domain: str,
        match: str,
        priority: Optional[int] = None,
        action: Optional[str] = None,
        webhook_ids: Optional[Sequence[str]] = None,
        forward_to: Optional[Sequence[str]] = None,
        attachments: Optional[str] = None,
        include_raw: Optional[bool] = None,
        require_authenticated: Optional[bool] = None,
        spam_above: Optional[float] = None,
        replies_only: Optional[bool] = None,
        store_days: Optional[int] = None,
        active: Optional[bool] = None,
    ) -> Route:
        """Create a route.

        domain: a receiving domain, or "shared" for the workspace's address at the domain of the service.
        match: a pattern of local parts, such as "support*".
        priority: low numbers first.
        action: "deliver", "reject" or "discard".
        webhook_ids: None for all webhooks that subscribe to `received`.
        forward_to: addresses that have confirmed it.
        require_authenticated, replies_only: emails that are blocked.
        spam_above: the lowest spam score that is blocked.
        store_days: 0 deletes an email when it is delivered.
        """
        body = body_of(**{name: value for name, value in locals().items() if name != "self"})
        return read(Route, await self._transport.json(Call("POST", ["inbound", "routes"], body=body)))

    def list(
        self, *, domain: Optional[str] = None, page: Optional[int] = None, limit: Optional[int] = None
    ) -> AsyncListing[Route]:
        """Return the routes in the order in which they are tried. domain: only those of it."""
        query = body_of(domain=domain, page=page, limit=limit)
        return AsyncListing(self._transport, ["inbound", "routes"], kind=Route, query=query)

    async def get(self, route_id: str) -> Route:
        return read(Route, await self._transport.json(Call("GET", ["inbound", "routes", route_id])))

    async def update(self, route_id: str, **changes: Any) -> Route:
        """Update the given fields, named as in `create`; None removes spam_above and store_days."""
        body = {wire_name(name): value for name, value in changes.items()}
        return read(Route, await self._transport.json(Call("PATCH", ["inbound", "routes", route_id], body=body)))

    async def delete(self, route_id: str) -> Deleted:
        return read(Deleted, await self._transport.json(Call("DELETE", ["inbound", "routes", route_id])))

    async def match(self, recipient: str) -> RouteMatch:
        """Return the route that decides about an address, and the reply of the mail server to it."""
        call = Call("POST", ["inbound", "routes", "match"], body={"recipient": recipient}, is_repeatable=True)
        return read(RouteMatch, await self._transport.json(call))


class AsyncSenderBlocks:
    """Senders from which the workspace receives nothing."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(self, sender: str) -> SenderBlock:
        """Block an address, or a domain with all of its addresses. A blocked one stays so."""
        call = Call("POST", ["inbound", "blocks"], body={"sender": sender}, is_repeatable=True)
        return read(SenderBlock, await self._transport.json(call))

    def list(self, *, page: Optional[int] = None, limit: Optional[int] = None) -> AsyncListing[SenderBlock]:
        return AsyncListing(
            self._transport, ["inbound", "blocks"], kind=SenderBlock, query=body_of(page=page, limit=limit)
        )

    async def delete(self, block_id: str) -> UnblockedSender:
        return read(UnblockedSender, await self._transport.json(Call("DELETE", ["inbound", "blocks", block_id])))
