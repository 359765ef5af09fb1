"""`GET /v1/analytics/bounces`: reasons and receiving hosts of bounces, deferrals and failures, with advice."""

import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from analytics import bounces
from analytics.advice import BY_REASON, BY_RECEIVER, Advice
from analytics.bounces import NEWEST, mask_addresses, read_causes
from console.dashboard.texts.reasons import EXPLANATIONS
from console.documentation.pages import documentation_page
from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from emails.models import Email, Recipient
from events.kinds import EventKind
from events.models import Event
from streams.services import create_stream
from tests.analytics.conftest import NOON, get_analytics
from tests.conftest import Api, code_of, field_codes
from tests.emails.builders import OK, deliver, make_ready, send
from tests.erasing import erase_person
from tests.plans import plan_of, prefer_indexes
from tests.rows import each

pytestmark = pytest.mark.django_db
GONE = DeliveryOutcome(
    DeliveryStatus.BOUNCED,
    Reply(550, "5.1.1 <ada@acme.example> does not exist. a1 - gsmtp"),
    FailureReason.UNKNOWN_USER,
    is_recipient_fault=True,
)
SPAM = DeliveryOutcome(DeliveryStatus.BOUNCED, Reply(554, "5.7.1 This looks like spam"), FailureReason.SPAM)
GREY = DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(451, "4.7.1 Greylisted"), FailureReason.GREYLISTED)
BUSY = DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(421, "4.3.2 Busy"), FailureReason.HOST_TROUBLE)
EXPIRED = DeliveryOutcome(DeliveryStatus.FAILED, Reply(0, "Timed out"), FailureReason.NETWORK)


get_causes = partial(get_analytics, path="/analytics/bounces")


def bounce(api: Api, to: str, outcome: DeliveryOutcome, **fields) -> str:
    email_id = send(api, to=to, **fields)
    deliver(outcome)
    return email_id


def add_events(workspace, count, *, created_at=NOON, kind="bounced", domain="h{}.example", **fields) -> None:
    """Add an email with one bounce of each of a number of recipients, at a domain each."""
    email = Email.objects.create(
        workspace=workspace,
        sender="x@alice.example",
        from_domain="alice.example",
        to=["x@example.com"],
        cc=[],
        bcc=[],
        subject="s",
        tags=[],
        status="bounced",
        created_at=created_at,
        **fields,
    )
    addresses = [f"r{number}@{domain.format(number)}" for number in range(count)]
    recipients = Recipient.objects.bulk_create(
        Recipient(email=email, kind="to", position=0, address=address, state="bounced") for address in addresses
    )
    Event.objects.bulk_create(
        Event(
            workspace_id=workspace.id,
            email=email,
            recipient=recipient,
            kind=kind,
            payload={"to": recipient.address, "reason": "unknown_user", "code": 550, "message": "5.1.1 unknown"},
            created_at=created_at + timedelta(seconds=number),
        )
        for number, recipient in enumerate(recipients)
    )


def test_an_empty_workspace_has_no_causes(api):
    body = get_causes(api)
    assert (body["recipients"], body["reasons"], body["hosts"], body["otherHosts"]) == (0, [], [], 0)
    assert body["countedFrom"] == body["from"]


def test_reasons_and_hosts_have_counts_shares_advice_and_a_sample(api):
    send(api, to="fine@acme.example")
    deliver(OK)
    for name in ("ada", "bob"):
        bounce(api, f"{name}@acme.example", GONE)
    bounce(api, "eve@gmail.com", GONE)
    last = bounce(api, "mia@other.example", SPAM)
    body = get_causes(api)
    assert (body["event"], body["recipients"], body["otherHosts"]) == ("bounced", 4, 0)
    assert [(one["reason"], one["recipients"], one["share"]) for one in body["reasons"]] == [
        ("unknown_user", 3, 0.75),
        ("spam", 1, 0.25),
    ]
    # Google: a company whose reply comes from it, and Gmail.
    assert [(one["name"], one["recipients"], one["topReason"]) for one in body["hosts"]] == [
        ("Google", 3, "unknown_user"),
        ("other.example", 1, "spam"),
    ]
    spam = body["reasons"][1]
    assert spam["advice"] == "Check the subject, the links and the attachments, and offer files as links."
    assert spam["docsUrl"].endswith("/docs/guides/bounce-causes#refused-content")
    assert spam["sample"].pop("createdAt")
    assert spam["sample"] == {
        "emailId": last,
        "code": 554,
        "enhancedCode": "5.7.1",
        "message": "5.7.1 This looks like spam",
    }


