"""Counts by tag, template and sending domain."""

from datetime import UTC, date, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from analytics.outcomes import BY_DAY, SLICE_COUNTS, read_outcomes, sum_outcomes
from core.counters import counters
from core.counters.models import CounterDelta, SliceCounter
from core.counters.slices import MAX_TAGS, Dimension, email_slices, slice_id, slices_sql
from core.lib.ids import new_id, to_uuid
from emails.feedback.reports import ReportedEvent, record_reports
from emails.models import Email
from emails.upkeep.retention import delete_emails
from events.kinds import EventKind
from tests.console.dashboard.conftest import make_email
from tests.console.dashboard.scenario import make_template
from tests.emails.builders import BOUNCED, OK, deliver_all, send
from tests.rows import each

pytestmark = pytest.mark.django_db


def counts(workspace, dimension: Dimension, value: str) -> dict[str, int]:
    today = datetime.now(UTC).date()
    slice_ = slice_id(workspace.id, dimension, value)
    # The day may change during the test.
    days = read_outcomes(workspace, first=today - timedelta(days=1), last=today + timedelta(days=1), slice_=slice_)
    rated = {f"rated {name}": sum(day.rated[name] for day in days) for name in ("sent", "bounced", "complained")}
    return {**sum_outcomes(days), **rated}


@each(
    ("tags", "template_id", "stream"),
    [
        ([], None, "main"),
        (["a", "b", "a"], "tpl_x", "news"),
        ([str(number) for number in range(75)], None, "main"),
        (["ü 'quoted' \\ {}", "/domain/x", "/stream/x", ""], None, "x"),
    ],
)
def test_python_and_sql_agree(alice, tags, template_id, stream):
    email = make_email(alice.workspace, tags=tags, template_id=template_id, stream=stream)

    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {slices_sql('e')} FROM emails_email e WHERE id = %s", [to_uuid(email.id)])
        ((found,),) = cursor.fetchall()

    expected = email_slices(
        alice.workspace.id, tags=tags, template_id=template_id, from_domain="alice.example", stream=stream
    )
    assert tuple(found) == expected
    assert len(expected) == 1 + bool(template_id) + (stream != "main") + min(len(set(tags)), MAX_TAGS)


@each("is_folded", [True, False])
def test_each_email_counts_in_its_slices(api, alice, is_folded):
    template = make_template(alice.workspace, "Receipt", "s", "<p>h</p>")
    send(api, tags=["shop", "news"])
    send(api, tags=["shop"], subject=None, html=None, templateId=template.id)
    deliver_all(OK)
    send(api, tags=["shop"], to="gone@example.com")
    deliver_all(BOUNCED)
    if is_folded:
        counters.fold()

    shop = counts(alice.workspace, Dimension.TAG, "shop")
    assert (shop["total"], shop["delivered"], shop["bounced"]) == (3, 2, 1)
    assert counts(alice.workspace, Dimension.TAG, "news")["total"] == 1
    assert counts(alice.workspace, Dimension.TEMPLATE, template.id)["total"] == 1
    assert counts(alice.workspace, Dimension.DOMAIN, "alice.example") == shop
    assert counts(alice.workspace, Dimension.TAG, "other")["total"] == 0


def test_slices_of_a_batch_are_those_of_its_template_and_tags(api, alice):
    template = make_template(alice.workspace, "Receipt", "s", "<p>h</p>")
    recipients = [{"to": f"{name}@example.com"} for name in ("ada", "bo", "cy")]
    body = {"from": "hi@alice.example", "templateId": template.id, "tags": ["batch"], "recipients": recipients}
    assert api.post("/emails/batch", body).status_code == 202

    assert counts(alice.workspace, Dimension.TEMPLATE, template.id)["total"] == 3
    assert counts(alice.workspace, Dimension.TAG, "batch")["total"] == 3


