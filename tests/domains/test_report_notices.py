"""Notices about what DMARC reports say: each threshold on both sides, once a week a kind, event and email."""

from datetime import date, timedelta

import pytest
from django.db import connection

from console.system_mail.domain_notices import notify_of_domain
from console.system_mail.models import SystemMail
from domains.models import DomainNotice
from domains.reports.notices import check_reported_domains, find_incidents
from events.models import Event
from tests.domains.report_builders import add_report, broken, count_sent, foreign, forwarded, row
from tests.rows import each

pytestmark = pytest.mark.django_db

TODAY = date(2026, 11, 30)
YESTERDAY = TODAY - timedelta(days=1)


@pytest.fixture(autouse=True)
def _own_servers(settings):
    settings.SPF_MECHANISMS = "ip4:198.51.100.0/24"


@pytest.fixture
def domain(api, alice):
    return alice.workspace.domains.get(name="alice.example")


def kinds(domain):
    return [one.kind.value for one in find_incidents(domain, today=TODAY)]


@each(("ours", "failed", "expected"), [
    (98, 2, []), (97, 3, ["domain.auth_failing"]), (196, 4, []), (195, 5, ["domain.auth_failing"]),
    # Too few to judge.
    (0, 99, []), (0, 100, ["domain.auth_failing"]),
])  # fmt: skip
def test_authentication_fails_below_98_percent_of_a_hundred_messages_of_two_days(domain, ours, failed, expected):
    count_sent(domain, 1000, day=TODAY)
    half = failed // 2
    add_report(domain, row(domain, ours), broken(domain, half), day=YESTERDAY)
    add_report(domain, broken(domain, failed - half), day=TODAY)
    # Three days ago is too long ago, and others are not ours.
    add_report(domain, broken(domain, 900), day=TODAY - timedelta(days=2))
    add_report(domain, foreign(domain, 900), day=TODAY)
    assert kinds(domain) == expected


@each(("usual", "messages", "expected"), [
    (0, 999, []), (0, 1000, ["domain.spoofed"]), (300, 1499, []), (300, 1500, ["domain.spoofed"]),
])  # fmt: skip
def test_a_domain_is_spoofed_at_a_thousand_messages_and_five_times_the_median_of_a_day(
    domain, usual, messages, expected
):
    # Fifteen of 28 days have the usual number: the median.
    for past in range(2, 17):
        add_report(domain, foreign(domain, usual), day=TODAY - timedelta(days=past))
    add_report(domain, foreign(domain, messages), day=YESTERDAY)
    add_report(domain, foreign(domain, 10), day=TODAY)
    assert kinds(domain) == expected


def test_the_days_of_a_flood_are_not_added_up(domain):
    for day in (YESTERDAY, TODAY):
        add_report(domain, foreign(domain, 999), day=day)
    assert kinds(domain) == []


@each(("sent", "passed", "expected"), [
    (0, 999, []), (0, 1000, ["domain.replay"]), (500, 1500, []), (500, 1501, ["domain.replay"]),
    (499, 1498, []), (499, 1499, ["domain.replay"]), (9000, 20_000, []),
])  # fmt: skip
def test_a_replay_is_three_times_and_a_thousand_more_signed_messages_than_were_sent(domain, sent, passed, expected):
    count_sent(domain, sent, day=YESTERDAY)
    add_report(domain, row(domain, passed // 2), day=TODAY)
    add_report(domain, forwarded(domain, passed - passed // 2), day=YESTERDAY)
    # Another organization received much.
    count_sent(domain, 5000, day=TODAY, organization="yahoo")
    assert kinds(domain) == expected


def test_reports_about_days_long_ago_or_ahead_are_no_news(domain):
    add_report(domain, foreign(domain, 5000), day=TODAY - timedelta(days=5))
    add_report(domain, foreign(domain, 5000), day=TODAY + timedelta(days=1))
    assert kinds(domain) == []
    add_report(domain, foreign(domain, 5000), day=TODAY - timedelta(days=4))
    assert kinds(domain) == ["domain.spoofed"]


def check():
    check_reported_domains(notify=notify_of_domain, today=TODAY)


def test_a_notice_is_an_event_and_an_email_once_a_week(domain):
    add_report(domain, foreign(domain, 5000), day=TODAY)
    for _ in range(2):
        check()
    event = Event.objects.get(kind="domain.spoofed")
    assert event.payload == {
        "domainId": domain.id, "name": "alice.example", "date": "2026-11-30", "messages": 5000, "usual": 0,
    }  # fmt: skip
    email = SystemMail.objects.get()
    assert (email.recipient, email.subject) == ("alice@alice.example", "Others send email in the name of alice.example")
    assert "Reports have 5,000 messages of unknown sources on 2026-11-30, and 0 on a usual day" in email.text
    _let_pass("6 days 23 hours")
    check()
    assert Event.objects.filter(kind="domain.spoofed").count() == 1
    _let_pass("1 hour")
    check()
    assert Event.objects.filter(kind="domain.spoofed").count() == SystemMail.objects.count() == 2


def test_each_kind_has_its_own_week(domain):
    add_report(domain, foreign(domain, 5000), day=TODAY)
    check()
    add_report(domain, broken(domain, 500), row(domain, 2000), day=TODAY)
    check()
    assert set(Event.objects.filter(kind__startswith="domain.").values_list("kind", flat=True)) == {
        "domain.spoofed", "domain.auth_failing", "domain.replay",
    }  # fmt: skip
    texts = [one.text for one in SystemMail.objects.all()]
    assert any("500 of 2,500 messages from our servers failed DMARC" in text for text in texts)
    assert any(
        "Google reports 2,000 messages with a valid signature, and received 0 from here" in text for text in texts
    )


def test_a_deleted_workspace_gets_no_notice(domain):
    add_report(domain, foreign(domain, 5000), day=TODAY)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE workspaces_workspace SET deletes_at = now() + interval '1 day'")
    check()
    assert not Event.objects.filter(kind="domain.spoofed").exists()
    assert not DomainNotice.objects.exists()


def _let_pass(interval):
    with connection.cursor() as cursor:
        cursor.execute("UPDATE domains_domainnotice SET sent_at = sent_at - %s::interval", [interval])
