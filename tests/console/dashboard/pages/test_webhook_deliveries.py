"""Webhooks of the dashboard: success rates in the list, search in the deliveries, and replay since a time."""

from datetime import timedelta

import pytest
from django.utils import timezone

from console.dashboard.pages import deliveries
from core.lib.ids import new_id
from tests.console.dashboard.conftest import shown_text
from webhooks import services
from webhooks.health import BARS, DeliveryHistory, read_histories
from webhooks.models import PendingDelivery, Webhook, WebhookDelivery, WebhookEvent
from webhooks.services import create_webhook


@pytest.fixture
def webhook(alice) -> Webhook:
    return create_webhook(alice.workspace, url="https://shop.example/hook", events=["delivered", "bounced"])[0]


def deliver(webhook: Webhook, *, to: str = "ada@example.com", kind: str = "delivered", hours: float = 0, **fields):
    """Create a delivery that ended some hours ago."""
    created_at = timezone.now() - timedelta(hours=hours)
    event = WebhookEvent.objects.create(
        id=new_id("evt_"), workspace_id=webhook.workspace_id, body=f'{{"data":{{"to":"{to}"}}}}', created_at=created_at
    )
    values = {"status": "succeeded", "attempt_count": 1, "status_code": 200, **fields}
    return WebhookDelivery.objects.create(
        workspace=webhook.workspace, webhook=webhook, event=event, kind=kind, created_at=created_at, **values
    )


def fail(webhook: Webhook, **fields):
    return deliver(webhook, status="exhausted", error="status", status_code=500, **fields)


def found(owner, webhook: Webhook, query: str) -> set[str]:
    return {row.id for row in owner.get(f"/dashboard/webhooks/{webhook.id}/{query}").context["listing"].rows}


class TestList:
    def test_it_shows_the_success_rate_and_the_last_delivery(self, owner, webhook):
        deliver(webhook, hours=3)
        last = deliver(webhook, hours=1)
        fail(webhook, hours=2)

        (webhook_, history), *_ = owner.get("/dashboard/webhooks/").context["webhooks"]

        assert webhook_ == webhook
        assert history.last_at == last.created_at
        assert history.results == [True, False, True]
        assert "66.67%" in shown_text(owner.get("/dashboard/webhooks/"))

    def test_a_webhook_without_deliveries_has_no_rate(self, owner, webhook):
        (_, history), *_ = owner.get("/dashboard/webhooks/").context["webhooks"]

        assert (history.success_percent, history.bars, history.last_at) == (None, [], None)
        assert "None yet" in shown_text(owner.get("/dashboard/webhooks/"))

    def test_a_delivery_without_an_attempt_does_not_count(self, webhook):
        deliver(webhook, status="pending", attempt_count=0, status_code=None)

        assert read_histories([webhook])[webhook.id].results == []

    def test_the_query_covers_all_webhooks(self, owner, alice, webhook, django_assert_max_num_queries):
        for number in range(5):
            deliver(create_webhook(alice.workspace, url=f"https://shop.example/{number}", events=["sent"])[0])
        owner.get("/dashboard/webhooks/")
        with django_assert_max_num_queries(8):
            owner.get("/dashboard/webhooks/")


def test_the_newest_deliveries_are_on_the_right_of_the_sparkline():
    for results, bars in (
        ([True], [(0, 20, 100)]),
        ([False, True], [(0, 20, 100), (1, 1, 0)]),
        ([True] * 10 + [False] * 190, [(number, 1, 0) for number in range(BARS - 1)] + [(BARS - 1, 20, 100)]),
        ([True, False] * 20, [(number, 10, 50) for number in range(BARS)]),
    ):
        assert DeliveryHistory(None, results).bars == bars


