"""Retention by plan: expired emails are deleted, nothing else is, and the counters stay."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from core.api.errors import NotFound
from core.workspaces.key_limits import NO_LIMITS
from core.workspaces.models import Workspace
from core.workspaces.retention import run_alone, sweep
from emails.models import Attachment, Content, Email, QueueEntry, Recipient
from emails.sending.outcomes import SendResult, record_results
from emails.sending.scheduling import cancel_email
from emails.tasks import expire
from emails.upkeep import retention
from events.models import Event
from suppressions.models import Suppression
from templates_app.models import TemplateVersion
from tests.conftest import Account, Api, mail, make_account, make_domain, make_key
from tests.emails.builders import BOUNCED, LATER, OK, change_workspace, claim_entries, deliver, deliver_all, send
from tests.plans import plan_of, prefer_indexes
from tests.rows import each
from tests.threads import own_connection

FILE = {"filename": "a.txt", "content": "QQ=="}
DAYS = {"free": 7, "pro": 90, "enterprise": 365}
LONG_AGO = timedelta(days=1000)
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def _no_rest_between_batches(monkeypatch):
    monkeypatch.setattr("core.workspaces.retention.REST_RATIO", 0.0)


def age(by, **filters):
    """Age emails: move created_at and finished_at into the past."""
    emails = Email.objects.filter(**filters)
    Recipient.objects.filter(email__in=emails).update(finished_at=F("finished_at") - by)
    emails.update(created_at=F("created_at") - by, finished_at=F("finished_at") - by)


def count_queue_scans(cursor):
    cursor.execute("SELECT pg_stat_get_xact_numscans('emails_pending'::regclass)")
    return cursor.fetchone()


@pytest.mark.django_db
class TestDeletion:
    @each(("plan", "days"), DAYS.items())
    def test_an_email_is_deleted_after_the_retention_of_its_plan(self, api: Api, alice: Account, plan, days):
        change_workspace(alice.workspace, plan=plan)
        kept, expired = send(api), send(api)
        deliver_all()
        age(timedelta(days=days) - MINUTE, id=kept)
        age(timedelta(days=days) + MINUTE, id=expired)
        expire()
        assert [api.get(f"/emails/{id_}").status_code for id_ in (kept, expired)] == [200, 404]

    def test_all_rows_of_the_email_are_deleted_and_its_paths_are_404(self, api: Api):
        email_id = send(api, attachments=[FILE], cc=["c@example.com"])
        deliver_all()
        age(LONG_AGO)
        expire()
        assert not any(model.objects.exists() for model in (Email, Recipient, Event, Content, Attachment))
        paths = [
            api.get(f"/emails/{email_id}"), api.get(f"/emails/{email_id}/events"), api.delete(f"/emails/{email_id}"),
            api.post(f"/emails/{email_id}/resend"), api.patch(f"/emails/{email_id}", {"scheduledFor": None}),
        ]  # fmt: skip
        assert [(reply.status_code, reply.json()["code"]) for reply in paths] == [(404, "not_found")] * 5
        assert api.get("/emails").json() == {"data": [], "total": 0, "page": 1, "limit": 20}

    def test_retention_of_a_cancelled_email_counts_from_its_cancellation(self, api: Api):
        scheduled_for = (timezone.now() + timedelta(days=1)).isoformat()
        email_id = send(api, scheduledFor=scheduled_for)
        api.delete(f"/emails/{email_id}")
        age(timedelta(days=364))
        expire()
        assert Email.objects.exists()
        age(timedelta(days=2))
        expire()
        assert not Email.objects.exists()

    def test_retention_counts_from_the_last_finished_recipient(self, api: Api):
        send(api, to=["a@example.com", "b@example.com"])
        first, second = claim_entries()
        record_results([SendResult(first, OK)])
        assert Email.objects.get().finished_at is None
        age(LONG_AGO)
        record_results([SendResult(second, OK)])
        assert Email.objects.get().finished_at == Recipient.objects.get(id=second.recipient_id).finished_at
        expire()
        assert Email.objects.exists()

    def test_batches_of_any_size_delete_everything(self, api: Api, monkeypatch):
        monkeypatch.setattr(retention, "BATCH_SIZE", 2)
        for number in range(5):
            send(api, to=[f"{number}{letter}@example.com" for letter in "abc"[: 1 + number % 3]])
        deliver_all()
        # Failed emails are deleted like delivered ones.
        send(api)
        deliver_all(BOUNCED)
        age(LONG_AGO)
        expire()
        assert not Email.objects.exists()


@pytest.mark.django_db
class TestKeptRows:
    @each("state", ["scheduled", "queued", "claimed", "waiting"])
    def test_an_unfinished_email_stays_at_any_age(self, api: Api, state):
        scheduled_for = (timezone.now() + timedelta(days=1)).isoformat()
        email_id = send(api, **({"scheduledFor": scheduled_for} if state == "scheduled" else {}))
        if state == "claimed":
            claim_entries()
        if state == "waiting":
            deliver_all(LATER)
        age(LONG_AGO)
        expire()
        assert api.get(f"/emails/{email_id}").status_code == 200

    def test_one_unfinished_recipient_keeps_the_email(self, api: Api):
        send(api, to=["a@example.com", "b@example.com"])
        deliver(OK)
        age(LONG_AGO)
        # Simulates a wrong finished_at: the queue decides.
        Email.objects.update(finished_at=timezone.now() - LONG_AGO)
        expire()
        assert Recipient.objects.count() == 2

    def test_content_stays_until_its_last_email_is_deleted(self, api: Api):
        first = send(api, attachments=[FILE])
        second = api.post(f"/emails/{first}/resend").json()["id"]
        deliver_all()
        age(LONG_AGO, id=first)
        expire()
        assert api.get(f"/emails/{second}").json()["attachments"][0]["filename"] == "a.txt"
        age(LONG_AGO, id=second)
        expire()
        assert not Content.objects.exists()

    def test_analytics_stay_and_the_list_counts_existing_emails(self, api: Api):
        for outcome in (OK, OK, BOUNCED):
            send(api)
            deliver_all(outcome)
        before = api.get("/analytics").json(), api.get("/analytics/daily").json(), api.get("/queue/stats").json()
        # A negative age instead of age(): emails moved to another hour would not match their counters.
        for _ in retention.delete_expired_emails(Workspace.objects.get().id, timedelta(hours=-1)):
            pass
        assert not Email.objects.exists()
        after = api.get("/analytics").json(), api.get("/analytics/daily").json(), api.get("/queue/stats").json()
        assert after == before
        assert after[0]["breakdown"] == {"delivered": 2, "bounced": 1, "opened": 0, "clicked": 0}
        assert [api.get("/emails", {"status": name}).json()["total"] for name in ("", "bounced")] == [0, 0]

    def test_suppressions_usage_and_stored_responses_stay(self, api: Api):
        api.post("/suppressions", {"email": "no@example.com"})
        body = mail(idempotencyKey="once")
        first = api.post("/emails/send", body).json()
        used = api.get("/me").json()["quota"]["used"]
        deliver_all()
        age(LONG_AGO)
        expire()
        again = api.post("/emails/send", body)
        assert (again.status_code, again.json(), again["Idempotent-Replayed"]) == (202, first, "true")
        assert not Email.objects.exists()
        assert Suppression.objects.count() == 1
        assert api.get("/me").json()["quota"]["used"] == used

    def test_each_workspace_has_the_retention_of_its_plan(self, api: Api, bobs_api: Api, bob: Account):
        change_workspace(bob.workspace, plan="free")
        mine = send(api)
        send(bobs_api, **{"from": "x@bob.example"})
        deliver_all()
        age(timedelta(days=8))
        expire()
        assert [email.id for email in Email.objects.all()] == [mine]


@pytest.mark.django_db
class TestTemplateVersions:
    TEMPLATE = {"name": "t", "subject": "s", "htmlContent": "<p>1</p>"}

    def versions(self, *, days: int = 91):
        retired_at = timezone.now() - timedelta(days=days)
        TemplateVersion.objects.filter(retired_at__isnull=False).update(retired_at=retired_at)
        expire()
        return sorted(TemplateVersion.objects.values_list("html", flat=True))

    def test_a_replaced_version_is_deleted_with_its_last_email(self, api: Api):
        template_id = api.post("/templates", self.TEMPLATE).json()["id"]
        send(api, html=None, templateId=template_id)
        deliver_all()
        api.patch(f"/templates/{template_id}", {"htmlContent": "<p>2</p>"})
        api.patch(f"/templates/{template_id}", {"htmlContent": "<p>3</p>"})
        assert self.versions() == ["<p>1</p>", "<p>3</p>"]
        age(LONG_AGO)
        assert self.versions() == ["<p>3</p>"]
        api.delete(f"/templates/{template_id}")
        assert self.versions(days=2) == []

    def test_a_replaced_version_can_be_restored_for_90_days(self, api: Api):
        template_id = api.post("/templates", self.TEMPLATE).json()["id"]
        api.patch(f"/templates/{template_id}", {"htmlContent": "<p>2</p>"})
        assert self.versions(days=89) == ["<p>1</p>", "<p>2</p>"]
        assert self.versions(days=91) == ["<p>2</p>"]

    def test_a_replaced_version_stays_for_a_day(self, api: Api):
        template_id = api.post("/templates", self.TEMPLATE).json()["id"]
        api.delete(f"/templates/{template_id}")
        expire()
        assert TemplateVersion.objects.count() == 1


@pytest.mark.django_db
def test_retention_uses_the_index_of_the_list():
    """Retention has no separate index and must not scan the table."""
    prefer_indexes("enable_bitmapscan")
    values = {"workspace": UUID(int=1), "age": LONG_AGO, "created_at": timezone.now(), "id": UUID(int=2), "limit": 9}
    plan = plan_of(retention.EXPIRED, values)
    assert "Index Scan Backward using email_newest" in plan


@pytest.mark.django_db
def test_every_table_that_refers_to_emails_is_deleted_with_them():
    """A new table would block the deletion of emails, or keep orphaned rows.

    Its rows must be deleted by emails.upkeep.retention, or by a database constraint that cascades.
    """
    known = {Recipient, Event, QueueEntry}
    referring = {relation.related_model for model in (Email, Recipient) for relation in model._meta.related_objects}
    with connection.cursor() as cursor:
        cursor.execute("SELECT conrelid::regclass::text FROM pg_constraint WHERE contype = 'f' AND confdeltype = 'c'")
        cascading = {table for (table,) in cursor.fetchall()}
    assert {model._meta.db_table for model in referring - known} <= cascading
    assert {relation.related_model for relation in Content._meta.related_objects} == {Email, Attachment}


@pytest.fixture
def committed_workspace(transactional_db) -> tuple[Api, Workspace]:
    """Create a workspace in committed rows, visible to other connections."""
    account = make_account("alice")
    make_domain(account.workspace, "alice.example")
    return Api(make_key(account.workspace)), account.workspace


def run_in_thread(action):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(own_connection(action)).result(timeout=30)


class TestConcurrency:
    def test_locked_emails_are_left_to_the_next_run(self, committed_workspace):
        api, _ = committed_workspace
        locked, unlocked = send(api), send(api)
        deliver_all()
        age(LONG_AGO)
        with transaction.atomic():
            Recipient.objects.select_for_update().get(email=locked)
            run_in_thread(expire)
            assert run_in_thread(lambda: list(Email.objects.values_list("id", flat=True))) == [locked]
        expire()
        assert not Email.objects.filter(id__in=[locked, unlocked]).exists()

    def test_an_email_that_is_being_copied_stays(self, committed_workspace):
        api, _ = committed_workspace
        email_id = send(api)
        deliver_all()
        age(LONG_AGO)
        with transaction.atomic():
            Email.objects.select_for_update(no_key=True).get(id=email_id)
            run_in_thread(expire)
        assert api.post(f"/emails/{email_id}/resend").status_code == 202

    def test_a_cancellation_of_a_deleted_email_is_404(self, committed_workspace):
        api, _ = committed_workspace
        email = Email.objects.get(id=send(api))
        deliver_all()
        age(LONG_AGO)
        expire()
        with pytest.raises(NotFound):
            cancel_email(email, limits=NO_LIMITS)

    def test_the_queue_is_never_scanned(self, committed_workspace):
        """Foreign key checks reuse their first plan, which may have been made for an empty queue."""
        api, workspace = committed_workspace
        send(api)
        deliver_all()
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE emails_pending")
        with transaction.atomic(), connection.cursor() as cursor:
            # Statistics not yet flushed count, too: sending has scanned the queue of one row.
            before = count_queue_scans(cursor)
            for _ in retention.delete_expired_emails(workspace.id, timedelta(hours=-1)):
                pass
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            assert count_queue_scans(cursor) == before
        assert not Email.objects.exists()

    def test_further_batches_run_in_one_process_at_a_time(self, committed_workspace):
        done: list[str] = []

        def batches(name):
            for _ in range(3):
                done.append(name)
                if name == "first":
                    run_in_thread(lambda: run_alone("test", batches("second")))
                    run_in_thread(lambda: run_alone("other", batches("other")))
                yield

        run_alone("test", batches("first"))
        # Before the first batch ends, nobody has the lock.
        assert Counter(done) == {"first": 3, "second": 3 + 1 + 1, "other": 9}

    def test_only_one_sweep_of_a_kind_runs(self, committed_workspace):
        inner = []

        def batches(workspace_id, older_than):
            run_in_thread(lambda: sweep("test", lambda *_: iter(inner.append(1) or ())))
            yield

        sweep("test", batches)
        assert inner == []
        sweep("test", lambda *_: iter(inner.append(1) or ()))
        assert inner == [1]

    def test_sending_continues_during_retention_and_nothing_is_lost(self, committed_workspace, monkeypatch):
        """Accept, record and delete concurrently: no deadlock, no error, and the right rows are left."""
        monkeypatch.setattr(retention, "BATCH_SIZE", 20)
        api, workspace = committed_workspace
        for number in range(120):
            send(api, to=[f"{number}@example.com", "b@example.com"])
        deliver_all()
        age(LONG_AGO)
        done = threading.Event()

        def worker():
            while not done.is_set() or QueueEntry.objects.exists():
                record_results([SendResult(email_claim, OK) for email_claim in claim_entries(5)])

        def sender():
            key = make_key(workspace)
            return [send(Api(key)) for _ in range(40)]

        with ThreadPoolExecutor(5) as pool:
            workers = [pool.submit(own_connection(worker)) for _ in range(2)]
            senders = [pool.submit(own_connection(sender)) for _ in range(2)]
            pool.submit(own_connection(expire)).result(timeout=60)
            sent = {id_ for future in senders for id_ in future.result(timeout=60)}
            done.set()
            for future in workers:
                future.result(timeout=60)
        assert set(Email.objects.values_list("id", flat=True)) == sent
        assert set(Email.objects.values_list("status", flat=True)) == {"delivered"}
        assert api.get("/emails").json()["total"] == len(sent) == 80
