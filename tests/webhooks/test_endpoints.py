"""`/v1/webhooks`: create, list, retrieve, update, delete, test and rotate the secret; deliveries and replay."""

import base64
import json
import re

import pytest
from cryptography.exceptions import InvalidTag

from core.lib.ids import to_uuid
from core.lib.sql import run
from events.kinds import WEBHOOK_KINDS, wire_type
from tests.conftest import Api, field_codes
from tests.core.lib.nameserver import NameServer
from tests.plans import plan_of, prefer_indexes
from tests.rows import each
from tests.webhooks.conftest import pass_time, publish_event, publish_many
from tests.webhooks.receiver import Receiver, status
from webhooks.models import PendingDelivery, Webhook, WebhookDelivery, WebhookSecret
from webhooks.samples import OTHER_SAMPLES
from webhooks.sending.signing import plain_signature
from webhooks.services import MAX_WEBHOOKS

pytestmark = pytest.mark.django_db

URL = "https://example.com/hooks/email"
BODY = {"url": URL, "events": ["delivered", "bounced"]}
DOCUMENTED = ["sent", "delivered", "bounced", "opened", "clicked", "failed", "unsubscribed"]
FIELDS = {"format", "id", "url", "events", "active", "disabledReason", "createdAt"}


def created(api: Api, **fields) -> dict:
    response = api.post("/webhooks", BODY | fields)
    assert response.status_code == 201, response.content
    return response.json()


class TestCreating:
    def test_the_response_has_the_secret(self, api: Api):
        body = created(api)
        assert body.keys() == FIELDS | {"secret", "verificationKey"}
        assert body["id"].startswith("wh_")
        assert (body["url"], body["events"], body["active"]) == (URL, ["delivered", "bounced"], True)
        assert body["disabledReason"] is None
        assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", body["secret"])
        assert len(base64.b64decode(body["secret"].removeprefix("whsec_"))) == 32
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", body["createdAt"])

    def test_the_secret_is_returned_once_and_sealed_at_rest(self, api: Api):
        body = created(api)
        secret = body.pop("secret")
        assert body.pop("verificationKey") is None
        assert api.get(f"/webhooks/{body['id']}").json() == body
        assert api.get("/webhooks").json()["data"] == [body]
        assert api.patch(f"/webhooks/{body['id']}", {"active": True}).json() == body
        (row,) = WebhookSecret.objects.values()
        assert secret not in str(row)
        assert WebhookSecret.objects.get().secret() == secret

    def test_a_sealed_secret_does_not_open_in_another_row(self, api: Api):
        created(api)
        created(api)
        first, second = WebhookSecret.objects.all()
        first.sealed_secret = second.sealed_secret
        with pytest.raises(InvalidTag):
            first.secret()

    @each("kind", [*WEBHOOK_KINDS, *(f"email.{kind}" for kind in WEBHOOK_KINDS)])
    def test_each_event_type_is_accepted_with_and_without_prefix(self, api: Api, kind):
        assert created(api, events=[kind])["events"] == [kind.removeprefix("email.")]

    def test_all_documented_event_types_exist(self, api: Api):
        assert created(api, events=DOCUMENTED)["events"] == DOCUMENTED

    def test_a_duplicate_event_type_is_kept_once(self, api: Api):
        assert created(api, events=["sent", "email.sent", "sent"])["events"] == ["sent"]

    @each(
        ("fields", "errors"),
        [
            ({"url": None, "events": None}, {"url": "required", "events": "required"}),
            ({"url": ""}, {"url": "blank"}),
            ({"url": 7}, {"url": "invalid"}),
            ({"events": []}, {"events": "required"}),
            ({"events": "sent"}, {"events": "invalid_type"}),
            ({"events": ["queued"]}, {"events[0]": "invalid_choice"}),
            ({"events": ["email.queued"]}, {"events[0]": "invalid_choice"}),
            ({"events": ["sent", "Sent"]}, {"events[1]": "invalid_choice"}),
            ({"events": ["email.email.sent"]}, {"events[0]": "invalid_choice"}),
            ({"events": ["scheduled", "cancelled", ""]}, None),
            ({"events": [1]}, {"events[0]": "invalid"}),
            ({"events": ["sent"] * 101}, {"events": "max_length"}),
            ({"event": ["sent"]}, {"event": "unknown_field"}),
            ({"active": True}, {"active": "unknown_field"}),
            ({"secret": "whsec_mine"}, {"secret": "unknown_field"}),
            ({"url": "ftp://x", "events": ["nope"]}, {"url": "forbidden_target", "events[0]": "invalid_choice"}),
        ],
    )
    def test_all_errors_are_reported_at_once(self, api: Api, fields, errors):
        body = {name: value for name, value in (BODY | fields).items() if value is not None}
        found = field_codes(api.post("/webhooks", body))
        assert found == errors if errors else found
        assert not Webhook.objects.exists()

    def test_a_workspace_has_at_most_20(self, api: Api, bobs_api: Api):
        for number in range(MAX_WEBHOOKS):
            created(api, url=f"{URL}/{number}")
        response = api.post("/webhooks", BODY)
        assert (response.status_code, response.json()["code"]) == (403, "plan_limit_reached")
        assert (response.json()["resource"], response.json()["limit"]) == ("webhooks", 20)
        created(bobs_api)
        api.delete(f"/webhooks/{api.get('/webhooks').json()['data'][0]['id']}")
        created(api)


