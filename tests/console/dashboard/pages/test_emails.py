import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.dashboard.pages import usage as usage_page
from console.dashboard.pages.emails import search as email_search
from console.dashboard.pages.usage import project
from console.dashboard.texts import reasons
from console.dashboard.ui import listing
from core.counters import counters
from core.workspaces.models import Usage, Workspace
from core.workspaces.quota import Quota
from emails.listing import pages
from emails.models import Email, QueueEntry
from emails.sending.scheduling import fail_expired
from emails.sending.sending_checks import pause_sending
from emails.states import WaitCause
from events.models import Event
from suppressions.services import suppress_address
from tests.console.dashboard.conftest import make_email
from tests.emails.builders import LONG_AGO, send
from tests.rows import each


def test_the_list_shows_the_newest_first_and_filters_by_status(owner, alice):
    now = datetime.now(UTC)
    make_email(alice.workspace, subject="Older", created_at=now - timedelta(hours=1))
    make_email(alice.workspace, subject="Newer", created_at=now, status="bounced")

    page = owner.get("/dashboard/emails/").text
    bounced = owner.get("/dashboard/emails/?status=bounced").text

    assert page.index("Newer") < page.index("Older")
    assert ("Newer" in bounced, "Older" in bounced) == (True, False)


def test_the_list_has_a_maximum_number_of_pages(owner, alice, monkeypatch):
    monkeypatch.setattr(listing, "MAX_PAGES", 2)
    for number in range(52):
        make_email(alice.workspace, subject=f"Number {number}")

    first, last, beyond = (owner.get(f"/dashboard/emails/?p={number}") for number in (1, 2, 3))

    assert [len(page.context["listing"].rows) for page in (first, last, beyond)] == [25, 25, 25]
    assert "Older" in first.content.decode()
    assert "Page 2; use the API to get older entries" in last.content.decode()
    assert "Older" not in last.content.decode()
    assert beyond.context["listing"].number == 2


def test_no_page_has_a_single_row_of_many(owner, alice):
    made = 0
    for count, sizes in ((25, [25]), (26, [26]), (27, [25, 2]), (51, [25, 26])):
        for _ in range(count - made):
            make_email(alice.workspace, subject="Receipt", search_text="receipt")
        made = count
        for query in ("", "search=receipt&"):
            paths = [f"/dashboard/emails/?{query}p={number}" for number in range(1, len(sizes) + 1)]
            shown = [owner.get(path).context["listing"] for path in paths]
            assert [len(page.rows) for page in shown] == sizes, (count, query)
            assert [page.has_next for page in shown] == [True] * (len(sizes) - 1) + [False], (count, query)


def test_the_detail_page_shows_timeline_and_details(owner, alice):
    email = make_email(alice.workspace, tags=["receipt"], metadata={"order": 4711}, cc=["bo@example.com"])
    Event.objects.create(
        email=email,
        kind="deferred",
        payload={"to": "ada@example.com", "code": 450, "message": "Try again", "reason": "greylisted"},
        created_at=datetime.now(UTC),
    )

    page = owner.get(f"/dashboard/emails/{email.id}/").content.decode()

    for text in (
        "Accepted and queued",
        "another attempt will follow",
        "450 Try again",
        "asks unknown senders to try again later",
    ):
        assert text in page
    for detail in (email.id, "ada@example.com", "bo@example.com", "receipt", "4711"):
        assert detail in page
    assert 'sandbox="allow-same-origin"' in page
    assert 'referrerpolicy="no-referrer"' in page


def test_the_detail_page_accepts_any_payload(owner, alice):
    email = make_email(alice.workspace)
    for payload in ([], "text", {"message": ["<b>", 1]}, {"to": {"a": None}}, {"scheduledFor": "2026"}):
        Event.objects.update(payload=payload, kind="from_tomorrow")
        assert owner.get(f"/dashboard/emails/{email.id}/").status_code == 200, payload


