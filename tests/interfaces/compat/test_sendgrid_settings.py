"""Domains, event webhook and statistics in SendGrid's API."""

from datetime import UTC, datetime, timedelta

import pytest

from core.lib.ids import id_number
from domains.models import Domain
from interfaces.compat.sendgrid.webhook_format import verification_key
from tests.conftest import make_key
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_sendgrid import error, mail
from tests.rows import each
from webhooks.models import Webhook, WebhookDelivery
from webhooks.services import create_webhook

pytestmark = pytest.mark.django_db

DOMAINS = "/v3/whitelabel/domains"
SETTINGS = "/v3/user/webhooks/event/settings"
URL = "https://hooks.example.com/sendgrid"
PUBLIC_KEY = (
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEq5YdyhiNKgalg6vBXagGVgfYoAfgiuyppIRllB99NsvmFGuYI0Qz4wnMrsSO0spJfF1D4oeubGPrSSYj"
    "imCsjg=="
)


class TestDomains:
    def test_a_domain_is_registered_read_and_deleted(self, sendgrid):
        created = sendgrid.post(DOMAINS, {"domain": "new.example", "automatic_security": False})
        body = created.json()
        assert (created.status_code, body["domain"], body["valid"]) == (201, "new.example", False)
        assert body["dns"].keys() == {"dkim", "subdomain_spf", "dmarc", "mail_server"}
        assert body["dns"]["dkim"]["host"].endswith("._domainkey.new.example")
        path = f"{DOMAINS}/{body['id']}"
        assert sendgrid.get(path).json() == body
        assert [one["domain"] for one in sendgrid.get(DOMAINS).json()] == ["new.example", "alice.example"]
        assert [one["domain"] for one in sendgrid.get(f"{DOMAINS}?domain=new&limit=5").json()] == ["new.example"]
        assert sendgrid.call("DELETE", path).status_code == 204
        assert error(sendgrid.get(path)) == (404, None)

    def test_a_domain_is_validated(self, sendgrid, monkeypatch):
        # No worker runs, so the request does not wait for its result.
        monkeypatch.setattr("domains.check_queue.verify.MAX_WAIT_SECONDS", 0)
        Domain.objects.update(status="verified")
        domain = Domain.objects.get()
        body = sendgrid.post(f"{DOMAINS}/{id_number(domain.id, prefix='dom_')}/validate").json()
        assert (body["valid"], body["validation_results"]["dkim"]["valid"]) == (True, False)
        domain.refresh_from_db()
        assert domain.checking_until

    def test_an_invalid_or_known_domain_is_refused(self, sendgrid):
        assert error(sendgrid.post(DOMAINS, {"domain": "no domain"})) == (400, "domain")
        assert error(sendgrid.post(DOMAINS, {})) == (400, "domain")
        assert sendgrid.post(DOMAINS, {"domain": "alice.example"}).status_code == 409


