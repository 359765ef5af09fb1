"""`postrider webhooks listen`: a local receiver verifies the requests."""

import json
import re
import socket

import pytest
from postrider_client import WebhookVerificationError, new_webhook_secret, verify_webhook
from standardwebhooks import Webhook

from tests.clients.messages import latest_cursor, send_email
from tests.clients.receiver import wait_for_request
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


def test_requests_are_verified_with_the_printed_secret_and_are_those_of_webhooks(cli, client, receiver):
    webhook = client.webhooks.create(url=receiver.url, events=["delivered"])
    after = latest_cursor(client)
    email_id = send_email(client, subject="Grüße")
    theirs = wait_for_request(receiver, email_id)
    receiver.received.clear()
    with cli.started(
        "webhooks", "listen", "--forward-to", receiver.url, "--type", "delivered", "--after", after
    ) as run:
        headers, body = wait_for_request(receiver, email_id)
        # Emails of other tests may be delivered before.
        wait_for(lambda: any(line["id"] == headers["webhook-id"] for line in run.lines), seconds=60, what="the output")
        run.interrupt()
    client.webhooks.delete(webhook.id)
    secret = re.search(r"Webhook secret: (whsec_\S+)", run.errors)[1]
    assert (
        Webhook(secret).verify(body, {name.lower(): value for name, value in headers.items()})["event"] == "delivered"
    )
    assert verify_webhook(body, headers, secret) == verify_webhook(body, headers["x-service-signature"], secret)
    real_event = json.loads(theirs[1])
    assert real_event["data"]["status"] == "delivered"
    assert json.loads(body) == real_event
    ours, real = ({name.lower(): value for name, value in one.items()} for one in (headers, theirs[0]))
    for name in ("webhook-id", "user-agent", "content-type"):
        assert ours[name] == real[name]
    printed = next(line for line in run.lines if line["id"] == headers["webhook-id"])
    assert (printed["statusCode"], printed["error"]) == (200, None)
    assert printed["milliseconds"] >= 0


def test_a_simulated_email_is_forwarded_as_its_webhook(cli, client, service, receiver):
    webhook = client.webhooks.create(url=receiver.url, events=["received"])
    address = client.inbound.get().address
    simulate = ("--simulate", address, "--test-key", service.test_key)
    with cli.started("webhooks", "listen", "--forward-to", receiver.url, "--type", "received", *simulate) as run:
        simulated = lambda: re.search(r"Simulated (inb_\w+) to", run.errors)  # noqa: E731
        received_id = wait_for(simulated, seconds=60, what="the simulation")[1]
        about = lambda: [one for one in list(receiver.received) if received_id.encode() in one[1]]  # noqa: E731
        wait_for(lambda: len(about()) == 2, seconds=60, what="the webhook and its copy")
        run.interrupt()
    client.webhooks.delete(webhook.id)
    one, other = (without_links(json.loads(body)) for _, body in about())
    assert one == other
    assert (one["event"], one["data"]["text"].strip(), one["data"]["test"]) == ("received", "Hello!", True)
    secret = re.search(r"Webhook secret: (whsec_\S+)", run.errors)[1]
    # The copy is signed with the printed secret.
    assert [is_signed(body, headers, secret) for headers, body in about()].count(True) == 1


def without_links(event):
    """Return an event without the download, which ends at another time in a webhook."""
    return {**event, "data": {name: value for name, value in event["data"].items() if name != "raw"}}


def is_signed(body, headers, secret):
    try:
        verify_webhook(body, headers, secret)
    except WebhookVerificationError:
        return False
    return True


def test_failed_requests_are_shown_and_do_not_end_the_program(cli, client, receiver):
    secret = new_webhook_secret()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        arguments = ("--type", "queued", "--after", latest_cursor(client), "--secret", secret)
        with cli.started("webhooks", "listen", "--forward-to", closed, *arguments) as run:
            send_email(client)
            send_email(client)
            wait_for(lambda: len(run.lines) >= 2, seconds=60, what="two failures")
            run.interrupt()
    assert {line["statusCode"] for line in run.lines} == {None}
    assert "refused" in run.lines[0]["error"]
    assert secret in run.errors

    arguments = ("--type", "queued", "--after", latest_cursor(client))
    with cli.started("webhooks", "listen", "--forward-to", receiver.url, *arguments) as run:
        for number, status in enumerate((500, 302), start=1):
            receiver.status = status
            send_email(client)
            wait_for(lambda number=number: len(run.lines) == number, seconds=60, what="the response")
        run.interrupt()
    assert [line["statusCode"] for line in run.lines] == [500, 302]


def test_a_terminal_shows_the_secret_and_each_response(cli, client, receiver):
    arguments = ("--forward-to", receiver.url, "--type", "queued", "--after", latest_cursor(client))
    with cli.terminal("webhooks", "listen", *arguments) as terminal:
        terminal.wait_for("Forwarding events")
        wait_for_request(receiver, send_email(client))
        screen = terminal.wait_for(" ms")
        assert terminal.colour_of("200") == "green"
    assert "Webhook secret: whsec_" in screen
    assert "email.queued" in screen


def test_events_that_webhooks_do_not_post_are_forwarded_only_on_request(cli, client, receiver):
    with cli.started("webhooks", "listen", "--forward-to", receiver.url, "--after", latest_cursor(client)) as run:
        email_id = send_email(client)
        wait_for_request(receiver, email_id)
        wait_for(lambda: "email.delivered" in run.output, seconds=60, what="the last event")
        run.interrupt()
    assert "email.queued" not in run.output


def test_an_invalid_secret_or_url_is_an_error_before_the_first_event(cli):
    result = cli.run("webhooks", "listen", "--forward-to", "http://localhost:1", "--secret", "whsec_?")
    assert (result.code, result.errors.count("\n")) == (1, 1)
    for url in ("", "http://[", "localhost:3000/webhooks", "ftp://localhost", "file:///etc/hosts"):
        result = cli.run("webhooks", "listen", "--forward-to", url)
        assert (result.code, result.errors.count("\n"), "is not a URL" in result.errors) == (2, 1, True), url