class TestForbiddenTargets:
    @pytest.fixture(autouse=True)
    def names(self, settings):
        settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = False
        with NameServer({"inside.example": {"A": ["10.1.2.3"]}}) as names:
            settings.DNS_SERVERS = [names.address]
            yield names

    @each("url", ["https://127.0.0.1/", "https://vault.internal/", "https://hooks.example:8443/", "not a url"])
    def test_they_are_rejected_at_creation_at_a_change_and_by_the_test_call(self, api: Api, url):
        refusal = {"url": "forbidden_target"}
        assert field_codes(api.post("/webhooks", BODY | {"url": url})) == refusal
        path = f"/webhooks/{created(api, url='https://hooks.example/')['id']}"
        assert field_codes(api.patch(path, {"url": url})) == refusal
        assert Webhook.objects.get().url == "https://hooks.example/"
        Webhook.objects.update(url=url)
        assert field_codes(api.post(f"{path}/test")) == refusal
        assert not WebhookDelivery.objects.exists()

    def test_a_request_looks_up_no_name(self, api: Api, names):
        webhook = created(api, url="https://inside.example/")
        assert api.patch(f"/webhooks/{webhook['id']}", {"url": "https://inside.example/x"}).status_code == 200
        assert api.post(f"/webhooks/{webhook['id']}/test").status_code == 202
        assert names.questions == []

    def test_another_port_can_be_allowed(self, api: Api, settings):
        settings.WEBHOOK_PORTS = [443, 8443]
        created(api, url="https://hooks.example:8443/")

    def test_a_trial_allows_private_targets_and_still_rejects_metadata_addresses(self, api: Api, settings):
        settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True
        created(api, url="http://localhost:9000/hook")
        assert field_codes(api.post("/webhooks", BODY | {"url": "http://169.254.169.254/"})) == {
            "url": "forbidden_target"
        }


class TestListing:
    def test_the_newest_come_first_in_pages(self, api: Api):
        ids = [created(api, url=f"{URL}/{number}")["id"] for number in range(5)]
        page = api.get("/webhooks", {"limit": 2, "page": 2}).json()
        assert (page["total"], page["page"], page["limit"]) == (5, 2, 2)
        all_ids = [webhook["id"] for webhook in api.get("/webhooks").json()["data"]]
        assert sorted(all_ids) == sorted(ids)
        assert [webhook["id"] for webhook in page["data"]] == all_ids[2:4]
        assert api.get("/webhooks", {"page": 9}).json()["data"] == []


