"""The table that compares templates and tags."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import pytest

from console.dashboard.pages.templates.comparison import MAX_COMPARED
from core.counters import counters
from core.counters.slices import Dimension, slice_id
from tests.console.dashboard.conftest import make_email
from tests.console.dashboard.scenario import make_template
from tests.emails.builders import BOUNCED, OK, deliver_all, send

PAGE = "/dashboard/templates/compare/"


@pytest.fixture
def receipt(alice):
    return make_template(alice.workspace, "Receipt", "Your order", "<p>1</p>")


def rows_of(owner, query=""):
    comparison = owner.get(PAGE + query).context["comparison"]
    return {row.name: (row.total, *(event.count for event in row.events)) for row in comparison.rows}


def count(workspace, tag, *, at=None, **changes):
    slices = (slice_id(workspace.id, Dimension.TAG, tag),)
    at = at or datetime.now(UTC)
    counters.add(
        (counters.CounterKey(workspace.id, at, key.replace("_", "."), slices), number)
        for key, number in changes.items()
    )


@pytest.mark.parametrize("is_folded", [True, False])
def test_templates_and_tags_have_their_emails(owner, api, receipt, is_folded):
    send(api, tags=["shop", "news"])
    send(api, tags=["shop"], subject=None, html=None, templateId=receipt.id)
    deliver_all(OK)
    send(api, tags=["shop"], to="gone@example.com")
    deliver_all(BOUNCED)
    if is_folded:
        counters.fold()

    assert rows_of(owner) == {"shop": (3, 2, 0, 1), "news": (1, 1, 0, 0), "Receipt": (1, 1, 0, 0)}


def test_a_foreign_workspace_is_not_compared(owner, bob):
    make_template(bob.workspace, "Foreign", "Foreign", "<p>3</p>")
    make_email(bob.workspace, tags=["shop"])
    count(bob.workspace, "shop", status_delivered=5)
    page = owner.get(PAGE)

    assert page.context["comparison"].rows == []
    assert "No templates or tags yet" in page.content.decode()


def test_the_period_has_whole_days(owner, alice):
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    make_email(alice.workspace, tags=["shop"])
    count(alice.workspace, "shop", at=today - timedelta(days=6), status_delivered=2)
    count(alice.workspace, "shop", at=today - timedelta(days=6, minutes=1), status_delivered=4)
    count(alice.workspace, "shop", at=today, status_delivered=1, status_scheduled=9)

    assert rows_of(owner, "?days=7") == {"shop": (3, 0, 0, 0)}
    assert rows_of(owner) == {"shop": (7, 0, 0, 0)}
    counters.fold()
    assert rows_of(owner, "?days=7") == {"shop": (3, 0, 0, 0)}
    first = f"{today - timedelta(days=6):%Y-%m-%d}"
    assert rows_of(owner, f"?from={first}&to={first}") == {"shop": (2, 0, 0, 0)}


def test_columns_sort_the_rows(owner, alice, receipt):
    make_email(alice.workspace, tags=["alerts", "news", "shop"])
    count(alice.workspace, "shop", status_delivered=10, reached_opened=5, reached_bounced=1)
    count(alice.workspace, "news", status_delivered=100, reached_opened=20, reached_bounced=30)

    assert list(rows_of(owner)) == ["news", "shop", "alerts", "Receipt"]
    assert list(rows_of(owner, "?sort=name")) == ["alerts", "news", "Receipt", "shop"]
    assert list(rows_of(owner, "?sort=opened")) == ["shop", "news", "alerts", "Receipt"]
    assert list(rows_of(owner, "?sort=bounced")) == ["news", "shop", "alerts", "Receipt"]
    page = owner.get(f"{PAGE}?sort=opened&days=7")
    assert page.content.decode().count('aria-sort="descending"') == 1
    assert owner.get(f"{PAGE}?sort=none").context["comparison"].sort == "total"


def test_a_row_leads_to_its_emails_and_charts(owner, alice):
    make_email(alice.workspace, tags=["a&b=c"], status="bounced")
    make_email(alice.workspace, tags=["other"], status="bounced")
    count(alice.workspace, "a&b=c", status_bounced=1, reached_bounced=1)
    page = owner.get(PAGE)
    row = next(row for row in page.context["comparison"].rows if row.name == "a&b=c")
    bounced = row.events[2]

    assert (bounced.count, bounced.rate) == (1, 100.0)
    assert parse_qs(bounced.query)["tag"] == ["a&b=c"]
    assert len(owner.get(f"/dashboard/emails/?{bounced.query}").context["listing"].rows) == 1
    assert "?show=tag%3Aa%26b%3Dc&amp;days=14" in page.content.decode()
    assert owner.get(f"/dashboard/?show={row.show.replace('&', '%26')}").context["selection"].value == "tag:a&b=c"


def test_the_number_of_templates_and_queries_is_bounded(owner, alice, django_assert_max_num_queries):
    for number in range(MAX_COMPARED + 1):
        make_template(alice.workspace, f"Template {number}", "s", "<p>h</p>")
    with django_assert_max_num_queries(20):
        rows = rows_of(owner)

    assert len(rows) == MAX_COMPARED
    assert "Template 0" not in rows