def test_a_sample_has_no_address(api):
    bounce(api, "ada@acme.example", GONE)
    body = get_causes(api)
    assert body["reasons"][0]["sample"]["message"] == "5.1.1 <…> does not exist. a1 - gsmtp"
    assert "ada" not in str(body)


@each(
    ("text", "masked"),
    [
        ("550 <ada@example.com>: unknown", "550 <…>: unknown"),
        ("ada@example.com unknown, ada@example.com!", "… unknown, …"),
        ("Mailbox Ada is full", "Mailbox … is full"),
        ("see mailto:ada@example.com?x=1", "see mailto:…=1"),
        ("nothing to hide: adamant", "nothing to hide: adamant"),
        ("", ""),
    ],
)
def test_addresses_in_replies_are_masked(text, masked):
    assert mask_addresses(text, local_part="ada") == masked


def test_masking_takes_linear_time():
    started = time.process_time()
    for text in ("a" * 1000, "@" * 1000, "a@" * 500, "a.b-" * 250):
        mask_addresses(text * 100, local_part="a")
    assert time.process_time() - started < 1


def test_a_recipient_counts_once_with_the_newest_event(api):
    send(api, to="ada@acme.example")
    for outcome in (GREY, GREY, BUSY):
        make_ready()
        deliver(outcome)
    body = get_causes(api, event="deferred")
    assert body["recipients"] == 1
    assert [(one["reason"], one["share"]) for one in body["reasons"]] == [("host_trouble", 1.0)]
    assert body["reasons"][0]["sample"]["message"] == "4.3.2 Busy"


def test_each_kind_of_event_is_counted_alone(api):
    bounce(api, "a@acme.example", GONE)
    bounce(api, "b@acme.example", EXPIRED)
    send(api, to="c@acme.example")
    deliver(GREY)
    found = {event: get_causes(api, event=event)["reasons"] for event in ("bounced", "failed", "deferred")}
    assert {event: [one["reason"] for one in reasons] for event, reasons in found.items()} == {
        "bounced": ["unknown_user"],
        "failed": ["network"],
        "deferred": ["greylisted"],
    }
    assert found["failed"][0]["sample"]["code"] is None


def test_a_large_provider_has_its_own_advice_about_the_sender(api):
    for number in range(2):
        bounce(api, f"a{number}@gmail.com", SPAM)
    bounce(api, "b@gmail.com", GONE)
    host, *others = get_causes(api)["hosts"]
    assert (host["name"], host["topReason"], others) == ("Google", "spam", [])
    assert "Postmaster Tools" in host["advice"]
    assert host["sample"]["code"] == 554


def test_a_stored_receiver_outweighs_the_domain_and_the_reply(api):
    bounce(api, "a@acme.example", replace(GONE, receiver="mimecast"))
    bounce(api, "b@gmail.com", replace(GONE, receiver="mimecast"))
    bounce(api, "c@acme.example", replace(GONE, receiver="hosting.example"))
    bounce(api, "d@hosting.example", SPAM)
    hosts = [(one["name"], one["recipients"]) for one in get_causes(api)["hosts"]]
    assert hosts == [("Mimecast", 2), ("hosting.example", 2)]


def test_other_workspaces_and_test_emails_do_not_count(api, alice, bob, bobs_api):
    bounce(api, "ada@acme.example", GONE)
    add_events(alice.workspace, 1, created_at=datetime.now(UTC) - timedelta(hours=1), is_test=True)
    assert get_causes(api)["recipients"] == 1
    assert get_causes(bobs_api)["recipients"] == 0


def test_streams_are_counted_alone(api, alice):
    create_stream(alice.workspace, slug="newsletter", name="Newsletter")
    bounce(api, "a@acme.example", GONE)
    for name in ("b", "c"):
        bounce(api, f"{name}@acme.example", SPAM, stream="newsletter")
    counts = {stream: get_causes(api, stream=stream)["recipients"] for stream in ("", "main", "newsletter")}
    assert counts == {"": 3, "main": 1, "newsletter": 2}
    assert code_of(api.get("/analytics/bounces", {"stream": "none"})) == (422, "stream_not_found")


