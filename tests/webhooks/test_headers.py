"""Headers of endpoints: sealed, masked, checked, sent with each request and bound to the host of the URL."""

import pytest

from core.lib.keyring import UnknownKey
from tests.conftest import Api, field_codes
from tests.rows import each
from tests.webhooks.conftest import publish_event
from webhooks.headers import MASK, MAX_HEADERS, MAX_VALUE_LENGTH
from webhooks.models import Webhook, WebhookDelivery
from webhooks.services import update_webhook

pytestmark = pytest.mark.django_db

URL = "https://example.com/hooks/email"
HEADERS = {"Authorization": "Bearer s3cret-token", "X-Team": "mail"}


def body(**headers: str) -> dict:
    return {"url": URL, "events": ["sent"], "headers": headers}


@pytest.fixture
def hook(api: Api) -> dict:
    created = api.post("/webhooks", body(**HEADERS))
    assert created.status_code == 201, created.content
    return created.json()


def test_values_are_sealed_and_shown_masked(api: Api, hook):
    shown = dict.fromkeys(HEADERS, MASK)
    assert hook["headers"] == shown
    assert api.get(f"/webhooks/{hook['id']}").json()["headers"] == shown
    assert [one["headers"] for one in api.get("/webhooks").json()["data"]] == [shown]
    assert api.post(f"/webhooks/{hook['id']}/rotate-secret").json()["headers"] == shown
    (row,) = Webhook.objects.values()
    assert "s3cret" not in str(row)
    assert Webhook.objects.get().headers == HEADERS


def test_without_headers_the_field_is_absent(api: Api):
    for given in ({}, {"headers": {}}):
        created = api.post("/webhooks", {"url": URL, "events": ["sent"], **given}).json()
        assert "headers" not in created
        assert Webhook.objects.get(id=created["id"]).sealed_headers == ""


def test_a_change_replaces_all_and_keeps_masked_values(api: Api, hook):
    path = f"/webhooks/{hook['id']}"
    assert api.patch(path, {"events": ["opened"]}).json()["headers"] == hook["headers"]
    assert Webhook.objects.get().headers == HEADERS
    changed = api.patch(path, {"headers": {"x-team": MASK, "X-New": "1"}}).json()
    assert changed["headers"] == {"x-team": MASK, "X-New": MASK}
    assert Webhook.objects.get().headers == {"x-team": "mail", "X-New": "1"}
    assert "headers" not in api.patch(path, {"headers": {}}).json()
    refused = api.patch(path, {"headers": {"X-Team": MASK}})
    assert field_codes(refused) == {"headers.X-Team": "header_masked"}


def test_another_host_needs_the_values_again(api: Api, hook):
    path = f"/webhooks/{hook['id']}"
    for url in ("https://other.example/", "https://www.example.com/hooks/email"):
        for given in ({}, {"headers": {"X-Team": "mail", "Authorization": MASK}}):
            refused = api.patch(path, {"url": url, **given})
            assert field_codes(refused) == {"headers": "headers_required"}
    assert Webhook.objects.get().url == URL
    assert api.patch(path, {"url": "https://EXAMPLE.com:443/other"}).status_code == 200
    assert api.patch(path, {"url": "https://other.example/", "headers": {"X-Team": "b"}}).status_code == 200
    assert Webhook.objects.get().headers == {"X-Team": "b"}
    assert api.patch(path, {"url": "https://third.example/", "headers": {}}).status_code == 200
    assert api.patch(path, {"url": "https://fourth.example/"}).status_code == 200


