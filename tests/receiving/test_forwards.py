"""Forwards: to addresses that have confirmed, as new emails, and never in a loop."""

import asyncio
import email as parser
import email.policy
import re

import pytest
from django.core.management import call_command
from django.db import OperationalError
from django.db.models import Count
from django.test import Client
from django.utils import timezone

from console.system_mail.models import SystemMail
from core.delivery.recipients import read_recipients
from core.lib.sql import is_conflict, run
from core.lib.worker import processor, wakeup
from core.lib.worker.leases import Lease
from core.lib.worker.processor import QueueProcessor
from core.workspaces.api import authentication
from core.workspaces.models import AuditEntry
from core.workspaces.recipients.rules import read_rules
from core.workspaces.services import change_rules
from emails.models import Email
from events.models import Event
from interfaces.inbound.inbox.models import CaughtMail
from receiving.arrival.routing import decide_recipient
from receiving.arrival.storing import Arrival, store_message
from receiving.deletion import delete_delivered_emails
from receiving.forwarding import forwards, targets
from receiving.models import Forward, ForwardTarget, InboundRoute, Message, ReceivedEmail
from receiving.received_work import ReceivedQueueWork
from receiving.services import bypass_block, delete_email, delete_route
from receiving.states import ReceivedStatus
from tests.conftest import Api, code_of, make_domain, make_key
from tests.core.lib.worker.outages import full_disk, open_connection
from tests.emails.api.test_attachments import messages_by_address
from tests.emails.builders import claim_entries
from tests.erasing import erase_person
from tests.events.feed import publish_committed
from tests.receiving.builders import PLAIN, arrive, make_route, process_received, receive, receive_for, with_field
from tests.receiving.test_webhook_formats import SOURCE
from tests.rows import each
from tests.sending_process import relay_to_mail_host, send_everything
from tests.threads import run_concurrently

pytestmark = pytest.mark.django_db

TARGET = "grace@example.org"
ROUTE = {"name": "Support", "match": "support*", "domain": "alice.example"}
LINK = re.compile(r"http://\S+(/inbound/forward/\S+)")


@pytest.fixture
def confirmed(alice) -> ForwardTarget:
    return ForwardTarget.objects.create(workspace=alice.workspace, address=TARGET, confirmed_at=timezone.now())


@pytest.fixture
def route(alice, receiving, confirmed) -> InboundRoute:
    return make_route(alice.workspace, name="Support", match="support*", forward_to=[TARGET])


def link_of(address: str) -> str:
    found = LINK.search(SystemMail.objects.get(recipient=address).text)
    assert found
    return found[1]


def test_an_address_confirms_by_a_link_before_a_route_forwards_to_it(key, alice):
    refused = key.post("/inbound/routes", {**ROUTE, "forwardTo": [TARGET]})
    (error,) = refused.json()["errors"]
    assert (refused.status_code, error["field"], error["code"]) == (422, "forwardTo[0]", "forward_not_confirmed")
    assert not InboundRoute.objects.exists()
    path, browser = link_of(TARGET), Client()
    page = browser.get(path)
    assert (page.status_code, b"Confirm" in page.content) == (200, True)
    assert "default-src 'none'" in page["Content-Security-Policy"]
    # Programs that open links confirm nothing.
    assert key.post("/inbound/routes", {**ROUTE, "forwardTo": [TARGET]}).status_code == 422
    # Within ten minutes, no second link; none that a key of the workspace could read.
    assert (SystemMail.objects.count(), Email.objects.count()) == (1, 0)
    assert b"confirmed" in browser.post(path).content
    created = key.post("/inbound/routes", {**ROUTE, "forwardTo": [TARGET]})
    assert (created.status_code, created.json()["forwardTo"]) == (201, [TARGET])
    assert {"forward_confirmed", "route_created"} <= {*AuditEntry.objects.values_list("act", flat=True)}
    # The same link ends it.
    assert browser.post(path, {"stop": "1"}).status_code == 200
    receive()
    assert not Forward.objects.exists()
    assert browser.get(path).status_code == 404


def test_the_page_of_a_link_has_the_language_of_its_reader(alice, receiving):
    target = ForwardTarget.objects.create(workspace=alice.workspace, address="ada@example.org")
    path = targets.target_url(target).partition(":8000")[2]
    for accepted, language, title in (
        ("de-DE,de;q=0.9,en;q=0.5", "de", "E-Mails an Sie weiterleiten?"),
        ("tlh", "en", "Forward email to you?"),
    ):
        page = Client().get(path, headers={"Accept-Language": accepted})
        assert page.status_code == 200
        assert "Accept-Language" in page.headers["Vary"]
        assert f'<html lang="{language}' in page.content.decode()
        assert title in page.content.decode()
    missing = Client().get("/inbound/forward/x", headers={"Accept-Language": "de"})
    assert missing.status_code == 404
    assert "Dieser Link ist nicht gültig" in missing.content.decode()


