"""Monthly quota: months, plans, cancellation and concurrent requests (docs/specification.md, Plans and quota)."""

from datetime import UTC, date, datetime, timedelta

import pytest

from core.workspaces.api import authentication
from core.workspaces.models import Usage, Workspace
from core.workspaces.quota import _next_month
from core.workspaces.services import MonthlyUsage, usage_history
from emails.models import Email
from emails.upkeep.retention import delete_expired_emails
from tests.conftest import Api, later, mail, make_account, make_domain, make_key
from tests.rows import each
from tests.threads import run_concurrently

THIS_MONTH = datetime.now(UTC).date().replace(day=1)
LAST_MONTH = (THIS_MONTH - timedelta(days=1)).replace(day=1)


def quota(api):
    return api.get("/me").json()["quota"]


def on_plan(workspace, plan, *, used=0):
    Workspace.objects.filter(id=workspace.id).update(plan=plan)
    Usage.objects.update_or_create(workspace=workspace, month=THIS_MONTH, defaults={"used": used})
    authentication.cache.clear()


def scheduled(api, **fields):
    response = api.post("/emails/send", mail(scheduledFor=later(), **fields))
    assert response.status_code == 202, response.content
    return response.json()["id"]


@pytest.mark.django_db
class TestMonths:
    def test_the_last_unit_is_accepted_and_the_next_refused(self, api, alice):
        on_plan(alice.workspace, "free", used=499)
        assert [api.post("/emails/send", mail()).status_code for _ in range(2)] == [202, 429]
        assert (quota(api)["used"], quota(api)["remaining"]) == (500, 0)

    def test_a_new_month_begins_at_zero(self, api, alice):
        on_plan(alice.workspace, "free", used=500)
        Usage.objects.update(month=LAST_MONTH)
        assert quota(api)["used"] == 0
        assert api.post("/emails/send", mail()).status_code == 202
        assert dict(Usage.objects.values_list("month", "used")) == {LAST_MONTH: 500, THIS_MONTH: 1}

    @each(("month", "following"), [((2026, 11), (2026, 12)), ((2026, 12), (2027, 1)), ((2027, 1), (2027, 2))])
    def test_it_resets_at_the_first_of_the_next_month(self, month, following):
        assert _next_month(datetime(*month, 1, tzinfo=UTC)) == datetime(*following, 1, tzinfo=UTC)

    def test_retention_refunds_nothing(self, api, alice):
        api.delete(f"/emails/{scheduled(api)}")
        api.post("/emails/send", mail())
        before = quota(api)["used"]
        for _ in delete_expired_emails(alice.workspace.id, timedelta(hours=-1)):
            pass
        assert (Email.objects.count(), quota(api)["used"]) == (1, before)


@pytest.mark.django_db
class TestPlans:
    def test_a_smaller_plan_refuses_new_emails_and_keeps_the_usage(self, api, alice):
        on_plan(alice.workspace, "pro", used=700)
        assert api.post("/emails/send", mail()).status_code == 202
        on_plan(alice.workspace, "free", used=701)
        response = api.post("/emails/send", mail())
        assert (response.status_code, response.json()["code"], response.json()["used"]) == (429, "quota_exceeded", 701)
        assert (quota(api)["used"], quota(api)["remaining"]) == (701, 0)

    def test_a_larger_plan_applies_immediately(self, api, alice):
        on_plan(alice.workspace, "free", used=500)
        assert api.post("/emails/send", mail()).status_code == 429
        on_plan(alice.workspace, "enterprise", used=500)
        assert api.post("/emails/send", mail()).status_code == 202
        assert quota(api) | {"resetsAt": ""} == {"limit": None, "used": 501, "remaining": None, "resetsAt": ""}


@pytest.mark.django_db
class TestCancelling:
    @each(("unit", "units"), [("email", 1), ("recipient", 3)])
    def test_units_are_refunded_once(self, api, settings, unit, units):
        settings.QUOTA_UNIT = unit
        # A repeated address is one recipient and takes one unit.
        email_id = scheduled(api, to=["a@example.com", "A@example.com"], cc=["b@example.com"], bcc=["c@example.com"])
        assert quota(api)["used"] == units
        for _ in range(2):
            assert api.delete(f"/emails/{email_id}").status_code == 200
        assert quota(api)["used"] == 0


@pytest.fixture
def committed(transactional_db):
    account = make_account("alice", plan="free")
    make_domain(account.workspace, "alice.example")
    return account.workspace, make_key(account.workspace)


class TestConcurrency:
    def test_concurrent_batches_are_all_or_nothing(self, committed):
        workspace, key = committed
        template = Api(key).post("/templates", {"name": "t", "subject": "s", "htmlContent": "x"}).json()["id"]
        Usage.objects.create(workspace=workspace, month=THIS_MONTH, used=490)
        recipients = [{"to": f"{number}@example.com"} for number in range(4)]
        body = {"from": "x@alice.example", "templateId": template, "recipients": recipients}
        statuses = run_concurrently(lambda _: Api(key).post("/emails/batch", body).status_code, range(6))
        assert sorted(statuses) == [202] * 2 + [429] * 4
        assert (Usage.objects.get().used, Email.objects.count()) == (498, 8)

    def test_concurrent_sends_and_cancellations_leave_the_correct_usage(self, committed):
        _, key = committed
        ids = [scheduled(Api(key)) for _ in range(6)]

        def send_or_cancel(number):
            if number % 2:
                return Api(key).post("/emails/send", mail()).status_code
            return Api(key).delete(f"/emails/{ids[number // 2]}").status_code

        assert set(run_concurrently(send_or_cancel, range(12))) == {200, 202}
        assert Usage.objects.get().used == Email.objects.exclude(status="cancelled").count() == 6


@pytest.mark.django_db
class TestHistory:
    def test_it_has_each_month_oldest_first_with_zeros(self, alice, bob):
        Usage.objects.create(workspace=alice.workspace, month=THIS_MONTH, used=7)
        Usage.objects.create(workspace=alice.workspace, month=LAST_MONTH, used=5)
        Usage.objects.create(workspace=alice.workspace, month=date(2020, 1, 1), used=9)
        Usage.objects.create(workspace=bob.workspace, month=THIS_MONTH, used=3)
        history = usage_history(alice.workspace)
        assert len(history) == 12
        assert history[-2:] == [MonthlyUsage(LAST_MONTH, 5), MonthlyUsage(THIS_MONTH, 7)]
        assert [one.used for one in history[:-2]] == [0] * 10
        assert [one.month for one in history] == sorted({one.month for one in history})
        assert all(one.month.day == 1 for one in history)

    def test_one_month_is_this_one(self, alice):
        assert usage_history(alice.workspace, months=1) == [MonthlyUsage(THIS_MONTH, 0)]
