"""Received email after a chaos run, as each workspace sees it in the API, the feed and its webhook requests."""

import random
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

from tests.audit.received import WorkspaceView, find_received_violations
from tests.stack.scenario import Scenario, Tenant

PAGE = 100
# Emails of a workspace whose source is read.
SOURCES = 200


def find_violations_of_views(scenario: Scenario) -> list[str]:
    acknowledged = list(scenario.ledger.received.values())
    views = [read_view(scenario, tenant) for tenant in scenario.tenants]
    return [violation for view in views for violation in find_received_violations(view, acknowledged)]


def read_view(scenario: Scenario, tenant: Tenant) -> WorkspaceView:
    emails = list(_read_emails(scenario, tenant))
    sampled = random.Random(len(emails)).sample(emails, min(len(emails), SOURCES))
    paths = {endpoint.path for endpoint in scenario.ledger.endpoints if endpoint.workspace == tenant.id}
    return WorkspaceView(
        tenant.id,
        emails,
        list(_read_events(scenario, tenant)),
        [request for request in scenario.ledger.requests if request.path in paths],
        {email["id"]: _read_source(scenario, tenant, email["id"]) for email in sampled},
    )


def _read_emails(scenario: Scenario, tenant: Tenant) -> Iterator[dict[str, Any]]:
    page = 0
    while True:
        page += 1
        _, answer = scenario.call(tenant, "GET", f"/inbound/emails?page={page}&limit={PAGE}")
        yield from answer["data"]
        if len(answer["data"]) < PAGE:
            return


def _read_events(scenario: Scenario, tenant: Tenant) -> Iterator[dict[str, Any]]:
    cursor = ""
    while True:
        query = urllib.parse.urlencode({"after": cursor, "limit": PAGE, "types": "received,replied"})
        _, answer = scenario.call(tenant, "GET", f"/events?{query}")
        yield from answer["data"]
        if not answer["data"]:
            return
        cursor = answer["cursor"]


def _read_source(scenario: Scenario, tenant: Tenant, email_id: str) -> bytes:
    request = urllib.request.Request(f"{scenario.stack.url}/v1/inbound/emails/{email_id}/raw")
    request.add_header("Authorization", f"Bearer {tenant.key}")
    with urllib.request.urlopen(request, timeout=60) as response:
        return bytes(response.read())
