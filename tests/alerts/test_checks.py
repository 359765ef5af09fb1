"""An alert notifies once when its value reaches the threshold, and once when the value is far below it again."""

import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from alerts import checks
from alerts.checks import check_alerts
from alerts.models import Alert
from alerts.services import delete_alert, update_alert
from alerts.values import read_values
from alerts.watched_value import Amount, Share
from console.system_mail.models import SystemMail
from console.system_mail.tasks import check_watched_values
from core.workspaces.account_status import suspend_workspace
from core.workspaces.deletion import delete_workspace
from core.workspaces.models import Membership, User, Workspace
from events.models import Event
from streams.services import create_stream
from tests.alerts.builders import count, fold, let_the_interval_pass, make_alert, use_quota
from tests.conftest import Account, make_account
from tests.events.feed import publish_committed
from tests.rows import each
from webhooks.models import WebhookDelivery
from webhooks.services import create_webhook

pytestmark = pytest.mark.django_db


def kinds() -> list[str]:
    return list(Event.objects.filter(kind__startswith="alert.").values_list("kind", flat=True))


def payloads() -> list[dict]:
    return list(Event.objects.filter(kind__startswith="alert.").values_list("payload", flat=True))


def is_triggered(alert: Alert) -> bool:
    alert.refresh_from_db()
    return alert.triggered_at is not None


@each("folded", [True, False])
@each(
    ("metric", "threshold", "counts", "triggered"),
    [
        ("bounce_rate", 4, {"rated_sent": 1000, "rated_bounced": 39}, False),
        ("bounce_rate", 4, {"rated_sent": 1000, "rated_bounced": 40}, True),
        ("complaint_rate", 0.07, {"rated_sent": 10_000, "rated_complained": 6}, False),
        # 0.07 * 10000 is more than 700 as a binary number.
        ("complaint_rate", 0.07, {"rated_sent": 10_000, "rated_complained": 7}, True),
        # At and below the minimum of emails.
        ("bounce_rate", 4, {"rated_sent": 99, "rated_bounced": 99}, False),
        ("bounce_rate", 4, {"rated_sent": 100, "rated_bounced": 4}, True),
        ("failure_rate", 10, {"status_clicked": 60, "status_sent": 30, "status_failed": 9, "status_bounced": 1}, False),
        ("failure_rate", 10, {"status_delivered": 60, "status_opened": 30, "status_failed": 10}, True),
        # Queued and cancelled emails have not ended.
        ("failure_rate", 10, {"status_queued": 9, "status_cancelled": 9, "status_sent": 90, "status_failed": 10}, True),
    ],
)  # fmt: skip
def test_an_alert_begins_at_its_threshold(alice: Account, metric, threshold, counts, triggered, folded):
    alert = make_alert(alice.workspace, metric, threshold)
    count(alice.workspace, **counts)
    if folded:
        fold()
    check_watched_values()
    assert is_triggered(alert) == triggered
    assert kinds() == (["alert.triggered"] if triggered else [])
    assert SystemMail.objects.count() == triggered


def test_counters_of_seven_days_count(alice):
    alert = make_alert(alice.workspace)
    count(alice.workspace, age=timedelta(days=7), rated_sent=1000, rated_bounced=1000)
    check_watched_values()
    assert not is_triggered(alert)
    count(alice.workspace, age=timedelta(days=6), rated_sent=100, rated_bounced=4)
    check_watched_values()
    assert is_triggered(alert)


def test_it_notifies_once_when_it_begins_and_once_when_it_ends(alice):
    alert = make_alert(alice.workspace)
    count(alice.workspace, rated_sent=1000, rated_bounced=50)
    for _ in range(3):
        check_watched_values()
    assert kinds() == ["alert.triggered"]
    assert payloads() == [{"alertId": alert.id, "metric": "bounce_rate", "threshold": 4.0, "value": 5.0}]
    email = SystemMail.objects.get()
    assert email.subject == f"Alert in {alice.workspace.name}: Bounce rate at 4%"
    assert "50 of 1,000 recipients in 7 days had an invalid address: 5%." in email.text
    # At nine tenths of the threshold, it goes on.
    count(alice.workspace, rated_sent=1000, rated_bounced=22)
    check_watched_values()
    assert is_triggered(alert)
    count(alice.workspace, rated_sent=1)
    for _ in range(3):
        check_watched_values()
    assert not is_triggered(alert)
    assert kinds() == ["alert.triggered", "alert.resolved"]
    assert payloads()[1]["value"] == 3.59
    assert SystemMail.objects.count() == 2
    assert SystemMail.objects.order_by("-created_at").first().subject.startswith("Alert ended in ")