class TestSearch:
    def test_a_recipient_an_event_and_ids_are_found(self, owner, webhook):
        ada, grace = deliver(webhook), deliver(webhook, to="grace@example.com", kind="bounced")

        assert found(owner, webhook, "?search=ADA@example") == {ada.id}
        assert found(owner, webhook, "?event=bounced") == {grace.id}
        assert (
            found(owner, webhook, f"?search={ada.id}") == found(owner, webhook, f"?search={ada.event_id}") == {ada.id}
        )
        assert found(owner, webhook, "?search=ada&event=bounced") == set()
        assert found(owner, webhook, "?search=ada&status=exhausted") == set()
        assert found(owner, webhook, "?event=nonsense") == {ada.id, grace.id}
        assert found(owner, webhook, "?search=%25%00") == set()

    def test_only_the_newest_deliveries_are_searched(self, owner, webhook, monkeypatch):
        monkeypatch.setattr(deliveries, "SEARCHED_DELIVERIES", 2)
        for hours in range(3):
            deliver(webhook, hours=hours)

        page = owner.get(f"/dashboard/webhooks/{webhook.id}/?search=ada")

        assert len(page.context["listing"].rows) == 2
        assert "Searched the newest 2 deliveries only." in shown_text(page)

    def test_deliveries_of_another_webhook_are_not_found(self, owner, alice, webhook):
        other, _ = create_webhook(alice.workspace, url="https://shop.example/other", events=["sent"])
        foreign = deliver(other)

        assert found(owner, webhook, "?search=ada") == found(owner, webhook, f"?search={foreign.id}") == set()


class TestReplay:
    def replay(self, owner, webhook: Webhook, *, hours: float, which: str = "failed"):
        since = timezone.now() - timedelta(hours=hours)
        return owner.post(f"/dashboard/webhooks/{webhook.id}/since/", {"since": since.isoformat()[:16], "which": which})

    def pending(self) -> set[str]:
        return set(PendingDelivery.objects.filter(by_hand=True).values_list("delivery_id", flat=True))

    def test_failed_events_since_a_time_are_sent_again(self, owner, webhook):
        fail(webhook, hours=30)
        failed, discarded = fail(webhook, hours=2), deliver(webhook, status="discarded", hours=1)
        deliver(webhook, hours=1)

        response = self.replay(owner, webhook, hours=24)

        assert response.status_code == 302
        assert self.pending() == {failed.id, discarded.id}
        assert set(WebhookDelivery.objects.filter(status="pending").values_list("id", flat=True)) == self.pending()

    def test_all_events_since_a_time_are_sent_again_except_for_tests(self, owner, webhook):
        failed, accepted = fail(webhook, hours=2), deliver(webhook, hours=1)
        deliver(webhook, is_test=True, hours=1)

        self.replay(owner, webhook, hours=24, which="all")

        assert self.pending() == {failed.id, accepted.id}

    def test_repeating_it_changes_nothing(self, owner, webhook):
        fail(webhook, hours=2)

        for _ in range(2):
            self.replay(owner, webhook, hours=24)

        assert PendingDelivery.objects.count() == 1

    def test_the_oldest_come_first_and_the_page_says_where_to_continue(self, owner, webhook, monkeypatch):
        monkeypatch.setattr(services, "REPLAY_AT_ONCE", 2)
        monkeypatch.setattr("console.dashboard.pages.webhooks.REPLAY_AT_ONCE", 2)
        rows = [fail(webhook, hours=hours) for hours in (5, 4, 3)]

        self.replay(owner, webhook, hours=24)

        assert self.pending() == {row.id for row in rows[:2]}
        assert "replay since" in shown_text(owner.get(f"/dashboard/webhooks/{webhook.id}/"))

    def test_invalid_values_are_form_errors(self, owner, webhook):
        fail(webhook)
        for since, which in (("", "all"), ("2999-01-01T00:00", "all"), ("2026-01-01T00:00", "nonsense")):
            response = owner.post(f"/dashboard/webhooks/{webhook.id}/since/", {"since": since, "which": which})
            assert response.context["form"].errors, (since, which)
        assert not PendingDelivery.objects.exists()