class TestChanging:
    def test_given_fields_are_changed(self, api: Api):
        webhook = created(api)
        path = f"/webhooks/{webhook['id']}"
        assert api.patch(path, {"url": f"{URL}/2"}).json()["url"] == f"{URL}/2"
        assert api.patch(path, {"events": ["email.opened"]}).json()["events"] == ["opened"]
        body = api.patch(path, {}).json()
        assert (body["url"], body["events"], body["active"]) == (f"{URL}/2", ["opened"], True)
        assert body.keys() == FIELDS

    @each(
        ("fields", "errors"),
        [
            ({"events": []}, {"events": "required"}),
            ({"events": ["queued"]}, {"events[0]": "invalid_choice"}),
            ({"active": "yes"}, {"active": "invalid"}),
            ({"active": None}, {"active": "required"}),
            ({"url": None}, {"url": "required"}),
            ({"id": "wh_1"}, {"id": "unknown_field"}),
            ({"secret": "x"}, {"secret": "unknown_field"}),
        ],
    )
    def test_errors_change_nothing(self, api: Api, fields, errors):
        webhook = created(api)
        before = Webhook.objects.values().get()
        assert field_codes(api.patch(f"/webhooks/{webhook['id']}", {"url": URL, **fields})) == errors
        assert Webhook.objects.values().get() == before

    def test_enabling_clears_the_reason(self, api: Api):
        webhook = created(api)
        Webhook.objects.update(active=False, disabled_reason="The endpoint returned 410 Gone.")
        path = f"/webhooks/{webhook['id']}"
        assert api.get(path).json()["disabledReason"] == "The endpoint returned 410 Gone."
        body = api.patch(path, {"active": True}).json()
        assert (body["active"], body["disabledReason"]) == (True, None)
        assert Webhook.objects.get().failing_since is None

    def test_disabling_twice_is_not_an_error(self, api: Api):
        webhook = created(api)
        for _ in range(2):
            body = api.patch(f"/webhooks/{webhook['id']}", {"active": False}).json()
            assert (body["active"], body["disabledReason"]) == (False, None)


class TestDeleting:
    def test_a_deleted_webhook_is_gone_with_its_deliveries(self, api: Api, alice):
        webhook = created(api)
        publish_event(alice)
        path = f"/webhooks/{webhook['id']}"
        response = api.delete(path)
        assert (response.status_code, response.json()) == (200, {"id": webhook["id"], "deleted": True})
        for deleted_path in (path, f"{path}/deliveries", f"{path}/deliveries/{WebhookDelivery.objects.get().id}"):
            assert api.get(deleted_path).status_code == 404
        assert api.delete(path).status_code == 404
        assert not WebhookSecret.objects.exists()
        assert not PendingDelivery.objects.exists()


class TestRotating:
    def test_both_secrets_sign_for_a_day(self, api: Api, alice, receiver: Receiver, process_queue):
        webhook = created(api, url=receiver.url())
        rotated = api.post(f"/webhooks/{webhook['id']}/rotate-secret")
        assert rotated.status_code == 200
        assert rotated.json().keys() == FIELDS | {"secret", "verificationKey"}
        new, old = rotated.json()["secret"], webhook["secret"]
        assert new != old
        publish_event(alice)
        process_queue()
        request = receiver.received[0]
        assert request.header("x-service-signature") == plain_signature(request.body, new)
        assert request.header("x-service-signature-previous") == plain_signature(request.body, old)
        assert len(request.header("webhook-signature").split(" ")) == 2
        WebhookSecret.objects.filter(expires_at__isnull=False).update(expires_at="2020-01-01T00:00:00Z")
        publish_event(alice)
        process_queue()
        request = receiver.received[1]
        assert request.header("x-service-signature") == plain_signature(request.body, new)
        assert request.header("x-service-signature-previous") is None
        assert len(request.header("webhook-signature").split(" ")) == 1

    def test_a_rotation_whose_response_was_lost_breaks_no_receiver(
        self, api: Api, alice, receiver: Receiver, process_queue
    ):
        webhook = created(api, url=receiver.url())
        for _ in range(2):
            newest = api.post(f"/webhooks/{webhook['id']}/rotate-secret").json()["secret"]
        publish_event(alice)
        process_queue()
        request = receiver.received[0]
        assert request.header("x-service-signature") == plain_signature(request.body, newest)
        previous = request.header("x-service-signature-previous").split(" ")
        assert plain_signature(request.body, webhook["secret"]) in previous

    def test_frequent_rotation_keeps_three_old_secrets(self, api: Api):
        webhook = created(api)
        for _ in range(9):
            api.post(f"/webhooks/{webhook['id']}/rotate-secret")
        assert WebhookSecret.objects.valid().count() == 4