def test_it_begins_again_after_a_day_at_the_earliest(alice):
    alert = make_alert(alice.workspace, "quota_used", 80)
    Workspace.objects.filter(id=alice.workspace.id).update(own_limits={"emailsPerMonth": 100})
    for used in (80, 10, 90, 10, 90):
        use_quota(alice.workspace, used)
        check_watched_values()
    assert kinds() == ["alert.triggered", "alert.resolved"]
    let_the_interval_pass()
    check_watched_values()
    assert kinds() == ["alert.triggered", "alert.resolved", "alert.triggered"]
    assert is_triggered(alert)


def test_too_few_emails_end_an_alert(alice):
    alert = make_alert(alice.workspace)
    count(alice.workspace, rated_sent=100, rated_bounced=10)
    check_watched_values()
    count(alice.workspace, rated_sent=-1)
    check_watched_values()
    assert not is_triggered(alert)
    assert payloads()[1]["value"] is None
    assert "Fewer than 100 emails in 7 days" in SystemMail.objects.order_by("-created_at").first().text


class TestQuota:
    @pytest.fixture
    def alert(self, alice):
        Workspace.objects.filter(id=alice.workspace.id).update(own_limits={"emailsPerMonth": 500})
        return make_alert(alice.workspace, "quota_used", 80)

    @each(("used", "triggered"), [(0, False), (399, False), (400, True), (500, True), (600, True)])
    def test_it_is_compared_with_the_limit(self, alice, alert, used, triggered):
        use_quota(alice.workspace, used)
        check_watched_values()
        assert is_triggered(alert) == triggered

    def test_a_new_month_ends_it(self, alice, alert):
        use_quota(alice.workspace, 450)
        check_watched_values()
        last_month = datetime.now(UTC).replace(day=1) - timedelta(days=1)
        alice.workspace.usage.update(month=last_month.date().replace(day=1))
        check_watched_values()
        assert not is_triggered(alert)
        assert payloads()[1]["value"] == 0.0

    @each("limit", [None, 0])
    def test_a_plan_without_a_quota_never_begins_it_and_ends_it(self, alice, alert, limit):
        use_quota(alice.workspace, 450)
        check_watched_values()
        assert is_triggered(alert)
        Workspace.objects.filter(id=alice.workspace.id).update(own_limits={"emailsPerMonth": limit})
        check_watched_values()
        assert not is_triggered(alert)
        assert payloads()[1]["value"] is None
        let_the_interval_pass()
        check_watched_values()
        assert not is_triggered(alert)

    def test_each_threshold_is_an_alert(self, alice, alert):
        full = make_alert(alice.workspace, "quota_used", 100)
        use_quota(alice.workspace, 499)
        check_watched_values()
        assert (is_triggered(alert), is_triggered(full)) == (True, False)
        use_quota(alice.workspace, 500)
        check_watched_values()
        assert is_triggered(full)


class TestStreams:
    @pytest.fixture
    def workspace(self, alice):
        for slug in ("news", "offers"):
            create_stream(alice.workspace, slug=slug, name=slug)
        return alice.workspace

    @each("folded", [True, False])
    def test_each_stream_has_its_rate(self, workspace, bob, folded):
        alerts = {slug: make_alert(workspace, stream=slug) for slug in ("main", "news", "offers", "")}
        other = make_alert(bob.workspace)
        count(workspace, rated_sent=900, rated_bounced=9)
        count(workspace, "news", rated_sent=200, rated_bounced=20)
        count(workspace, "offers", rated_sent=50, rated_bounced=50)
        if folded:
            fold()
        values = read_values([*alerts.values(), other])
        shown = {slug: values[alert.id] for slug, alert in alerts.items()}
        assert shown == {
            "main": Share(9, 900),
            "news": Share(20, 200),
            "offers": None,
            "": Share(79, 1150),
        }
        assert values[other.id] is None
        check_watched_values()
        assert {slug: is_triggered(alert) for slug, alert in alerts.items()} == {
            "main": False, "news": True, "offers": False, "": True
        }  # fmt: skip

    def test_main_is_everything_in_a_workspace_without_other_streams(self, alice):
        alert = make_alert(alice.workspace, stream="main")
        count(alice.workspace, rated_sent=100, rated_bounced=4)
        assert read_values([alert]) == {alert.id: Share(4, 100)}

    def test_webhooks_of_other_streams_do_not_get_it(self, workspace, settings):
        settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True
        events = ["alert.triggered", "alert.resolved"]
        hooks = {
            name: create_webhook(workspace, url=f"http://127.0.0.1:9/{name}", events=events, streams=streams)[0].id
            for name, streams in {"all": [], "news": ["news"], "offers": ["offers"]}.items()
        }
        create_webhook(workspace, url="http://127.0.0.1:9/", events=["sent"])
        make_alert(workspace, stream="news")
        count(workspace, "news", rated_sent=200, rated_bounced=20)
        check_watched_values()
        publish_committed()
        delivered = set(WebhookDelivery.objects.values_list("webhook_id", flat=True))
        assert delivered == {hooks["all"], hooks["news"]}


