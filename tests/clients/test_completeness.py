"""Each client of the Python library has exactly one method for each operation in the OpenAPI document.

See docs/decisions/0047.
"""

import asyncio
import inspect
import io
import re
from collections.abc import AsyncIterable, Iterator

import httpx
import pytest
import urllib3
from postrider_client import AsyncPostrider, Postrider
from postrider_client.aio.transport import AsyncTransport
from postrider_client.events import EventListing
from postrider_client.listing import Listing
from postrider_client.transport import Transport

pytestmark = pytest.mark.stack

PAGE = b'{"data": [], "total": 0, "page": 1, "limit": 20, "cursor": "", "hasMore": false}'
LISTS = {"recipients", "emails", "events"}
# The OpenAPI document is not an operation of the library.
EXCLUDED = {("GET", "/v1/openapi.json")}


class Recorder(Transport):
    """Records requests and responds with an empty page, which every method can parse, also as a stream."""

    def _attempt(self, request, *, is_streamed):
        self.seen.add(operation_of(request))
        return urllib3.HTTPResponse(io.BytesIO(PAGE), status=200, preload_content=not is_streamed)


class AsyncRecorder(AsyncTransport):
    async def _attempt(self, request, *, is_streamed):
        self.seen.add(operation_of(request))
        return httpx.Response(200, content=PAGE)


def operation_of(request):
    return request.method, request.url.removeprefix("http://service").partition("?")[0]


def test_each_operation_has_a_method(service):
    paths = service.stack.call("GET", "/openapi.json").body["paths"]
    methods = {"get", "post", "patch", "delete"}
    operations = {(method.upper(), path) for path, item in paths.items() for method in methods & item.keys()}
    documented = {(method, re.sub(r"\{\w+\}", "an-id", path)) for method, path in operations - EXCLUDED}
    for client_class, recorder_class in ((Postrider, Recorder), (AsyncPostrider, AsyncRecorder)):
        assert asyncio.run(requested_operations(client_class, recorder_class)) == documented, client_class


async def requested_operations(client_class, recorder_class):
    client = client_class("pr_x", base_url="http://service")
    recorder = recorder_class(api_key="pr_x", base_url="http://service", timeout_seconds=1, max_retries=0)
    recorder.seen = set()
    client._transport = recorder
    await request(client.me)
    for resource in resources_of(client):
        resource._transport = recorder
        for name, call in inspect.getmembers(resource, inspect.ismethod):
            if not name.startswith("_"):
                await request(call)
    return recorder.seen


def resources_of(part):
    """Yield each resource of a client, and those within it."""
    for resource in vars(part).values():
        if hasattr(resource, "_transport"):
            yield resource
            yield from resources_of(resource)


async def request(call):
    """Call a method. A list and a stream send their request when they are read."""
    answer = call(**required_arguments(call))
    if inspect.isawaitable(answer):
        await answer
    if isinstance(answer, AsyncIterable):
        assert [item async for item in answer] == []
    if isinstance(answer, Listing | EventListing | Iterator):
        assert list(answer) == []


def required_arguments(call):
    """Return values for the required arguments of a method."""
    required = (one for one in inspect.signature(call).parameters.values() if one.default is one.empty)
    values = {one.name: [] if one.name in LISTS else "an-id" for one in required if one.kind is not one.VAR_KEYWORD}
    return values | ({"scheduled_for": None} if "scheduled_for" in values else {})