def test_a_link_is_that_of_one_target(alice, receiving, confirmed):
    url = targets.target_url(confirmed).partition(":8000")[2]
    assert Client().get(url).status_code == 200
    for place in (25, -5):
        changed = url[:place] + ("A" if url[place] != "A" else "B") + url[place + 1 :]
        assert Client().post(changed).status_code == 404


def test_an_old_link_confirms_nothing_but_ends_the_forwarding(confirmed):
    ForwardTarget.objects.update(link_sent_at="2020-01-01T00:00:00Z")
    confirmed.refresh_from_db()
    url = targets.target_url(confirmed).partition(":8000")[2]
    ForwardTarget.objects.update(confirmed_at=None)
    assert [Client().get(url).status_code, Client().post(url).status_code] == [404, 404]
    ForwardTarget.objects.update(confirmed_at=timezone.now())
    assert Client().post(url, {"stop": "1"}).status_code == 200
    assert not ForwardTarget.objects.exists()


def test_an_address_gets_three_links_a_day_from_all_workspaces(key, alice, bob, receiving):
    receive_for(make_domain(bob.workspace, "bob.example"))
    for account, domain in ((alice, "alice.example"), (bob, "bob.example")):
        for _ in range(3):
            refused = Api(make_key(account.workspace)).post(
                "/inbound/routes", {**ROUTE, "domain": domain, "forwardTo": [TARGET]}
            )
            assert refused.json()["errors"][0]["code"] == "forward_not_confirmed"
            ForwardTarget.objects.update(link_sent_at=timezone.now() - targets.LINK_INTERVAL)
    assert SystemMail.objects.count() == 3


def test_targets_are_bounded(key, alice, receiving):
    for index in range(targets.MAX_UNCONFIRMED):
        ForwardTarget.objects.create(workspace=alice.workspace, address=f"t{index}@example.org")
    full = key.post("/inbound/routes", {**ROUTE, "forwardTo": [TARGET]})
    assert (full.json()["code"], full.json()["limit"]) == ("plan_limit_reached", targets.MAX_UNCONFIRMED)
    six = [f"t{index}@example.org" for index in range(6)]
    assert key.post("/inbound/routes", {**ROUTE, "forwardTo": six}).json()["errors"][0]["field"] == "forwardTo"
    assert key.post("/inbound/routes", {**ROUTE, "forwardTo": ["a b"]}).json()["errors"][0]["code"] == "invalid_email"


def test_a_route_cannot_forward_to_this_service_or_from_the_shared_address(key, confirmed, settings):
    def code(**fields) -> str:
        return key.post("/inbound/routes", {**ROUTE, **fields}).json()["errors"][0]["code"]

    assert code(forwardTo=["x@alice.example"]) == code(forwardTo=["x@in.demo.example"]) == "forward_to_receiving_domain"
    assert code(forwardTo=[TARGET], domain="shared") == "forward_needs_domain"
    created = key.post("/inbound/routes", {**ROUTE, "forwardTo": [TARGET]}).json()
    moved = key.patch(f"/inbound/routes/{created['id']}", {"domain": "shared"})
    assert moved.json()["errors"][0]["code"] == "forward_needs_domain"
    assert key.patch(f"/inbound/routes/{created['id']}", {"forwardTo": []}).json()["forwardTo"] == []


def test_while_sending_is_paused_email_is_received_and_its_forward_waits(key, route):
    """As docs/backup.md says of a restored database."""
    call_command("hold")
    received = receive(SOURCE, "support+4711@alice.example")
    assert received.status == ReceivedStatus.PROCESSED
    assert Event.objects.filter(kind="received").count() == 1
    assert Forward.objects.get().error == ""
    assert claim_entries() == []
    call_command("release")
    assert len(claim_entries()) == 1


