"""The Python library has exactly one method for each operation in the OpenAPI document."""

import inspect
import re

import pytest
from postrider_client import Postrider
from postrider_client.listing import Listing
from postrider_client.transport import Reply, Transport

pytestmark = pytest.mark.stack

RESOURCES = ("emails", "templates", "suppressions", "domains", "webhooks", "analytics", "queue")
LISTS = {"recipients", "emails", "events"}
# The OpenAPI document is not an operation of the library.
EXCLUDED = {("GET", "/v1/openapi.json")}


class Recorder(Transport):
    """Records requests and responds with an empty page, which every method can parse."""

    def _attempt(self, method, url, *, headers, body):
        self.seen.add((method, url.removeprefix("http://service").partition("?")[0]))
        return Reply(200, b'{"data": [], "total": 0, "page": 1, "limit": 20}', {})


def test_each_operation_has_a_method(service):
    paths = service.stack.call("GET", "/openapi.json").body["paths"]
    methods = {"get", "post", "patch", "delete"}
    operations = {(method.upper(), path) for path, item in paths.items() for method in methods & item.keys()}
    documented = {(method, re.sub(r"\{\w+\}", "an-id", path)) for method, path in operations - EXCLUDED}
    assert requested_operations() == documented


def requested_operations():
    client = Postrider("pr_x", base_url="http://service")
    recorder = Recorder(api_key="pr_x", base_url="http://service", timeout_seconds=1, max_retries=0)
    recorder.seen = set()
    client._transport = recorder
    client.me()
    for resource in (getattr(client, name) for name in RESOURCES):
        resource._transport = recorder
        for name, call in inspect.getmembers(resource, inspect.ismethod):
            if not name.startswith("_"):
                answer = call(**required_arguments(call))
                _ = answer.fetch() if isinstance(answer, Listing) else answer
    return recorder.seen


def required_arguments(call):
    """Return values for the required arguments of a method."""
    required = (one for one in inspect.signature(call).parameters.values() if one.default is one.empty)
    values = {one.name: [] if one.name in LISTS else "an-id" for one in required if one.kind is not one.VAR_KEYWORD}
    return values | ({"scheduled_for": None} if "scheduled_for" in values else {})