class TestEmails:
    def test_every_active_owner_gets_it_in_their_language(self, alice):
        for email, role, fields in (
            ("anna@example.com", "owner", {"language": "de"}),
            ("gone@example.com", "owner", {"is_active": False}),
            ("member@example.com", "member", {}),
        ):
            user = User.objects.create_user(email=email, password=None, **fields)
            Membership.objects.create(workspace=alice.workspace, user=user, role=role)
        make_alert(alice.workspace, "complaint_rate", 0.1)
        count(alice.workspace, rated_sent=10_000, rated_complained=15)
        check_watched_values()
        emails = {email.recipient: email for email in SystemMail.objects.all()}
        owners = set(
            alice.workspace.memberships.filter(role="owner", user__is_active=True).values_list("user__email", flat=True)
        )
        assert set(emails) == owners
        german = emails["anna@example.com"]
        assert german.subject.startswith("Alarm in ")
        assert "Beschwerderate ab 0,1 %" in german.subject
        assert "15 von 10.000 Empfängern in 7 Tagen haben die E-Mail als Spam gemeldet: 0,15 %." in german.text

    def test_an_alert_without_emails_is_an_event_only(self, alice):
        make_alert(alice.workspace, email_owners=False)
        count(alice.workspace, rated_sent=100, rated_bounced=100)
        check_watched_values()
        assert kinds() == ["alert.triggered"]
        assert not SystemMail.objects.exists()


@each(
    ("change", "is_checked"),
    [
        (lambda workspace: suspend_workspace(workspace, reason="spam"), True),
        (delete_workspace, False),
        (lambda _: Workspace.objects.update(is_proven=False), False),
    ],
)
def test_a_suspended_workspace_is_checked_a_deleted_or_unconfirmed_one_is_not(alice, change, is_checked):
    alert = make_alert(alice.workspace)
    count(alice.workspace, rated_sent=100, rated_bounced=10)
    change(alice.workspace)
    check_watched_values()
    assert is_triggered(alert) is is_checked


def act_during_the_check(monkeypatch, act):
    """Let a check read the values, and then wait for an act."""
    read = checks.read_values

    def read_before(alerts):
        values = read(alerts)
        monkeypatch.setattr(checks, "read_values", read)
        act()
        return values

    monkeypatch.setattr(checks, "read_values", read_before)


