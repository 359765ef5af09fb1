"""The guarded session for libraries that use requests: an adapter with one deadline and a limit of the response."""

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import ClientError, ClientTimeout
from requests import PreparedRequest, Response
from requests.adapters import BaseAdapter
from requests.exceptions import ConnectionError as RequestFailed
from requests.exceptions import Timeout
from requests.structures import CaseInsensitiveDict

from core.lib.network.address_guard import TargetRefused
from core.lib.network.guarded_http import GuardedSession, NoAddress, read_at_most, verified_tls
from core.lib.network.resolver import DnsError, Resolver
from core.lib.network.target_urls import UrlRules
from core.lib.worker.event_loop import network_loop

MAX_RESPONSE_BYTES = 1024 * 1024
# The deadline is for all steps, also the look-up of the name.
NO_TIMEOUT = ClientTimeout(total=None)
# A thread waits this long for a place among the concurrent requests.
SLOT_SECONDS = 0.5


class GuardedAdapter(BaseAdapter):
    """Sends requests of a requests session through the guard of outgoing connections.

    deadline: time.monotonic() at which all requests of the adapter have ended.
    slots: the number of threads that may wait for a response at the same time.
    """

    def __init__(
        self,
        rules: UrlRules,
        *,
        dns_servers: Sequence[tuple[str, int]],
        deadline: float,
        slots: threading.BoundedSemaphore,
    ) -> None:
        super().__init__()
        self._rules, self._dns_servers, self._deadline, self._slots = rules, dns_servers, deadline, slots

    def send(self, request: PreparedRequest, *_arguments: Any, **_options: Any) -> Response:
        """Return the response, with its redirect if it is one. Raises RequestFailed, Timeout."""
        if not self._slots.acquire(timeout=SLOT_SECONDS):
            raise Timeout("too many requests wait for an answer", request=request)
        try:
            return self._send(request)
        finally:
            self._slots.release()

    def close(self) -> None:
        """Required by BaseAdapter; each request has its own session."""

    def _send(self, request: PreparedRequest) -> Response:
        seconds = self._deadline - time.monotonic()
        waiting = asyncio.run_coroutine_threadsafe(self._fetch(request, seconds=seconds), network_loop())
        try:
            status, headers, body = waiting.result()
        except TimeoutError as error:
            raise Timeout("no answer in time", request=request) from error
        except TargetRefused as error:
            raise RequestFailed(f"{error}: {error.reason}", request=request) from error
        except (NoAddress, DnsError, ClientError, OSError) as error:
            raise RequestFailed(f"{type(error).__name__}: {error}", request=request) from error
        return _response(request, status, headers, body)

    async def _fetch(self, request: PreparedRequest, *, seconds: float) -> tuple[int, Mapping[str, str], bytes]:
        session = GuardedSession(
            self._rules,
            resolver=Resolver(self._dns_servers),
            timeout=NO_TIMEOUT,
            headers={},
            tls=verified_tls(),
        )
        # The session does not decompress, which bounds the memory.
        headers = {**{str(name): str(value) for name, value in request.headers.items()}, "Accept-Encoding": "identity"}
        try:
            async with asyncio.timeout(seconds):
                url = await session.check(request.url or "")
                sending = session.client.request(
                    request.method or "GET", url, headers=headers, data=request.body, allow_redirects=False
                )
                async with sending as response:
                    body = await read_at_most(response.content, MAX_RESPONSE_BYTES)
                    if body is None:
                        raise ClientError(f"more than {MAX_RESPONSE_BYTES} bytes")
                    return response.status, dict(response.headers), body
        finally:
            await session.close()


def _response(request: PreparedRequest, status: int, headers: Mapping[str, str], body: bytes) -> Response:
    response = Response()
    response.status_code = status
    response.headers = CaseInsensitiveDict(headers)
    response.url = request.url or ""
    response.request = request
    response.encoding = "utf-8"
    response._content = body  # noqa: SLF001 - as the adapters of requests' ecosystem do
    return response
