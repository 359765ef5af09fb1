"""Webhooks in the Python library: requests of the running service are verified by a receiver."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

import pytest
from postrider_client import NotFound, WebhookVerificationError, verify_webhook

from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


@pytest.fixture
def receiver():
    """Return the URL of a receiver and its requests, as headers and raw body."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append((self.headers, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/hook", received
    server.shutdown()
    thread.join()
    server.server_close()


def send(client):
    fields = {"from_": "hello@demo.example", "to": f"ada-{uuid4()}@example.com", "subject": "Hi", "text": "Hi"}
    return client.emails.send(**fields).id


def request_for(received, email_id):
    """Return the headers and body of the delivery for this email."""
    about = lambda: next((one for one in list(received) if email_id.encode() in one[1]), None)  # noqa: E731
    return wait_for(about, seconds=60, what="the delivery")


def test_requests_of_the_service_are_verified_before_and_after_the_secret_is_rotated(client, receiver):
    url, received = receiver
    webhook = client.webhooks.create(url=url, events=["delivered"])
    assert webhook.secret not in repr(webhook)
    email_id = send(client)
    headers, body = request_for(received, email_id)
    event = client.webhooks.verify(body, headers, webhook.secret)
    assert (event.event, event.data["emailId"]) == ("delivered", email_id)
    assert verify_webhook(body, headers["x-service-signature"], webhook.secret) == event

    newer = client.webhooks.rotate_secret(webhook.id).secret
    headers, body = request_for(received, send(client))
    for secret in (newer, webhook.secret):
        assert verify_webhook(body, headers, secret)
    assert verify_webhook(body, headers["x-service-signature"], newer)
    assert verify_webhook(body, headers["x-service-signature-previous"], webhook.secret)
    with pytest.raises(WebhookVerificationError):
        verify_webhook(body, headers["x-service-signature"], webhook.secret)
    assert client.webhooks.delete(webhook.id).deleted


def test_webhooks_are_listed_updated_and_tested_and_their_deliveries_read_and_replayed(client, receiver):
    url, received = receiver
    webhook = client.webhooks.create(url=url, events=["bounced"])
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
