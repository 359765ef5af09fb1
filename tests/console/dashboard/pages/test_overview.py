import json
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.dashboard.pages.overview.selection import DIMENSIONS
from console.dashboard.pages.overview.speed import duration_text
from core.counters import counters
from core.counters.latency import Latency, TimedGroup, bucket_of, latency_changes
from core.counters.slices import Dimension, slice_id
from core.workspaces.models import Workspace
from domains.models import Domain
from domains.record_checks.results import RecordCheck, RecordStatus, VerificationResult, to_json
from emails.models import Email
from events.models import Event
from events.sequencer import sequence_events
from streams.services import create_stream
from tests.console.dashboard.conftest import make_email
from tests.console.dashboard.scenario import make_template

NOON = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(hours=1)


@pytest.fixture
def workspace(alice):
    """Return a workspace of a year ago with one email."""
    make_email(alice.workspace, tags=["shop"])
    Workspace.objects.filter(id=alice.workspace.id).update(created_at=NOON - timedelta(days=365))
    return alice.workspace


def count(workspace, key: str, number: int, *, days: int = 0, slice_=None) -> None:
    slices = (slice_,) if slice_ else ()
    key = counters.CounterKey(workspace.id, NOON - timedelta(days=days), key, slices)
    counters.add([(key, number)])


def metrics(page) -> dict[str, tuple]:
    return {metric.tone: (metric.count, metric.rate, metric.before) for metric in page.context["metrics"]}


class TestPeriod:
    def test_sums_and_rates_are_compared_with_the_period_before(self, owner, workspace):
        for days, key, number in (
            (0, "status.delivered", 30), (0, "reached.delivered", 15),
            (8, "status.delivered", 70), (8, "reached.delivered", 70), (40, "status.delivered", 200),
        ):  # fmt: skip
            count(workspace, key, number, days=days)

        week, month = (metrics(owner.get(f"/dashboard/?days={days}")) for days in (7, 30))

        assert (week["all"], week["delivered"]) == ((30, None, "70"), (15, 50.0, "100%"))
        assert (month["all"], month["delivered"]) == ((100, None, "200"), (85, 85.0, "0%"))

    def test_a_period_before_the_workspace_is_no_data(self, owner, workspace):
        Workspace.objects.filter(id=workspace.id).update(created_at=NOON - timedelta(days=3))
        count(workspace, "status.delivered", 5)

        page = owner.get("/dashboard/?days=7")

        assert metrics(page)["all"] == (5, None, None)
        assert page.context["volume"].series[0].values == [None, None, None, 0, 0, 0, 5]
        assert [row.counts is None for row in page.context["rows"]] == [False] * 4 + [True] * 3
        assert page.content.decode().count("no earlier data") == 5

    def test_a_custom_range_ends_on_its_last_day(self, owner, workspace):
        for days in (9, 10, 12, 13):
            count(workspace, "status.sent", 1, days=days)
        first, last = (NOON.date() - timedelta(days=days) for days in (12, 10))

        page = owner.get(f"/dashboard/?from={first}&to={last}")

        assert metrics(page)["all"] == (2, None, "1")
        assert len(page.context["rows"]) == 3
        assert page.context["volume"].running == ""

    def test_an_invalid_period_falls_back_to_the_default(self, owner, workspace):
        queries = (
            "", "days=8", "days=nonsense", "days=-7", "days=٧", "from=2026-01-01", "from=2026-13-01&to=2026-13-02",  # noqa: RUF001
            "from=2026-02-01&to=2026-01-01", "from=2001-01-01&to=2026-01-01", "from=2999-01-01&to=2999-01-02",
            "from=0001-01-01&to=0001-01-05",
        )  # fmt: skip
        pages = {query: owner.get(f"/dashboard/?{query}").context for query in queries}
        assert [
            query for query, page in pages.items() if (page["period"].days, page["period"].is_custom) != (14, False)
        ] == []
        # Today is marked as running.
        assert pages[""]["volume"].running == "Today, so far"
        assert [row.is_running for row in pages[""]["rows"]] == [True] + [False] * 13