@pytest.mark.django_db(transaction=True)
def test_a_forward_does_not_leave_an_installation_that_captures(route, settings):
    settings.RECIPIENTS = read_recipients("captured")
    receive(SOURCE, "support+4711@alice.example")
    with relay_to_mail_host(settings) as host:
        assert send_everything() == 1
        assert host.connections == 0
    assert [*CaughtMail.objects.values_list("recipient", flat=True)] == [TARGET]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("otherwise", "error", "kept"), [
    ("refuse", "recipient_not_allowed", []), ("capture", "", [TARGET]),
])  # fmt: skip
def test_a_forward_obeys_the_recipient_rules(alice, route, settings, otherwise, error, kept):
    change_rules(alice.workspace, rules=read_rules(allow=["@example.com"], otherwise=otherwise))
    receive(SOURCE, "support+4711@alice.example")
    assert Forward.objects.get().error == error
    with relay_to_mail_host(settings) as host:
        send_everything()
        assert host.connections == 0
    assert [*CaughtMail.objects.values_list("recipient", flat=True)] == kept


@pytest.mark.django_db(transaction=True)
def test_a_forward_that_was_accepted_obeys_later_recipient_rules(alice, route, settings):
    receive(SOURCE, "support+4711@alice.example")
    change_rules(alice.workspace, rules=read_rules(allow=["@example.com"]))
    with relay_to_mail_host(settings) as host:
        send_everything()
        assert host.connections == 0
    assert [*Email.objects.values_list("status", "recipients__reason")] == [("failed", "recipient_not_allowed")]


def test_an_answer_obeys_the_recipient_rules(alice, key, route):
    received = receive(SOURCE, "support+4711@alice.example")
    change_rules(alice.workspace, rules=read_rules(allow=["@example.org"]))
    authentication.cache.clear()
    body = {"from": "hi@alice.example", "inReplyToId": received.id, "text": "Hi"}
    assert code_of(key.post("/emails/send", body)) == (403, "recipient_not_allowed")


def test_a_forward_is_a_new_email_with_the_message_attached(key, route):
    received = receive(SOURCE, "support+4711@alice.example")
    forward = Forward.objects.get()
    assert (forward.error, forward.route_id, forward.address) == ("", route.id, TARGET)
    (shown,) = key.get(f"/inbound/emails/{received.id}").json()["forwards"]
    assert (shown["to"], shown["emailId"], shown["error"]) == (TARGET, forward.sent_email_id, None)
    sent = key.get(f"/emails/{forward.sent_email_id}").json()
    assert sent["from"] == '"Lövelace, Ada via Support" <support@alice.example>'
    assert (sent["to"], sent["replyTo"], sent["subject"]) == (TARGET, "ada+back@example.com", "Fwd: Wo ist 4711?")
    assert sent["metadata"] == {"inboundId": received.id}
    assert [*Email.objects.values_list("track_opens", "track_clicks")] == [(False, False)]
    data = messages_by_address()[TARGET]
    message = parser.message_from_bytes(data, policy=email.policy.default)
    assert message["X-Postrider-Forwarded"] == route.id
    # A message with 8-bit lines is attached as a file (docs/decisions/0173).
    (attached,) = message.iter_attachments()
    assert (attached.get_filename(), attached.get_content_type()) == ("message.eml", "application/octet-stream")
    assert attached.get_content().endswith(SOURCE)
    assert "wo ist" in message.get_body(("plain",)).get_content()


def test_an_ascii_message_is_attached_as_a_message(route):
    receive()
    message = parser.message_from_bytes(messages_by_address()[TARGET], policy=email.policy.default)
    (attached,) = message.iter_attachments()
    assert attached.get_content_type() == "message/rfc822"
    assert attached.get_content()["Message-ID"] == "<one@example.com>"
    assert attached.get_content().get_content().splitlines() == ["Hello,", "where is my order?"]


@each(("subject", "sent", "answer"), [
    ("=?utf-8?q?a=0D=0ABcc:_eve=40evil.example?=", "Fwd: a  Bcc: eve@evil.example", "Re: a  Bcc: eve@evil.example"),
    ("=?utf-8?q?a=00=07=7F=C2=85b=E2=80=A8c?=", "Fwd: a   b c", "Re: a   b c"),
    ("=?utf-8?q?=E2=80=AEa?= \x0bb", "Fwd: a  b", "Re: a  b"),
    ("=?utf-8?q?=0A?=", "Fwd: (no subject)", "Re: "),
    ("=?utf-8?b?8J+RqeKAjfCfkrs=?= x", "Fwd: \U0001f469\u200d\U0001f4bb x", "Re: \U0001f469\u200d\U0001f4bb x"),
])  # fmt: skip
def test_no_subject_ends_its_line_or_the_forward(key, route, subject, sent, answer):
    received = receive(PLAIN.replace(b"Where is my order?", subject.encode()))
    assert [*Forward.objects.values_list("error", flat=True)] == [""]
    assert Email.objects.get().subject == sent
    shown = key.get(f"/inbound/emails/{received.id}").json()
    texts = [shown["subject"], *(value for _, value in shown["headers"])]
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028]", "".join(texts))
    # One that a version before has read.
    ReceivedEmail.objects.update(subject=f"{received.subject}\r\n\x0c")
    body = {"from": "hi@alice.example", "text": "Hello", "inReplyToId": received.id}
    assert key.post("/emails/send", body).status_code == 202
    assert Email.objects.get(subject__startswith="Re").subject == answer
    assert messages_by_address().keys() == {TARGET, "ada@example.com"}


