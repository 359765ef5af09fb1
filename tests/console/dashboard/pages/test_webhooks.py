import html
import json
from datetime import UTC, datetime, timedelta

import pytest

from console.dashboard.pages.webhooks import EVENT_GROUPS
from core.lib.worker.stages import Stage
from events.kinds import WEBHOOK_KINDS
from tests.console.dashboard.conftest import make_email, shown_text
from webhooks.health import CHART_DAYS
from webhooks.models import PendingDelivery, Webhook, WebhookDelivery, WebhookEvent, WebhookSecret
from webhooks.services import create_webhook, replay_failed, rotate_secret, send_test


@pytest.fixture
def webhook(alice):
    webhook, _ = create_webhook(alice.workspace, url="https://shop.example/hook", events=["delivered"])
    return webhook


def add(owner, **fields):
    return owner.post("/dashboard/webhooks/add/", {"url": "https://shop.example/h", "events": ["sent"], **fields})


def test_the_secret_is_shown_once_with_the_code_that_verifies(owner, alice):
    page = add(owner)

    webhook = Webhook.objects.get()
    secret = WebhookSecret.objects.get().secret()
    assert (webhook.workspace, webhook.events) == (alice.workspace, ["sent"])
    assert secret in page.text
    assert secret not in owner.get(f"/dashboard/webhooks/{webhook.id}/").text
    assert [one.label for one in page.context["samples"]] == ["Python", "JavaScript", "PHP", "Go", "Ruby"]
    for text in ("def is_genuine(body: bytes", "timingSafeEqual", "hash_hmac", "hmac.New", "OpenSSL::HMAC"):
        assert text in html.unescape(page.text)


def test_an_invalid_value_is_a_form_error(owner, settings):
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = False
    invalid = {
        "url": ("", "nonsense", "ftp://shop.example/", "https://user:pass@shop.example/", "https://127.0.0.1/"),
        "events": ([], ["nonsense"], ["queued"]),
        "headers": ("Host: a", "X-Team", "X-Team: a\nx-team: b", "X Team: a", "X-Team: ********"),
    }
    for name, values in invalid.items():
        for value in values:
            assert name in add(owner, **{name: value}).context["form"].errors, value
    assert not Webhook.objects.exists()


def test_a_webhook_is_changed_disabled_and_enabled(owner, webhook):
    path = f"/dashboard/webhooks/{webhook.id}/"
    response = owner.post(f"{path}edit/", {"url": "https://other.example/", "events": ["opened", "clicked"]})
    webhook.refresh_from_db()
    assert response.url == path
    assert (webhook.url, webhook.events) == ("https://other.example/", ["opened", "clicked"])

    owner.post(f"{path}disable/")
    assert not Webhook.objects.get().active
    assert "disabled manually" in owner.get(path).text
    Webhook.objects.update(disabled_reason="The endpoint returned 410 Gone.")
    assert "410 Gone" in owner.get(path).text
    assert "410 Gone" in owner.get("/dashboard/webhooks/").text
    owner.post(f"{path}enable/")
    assert Webhook.objects.get().active

    before = WebhookSecret.objects.get().secret()
    page = owner.post(f"{path}rotate/").text
    assert WebhookSecret.objects.get(expires_at=None).secret() in page
    assert before not in page
    assert WebhookSecret.objects.count() == 2


def test_a_test_and_a_replay_are_deliveries(owner, webhook):
    owner.post(f"/dashboard/webhooks/{webhook.id}/test/")
    delivery = WebhookDelivery.objects.get()
    assert delivery.is_test

    WebhookDelivery.objects.update(status="exhausted")
    owner.post(f"/dashboard/deliveries/{delivery.id}/replay/")

    delivery.refresh_from_db()
    assert delivery.status == "pending"