class TestOutcomes:
    def test_each_email_is_in_one_series(self, owner, workspace):
        for key, number in (
            ("delivered", 1), ("opened", 2), ("clicked", 4), ("sent", 8), ("bounced", 16), ("cancelled", 100),
            ("scheduled", 100),
        ):  # fmt: skip
            count(workspace, f"status.{key}", number)

        chart = owner.get("/dashboard/").context["volume"]

        last = {series.name: series.values[-1] for series in chart.series}
        assert last == {"Delivered": 7, "Sent": 8, "Bounced": 16}

    def test_rates_are_of_seven_days_with_their_limits(self, owner, workspace, settings):
        settings.COMPLAINT_WARN_PERCENT = None
        settings.BOUNCE_WARN_PERCENT = 4
        for days, sent, bounced, complained in ((0, 10, 0, 1), (6, 1_990, 50, 2), (7, 2_000, 400, 0)):
            for name, number in (("sent", sent), ("bounced", bounced), ("complained", complained)):
                count(workspace, f"rated.{name}", number, days=days)

        bounces, complaints = owner.get("/dashboard/?days=7").context["rates"]

        assert (bounces.rate, bounces.limit, bounces.is_above) == ("2.5%", "4%", False)
        assert bounces.chart.series[0].values[0] == pytest.approx(100 * 450 / 3_990)
        assert (complaints.rate, complaints.limit, complaints.is_above) == ("0.15%", "0.1%", True)

    def test_a_rate_of_few_emails_is_not_shown(self, owner, workspace):
        count(workspace, "rated.complained", 1)
        for more, rate in ((99, ""), (1, "1%")):
            count(workspace, "rated.sent", more, days=2)
            page = owner.get("/dashboard/")
            _bounces, complaints = page.context["rates"]
            assert (complaints.rate, complaints.is_empty) == (rate, not rate)
            assert ("Shown from 100 emails in seven days." in page.text) == (not rate)

    def test_each_rate_is_one_number_on_the_page(self, owner, workspace):
        count(workspace, "rated.sent", 300, days=3)
        count(workspace, "rated.bounced", 10, days=2)

        page = owner.get("/dashboard/")

        bounces, complaints = page.context["rates"]
        assert [row.rates for row in page.context["rows"]] == list(
            zip(bounces.rates[::-1], complaints.rates[::-1], strict=True)
        )
        assert (bounces.rate, page.context["health"][0].value) == ("3.33%", "3.33% (limit 5%)")
        # The day of the bounces had no other email: its own rate would be no number.
        assert page.context["rows"][2].rates == (pytest.approx(100 * 10 / 300), 0)
        assert page.text.count(">3.33%<") == 4  # the heading of the chart, and three days of the table

    def test_legends_name_only_the_lines_of_the_picture(self, owner, workspace):
        count(workspace, "rated.sent", 1000)
        for more, is_shown in ((10, False), (15, True)):
            count(workspace, "rated.bounced", more)
            page = owner.get("/dashboard/")
            bounces, complaints = page.context["rates"]
            assert (bounces.has_limit_line, complaints.has_limit_line) == (is_shown, False)
            assert page.text.count('class="pr-key-limit"') == is_shown
            chart = json.loads(bounces.chart.json)["series"][0]
            assert (chart["hasLimitLine"], chart["top"] > chart["limit"]) == (is_shown, is_shown)

    def test_a_volume_of_nothing_has_no_legend(self, owner, workspace):
        assert owner.get("/dashboard/").context["volume"].legend == []
        count(workspace, "status.sent", 1)
        assert [series.name for series in owner.get("/dashboard/").context["volume"].legend] == ["Sent"]

    def test_a_rate_needs_the_days_before_a_short_period(self, owner, workspace):
        count(workspace, "rated.sent", 200, days=6)
        count(workspace, "rated.bounced", 2)
        today = NOON.date()

        bounces, _complaints = owner.get(f"/dashboard/?from={today}&to={today}").context["rates"]

        assert bounces.chart.series[0].values == [1.0]