@each(
    ("name", "value", "code"),
    [
        ("Host", "a", "header_reserved"),
        ("content-LENGTH", "1", "header_reserved"),
        ("Transfer-Encoding", "chunked", "header_reserved"),
        ("Connection", "X-Team", "header_reserved"),
        ("webhook-signature", "v1,a", "header_reserved"),
        ("svix-id", "a", "header_reserved"),
        ("X-Service-Signature", "a", "header_reserved"),
        ("x-twilio-email-event-webhook-timestamp", "1", "header_reserved"),
        ("", "a", "header_name"),
        ("X Team", "a", "header_name"),
        ("X-Team:", "a", "header_name"),
        ("X-Team\n", "a", "header_name"),
        ("X-T\u00e9am", "a", "header_name"),
        ("X" * 101, "a", "header_name"),
        ("X-Team", "a\r\nHost: b", "header_value"),
        ("X-Team", "a\n", "header_value"),
        ("X-Team", " a", "header_value"),
        ("X-Team", "\u00e9", "header_value"),
        ("X-Team", "", "blank"),
        ("X-Team", None, "required"),
        ("X-Team", 1, "invalid"),
        ("X-Team", "a" * (MAX_VALUE_LENGTH + 1), "max_length"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused(api: Api, name, value, code):
    refused = api.post("/webhooks", body(**{name: value}))
    assert field_codes(refused) == {f"headers.{name[:100]}": code}
    assert not Webhook.objects.exists()


@each(
    "headers",
    [
        {"X" * 100: "a" * MAX_VALUE_LENGTH},
        {"X-Team": "a b\tc", "User-Agent": "hooks", "Cookie": "a=b"},
        {f"X-{number}": "a" for number in range(MAX_HEADERS)},
    ],
)
def test_headers_at_the_limits_are_accepted(api: Api, headers):
    assert api.post("/webhooks", body(**headers)).status_code == 201
    assert Webhook.objects.get().headers == headers


def test_too_many_and_repeated_headers_are_refused(api: Api):
    refused = api.post("/webhooks", body(**{f"X-{number}": "a" for number in range(MAX_HEADERS + 1)}))
    assert field_codes(refused) == {"headers": "max_length"}
    refused = api.post("/webhooks", body(**{"X-Team": "a", "x-team": "b"}))
    assert field_codes(refused) == {"headers.X-Team": "header_repeated", "headers.x-team": "header_repeated"}
    refused = api.post("/webhooks", {"url": URL, "events": ["sent"], "headers": ["X-Team: a"]})
    assert field_codes(refused) == {"headers": "invalid_type"}


def test_each_attempt_sends_them_and_the_log_does_not_have_them(alice, api, endpoint, receiver, process_queue):
    update_webhook(endpoint.webhook, changes={"headers": {**HEADERS, "User-Agent": "mine"}})
    publish_event(alice)
    process_queue()
    (request,) = receiver.received
    assert request.header("authorization") == HEADERS["Authorization"]
    assert (request.header("x-team"), request.header("user-agent")) == ("mail", "mine")
    assert request.header("webhook-id")
    delivery = endpoint.delivery()
    assert delivery.status == "succeeded"
    shown = api.get(f"/webhooks/{endpoint.webhook.id}/deliveries/{delivery.id}").json()
    for text in (str(delivery.attempts), str(shown)):
        assert "s3cret" not in text


def test_headers_that_cannot_be_unsealed_stop_the_request(alice, api, endpoint, receiver, process_queue):
    other = api.post("/webhooks", body(**HEADERS)).json()["id"]
    Webhook.objects.filter(id=endpoint.webhook.id).update(sealed_headers=Webhook.objects.get(id=other).sealed_headers)
    Webhook.objects.filter(id=other).delete()
    publish_event(alice)
    process_queue()
    assert not receiver.received
    assert WebhookDelivery.objects.get().error == "secret_unreadable"
    assert "headers" not in api.get(f"/webhooks/{endpoint.webhook.id}").json()
    Webhook.objects.update(sealed_headers="gone.AAAA")
    with pytest.raises(UnknownKey):
        _ = Webhook.objects.get().headers
    assert "headers" not in api.get(f"/webhooks/{endpoint.webhook.id}").json()
