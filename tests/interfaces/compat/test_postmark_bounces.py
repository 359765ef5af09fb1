"""Bounces in Postmark's API: the list, single bounces by the number of the webhook, and their activation."""

import json

import pytest

from core.delivery.bounces.reasons import FailureReason
from core.lib.ids import id_number
from emails.feedback.reports import ReportedEvent, record_reports
from emails.models import Recipient
from events.kinds import EventKind
from events.models import Event
from interfaces.compat.postmark.bounces import TYPE_LABELS
from interfaces.compat.postmark.webhook_format import event_bounce_type
from suppressions.models import Suppression
from tests.interfaces.compat.test_postmark import error, mail
from tests.rows import each
from webhooks.formats import render_body

pytestmark = pytest.mark.django_db

PAGE = "count=10&offset=0"
DETAILS = {"code": 550, "enhancedCode": "5.1.1", "message": "550 no such user", "reason": "unknown_user"}


def report(kind: EventKind, **options) -> Event:
    """Record an event of the only recipient, as a report of its mail host."""
    recipient = Recipient.objects.get()
    record_reports([ReportedEvent(recipient.id, kind, **options)])
    return Event.objects.get(kind=kind)


@pytest.fixture
def bounced(postmark) -> Event:
    postmark.post("/email", mail(Tag="welcome"))
    return report(EventKind.BOUNCED, details=DETAILS, is_recipient_fault=True)


def test_bounces_are_listed_and_counted(postmark, bounced):
    body = postmark.get(f"/bounces?{PAGE}").json()
    assert body["TotalCount"] == 1
    (bounce,) = body["Bounces"]
    assert (bounce["Type"], bounce["TypeCode"], bounce["Email"]) == ("HardBounce", 1, "ada@example.com")
    assert (bounce["Details"], bounce["Tag"], bounce["Inactive"]) == ("550 no such user", "welcome", True)
    stats = postmark.get("/deliverystats").json()
    by_type = [{"Name": "All", "Count": 1}, {"Type": "HardBounce", "Name": "Hard bounce", "Count": 1}]
    assert stats == {"InactiveMails": 1, "Bounces": by_type}
    assert postmark.get("/bounces/tags").json() == ["welcome"]


@each("reason", [*FailureReason, "recipient_suppressed", "of_a_later_version"])
def test_each_type_of_bounce_has_a_name_in_the_statistics(reason):
    assert TYPE_LABELS[event_bounce_type("bounced", reason)[0]]


@each(
    ("query", "total"),
    [("messageID=%s", 1), ("messageID=x", 0), ("tag=welcome", 1), ("emailFilter=ada", 1), ("emailFilter=bob", 0),
     ("fromdate=2020-01-01", 1), ("todate=2020-01-01", 0), ("fromdate=2020-1-1", 1), ("type=HardBounce", 1),
     ("type=hardbounce", 1), ("type=Blocked", 0), ("type=SpamNotification", 0), ("type=Transient", 0),
     ("inactive=true", 1), ("inactive=false", 0), ("messagestream=outbound", 1)],
)  # fmt: skip
def test_bounces_are_filtered(postmark, bounced, query, total):
    message_id = postmark.get("/bounces").json()["Bounces"][0]["MessageID"]
    body = postmark.get(f"/bounces?{PAGE}&{query.replace('%s', message_id)}").json()
    assert (body["TotalCount"], len(body["Bounces"])) == (total, total)


@each("reason", ["spam", "undetermined", None])
def test_bounces_are_filtered_by_the_type_that_they_have(postmark, reason):
    postmark.post("/email", mail())
    report(EventKind.BOUNCED, details={**DETAILS, "reason": reason} if reason else {})
    type_ = postmark.get("/bounces").json()["Bounces"][0]["Type"]
    assert type_ == ("SpamNotification" if reason == "spam" else "Blocked")
    assert postmark.get(f"/bounces?{PAGE}&type={type_}").json()["TotalCount"] == 1
    assert postmark.get(f"/bounces?{PAGE}&type=HardBounce").json()["TotalCount"] == 0
    assert postmark.get(f"/bounces?{PAGE}&inactive=true").json()["TotalCount"] == 0


@each("query", ["type=Soft", "inactive=maybe", "recipient=ada", "metadata_a=b", "colour=red"])
def test_a_filter_that_does_not_exist_is_refused_by_name(postmark, query):
    refused = postmark.get(f"/bounces?{PAGE}&{query}")
    assert error(refused) == (422, 408)
    assert query.partition("=")[0] in refused.json()["Message"]


def test_a_bounce_is_found_by_the_number_that_its_webhook_has(postmark, bounced):
    data = {"to": "ada@example.com", "emailId": bounced.email_id, "from": "", "subject": "", "tags": [], "metadata": {}}
    event = {"id": bounced.id, "event": "bounced", "createdAt": "", "data": data | DETAILS}
    number = json.loads(render_body(json.dumps(event), format_="postmark"))["ID"]
    bounce = postmark.get(f"/bounces/{number}").json()
    assert (bounce["ID"], bounce["Email"], bounce["CanActivate"]) == (number, "ada@example.com", True)
    assert postmark.get(f"/bounces/{number}/dump").json() == {"Body": "550 no such user"}


def test_activating_a_bounce_deletes_the_suppression(postmark, bounced):
    assert postmark.post("/email", mail()).status_code == 422
    answer = postmark.call("PUT", f"/bounces/{id_number(bounced.id, prefix='evt_')}/activate").json()
    assert (answer["Message"], answer["Bounce"]["Inactive"]) == ("OK", False)
    assert not Suppression.objects.exists()
    assert postmark.post("/email", mail()).status_code == 200


def test_a_complaint_is_a_bounce_that_cannot_be_activated(postmark):
    postmark.post("/email", mail())
    complaint = id_number(report(EventKind.COMPLAINED).id, prefix="evt_")
    assert postmark.get(f"/bounces/{complaint}").json()["Type"] == "SpamComplaint"
    assert error(postmark.call("PUT", f"/bounces/{complaint}/activate")) == (422, 300)
    assert Suppression.objects.exists()