class TestConcurrency:
    def test_a_check_that_read_before_another_one_changes_nothing(self, alice, monkeypatch):
        make_alert(alice.workspace)
        count(alice.workspace, rated_sent=100, rated_bounced=10)
        act_during_the_check(monkeypatch, check_watched_values)
        check_watched_values()
        assert kinds() == ["alert.triggered"]
        assert SystemMail.objects.count() == 1

    @pytest.mark.django_db(transaction=True)
    def test_simultaneous_checks_notify_once(self, alice):
        make_alert(alice.workspace)
        count(alice.workspace, rated_sent=100, rated_bounced=10)
        barrier = threading.Barrier(4)
        errors = []

        def check():
            try:
                barrier.wait(30)
                check_watched_values()
            except Exception as error:  # noqa: BLE001 - asserted below
                errors.append(error)
            finally:
                connection.close()

        threads = [threading.Thread(target=check) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not errors
        assert kinds() == ["alert.triggered"]
        assert SystemMail.objects.count() == 1

    @each("change", [lambda alert: update_alert(alert, changes={"threshold": 50}), delete_alert])
    def test_an_alert_that_changed_during_the_check_is_left_to_the_next_one(self, alice, monkeypatch, change):
        alert = make_alert(alice.workspace)
        count(alice.workspace, rated_sent=100, rated_bounced=10)
        act_during_the_check(monkeypatch, lambda: change(alert))
        check_watched_values()
        assert kinds() == []
        assert not SystemMail.objects.exists()

    def test_a_failed_notification_is_rolled_back_and_does_not_stop_the_others(self, alice, caplog):
        make_alert(alice.workspace, threshold=4)
        make_alert(alice.workspace, threshold=5)
        count(alice.workspace, rated_sent=100, rated_bounced=10)
        calls = []

        def notify(alert, **values):
            calls.append(alert.id)
            if len(calls) == 1:
                raise OperationalError("lock timeout")

        check_alerts(notify=notify)
        assert len(calls) == 2
        # The failed one was rolled back with its event.
        assert kinds() == ["alert.triggered"]
        assert Alert.objects.filter(triggered_at=None).count() == 1
        assert "an alert could not be checked" in caplog.text
        check_watched_values()
        assert kinds() == ["alert.triggered"] * 2


def test_the_number_of_queries_does_not_grow_with_the_alerts(alice, bob):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            check_watched_values()
        return len(captured)

    make_alert(alice.workspace)
    for metric in ("quota_used", "latency_p95", "deferred_share", "waiting", "silent"):
        make_alert(alice.workspace, metric, 80)
    make_alert(alice.workspace, "latency_p95", 80, stream="main")
    # Reads the sends of the alert on silence, as once a day.
    check_watched_values()
    first = queries()
    for workspace in (alice.workspace, bob.workspace, *(make_account(f"{n}@example.com").workspace for n in range(3))):
        for threshold in range(10, 12):
            make_alert(workspace, threshold=threshold)
            for metric in ("quota_used", "deferred_share", "waiting", "silent"):
                make_alert(workspace, metric, threshold)
            make_alert(workspace, "latency_p95", threshold, stream="main")
    check_watched_values()
    assert queries() == first


def test_all_alerts_are_checked_in_batches(alice, monkeypatch):
    monkeypatch.setattr(checks, "BATCH", 2)
    for threshold in range(1, 6):
        make_alert(alice.workspace, threshold=threshold)
    count(alice.workspace, rated_sent=100, rated_bounced=10)
    check_watched_values()
    assert kinds() == ["alert.triggered"] * 5


@given(
    part=st.integers(0, 10**9),
    total=st.integers(1, 10**9),
    hundredths=st.integers(1, 10_000),
)
def test_a_value_never_begins_and_ends_an_alert_at_once(part, total, hundredths):
    limit, value = Decimal(hundredths) / 100, Share(part, total)
    assert not (value.reaches(limit) and value.is_far_below(limit))
    assert value.reaches(limit) == (part * 10_000 >= hundredths * total)
    # A threshold of two decimals is reached exactly if the shown value is.
    assert value.reaches(limit) == (Decimal(str(value.number)) >= limit)


@given(number=st.floats(0, 10**6), hundredths=st.integers(1, 10**8))
def test_an_amount_is_compared_as_it_is_shown(number, hundredths):
    limit, value = Decimal(hundredths) / 100, Amount.of(number)
    assert not (value.reaches(limit) and value.is_far_below(limit))
    assert value.reaches(limit) == (Decimal(str(value.number)) >= limit)
    assert 0 <= number - value.number < 0.011


def test_an_alert_ends_below_nine_tenths_of_its_threshold():
    limit = Decimal(10)
    assert [Share(part, 1000).is_far_below(limit) for part in (89, 90)] == [True, False]
    assert [Amount.of(number).is_far_below(limit) for number in (8.99, 9.0)] == [True, False]


@given(hundredths=st.integers(1, 10_000))
def test_the_threshold_is_exact(hundredths):
    alert = Alert(threshold=hundredths / 100)
    assert alert.limit == Decimal(hundredths) / 100
    assert Share(hundredths, 10_000).reaches(alert.limit)
    assert not Share(hundredths - 1, 10_000).reaches(alert.limit)