class TestSelection:
    def test_shows_only_its_emails(self, owner, workspace):
        count(workspace, "status.sent", 5)
        for number, dimension in enumerate(DIMENSIONS, start=1):
            count(workspace, "status.sent", number, slice_=slice_id(workspace.id, dimension, "x:y"))

        assert metrics(owner.get("/dashboard/"))["all"][0] == 5 + sum(range(1, len(DIMENSIONS) + 1))
        for number, dimension in enumerate(DIMENSIONS, start=1):
            page = owner.get("/dashboard/", {"show": f"{dimension}:x:y"})
            assert metrics(page)["all"][0] == number, dimension
            assert f'<option value="{dimension}:x:y" selected>x:y</option>' in page.text
        # An invalid selection shows all.
        for show in ("tag:", "tag", "nonsense:x", f"tag:{'x' * 256}", ":"):
            page = owner.get("/dashboard/", {"show": show})
            assert (page.context["selection"].value, metrics(page)["all"]) == (
                "",
                metrics(owner.get("/dashboard/"))["all"],
            ), show

    def test_offers_domains_templates_and_tags(self, owner, workspace, bob):
        Domain.objects.create(workspace=workspace, name="alice.example")
        receipt = make_template(workspace, "Receipt", "s", "h")
        make_email(bob.workspace, tags=["foreign"])

        groups = owner.get("/dashboard/").context["selection"].groups

        assert [group.options for group in groups] == [
            [("domain:alice.example", "alice.example")], [(f"template:{receipt.id}", "Receipt")], [("tag:shop", "shop")]
        ]  # fmt: skip

    def test_is_read_in_one_query_for_any_number_of_emails(self, owner, workspace):
        shop = slice_id(workspace.id, Dimension.TAG, "shop")
        for days in range(30):
            make_email(workspace, tags=["shop"])
            count(workspace, "status.sent", 1, days=days, slice_=shop)

        with CaptureQueriesContext(connection) as queries:
            page = owner.get("/dashboard/?days=90&show=tag:shop")

        # The queue statistics are cached for a second, so the number of all queries varies.
        reading = [query["sql"] for query in queries if "requested" in query["sql"]]
        # The version of the page, the health, and the metrics.
        assert [shop.hex in sql.replace("-", "") for sql in reading] == [False, False, True]
        assert sum("emails_email" in query["sql"] for query in queries) <= 4
        assert metrics(page)["all"][0] == 30


class TestNewestEvents:
    def test_they_are_those_of_the_workspace_newest_first(self, owner, workspace, bob):
        make_email(bob.workspace, subject="Foreign")
        late = make_email(workspace, subject="Late")
        sequence_events()

        page = owner.get("/dashboard/")

        events = page.context["events"]
        assert [(event.title, event.subject) for event in events[:3]] == [
            ("Delivered", "Late"),
            ("Accepted and queued", "Late"),
            ("Delivered", "Hello"),
        ]
        assert (events[0].address, events[0].email_id, events[0].is_new) == ("ada@example.com", late.id, True)
        assert len(events) == 4
        assert "Foreign" not in page.text

    def test_a_stream_has_its_own(self, owner, workspace):
        news = create_stream(workspace, slug="news", name="News", kind="bulk")
        make_email(workspace, subject="Offer", stream=news.slug)
        sequence_events()
        events = owner.get("/dashboard/?stream=news").context["events"]
        assert [event.subject for event in events] == ["Offer", "Offer"]

    def test_an_event_that_changes_no_counter_changes_the_page(self, owner, workspace):
        sequence_events()
        version = owner.get("/dashboard/").context["refresh"].version
        assert owner.get("/dashboard/", headers={"X-Page-Version": version}).status_code == 204
        email = Email.objects.get()
        record = {"workspace_id": workspace.id, "email": email, "recipient": email.recipients.get()}
        Event.objects.create(**record, kind="opened", payload={"to": "ada@example.com"}, created_at=datetime.now(UTC))
        sequence_events()

        page = owner.get("/dashboard/", headers={"X-Page-Version": version})

        assert (page.status_code, page.context["events"][0].title) == (200, "Opened")