@each(
    ("query", "count"),
    [
        ({"from_": "2026-03-15T12:00:00Z", "to": "2026-03-15T12:00:09Z"}, 10),
        ({"from_": "2026-03-15T12:00:01Z", "to": "2026-03-15T12:00:08Z"}, 8),
        ({"from_": "2026-03-15T14:00:08+02:00", "to": "2026-03-16"}, 2),
        ({"from_": "2026-03-15", "to": "2026-03-15"}, 10),
        ({"to": "2026-03-14"}, 0),
        ({"from_": "2026-03-16", "to": "2026-03-20"}, 0),
        ({"to": "2026-04-14T12:00:05Z"}, 5),
        ({"from_": "0001-01-01", "to": "9999-12-31"}, 10),
        ({"from_": "2999-01-01"}, 0),
        ({"to": "0001-01-01"}, 0),
        # No earlier than 30 days before now.
        ({}, 0),
    ],
)
def test_a_range_includes_both_ends(api, alice, query, count):
    add_events(alice.workspace, 10)
    assert get_causes(api, **query)["recipients"] == count


def test_a_reversed_range_and_an_unknown_event_are_refused(api):
    query = {"from": "2026-03-16", "to": "2026-03-15"}
    assert field_codes(api.get("/analytics/bounces", query)) == {"from": "invalid_range"}
    assert field_codes(api.get("/analytics/bounces", {"event": "opened"})) == {"event": "invalid_choice"}
    assert field_codes(api.get("/analytics/bounces", {"kind": "x"})) == {"kind": "unknown_parameter"}


def test_hosts_beyond_the_largest_are_counted_together(api, alice):
    add_events(alice.workspace, 30)
    add_events(alice.workspace, 3, domain="big.example")
    body = get_causes(api, from_="2026-03-15", to="2026-03-15")
    assert (body["recipients"], len(body["hosts"]), body["otherHosts"]) == (33, 20, 11)
    assert [(one["name"], one["recipients"]) for one in body["hosts"][:2]] == [("big.example", 3), ("h0.example", 1)]
    assert sum(one["recipients"] for one in body["hosts"]) + body["otherHosts"] == 33


def test_only_the_newest_events_are_read(api, alice, monkeypatch):
    monkeypatch.setattr(bounces, "MAX_EVENTS", 10)
    add_events(alice.workspace, 10)
    complete = get_causes(api, from_="2026-03-15", to="2026-03-15")
    assert (complete["recipients"], complete["countedFrom"]) == (10, "2026-03-15T00:00:00.000Z")
    add_events(alice.workspace, 2, created_at=NOON + timedelta(hours=1))
    cut = get_causes(api, from_="2026-03-15", to="2026-03-15")
    assert (cut["recipients"], cut["countedFrom"]) == (10, "2026-03-15T12:00:02.000Z")


def test_one_statement_reads_the_index_of_failures(alice):
    with CaptureQueriesContext(connection) as queries:
        read_causes(alice.workspace, event=EventKind.BOUNCED, start=NOON, end=NOON)
    assert len([one for one in queries if "emails_event" in one["sql"]]) == 1
    values = {"workspace": UUID(int=0), "start": NOON, "end": NOON, "stream": None, "limit": 10}
    prefer_indexes()
    plan = plan_of(NEWEST.format(kind="bounced"), values)
    assert "Index Scan Backward using event_failure" in plan


def test_causes_are_erased_with_the_emails_of_a_person(api):
    bounce(api, "ada@acme.example", GONE)
    assert get_causes(api)["recipients"] == 1
    erase_person("ada@acme.example")
    assert get_causes(api)["recipients"] == 0


def test_every_reason_has_advice():
    assert BY_REASON.keys() == EXPLANATIONS.keys()


@each("advice", sorted({*BY_REASON.values(), *BY_RECEIVER.values()}, key=lambda one: one.code))
def test_advice_is_a_sentence_and_links_to_a_section_of_the_documentation(advice: Advice):
    assert re.fullmatch(r"[A-Z][^.]+\.", advice.text.replace("Outlook.com", "Outlook"))
    name, anchor = advice.page.split("#")
    page = documentation_page(name)
    assert page is not None
    assert anchor in {heading.anchor for heading in page.headings}
