"""`client.inbound` of the Python library: simulated emails, routes and blocks."""

import re
from uuid import uuid4

import httpx
import postrider_client
import pytest

from tests.clients.messages import count_receiving_webhooks, received_message
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


@pytest.fixture
def label():
    """A label of the shared address that no other test uses."""
    return uuid4().hex[:12]


@pytest.fixture
def address(client, label):
    local, _, domain = client.inbound.get().address.partition("@")
    return f"{local}+{label}@{domain}"


@pytest.fixture
def route(client, label):
    route = client.inbound.routes.create(name="Test", domain="shared", match=f"*+{label}")
    yield route
    client.inbound.routes.delete(route.id)


def processed(client, received_id):
    """Return a received email once it has been read."""

    def read():
        email = client.inbound.emails.get(received_id)
        return email if email.status != "stored" else None

    return wait_for(read, seconds=30, what="the reading")


def test_the_settings_name_the_address_and_the_limits(client):
    settings = client.inbound.get()
    assert re.fullmatch(r"[a-z]{12}@in\.demo\.example", settings.address)
    assert settings.max_message_bytes == 25 * 1024 * 1024
    assert settings.messages.limit == 10_000
    assert settings.storage.used >= 0


def test_a_simulated_email_is_read_found_and_deleted(client, test_client, address, label, route):
    subject = f"Order {uuid4().hex}"
    stored = test_client.inbound.emails.simulate(
        recipient=address, envelope_from="ada@example.com", raw=received_message(subject=subject, to=address)
    )
    assert (stored.status, stored.test, stored.route_id, stored.tag) == ("stored", True, route.id, label)
    email = processed(test_client, stored.id)
    assert (email.status, email.subject, email.recipient) == ("processed", subject, address)
    assert (email.from_.email, email.from_.name, email.to[0].email) == ("ada@example.com", "Ada", address)
    assert (email.text.strip(), email.automatic, email.authentication.result) == ("Where is my order?", "no", "none")
    assert ["Subject", subject] in email.headers
    (found,) = client.inbound.emails.list(subject=subject, from_="ADA@", status="processed", test=True)
    assert (found.id, found.received_at) == (email.id, email.received_at)
    assert list(client.inbound.emails.list(subject=subject, test=False)) == []
    (attachment,) = email.attachments
    assert (attachment.filename, attachment.content_type, attachment.size) == ("a.txt", "text/plain", 5)
    assert client.inbound.emails.attachment(email.id, attachment.id) == b"hello"
    assert client.inbound.emails.raw(email.id).endswith(received_message(subject=subject, to=address).encode())
    assert httpx.get(attachment.url).content == b"hello"
    assert b"Authentication-Results: " in httpx.get(email.source.url).content
    assert client.inbound.emails.redeliver(email.id).deliveries == count_receiving_webhooks(client)
    with pytest.raises(postrider_client.NotUnreadable):
        client.inbound.emails.reread(email.id)
    assert client.inbound.emails.delete(email.id).deleted
    with pytest.raises(postrider_client.NotFound):
        client.inbound.emails.get(email.id)


def test_a_blocked_email_is_released_once(client, test_client, address, route):
    client.inbound.routes.update(route.id, require_authenticated=True)
    stored = test_client.inbound.emails.simulate(recipient=address, raw=received_message(to=address).encode())
    email = processed(client, stored.id)
    assert (email.status, email.blocked_reason) == ("blocked", "not_authenticated")
    with pytest.raises(postrider_client.NotPublished):
        client.inbound.emails.redeliver(email.id)
    assert client.inbound.emails.bypass(email.id).status == "processed"
    with pytest.raises(postrider_client.NotBlocked):
        client.inbound.emails.bypass(email.id)


def test_an_email_that_a_program_sent_is_not_forwarded(client, test_client, address, route):
    # Without a sender in the envelope it is a delivery report.
    stored = test_client.inbound.emails.simulate(recipient=address, raw=received_message(to=address).encode())
    processed(client, stored.id)
    with pytest.raises(postrider_client.NotForwarded) as caught:
        client.inbound.emails.forward(stored.id, to="grace@example.org")
    assert caught.value.problem["reason"] == "null_sender"


