"""`GET /v1/emails` with more emails than a request compares: pages, totals and plans (docs/decisions/0245)."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.counters import counters
from core.lib.ids import to_uuid
from core.workspaces.key_limits import KeyLimits
from emails.api import pagination
from emails.listing import export, pages, search
from emails.listing.pages import Effort
from emails.models import Email
from tests.conftest import Account, Api, make_key
from tests.rows import each

# The newest has the number 1. Every second email has the tag `often`, and only the oldest two have `rare`. Every fourth
# was opened, and the oldest complained.
EMAILS = 400
# The planner scans small tables.
LARGE = {"enable_seqscan": "off"}
FILL = """
WITH email AS (
    INSERT INTO emails_email (id, workspace_id, sender, from_domain, "to", cc, bcc, subject, search_text, tags, headers,
                              track_opens, track_clicks, created_at, status, retry_count, stream, template_id)
    SELECT (lpad(to_hex(%(count)s - n), 8, '0') || substr(md5(n::text), 1, 24))::uuid, %(workspace)s, 'a@alice.example',
           CASE WHEN n = %(count)s THEN 'old.example' ELSE 'alice.example' END, '{}', '{}', '{}', 'Number ' || n,
           'number ' || n || CASE WHEN n > %(count)s - 2 THEN ' rarely' ELSE '' END,
           array_remove(ARRAY[CASE WHEN n %% 2 = 0 THEN 'often' END,
                              CASE WHEN n > %(count)s - 2 THEN 'rare' END], NULL),
           '{}', true, true, '2026-03-15T12:00:00Z'::timestamptz - n * interval '1 second', 'sent', 0,
           CASE WHEN n %% 100 = 0 THEN 'alerts' ELSE 'main' END,
           CASE WHEN n > %(count)s - 2 THEN 'tpl_rare' END
      FROM generate_series(1, %(count)s) n
    RETURNING id, created_at, subject, tags
)
INSERT INTO emails_event (id, email_id, kind, payload, created_at)
SELECT gen_random_uuid(), id, kind, '{}', created_at
  FROM email CROSS JOIN LATERAL unnest(array_remove(ARRAY['queued', 'sent',
           CASE WHEN subject ~ '(00|20|40|60|80)$' THEN 'opened' END,
           CASE WHEN subject = 'Number ' || %(count)s THEN 'complained' END], NULL)) AS kind
