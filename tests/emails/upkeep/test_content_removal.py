"""Contents that go before their emails: after contentRetention of the stream, and those of sensitive emails."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from core.lib.sql import run
from core.workspaces.key_limits import NO_LIMITS
from emails.accept.services import resend_email
from emails.errors import ContentNotKept
from emails.models import Attachment, Content, Email, Recipient
from emails.tasks import expire, remove_contents
from emails.upkeep import content_removal
from events.models import Event
from streams.models import Stream
from streams.services import streams_cache
from tests.conftest import Account, Api
from tests.emails.builders import BOUNCED, LATER, OK, deliver, deliver_all, make_ready, send
from tests.plans import plan_of, prefer_indexes
from tests.rows import each
from tests.stack.stack import wait_for
from tests.threads import own_connection, run_concurrently

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
FILE = {"filename": "a.txt", "content": "QQ=="}


@pytest.fixture(autouse=True)
def _no_rest_between_batches(monkeypatch):
    monkeypatch.setattr("core.workspaces.retention.REST_RATIO", 0.0)


def age(by, **filters):
    """Let emails have finished earlier."""
    Email.objects.filter(**filters).update(finished_at=F("finished_at") - by)


def keep_for(api: Api, hours, stream="main"):
    response = api.patch(f"/streams/{stream}", {"contentRetention": hours})
    assert response.status_code == 200, response.content
    # In force within a second.
    streams_cache.clear()


def let_requests_end():
    """Let the change of a stream be older than any request that has read the stream before."""
    Stream.objects.update(content_changed_at=F("content_changed_at") - 2 * MINUTE)


def kept(api: Api, email_id: str) -> bool:
    body = api.get(f"/emails/{email_id}").json()
    shown = bool(body["htmlContent"] or body["text"] or body["attachments"])
    assert shown != body.get("contentNotKept", False)
    return shown


@pytest.mark.django_db
class TestRetention:
    @each("hours", [0, 1, 24, 365 * 24])
    def test_the_content_goes_hours_after_the_last_outcome_and_the_email_stays(self, api: Api, hours):
        keep_for(api, hours)
        early, due = send(api, attachments=[FILE]), send(api, attachments=[FILE])
        deliver_all()
        age(hours * HOUR - MINUTE, id=early)
        age(hours * HOUR + MINUTE, id=due)
        remove_contents()
        assert (kept(api, early), kept(api, due)) == (True, False)
        assert Content.objects.count() == Attachment.objects.count() == 1
        body = api.get(f"/emails/{due}").json()
        assert (body["subject"], body["status"], "sensitive" in body) == ("Hello", "delivered", False)
        assert len(api.get(f"/emails/{due}/events").json()["data"]) == 3
        Email.objects.all().delete()
        Content.objects.all().delete()

    def test_an_email_of_another_stream_and_of_another_workspace_keeps_its_content(self, api: Api, bobs_api: Api):
        api.post("/streams", {"id": "codes", "name": "Codes", "contentRetention": 0})
        removed, others = send(api, stream="codes"), (send(api), send(bobs_api, **{"from": "x@bob.example"}))
        deliver_all()
        age(HOUR)
        remove_contents()
        assert [kept(api, removed), kept(api, others[0]), kept(bobs_api, others[1])] == [False, True, True]

    @each("outcome", [OK, BOUNCED])
    def test_retries_keep_the_content_until_the_last_recipient_has_an_outcome(self, api: Api, outcome):
        keep_for(api, 0)
        email_id = send(api, to=["a@example.com", "b@example.com"], attachments=[FILE])
        for _ in range(2):
            deliver_all(LATER)
            remove_contents()
            assert kept(api, email_id)
            make_ready()
        deliver(outcome)
        remove_contents()
        assert kept(api, email_id)
        deliver(outcome)
        remove_contents()
        assert not kept(api, email_id)
        Email.objects.all().delete()

    def test_template_data_goes_and_the_template_stays(self, api: Api):
        template = {"name": "t", "subject": "Hi", "htmlContent": "<p>{{name}}</p>"}
        template_id = api.post("/templates", template).json()["id"]
        keep_for(api, 0)
        email_id = send(api, html=None, templateId=template_id, templateData={"name": "Ada"})
        deliver_all()
        remove_contents()
        assert not kept(api, email_id)
        assert Email.objects.get().template_data is None
        assert api.get(f"/templates/{template_id}").status_code == 200

    def test_a_cancelled_email_loses_its_content(self, api: Api):
        keep_for(api, 0)
        email_id = send(api, scheduledFor=(timezone.now() + timedelta(days=1)).isoformat())
        api.delete(f"/emails/{email_id}")
        remove_contents()
        assert not kept(api, email_id)

    def test_retention_of_the_plan_still_deletes_the_email(self, api: Api):
        keep_for(api, 0)
        send(api)
        deliver_all()
        remove_contents()
        days = timedelta(days=366)
        Recipient.objects.update(finished_at=F("finished_at") - days)
        Email.objects.update(created_at=F("created_at") - days, finished_at=F("finished_at") - days)
        expire()
        assert not any(model.objects.exists() for model in (Email, Recipient, Event, Content))

    def test_the_limit_is_the_retention_of_the_plan(self, api: Api):
        keep_for(api, 365 * 24)
        for hours, code in ((365 * 24 + 1, "invalid_stream"), (-1, "validation_error"), ("1", "validation_error")):
            response = api.patch("/streams/main", {"contentRetention": hours})
            assert (response.status_code, response.json()["code"]) == (422, code), hours
        assert api.get("/streams/main").json()["contentRetention"] == 365 * 24
        keep_for(api, None)
        assert api.get("/streams/main").json()["contentRetention"] is None

    def test_batches_of_any_size_remove_everything(self, api: Api, monkeypatch):
        monkeypatch.setattr(content_removal, "BATCH_SIZE", 2)
        keep_for(api, 0)
        ids = [send(api) for _ in range(5)]
        deliver_all()
        remove_contents()
        assert not any(kept(api, email_id) for email_id in ids)
        assert not Content.objects.exists()


@pytest.mark.django_db
class TestChanges:
    def test_a_change_holds_for_accepted_emails(self, api: Api, monkeypatch):
        monkeypatch.setattr(content_removal, "BATCH_SIZE", 2)
        ids = [send(api) for _ in range(5)]
        deliver_all()
        age(3 * HOUR)
        keep_for(api, 2)
        remove_contents()
        # A request may still use the stream as it was.
        assert all(kept(api, email_id) for email_id in ids)
        let_requests_end()
        remove_contents()
        assert not any(kept(api, email_id) for email_id in ids)
        assert not Stream.objects.exclude(content_changed_at=None).exists()

    def test_a_longer_time_and_none_hold_for_accepted_emails_too(self, api: Api):
        keep_for(api, 2)
        email_id = send(api)
        deliver_all()
        for hours in (4, None):
            age(HOUR)
            keep_for(api, hours)
            let_requests_end()
            remove_contents()
            assert kept(api, email_id)
            assert Email.objects.get().content_hours == hours

    def test_a_sensitive_email_and_other_streams_keep_their_own(self, api: Api):
        api.post("/streams", {"id": "codes", "name": "Codes", "contentRetention": 5})
        sensitive, other = send(api, sensitive=True), send(api, stream="codes")
        keep_for(api, 9)
        let_requests_end()
        remove_contents()
        hours = dict(Email.objects.values_list("id", "content_hours"))
        assert (hours[sensitive], hours[other]) == (0, 5)

    def test_the_same_value_again_changes_nothing(self, api: Api):
        keep_for(api, 2)
        Stream.objects.update(content_changed_at=None)
        keep_for(api, 2)
        assert not Stream.objects.exclude(content_changed_at=None).exists()

    def test_a_change_during_the_run_is_applied_by_the_next_one(self, api: Api):
        send(api)
        keep_for(api, 2)
        let_requests_end()
        batches = content_removal.apply_changed_retention()
        next(batches)
        keep_for(api, 3)
        for _ in batches:
            pass
        assert Stream.objects.exclude(content_changed_at=None).exists()
        let_requests_end()
        remove_contents()
        assert Email.objects.get().content_hours == 3


@pytest.mark.django_db
class TestSharedContents:
    def test_a_copy_keeps_the_content_until_its_own_outcome(self, api: Api):
        keep_for(api, 0)
        first = send(api, attachments=[FILE])
        copy = api.post(f"/emails/{first}/resend").json()["id"]
        Email.objects.filter(id=first).update(finished_at=F("created_at"))
        remove_contents()
        assert (kept(api, first), kept(api, copy)) == (False, True)
        assert Attachment.objects.count() == 1
        deliver_all()
        remove_contents()
        assert not Content.objects.exists()
        assert not Attachment.objects.exists()

    def test_a_copy_is_refused_after_the_removal(self, api: Api):
        keep_for(api, 0)
        email_id = send(api)
        deliver_all()
        remove_contents()
        response = api.post(f"/emails/{email_id}/resend")
        assert (response.status_code, response.json()["code"]) == (409, "content_not_kept")
        assert Email.objects.count() == 1


@pytest.mark.django_db(transaction=True)
class TestConcurrency:
    def test_a_resend_that_read_the_email_before_the_removal_is_refused(self, api: Api, alice: Account):
        keep_for(api, 0)
        send(api)
        deliver_all()
        email = Email.objects.get()
        remove_contents()
        with pytest.raises(ContentNotKept):
            resend_email(alice.workspace, email=email, key=None, limits=NO_LIMITS)

    def test_the_content_of_an_email_that_is_being_copied_stays(self, api: Api, alice: Account):
        keep_for(api, 0)
        email_id = send(api)
        deliver_all()
        with transaction.atomic():
            resend_email(alice.workspace, email=Email.objects.get(), key=None, limits=NO_LIMITS)
            run_concurrently(lambda _: remove_contents(), [1])
        assert kept(api, email_id)
        remove_contents()
        assert not kept(api, email_id)
        assert Content.objects.count() == 1

    def test_two_batches_with_the_last_references_to_a_content_leave_none(self, api: Api, alice: Account):
        """The second one waits for the first: each would see the reference that the other is about to clear."""
        keep_for(api, 0)
        first = send(api)
        api.post(f"/emails/{first}/resend")
        deliver_all()
        Email.objects.exclude(id=first).update(content_hours=1, finished_at=F("finished_at") - 2 * HOUR)
        with ThreadPoolExecutor(1) as pool:
            with transaction.atomic():
                assert not content_removal._remove_batch(0)
                waiting = pool.submit(own_connection(lambda: content_removal._remove_batch(1)))
                wait_for(is_somebody_waiting, seconds=30, what="the second batch waits")
            waiting.result(timeout=30)
        assert not Content.objects.exists()


def is_somebody_waiting() -> bool:
    waiting = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    return bool(run(waiting))


@pytest.mark.django_db
def test_the_search_for_due_contents_reads_only_its_index():
    prefer_indexes()
    for sql in (content_removal.LOCK_DUE, content_removal.READ_HOURS):
        plan = plan_of(sql, {"hours": 0, "limit": 10})
        assert "email_content_due" in plan
        assert "Seq Scan" not in plan