@each(("source", "envelope", "reason"), [
    (PLAIN, {"envelope_from": ""}, "null_sender"),
    (with_field("Auto-Submitted: auto-replied"), {}, "automatic"),
    (with_field("List-Id: <a.example.com>"), {}, "automatic"),
    (with_field("Precedence: bulk"), {}, "automatic"),
    (with_field("x-postrider-FORWARDED: rt_of_another_installation"), {}, "forwarded"),
])  # fmt: skip
def test_what_could_loop_is_never_forwarded(key, route, source, envelope, reason):
    received = receive(source, **envelope)
    assert received.status == "processed"
    assert not Email.objects.exists()
    by_hand = key.post(f"/inbound/emails/{received.id}/forward", {"to": TARGET})
    assert (by_hand.status_code, by_hand.json()["code"], by_hand.json()["reason"]) == (409, "not_forwarded", reason)
    assert not Email.objects.exists()


def test_blocked_and_spam_are_never_forwarded(key, alice, route, monkeypatch):
    key.post("/inbound/blocks", {"sender": "ada@example.com"})
    blocked = receive(envelope_from="other@example.com")
    assert blocked.status == "blocked"
    assert key.post(f"/inbound/emails/{blocked.id}/forward", {"to": TARGET}).json()["reason"] == "not_processed"
    bypass_block(blocked)
    assert not Email.objects.exists()
    Message.objects.update(spam={"score": 20, "threshold": 15, "isSpam": True, "symbols": []})
    assert key.post(f"/inbound/emails/{blocked.id}/forward", {"to": TARGET}).json()["reason"] == "spam"
    Message.objects.update(spam=None)
    assert key.post(f"/inbound/emails/{blocked.id}/forward", {"to": TARGET}).status_code == 202


def test_a_large_message_is_not_forwarded(key, route, monkeypatch):
    monkeypatch.setattr(forwards, "MAX_TOTAL_BYTES", len(PLAIN) - 1)
    received = receive()
    assert key.post(f"/inbound/emails/{received.id}/forward", {"to": TARGET}).json()["reason"] == "too_large"
    assert not Email.objects.exists()


@pytest.mark.parametrize("removed", [[], [b"Auto-Submitted"], [b"X-Postrider-Forwarded"]])
def test_two_installations_that_forward_to_each_other_stop(alice, bob, receiving, removed):
    """alice.example forwards to bob.example, which forwards back; each installation knows only its own domain.

    Each of the two marks stops the loop, also if a host on the way removes the other.
    """
    theirs = make_domain(bob.workspace, "bob.example")
    for account, address in ((alice, "desk@bob.example"), (bob, "support@alice.example")):
        ForwardTarget.objects.create(workspace=account.workspace, address=address, confirmed_at=timezone.now())
    # Before bob.example is received here, it is another installation for alice.example.
    make_route(alice.workspace, match="support", forward_to=["desk@bob.example"])
    receive()
    first_hop = messages_by_address()["desk@bob.example"]
    assert Forward.objects.get().error == ""
    receive_for(theirs)
    receiving.delete()
    make_route(bob.workspace, match="desk", domain="bob.example", forward_to=["support@alice.example"])
    header, blank, body = first_hop.partition(b"\r\n\r\n")
    lines = [line for line in header.split(b"\r\n") if not line.startswith(tuple(removed))]
    second = receive(b"\r\n".join(lines) + blank + body, "desk@bob.example", envelope_from="bounce@mail.alice.example")
    assert second.status == "processed"
    assert len(lines) == len(header.split(b"\r\n")) - len(removed)
    assert Forward.objects.count() == Email.objects.count() == 1


