"""Suppression operations: `client.suppressions`."""

from collections.abc import Sequence
from typing import Optional

from postrider_client.answers import Deleted, Suppression
from postrider_client.listing import Listing
from postrider_client.transport import Call, Transport
from postrider_client.wire import body_of, read


class Suppressions:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, email: str, *, stream: Optional[str] = None) -> Suppression:
        """Suppress an address. An address already suppressed keeps its reason.

        stream: the only stream to block; None blocks all of the workspace.
        """
        call = Call("POST", ["suppressions"], body=body_of(email=email, stream=stream), is_repeatable=True)
        return read(Suppression, self._transport.json(call))

    def create_many(self, emails: Sequence[str], *, stream: Optional[str] = None) -> list[Suppression]:
        """Suppress up to 1,000 addresses. stream: as in `create`."""
        body = body_of(emails=list(emails), stream=stream)
        call = Call("POST", ["suppressions"], body=body, is_repeatable=True)
        return [read(Suppression, one) for one in self._transport.json(call)["data"]]

    def list(
        self,
        *,
        reason: Optional[str] = None,
        search: Optional[str] = None,
        stream: Optional[str] = None,
        page: Optional[int] = None,
        limit: Optional[int] = None,
    ) -> Listing[Suppression]:
        """Return matching suppressions, newest first. stream: only those of this stream."""
        query = body_of(reason=reason, search=search, stream=stream, page=page, limit=limit)
        return Listing(self._transport, ["suppressions"], kind=Suppression, query=query)

    def get(self, suppression_id: str) -> Suppression:
        return read(Suppression, self._transport.json(Call("GET", ["suppressions", suppression_id])))

    def delete(self, suppression_id: str) -> Deleted:
        """Delete a suppression, so that emails to the address are sent again."""
        return read(Deleted, self._transport.json(Call("DELETE", ["suppressions", suppression_id])))
