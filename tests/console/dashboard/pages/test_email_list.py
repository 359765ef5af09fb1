from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.dashboard.pages.emails import search
from core.counters import counters
from emails.models import Email, Recipient
from events.models import Event
from tests.console.dashboard.conftest import count_queries, csv_rows, make_email, shown_text
from tests.console.dashboard.scenario import make_template


def subjects(owner, query: str) -> set[str]:
    return {email.subject for email in owner.get(f"/dashboard/emails/?{query}").context["listing"].rows}


def with_recipients(workspace, *states: str, **fields) -> Email:
    """Create an email with one recipient for each state."""
    addresses = [f"{number}@example.com" for number in range(len(states))]
    email = make_email(workspace, to=addresses, **fields)
    email.recipients.update(state=states[0])
    Recipient.objects.bulk_create(
        Recipient(email=email, kind="to", position=place, address=addresses[place], state=state)
        for place, state in enumerate(states)
        if place
    )
    return email


class TestFilters:
    def test_by_template(self, owner, alice):
        receipt = make_template(alice.workspace, "Receipt", "s", "h")
        make_email(alice.workspace, subject="From it", template_id=receipt.id)
        make_email(alice.workspace, subject="Without")

        page = owner.get("/dashboard/emails/").content.decode()

        assert f'<option value="{receipt.id}">Receipt</option>' in page
        assert subjects(owner, f"template={receipt.id}") == {"From it"}

    def test_by_a_part_of_the_sender_in_any_case(self, owner, alice):
        make_email(alice.workspace, subject="Billing", sender="Billing <pay@shop.example>")
        make_email(alice.workspace, subject="Support", sender="help@shop.example")

        assert subjects(owner, "sender=PAY@") == {"Billing"}
        assert subjects(owner, "sender=shop.example") == {"Billing", "Support"}
        assert subjects(owner, "sender=%25") == set()

    def test_filters_combine(self, owner, alice):
        both = make_email(alice.workspace, subject="Both", tags=["shop"], sender="a@shop.example")
        other = make_email(alice.workspace, subject="Other", tags=["shop"], sender="b@shop.example")
        for email in (both, other):
            Event.objects.create(email=email, kind="deferred", payload={}, created_at=email.created_at)

        assert subjects(owner, "tag=shop&event=deferred&sender=a%40shop") == {"Both"}

    def test_tags_of_the_newest_emails_are_suggested(self, owner, alice, bob):
        make_email(alice.workspace, tags=["shop", "receipt"])
        make_email(alice.workspace, tags=["shop", "<b>"])
        make_email(bob.workspace, tags=["foreign"])

        page = owner.get("/dashboard/emails/")

        assert page.context["tags"] == ["<b>", "receipt", "shop"]
        assert '<option value="&lt;b&gt;">' in page.content.decode()


class TestCount:
    def test_a_search_shows_the_number_of_hits(self, owner, alice):
        for number in range(30):
            make_email(alice.workspace, tags=["shop"] if number < 28 else [])

        assert owner.get("/dashboard/emails/?tag=shop").context["count"] == "28 emails"
        assert owner.get("/dashboard/emails/?tag=shop&p=2").context["count"] == "28 emails"

    def test_a_date_range_is_counted_up_to_a_bound(self, owner, alice, monkeypatch):
        today = datetime.now(UTC).date()
        for _ in range(3):
            make_email(alice.workspace)

        assert owner.get(f"/dashboard/emails/?from={today}").context["count"] == "3 emails"
        monkeypatch.setattr(search, "MAX_COUNTED", 2)
        assert owner.get(f"/dashboard/emails/?from={today}").context["count"] == "More than 2 emails"

    def test_a_status_is_read_from_the_counters(self, owner, alice):
        counters.add([(counters.CounterKey(alice.workspace.id, datetime.now(UTC), "status.bounced"), 1_000)])
        make_email(alice.workspace, status="bounced")

        assert owner.get("/dashboard/emails/?status=bounced").context["count"] == "1,000 emails"


class TestStatusCounts:
    @pytest.fixture(autouse=True)
    def _counted(self, alice):
        make_email(alice.workspace)
        for key, number in (("status.bounced", 1_000), ("status.delivered", 30), ("test.status.bounced", 5)):
            counters.add([(counters.CounterKey(alice.workspace.id, datetime.now(UTC), key), number)])
        counters.add([(counters.CounterKey(alice.workspace.id, datetime.now(UTC), "gone.status.delivered"), 10)])

    def counts(self, owner, query: str = "") -> dict[str, int]:
        statuses = owner.get(f"/dashboard/emails/?{query}").context["statuses"]
        return {status: count for status, count in statuses.items() if count}

    def test_are_beside_each_status_of_the_mode(self, owner):
        assert self.counts(owner, "test=true") == {"": 5, "bounced": 5}
        # No counter has these filters.
        for query in ("tag=x", "from=2026-01-01", "search=hello", "sender=x"):
            assert self.counts(owner, query) == {}, query
        assert "Bounced <small>1,005</small>" in owner.get("/dashboard/emails/?status=delivered").text
        with CaptureQueriesContext(connection) as queries:
            assert self.counts(owner) == {"": 1_025, "bounced": 1_005, "delivered": 20}

        (counting,) = [query["sql"] for query in queries if "analytics_tallyday" in query["sql"]]
        assert "emails_email" not in counting