def test_files_of_sent_emails_are_downloaded(client):
    attachment = postrider_client.Attachment("a.txt", b"hello")
    sent = client.emails.send(
        from_="hello@demo.example", to="ada@example.com", subject="Hi", text="Hi", attachments=[attachment]
    )
    (file,) = client.emails.attachments(sent.id)
    assert (file.filename, file.size, file.content_id) == ("a.txt", 5, None)
    assert client.emails.attachment(sent.id, file.id) == httpx.get(file.url).content == b"hello"


def test_a_simulation_needs_a_test_key_and_a_recipient(client, test_client, address, route):
    with pytest.raises(postrider_client.TestKeyRequired):
        client.inbound.emails.simulate(recipient=address, raw=received_message())
    with pytest.raises(postrider_client.RecipientRefused) as caught:
        test_client.inbound.emails.simulate(recipient="nobody@in.demo.example", raw=received_message())
    assert caught.value.reply.startswith("550 5.1.1")


def test_an_answer_is_matched_and_answered(client, test_client):
    sent = test_client.emails.send(
        from_="hello@demo.example", to="ada@example.com", subject="Your order", text="Thank you!", reply_tracking=True
    )
    (recipient,) = test_client.emails.get(sent.id).recipients
    stored = test_client.inbound.emails.simulate(
        recipient=recipient.reply_address,
        envelope_from="ada@example.com",
        raw=received_message(subject="Re: Your order"),
    )
    email = processed(test_client, stored.id)
    answered = email.reply_to_email
    assert (answered.email_id, answered.recipient, answered.matched_by) == (sent.id, "ada@example.com", "address")
    # Nothing proves that Ada wrote it.
    assert (answered.from_recipient, answered.deleted) == (False, None)
    assert [one.id for one in client.inbound.emails.list(email_id=sent.id)] == [email.id]
    (replied,) = [one for one in client.emails.events(sent.id) if one.event_type == "replied"]
    assert (replied.payload["to"], replied.payload["inboundId"]) == ("ada@example.com", email.id)
    answer = test_client.emails.send(from_="hello@demo.example", in_reply_to_id=email.id, text="On its way.")
    answered = test_client.emails.get(answer.id)
    assert (answered.to, answered.subject) == ("ada@example.com", "Re: Your order")
    assert answered.headers["In-Reply-To"] == email.message_id
    assert test_client.emails.get(answer.id).recipients[0].reply_address is None
    with pytest.raises(postrider_client.ReceivedEmailNotFound):
        client.emails.send(from_="hello@demo.example", in_reply_to_id="inb_0Uf7m2kQ9VxHc3NwZrTb4L", text="Hi")


def test_routes_are_created_matched_changed_and_listed_in_order(client, address, label, route):
    first = client.inbound.routes.create(
        name="First", domain="shared", match=f"*+{label}", priority=1, action="reject", store_days=3, spam_above=7.5
    )
    assert (first.store_days, first.spam_above, first.active) == (3, 7.5, True)
    ids = [one.id for one in client.inbound.routes.list(domain="shared", limit=1)]
    assert ids.index(first.id) < ids.index(route.id)
    match = client.inbound.routes.match(address)
    assert (match.route.id, match.reply[:3]) == (first.id, "550")
    changed = client.inbound.routes.update(first.id, active=False, store_days=None)
    assert (changed.active, changed.store_days) == (False, None)
    assert client.inbound.routes.get(first.id) == changed
    assert client.inbound.routes.match(address).route.id == route.id
    assert client.inbound.routes.delete(first.id).deleted


def test_senders_are_blocked_and_unblocked(client):
    sender = f"{uuid4().hex}.example"
    block = client.inbound.blocks.create(sender)
    assert client.inbound.blocks.create(sender.upper()) == block
    assert block.id in [one.id for one in client.inbound.blocks.list(limit=2)]
    unblocked = client.inbound.blocks.delete(block.id)
    assert (unblocked.sender, unblocked.deleted) == (sender, True)


def test_a_domain_receives_and_has_a_record(client):
    domain = client.domains.create(f"r{uuid4().hex[:12]}.example")
    assert (domain.receiving.enabled, domain.receiving.status) == (False, "disabled")
    receiving = client.domains.update(domain.id, receiving=True)
    assert (receiving.receiving.enabled, receiving.receiving.status) == (True, "pending")
    assert "mx.demo.example" in {record.value for record in receiving.records if record.type == "MX"}
    client.domains.delete(domain.id)
