"""From a stored message to its event and webhook: states, blocks, poison, deletion and retention."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from config.logs import JsonFormatter
from core.lib.ids import to_uuid
from core.lib.worker.leases import LEASE_SECONDS
from emails.models import Recipient
from events.models import Event
from receiving.arrival.routing import decide_recipient
from receiving.arrival.storing import Arrival, store_message
from receiving.deletion import delete_delivered_emails, delete_expired_emails
from receiving.models import Message, ReceivedContent, ReceivedEmail, ReceivingUsage
from receiving.received_work import ReceivedQueueWork
from receiving.unread.queue import ALONE_LEASES, MAX_ATTEMPTS, MAX_READINGS
from tests.conftest import Api, make_key
from tests.core.lib.worker.outages import blocked_connections, open_connection
from tests.emails.builders import send
from tests.erasing import erase_person
from tests.events.feed import publish_committed
from tests.receiving.builders import PLAIN, arrive, make_route, process_received, receive, with_field
from tests.rows import each
from tests.stack.stack import wait_for
from webhooks.models import Webhook, WebhookDelivery, WebhookEvent
from webhooks.sending.queue import discard_pending

pytestmark = pytest.mark.django_db


def test_a_message_is_read_and_shown(key, route):
    stored = arrive()
    before = key.get(f"/inbound/emails/{stored.id}").json()
    assert (before["status"], before["subject"], before["authentication"]) == ("stored", "", None)
    process_received()
    email = key.get(f"/inbound/emails/{stored.id}").json()
    url = email.pop("raw")["url"]
    assert email == {
        "forwards": [],
        "id": stored.id,
        "status": "processed",
        "routeId": route.id,
        "recipient": "support@alice.example",
        "tag": "",
        "envelopeFrom": "ada@example.com",
        "from": {"email": "ada@example.com", "name": "Ada Lovelace"},
        "to": [{"email": "support@alice.example", "name": "Support"}],
        "cc": [],
        "replyTo": [],
        "subject": "Where is my order?",
        "date": "2026-11-20T09:12:29.000Z",
        "messageId": "<one@example.com>",
        "inReplyTo": None,
        "references": [],
        "attachments": [],
        "replyToEmail": None,
        "authentication": {
            "result": "none",
            "spf": {"result": "none", "domain": "example.com"},
            "dkim": [],
            "dmarc": {"result": "none", "policy": None, "domain": "example.com"},
            "arc": {"result": "none"},
        },
        "spam": None,
        "automatic": "no",
        "blockedReason": None,
        "parseErrors": [],
        "remote": {"ip": "192.0.2.7", "helo": "mx.example.com", "tls": None},
        "size": len(PLAIN),
        "receivedAt": email["receivedAt"],
        "expiresAt": email["expiresAt"],
        "test": False,
        "text": "Hello,\nwhere is my order?\n",
        "textGenerated": False,
        "replyText": "Hello,\nwhere is my order?",
        "html": "",
        "truncated": [],
        "headers": email["headers"],
    }
    assert email["headers"][2] == ["Subject", "Where is my order?"]
    assert url.startswith("http://127.0.0.1:8000/inbound/")
    (item,) = key.get("/inbound/emails").json()["data"]
    assert item == {name: value for name, value in email.items() if name in item}
    whole = {"text", "textGenerated", "replyText", "html", "truncated", "headers", "forwards"}
    assert email.keys() - item.keys() == whole


def test_the_list_is_filtered(key, route, alice):
    mine = receive(to="support+4711@alice.example")
    other = receive(
        PLAIN.replace(b"Ada Lovelace <ada@", b"<grace@").replace(b"order", b"parcel"), to="help@alice.example"
    )

    def listed(**query: str) -> set[str]:
        return {item["id"] for item in key.get("/inbound/emails", query).json()["data"]}

    assert listed() == {mine.id, other.id}
    assert listed(tag="4711") == listed(recipient="SUPPORT") == listed(subject="Order") == {mine.id}
    assert listed(**{"from": "grace"}) == {other.id}
    assert listed(status="processed", routeId=route.id) == {mine.id, other.id}
    assert listed(status="blocked") == listed(routeId="nonsense") == listed(test="true") == set()
    assert listed(test="false", after="2020-01-01") == {mine.id, other.id}
    assert listed(before="2020-01-01") == listed(emailId="0" * 22) == set()
    assert key.get("/inbound/emails", {"status": "lost"}).status_code == 422


@each("subject", ["Grüße aus der Straße", "Λόγος", "İstanbul"])
def test_the_list_finds_any_subject(key, route, subject):
    email = receive(PLAIN.replace(b"Where is my order?", subject.encode()))
    for text in (subject, subject[1:], subject[:-1]):
        assert [item["id"] for item in key.get("/inbound/emails", {"subject": text}).json()["data"]] == [email.id]


def test_the_event_reaches_feed_and_webhooks_with_all_content(key, route, webhook):
    email = receive()
    publish_committed()
    (entry,) = key.get("/events", {"types": "received"}).json()["data"]
    wanted = "email.received", email.id, "Where is my order?"
    assert (entry["type"], entry["data"]["id"], entry["data"]["subject"]) == wanted
    assert "text" not in entry["data"]
    delivery = WebhookDelivery.objects.select_related("event").get()
    body = key.get(f"/webhooks/{webhook}/deliveries/{delivery.id}").json()["body"]
    assert '"text":"Hello,\\nwhere is my order?\\n"' in body
    assert body == delivery.event.body
    expires = email.received_at + timedelta(days=7)
    assert f'"urlExpiresAt":"{expires:%Y-%m-%dT%H:%M:%S}' in body


@pytest.mark.parametrize(("character", "size", "expected"), [("a", 200_000, 200_000), ("\x1b", 200_000, 65_536)])
def test_a_body_of_webhooks_is_bounded_as_it_is_written(key, route, webhook, character, size, expected):
    """Each of these control characters takes six bytes in JSON, in the text and in that of the reply."""
    text = "\n".join([character * 100] * (size // 101 + 1))[:size]
    receive(b"From: ada@example.com\nSubject: Long\n\n" + text.encode())
    publish_committed()
    body = WebhookEvent.objects.get().body
    data = json.loads(body)["data"]
    assert len(data["text"]) == expected
    assert data["truncated"] == (["text"] if expected < size else [])
    assert len(body.encode()) < 1024 * 1024


LIMIT = 256 * 1024


@each(("text", "html", "headers", "truncated"), [
    # Bytes of UTF-8, not escaped ones.
    ("ü" * (LIMIT // 2), "ü" * (LIMIT // 2), 60, []), ("ü" * (LIMIT // 2) + "x", "x", 60, ["text"]),
    ("x", "x" * (LIMIT + 1), 75, ["headers", "html"]),
])  # fmt: skip
def test_the_event_has_texts_within_the_bounds_of_a_webhook(key, route, webhook, text, html, headers, truncated):
    fields = f"X-Long: {'x' * 900}\r\n" * headers + 'Content-Type: multipart/alternative; boundary="b"'
    parts = "".join(
        f"--b\r\nContent-Type: text/{kind}; charset=utf-8\r\n\r\n{body}\r\n"
        for kind, body in (("plain", text), ("html", html))
    )
    receive(with_field(fields, PLAIN.partition(b"\r\n\r\n")[0] + f"\r\n\r\n{parts}--b--\r\n".encode()))
    publish_committed()
    data = json.loads(WebhookDelivery.objects.select_related("event").get().event.body)["data"]
    assert data["truncated"] == truncated
    assert (data["text"], data["html"]) == (text[: LIMIT // 2] if len(text) > 1 else text, html[:LIMIT])


def test_a_route_chooses_its_webhooks(key, alice, receiving, webhook):
    named = key.post("/webhooks", {"url": "http://127.0.0.1:9/named", "events": ["bounced"]}).json()["id"]
    make_route(alice.workspace, webhook_ids=[named])
    receive()
    publish_committed()
    assert [delivery.webhook_id for delivery in WebhookDelivery.objects.all()] == [named]
    assert Webhook.objects.count() == 2


def test_redeliver_posts_the_same_bytes_again(key, route, webhook):
    email = receive()
    publish_committed()
    delivery = WebhookDelivery.objects.get()
    discard_pending(webhook)
    body = WebhookEvent.objects.get().body
    assert key.post(f"/inbound/emails/{email.id}/redeliver").json() == {"id": email.id, "deliveries": 1}
    delivery.refresh_from_db()
    assert (delivery.status, WebhookEvent.objects.get().body) == ("pending", body)
    other = key.post("/webhooks", {"url": "http://127.0.0.1:9/other", "events": ["received"]}).json()["id"]
    again = key.post(f"/inbound/emails/{email.id}/redeliver", {"webhookIds": [other]})
    assert (again.status_code, again.json()["deliveries"]) == (202, 1)
    assert WebhookDelivery.objects.get(webhook=other).event_id == email.event_id
    unknown = key.post(f"/inbound/emails/{email.id}/redeliver", {"webhookIds": ["wh_x"]})
    assert unknown.json()["errors"][0]["field"] == "webhookIds[0]"


def test_redeliver_reaches_endpoints_that_are_newer_than_the_email(key, route):
    email = receive()
    publish_committed()
    path = f"/inbound/emails/{email.id}/redeliver"
    key.post("/webhooks", {"url": "http://127.0.0.1:9/other", "events": ["bounced"]})
    assert key.post(path).json()["deliveries"] == 0
    first = key.post("/webhooks", {"url": "http://127.0.0.1:9/first", "events": ["received"]}).json()["id"]
    assert key.post(path).json()["deliveries"] == 1
    # Then only those that got it.
    key.post("/webhooks", {"url": "http://127.0.0.1:9/second", "events": ["received"]})
    assert key.post(path).json()["deliveries"] == 1
    assert [delivery.webhook_id for delivery in WebhookDelivery.objects.all()] == [first]


@pytest.mark.django_db(transaction=True)
def test_redeliver_locks_all_queue_entries_before_a_delivery(key, route, webhook):
    """A worker that has locked an entry gets its deliveries: in another order, both would wait for each other."""
    key.post("/webhooks", {"url": "http://127.0.0.1:9/other", "events": ["received"]})
    email = receive()
    publish_committed()
    ids = [to_uuid(one, prefix="whd_") for one in WebhookDelivery.objects.values_list("id", flat=True)]
    for entry, delivery in (ids, reversed(ids)):
        with ThreadPoolExecutor(1) as pool, open_connection() as worker:
            worker.execute("SELECT 1 FROM webhooks_pending WHERE delivery_id = %s FOR UPDATE", [entry])
            answer = pool.submit(redeliver_alone, key, email.id)
            wait_for(lambda: blocked_connections() == 1, seconds=60, what="the request waits for the entry")
            worker.execute("SET lock_timeout = '5s'")
            worker.execute("SELECT 1 FROM webhooks_webhookdelivery WHERE id = %s FOR UPDATE", [delivery])
            worker.commit()
            assert answer.result(timeout=60) == 202


def redeliver_alone(key: Api, email_id: str) -> int:
    """Redeliver an email in this thread, whose connection is closed afterwards; return the status."""
    try:
        return int(key.post(f"/inbound/emails/{email_id}/redeliver").status_code)
    finally:
        connection.close()


@each(("rule", "source", "reason"), [
    ({"require_authenticated": True}, PLAIN, "not_authenticated"),
    ({"replies_only": True}, PLAIN, "not_a_reply"),
    ({}, PLAIN.replace(b"<ada@example.com>", b"<Eve@Spam.Example>"), "sender_blocked"),
    ({}, PLAIN.replace(b"From: Ada", b"From: ok@fine.example, eve@spam.example, Ada"), "sender_blocked"),
])  # fmt: skip
def test_a_blocked_email_is_kept_back_until_it_is_released(key, alice, receiving, webhook, rule, source, reason):
    make_route(alice.workspace, **rule)
    key.post("/inbound/blocks", {"sender": "spam.example"})
    email = receive(source)
    shown = key.get(f"/inbound/emails/{email.id}").json()
    assert (shown["status"], shown["blockedReason"]) == ("blocked", reason)
    publish_committed()
    assert not WebhookDelivery.objects.exists()
    released = key.post(f"/inbound/emails/{email.id}/bypass")
    assert (released.status_code, released.json()["status"]) == (200, "processed")
    publish_committed()
    assert WebhookDelivery.objects.count() == 1
    assert key.post(f"/inbound/emails/{email.id}/bypass").json()["code"] == "not_blocked"


def test_an_unreadable_message_is_published_with_its_header(key, route, webhook, monkeypatch):
    monkeypatch.setattr("receiving.reading.message._parts", lambda *_: 1 / 0)
    email = receive()
    shown = key.get(f"/inbound/emails/{email.id}").json()
    assert (shown["status"], shown["subject"], shown["text"]) == ("unreadable", "Where is my order?", "")
    assert shown["parseErrors"] == ["The message could not be read"]
    publish_committed()
    assert WebhookDelivery.objects.count() == 1


def crash_worker() -> timedelta:
    """Claim the only message by a worker that dies; return the time to the next claim, and let it pass."""
    assert len(ReceivedQueueWork().claim(16).jobs) == 1
    assert not ReceivedQueueWork().claim(16).jobs
    wait = Message.objects.get().due_at - timezone.now()
    Message.objects.update(due_at=F("received_at"))
    return wait


def test_a_message_that_crashes_its_worker_alone_is_claimed_after_growing_pauses(key, route):
    arrive()
    leases = [crash_worker().total_seconds() / LEASE_SECONDS for _ in range(MAX_READINGS)]
    assert [*map(round, leases)] == [1, 1, 2, 8, 32, 128, 1]


def test_a_storm_of_ten_minutes_with_short_leases_gives_up_no_message():
    shortest_lease_seconds = 4
    assert sum(ALONE_LEASES[:-1]) * shortest_lease_seconds > 600


def test_a_message_that_crashes_its_worker_even_when_its_header_is_read_is_published_without_it(key, route, caplog):
    email = arrive()
    for _ in range(MAX_ATTEMPTS):
        crash_worker()
    process_received()
    email.refresh_from_db()
    assert email.status == "unreadable"
    assert Event.objects.filter(kind="received").count() == 1
    (line,) = [json.loads(JsonFormatter().format(one)) for one in caplog.records if one.levelname == "ERROR"]
    assert (line["message"], line["key"]) == (
        "a message could not be read",
        str(to_uuid(email.message_id, prefix="msg_")),
    )


def test_a_message_that_is_given_up_is_published_with_its_header(key, route, webhook, caplog):
    email = arrive()
    Message.objects.update(attempts=MAX_READINGS)
    process_received()
    shown = key.get(f"/inbound/emails/{email.id}").json()
    assert (shown["status"], shown["subject"], shown["text"]) == ("unreadable", "Where is my order?", "")
    assert (shown["from"]["email"], shown["messageId"]) == ("ada@example.com", "<one@example.com>")
    assert shown["date"] == "2026-11-20T09:12:29.000Z"
    assert (shown["authentication"], shown["spam"]) == (None, None)
    assert shown["parseErrors"] == ["The message could not be read"]
    assert Message.objects.get().is_unread
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == ["a message could not be read"]
    publish_committed()
    assert WebhookDelivery.objects.count() == 1


@each("attempts", [MAX_READINGS, MAX_ATTEMPTS])
@each(("rule", "statuses"), [
    # With its header, it is known to be no reply.
    ({"replies_only": True}, {MAX_READINGS: "blocked", MAX_ATTEMPTS: "unreadable"}),
    ({"require_authenticated": True}, {MAX_READINGS: "unreadable", MAX_ATTEMPTS: "unreadable"}),
    ({"spam_above": 0.0}, {MAX_READINGS: "unreadable", MAX_ATTEMPTS: "unreadable"}),
    ({}, {MAX_READINGS: "blocked", MAX_ATTEMPTS: "unreadable"}),
])  # fmt: skip
def test_a_rule_about_what_was_not_read_keeps_nothing_back(key, alice, receiving, rule, statuses, attempts):
    make_route(alice.workspace, **rule)
    if not rule:
        key.post("/inbound/blocks", {"sender": "ada@example.com"})
    email = arrive(envelope_from="other@example.com")
    Message.objects.update(attempts=attempts)
    process_received()
    email.refresh_from_db()
    assert email.status == statuses[attempts]


def test_a_reply_that_is_given_up_is_published_by_a_route_of_replies(key, alice, receiving):
    make_route(alice.workspace, replies_only=True)
    sent_id = send(key)
    email = arrive(with_field(f"In-Reply-To: <{Recipient.objects.get().id}@alice.example>"))
    Message.objects.update(attempts=MAX_READINGS)
    process_received()
    email.refresh_from_db()
    assert (email.status, email.reply_email_id) == ("unreadable", sent_id)


def test_a_message_is_published_once_by_two_workers(key, route):
    email = arrive()
    first, second = ReceivedQueueWork(), ReceivedQueueWork()
    (job,) = first.claim(16).jobs
    Message.objects.update(due_at=F("received_at"))
    (again,) = second.claim(16).jobs
    for work, claimed in ((first, job), (second, again), (second, again)):
        work.record([work.crash_result(claimed, ValueError())])
    email.refresh_from_db()
    assert (email.status, Event.objects.filter(kind="received").count()) == ("unreadable", 1)


def test_deletion_removes_everything_and_frees_the_storage(key, route, webhook):
    email = receive()
    publish_committed()
    assert ReceivingUsage.objects.get().stored_bytes == len(PLAIN)
    assert key.delete(f"/inbound/emails/{email.id}").json() == {"id": email.id, "deleted": True}
    for model in (ReceivedEmail, Message, ReceivedContent, WebhookDelivery, WebhookEvent):
        assert not model.objects.exists()
    assert ReceivingUsage.objects.get().stored_bytes == 0
    (entry,) = key.get("/events", {"types": "received"}).json()["data"]
    assert entry["data"] == {"id": email.id}


def test_shared_content_is_deleted_with_the_last_of_its_emails(key, alice, receiving):
    make_route(alice.workspace)
    recipients = [decide_recipient(f"{name}@alice.example", sender="").recipient for name in ("a", "b")]
    store_message(Arrival(PLAIN, envelope_from=""), recipients)
    first, second = ReceivedEmail.objects.order_by("id")
    assert first.message_id == second.message_id
    key.delete(f"/inbound/emails/{first.id}")
    assert (Message.objects.count(), ReceivedContent.objects.count()) == (1, 1)
    key.delete(f"/inbound/emails/{second.id}")
    assert (Message.objects.count(), ReceivedContent.objects.count()) == (0, 0)


def test_retention_deletes_expired_emails_and_keeps_the_log(key, alice, receiving, webhook):
    make_route(alice.workspace, store_days=1)
    old, new = receive(), receive(with_field("X-Other: 1"))
    assert new.expires_at == new.received_at + timedelta(days=1)
    publish_committed()
    ReceivedEmail.objects.filter(id=old.id).update(expires_at=F("received_at") - timedelta(days=1))
    list(delete_expired_emails(alice.workspace.id, timedelta(days=365)))
    assert [email.id for email in ReceivedEmail.objects.all()] == [new.id]
    assert WebhookDelivery.objects.count() == 2
    body = WebhookEvent.objects.get(id=old.event_id).body
    assert f'"data": {{"id": "{old.id}", "deleted": true}}' in body
    assert ReceivingUsage.objects.get().stored_bytes == new.size


def test_store_days_zero_deletes_after_the_deliveries(key, alice, receiving, webhook):
    make_route(alice.workspace, store_days=0)
    receive()
    list(delete_delivered_emails())
    assert ReceivedEmail.objects.exists()  # not published yet
    publish_committed()
    list(delete_delivered_emails())
    assert ReceivedEmail.objects.exists()  # being delivered
    discard_pending(webhook)
    list(delete_delivered_emails())
    assert not ReceivedEmail.objects.exists()


@each("address", ["ADA@example.com", "support@alice.example", "cc@example.com"])
def test_erasure_finds_every_place_of_an_address(key, route, webhook, address):
    receive(with_field("Cc: Someone <cc@example.com>"))
    other = receive(PLAIN.replace(b"ada@", b"bada@"), "other@alice.example", envelope_from="bada@example.com")
    publish_committed()
    count = erase_person(address)["receivedEmails"]
    kept = {email.id for email in ReceivedEmail.objects.all()}
    # Both were sent to support@, as their field To says.
    assert (count, kept) == ((2, set()) if address.startswith("support") else (1, {other.id}))
    assert WebhookEvent.objects.count() == Event.objects.filter(kind="received").count() == len(kept)


def test_a_sending_key_sees_nothing_and_a_test_key_only_simulated_emails(key, test_key, route, alice):
    receive()
    simulated = test_key.post("/inbound/emails", {"recipient": "support@alice.example", "raw": PLAIN.decode()})
    assert (simulated.status_code, simulated.json()["status"], simulated.json()["test"]) == (202, "stored", True)
    process_received()
    assert [item["id"] for item in test_key.get("/inbound/emails").json()["data"]] == [simulated.json()["id"]]
    sending = Api(make_key(alice.workspace, "sending_access"))
    assert sending.get("/inbound/emails").json()["data"] == []
    assert sending.get(f"/inbound/emails/{simulated.json()['id']}").status_code == 404
    assert (
        test_key.post("/inbound/emails", {"recipient": "a@b.example", "raw": "x"}).json()["code"] == "recipient_refused"
    )


def test_the_statements_of_a_list_do_not_grow_with_it(key, route, django_assert_max_num_queries):
    for number in range(3):
        receive(with_field(f"X-Number: {number}"))
    connection.queries_log.clear()
    with django_assert_max_num_queries(8):
        assert key.get("/inbound/emails").json()["total"] == 3