def test_the_detail_page_says_what_an_email_waits_for(owner, api):
    url = f"/dashboard/emails/{send(api)}/"
    version = {"X-Page-Version": owner.get(url).context["refresh"].version}
    assert owner.get(url, headers=version).status_code == 204
    pause_sending()
    assert "The operator has paused all sending." in owner.get(url, headers=version).text
    assert "Der Betreiber hat den Versand angehalten." in owner.get(url, headers={"Accept-Language": "de"}).text


def test_the_detail_page_says_when_an_email_expires_and_what_it_waited_for(owner, api):
    url = f"/dashboard/emails/{send(api, deliverWithin=60)}/"
    assert "<dt>Expires</dt>" in owner.get(url).text
    pause_sending()
    QueueEntry.objects.update(expires_at=LONG_AGO)
    fail_expired()
    assert "it expired, or a server ended its attempts. All sending was paused." in owner.get(url).text
    assert "Der gesamte Versand war angehalten." in owner.get(url, headers={"Accept-Language": "de"}).text
    assert reasons.explain_wait("of tomorrow") == reasons.explain_wait(None) == ""
    assert reasons.WAITS.keys() == set(WaitCause)


def test_an_email_has_no_preview_without_html_and_nothing_to_change(owner, alice):
    email = make_email(alice.workspace, html="")

    assert "<iframe" not in owner.get(f"/dashboard/emails/{email.id}/").text
    for path in (f"{email.id}/preview/", "add/", f"{email.id}/change/", f"{email.id}/delete/", f"{email.id}/history/"):
        assert owner.get(f"/dashboard/emails/{path}").status_code == 404, path


class TestOverview:
    def test_shows_quota_and_latest(self, owner, alice):
        alice.workspace.plan = "free"
        alice.workspace.save(update_fields=["plan"])
        Usage.objects.create(workspace=alice.workspace, month=datetime.now(UTC).date().replace(day=1), used=120)
        make_email(alice.workspace, subject="The latest")

        page = owner.get("/dashboard/").text

        assert "380 left" in page
        assert "The latest" in page
        usage = owner.get("/dashboard/usage/").text
        for text in ("Free plan", "380 left", "7 days", "of 500 emails"):
            assert text in usage


class TestSearch:
    @pytest.fixture(autouse=True)
    def _mail(self, alice, bob):
        for number in range(30):
            make_email(alice.workspace, subject=f"Receipt {number}")
        make_email(bob.workspace, subject="Receipt of Bob")
        for email in Email.objects.all():
            Email.objects.filter(id=email.id).update(search_text=f"ada@example.com\n{email.subject}".lower())

    def found(self, owner, query: str) -> tuple[list[str], bool, str]:
        listing = owner.get(f"/dashboard/emails/?{query}").context["listing"]
        return [email.subject for email in listing.rows], listing.has_next, listing.note

    def test_finds_literally_and_without_case(self, owner):
        assert self.found(owner, "search=rECEIPT%2017") == (["Receipt 17"], False, "")
        assert self.found(owner, "search=R%25t")[0] == []
        assert self.found(owner, "search=Bob")[0] == []

    def test_for_two_characters_searches_the_newest_and_links_to_the_older_ones(self, owner, compare_newest):
        compare_newest(5)

        subjects, _, note = self.found(owner, "search=re&status=delivered")
        assert (len(subjects), note) == (5, "Searched the newest 5 emails only.")
        page = owner.get("/dashboard/emails/?search=re&status=delivered")
        assert "At least 5 emails" in page.text
        (link,) = re.findall(r'<a href="[?]([^"]*)">Search older emails</a>', page.text)
        assert link.startswith("search=re&amp;status=delivered&amp;to=")
        older, _, _ = self.found(owner, link.replace("&amp;", "&"))
        # The end of a range is inclusive.
        assert subjects[-1] in older
        assert not set(older) & set(subjects[:2])

    def test_shows_a_bound_where_there_are_too_many_to_count(self, owner, compare_newest, monkeypatch):
        monkeypatch.setattr(pages, "MAX_COUNTED", 10)
        monkeypatch.setattr(email_search, "MAX_COUNTED", 10)
        compare_newest(28)

        page = owner.get("/dashboard/emails/?search=receipt")
        assert "More than 10 emails" in page.text
        assert page.context["listing"].has_next

    def test_an_invalid_filter_shows_an_error(self, owner):
        for query in ("from=nonsense", "status=nonsense", f"search={'x' * 201}", "from=2026-02-01&to=2026-01-01"):
            page = owner.get(f"/dashboard/emails/?{query}")
            assert page.context["errors"], query
            assert page.context["errors"][0] in html.unescape(page.text), query

    def test_the_total_comes_from_the_counters(self, owner, alice):
        counters.add([(counters.CounterKey(alice.workspace.id, datetime.now(UTC), "status.delivered"), 3_000_000)])

        with CaptureQueriesContext(connection) as queries:
            page = owner.get("/dashboard/emails/").content.decode()

        assert "3,000,000 emails" in page
        assert not [query for query in queries if "count(" in query["sql"].lower()]