def test_a_target_that_is_received_here_later_is_recorded(alice, bob, route):
    ForwardTarget.objects.update(address="x@bob.example")
    InboundRoute.objects.update(forward_to=["x@bob.example"])
    receive_for(make_domain(bob.workspace, "bob.example"))
    receive()
    assert [*Forward.objects.values_list("address", "error")] == [("x@bob.example", "own_domain")]
    assert not Email.objects.exists()


def test_the_limit_of_a_day_and_failures_are_recorded(alice, route, monkeypatch):
    monkeypatch.setattr(forwards, "DAILY_LIMIT", 1)
    receive()
    receive(PLAIN + b"2")
    assert [*Forward.objects.values_list("error", flat=True)] == ["", "daily_limit"]
    monkeypatch.setattr(forwards, "DAILY_LIMIT", 100)
    alice.workspace.domains.all().delete()
    assert Email.objects.count() == 1


def test_a_suppressed_target_is_recorded_and_the_email_published(key, alice, route):
    key.post("/suppressions", {"email": TARGET})
    received = receive()
    assert received.status == "processed"
    (shown,) = key.get(f"/inbound/emails/{received.id}").json()["forwards"]
    assert (shown["to"], shown["emailId"], shown["error"]) == (TARGET, None, "recipient_suppressed")


def test_a_killed_worker_forwards_once(alice, route):
    """A message is recorded once, and its emails are forwarded in a transaction that ends their queue entries."""
    arrive()
    first = ReceivedQueueWork()
    jobs = first.claim(16).jobs
    assert jobs
    Message.objects.update(due_at="2020-01-01T00:00:00Z")
    process_received()
    assert Email.objects.count() == Forward.objects.count() == 1
    # The worker that lost its lease records nothing.
    first.record([asyncio.run(first.perform(job, Lease(0))) for job in jobs])
    process_received()
    assert Email.objects.count() == Forward.objects.count() == 1


def publish(source: bytes = PLAIN) -> ReceivedEmail:
    """Publish an email that is not forwarded yet."""
    received = arrive(source)
    work = ReceivedQueueWork()
    work.record([asyncio.run(work.perform(job, Lease(0))) for job in work.claim(16).jobs])
    received.refresh_from_db()
    assert (received.status, Forward.objects.filter(email=received).exists()) == ("processed", False)
    return received


@pytest.mark.django_db(transaction=True)
def test_a_conflict_about_the_quota_loses_no_forward(alice, route):
    """The quota of a workspace is locked by each transaction that sends."""
    receive()
    Forward.objects.all().delete()
    received = publish(with_field("X-Other: 1"))
    run("SET lock_timeout = '50ms'")
    with open_connection() as other:
        other.execute("SELECT 1 FROM workspaces_usage FOR UPDATE")
        for _ in range(forwards.MAX_ATTEMPTS + 1):
            with pytest.raises(OperationalError) as refused:
                forwards.forward_due(1)
            assert is_conflict(refused.value)
    run("RESET lock_timeout")
    assert not Forward.objects.exists()
    # It uses no attempt.
    assert [forwards.forward_due(1), forwards.forward_due(1)] == [True, False]
    assert [*Forward.objects.values_list("email", "error")] == [(received.id, "")]


def test_a_full_disk_loses_no_forward(alice, route):
    received = publish()
    with full_disk("emails_attachment"):
        for _ in range(forwards.MAX_ATTEMPTS + 1):
            with pytest.raises(OperationalError, match="No space left"):
                forwards.forward_due(1)
    assert not Forward.objects.exists()
    assert [forwards.forward_due(1), forwards.forward_due(1)] == [True, False]
    assert [*Forward.objects.values_list("email", "error")] == [(received.id, "")]


def test_an_email_that_ends_its_workers_is_forwarded_no_more(key, route):
    for lost, error in ((forwards.MAX_ATTEMPTS - 1, None), (forwards.MAX_ATTEMPTS, "internal_error")):
        received = publish(with_field(f"X-Lost: {lost}"))
        for _ in range(lost):
            assert len(forwards.QUEUE.claim_due(1)) == 1
            assert not forwards.forward_due(1)
            ReceivedEmail.objects.filter(id=received.id).update(forward_due_at="2020-01-01T00:00:00Z")
        process_received()
        (shown,) = key.get(f"/inbound/emails/{received.id}").json()["forwards"]
        assert (shown["emailId"] is None, shown["error"]) == (error is not None, error), lost


