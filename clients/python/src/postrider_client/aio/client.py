"""Client for the API of one workspace."""

from types import TracebackType
from typing import Optional

from postrider_client.aio.alerts import AsyncAlerts
from postrider_client.aio.domains import AsyncDomains
from postrider_client.aio.emails import AsyncEmails
from postrider_client.aio.erasures import AsyncErasures
from postrider_client.aio.events import AsyncEvents
from postrider_client.aio.inbound import AsyncInbound
from postrider_client.aio.numbers import AsyncAnalytics, AsyncQueue
from postrider_client.aio.streams import AsyncStreams
from postrider_client.aio.subject_exports import AsyncSubjectExports
from postrider_client.aio.suppressions import AsyncSuppressions
from postrider_client.aio.templates import AsyncTemplates
from postrider_client.aio.transport import AsyncTransport
from postrider_client.aio.webhooks import AsyncWebhooks
from postrider_client.aio.workspaces import AsyncReceivers, AsyncTransports, AsyncWorkspaces
from postrider_client.answers import Me
from postrider_client.transport import Call
from postrider_client.wire import read


class AsyncPostrider:
    """Client for the API of one workspace. All tasks of one event loop may share it.

    api_key, base_url: default to the environment variables POSTRIDER_API_KEY and POSTRIDER_URL. A management key is for
    `workspaces`, `transports` and `receivers` only.
    timeout_seconds: maximum time without data from the server.
    max_retries: attempts after the first; 0 disables retries.
    """

    def __init__(
        self,
        api_key: Optional[str] = None,
        *,
        base_url: Optional[str] = None,
        timeout_seconds: float = 60,
        max_retries: int = 3,
    ) -> None:
        self._transport = AsyncTransport(
            api_key=api_key, base_url=base_url, timeout_seconds=timeout_seconds, max_retries=max_retries
        )
        self.emails = AsyncEmails(self._transport)
        self.templates = AsyncTemplates(self._transport)
        self.streams = AsyncStreams(self._transport)
        self.suppressions = AsyncSuppressions(self._transport)
        self.domains = AsyncDomains(self._transport)
        self.alerts = AsyncAlerts(self._transport)
        self.erasures = AsyncErasures(self._transport)
        self.subject_exports = AsyncSubjectExports(self._transport)
        self.webhooks = AsyncWebhooks(self._transport)
        self.events = AsyncEvents(self._transport)
        self.inbound = AsyncInbound(self._transport)
        self.analytics = AsyncAnalytics(self._transport)
        self.queue = AsyncQueue(self._transport)
        self.workspaces = AsyncWorkspaces(self._transport)
        self.transports = AsyncTransports(self._transport)
        self.receivers = AsyncReceivers(self._transport)

    async def me(self) -> Me:
        """Return the workspace, the API key in use and the remaining quota."""
        return read(Me, await self._transport.json(Call("GET", ["me"])))

    async def close(self) -> None:
        """Close all connections. The next call opens new ones."""
        await self._transport.close()

    async def __aenter__(self) -> "AsyncPostrider":
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        await self.close()
