"""Alerts on silent streams, from the emails that were accepted."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError
from django.db.models import F
from django.utils import timezone

from alerts import sends
from alerts.models import Alert, SendPattern
from alerts.silence import SLOT
from alerts.values import read_values
from console.system_mail.models import SystemMail
from console.system_mail.tasks import check_watched_values
from core.workspaces.account_status import suspend_workspace
from core.workspaces.models import Workspace
from emails.models import Email
from events.models import Event
from streams.models import Stream
from streams.services import create_stream
from tests.alerts.builders import let_the_interval_pass, make_alert
from tests.conftest import Account
from tests.plans import plan_of, prefer_indexes
from tests.rows import each

pytestmark = pytest.mark.django_db
HOUR, WEEK = timedelta(hours=1), timedelta(days=7)


@pytest.fixture
def workspace(alice: Account) -> Workspace:
    """Alice's workspace, with the stream news."""
    create_stream(alice.workspace, slug="news", name="News")
    return alice.workspace


def make_emails(
    workspace: Workspace, times: Iterable[datetime], *, stream: str = "main", is_test: bool = False
) -> None:
    Email.objects.bulk_create(
        Email(
            workspace=workspace,
            sender="hi@alice.example",
            from_domain="alice.example",
            to=["ada@example.com"],
            cc=[],
            bcc=[],
            subject="Hello",
            tags=[],
            stream=stream,
            is_test=is_test,
            created_at=time,
            status="delivered",
        )
        for time in times
    )


def hourly(*, until: datetime, since: timedelta = 4 * WEEK) -> Iterator[datetime]:
    """Yield a time each hour, the last one at a time."""
    for number in range(int(since / HOUR)):
        yield until - number * HOUR


def value_of(alert: Alert) -> float | None:
    value = read_values([alert])[alert.id]
    return value.number if value else None


def let_time_pass(time: timedelta) -> None:
    """Let all emails be older, and patterns learned so long ago."""
    Email.objects.update(created_at=F("created_at") - time)
    seconds = int(time.total_seconds())
    for pattern in SendPattern.objects.all():
        pattern.sends = [send - seconds for send in pattern.sends]
        pattern.read_until -= seconds
        pattern.last_send -= seconds
        pattern.learned_at -= time
        pattern.save()


def kinds() -> list[str]:
    return list(Event.objects.filter(kind__startswith="alert.").values_list("kind", flat=True))


@each("stream", ["", "main", "news"])
def test_a_stream_that_stops_begins_it_and_one_that_sends_ends_it(workspace, stream):
    alert = make_alert(workspace, "silent", 2, stream=stream)
    make_emails(workspace, hourly(until=timezone.now() - 1.9 * HOUR), stream=stream or "main")
    check_watched_values()
    assert kinds() == []
    assert 1.8 < value_of(alert) < 2
    let_time_pass(0.25 * HOUR)
    for _ in range(2):
        check_watched_values()
    assert kinds() == ["alert.triggered"]
    email = SystemMail.objects.get()
    assert email.subject.endswith("Silence of 2 usual gaps")
    assert "The last email was accepted 2." in email.text
    # It goes on for as long as nothing is sent.
    let_time_pass(3 * WEEK)
    check_watched_values()
    check_watched_values()
    assert kinds() == ["alert.triggered"]
    make_emails(workspace, [timezone.now()], stream=stream or "main")
    check_watched_values()
    assert kinds() == ["alert.triggered", "alert.resolved"]


def test_other_streams_do_not_end_it(workspace):
    alerts = {slug: make_alert(workspace, "silent", 2, stream=slug) for slug in ("", "main", "news")}
    make_emails(workspace, hourly(until=timezone.now() - 5 * HOUR))
    make_emails(workspace, hourly(until=timezone.now()), stream="news")
    check_watched_values()
    values = {slug: value_of(alert) for slug, alert in alerts.items()}
    assert (values[""], values["news"]) == (0, 0)
    assert values["main"] > 2


@each(
    "change",
    [
        lambda _: Stream.objects.update(paused_at=timezone.now()),
        lambda _: Stream.objects.update(archived_at=timezone.now()),
        lambda workspace: suspend_workspace(workspace, reason="spam"),
    ],
)
def test_what_may_not_send_is_not_silent(workspace, change):
    alert = make_alert(workspace, "silent", 2, stream="news")
    make_emails(workspace, hourly(until=timezone.now() - 5 * HOUR), stream="news")
    check_watched_values()
    assert kinds() == ["alert.triggered"]
    change(workspace)
    check_watched_values()
    assert kinds() == ["alert.triggered", "alert.resolved"]
    assert "show no rhythm, or nothing can be sent now" in SystemMail.objects.order_by("-created_at").first().text
    alert.refresh_from_db()
    assert value_of(alert) is None