class TestTesting:
    @pytest.mark.parametrize("kind", WEBHOOK_KINDS)
    def test_a_sample_of_the_first_event_type_is_posted_like_an_event(
        self, api: Api, receiver: Receiver, process_queue, kind
    ):
        webhook = created(api, url=receiver.url(), events=[kind, "sent"])
        response = api.post(f"/webhooks/{webhook['id']}/test")
        assert response.status_code == 202
        delivery = response.json()
        assert (delivery["status"], delivery["test"], delivery["event"]) == ("pending", True, kind)
        process_queue()
        body = json.loads(receiver.received[0].body)
        assert (body["id"], body["type"], body["event"], body["test"]) == (
            delivery["eventId"],
            wire_type(kind),
            kind,
            True,
        )
        if kind not in OTHER_SAMPLES:
            assert body["data"].keys() >= {"emailId", "to", "from", "subject", "status", "tags", "metadata"}
        found = api.get(f"/webhooks/{webhook['id']}/deliveries/{delivery['id']}").json()
        assert (found["status"], found["attemptCount"]) == ("succeeded", 1)

    def test_two_tests_are_two_deliveries(self, api: Api, receiver: Receiver, process_queue):
        webhook = created(api, url=receiver.url())
        ids = {api.post(f"/webhooks/{webhook['id']}/test").json()["id"] for _ in range(2)}
        process_queue()
        assert (len(ids), len(receiver.received)) == (2, 2)


