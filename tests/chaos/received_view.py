"""Received email after a chaos run, as each workspace sees it in the API, the feed and its webhook requests."""

import hashlib
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.audit.received import WorkspaceView, find_received_violations
from tests.chaos.receiving_routes import PAGE, read_emails, read_forwards
from tests.stack.scenario import CALL_TIMEOUT_SECONDS, Scenario, Tenant

THREADS = 4


def find_violations_of_views(scenario: Scenario) -> list[str]:
    acknowledged = list(scenario.ledger.received.values())
    views = [read_view(scenario, tenant) for tenant in scenario.tenants]
    return [violation for view in views for violation in find_received_violations(view, acknowledged)]


def read_view(scenario: Scenario, tenant: Tenant) -> WorkspaceView:
    emails = list(read_emails(scenario, tenant))
    with ThreadPoolExecutor(THREADS) as threads:
        digests = dict(threads.map(lambda email: (email["id"], _read_digest(scenario, tenant, email)), emails))
    paths = {endpoint.path for endpoint in scenario.ledger.endpoints if endpoint.workspace == tenant.id}
    return WorkspaceView(
        tenant.id,
        emails,
        list(_read_events(scenario, tenant)),
        [request for request in scenario.ledger.requests if request.path in paths],
        digests,
        read_forwards(scenario, tenant),
    )


def _read_events(scenario: Scenario, tenant: Tenant) -> Iterator[dict[str, Any]]:
    cursor = ""
    while True:
        query = urllib.parse.urlencode({"after": cursor, "limit": PAGE, "types": "received,replied"})
        _, answer = scenario.call(tenant, "GET", f"/events?{query}")
        yield from answer["data"]
        if not answer["data"]:
            return
        cursor = answer["cursor"]


def _read_digest(scenario: Scenario, tenant: Tenant, email: dict[str, Any]) -> str:
    """Return the SHA-256 of the source of an email without the fields that the service has put in front of it."""
    source = _read_source(scenario, tenant, email["id"])
    return hashlib.sha256(source[-email["size"] :]).hexdigest()


def _read_source(scenario: Scenario, tenant: Tenant, email_id: str) -> bytes:
    request = urllib.request.Request(f"{scenario.stack.url}/v1/inbound/emails/{email_id}/raw")
    request.add_header("Authorization", f"Bearer {tenant.key}")
    deadline = time.monotonic() + CALL_TIMEOUT_SECONDS
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return bytes(response.read())
        except urllib.error.HTTPError as error:
            # The rate limit of a workspace, since all of its emails are read.
            if error.code != 429 or time.monotonic() > deadline:
                raise
            error.close()
            time.sleep(0.2)
