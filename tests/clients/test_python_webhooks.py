"""Webhooks in the Python library: requests of the running service are verified by a receiver."""

import pytest
from postrider_client import NotFound, WebhookVerificationError, verify_webhook

from tests.clients.messages import send_email
from tests.clients.receiver import wait_for_request
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


def test_requests_of_the_service_are_verified_before_and_after_the_secret_is_rotated(client, receiver):
    webhook = client.webhooks.create(url=receiver.url, events=["delivered"])
    assert webhook.secret not in repr(webhook)
    email_id = send_email(client)
    headers, body = wait_for_request(receiver, email_id)
    event = client.webhooks.verify(body, headers, webhook.secret)
    assert (event.event, event.data["emailId"]) == ("delivered", email_id)
    assert verify_webhook(body, headers["x-service-signature"], webhook.secret) == event

    newer = client.webhooks.rotate_secret(webhook.id).secret
    headers, body = wait_for_request(receiver, send_email(client))
    for secret in (newer, webhook.secret):
        assert verify_webhook(body, headers, secret)
    assert verify_webhook(body, headers["x-service-signature"], newer)
    assert verify_webhook(body, headers["x-service-signature-previous"], webhook.secret)
    with pytest.raises(WebhookVerificationError):
        verify_webhook(body, headers["x-service-signature"], webhook.secret)
    assert client.webhooks.delete(webhook.id).deleted


def test_webhooks_are_listed_updated_and_tested_and_their_deliveries_read_and_replayed(client, receiver):
    received = receiver.received
    webhook = client.webhooks.create(url=receiver.url, events=["bounced"])
    assert webhook.id in [one.id for one in client.webhooks.list()]
    assert set(client.webhooks.update(webhook.id, events=["bounced", "failed"]).events) == {"bounced", "failed"}
    tested = client.webhooks.test(webhook.id)
    assert tested.test
    wait_for(lambda: len(received) == 1, seconds=60, what="the test")
    succeeded = client.webhooks.deliveries(webhook.id, status="succeeded")
    wait_for(lambda: [one.id for one in succeeded] == [tested.id], seconds=60, what="the log")
    delivery = client.webhooks.delivery(webhook.id, tested.id)
    assert delivery.body.encode() == received[0][1]
    assert len(delivery.attempts) == 1
    client.webhooks.replay(webhook.id, tested.id)
    wait_for(lambda: len(received) == 2, seconds=60, what="the replay")
    assert client.webhooks.update(webhook.id, active=False).active is False
    client.webhooks.delete(webhook.id)
    with pytest.raises(NotFound):
        client.webhooks.get(webhook.id)
