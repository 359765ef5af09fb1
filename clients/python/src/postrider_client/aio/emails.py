# Generated from emails.py by bin/async_client.py.
"""Email operations: `client.emails`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Optional, Union

from postrider_client.aio.listing import AsyncListing
from postrider_client.aio.transport import AsyncTransport
from postrider_client.answers import (
    Accepted,
    BatchAccepted,
    Cancelled,
    Checked,
    Email,
    EmailItem,
    Export,
    Rescheduled,
    SentAttachment,
    TimelineEvent,
)
from postrider_client.attachments import Attachment
from postrider_client.emails import BatchRecipient, DateOrTime, _email_body
from postrider_client.transport import Call
from postrider_client.wire import body_of, items_of, plain, read, word


class AsyncEmails:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def send(
        self,
        *,
        from_: str,
        to: Union[str, Sequence[str], None] = None,
        subject: Optional[str] = None,
        html: Optional[str] = None,
        text: Optional[str] = None,
        template_id: Optional[str] = None,
        template_data: Optional[Mapping[str, Any]] = None,
        reply_to: Union[str, Sequence[str], None] = None,
        cc: Union[str, Sequence[str], None] = None,
        bcc: Union[str, Sequence[str], None] = None,
        tags: Optional[Sequence[str]] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, str]] = None,
        attachments: Optional[Sequence[Union[Attachment, Mapping[str, Any]]]] = None,
        scheduled_for: Optional[datetime] = None,
        track_opens: Optional[bool] = None,
        track_clicks: Optional[bool] = None,
        reply_tracking: Optional[bool] = None,
        in_reply_to_id: Optional[str] = None,
        stream: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> Accepted:
        """Send one email, now or at `scheduled_for`. Retries never send it twice.

        to: one address or up to 50; cc and bcc likewise. All of them see all addresses of to and cc in one email.
        template_id: a template's id or alias. It replaces html and text, and subject is optional.
        reply_tracking: answers go to an address of the service, which matches them to this email. Not with reply_to.
        in_reply_to_id: the id of a received email to answer; to and subject are optional then.
        stream: the id of a stream; by default "main", or the API key's only stream.
        idempotency_key: a workspace accepts one email per key; repetitions return the first response.
        """
        body = _email_body(**{name: value for name, value in locals().items() if name != "self"})
        return read(Accepted, await self._transport.json(Call("POST", ["emails", "send"], body=body, is_keyed=True)))

    async def check(self, **fields: Any) -> Checked:
        """Validate an email and return it rendered, without sending it or using quota."""
        body = {**_email_body(**fields), "dryRun": True}
        return read(
            Checked, await self._transport.json(Call("POST", ["emails", "send"], body=body, is_repeatable=True))
        )

    async def batch(
        self,
        *,
        from_: str,
        template_id: str,
        recipients: Sequence[Union[BatchRecipient, Mapping[str, Any]]],
        subject: Optional[str] = None,
        reply_to: Union[str, Sequence[str], None] = None,
        tags: Optional[Sequence[str]] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        scheduled_for: Optional[datetime] = None,
        stream: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> BatchAccepted:
        """Send a template to up to 500 recipients. Each gets a separate email, rendered with their data.

        recipients: dicts with the keys `to`, `template_data` and `metadata` are also accepted.
        """
        body = body_of(
            from_=from_,
            template_id=template_id,
            recipients=items_of(recipients),
            subject=subject,
            reply_to=reply_to,
            tags=tags,
            metadata=metadata,
            scheduled_for=scheduled_for,
            stream=stream,
            idempotency_key=idempotency_key,
        )
        return read(
            BatchAccepted, await self._transport.json(Call("POST", ["emails", "batch"], body=body, is_keyed=True))
        )

    async def get(self, email_id: str) -> Email:
        return read(Email, await self._transport.json(Call("GET", ["emails", email_id])))

    async def attachments(self, email_id: str) -> list[SentAttachment]:
        """Return the files of an email with URLs for an hour; none once its content is deleted."""
        answer = await self._transport.json(Call("GET", ["emails", email_id, "attachments"]))
        return [read(SentAttachment, file) for file in answer["data"]]

    async def attachment(self, email_id: str, attachment_id: str) -> bytes:
        """Return the bytes of an attachment."""
        call = Call("GET", ["emails", email_id, "attachments", attachment_id])
        return (await self._transport.reply(call)).body

    async def events(self, email_id: str) -> list[TimelineEvent]:
        """Return the timeline of an email, oldest event first."""
        answer = await self._transport.json(Call("GET", ["emails", email_id, "events"]))
        return [read(TimelineEvent, event) for event in answer["data"]]

    def list(
        self,
        *,
        status: Union[str, Sequence[str], None] = None,
        event: Union[str, Sequence[str], None] = None,
        search: Optional[str] = None,
        tag: Optional[str] = None,
        stream: Optional[str] = None,
        test: Optional[bool] = None,
        from_: Optional[DateOrTime] = None,
        to: Optional[DateOrTime] = None,
        page: Optional[int] = None,
        limit: Optional[int] = None,
    ) -> AsyncListing[EmailItem]:
        """Return matching emails, newest first.

        event: an event on the timeline, such as "complained".
        test: only test emails, or only live ones.
        from_, to: range of creation times; a date includes the whole day.
        """
        filters = {"status": status, "event": event, "search": search, "tag": tag, "stream": stream}
        query = body_of(**filters, test=word(test), from_=from_, to=to, page=page, limit=limit)
        return AsyncListing(self._transport, ["emails"], kind=EmailItem, query=query)

    async def export(
        self,
        *,
        status: Union[str, Sequence[str], None] = None,
        event: Union[str, Sequence[str], None] = None,
        search: Optional[str] = None,
        tag: Optional[str] = None,
        stream: Optional[str] = None,
        test: Optional[bool] = None,
        from_: Optional[DateOrTime] = None,
        to: Optional[DateOrTime] = None,
    ) -> Export:
        """Return matching emails as CSV, at most 10,000 rows."""
        filters = {"status": status, "event": event, "search": search, "tag": tag, "stream": stream}
        query = body_of(**filters, test=word(test), from_=from_, to=to)
        reply = await self._transport.reply(Call("GET", ["emails", "export"], query=query))
        return Export(reply.body.decode(), reply.headers.get("X-Export-Truncated") == "true")

    async def resend(self, email_id: str, *, idempotency_key: Optional[str] = None) -> Accepted:
        """Send an email again, as a new email."""
        body = body_of(idempotency_key=idempotency_key) or None
        call = Call("POST", ["emails", email_id, "resend"], body=body, is_keyed=True)
        return read(Accepted, await self._transport.json(call))

    async def cancel(self, email_id: str) -> Cancelled:
        """Cancel a scheduled email. Raises EmailAlreadySent or Conflict if it is too late."""
        return read(Cancelled, await self._transport.json(Call("DELETE", ["emails", email_id])))

    async def reschedule(self, email_id: str, scheduled_for: Optional[datetime]) -> Rescheduled:
        """Move a scheduled email to another time; None sends it immediately."""
        body = {"scheduledFor": plain(scheduled_for)}
        return read(Rescheduled, await self._transport.json(Call("PATCH", ["emails", email_id], body=body)))
