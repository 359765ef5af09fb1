"""HTTP transport with safe retries."""

import json
import os
import re
import time
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Optional, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import urllib3

from postrider_client.base_errors import ConnectionFailed, PostriderError, TimedOut
from postrider_client.error_responses import error_from_response
from postrider_client.retries import is_transient, seconds_after, was_not_processed
from postrider_client.version import __version__
from postrider_client.wire import plain, read

# The most that one read of a stream returns; it returns with less as soon as data arrives.
READ_BYTES = 65_536
DATA = b"data:"
# How urllib3 begins the text of an error.
CONNECTION = re.compile(r"\A<?[\w.]+(?:\(.*?\)| object at \w+>): ")

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One API call.

    path: the segments after /v1; ids are escaped.
    is_keyed: sent with an idempotency key, and therefore safe to retry.
    idempotency_key: sent as the header; a random one if neither it nor the body has a key.
    is_repeatable: safe to retry without a response; None means every method except POST.
    """

    method: str
    path: Sequence[str]
    query: Optional[Mapping[str, Any]] = None
    body: Optional[Mapping[str, Any]] = None
    is_keyed: bool = False
    idempotency_key: Optional[str] = None
    is_repeatable: Optional[bool] = None

    @property
    def may_be_repeated(self) -> bool:
        return self.is_keyed or (self.method != "POST" if self.is_repeatable is None else self.is_repeatable)


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: Optional[bytes] = field(repr=False)


class TransportRules:
    """The requests and retries that both transports have in common.

    timeout_seconds: maximum time without data from the server.
    max_retries: attempts after the first.
    """

    def __init__(
        self, *, api_key: Optional[str], base_url: Optional[str], timeout_seconds: float, max_retries: int
    ) -> None:
        self._api_key = _key(_required(api_key, "api_key", variable="POSTRIDER_API_KEY"))
        self._base_url = _base(_required(base_url, "base_url", variable="POSTRIDER_URL"))
        self._timeout_seconds = timeout_seconds
        self._max_retries = max_retries

    def _request_for(self, call: Call) -> Request:
        body = None if call.body is None else json.dumps(call.body, ensure_ascii=False).encode()
        return Request(call.method, self._url_of(call), self._headers_of(call), body)

    def _wait_seconds(self, call: Call, *, attempt: int, error: PostriderError) -> float:
        """Return the wait before the next attempt. Raises the error if the call must not be repeated."""
        may_repeat = is_transient(error) and (call.may_be_repeated or was_not_processed(error))
        wait = seconds_after(attempt, error=error) if may_repeat and attempt <= self._max_retries else None
        if wait is None:
            raise error
        return wait

    def _headers_of(self, call: Call) -> dict[str, str]:
        headers = {
            "Authorization": f"Bearer {self._api_key}",
            "User-Agent": f"postrider-python/{__version__}",
            "Accept": "application/json, text/csv",
        }
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        if call.is_keyed and "idempotencyKey" not in (call.body or {}):
            headers["Idempotency-Key"] = call.idempotency_key or str(uuid.uuid4())
        return headers

    def _url_of(self, call: Call) -> str:
        query = urlencode({name: _parameter(value) for name, value in (call.query or {}).items() if value is not None})
        return f"{self._base_url}/v1/{'/'.join(map(_segment, call.path))}{'?' if query else ''}{query}"


class Transport(TransportRules):
    """Sends requests over kept connections. Threads may share it; a forked process opens new connections."""

    def __init__(
        self, *, api_key: Optional[str], base_url: Optional[str], timeout_seconds: float, max_retries: int
    ) -> None:
        super().__init__(api_key=api_key, base_url=base_url, timeout_seconds=timeout_seconds, max_retries=max_retries)
        self._pool = _pool_for(self._base_url)
        self._process = os.getpid()

    def json(self, call: Call) -> Any:
        """Return the JSON of the response. Raises ApiError, ConnectionFailed, TimedOut."""
        return json_of(self.reply(call))

    def reply(self, call: Call) -> Reply:
        """Return the response. Raises the same errors as `json`."""
        answer = self._respond(call)
        return Reply(answer.status, answer.data, answer.headers)

    def stream(self, call: Call, *, kind: type[T]) -> Iterator[T]:
        """Yield each event of an event stream when it arrives. Raises the same errors as `json`."""
        with closing(self._respond(call, is_streamed=True)) as answer, _converted_errors(self._timeout_seconds):
            rest = b""
            while part := answer.read1(READ_BYTES):
                events, rest = events_in(rest + part, kind=kind)
                yield from events

    def _respond(self, call: Call, *, is_streamed: bool = False) -> urllib3.BaseHTTPResponse:
        request, attempt = self._request_for(call), 1
        while True:
            try:
                return self._attempt(request, is_streamed=is_streamed)
            except PostriderError as error:
                wait = self._wait_seconds(call, attempt=attempt, error=error)
            time.sleep(wait)
            attempt += 1

    def close(self) -> None:
        self._pool.clear()

    def _attempt(self, request: Request, *, is_streamed: bool) -> urllib3.BaseHTTPResponse:
        with _converted_errors(self._timeout_seconds):
            answer = self._connections().request(
                request.method,
                request.url,
                body=request.body,
                headers=request.headers,
                retries=False,
                # Redirects are errors: following one would turn a POST into a GET or send the key to another host.
                redirect=False,
                timeout=self._timeout_seconds,
                preload_content=not is_streamed,
            )
            if 200 <= answer.status < 300:
                return answer
            raise error_from_response(answer.status, body=answer.data, headers=answer.headers)

    def _connections(self) -> urllib3.PoolManager:
        # Two processes that share a socket would read each other's responses.
        if self._process != os.getpid():
            self._process, self._pool = os.getpid(), _pool_for(self._base_url)
        return self._pool


@contextmanager
def _converted_errors(timeout_seconds: float) -> Iterator[None]:
    """Raise ConnectionFailed and TimedOut instead of the errors of urllib3."""
    try:
        yield
    except urllib3.exceptions.NewConnectionError as error:  # a subclass of TimeoutError in urllib3
        raise ConnectionFailed(_reason_of(error)) from error
    except urllib3.exceptions.TimeoutError as error:
        raise TimedOut(f"No data within {timeout_seconds} s.") from error
    except urllib3.exceptions.HTTPError as error:
        raise ConnectionFailed(f"No valid response: {_reason_of(error)}") from error


def _reason_of(error: urllib3.exceptions.HTTPError) -> str:
    """Return the text of an error without the Python objects that urllib3 writes into it."""
    cause = next((one for one in reversed(error.args) if isinstance(one, Exception)), error)
    return CONNECTION.sub("", str(cause)) or type(cause).__name__


def json_of(reply: Reply) -> Any:
    """Return the JSON of a response. Raises ConnectionFailed for another document, such as the page of a website."""
    try:
        return json.loads(reply.body)
    except ValueError as error:
        raise ConnectionFailed("The response is not JSON. Set base_url to the address of the service.") from error


def events_in(text: bytes, *, kind: type[T]) -> tuple[Iterator[T], bytes]:
    """Return the events of the complete lines of a stream, and the incomplete rest."""
    *lines, rest = text.split(b"\n")
    # The server sends each event as one line of data. Other lines repeat its cursor and type.
    return (read(kind, json.loads(line[len(DATA) :])) for line in lines if line.startswith(DATA)), rest


def _pool_for(base_url: str) -> urllib3.PoolManager:
    """Return a connection pool, through the proxy that the environment sets for this address."""
    host = urlsplit(base_url).hostname or ""
    proxy = urllib.request.getproxies().get(urlsplit(base_url).scheme)
    if not proxy or urllib.request.proxy_bypass(host):
        return urllib3.PoolManager(maxsize=10)
    auth = urllib3.util.parse_url(proxy).auth
    headers = urllib3.make_headers(proxy_basic_auth=auth) if auth else None
    return urllib3.ProxyManager(proxy, proxy_headers=headers, maxsize=10)


def _segment(segment: str) -> str:
    # An empty id would address the whole collection, and dots a parent path.
    if not isinstance(segment, str) or not segment.strip("."):
        raise PostriderError(f"{segment!r} is not an id.")
    return quote(segment, safe="")


def _parameter(value: Any) -> str:
    if isinstance(value, (list, tuple, set)):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(plain(value))


def _required(value: Optional[str], argument: str, *, variable: str) -> str:
    value = value or os.environ.get(variable)
    if not value:
        raise PostriderError(f"{argument} is missing. Pass it, or set the environment variable {variable}.")
    return value


def _key(api_key: str) -> str:
    """Return a key without spaces around it. Other errors of an invalid header would contain the key."""
    key = api_key.strip()
    if not re.fullmatch(r"[!-~]*", key):
        raise PostriderError("The API key has spaces, line breaks or characters other than ASCII.")
    return key


def _base(url: str) -> str:
    if not re.match(r"https?://[^/]", url):
        raise PostriderError("base_url must begin with https:// or http://.")
    try:
        urlsplit(url)
    except ValueError as error:
        raise PostriderError(f"base_url is not a URL: {error}.") from error
    return url.rstrip("/").removesuffix("/v1")
