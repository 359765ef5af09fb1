# Generated from templates.py by bin/async_client.py.
"""Template operations: `client.templates`."""

from collections.abc import Mapping
from typing import Any, Optional

from postrider_client.aio.listing import AsyncListing
from postrider_client.aio.transport import AsyncTransport
from postrider_client.answers import Deleted, Preview, Template, TemplateItem
from postrider_client.transport import Call
from postrider_client.wire import body_of, read, wire_name


class AsyncTemplates:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self,
        *,
        name: str,
        subject: str,
        html_content: str,
        text_content: Optional[str] = None,
        alias: Optional[str] = None,
        strict_variables: Optional[bool] = None,
    ) -> Template:
        """Create a template.

        alias: usable in place of the id.
        strict_variables: reject emails that lack a value.
        """
        body = body_of(
            name=name,
            subject=subject,
            html_content=html_content,
            text_content=text_content,
            alias=alias,
            strict_variables=strict_variables,
        )
        return read(Template, await self._transport.json(Call("POST", ["templates"], body=body)))

    def list(self, *, page: Optional[int] = None, limit: Optional[int] = None) -> AsyncListing[TemplateItem]:
        query = body_of(page=page, limit=limit)
        return AsyncListing(self._transport, ["templates"], kind=TemplateItem, query=query)

    async def get(self, template_id: str) -> Template:
        return read(Template, await self._transport.json(Call("GET", ["templates", template_id])))

    async def update(self, template_id: str, **changes: Any) -> Template:
        """Update the given fields, named as in `create`. None removes alias or text_content.

        Emails accepted before the change keep the old content.
        """
        body = {wire_name(name): value for name, value in changes.items()}
        return read(Template, await self._transport.json(Call("PATCH", ["templates", template_id], body=body)))

    async def delete(self, template_id: str) -> Deleted:
        return read(Deleted, await self._transport.json(Call("DELETE", ["templates", template_id])))

    async def preview(self, template_id: str, data: Optional[Mapping[str, Any]] = None) -> Preview:
        """Render the template with the given data, without sending."""
        call = Call("POST", ["templates", template_id, "preview"], body={"data": data or {}}, is_repeatable=True)
        return read(Preview, await self._transport.json(call))