"""

pytestmark = pytest.mark.django_db


def fill(account: Account, count: int = EMAILS) -> None:
    workspace = account.workspace.id
    with connection.cursor() as cursor:
        cursor.execute(FILL, {"workspace": to_uuid(workspace, prefix="ws_"), "count": count})
        cursor.execute("ANALYZE emails_email, emails_event")
    created_at = Email.objects.first().created_at  # type: ignore[union-attr]
    counters.add([(counters.CounterKey(workspace, created_at, "status.sent"), count)])


@pytest.fixture
def _many(alice: Account, monkeypatch) -> None:
    """Let a request compare at most 100 emails, or 50 for events, and count up to 30."""
    fill(alice)
    monkeypatch.setattr(pages, "SAMPLED", 20)
    monkeypatch.setattr(pages, "FREQUENT", 2)
    monkeypatch.setattr(pages, "MAX_COUNTED", 30)
    monkeypatch.setattr(pages, "PAGE_EFFORT", Effort(walked=100, walked_for_events=50, index_milliseconds=10_000))


def page_of(api: Api, **query) -> dict:
    response = api.get("/emails", {"limit": 10, **query})
    assert response.status_code == 200, response.content
    return response.json()


def numbers(page: dict) -> list[int]:
    return [int(email["subject"].removeprefix("Number ")) for email in page["data"]]


def continue_all(api: Api, **query) -> list[int]:
    """Return the numbers of all matches, read as a client does: page by page, then from continueTo on."""
    found: dict[int, None] = {}
    position: dict = {"page": 1}
    while True:
        page = page_of(api, **{**query, **position})
        found |= dict.fromkeys(numbers(page))
        if "continueTo" in page:
            assert page["continueTo"] != position.get("to")
            position = {"page": 1, "to": page["continueTo"]}
        elif page["page"] * page["limit"] >= page["total"]:
            return list(found)
        else:
            position = {**position, "page": position["page"] + 1}


@pytest.mark.usefixtures("_many")
class TestTotals:
    def test_those_of_counters_are_exact_for_any_number(self, api: Api):
        for query in ({}, {"status": "sent"}, {"status": "sent,opened"}, {"test": "false"}):
            page = page_of(api, **query)
            assert (page["total"], "totalIsExact" in page, numbers(page)) == (EMAILS, False, list(range(1, 11)))

    @each("query", [
        {"tag": "rare"}, {"search": "rarely"}, {"event": "complained,failed", "tag": "rare"},
        {"tag": "rare", "status": "sent"}, {"tag": "rare", "search": "number"}, {"tag": "rare", "event": "sent"},
    ])  # fmt: skip
    def test_rare_matches_are_found_by_their_index_and_counted(self, api: Api, query):
        page = page_of(api, **query)
        expected = [EMAILS] if "complained" in query.get("event", "") else [EMAILS - 1, EMAILS]
        assert (page["total"], numbers(page)) == (len(expected), expected)
        assert not page.keys() & {"totalIsExact", "continueTo"}

    @each(("second", "total", "is_exact"), [(30, 30, True), (31, 31, False), (32, 31, False)])
    def test_a_total_up_to_the_bound_is_exact(self, api: Api, second, total, is_exact):
        page = page_of(api, **{"from": f"2026-03-15T11:59:{60 - second:02}Z"})
        assert (page["total"], page.get("totalIsExact", True)) == (total, is_exact)

    def test_a_total_above_the_bound_is_a_lower_bound(self, api: Api):
        for query in ({"tag": "often"}, {"from": "2000-01-01"}, {"search": "number"}, {"search": "n"}):
            page = page_of(api, **query)
            assert (page["total"], page["totalIsExact"], "continueTo" in page) == (31, False, False), query

    def test_it_is_above_the_position_as_long_as_there_are_more_pages(self, api: Api):
        for number in (3, 4):
            page = page_of(api, tag="often", page=number)
            assert (page["total"], page["totalIsExact"]) == (max(31, number * 10 + 1), False)
        assert page_of(api, tag="often", page=5)["total"] == 50, "the last page that can be reached"
        last = page_of(api, **{"from": "2000-01-01", "page": 40})
        assert (last["total"], "totalIsExact" in last, len(last["data"])) == (EMAILS, False, 10)


@pytest.mark.usefixtures("_many")
class TestPages:
    @each(("query", "is_wanted"), [
        ({"tag": "often"}, lambda number: number % 2 == 0),
        ({"search": "n"}, lambda _: True),
        ({"event": "sent"}, lambda _: True),
        ({"event": "opened"}, lambda number: number % 20 == 0),
        ({"stream": "main"}, lambda number: number % 100 != 0),
        ({"tag": "often", "event": "opened"}, lambda number: number % 20 == 0),
    ])  # fmt: skip
    def test_all_matches_are_read_with_continue_to(self, api: Api, query, is_wanted):
        assert continue_all(api, **query) == [number for number in range(1, EMAILS + 1) if is_wanted(number)]

    def test_pages_do_not_overlap_and_have_the_order_of_the_list(self, api: Api):
        found = [numbers(page_of(api, tag="often", page=number)) for number in (1, 2, 3, 4, 5)]
        assert [number for page in found for number in page] == list(range(2, 101, 2))

    def test_without_a_match_in_the_compared_emails_the_list_continues(self, api: Api):
        # An event that is frequent elsewhere has no index.
        page = page_of(api, event="clicked")
        assert (page["data"], page["total"], page["totalIsExact"]) == ([], 0, False)
        oldest = numbers(page_of(api, **{"from": page["continueTo"], "page": 5}))[-1]
        assert oldest == 50
        assert continue_all(api, event="clicked") == []

    def test_a_stream_is_read_in_order_however_rare(self, api: Api):
        page = page_of(api, stream="alerts")
        assert (numbers(page), page["total"]) == ([100, 200, 300, 400], 4)
        assert not page.keys() & {"totalIsExact", "continueTo"}

    def test_limits_of_a_key_are_compared_as_filters_are(self, alice: Account):
        own = Api(make_key(alice.workspace, "sending_access", limits=KeyLimits(domains=("old.example",))))
        page = page_of(own)
        assert (page["data"], page["totalIsExact"]) == ([], False)
        assert continue_all(own) == [EMAILS]
        streamed = Api(make_key(alice.workspace, "sending_access", limits=KeyLimits(streams=("alerts",))))
        assert continue_all(streamed) == [100, 200, 300, 400]

    def test_foreign_emails_are_not_compared(self, bobs_api: Api):
        for query in ({}, {"tag": "rare"}, {"tag": "often"}, {"event": "sent"}, {"search": "rarely"}):
            page = page_of(bobs_api, **query)
            assert page == {"data": [], "total": 0, "page": 1, "limit": 10}


@pytest.mark.usefixtures("_many")
class TestReach:
    @pytest.fixture(autouse=True)
    def _short(self, monkeypatch) -> None:
        for module in (pages, pagination):
            monkeypatch.setattr(module, "MAX_REACH", 60)

    @each("query", [{}, {"status": "sent"}, {"from": "2000-01-01"}, {"tag": "often"}])
    def test_pages_end_with_the_way_to_continue(self, api: Api, query):
        before, last = page_of(api, **query, page=5), page_of(api, **query, page=6)
        assert "continueTo" not in before or query == {"tag": "often"}
        if query != {"tag": "often"}:
            assert last["continueTo"] == last["data"][-1]["createdAt"]
        step = 2 if "tag" in query else 1
        assert continue_all(api, **query) == list(range(step, EMAILS + 1, step))

    def test_a_page_beyond_is_422(self, api: Api):
        for query in ({}, {"from": "2000-01-01"}):
            response = api.get("/emails", {**query, "page": 7, "limit": 10})
            (error,) = response.json()["errors"]
            assert (response.status_code, error["field"], error["code"]) == (422, "page", "out_of_reach")

    def test_a_page_past_the_end_is_empty(self, api: Api):
        for query in ({}, {"tag": "rare"}, {"search": "rarely"}):
            page = page_of(api, **query, page=999_999_999)
            assert (page["data"], page["total"]) == ([], EMAILS if not query else 2)


@pytest.mark.usefixtures("_many")
class TestTime:
    def test_an_index_that_takes_too_long_is_given_up(self, api: Api, monkeypatch):
        monkeypatch.setattr(pages, "PAGE_EFFORT", Effort(walked=100, walked_for_events=50, index_milliseconds=50))
        slow = pages.READ_INDEXES.replace("SELECT (SELECT", "SELECT (SELECT pg_sleep(5) IS NULL)::int + (SELECT")
        monkeypatch.setattr(pages, "READ_INDEXES", slow)
        page = page_of(api, tag="rare")
        assert (page["data"], page["total"], page["totalIsExact"]) == ([], 0, False)
        assert continue_all(api, tag="rare") == [EMAILS - 1, EMAILS]
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() == ("15s",), "the limit is that of one statement"

    def test_no_more_emails_are_compared_than_allowed(self, api: Api):
        for query, most in (({"search": "zz"}, 100), ({"event": "clicked"}, 50)):
            plan = explain(self.statement(api, query))
            rows = [int(found) for found in re.findall(r"email_newest on .*actual rows=(\d+)", plan)]
            assert rows == [most], plan

    def test_a_full_page_ends_the_comparison(self, api: Api, monkeypatch):
        monkeypatch.setattr(pages, "PAGE_EFFORT", Effort(walked=300, walked_for_events=300, index_milliseconds=100))
        plan = explain(self.statement(api, {"event": "sent"}))
        rows = [int(found) for found in re.findall(r"email_newest on .*actual rows=(\d+)", plan)]
        assert rows == [31], plan
        assert re.search(r"event_timeline on .*loops=31\)", plan), plan

    def test_tags_are_read_from_their_index(self, api: Api):
        plan = explain(self.statement(api, {"tag": "rare"}, part="WITH found"), LARGE)
        assert "Bitmap Index Scan on email_by_tag" in plan

    def test_the_index_of_a_common_tag_is_not_read_for_rare_matches(self, api: Api, monkeypatch):
        search._statistics.cache_clear()
        monkeypatch.setattr(pages, "TAG_ENTRIES_PER_MILLISECOND", 0.01)
        for tag, is_common in (("often", True), ("rare", False)):
            with CaptureQueriesContext(connection) as queries:
                page = page_of(api, tag=tag, event="clicked")
            assert ("continueTo" in page) == is_common
            assert any(query["sql"].lstrip().startswith("WITH found") for query in queries) != is_common
        assert search.common_tags()["often"] == pytest.approx(EMAILS / 2, rel=0.1)

    def test_emails_of_a_stream_are_read_in_order(self, api: Api):
        # Few emails are sorted faster; a sort that is forbidden appears if the index does not have the order.
        settings = {**LARGE, "enable_sort": "off"}
        plan = explain(self.statement(api, {"stream": "alerts"}, part='"id" IN (SELECT'), settings)
        assert "email_by_stream" in plan
        assert "Sort" not in plan.partition("email_by_stream")[0].rpartition("Limit")[2]

    def statement(self, api: Api, query: dict, *, part: str = 'WITH "emails_email" AS (') -> str:
        """Return the statement of a list that has a part."""
        with CaptureQueriesContext(connection) as queries:
            page_of(api, **query)
        (found,) = [query["sql"] for query in queries if part in query["sql"]]
        return found


def explain(sql: str, settings: dict[str, str] = pages.IN_ORDER) -> str:
    """Run a statement and return its plan."""
    with pages.local_settings(settings), connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF) {sql}")
        return "\n".join(line for (line,) in cursor.fetchall())


class TestExport:
    def test_it_has_all_matches_where_a_list_compares_fewer(self, api: Api, alice: Account, monkeypatch):
        fill(alice)
        monkeypatch.setattr(pages, "SAMPLED", 20)
        monkeypatch.setattr(pages, "PAGE_EFFORT", Effort(walked=50, walked_for_events=50, index_milliseconds=100))
        for query, count in (({"event": "opened"}, 20), ({"tag": "rare"}, 2), ({"search": "n"}, EMAILS)):
            response = api.get("/emails/export", query)
            assert "X-Export-Truncated" not in response
            assert len(response.getvalue().splitlines()) == 1 + count

    def test_that_does_not_compare_all_is_truncated(self, api: Api, alice: Account, monkeypatch):
        fill(alice)
        monkeypatch.setattr(pages, "SAMPLED", 20)
        monkeypatch.setattr(export, "EFFORT", Effort(walked=50, walked_for_events=50, index_milliseconds=100))
        response = api.get("/emails/export", {"event": "opened"})
        assert response["X-Export-Truncated"] == "true"
        assert len(response.getvalue().splitlines()) == 1 + 2
