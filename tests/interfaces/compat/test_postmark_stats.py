"""Statistics in Postmark's API, by day and in total."""

from datetime import UTC, date, datetime, timedelta

import pytest

from emails.feedback.reports import ReportedEvent, record_reports
from emails.models import Recipient
from events.kinds import EventKind
from tests.conftest import make_key
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_postmark import error, mail
from tests.rows import each

pytestmark = pytest.mark.django_db


@pytest.fixture
def reported(postmark) -> date:
    """Send four emails, of which one is delivered, one bounces and one complains; return the day."""
    postmark.post("/email/batch", [mail()] * 4)
    kinds = (EventKind.DELIVERED, EventKind.BOUNCED, EventKind.COMPLAINED)
    for recipient, kind in zip(Recipient.objects.order_by("id"), kinds, strict=False):
        record_reports([ReportedEvent(recipient.id, kind, is_recipient_fault=True)])
    return datetime.now(UTC).date()


def test_the_overview_has_totals_and_percentages(postmark, reported):
    body = postmark.get("/stats/outbound").json()
    assert (body["Sent"], body["Bounced"], body["SpamComplaints"]) == (4, 1, 1)
    assert (body["BounceRate"], body["SpamComplaintsRate"]) == (25.0, 25.0)
    assert (body["UniqueOpens"], body["TotalClicks"]) == (0, 0)


@each(
    ("path", "columns"),
    [
        ("sends", {"Sent": 4}),
        ("bounces", {"HardBounce": 1}),
        ("spam", {"SpamComplaint": 1}),
        ("opens", {"Opens": 0, "Unique": 0}),
        ("clicks", {"Clicks": 0, "Unique": 0}),
    ],
)
def test_counts_are_by_day_and_in_total(postmark, reported, path, columns):
    start = reported - timedelta(days=1)
    body = postmark.get(f"/stats/outbound/{path}?fromdate={start}&todate={reported}").json()
    assert body == {
        "Days": [{"Date": start.isoformat(), **dict.fromkeys(columns, 0)}, {"Date": reported.isoformat(), **columns}],
        **columns,
    }


def test_the_range_is_30_days_by_default_and_limited(postmark, reported):
    assert len(postmark.get("/stats/outbound/sends").json()["Days"]) == 30
    earlier = "fromdate=2020-01-01&todate="
    assert len(postmark.get(f"/stats/outbound/sends?{earlier}2020-12-31").json()["Days"]) == 366
    for query in (f"{earlier}2021-01-01", f"{earlier}2019-12-31", "fromdate=soon"):
        assert error(postmark.get(f"/stats/outbound/sends?{query}")) == (422, 300)
    assert postmark.get("/stats/outbound/sends?todate=0001-01-02").json()["Sent"] == 0


def test_statistics_by_tag_are_absent(postmark):
    assert error(postmark.get("/stats/outbound?tag=welcome")) == (501, 501)


def test_statistics_of_other_workspaces_are_not_counted(postmark, reported, bob):
    stranger = Dialect("postmark", make_key(bob.workspace, "read_only"))
    assert stranger.get("/stats/outbound").json()["Sent"] == 0


def test_each_stream_has_its_counts(postmark, reported):
    postmark.post("/message-streams", {"ID": "news", "Name": "News", "MessageStreamType": "Broadcasts"})
    postmark.post("/email/batch", [mail(MessageStream="news", To="bob@example.com")] * 2)
    newest = Recipient.objects.filter(email__stream="news").first()
    record_reports([ReportedEvent(newest.id, EventKind.BOUNCED, is_recipient_fault=True)])
    for query, sent, bounced in (("", 6, 2), ("?messagestream=news", 2, 1), ("?messageStream=outbound", 4, 1)):
        body = postmark.get(f"/stats/outbound{query}").json()
        assert (body["Sent"], body["Bounced"]) == (sent, bounced), query
        days = postmark.get(f"/stats/outbound/sends{query}").json()["Days"]
        assert days[-1] == {"Date": reported.isoformat(), "Sent": sent}
    assert error(postmark.get("/stats/outbound?messagestream=nothing")) == (422, 1235)
