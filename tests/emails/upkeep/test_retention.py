"""What the plan no longer keeps is deleted, nothing else is, and the figures stay (CONTRACT section 2)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from api.errors import NotFound
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from emails.models import Attachment, Content, Email, Event, Pending, Recipient
from emails.sending import queue
from emails.sending.outcomes import Result, record
from emails.sending.scheduling import cancel_email
from emails.tasks import expire
from emails.upkeep import retention
from suppressions.models import Suppression
from templates_app.models import TemplateVersion
from tests.conftest import Account, Api, mail, make_domain, make_key
from workspaces.api import authentication
from workspaces.models import Workspace
from workspaces.retention import sweep

OK = DeliveryOutcome(DeliveryStatus.DELIVERED, Reply(250, "2.0.0 ok"))
BOUNCED = DeliveryOutcome(DeliveryStatus.BOUNCED, Reply(550, "5.1.1 no such user"), "rejected")
FILE = {"filename": "a.txt", "content": "QQ=="}
DAYS = {"free": 7, "pro": 90, "enterprise": 365}
LONG_AGO = timedelta(days=1000)
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def _no_rests(monkeypatch):
    monkeypatch.setattr("workspaces.retention.REST", 0.0)


def send(api, **fields):
    response = api.post("/emails/send", mail(**fields))
    assert response.status_code == 202, response.content
    return response.json()["id"]


def claim(limit=1000):
    return queue.claim(limit, after=UUID(int=0))


def work(outcome=OK):
    record([Result(held, outcome) for held in claim()])


def age(by, **filters):
    """Let time pass for emails: created and finished longer ago."""
    emails = Email.objects.filter(**filters)
    Recipient.objects.filter(email__in=emails).update(finished_at=F("finished_at") - by)
    emails.update(created_at=F("created_at") - by, finished_at=F("finished_at") - by)


def scans_of_the_queue(cursor):
    cursor.execute("SELECT pg_stat_get_xact_numscans('emails_pending'::regclass)")
    return cursor.fetchone()


def change_plan(workspace, plan):
    Workspace.objects.filter(id=workspace.id).update(plan=plan)
    authentication.cache.clear()


@pytest.mark.django_db
class TestWhatGoes:
    @pytest.mark.parametrize(("plan", "days"), DAYS.items())
    def test_an_email_goes_when_its_plans_days_have_passed(self, api: Api, alice: Account, plan, days):
        change_plan(alice.workspace, plan)
        kept, gone = send(api), send(api)
        work()
        age(timedelta(days=days) - MINUTE, id=kept)
        age(timedelta(days=days) + MINUTE, id=gone)
        expire()
        assert [api.get(f"/emails/{id_}").status_code for id_ in (kept, gone)] == [200, 404]

    def test_everything_of_it_goes_and_all_its_paths_are_404(self, api: Api):
        email_id = send(api, attachments=[FILE], cc=["c@example.com"])
        work()
        age(LONG_AGO)
        expire()
        assert not any(model.objects.exists() for model in (Email, Recipient, Event, Content, Attachment))
        paths = [
            api.get(f"/emails/{email_id}"),
            api.get(f"/emails/{email_id}/events"),
            api.delete(f"/emails/{email_id}"),
            api.post(f"/emails/{email_id}/resend"),
            api.patch(f"/emails/{email_id}", {"scheduledFor": None}),
        ]
        assert [(reply.status_code, reply.json()["code"]) for reply in paths] == [(404, "not_found")] * 5
        assert api.get("/emails").json() == {"data": [], "total": 0, "page": 1, "limit": 20}

    @pytest.mark.parametrize("outcome", [OK, BOUNCED])
    def test_failures_go_like_successes(self, api: Api, outcome):
        send(api)
        work(outcome)
        age(LONG_AGO)
        expire()
        assert not Email.objects.exists()

    def test_a_cancelled_email_counts_from_its_cancellation(self, api: Api):
        moment = (timezone.now() + timedelta(days=1)).isoformat()
        email_id = send(api, scheduledFor=moment)
        api.delete(f"/emails/{email_id}")
        age(timedelta(days=364))
        expire()
        assert Email.objects.exists()
        age(timedelta(days=2))
        expire()
        assert not Email.objects.exists()

    def test_the_last_recipients_end_counts(self, api: Api):
        send(api, to=["a@example.com", "b@example.com"])
        first, second = claim()
        record([Result(first, OK)])
        assert Email.objects.get().finished_at is None
        age(LONG_AGO)
        record([Result(second, OK)])
        assert Email.objects.get().finished_at == Recipient.objects.get(id=second.recipient_id).finished_at
        expire()
        assert Email.objects.exists()

    def test_batches_of_any_size_reach_the_end(self, api: Api, monkeypatch):
        monkeypatch.setattr(retention, "AT_ONCE", 2)
        for number in range(5):
            send(api, to=[f"{number}{letter}@example.com" for letter in "abc"[: 1 + number % 3]])
        work()
        age(LONG_AGO)
        expire()
        assert not Email.objects.exists()


@pytest.mark.django_db
class TestWhatStays:
    @pytest.mark.parametrize("state", ["scheduled", "queued", "claimed", "waiting"])
    def test_an_email_with_work_left_stays_whatever_its_age(self, api: Api, state):
        moment = (timezone.now() + timedelta(days=1)).isoformat()
        email_id = send(api, **({"scheduledFor": moment} if state == "scheduled" else {}))
        if state in {"claimed", "waiting"}:
            held = claim()
        if state == "waiting":
            record(
                [
                    Result(one, DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(451, "later"), "temporary"))
                    for one in held
                ]
            )
        age(LONG_AGO)
        expire()
        assert api.get(f"/emails/{email_id}").status_code == 200

    def test_one_recipient_with_work_left_keeps_the_whole(self, api: Api):
        send(api, to=["a@example.com", "b@example.com"])
        record([Result(claim(1)[0], OK)])
        age(LONG_AGO)
        # As if a mistake had marked it: the queue has the last word.
        Email.objects.update(finished_at=timezone.now() - LONG_AGO)
        expire()
        assert Recipient.objects.count() == 2

    def test_content_stays_until_its_last_email_goes(self, api: Api):
        first = send(api, attachments=[FILE])
        second = api.post(f"/emails/{first}/resend").json()["id"]
        work()
        age(LONG_AGO, id=first)
        expire()
        assert api.get(f"/emails/{second}").json()["attachments"][0]["filename"] == "a.txt"
        age(LONG_AGO, id=second)
        expire()
        assert not Content.objects.exists()

    def test_figures_stay_and_the_list_counts_what_there_is(self, api: Api):
        for outcome in (OK, OK, BOUNCED):
            send(api)
            work(outcome)
        before = api.get("/analytics").json(), api.get("/analytics/daily").json(), api.get("/queue/stats").json()
        # Time does not pass here: moved into another hour, emails would not be those that were counted.
        for _ in retention.expired_emails(Workspace.objects.get().id, timedelta(hours=-1)):
            pass
        assert not Email.objects.exists()
        after = api.get("/analytics").json(), api.get("/analytics/daily").json(), api.get("/queue/stats").json()
        assert after == before
        assert after[0]["breakdown"] == {"delivered": 2, "bounced": 1, "opened": 0, "clicked": 0}
        assert [api.get("/emails", {"status": name}).json()["total"] for name in ("", "bounced")] == [0, 0]

    def test_suppressions_usage_and_idempotency_answers_stay(self, api: Api):
        api.post("/suppressions", {"email": "no@example.com"})
        body = mail(idempotencyKey="once")
        first = api.post("/emails/send", body).json()
        used = api.get("/me").json()["quota"]["used"]
        work()
        age(LONG_AGO)
        expire()
        again = api.post("/emails/send", body)
        assert (again.status_code, again.json(), again["Idempotent-Replayed"]) == (202, first, "true")
        assert not Email.objects.exists()
        assert Suppression.objects.count() == 1
        assert api.get("/me").json()["quota"]["used"] == used

    def test_another_workspaces_plan_is_its_own(self, api: Api, bobs_api: Api, bob: Account):
        change_plan(bob.workspace, "free")
        mine = send(api)
        send(bobs_api, **{"from": "x@bob.example"})
        work()
        age(timedelta(days=8))
        expire()
        assert [email.id for email in Email.objects.all()] == [mine]


@pytest.mark.django_db
class TestTemplateVersions:
    TEMPLATE = {"name": "t", "subject": "s", "htmlContent": "<p>1</p>"}

    def versions(self):
        TemplateVersion.objects.filter(retired_at__isnull=False).update(retired_at=timezone.now() - timedelta(days=2))
        expire()
        return sorted(TemplateVersion.objects.values_list("html", flat=True))

    def test_a_version_goes_with_its_last_email_once_it_is_replaced(self, api: Api):
        template_id = api.post("/templates", self.TEMPLATE).json()["id"]
        send(api, html=None, templateId=template_id)
        work()
        api.patch(f"/templates/{template_id}", {"htmlContent": "<p>2</p>"})
        api.patch(f"/templates/{template_id}", {"htmlContent": "<p>3</p>"})
        assert self.versions() == ["<p>1</p>", "<p>3</p>"]
        age(LONG_AGO)
        assert self.versions() == ["<p>3</p>"]
        api.delete(f"/templates/{template_id}")
        assert self.versions() == []

    def test_a_version_stays_for_a_day_for_whoever_has_just_read_it(self, api: Api):
        template_id = api.post("/templates", self.TEMPLATE).json()["id"]
        api.delete(f"/templates/{template_id}")
        expire()
        assert TemplateVersion.objects.count() == 1


@pytest.mark.django_db
def test_the_oldest_are_found_by_the_index_of_lists():
    """No index serves retention alone, and none is scanned for it."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        values = {
            "workspace": UUID(int=1),
            "age": LONG_AGO,
            "created_at": timezone.now(),
            "id": UUID(int=2),
            "limit": 9,
        }
        cursor.execute(f"EXPLAIN {retention.EXPIRED}", values)
        plan = "\n".join(row for (row,) in cursor.fetchall())
    assert "Index Scan Backward using email_newest" in plan