class TestHealth:
    @pytest.fixture(autouse=True)
    def _direct(self, settings):
        settings.DELIVERY_TRANSPORT = "direct"

    def test_of_a_trial_needs_no_dns_records(self, owner, workspace, settings):
        settings.DELIVERY_TRANSPORT = "inbox"
        Domain.objects.create(workspace=workspace, name="b.example")

        health = self.health(owner)

        assert list(health) == ["Bounce rate", "Complaint rate", "DNS records"]
        assert health["DNS records"] == ("neutral", "not needed", "All emails stay in the built-in inbox.")

    def health(self, owner) -> dict[str, tuple[str, str, str]]:
        return {item.title: (item.tone, item.value, item.advice) for item in owner.get("/dashboard/").context["health"]}

    def test_compares_the_rates_with_their_limits(self, owner, workspace):
        count(workspace, "rated.sent", 1000, days=6)
        count(workspace, "rated.complained", 500, days=7)
        for more, tone, shown in (
            (10, "success", "1% (limit 5%)"),
            (20, "warning", "3% (limit 5%)"),
            (21, "danger", "5.1% (limit 5%)"),
        ):
            count(workspace, "rated.bounced", more)
            health = self.health(owner)
            assert health["Bounce rate"][:2] == (tone, shown)
            assert bool(health["Bounce rate"][2]) == (tone != "success")
            assert health["Complaint rate"] == ("success", "0% (limit 0.1%)", "")
        assert "Rates of the last 7 days, without emails to the simulator." in owner.get("/dashboard/").text

    def test_the_verdict_is_the_first_of_the_worst_items(self, owner, workspace, settings):
        settings.DELIVERY_TRANSPORT = "inbox"
        for sent, bounced, complained, expected in (
            (1000, 0, 0, ("success", "Nothing needs your attention.")),
            (0, 30, 0, ("warning", "Bounce rate: 3% (limit 5%)")),
            (0, 0, 2, ("danger", "Complaint rate: 0.2% (limit 0.1%)")),
        ):
            for name, number in (("sent", sent), ("bounced", bounced), ("complained", complained)):
                count(workspace, f"rated.{name}", number)
            page = owner.get("/dashboard/")
            assert (page.context["verdict"].tone, page.context["verdict"].text) == expected
            assert ('pr-verdict" open' in page.text) == (expected[0] != "success")

    def test_few_emails_are_not_judged(self, owner, workspace):
        count(workspace, "rated.sent", 99)
        count(workspace, "rated.complained", 1)
        assert self.health(owner)["Complaint rate"] == ("neutral", "1.01% (limit 0.1%)", "")
        count(workspace, "rated.sent", 1)
        assert self.health(owner)["Complaint rate"][:2] == ("danger", "1% (limit 0.1%)")

    def test_a_selection_is_named_beside_its_rates(self, owner, workspace):
        count(workspace, "rated.sent", 1000)
        count(workspace, "rated.sent", 1000, slice_=slice_id(workspace.id, Dimension.TAG, "shop"))
        whole, shop = owner.get("/dashboard/").text, owner.get("/dashboard/?show=tag:shop").text
        assert "Bounce rate · <bdi>shop</bdi>" in shop
        assert ("Of the whole workspace." in shop, "Of the whole workspace." in whole) == (True, False)

    def test_without_emails_has_no_data(self, owner, workspace):
        health = self.health(owner)

        assert health["Bounce rate"] == ("neutral", "no data", "")
        assert health["Domain"][1] == "none"

    def test_names_the_weakest_dmarc_policy(self, owner, workspace):
        strong = RecordCheck(RecordStatus.VALID, found="v=DMARC1; p=reject")
        domains = [
            Domain.objects.create(workspace=workspace, name=name, status="verified", verified_at=NOON)
            for name in ("a.example", "b.example")
        ]
        for verdict, policy, expected in (
            ("absent", None, ("warning", "no policy")),
            ("wrong", "v=DMARC1; p=reject", ("warning", "no policy")),
            ("right", "v=DMARC1; p=none; rua=mailto:a@b.example", ("neutral", "none")),
            ("right", "v=DMARC1;p = Quarantine", ("success", "quarantine")),
            ("right", "v=DMARC1; sp=none; p=reject", ("success", "reject")),
        ):
            for domain, dmarc in zip(domains, (strong, RecordCheck(RecordStatus(verdict), found=policy)), strict=True):
                domain.findings = to_json(
                    VerificationResult({}, spf=strong, dmarc=dmarc, return_path=strong, mail=strong)
                )
                domain.save()
            assert self.health(owner)["DMARC"][:2] == expected, (verdict, policy)

    def test_names_a_domain_that_is_not_verified(self, owner, workspace):
        Domain.objects.create(workspace=workspace, name="a.example", status="verified", verified_at=NOON)
        Domain.objects.create(workspace=workspace, name="b.example")

        assert self.health(owner)["b.example"][:2] == ("warning", "not verified")