def test_a_delivery_shows_payload_and_responses(owner, webhook):
    delivery = send_test(webhook)
    delivery.attempts = [
        {"at": "2026-11-21T06:20:00.000Z", "durationMs": 5, "statusCode": 500, "error": "status", "answer": "<b>no"},
        {"at": "nonsense", "durationMs": None, "statusCode": None, "error": "from_tomorrow", "answer": None},
    ]
    delivery.save()

    page = owner.get(f"/dashboard/deliveries/{delivery.id}/").content.decode()

    for text in ("The endpoint returned an error", "&lt;b&gt;no", "21 Nov 2026, 06:20:00", "from_tomorrow"):
        assert text in page
    assert "A test of your webhook" in page


def test_the_log_shows_errors_in_words_is_filtered_and_has_pages(owner, webhook):
    for _ in range(27):
        send_test(webhook)
    WebhookDelivery.objects.update(error="dns_failed")
    WebhookDelivery.objects.filter(id=WebhookDelivery.objects.first().id).update(status="exhausted")
    for code, text in (("en", "could not be resolved"), ("de", "konnte nicht aufgelöst werden")):
        page = owner.get(f"/dashboard/webhooks/{webhook.id}/", headers={"Accept-Language": code})
        assert text in shown_text(page)
        assert "dns_failed" not in page.text

    whole = owner.get(f"/dashboard/webhooks/{webhook.id}/").context["listing"]
    exhausted = owner.get(f"/dashboard/webhooks/{webhook.id}/?status=exhausted").context["listing"]

    assert (len(whole.rows), whole.has_next) == (25, True)
    assert (len(exhausted.rows), exhausted.has_next) == (1, False)


def test_the_log_names_recipients_and_subjects(owner, webhook):
    for data in (
        {"to": "Ada <ada@example.com>", "subject": "Your <b>receipt</b>"},
        {"email": "bo@example.com", "reason": "bounce"},
        {"domainId": "dom_1", "name": "mail.example.com"},
    ):
        event_id = send_test(webhook).event_id
        WebhookEvent.objects.filter(id=event_id).update(body=json.dumps({"type": "delivered", "data": data}))
    gone = send_test(webhook)
    WebhookEvent.objects.filter(id=gone.event_id).delete()

    page = owner.get(f"/dashboard/webhooks/{webhook.id}/").text

    for text in (
        "Ada &lt;ada@example.com&gt;",
        "Your &lt;b&gt;receipt&lt;/b&gt;",
        "bo@example.com",
        "mail.example.com",
    ):
        assert text in page, text
    assert gone.id in page


def test_deleting_requires_confirmation_and_deletes_the_log(owner, webhook):
    delivery = send_test(webhook)
    assert "delivery log will be deleted" in owner.get(f"/dashboard/webhooks/{webhook.id}/delete/").content.decode()
    assert Webhook.objects.exists()

    owner.post(f"/dashboard/webhooks/{webhook.id}/delete/")

    assert not Webhook.objects.exists()
    assert owner.get(f"/dashboard/deliveries/{delivery.id}/").status_code == 404


def exhaust(*deliveries: WebhookDelivery) -> None:
    """Record a last failed attempt that took 120 ms."""
    ids = [delivery.id for delivery in deliveries]
    PendingDelivery.objects.filter(delivery__in=ids).delete()
    attempt = {"at": "2026-11-21T06:20:00.000Z", "durationMs": 120, "statusCode": 503, "error": "status"}
    WebhookDelivery.objects.filter(id__in=ids).update(
        status="exhausted", error="status", attempt_count=9, attempts=[attempt]
    )


def test_a_failing_webhook_and_the_progress_of_retries_are_shown(owner, webhook):
    Webhook.objects.update(failing_since=datetime(2026, 11, 3, 10, 0, tzinfo=UTC))
    for path in ("/dashboard/webhooks/", f"/dashboard/webhooks/{webhook.id}/"):
        assert "failing since 3 Nov 2026, 10:00" in shown_text(owner.get(path))
    delivery = send_test(webhook)
    due_at = datetime(2026, 11, 22, 10, 51, tzinfo=UTC)
    PendingDelivery.objects.update(attempts=4, stage=Stage.WAITING, due_at=due_at)
    assert "Retrying, 4 of 9, next 10:51" in owner.get(f"/dashboard/webhooks/{webhook.id}/").content.decode()

    PendingDelivery.objects.update(stage=Stage.LEASED)
    page = owner.get(f"/dashboard/webhooks/{webhook.id}/").content.decode()

    assert "Retrying" not in page
    assert delivery.id in page