@pytest.mark.django_db
def test_every_table_that_refers_to_an_email_goes_with_it():
    """A new one would keep emails from being deleted, or be left behind.

    Its rows are deleted by emails.upkeep.retention, or by the database, with a constraint that cascades.
    """
    known = {Recipient, Event, Pending}
    referring = {relation.related_model for model in (Email, Recipient) for relation in model._meta.related_objects}
    with connection.cursor() as cursor:
        cursor.execute("SELECT conrelid::regclass::text FROM pg_constraint WHERE contype = 'f' AND confdeltype = 'c'")
        cascading = {table for (table,) in cursor.fetchall()}
    assert {model._meta.db_table for model in referring - known} <= cascading
    assert {relation.related_model for relation in Content._meta.related_objects} == {Email, Attachment}


@pytest.fixture
def committed(transactional_db) -> tuple[Api, Workspace]:
    """Rows that other connections see."""
    from tests.conftest import make_account

    account = make_account("alice")
    make_domain(account.workspace, "alice.example")
    return Api(make_key(account.workspace)), account.workspace


def in_thread(act):
    def run():
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result(timeout=30)


class TestBesideOthers:
    def test_what_somebody_holds_is_left_to_the_next_run(self, committed):
        api, _ = committed
        held, free = send(api), send(api)
        work()
        age(LONG_AGO)
        with transaction.atomic():
            Recipient.objects.select_for_update().get(email=held)
            in_thread(expire)
            assert in_thread(lambda: list(Email.objects.values_list("id", flat=True))) == [held]
        expire()
        assert not Email.objects.filter(id__in=[held, free]).exists()

    def test_an_email_that_is_being_copied_stays(self, committed):
        api, _ = committed
        email_id = send(api)
        work()
        age(LONG_AGO)
        with transaction.atomic():
            Email.objects.select_for_update(no_key=True).get(id=email_id)
            in_thread(expire)
        assert api.post(f"/emails/{email_id}/resend").status_code == 202

    def test_a_cancellation_that_comes_too_late_finds_nothing(self, committed):
        api, _ = committed
        email = Email.objects.get(id=send(api))
        work()
        age(LONG_AGO)
        expire()
        with pytest.raises(NotFound):
            cancel_email(email)

    def test_the_queue_is_never_scanned(self, committed):
        """The look-ups of foreign keys keep the plan of the first, which may have been made beside an empty queue."""
        api, workspace = committed
        send(api)
        work()
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE emails_pending")
        with transaction.atomic(), connection.cursor() as cursor:
            # What this connection has not told of yet counts, too: sending's own looks at a queue of one row.
            before = scans_of_the_queue(cursor)
            for _ in retention.expired_emails(workspace.id, timedelta(hours=-1)):
                pass
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            assert scans_of_the_queue(cursor) == before
        assert not Email.objects.exists()

    def test_only_one_sweep_of_a_kind_runs(self, committed):
        inner = []

        def batches(workspace_id, older_than):
            in_thread(lambda: sweep("test", lambda *_: iter(inner.append(1) or ())))
            yield

        sweep("test", batches)
        assert inner == []
        sweep("test", lambda *_: iter(inner.append(1) or ()))
        assert inner == [1]

    def test_sending_goes_on_beside_it_and_nothing_is_lost(self, committed, monkeypatch):
        """Accepting, recording and deleting at the same time: no deadlock, no error, the right rows left."""
        monkeypatch.setattr(retention, "AT_ONCE", 20)
        api, workspace = committed
        for number in range(120):
            send(api, to=[f"{number}@example.com", "b@example.com"])
        work()
        age(LONG_AGO)
        done = threading.Event()

        def worker():
            while not done.is_set() or Pending.objects.exists():
                record([Result(held, OK) for held in claim(5)])

        def sender():
            key = make_key(workspace)
            return [send(Api(key)) for _ in range(40)]

        def own_connection(act):
            try:
                return act()
            finally:
                connection.close()

        with ThreadPoolExecutor(5) as pool:
            workers = [pool.submit(own_connection, worker) for _ in range(2)]
            senders = [pool.submit(own_connection, sender) for _ in range(2)]
            pool.submit(own_connection, expire).result(timeout=60)
            sent = {id_ for future in senders for id_ in future.result(timeout=60)}
            done.set()
            for future in workers:
                future.result(timeout=60)
        assert set(Email.objects.values_list("id", flat=True)) == sent
        assert set(Email.objects.values_list("status", flat=True)) == {"delivered"}
        assert api.get("/emails").json()["total"] == len(sent) == 80