class TestActions:
    @pytest.fixture
    def email(self, api):
        return Email.objects.get(id=send(api))

    @pytest.fixture
    def later(self, api):
        at = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        return Email.objects.get(id=send(api, scheduledFor=at))

    def test_resending_requires_confirmation_and_creates_one_copy(self, owner, email, later):
        nonce = owner.get(f"/dashboard/emails/{email.id}/resend/").context["nonce"]
        assert Email.objects.count() == 2

        answers = [owner.post(f"/dashboard/emails/{email.id}/resend/", {"nonce": nonce}) for _ in range(2)]

        assert Email.objects.count() == 3
        assert answers[0].url == answers[1].url != f"/dashboard/emails/{email.id}/"
        assert "<dt>Accepted through</dt><dd>API · " in owner.get(f"/dashboard/emails/{email.id}/").text
        assert "<dt>Accepted through</dt><dd>Dashboard</dd>" in owner.get(answers[0].url).text
        # A nonce of another email is refused.
        owner.post(f"/dashboard/emails/{later.id}/resend/", {"nonce": nonce})
        assert Email.objects.count() == 3
        for nonce in ("", "x" * 5000, "\0", "'; --"):
            response = owner.post(f"/dashboard/emails/{email.id}/resend/", {"nonce": nonce})
            assert response.status_code == 302, nonce

    def test_a_refused_copy_is_a_message(self, owner, alice, email):
        suppress_address(alice.workspace, address="ada@example.com", reason="bounce")
        assert "on the suppression list" in owner.post(f"/dashboard/emails/{email.id}/resend/", follow=True).text
        assert Email.objects.count() == 1

    def test_only_scheduled_emails_are_cancelled_after_a_confirmation(self, owner, later, email):
        assert f"/dashboard/emails/{later.id}/cancel/" in owner.get(f"/dashboard/emails/{later.id}/").text
        assert f"/dashboard/emails/{email.id}/cancel/" not in owner.get(f"/dashboard/emails/{email.id}/").text
        assert "will not be sent" in owner.get(f"/dashboard/emails/{later.id}/cancel/").text
        later.refresh_from_db()
        assert later.status == "scheduled"
        owner.post(f"/dashboard/emails/{later.id}/cancel/")
        later.refresh_from_db()
        assert later.status == "cancelled"

        page = owner.post(f"/dashboard/emails/{email.id}/cancel/", follow=True).text
        assert "Only scheduled emails can be cancelled" in page
        email.refresh_from_db()
        assert email.status == "queued"


def test_an_unknown_reason_has_no_explanation():
    assert reasons.explain_reason("of tomorrow") == reasons.explain_reason(None) == reasons.explain_reason(["x"]) == ""