def test_the_health_of_the_newest_deliveries_is_shown(owner, webhook):
    assert "Newest deliveries" not in owner.get(f"/dashboard/webhooks/{webhook.id}/").content.decode()
    good, bad, _ = (send_test(webhook) for _ in range(3))
    exhaust(good, bad)
    WebhookDelivery.objects.filter(id=good.id).update(status="succeeded", error="")

    page = owner.get(f"/dashboard/webhooks/{webhook.id}/").content.decode()

    assert "Newest deliveries (2): 50% succeeded" in page
    assert "median 120 ms, 95th percentile 120 ms" in page


def test_the_chart_has_the_outcomes_of_each_day(owner, webhook):
    path = f"/dashboard/webhooks/{webhook.id}/"
    assert owner.get(path).context["outcomes"].total == 0
    good, bad, _waiting, old = (send_test(webhook) for _ in range(4))
    WebhookDelivery.objects.filter(id=good.id).update(status="succeeded")
    WebhookDelivery.objects.filter(id=bad.id).update(
        status="exhausted", created_at=datetime.now(UTC) - timedelta(days=3)
    )
    WebhookDelivery.objects.filter(id=old.id).update(created_at=datetime.now(UTC) - timedelta(days=CHART_DAYS))

    page = owner.get(path)

    chart = page.context["chart"]
    assert (page.context["outcomes"].by_day, len(chart.labels), chart.running) == (True, CHART_DAYS, "Today, so far")
    assert {one.name: (one.values[-4], one.values[-1]) for one in chart.series} == {
        "Succeeded": (0, 1),
        "Failed": (1, 0),
        "Waiting": (0, 1),
    }
    assert "Only the newest" not in page.text


def test_the_chart_of_a_busy_endpoint_has_the_hours_that_it_counts(owner, webhook, monkeypatch):
    monkeypatch.setattr("webhooks.health.COUNTED", 4)
    monkeypatch.setattr("console.dashboard.pages.webhooks.COUNTED", 4)
    now = datetime.now(UTC)
    for hours in (0, 0, 1, 2, 3):
        WebhookDelivery.objects.filter(id=send_test(webhook).id).update(created_at=now - timedelta(hours=hours))

    page = owner.get(f"/dashboard/webhooks/{webhook.id}/")

    outcomes = page.context["outcomes"]
    # The oldest hour that was read may lack deliveries.
    assert (outcomes.by_day, [counts.total() for counts in outcomes.counts.values()]) == (False, [1, 2])
    assert "Only the newest 4 deliveries are counted." in page.text
    assert "Deliveries per hour" in page.text


def test_attempts_are_shown_once(owner, webhook):
    delivery = send_test(webhook)
    exhaust(delivery)
    WebhookDelivery.objects.update(attempt_count=9)
    text = shown_text(owner.get(f"/dashboard/webhooks/{webhook.id}/"))
    assert text.count("9 attempts") == 1
    assert text.count("Attempts") == 0
    assert "9" not in shown_text(owner.get(f"/dashboard/deliveries/{delivery.id}/")).partition("Details")[2].partition(
        "Created"
    )[0].replace(delivery.id, "").replace(delivery.event_id, "")


def test_settings_and_the_former_secret_are_shown(owner, webhook):
    path = f"/dashboard/webhooks/{webhook.id}/"
    assert "Shown only once" in shown_text(owner.get(path))
    rotate_secret(webhook)
    text = shown_text(owner.get(path))
    assert "The former one is valid until" in text
    assert "Rotate secret" in text


def test_events_are_chosen_in_groups(owner, webhook):
    kinds = [kind for group in EVENT_GROUPS.values() for kind in group]
    assert sorted(kinds) == sorted(WEBHOOK_KINDS)
    page = owner.get("/dashboard/webhooks/add/").text
    assert page.count("<fieldset>") == len(EVENT_GROUPS)
    assert page.count('name="events"') == len(kinds)
    add(owner, events=kinds)
    created = Webhook.objects.exclude(id=webhook.id).get()
    assert sorted(created.events) == sorted(kinds)
    for path in ("", f"{created.id}/"):
        assert "All events" in shown_text(owner.get(f"/dashboard/webhooks/{path}"))