def test_what_changes_before_it_is_forwarded_counts(alice, route):
    """A target that refuses, a route that is deleted, and an email that is deleted end a forward that is due."""
    publish()
    ForwardTarget.objects.update(confirmed_at=None)
    process_received()
    ForwardTarget.objects.update(confirmed_at=timezone.now())
    publish(with_field("X-Number: 1"))
    delete_route(route)
    process_received()
    make_route(alice.workspace, forward_to=[TARGET])
    delete_email(publish(with_field("X-Number: 2")))
    process_received()
    assert not Forward.objects.exists()
    assert not ReceivedEmail.objects.exclude(forward_due_at=None).exists()


def test_an_email_that_is_not_kept_is_forwarded_before_its_deletion(alice, route):
    InboundRoute.objects.update(store_days=0)
    received = publish()
    publish_committed()
    list(delete_delivered_emails())
    assert ReceivedEmail.objects.filter(id=received.id, processed_at=None).exists()
    process_received()
    assert Email.objects.count() == 1
    list(delete_delivered_emails())
    assert not ReceivedEmail.objects.exists()


def test_another_error_of_a_forward_is_recorded(alice, route, monkeypatch):
    monkeypatch.setattr(forwards, "_draft", lambda *_: 1 / 0)
    assert receive().status == "processed"
    assert [*Forward.objects.values_list("error", flat=True)] == ["internal_error"]


@pytest.mark.full
@pytest.mark.django_db(transaction=True)
def test_two_workers_forward_all_messages_to_two_workspaces(alice, bob, route, monkeypatch):
    """Each message has recipients in both workspaces, stored in either order: no worker waits for the other in vain."""
    receive_for(make_domain(bob.workspace, "bob.example"))
    ForwardTarget.objects.create(workspace=bob.workspace, address=TARGET, confirmed_at=timezone.now())
    make_route(bob.workspace, domain="bob.example", forward_to=[TARGET])
    for number in range(120):
        addresses = ["support@alice.example", "desk@bob.example"][:: 1 if number % 2 else -1]
        recipients = [decide_recipient(address, sender="").recipient for address in addresses]
        source = with_field(f"X-Number: {number}")
        store_message(Arrival(source, envelope_from="ada@example.com"), recipients)
    monkeypatch.setattr(wakeup, "notify", lambda _: None)
    monkeypatch.setattr(wakeup, "notify_soon", lambda *_, **__: None)
    conflicts = []
    monkeypatch.setattr(processor.log, "warning", lambda *args, **_: conflicts.append(args))
    run_concurrently(lambda _: QueueProcessor(ReceivedQueueWork()).run(), range(2))
    assert [*Forward.objects.values_list("error").annotate(count=Count("id"))] == [("", 240)]
    assert Email.objects.count() == 240
    assert conflicts == []


def test_a_simulated_email_is_forwarded_as_a_test(test_key, route):
    body = {"recipient": "support@alice.example", "envelopeFrom": "ada@example.com", "raw": PLAIN.decode()}
    assert test_key.post("/inbound/emails", body).status_code == 202
    process_received()
    assert Email.objects.get().is_test


@each(("raw", "code"), [(" \r\n", "blank"), ("é" * 2_700_000, "too_long")])
def test_the_size_of_a_simulated_email_is_bounded(test_key, route, raw, code):
    refused = test_key.post("/inbound/emails", {"recipient": "support@alice.example", "raw": raw})
    (error,) = refused.json()["errors"]
    assert (refused.status_code, error["field"], error["code"]) == (422, "raw", code)


def test_an_email_is_forwarded_by_request(key, alice, receiving):
    make_route(alice.workspace)
    received = receive()
    path = f"/inbound/emails/{received.id}/forward"
    refused = key.post(path, {"to": TARGET})
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (422, "forward_not_confirmed")
    Client().post(link_of(TARGET))
    done = key.post(path, {"to": TARGET})
    assert (done.status_code, done.json().keys()) == (202, {"id", "to", "emailId"})
    assert key.get(f"/emails/{done.json()['emailId']}").json()["to"] == TARGET
    assert AuditEntry.objects.filter(act="inbound_forwarded").exists()
    assert key.post(path, {}).status_code == 422


def test_erasing_a_target_ends_the_forwarding(alice, route):
    erase_person(TARGET)
    receive()
    assert not ForwardTarget.objects.exists()
    assert not Forward.objects.exists()


def test_deletion_of_the_received_email_deletes_its_forwards(key, route):
    received = receive()
    assert key.delete(f"/inbound/emails/{received.id}").status_code == 200
    assert not Forward.objects.exists()
    assert Email.objects.count() == 1
    assert not ReceivedEmail.objects.exists()
