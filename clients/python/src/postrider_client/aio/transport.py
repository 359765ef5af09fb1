"""HTTP transport for asyncio, with the requests and retries of the synchronous one."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any, Optional, TypeVar

from postrider_client.base_errors import ConnectionFailed, PostriderError, TimedOut
from postrider_client.error_responses import error_from_response
from postrider_client.transport import Call, Reply, Request, TransportRules, events_in, json_of

try:
    import httpx
except ImportError as error:
    raise ImportError("AsyncPostrider requires httpx: pip install 'httpx>=0.28,<1'") from error

T = TypeVar("T")


class AsyncTransport(TransportRules):
    """Sends requests over kept connections. All tasks of one event loop may share it."""

    def __init__(
        self, *, api_key: Optional[str], base_url: Optional[str], timeout_seconds: float, max_retries: int
    ) -> None:
        super().__init__(api_key=api_key, base_url=base_url, timeout_seconds=timeout_seconds, max_retries=max_retries)
        # The certificate authorities of the system, as in the synchronous client.
        self._certificates = ssl.create_default_context()
        self._client = self._new_client()

    async def json(self, call: Call) -> Any:
        """Return the JSON of the response. Raises ApiError, ConnectionFailed, TimedOut."""
        return json_of(await self.reply(call))

    async def reply(self, call: Call) -> Reply:
        """Return the response. Raises the same errors as `json`."""
        answer = await self._respond(call)
        return Reply(answer.status_code, answer.content, answer.headers)

    async def stream(self, call: Call, *, kind: type[T]) -> AsyncGenerator[T, None]:
        """Yield each event of an event stream when it arrives. Raises the same errors as `json`."""
        answer = await self._respond(call, is_streamed=True)
        try:
            with _converted_errors(self._timeout_seconds):
                rest = b""
                async for part in answer.aiter_bytes():
                    events, rest = events_in(rest + part, kind=kind)
                    for event in events:
                        yield event
        finally:
            await answer.aclose()

    async def close(self) -> None:
        closed, self._client = self._client, self._new_client()
        await closed.aclose()

    async def _respond(self, call: Call, *, is_streamed: bool = False) -> httpx.Response:
        request, attempt = self._request_for(call), 1
        while True:
            try:
                return await self._attempt(request, is_streamed=is_streamed)
            except PostriderError as error:
                wait = self._wait_seconds(call, attempt=attempt, error=error)
            await asyncio.sleep(wait)
            attempt += 1

    async def _attempt(self, request: Request, *, is_streamed: bool) -> httpx.Response:
        with _converted_errors(self._timeout_seconds):
            sent = self._client.build_request(
                request.method, request.url, headers=request.headers, content=request.body
            )
            answer = await self._client.send(sent, stream=is_streamed)
            if answer.is_success:
                return answer
            body = await answer.aread()
        raise error_from_response(answer.status_code, body=body, headers=answer.headers)

    def _new_client(self) -> httpx.AsyncClient:
        # A call waits without a limit for one of the 100 connections: that is not a silent server.
        timeout = httpx.Timeout(self._timeout_seconds, pool=None)
        return httpx.AsyncClient(verify=self._certificates, timeout=timeout)


@contextmanager
def _converted_errors(timeout_seconds: float) -> Iterator[None]:
    """Raise ConnectionFailed and TimedOut instead of the errors of httpx."""
    try:
        yield
    except httpx.TimeoutException as error:
        raise TimedOut(f"No data within {timeout_seconds} s.") from error
    except httpx.ConnectError as error:
        raise ConnectionFailed(f"No connection: {error}") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ConnectionFailed(f"No valid response: {str(error) or type(error).__name__}") from error