class TestLearning:
    @each(("emails", "has_rhythm"), [(79, False), (80, True)])
    def test_twenty_emails_a_week_are_needed(self, workspace, emails, has_rhythm):
        alert = make_alert(workspace, "silent", 2)
        now = timezone.now() - HOUR
        make_emails(workspace, (now - number * 4 * WEEK / emails for number in range(emails)))
        check_watched_values()
        assert bool(SendPattern.objects.get(alert=alert).rates) is has_rhythm
        assert (value_of(alert) is not None) is has_rhythm

    def test_three_weeks_are_needed(self, workspace):
        alert = make_alert(workspace, "silent", 2)
        make_emails(workspace, hourly(until=timezone.now() - 5 * HOUR, since=2 * WEEK))
        check_watched_values()
        assert value_of(alert) is None

    def test_test_emails_are_none(self, workspace):
        alert = make_alert(workspace, "silent", 2)
        make_emails(workspace, hourly(until=timezone.now() - 5 * HOUR), is_test=True)
        check_watched_values()
        assert value_of(alert) is None
        make_emails(workspace, hourly(until=timezone.now() - 5 * HOUR))
        make_emails(workspace, [timezone.now()], is_test=True)
        let_time_pass(timedelta(days=2))
        SendPattern.objects.all().delete()
        check_watched_values()
        assert value_of(alert) > 40

    def test_new_sends_are_added_once_a_day_and_outlive_the_emails(self, workspace):
        alert = make_alert(workspace, "silent", 2)
        make_emails(workspace, hourly(until=timezone.now() - HOUR))
        check_watched_values()
        first = SendPattern.objects.get(alert=alert)
        assert len(first.sends) == 4 * 7 * 24
        assert first.read_until % SLOT == 0
        Email.objects.all().delete()
        check_watched_values()
        assert SendPattern.objects.get(alert=alert).learned_at == first.learned_at
        # The last email was deleted; its time is known.
        assert 0.9 < value_of(alert) < 1.2
        let_time_pass(timedelta(days=1, minutes=5))
        make_emails(workspace, hourly(until=timezone.now() - HOUR, since=23 * HOUR))
        check_watched_values()
        later = SendPattern.objects.get(alert=alert)
        assert later.learned_at > first.learned_at
        assert len(later.sends) == pytest.approx(4 * 7 * 24, abs=2)
        assert later.last_send > first.last_send
        assert sorted(later.sends) == later.sends

    def test_emails_of_five_minutes_are_one_send(self, workspace):
        alert = make_alert(workspace, "silent", 2)
        first = datetime.fromtimestamp(timezone.now().timestamp() // SLOT * SLOT - 10 * SLOT, tz=UTC)
        make_emails(workspace, (first + timedelta(seconds=number) for number in range(100)))
        check_watched_values()
        pattern = SendPattern.objects.get(alert=alert)
        assert pattern.sends == [int(first.timestamp())]
        assert pattern.emails == [sends.IN_A_SLOT]

    def test_a_failure_does_not_stop_the_others(self, workspace, monkeypatch, caplog):
        failing = make_alert(workspace, "silent", 2)
        other = make_alert(workspace, "silent", 3)
        make_emails(workspace, hourly(until=timezone.now() - HOUR))
        read = sends._read_sends

        def fail_once(alert, **values):
            if alert.id == failing.id:
                raise OperationalError("statement timeout")
            return read(alert, **values)

        monkeypatch.setattr(sends, "_read_sends", fail_once)
        check_watched_values()
        assert "could not be read" in caplog.text
        assert (value_of(failing), value_of(other) is None) == (None, False)

    def test_few_are_learned_at_once(self, workspace, monkeypatch):
        monkeypatch.setattr(sends, "LEARNED_AT_ONCE", 2)
        for threshold in range(1, 6):
            make_alert(workspace, "silent", threshold)
        learned = []
        for _ in range(3):
            check_watched_values()
            learned.append(SendPattern.objects.exclude(learned_at=None).count())
        assert learned == [2, 4, 5]


def test_main_behind_more_emails_than_are_looked_at_is_no_false_alarm(workspace, monkeypatch):
    alert = make_alert(workspace, "silent", 2, stream="main")
    make_emails(workspace, hourly(until=timezone.now() - HOUR))
    check_watched_values()
    newest = timezone.now()
    make_emails(workspace, (newest - timedelta(seconds=number / 10) for number in range(sends.LATEST)), stream="news")
    let_time_pass(30 * timedelta(minutes=1))
    let_the_interval_pass()
    check_watched_values()
    assert 0.5 < value_of(alert) < 0.6
    assert kinds() == []


def test_the_last_emails_are_read_from_indexes(db):
    prefer_indexes("enable_bitmapscan")
    plan = plan_of(sends.LAST_SENDS, {"workspaces": [], "slugs": []})
    assert [name for name in ("email_newest", "email_by_stream") if name not in plan] == []
    assert "Seq Scan on emails" not in plan