class TestSpeed:
    def test_is_shown_with_the_slow_receivers_once_there_is_data(self, owner, workspace):
        assert owner.get("/dashboard/").context["speed"] is None
        self.time(workspace, 0.5, 90)
        self.time(workspace, 400, 30, receiver="google")
        self.time(workspace, 4000, 40, receiver="telekom")
        self.time(workspace, 9000, 19, receiver="yahoo")
        self.time(workspace, 20, 90, receiver="apple")

        page = owner.get("/dashboard/?days=7")

        speed = page.context["speed"]
        assert [(one.name, one.recipients) for one in speed.slow] == [("T-Online", 40), ("Google", 30)]
        assert (speed.p95, round(speed.within_60_seconds)) == ("2.4 h", 67)
        assert "Slow receivers (95% within)" in page.text
        assert "<h3>Geschwindigkeit</h3>" in owner.get("/dashboard/", headers={"accept-language": "de"}).text
        assert owner.get("/dashboard/", {"show": "tag:shop"}).context["speed"] is None

    def test_of_a_stream_has_its_recipients_only(self, owner, workspace):
        create_stream(workspace, slug="codes", name="Codes")
        self.time(workspace, 3, 9, stream="codes")
        self.time(workspace, 300, 9)

        shown = {name: owner.get(f"/dashboard/?stream={name}").context["speed"] for name in ("codes", "main", "")}

        assert [(one.within_10_seconds, one.slow) for one in shown.values()] == [(100, []), (0, []), (50, [])]

    def test_names_a_duration_in_its_unit(self):
        shown = [duration_text(seconds) for seconds in (0.139, 9.96, 119, 120, 6000, 7200, 86_400, 172_800)]
        assert shown == ["0.1 s", "10.0 s", "119 s", "2.0 min", "100 min", "2.0 h", "24 h", "2.0 days"]

    def time(self, workspace, seconds: float, number: int, *, stream: str = "", receiver: str = "") -> None:
        """Count recipients that had their outcome after a time."""
        group = TimedGroup(workspace.id, stream, receiver, Latency.OUTCOME, bucket_of(seconds))
        counters.add(latency_changes({group: number}, at=NOON))