def test_all_failed_events_are_sent_again(owner, webhook, alice):
    other, _ = create_webhook(alice.workspace, url="https://other.example/", events=["sent"])
    failed, discarded, elsewhere = send_test(webhook), send_test(webhook), send_test(other)
    exhaust(failed, elsewhere)
    PendingDelivery.objects.filter(delivery=discarded).delete()
    WebhookDelivery.objects.filter(id=discarded.id).update(status="discarded")
    path = f"/dashboard/webhooks/{webhook.id}/resend/"
    assert path in owner.get(f"/dashboard/webhooks/{webhook.id}/?status=exhausted").content.decode()
    assert "will be sent again" in owner.get(path).content.decode()
    assert not PendingDelivery.objects.exists()

    page = owner.post(path, follow=True).content.decode()

    assert "1 event will be sent again." in page
    statuses = dict(WebhookDelivery.objects.values_list("id", "status"))
    assert statuses == {failed.id: "pending", discarded.id: "discarded", elsewhere.id: "exhausted"}
    entry = PendingDelivery.objects.get()
    assert (entry.delivery_id, entry.stage, entry.attempts) == (failed.id, Stage.READY, 0)
    assert "0 events will be sent again." in owner.post(path, follow=True).content.decode()


def test_the_oldest_failed_events_are_sent_again_first(webhook, monkeypatch):
    monkeypatch.setattr("webhooks.services.REPLAY_AT_ONCE", 2)
    deliveries = [send_test(webhook) for _ in range(3)]
    exhaust(*deliveries)
    for minutes, delivery in enumerate(deliveries):
        at = datetime(2026, 11, 22, 10, minutes, tzinfo=UTC)
        WebhookDelivery.objects.filter(id=delivery.id).update(created_at=at)

    assert [replay_failed(webhook), replay_failed(webhook), replay_failed(webhook)] == [2, 1, 0]
    assert PendingDelivery.objects.filter(delivery=deliveries[2]).exists()


def test_a_delivery_links_to_its_email(owner, webhook, alice, bob):
    mine, foreign = make_email(alice.workspace), make_email(bob.workspace)
    delivery = send_test(webhook)
    page = f"/dashboard/deliveries/{delivery.id}/"
    assert owner.get(page).context["email_id"] is None

    for email, shown in ((mine, mine.id), (foreign, None)):
        WebhookEvent.objects.update(body=json.dumps({"data": {"emailId": email.id}}))
        assert owner.get(page).context["email_id"] == shown
    for body in ("not JSON", "[]", '{"data": {"emailId": 1}}', '{"data": {"emailId": "nothing-like-an-id"}}'):
        WebhookEvent.objects.update(body=body)
        assert owner.get(page).context["email_id"] is None


class TestHeaders:
    LINES = "Authorization: Bearer s3cret:a\r\n\r\n X-Team : mail "

    def test_headers_are_kept_by_their_masked_values_and_never_shown(self, owner):
        add(owner, headers=self.LINES)
        webhook = Webhook.objects.get()
        assert webhook.headers == {"Authorization": "Bearer s3cret:a", "X-Team": "mail"}
        page = owner.get(f"/dashboard/webhooks/{webhook.id}/").content.decode()
        edit = owner.get(f"/dashboard/webhooks/{webhook.id}/edit/")
        assert "X-Team" in page
        assert edit.context["form"].initial["headers"] == "Authorization: ********\nX-Team: ********"
        assert "s3cret" not in page + edit.content.decode()
        # A missing line is removed.
        fields = {"url": "https://shop.example/2", "events": ["sent"], "headers": "Authorization: ********"}
        assert owner.post(f"/dashboard/webhooks/{webhook.id}/edit/", fields).status_code == 302
        assert Webhook.objects.get().headers == {"Authorization": "Bearer s3cret:a"}