def test_complaints_count_in_the_slices_of_their_email(api, alice):
    email = Email.objects.get(id=send(api, tags=["news"]))
    deliver_all(OK)
    record_reports([ReportedEvent(email.recipients.get().id, EventKind.COMPLAINED)])

    news = counts(alice.workspace, Dimension.TAG, "news")
    assert (news["rated sent"], news["rated complained"]) == (1, 1)


def test_the_same_tag_of_another_workspace_is_another_slice(api, bobs_api, alice, bob):
    send(api, tags=["shop"])
    send(bobs_api, tags=["shop"], **{"from": "hi@bob.example"})

    assert counts(alice.workspace, Dimension.TAG, "shop")["total"] == 1
    assert counts(bob.workspace, Dimension.TAG, "shop")["total"] == 1


def test_emails_deleted_by_retention_still_count(api, alice):
    email = Email.objects.get(id=send(api, tags=["shop"]))
    send(api, tags=["shop"])
    deliver_all(OK)
    delete_emails(alice.workspace.id, [to_uuid(email.id)])

    assert counts(alice.workspace, Dimension.TAG, "shop")["total"] == 2
    assert reconcile() == "All counters match.\n"


def reconcile(*arguments: str) -> str:
    out = StringIO()
    call_command("reconcile", *arguments, stdout=out)
    return out.getvalue()


@each("is_folded", [True, False])
def test_emails_of_an_older_version_are_counted_by_reconcile(api, alice, is_folded):
    send(api, tags=["shop"])
    deliver_all(OK)
    CounterDelta.objects.update(slices=[])
    counters.fold()
    send(api, tags=["shop"])
    if is_folded:
        counters.fold()
    assert counts(alice.workspace, Dimension.TAG, "shop")["total"] == 1
    with pytest.raises(CommandError, match="1 counters differ"):
        reconcile()

    assert "counts by tag, template or domain differ" in reconcile("--repair")

    assert counts(alice.workspace, Dimension.TAG, "shop")["total"] == 2
    assert reconcile() == "All counters match.\n"


@each("is_folded", [True, False])
def test_every_range_of_days_matches_a_scan(alice, is_folded):
    slice_ = slice_id(alice.workspace.id, Dimension.TAG, "x")
    start = date(2026, 3, 1)
    for number in range(6):
        at = datetime.combine(start, datetime.min.time(), UTC) + timedelta(days=number, hours=23, minutes=59)
        key = counters.CounterKey(alice.workspace.id, at, "status.sent", (slice_,))
        counters.add([(key, 2**number)])
    if is_folded:
        counters.fold()
    for first in range(6):
        for last in range(first, 6):
            edges = {"first": start + timedelta(days=first), "last": start + timedelta(days=last)}
            for wanted in (slice_, None):
                days = read_outcomes(alice.workspace, **edges, slice_=wanted)
                assert [day.total for day in days] == [2**number for number in range(first, last + 1)]


def test_a_slice_is_read_along_indexes(alice):
    """The time does not depend on the number of emails, of slices, or of others' unfolded deltas."""
    SliceCounter.objects.bulk_create(
        SliceCounter(slice=slice_id(alice.workspace.id, Dimension.TAG, str(n)), day=date(2026, 3, 1), key="k", count=1)
        for n in range(3000)
    )
    CounterDelta.objects.bulk_create(
        CounterDelta(workspace_id=new_id("ws_"), hour=datetime(2026, 3, 1, tzinfo=UTC), key="k", change=1)
        for _ in range(3000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE analytics_slice, analytics_tallydelta")
    sql = BY_DAY.format(counts=SLICE_COUNTS)
    values = {"first": date(2026, 3, 1), "last": date(2026, 3, 31)}
    slice_ = slice_id(alice.workspace.id, Dimension.TAG, "7")
    plan = "\n".join(row for (row,) in counters.read(f"EXPLAIN {sql}", alice.workspace.id, slice=slice_, **values))

    assert "one_count_a_slice_and_day" in plan
    assert "delta_workspace" in plan
    assert "Seq Scan" not in plan
