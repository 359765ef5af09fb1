"""Client for the API of one workspace."""

from types import TracebackType
from typing import Optional

from postrider_client.alerts import Alerts
from postrider_client.answers import Me
from postrider_client.domains import Domains
from postrider_client.emails import Emails
from postrider_client.erasures import Erasures
from postrider_client.events import Events
from postrider_client.inbound import Inbound
from postrider_client.numbers import Analytics, Queue
from postrider_client.streams import Streams
from postrider_client.subject_exports import SubjectExports
from postrider_client.suppressions import Suppressions
from postrider_client.templates import Templates
from postrider_client.transport import Call, Transport
from postrider_client.webhooks import Webhooks
from postrider_client.wire import read
from postrider_client.workspaces import Receivers, Transports, Workspaces


class Postrider:
    """Client for the API of one workspace. Threads may share it.

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
        self._transport = Transport(
            api_key=api_key, base_url=base_url, timeout_seconds=timeout_seconds, max_retries=max_retries
        )
        self.emails = Emails(self._transport)
        self.templates = Templates(self._transport)
        self.streams = Streams(self._transport)
        self.suppressions = Suppressions(self._transport)
        self.domains = Domains(self._transport)
        self.alerts = Alerts(self._transport)
        self.erasures = Erasures(self._transport)
        self.subject_exports = SubjectExports(self._transport)
        self.webhooks = Webhooks(self._transport)
        self.events = Events(self._transport)
        self.inbound = Inbound(self._transport)
        self.analytics = Analytics(self._transport)
        self.queue = Queue(self._transport)
        self.workspaces = Workspaces(self._transport)
        self.transports = Transports(self._transport)
        self.receivers = Receivers(self._transport)

    def me(self) -> Me:
        """Return the workspace, the API key in use and the remaining quota."""
        return read(Me, self._transport.json(Call("GET", ["me"])))

    def close(self) -> None:
        """Close all connections. The next call opens new ones."""
        self._transport.close()

    def __enter__(self) -> "Postrider":  # noqa: PYI034 - Python 3.9 has no Self
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()