class TestEventWebhook:
    def settings(self, **changes) -> dict:
        return {"enabled": True, "url": URL, "delivered": True, "bounce": True, "open": False, **changes}

    def test_without_an_endpoint_the_settings_are_disabled(self, sendgrid):
        body = sendgrid.get(SETTINGS).json()
        assert (body["enabled"], body["url"], body["delivered"]) == (False, "", False)
        assert error(sendgrid.get(f"{SETTINGS}/signed")) == (404, None)

    def test_the_settings_create_and_change_an_endpoint(self, sendgrid):
        body = sendgrid.call("PATCH", SETTINGS, self.settings()).json()
        assert (body["enabled"], body["url"], body["delivered"], body["open"]) == (True, URL, True, False)
        row = Webhook.objects.get()
        assert (row.format, set(row.events)) == ("sendgrid", {"delivered", "bounced"})
        changed = sendgrid.call("PATCH", SETTINGS, {"enabled": False, "open": True, "url": f"{URL}/2"}).json()
        assert (changed["enabled"], changed["open"], changed["delivered"]) == (False, True, True)
        assert sendgrid.get(SETTINGS).json() == changed
        assert Webhook.objects.get().url == f"{URL}/2"

    def test_the_settings_create_a_disabled_endpoint(self, sendgrid):
        assert sendgrid.call("PATCH", SETTINGS, self.settings(enabled=False)).json()["enabled"] is False
        assert not Webhook.objects.get().active

    def test_the_key_is_that_of_the_secret(self, sendgrid):
        sendgrid.call("PATCH", SETTINGS, self.settings())
        secret = Webhook.objects.get().secrets.get().secret()
        for response in (
            sendgrid.get(f"{SETTINGS}/signed"),
            sendgrid.call("PATCH", f"{SETTINGS}/signed", {"enabled": True}),
        ):
            assert response.json()["public_key"] == verification_key(secret)
        assert error(sendgrid.call("PATCH", f"{SETTINGS}/signed", {"enabled": False})) == (400, "enabled")

    def test_the_public_key_of_a_secret_never_changes(self):
        """The owners of endpoints have stored it."""
        assert verification_key("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3") == PUBLIC_KEY

    def test_a_test_event_is_posted_to_the_endpoint_only(self, sendgrid):
        assert error(sendgrid.post("/v3/user/webhooks/event/test", {"url": URL})) == (404, None)
        sendgrid.call("PATCH", SETTINGS, self.settings())
        assert error(sendgrid.post("/v3/user/webhooks/event/test", {"url": "https://a.example/"})) == (400, "url")
        assert sendgrid.post("/v3/user/webhooks/event/test", {"url": URL}).status_code == 204
        assert WebhookDelivery.objects.get().is_test

    def test_several_webhooks_have_settings_by_id(self, sendgrid):
        first, second = (sendgrid.post(SETTINGS, self.settings(url=f"{URL}/{n}")) for n in (1, 2))
        assert (first.status_code, second.status_code) == (201, 201)
        listed = sendgrid.get(f"{SETTINGS}/all").json()
        assert listed == {"max_allowed": 20, "webhooks": [first.json(), second.json()]}
        path = f"{SETTINGS}/{second.json()['id']}"
        assert sendgrid.get(path).json() == second.json()
        changed = sendgrid.call("PATCH", path, {"url": f"{URL}/3", "open": True}).json()
        assert (changed["url"], changed["open"], changed["delivered"]) == (f"{URL}/3", True, True)
        assert sendgrid.get(SETTINGS).json() == first.json()
        key = sendgrid.get(f"{SETTINGS}/signed/{second.json()['id']}").json()
        assert key == {"id": second.json()["id"], "public_key": second.json()["public_key"]}
        secret = Webhook.objects.get(url=f"{URL}/3").secrets.get().secret()
        assert key["public_key"] == verification_key(secret)
        test = {"id": second.json()["id"], "url": f"{URL}/3"}
        assert sendgrid.post("/v3/user/webhooks/event/test", test).status_code == 204
        assert WebhookDelivery.objects.get().webhook.url == f"{URL}/3"
        assert sendgrid.call("DELETE", path).status_code == 204
        assert error(sendgrid.get(path)) == (404, None)
        assert [one["id"] for one in sendgrid.get(f"{SETTINGS}/all").json()["webhooks"]] == [first.json()["id"]]

    def test_oauth_is_refused_by_name(self, sendgrid):
        refused = sendgrid.post(SETTINGS, self.settings(oauth_client_id="a"))
        assert error(refused) == (400, "oauth_client_id")
        assert not Webhook.objects.exists()

    @each("change", [{"url": "ftp://a"}, {"url": None}, {"delivered": False, "bounce": False}])
    def test_invalid_settings_are_refused(self, sendgrid, change):
        assert sendgrid.call("PATCH", SETTINGS, self.settings(**change)).status_code == 400
        assert not Webhook.objects.exists()

    def test_other_endpoints_are_not_changed(self, sendgrid, alice, bob):
        create_webhook(alice.workspace, url=URL, events=["opened"])
        create_webhook(bob.workspace, url=URL, events=["opened"], format="sendgrid")
        assert sendgrid.get(SETTINGS).json()["url"] == ""
        reader = Dialect("sendgrid", make_key(alice.workspace, "read_only"))
        assert error(reader.call("PATCH", SETTINGS, self.settings())) == (403, None)
        assert Webhook.objects.count() == 2


class TestStats:
    def test_days_have_the_counts_of_their_emails(self, sendgrid):
        sendgrid.post("/v3/mail/send", mail("ada@example.com", "bob@example.com"))
        today = datetime.now(UTC).date()
        days = sendgrid.get(f"/v3/stats?start_date={today - timedelta(days=1)}").json()
        assert [day["stats"][0]["metrics"]["requests"] for day in days] == [0, 2]
        assert days[1]["date"] == today.isoformat()

    def test_the_range_is_limited(self, sendgrid):
        assert error(sendgrid.get("/v3/stats")) == (400, "start_date")
        assert error(sendgrid.get("/v3/stats?start_date=2020-01-01&end_date=2021-01-01")) == (400, "start_date")
        assert error(sendgrid.get("/v3/stats?start_date=2020-01-02&end_date=2020-01-01")) == (400, "start_date")
        assert error(sendgrid.get("/v3/stats?start_date=2020-01-01&end_date=x")) == (400, "end_date")
        assert error(sendgrid.get("/v3/stats?start_date=2026-01-01&aggregated_by=week")) == (501, None)
