"""Approval: emails of a key or stream that requires it wait for one decision (docs/decisions/0390)."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.lib.worker.stages import Stage
from core.workspaces.api import authentication
from core.workspaces.key_limits import NO_LIMITS, read_limits
from core.workspaces.models import AuditEntry, Usage
from core.workspaces.recipients.caps import Cap
from core.workspaces.recipients.rules import read_rules
from core.workspaces.services import change_rules
from emails import approvals
from emails.accept.batches import cancel_batch, create_batch, pause_batch, resume_batch
from emails.approvals import approve_email, cancel_lapsed
from emails.models import APPROVAL_PERIOD, CapWindow, Email, EmailBatch, QueueEntry, Recipient
from emails.sending.outgoing_messages import rebuild_message
from emails.sending.scheduling import fail_expired, promote_due
from emails.upkeep.reconcile import find_differences
from events.models import Event
from streams.services import create_stream, pause_stream, resume_stream, streams_cache, update_stream
from suppressions.services import suppress_address
from tests.conftest import Account, Api, code_of, field_codes, later, mail, make_account, make_domain, make_key
from tests.emails.builders import (
    LONG_AGO,
    claim_entries,
    counter_values,
    deliver_all,
    event_kinds,
    fold,
    make_due,
    send,
)
from tests.entrances import ENTRANCES, TEMPLATED, make_template
from tests.rows import each
from tests.sending_process import relay_to_mail_host, send_everything
from tests.threads import run_concurrently

pytestmark = pytest.mark.django_db
NEEDS_APPROVAL = read_limits(needs_approval=True)


def approval_key(account: Account, **options) -> Api:
    """Return a client with a key whose emails wait."""
    return Api(make_key(account.workspace, "sending_access", limits=NEEDS_APPROVAL, **options))


@pytest.fixture
def sender(api: Api, alice: Account) -> Api:
    return approval_key(alice)


@pytest.fixture
def approver(alice: Account) -> Api:
    return Api(make_key(alice.workspace, "approvals"))


def held(api: Api, email_id: str) -> dict | None:
    return api.get(f"/emails/{email_id}").json().get("held")


def used() -> int:
    return sum(Usage.objects.values_list("used", flat=True))


def lapse() -> None:
    """Let the time for decisions be over, and run the periodic task."""
    Email.objects.filter(approval_expires_at__isnull=False).update(approval_expires_at=LONG_AGO)
    for _ in cancel_lapsed():
        pass


class TestAcceptance:
    def test_an_email_of_the_key_is_queued_and_held(self, sender: Api, approver: Api):
        response = sender.post("/emails/send", mail()).json()
        email = approver.get(f"/emails/{response['id']}").json()
        assert response["status"] == email["status"] == "queued"
        assert response["held"] == email["held"]
        assert email["held"]["reason"] == "approval"
        since, until = (datetime.fromisoformat(email["held"][name]) for name in ("since", "expiresAt"))
        assert until - since == APPROVAL_PERIOD
        assert email["waitingFor"]["cause"] == "approval"
        assert event_kinds(response["id"]) == ["queued", "held"]
        assert QueueEntry.objects.get().stage == Stage.UNAPPROVED
        assert used() == 1
        promote_due()
        assert claim_entries() == []

    def test_so_is_one_of_a_stream_through_any_key(self, api: Api, alice: Account, approver: Api):
        create_stream(alice.workspace, slug="risky", name="Risky", approval="required")
        assert held(approver, send(api, stream="risky"))
        assert held(approver, send(api)) is None
        api.patch("/streams/main", {"approval": "required"})
        streams_cache.clear()
        assert held(approver, send(api))
        assert api.patch("/streams/main", {"approval": None}).json().get("approval") is None
        streams_cache.clear()
        assert held(approver, send(api)) is None

    def test_others_are_accepted_with_the_same_statements(self, api: Api, sender: Api):
        def statements(client: Api) -> list[str]:
            send(client)
            with CaptureQueriesContext(connection) as queries:
                send(client)
            return [query["sql"] for query in queries]

        usual, waiting = statements(api), statements(sender)
        assert len(usual) == len(waiting)
        assert not any("emails_approvalnotice" in sql for sql in usual)
        assert any("emails_approvalnotice" in sql for sql in waiting)

    def test_each_email_of_a_batch_waits(self, api: Api, sender: Api, approver: Api):
        api.post("/templates", {"name": "T", "alias": "t", "subject": "Hi {{name}}", "htmlContent": "<p>{{name}}</p>"})
        recipients = [{"to": f"{name}@example.com", "templateData": {"name": name}} for name in ("ada", "eve")]
        body = {"from": "hi@alice.example", "templateId": "t", "recipients": recipients}
        response = sender.post("/emails/batch", body).json()
        assert response["held"]["reason"] == "approval"
        listed = approver.get("/emails", {"held": "approval"}).json()
        assert {email["id"] for email in listed["data"]} == set(response["ids"])
        assert all(email["held"] for email in listed["data"])
        assert approver.post(f"/emails/{response['ids'][0]}/approve").status_code == 200
        assert [claim.workspace_id for claim in claim_entries()] == [Email.objects.all()[0].workspace_id]

    def test_emails_of_test_keys_wait_too_and_use_no_quota(self, api: Api, alice: Account, approver: Api):
        limits = read_limits(needs_approval=True, is_test=True)
        email_id = send(Api(make_key(alice.workspace, "sending_access", limits=limits)))
        assert held(approver, email_id)
        assert used() == 0
        approver.post(f"/emails/{email_id}/approve")
        assert len(claim_entries()) == 1

    def test_a_copy_waits_again(self, sender: Api, api: Api, approver: Api):
        email_id = send(sender)
        approver.post(f"/emails/{email_id}/approve")
        deliver_all()
        copy = sender.post(f"/emails/{email_id}/resend").json()
        assert held(approver, copy["id"])
        assert held(approver, api.post(f"/emails/{email_id}/resend").json()["id"]) is None

    def test_a_sensitive_email_is_refused_because_nobody_could_read_it(self, sender: Api, alice: Account):
        assert field_codes(sender.post("/emails/send", mail(sensitive=True))) == {"sensitive": "needs_approval"}
        assert not Email.objects.exists()
        create_stream(alice.workspace, slug="risky", name="Risky", approval="required")
        api = Api(make_key(alice.workspace))
        refused = api.patch("/streams/risky", {"sensitive": True})
        assert (refused.status_code, refused.json()["field"]) == (422, "approval")

    def test_a_dry_run_leaves_nothing(self, sender: Api):
        assert sender.post("/emails/send", mail(dryRun=True)).status_code == 200
        assert not Email.objects.exists()


@each("name", [name for name in ENTRANCES if name != "dry run"])
def test_every_entrance_holds_an_email(alice: Account, approver: Api, settings, name):
    make_domain(alice.workspace, "alice.example")
    make_template(alice.workspace, "welcome")
    secret = make_key(alice.workspace, "sending_access", limits=NEEDS_APPROVAL)
    template = "welcome" if name in TEMPLATED else None
    response = ENTRANCES[name](secret, "alice.example", template, "ada@example.com")
    assert response.status_code in {200, 202}, response.content
    email = Email.objects.get()
    assert email.held
    with relay_to_mail_host(settings) as host:
        assert send_everything() == 0
        assert approver.post(f"/emails/{email.id}/approve").status_code == 200
        assert send_everything() == 1
    assert host.recipients == ["ada@example.com"]


class TestKeys:
    @each("scope", ["full_access", "sending_access", "sending_only", "read_only", "workspace_admin"])
    def test_no_other_scope_decides(self, sender: Api, alice: Account, scope):
        email_id = send(sender)
        for act in ("approve", "reject"):
            refused = Api(make_key(alice.workspace, scope)).post(f"/emails/{email_id}/{act}")
            assert code_of(refused) == (403, "insufficient_scope")
            assert refused.json()["requiredScope"] == "approvals"
        assert Email.objects.get().held

    def test_the_key_that_sends_cannot_decide(self, sender: Api):
        assert code_of(sender.post(f"/emails/{send(sender)}/approve")) == (403, "insufficient_scope")

    def test_an_approving_key_reads_emails_and_does_nothing_else(self, sender: Api, approver: Api):
        email_id = send(sender)
        for path in ("/emails", f"/emails/{email_id}", f"/emails/{email_id}/events", "/me"):
            assert approver.get(path).status_code == 200, path
        for path in ("/templates", "/emails/export", "/suppressions"):
            assert code_of(approver.get(path)) == (403, "insufficient_scope"), path
        assert code_of(approver.post("/emails/send", mail())) == (403, "insufficient_scope")
        assert code_of(approver.delete(f"/emails/{email_id}")) == (403, "insufficient_scope")

    def test_an_email_of_another_workspace_is_not_found(self, sender: Api, bob: Account):
        email_id = send(sender)
        stranger = Api(make_key(bob.workspace, "approvals"))
        for act in ("approve", "reject"):
            assert code_of(stranger.post(f"/emails/{email_id}/{act}")) == (404, "not_found")
        assert Email.objects.get().held

    @each("scope", ["full_access", "read_only", "approvals", "workspace_admin"])
    def test_only_a_key_that_sends_and_changes_nothing_needs_approval(self, alice: Account, scope):
        admin = Api(make_key(alice.workspace, "workspace_admin"))
        body = {"name": "Assistant", "scope": scope, "approval": "required"}
        path = f"/admin/workspaces/{alice.workspace.id}/api-keys"
        assert field_codes(admin.post(path, body)) == {"approval": "requires_sending_access"}
        created = admin.post(path, {**body, "scope": "sending_only"}).json()
        assert created["approval"] == "required"
        assert Api(created["key"]).get("/me").json()["key"]["approval"] == "required"

    def test_other_keys_do_not_mention_it(self, api: Api):
        assert "approval" not in api.get("/me").json()["key"]
        assert "held" not in api.get(f"/emails/{send(api)}").json()
        assert "held" not in api.get("/emails").json()["data"][0]
        assert "approval" not in api.get("/streams/main").json()


class TestApproval:
    def test_an_approved_email_is_sent(self, sender: Api, approver: Api):
        email_id = send(sender, to=["ada@example.com", "eve@example.com"])
        response = approver.post(f"/emails/{email_id}/approve")
        assert response.status_code == 200
        decision = response.json()["decision"]
        assert (decision["decision"], decision["by"]["kind"]) == ("approved", "key")
        assert decision["by"]["name"].startswith("test (pr_")
        assert response.json()["status"] == "queued"
        assert held(approver, email_id) is None
        deliver_all()
        assert Counter(Recipient.objects.values_list("state", flat=True)) == {"delivered": 2}
        assert event_kinds(email_id)[:3] == ["queued", "held", "approved"]
        assert Event.objects.get(kind="approved").payload["by"] == decision["by"]
        entry = AuditEntry.objects.get(act="email_approved")
        assert (entry.about, entry.actor) == (email_id, decision["by"]["name"])

    def test_a_changed_template_changes_nothing(self, api: Api, sender: Api, approver: Api, settings):
        settings.SENDING_DOMAIN_POLICY = "registered"
        body = {"name": "T", "alias": "t", "subject": "Hi {{name}}", "htmlContent": "<p>Dear {{name}}</p>"}
        template = api.post("/templates", body).json()["id"]
        email_id = send(sender, subject=None, html=None, templateId="t", templateData={"name": "Ada"})
        shown = approver.get(f"/emails/{email_id}").json()
        message = rebuild_message(Recipient.objects.get())
        api.patch(f"/templates/{template}", {"subject": "Other", "htmlContent": "<p>Other</p>"})
        api.delete(f"/templates/{template}")
        assert approver.get(f"/emails/{email_id}").json()["htmlContent"] == shown["htmlContent"] == "<p>Dear Ada</p>"
        approver.post(f"/emails/{email_id}/approve")
        with relay_to_mail_host(settings) as host:
            assert send_everything() == 1
        assert host.messages == [message]
        assert b"Other" not in message

    def test_the_message_that_is_shown_is_the_one_that_is_sent(self, sender: Api, approver: Api, settings):
        email_id = send(sender, to=["ada@example.com", "eve@example.com"], html='<a href="https://a.example">A</a>')
        shown = {rebuild_message(recipient) for recipient in Recipient.objects.all()}
        approver.post(f"/emails/{email_id}/approve")
        with relay_to_mail_host(settings) as host:
            send_everything()
        assert set(host.messages) == shown

    def test_suppressions_are_checked_again(self, sender: Api, approver: Api, alice: Account):
        email_id = send(sender)
        suppress_address(alice.workspace, address="ada@example.com", reason="manual")
        approver.post(f"/emails/{email_id}/approve")
        assert send_everything() == 0
        assert Recipient.objects.get().reason == "recipient_suppressed"

    def test_recipient_rules_are_checked_again(self, sender: Api, approver: Api, alice: Account, settings):
        refused, allowed = send(sender, to="eve@example.net"), send(sender)
        change_rules(alice.workspace, rules=read_rules(allow=["@example.com"]))
        for email_id in (refused, allowed):
            assert approver.post(f"/emails/{email_id}/approve").status_code == 200
        with relay_to_mail_host(settings) as host:
            send_everything()
        assert host.recipients == ["ada@example.com"]
        recipient = Recipient.objects.get(email=refused)
        assert (recipient.state, recipient.reason) == ("failed", "recipient_not_allowed")

    def test_a_cap_counts_it_once(self, sender: Api, api: Api, approver: Api, alice: Account, settings):
        change_rules(alice.workspace, rules=read_rules(caps=[Cap(2, 3600)]))
        authentication.cache.clear()
        email_id = send(sender)
        approver.post(f"/emails/{email_id}/approve")
        with relay_to_mail_host(settings) as host:
            send_everything()
        assert host.recipients == ["ada@example.com"]
        assert len(CapWindow.objects.get().uses) == 1
        send(api)
        assert code_of(api.post("/emails/send", mail())) == (429, "recipient_capped")

    def test_a_cap_refuses_it_if_others_left_while_it_waited(
        self, sender: Api, api: Api, approver: Api, alice: Account
    ):
        change_rules(alice.workspace, rules=read_rules(caps=[Cap(1, 3600)]))
        authentication.cache.clear()
        email_id = send(sender)
        CapWindow.objects.update(uses={})
        send(api)
        approver.post(f"/emails/{email_id}/approve")
        send_everything()
        recipient = Recipient.objects.get(email=email_id)
        assert (recipient.state, recipient.reason) == ("failed", "recipient_capped")

    def test_a_paused_stream_still_holds_it(self, sender: Api, approver: Api, alice: Account):
        create_stream(alice.workspace, slug="news", name="News")
        email_id = send(sender, stream="news")
        pause_stream(alice.workspace, "news", reason="Complaints")
        approver.post(f"/emails/{email_id}/approve")
        assert send_everything() == 0
        assert QueueEntry.objects.get().stage == Stage.HELD
        resume_stream(alice.workspace, "news")
        promote_due()
        assert len(claim_entries()) == 1

    def test_the_time_that_it_waited_does_not_count(self, sender: Api, approver: Api):
        email_id = send(sender)
        QueueEntry.objects.update(since=LONG_AGO, due_at=LONG_AGO)
        approver.post(f"/emails/{email_id}/approve")
        assert QueueEntry.objects.get().since > datetime.now(UTC) - timedelta(minutes=1)

    def test_an_email_expires_while_it_waits(self, sender: Api, approver: Api):
        email_id = send(sender, deliverWithin=60)
        QueueEntry.objects.update(expires_at=LONG_AGO)
        assert fail_expired() == 1
        payload = Event.objects.get(kind="failed").payload
        assert (payload["reason"], payload["waitedFor"]) == ("expired", "approval")
        assert held(approver, email_id) is None
        assert code_of(approver.post(f"/emails/{email_id}/approve")) == (409, "email_not_held")
        assert approver.get("/emails", {"held": "approval"}).json()["total"] == 0

    def test_a_suspended_workspace_sends_nothing(self, sender: Api, approver: Api, alice: Account):
        from core.workspaces.account_status import suspend_workspace

        email_id = send(sender)
        suspend_workspace(alice.workspace, reason="Spam")
        assert approver.post(f"/emails/{email_id}/approve").status_code == 200
        assert claim_entries() == []


class TestRejection:
    def test_a_rejected_email_is_cancelled_and_its_quota_returned(self, sender: Api, approver: Api):
        email_id = send(sender, to=["ada@example.com", "eve@example.com"])
        response = approver.post(f"/emails/{email_id}/reject", {"reason": "Wrong price"}).json()
        assert (response["status"], response["decision"]["reason"]) == ("cancelled", "Wrong price")
        email = approver.get(f"/emails/{email_id}").json()
        assert email["status"] == "cancelled"
        assert {one["reason"] for one in email["recipients"]} == {"approval_rejected"}
        assert event_kinds(email_id) == ["queued", "held", "rejected", "cancelled"]
        assert Event.objects.get(kind="rejected").payload["reason"] == "Wrong price"
        assert Event.objects.get(kind="cancelled").payload["reason"] == "approval_rejected"
        assert AuditEntry.objects.filter(act="email_rejected", about=email_id).exists()
        assert used() == 0
        assert not QueueEntry.objects.exists()

    def test_the_quota_of_captured_recipients_is_not_returned_again(
        self, api: Api, sender: Api, approver: Api, alice: Account, settings
    ):
        settings.QUOTA_UNIT = "recipient"
        change_rules(alice.workspace, rules=read_rules(allow=["@example.com"], otherwise="capture"))
        authentication.cache.clear()
        send(api)
        email_id = send(sender, to=["ada@example.com"], cc=["eve@example.net"])
        assert used() == 2
        assert approver.post(f"/emails/{email_id}/reject").status_code == 200
        assert used() == 1

    def test_an_unknown_field_is_refused(self, sender: Api, approver: Api):
        email_id = send(sender)
        refused = approver.post(f"/emails/{email_id}/reject", {"because": "Wrong price"})
        assert field_codes(refused) == {"because": "unknown_field"}
        assert Email.objects.get().held


class TestDecisions:
    @each(("first", "second"), [("approve", "reject"), ("reject", "approve"), ("approve", "approve")])
    def test_only_the_first_counts_and_the_second_is_told_it(self, sender: Api, approver: Api, first, second):
        email_id = send(sender)
        decision = approver.post(f"/emails/{email_id}/{first}").json()["decision"]
        refused = approver.post(f"/emails/{email_id}/{second}")
        assert code_of(refused) == (409, "email_not_held")
        assert refused.json()["decision"] == decision
        assert decision["by"]["name"] in refused.json()["detail"]
        assert sum(kind in {"approved", "rejected"} for kind in event_kinds(email_id)) == 1

    @each("act", ["approve", "reject"])
    def test_a_decision_that_is_not_committed_changes_nothing(self, sender: Api, approver: Api, monkeypatch, act):
        email_id = send(sender, to=["ada@example.com", "eve@example.com"])

        def fail(*arguments: object, **options: object) -> None:
            raise RuntimeError("the process dies")

        monkeypatch.setattr(approvals, "record_action", fail)
        assert approver.post(f"/emails/{email_id}/{act}").status_code == 500
        assert held(approver, email_id)
        assert set(QueueEntry.objects.values_list("stage", flat=True)) == {Stage.UNAPPROVED}
        assert event_kinds(email_id) == ["queued", "held"]
        monkeypatch.undo()
        assert approver.post(f"/emails/{email_id}/{act}").status_code == 200

    def test_an_email_that_never_waited_has_none(self, api: Api, approver: Api):
        refused = approver.post(f"/emails/{send(api)}/approve")
        assert code_of(refused) == (409, "email_not_held")
        assert "decision" not in refused.json()

    def test_after_seven_days_the_task_cancels_it(self, sender: Api, approver: Api, api: Api):
        ids = [send(sender) for _ in range(3)]
        other = send(api)
        approver.post(f"/emails/{ids[0]}/approve")
        Email.objects.filter(id=ids[1]).update(approval_expires_at=LONG_AGO)
        refused = approver.post(f"/emails/{ids[1]}/approve")
        assert code_of(refused) == (409, "email_not_held")
        for _ in cancel_lapsed():
            pass
        assert dict(Email.objects.values_list("id", "status")) == {
            ids[0]: "queued", ids[1]: "cancelled", ids[2]: "queued", other: "queued"
        }  # fmt: skip
        assert Event.objects.get(kind="cancelled").payload["reason"] == "approval_expired"
        assert Recipient.objects.get(email=ids[1]).reason == "approval_expired"
        assert used() == 3
        decision = approver.post(f"/emails/{ids[1]}/reject").json()["decision"]
        assert decision["decision"] == "expired"

    def test_many_are_cancelled_in_a_number_of_statements_that_does_not_grow(self, sender, bob, monkeypatch):
        make_domain(bob.workspace, "bob.example")
        others = approval_key(bob)
        counts = []
        for number in (2, 20):
            for _ in range(number):
                send(sender)
                send(others, **{"from": "hi@bob.example"})
            with CaptureQueriesContext(connection) as queries:
                lapse()
            counts.append(len(queries))
        assert counts[0] == counts[1]
        assert set(Email.objects.values_list("status", flat=True)) == {"cancelled"}
        monkeypatch.setattr(approvals, "BATCH_SIZE", 2)
        for _ in range(5):
            send(sender)
        lapse()
        assert used() == 0

    def test_counters_and_rows_agree_after_each_way(self, sender: Api, approver: Api, alice: Account):
        ids = [send(sender) for _ in range(4)] + [send(sender, scheduledFor=later())]
        for email_id, act in zip(ids, ("approve", "reject"), strict=False):
            approver.post(f"/emails/{email_id}/{act}")
        sender.delete(f"/emails/{ids[2]}")
        make_due()
        promote_due()
        fold()
        assert find_differences(alice.workspace.id) == []
        assert counter_values()["recipients.delayed"] == 2
        lapse()
        fold()
        assert find_differences(alice.workspace.id) == []


class TestCancelling:
    def test_the_sender_cancels_an_email_that_waits(self, sender: Api, approver: Api):
        email_id = send(sender)
        assert sender.delete(f"/emails/{email_id}").status_code == 200
        assert used() == 0
        assert "reason" not in Event.objects.get(kind="cancelled").payload
        refused = approver.post(f"/emails/{email_id}/approve")
        assert code_of(refused) == (409, "email_not_held")
        assert refused.json()["decision"]["decision"] == "cancelled"
        assert approver.get("/emails", {"held": "approval"}).json()["total"] == 0

    def test_not_one_that_was_approved(self, sender: Api, approver: Api):
        email_id = send(sender)
        approver.post(f"/emails/{email_id}/approve")
        assert code_of(sender.delete(f"/emails/{email_id}")) == (409, "email_not_cancellable")


class TestSchedules:
    def test_approved_before_its_time_it_is_sent_then(self, sender: Api, approver: Api):
        email_id = send(sender, scheduledFor=later(), to=["ada@example.com", "eve@example.com"])
        assert held(approver, email_id)
        response = approver.post(f"/emails/{email_id}/approve").json()
        assert response["status"] == "scheduled"
        promote_due()
        assert claim_entries() == []
        make_due()
        promote_due()
        assert len(claim_entries()) == 2

    def test_when_its_time_comes_it_is_queued_and_waits(self, sender: Api, approver: Api):
        email_id = send(sender, scheduledFor=later(), to=["ada@example.com", "eve@example.com"])
        make_due()
        promote_due()
        assert claim_entries() == []
        email = approver.get(f"/emails/{email_id}").json()
        assert (email["status"], email["held"]["reason"]) == ("queued", "approval")
        approver.post(f"/emails/{email_id}/approve")
        assert len(claim_entries()) == 2

    def test_sent_now_it_waits(self, sender: Api, approver: Api):
        email_id = send(sender, scheduledFor=later())
        assert sender.patch(f"/emails/{email_id}", {"scheduledFor": None}).json()["status"] == "queued"
        assert held(approver, email_id)
        assert claim_entries() == []
        approver.post(f"/emails/{email_id}/approve")
        assert len(claim_entries()) == 1

    def test_rejected_before_its_time_it_is_cancelled(self, sender: Api, approver: Api):
        email_id = send(sender, scheduledFor=later(), to=["ada@example.com", "eve@example.com"])
        approver.post(f"/emails/{email_id}/reject")
        assert Email.objects.get().status == "cancelled"
        assert used() == 0
        assert not QueueEntry.objects.exists()

    def test_a_paused_batch_holds_an_approved_email(self, sender: Api, approver: Api, alice: Account):
        batch = create_batch(alice.workspace, limits=NO_LIMITS)
        email_id = send(sender, scheduledFor=later())
        EmailBatch.objects.update(size=1)
        Email.objects.update(batch=batch)
        pause_batch(batch, limits=NO_LIMITS)
        approver.post(f"/emails/{email_id}/approve")
        promote_due()
        assert claim_entries() == []
        resume_batch(batch, limits=NO_LIMITS)
        make_due()
        promote_due()
        assert len(claim_entries()) == 1

    def test_a_cancelled_batch_cancels_an_email_that_waits(self, sender: Api, approver: Api, alice: Account):
        batch = create_batch(alice.workspace, limits=NO_LIMITS)
        email_id = send(sender, scheduledFor=later())
        Email.objects.update(batch=batch)
        cancel_batch(batch, limits=NO_LIMITS)
        assert code_of(approver.post(f"/emails/{email_id}/approve")) == (409, "email_not_held")
        assert used() == 0


class TestList:
    def test_the_filter_finds_those_that_wait(self, sender: Api, api: Api, approver: Api):
        waiting, _other = send(sender, subject="Price list"), send(api)
        found = approver.get("/emails", {"held": "approval"}).json()
        assert ([email["id"] for email in found["data"]], found["total"]) == ([waiting], 1)
        assert approver.get("/emails", {"held": "approval", "search": "price"}).json()["total"] == 1
        assert approver.get("/emails", {"held": "approval", "search": "other"}).json()["total"] == 0
        assert approver.get("/emails", {"held": "approval", "status": "scheduled"}).json()["total"] == 0
        assert field_codes(approver.get("/emails", {"held": "quota"})) == {"held": "invalid_choice"}


@pytest.mark.django_db(transaction=True)
class TestConcurrency:
    def test_two_hundred_approvals_send_one_message(self, settings):
        # From as many connections as the server of the tests takes.
        account = make_account("alice")
        make_domain(account.workspace, "alice.example")
        email_id = send(approval_key(account))
        email = Email.objects.get()
        recorded = run_concurrently(lambda _: [attempt(email), attempt(email)], range(100))
        assert Counter(one for pair in recorded for one in pair) == {"approved": 1, "email_not_held": 199}
        with relay_to_mail_host(settings) as host:
            while send_everything():
                pass
        assert len(host.messages) == 1
        assert event_kinds(email_id).count("approved") == 1

    def test_approvals_rejections_cancellations_and_the_end_make_one_decision(self):
        account = make_account("alice")
        make_domain(account.workspace, "alice.example")
        sender, approver = approval_key(account), Api(make_key(account.workspace, "approvals"))
        for number in range(10):
            email_id = send(sender, to=["ada@example.com", "eve@example.com"])
            if number % 2:
                Email.objects.filter(id=email_id).update(approval_expires_at=datetime.now(UTC))

            def decide(act: str, email_id: str = email_id) -> int:
                if act == "lapse":
                    return len(list(cancel_lapsed()))
                if act == "cancel":
                    return int(sender.delete(f"/emails/{email_id}").status_code)
                return int(approver.post(f"/emails/{email_id}/{act}").status_code)

            statuses = run_concurrently(decide, ["approve", "reject", "approve", "cancel", "lapse"])
            assert set(statuses) <= {200, 409, 0}
            kinds = event_kinds(email_id)
            assert ("approved" in kinds) + ("cancelled" in kinds) == 1, kinds
            is_sent = QueueEntry.objects.filter(recipient__email=email_id).exists()
            assert is_sent == ("approved" in kinds)
        fold()
        assert find_differences(account.workspace.id) == []


def attempt(email: Email) -> str:
    """Approve an email; return the decision or the code of the problem."""
    from core.api.errors import Problem

    try:
        return approve_email(email).decision
    except Problem as problem:
        return problem.code


def test_streams_that_required_approval_keep_accepted_emails_waiting(api: Api, alice: Account, approver: Api):
    create_stream(alice.workspace, slug="risky", name="Risky", approval="required")
    email_id = send(api, stream="risky")
    update_stream(alice.workspace, "risky", changes={"approval": ""})
    assert held(approver, email_id)
    assert claim_entries() == []
