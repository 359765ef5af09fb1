"""A program that reads the event feed and dies at random: it continues at the last cursor that it stored."""

import json
import random
import time
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.audit.auditor import wire_id
from tests.stack.scenario import Scenario, Tenant

EVENTS = """
SELECT v.id, v.recipient_id FROM emails_event v LEFT JOIN emails_email e ON e.id = v.email_id
 WHERE coalesce(v.workspace_id, e.workspace_id) = %s::uuid ORDER BY v.number
"""
BODIES = "SELECT id, body FROM webhooks_webhookevent WHERE workspace_id = %s::uuid"
WORKSPACE = "SELECT workspace_id FROM domains_domain WHERE name = %s"
NEWEST_EMAILS = """
SELECT e.id FROM emails_email e JOIN domains_domain d USING (workspace_id) WHERE d.name = %s
 ORDER BY e.created_at DESC LIMIT 200
"""
SETTLE_SECONDS = 300


@dataclass
class FeedReader:
    """Stores the events of a page together with its cursor, as a program does in one transaction.

    A death between the request and the store loses the page; the next request gets it again.
    """

    scenario: Scenario
    random: random.Random
    stored: list[str] = field(default_factory=list)
    # By id.
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    bodies: dict[str, Any] = field(default_factory=dict)
    cursor: str = ""
    deaths: int = 0
    error: str = ""
    name: str = "the feed"
    # Earlier events are not compared with webhooks.
    compared_from: str = ""

    @property
    def tenant(self) -> Tenant:
        return self.scenario.tenants[0]

    def run(self, until: float) -> None:
        try:
            while time.monotonic() < until:
                self.read()
                time.sleep(self.random.random() * 0.3)
        except Exception as error:  # noqa: BLE001 - reported as a violation
            self.error = f"the reader of {self.name} failed: {error!r}"

    def read(self) -> None:
        query = urllib.parse.urlencode({"after": self.cursor, "limit": self.random.randint(1, 60)})
        status, page = self.scenario.call(self.tenant, "GET", f"/events?{query}")
        assert status == 200, page
        if self.random.random() < 0.3:
            self.deaths += 1
        else:
            self.store(page["data"], page["cursor"])

    def store(self, events: list[dict[str, Any]], cursor: str) -> None:
        self.stored += [event["id"] for event in events]
        self.events |= {event["id"]: event for event in events}
        self.cursor = cursor

    def find_violations(self) -> list[str]:
        """Read the rest, and compare the stored events with those of the database."""
        expected = self._expected()
        deadline = time.monotonic() + SETTLE_SECONDS
        while len(self.stored) < len(expected) and time.monotonic() < deadline:
            self.read()
        found = [self.error] if self.error else []
        if len({*self.stored}) < len(self.stored):
            found.append(f"{self.name} returned an event twice")
        if missing := expected.keys() - {*self.stored}:
            found.append(f"{self.name} lacks {len(missing)} events of the database, such as {min(missing)}")
        if unknown := {*self.stored} - expected.keys():
            example = self.events[min(unknown)]
            found.append(f"{self.name} returned {len(unknown)} events that the database lacks, such as {example}")
        if self.deaths == 0:
            found.append(f"the reader of {self.name} never died")
        return found + self._find_disorder(expected) + self._find_differences()

    def find_timeline_violations(self) -> list[str]:
        """Compare the timelines that the API shows of the newest emails with the events of the feed."""
        of_feed: dict[str, list[str]] = {}
        for event in self.events.values():
            # An event of the workspace, on no timeline.
            if event["event"] != "suppressed":
                of_feed.setdefault(event["data"].get("emailId"), []).append(event["id"])
        found = []
        for email_id in (wire_id(id_) for (id_,) in self.scenario.stack.query(NEWEST_EMAILS, self.tenant.domain)):
            _, timeline = self.scenario.call(self.tenant, "GET", f"/emails/{email_id}/events")
            shown = [event["id"] for event in timeline["data"]]
            if sorted(shown) != sorted(of_feed.get(email_id, [])):
                found.append(f"the timeline of {email_id} has {len(shown)} events, but not those of {self.name}")
        return found

    def _without_cursor(self, event_id: str) -> dict[str, Any]:
        return {name: value for name, value in self.events.get(event_id, {}).items() if name != "cursor"}

    def _expected(self) -> dict[str, Any]:
        """Return the recipients of the events of the database by event id, in the order of the timelines."""
        with psycopg.connect(self.scenario.stack.database) as connection:
            ((workspace,),) = connection.execute(WORKSPACE, [self.tenant.domain]).fetchall()
            rows = [*connection.execute(EVENTS, [workspace])]
            self.bodies = {
                wire_id(id_, "evt_"): json.loads(body) for id_, body in connection.execute(BODIES, [workspace])
            }
        return {wire_id(event_id, "evt_"): recipient for event_id, recipient in rows}

    def _find_differences(self) -> list[str]:
        """Compare the events with the bodies of the webhooks; test events are in webhooks only."""
        return [
            f"event {event_id} differs in {self.name} from its webhook"
            for event_id, body in self.bodies.items()
            if not body.get("test")
            and body["createdAt"] >= self.compared_from
            and self._of_feed(body) != self._without_cursor(event_id)
        ]

    def _of_feed(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body of a webhook as the feed shows it: of received email, the feed has no content."""
        if body["type"] != "email.received":
            return body
        shown = self.events.get(body["id"], {}).get("data", {})
        data = {name: value for name, value in body["data"].items() if name in shown}
        # Its URLs are valid for another time.
        return {**body, "data": {**data, "attachments": shown.get("attachments")}}

    def _find_disorder(self, expected: dict[str, Any]) -> list[str]:
        """Compare the order of the events of each recipient."""
        orders: dict[Any, tuple[list[str], list[str]]] = {}
        for number, events in enumerate((self.stored, [*expected])):
            for event in events:
                orders.setdefault(expected.get(event), ([], []))[number].append(event)
        return [
            f"{self.name} returned the events of recipient {recipient} in another order: {json.dumps(seen)}"
            for recipient, (seen, timeline) in orders.items()
            if recipient and seen != timeline
        ]