class TestDeliveryLog:
    @pytest.fixture
    def webhook(self, api: Api, receiver: Receiver) -> dict:
        return created(api, url=receiver.url())

    def test_each_attempt_is_logged(self, api: Api, alice, webhook, receiver: Receiver, process_queue):
        receiver.answer = status(503, body=b"<b>later</b>")
        event_id = publish_event(alice)
        process_queue()
        (item,) = api.get(f"/webhooks/{webhook['id']}/deliveries").json()["data"]
        assert (item["status"], item["attemptCount"], item["statusCode"], item["error"]) == (
            "pending",
            1,
            503,
            "status",
        )
        assert (item["eventId"], item["event"], item["webhookId"]) == (event_id, "delivered", webhook["id"])
        assert item["nextAttemptAt"] > item["createdAt"]
        assert item["succeededAt"] is None
        receiver.answer = status(204, body=b"")
        pass_time(minutes=1)
        process_queue()
        found = api.get(f"/webhooks/{webhook['id']}/deliveries/{item['id']}").json()
        assert (found["status"], found["attemptCount"], found["nextAttemptAt"]) == ("succeeded", 2, None)
        assert found["succeededAt"] is not None
        first, second = found["attempts"]
        assert first.keys() == {"at", "durationMs", "statusCode", "error", "answer"}
        assert (first["statusCode"], first["error"], first["answer"]) == (503, "status", "<b>later</b>")
        assert (second["statusCode"], second["error"], second["answer"]) == (204, None, "")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["at"])
        assert found["body"].encode() == receiver.received[0].body
        assert item.keys() == found.keys() - {"attempts", "body"}

    def test_the_list_can_be_filtered(self, api: Api, alice, webhook, receiver: Receiver, process_queue):
        publish_event(alice, kind="delivered")
        process_queue()
        receiver.answer = status(410)
        publish_event(alice, kind="bounced")
        process_queue()
        path = f"/webhooks/{webhook['id']}/deliveries"

        def events(**query):
            body = api.get(path, query).json()
            assert body["total"] == len(body["data"])
            return [item["event"] for item in body["data"]]

        assert sorted(events()) == ["bounced", "delivered"]
        assert events(status="succeeded") == ["delivered"]
        assert events(status="discarded") == ["bounced"]
        assert events(status="pending") == events(status="exhausted") == []
        assert events(event="email.bounced") == events(event="bounced") == ["bounced"]
        assert events(event="bounced", status="succeeded") == []
        assert field_codes(api.get(path, {"status": "sent", "event": "queued"})) == {
            "status": "invalid_choice",
            "event": "invalid_choice",
        }

    def test_pages_and_totals(self, api: Api, alice, webhook):
        publish_many(alice, 25)
        page = api.get(f"/webhooks/{webhook['id']}/deliveries", {"page": 2}).json()
        assert (len(page["data"]), page["total"], page["limit"]) == (5, 25, 20)

    def test_a_list_takes_a_fixed_number_of_queries(self, api: Api, alice, webhook, django_assert_max_num_queries):
        publish_many(alice, 100)
        api.get("/me")
        with django_assert_max_num_queries(4):
            api.get(f"/webhooks/{webhook['id']}/deliveries", {"limit": 100})

    def test_a_list_reads_the_indexes(self, api: Api, alice, webhook):
        publish_many(alice, 200)
        # Tests before this one leave other statistics.
        run("ANALYZE webhooks_webhookdelivery")
        prefer_indexes()
        plan = plan_of(
            "SELECT id FROM webhooks_webhookdelivery WHERE webhook_id = %s"
            " AND status = 'exhausted' ORDER BY created_at DESC, id DESC LIMIT 20",
            [to_uuid(webhook["id"], prefix="wh_")],
        )
        assert "delivery_by_status" in plan.splitlines()[1]

    def test_deliveries_of_another_webhook_are_not_found(self, api: Api, alice, webhook, receiver):
        other = created(api, events=["opened"])
        publish_event(alice)
        delivery = WebhookDelivery.objects.get()
        assert api.get(f"/webhooks/{other['id']}/deliveries").json()["total"] == 0
        assert api.get(f"/webhooks/{other['id']}/deliveries/{delivery.id}").status_code == 404
        assert api.post(f"/webhooks/{other['id']}/deliveries/{delivery.id}/replay").status_code == 404

    def test_a_replay_posts_the_same_bytes_again(self, api: Api, alice, webhook, receiver: Receiver, process_queue):
        publish_event(alice)
        process_queue()
        path = f"/webhooks/{webhook['id']}/deliveries/{WebhookDelivery.objects.get().id}"
        for _ in range(2):
            response = api.post(f"{path}/replay")
            assert (response.status_code, response.json()["status"]) == (200, "pending")
        process_queue()
        first, second = receiver.received
        assert first.body == second.body
        assert first.header("webhook-id") == second.header("webhook-id")
        assert api.get(path).json()["attemptCount"] == 2

    def test_a_replay_attempts_a_pending_delivery_now(
        self, api: Api, alice, webhook, receiver: Receiver, process_queue
    ):
        receiver.answer = status(500)
        publish_event(alice)
        process_queue()
        receiver.answer = status(200)
        process_queue()
        assert len(receiver.received) == 1
        api.post(f"/webhooks/{webhook['id']}/deliveries/{WebhookDelivery.objects.get().id}/replay")
        process_queue()
        assert WebhookDelivery.objects.get().status == "succeeded"