@each(
    ("receiver", "shown"),
    [("mimecast", "Mail host: Mimecast"), ("acme.example", "Mail host: acme.example"), (None, "")],
)
def test_a_recipient_shows_who_runs_its_mail_host(owner, alice, receiver, shown):
    email = make_email(alice.workspace, status="bounced")
    email.recipients.update(receiver=receiver)
    page = owner.get(f"/dashboard/emails/{email.id}/").text
    assert shown in page
    assert ("Mail host:" in page) == bool(receiver)


def test_a_recipient_shows_the_reason_and_the_reply(owner, alice):
    email = make_email(alice.workspace, status="bounced")
    email.recipients.update(
        state="bounced", reason="mailbox_full", reply_code=552, error_message="5.2.2 Full <b>up</b>"
    )

    page = owner.get(f"/dashboard/emails/{email.id}/").content.decode()

    assert "The mailbox is full." in page
    assert "552 5.2.2 Full &lt;b&gt;up&lt;/b&gt;" in page


class TestUsage:
    def test_a_workspace_of_this_month_has_no_chart_of_one_bar(self, owner):
        response = owner.get("/dashboard/usage/")

        assert (response.context["chart"], len(response.context["history"])) == (None, 1)
        assert "<canvas" not in response.content.decode()

    def test_only_months_since_the_start_are_shown(self, owner, alice):
        this_month = datetime.now(UTC).replace(day=1)
        Workspace.objects.filter(id=alice.workspace.id).update(created_at=this_month - timedelta(days=40))

        response = owner.get("/dashboard/usage/")

        assert [month.used for month in response.context["history"]] == [0, 0, 0][: len(response.context["history"])]
        assert len(response.context["history"]) in {2, 3}
        assert "so far" in response.content.decode()

    def test_use_before_the_creation_is_shown(self, owner, alice):
        year_ago = (datetime.now(UTC).replace(day=1) - timedelta(days=150)).date().replace(day=1)
        Usage.objects.create(workspace=alice.workspace, month=year_ago, used=5)

        history = owner.get("/dashboard/usage/").context["history"]

        assert (history[-1].month, history[-1].used) == (year_ago, 5)

    def test_the_projection_continues_the_pace_of_the_month(self):
        year_ago, this_month = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 6, 11, tzinfo=UTC)
        wrong = {}
        for day, started_at, used, expected in (
            (16, year_ago, 150, 300),
            (4, year_ago, 30, 300),
            (3, year_ago, 30, None),
            (16, year_ago, 0, None),
            (16, year_ago, 6_172, 12_300),
            (30, year_ago, 2_900_001, 3_000_000),
            # A workspace of the 11th: five days of twenty.
            (16, this_month, 50, 200),
            (12, this_month, 50, None),
        ):
            quota = Quota(limit=500, used=used, resets_at=datetime(2026, 7, 1, tzinfo=UTC))
            found = project(quota, started_at=started_at, now=datetime(2026, 6, day, tzinfo=UTC))
            if found != expected:
                wrong[day, started_at, used] = found
        assert wrong == {}

        # It is not below the use so far.
        quota = Quota(limit=5_000, used=1_004, resets_at=datetime(2026, 7, 1, tzinfo=UTC))
        assert project(quota, started_at=year_ago, now=datetime(2026, 6, 30, 23, 59, tzinfo=UTC)) == 1_004

    @pytest.mark.parametrize(("used", "is_over"), [(120, False), (480, True)])
    def test_a_projection_above_the_limit_is_a_warning(self, owner, alice, monkeypatch, used, is_over):
        now = datetime.now(UTC)
        monkeypatch.setattr(usage_page, "project", lambda quota, **_: quota.used + 30)
        Workspace.objects.update(plan="free", created_at=now - timedelta(days=60))
        Usage.objects.create(workspace=alice.workspace, month=now.date().replace(day=1), used=used)

        response = owner.get("/dashboard/usage/")
        page = response.content.decode()

        assert f"about {used + 30} by the end of the month" in page
        assert ("This is more than the plan allows." in page) == is_over
        used_series, expected = response.context["chart"].series
        assert (used_series.values[-1], expected.values[-1], set(expected.values[:-1])) == (used, 30, {0})