class TestDisplay:
    def save(self, owner, **values):
        return owner.post("/dashboard/emails/display/", values)

    def test_has_tags_by_default(self, owner, alice):
        make_email(alice.workspace, tags=["a", "b", "<c>"])

        page = owner.get("/dashboard/emails/").content.decode()

        assert '<small title="a, b, &lt;c&gt;">+1</small>' in page
        assert '<th scope="col">Sender</th>' not in page

    def test_has_the_chosen_columns(self, owner, alice):
        receipt = make_template(alice.workspace, "Receipt", "s", "h")
        make_email(alice.workspace, template_id=receipt.id, opened_at=datetime.now(UTC))

        response = self.save(owner, column=["sender", "template", "opened", "nonsense"], query="status=delivered&p=3")
        page = owner.get("/dashboard/emails/").content.decode()

        assert response.url == "/dashboard/emails/?status=delivered"
        for name in ("Sender", "Template", "Opened"):
            assert f'<th scope="col">{name}</th>' in page
        assert '<th scope="col">Tags</th>' not in page
        assert "<bdi>Receipt</bdi>" in page

    def test_has_the_chosen_number_of_rows(self, owner, alice):
        for number in range(60):
            make_email(alice.workspace, subject=f"Number {number}", tags=["shop"])
        for rows, shown in (("25", 25), ("50", 50), ("100", 60), ("1000", 25), ("", 25)):
            self.save(owner, rows=rows)
            for query in ("", "tag=shop"):
                listing = owner.get(f"/dashboard/emails/?{query}").context["listing"]
                assert (len(listing.rows), listing.has_next) == (shown, shown < 60), (rows, query)

    def test_ends_at_the_same_row_with_longer_pages_and_ignores_an_invalid_cookie(self, owner):
        assert self.save(owner, query="https://evil.example/").url.startswith("/dashboard/emails/?")
        self.save(owner, rows="100")
        assert owner.get("/dashboard/emails/?p=200").context["listing"].number == 50
        for cookie in ("", ":", "tags", "tags:7", "x:50:1", "<b>:25"):
            owner.cookies["email_list"] = cookie
            assert owner.get("/dashboard/emails/").status_code == 200, cookie


class TestPartialFailures:
    def test_are_shown_instead_of_the_status(self, owner, alice):
        expected = {
            ("delivered", "bounced", "delivered"): "1 of 3 bounced",
            ("opened", "failed", "bounced"): "2 of 3 failed",
            ("delivered", "delivered"): None,
            # The status of the email says it.
            ("bounced", "bounced"): None,
            ("bounced",): None,
        }
        emails = {states: with_recipients(alice.workspace, *states) for states in expected}

        failures = owner.get("/dashboard/emails/").context["failures"]

        assert {states: failures.get(email.id) for states, email in emails.items()} == expected
        for states, email in emails.items():
            assert owner.get(f"/dashboard/emails/{email.id}/").context["failures"] == expected[states], states

    def test_take_one_query_for_the_page(self, owner, alice):
        before = count_queries(lambda: owner.get("/dashboard/emails/"))
        for _ in range(25):
            with_recipients(alice.workspace, "delivered", "bounced")
        with CaptureQueriesContext(connection) as after:
            page = owner.get("/dashboard/emails/").content.decode()

        assert page.count("1 of 2 bounced") == 25
        assert len(after) <= before + 1


class TestExport:
    def rows(self, owner, query: str = "") -> list[dict[str, str]]:
        response = owner.get(f"/dashboard/emails/export/?{query}")
        assert response["Content-Disposition"] == 'attachment; filename="emails.csv"'
        return csv_rows(response)

    def test_has_the_filtered_emails_newest_first(self, owner, alice, bob):
        now = datetime.now(UTC)
        make_email(alice.workspace, subject="Older", tags=["shop"], created_at=now - timedelta(hours=1))
        make_email(alice.workspace, subject="=newer", tags=["shop"], created_at=now)
        make_email(alice.workspace, subject="Untagged", created_at=now)
        make_email(bob.workspace, subject="Foreign", tags=["shop"], created_at=now)

        assert [row["subject"] for row in self.rows(owner, "tag=shop&p=7")] == ["'=newer", "Older"]
        assert len(self.rows(owner)) == 3
        assert self.rows(owner, "from=nonsense") == []
        assert 'href="/dashboard/emails/export/?tag=shop"' in owner.get("/dashboard/emails/?tag=shop&p=1").text


def test_a_scheduled_email_shows_its_time(owner, alice):
    make_email(alice.workspace, status="scheduled", scheduled_for=datetime(2026, 12, 24, 18, 0, tzinfo=UTC))
    make_email(alice.workspace, scheduled_for=datetime(2026, 11, 24, 18, 0, tzinfo=UTC))
    page = shown_text(owner.get("/dashboard/emails/"))
    assert "for 24 Dec 2026, 18:00" in page
    assert "24 Nov" not in page
