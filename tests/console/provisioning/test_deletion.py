"""Deletion of workspaces: keys and sending stop, a restored workspace continues, and an ended one leaves nothing."""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from alerts.services import create_alert
from console.privacy.exports import request_export
from console.privacy.models import SubjectExportPart
from console.privacy.services import request_erasure
from console.privacy.tasks import export
from console.provisioning.erasure import SMALL, TABLES, erase_workspace
from console.provisioning.tasks import erase
from core.counters.counters import fold
from core.lib.ids import to_uuid
from core.lib.worker.stages import Stage
from core.request_log.recording import recorder as request_recorder
from core.workspaces.api import authentication
from core.workspaces.deletion import delete_workspace, restore_workspace
from core.workspaces.errors import WorkspaceDeleted
from core.workspaces.members import invite_member
from core.workspaces.models import AuditEntry, Workspace
from domains.models import Domain, TrackingHost
from emails.models import ApprovalNotice, Attachment, Content, Email, EmailBatch, QueueEntry, Recipient
from emails.queue_stats import read_queue_stats
from events.models import Event
from interfaces.submission.services import begin_message
from receiving.arrival.routing import decide_recipient
from receiving.arrival.storing import Arrival, store_message
from receiving.models import ForwardTarget, Message, ReceivedContent, SharedAddress
from receiving.services import block_sender
from streams.services import create_stream
from suppressions.services import suppress_address
from templates_app.models import Template, TemplateVersion
from tests.conftest import Account, Api, code_of, mail, make_key
from tests.console.dashboard.conftest import make_caught, signed_in
from tests.emails.builders import claim_entries, deliver_all, make_ready, send
from tests.events.feed import publish_committed
from tests.interfaces.compat.test_concurrent_changes import blocked_connections
from tests.receiving.builders import PLAIN, arrive, make_route, receive_for, with_field
from webhooks.services import create_webhook

pytestmark = pytest.mark.django_db

# Deleted by functions that know their order.
OTHERS = {
    "domains_receivingdomain",
    "emails_email",
    "emails_event",
    "emails_pending",
    "events_feedentry",
    "inbox_caughtmail",
    "receiving_message",
    "receiving_receivedemail",
    "templates_app_template",
    "webhooks_webhookdelivery",
    "webhooks_webhookevent",
}
FORMER_EVENT = """
INSERT INTO workspaces_workspaceevent (id, workspace_id, kind, payload, created_at)
VALUES (gen_random_uuid(), %s, 'suppressed', '{}', now())
"""


@pytest.fixture(autouse=True)
def _no_rest_between_batches(monkeypatch):
    monkeypatch.setattr("core.workspaces.retention.REST_RATIO", 0.0)


def path_of(account: Account, action: str = "") -> str:
    return f"/admin/workspaces/{account.workspace.id}{action}"


def delete(platform: Api, account: Account) -> Any:
    response = platform.delete(path_of(account))
    assert response.status_code == 200, response.content
    authentication.cache.clear()
    return response.json()


def end_grace_period(account: Account) -> None:
    Workspace.objects.filter(id=account.workspace.id).update(deletes_at=Now())


def tables_by_workspace() -> set[str]:
    """Return the tables with a column for the workspace."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT table_name FROM information_schema.columns WHERE column_name = 'workspace_id'")
        return {table for (table,) in cursor.fetchall()}


def rows_of(account: Account) -> dict[str, int]:
    """Return the numbers of rows by table that belong to the workspace."""
    counts = {}
    with connection.cursor() as cursor:
        for table in tables_by_workspace():
            cursor.execute(
                f"SELECT count(*) FROM {table} WHERE workspace_id = %s", [to_uuid(account.workspace.id, prefix="ws_")]
            )
            ((counts[table],),) = cursor.fetchall()
    return {table: count for table, count in counts.items() if count}


def add_former_event(account: Account) -> None:
    """Add an event as the version before keeps it, in a table without a model."""
    with connection.cursor() as cursor:
        cursor.execute(FORMER_EVENT, [to_uuid(account.workspace.id, prefix="ws_")])


def fill(api: Api, account: Account) -> None:
    """Create data of every kind."""
    template = api.post("/templates", {"name": "t", "subject": "s", "htmlContent": "<p>Hi</p>"}).json()
    api.patch(f"/templates/{template['id']}", {"htmlContent": "<p>Hello</p>"})
    create_webhook(account.workspace, url="http://127.0.0.1:9/hook", events=["delivered", "sent"])
    sender = f"hi@{account.workspace.name}.example"
    send(
        api,
        **{"from": sender},
        attachments=[{"filename": "a.txt", "content": "QQ=="}],
        idempotencyKey=account.owner.email,
    )
    api.post("/emails/batch", {**mail(to=None, html=None), "from": sender, "templateId": template["id"],
        "recipients": [{"to": "a@example.com"}, {"to": "b@example.com"}]})  # fmt: skip
    deliver_all()
    EmailBatch.objects.create(workspace=account.workspace)
    make_caught(account.workspace)
    fold()
    send(api, **{"from": sender}, scheduledFor=(timezone.now() + timedelta(days=3)).isoformat())
    TrackingHost.objects.create(workspace=account.workspace, name=f"links.{account.workspace.name}.example")
    create_stream(account.workspace, slug="newsletter", name="Newsletter")
    create_alert(account.workspace, metric="bounce_rate", threshold=4, stream="newsletter")
    suppress_address(account.workspace, address="y@example.com", reason="unsubscribe", stream="newsletter")
    suppress_address(account.workspace, address="x@example.com", reason="manual")
    invite_member(account.workspace, email="x@example.com", role="member", by=account.owner)
    fill_received(account)
    publish_committed()


def fill_received(account: Account) -> None:
    """Create data of every kind of receiving."""
    domain = f"{account.workspace.name}.example"
    receive_for(Domain.objects.get(workspace=account.workspace, name=domain))
    make_route(account.workspace, domain=domain)
    block_sender(account.workspace, sender="spam.example")
    ForwardTarget.objects.create(workspace=account.workspace, address="x@example.com")
    SharedAddress.objects.create(workspace=account.workspace, local_part=f"{account.workspace.name:x<12}"[:12])
    source = with_field(f"X-Workspace: {account.workspace.name}")
    arrive(to=f"support@{domain}", source=source, remote_ip="9.9.9.9")


class TestMarking:
    def test_keys_are_refused_at_once_with_the_time_of_deletion(self, platform: Api, api: Api, alice: Account):
        before = timezone.now() + timedelta(days=7)
        deleted = delete(platform, alice)
        response = api.post("/emails/send", mail())
        assert code_of(response) == (403, "workspace_deleted")
        assert response.json()["deletesAt"] == deleted["deletesAt"] > before.isoformat()[:19]
        assert code_of(api.get("/me")) == (403, "workspace_deleted")
        owner_api = Api(make_key_of_deleted(alice))
        assert code_of(owner_api.get("/admin/workspaces")) == (403, "workspace_deleted")

    def test_the_grace_period_is_a_setting(self, platform: Api, alice: Account, settings):
        settings.WORKSPACE_DELETION_DAYS = 30
        assert delete(platform, alice)["deletesAt"] > (timezone.now() + timedelta(days=29)).isoformat()

    def test_smtp_sessions_are_refused(self, platform: Api, alice: Account):
        key = make_key(alice.workspace)
        begin_message(key, client=lambda: None)
        delete(platform, alice)
        with pytest.raises(WorkspaceDeleted):
            begin_message(key, client=lambda: None)

    def test_streams_end(self, platform: Api, alice: Account):
        make_key(alice.workspace)
        key_id = alice.workspace.api_keys.latest("created_at").id
        assert authentication.is_active_key(key_id)
        delete(platform, alice)
        assert not authentication.is_active_key(key_id)

    def test_queued_and_scheduled_emails_are_held_until_the_restoration(self, platform: Api, api: Api, alice: Account):
        send(api)
        send(api, scheduledFor=(timezone.now() + timedelta(days=1)).isoformat())
        delete(platform, alice)
        make_ready()
        assert claim_entries(10) == []
        assert read_queue_stats(alice.workspace).paused == 2
        assert platform.post(path_of(alice, "/restore")).json()["deletesAt"] is None
        assert len(claim_entries(10)) == 2

    def test_a_restored_workspace_sends(self, platform: Api, api: Api, alice: Account):
        delete(platform, alice)
        platform.post(path_of(alice, "/restore"))
        authentication.cache.clear()
        assert api.post("/emails/send", mail()).status_code == 202

    def test_a_suspension_outlives_the_restoration(self, platform: Api, alice: Account):
        platform.post(path_of(alice, "/suspend"), {"reason": "unpaid"})
        delete(platform, alice)
        assert platform.post(path_of(alice, "/restore")).json()["suspendedReason"] == "unpaid"

    def test_deleting_and_restoring_again_change_nothing(self, platform: Api, alice: Account):
        first, second = delete(platform, alice), delete(platform, alice)
        assert first == second
        for _ in range(2):
            platform.post(path_of(alice, "/restore"))
        actions = AuditEntry.objects.filter(act__in=["workspace_deleted", "workspace_restored"])
        assert [(entry.act, entry.about, entry.actor_kind) for entry in actions.order_by("id")] == [
            ("workspace_deleted", "alice", "key"),
            ("workspace_restored", "alice", "key"),
        ]

    def test_nothing_is_created_in_a_deleted_workspace(self, platform: Api, alice: Account):
        delete(platform, alice)
        key = platform.post(path_of(alice, "/api-keys"), {"name": "k", "scope": "read_only"})
        invitation = platform.post(path_of(alice, "/invitations"), {"email": "x@example.com"})
        assert {code_of(key), code_of(invitation)} == {(403, "workspace_deleted")}

    def test_its_owners_invite_nobody(self, platform: Api, alice: Account):
        delete(platform, alice)
        form = {"email": "x@example.com", "role": "member"}
        assert signed_in(alice.owner).post("/dashboard/members/invite/", form).status_code == 403

    def test_after_the_grace_period_the_workspace_is_not_found(self, platform: Api, alice: Account):
        delete(platform, alice)
        end_grace_period(alice)
        for response in (platform.get(path_of(alice)), platform.post(path_of(alice, "/restore"))):
            assert code_of(response) == (404, "not_found")
        restore_workspace(alice.workspace)
        assert Workspace.objects.get(id=alice.workspace.id).is_deleted


def make_key_of_deleted(account: Account) -> str:
    """Return a key of a workspace that was deleted after the key was created."""
    Workspace.objects.filter(id=account.workspace.id).update(deletes_at=None)
    key = make_key(account.workspace, "workspace_admin")
    delete_workspace(account.workspace)
    return key


def arrive_for_both(alice: Account, bob: Account) -> None:
    """Store one message for a recipient of each workspace, who share its content."""
    recipients = [decide_recipient(f"both@{one.workspace.name}.example", sender="").recipient for one in (alice, bob)]
    store_message(Arrival(PLAIN, envelope_from=""), [one for one in recipients if one])


class TestErasure:
    @pytest.fixture
    def filled(self, api: Api, bobs_api: Api, alice: Account, bob: Account) -> dict[str, int]:
        """Fill both workspaces; return the rows of Bob's."""
        fill(api, alice)
        fill(bobs_api, bob)
        add_former_event(alice)
        add_former_event(bob)
        for account in (alice, bob):
            request_erasure(account.workspace, email="gone@example.com")
            request_export(account.workspace, email="ada@example.com")
            ApprovalNotice.objects.create(workspace=account.workspace, has_new=True)
        export()
        assert request_recorder.flush()
        return rows_of(bob)

    def test_every_table_with_a_workspace_is_covered(self, filled):
        covered = {*TABLES, *OTHERS, *(model._meta.db_table for model in SMALL)}
        assert tables_by_workspace() == covered
        # The rows of the test are of every kind.
        assert filled.keys() == covered

    def test_all_data_of_the_workspace_is_deleted_and_none_of_others(self, alice: Account, bob: Account, filled):
        delete_workspace(alice.workspace)
        end_grace_period(alice)
        erase()
        assert rows_of(alice) == {}
        assert not Workspace.objects.filter(id=alice.workspace.id).exists()
        assert rows_of(bob) == filled
        workspace_of_rows = {
            Recipient: "email__workspace",
            Event: "workspace_id",
            Template: "workspace",
            TemplateVersion: "template__workspace",
            Attachment: "content__email__workspace",
            Content: "email__workspace",
            SubjectExportPart: "export__workspace",
        }
        for model, lookup in workspace_of_rows.items():
            assert {*model.objects.values_list(lookup, flat=True)} == {bob.workspace.id}, model
        assert QueueEntry.objects.filter(stage=Stage.SCHEDULED).count() == 1

    def test_content_that_workspaces_share_is_deleted_with_the_last_one(self, alice: Account, bob: Account, filled):
        arrive_for_both(alice, bob)
        assert (Message.objects.count(), ReceivedContent.objects.count()) == (3, 3)
        for account, left in ((alice, 2), (bob, 0)):
            delete_workspace(account.workspace)
            end_grace_period(account)
            erase()
            assert rows_of(account) == {}
            assert (Message.objects.count(), ReceivedContent.objects.count()) == (left, left)

    def test_an_interrupted_run_is_continued_by_the_next(self, alice: Account, filled):
        delete_workspace(alice.workspace)
        end_grace_period(alice)
        batches = len([*filled]) + 5
        for steps in range(batches):
            for _ in zip(range(steps), erase_workspace(alice.workspace.id, timedelta()), strict=False):
                pass
        erase()
        assert rows_of(alice) == {}
        erase()
        assert not Workspace.objects.filter(id=alice.workspace.id).exists()

    def test_nothing_is_deleted_during_the_grace_period(self, alice: Account, bob: Account, filled):
        delete_workspace(bob.workspace)
        before = rows_of(bob)
        erase()
        assert rows_of(bob) == before
        restore_workspace(bob.workspace)
        erase()
        assert Email.objects.filter(workspace=bob.workspace).count() == 4


def erase_in_thread(workspace_id: str) -> None:
    try:
        list(erase_workspace(workspace_id, timedelta()))
    finally:
        connection.close()


def wait_until_blocked_or_done(erasure: Future[None]) -> None:
    for _ in range(3000):
        if wait([erasure], timeout=0.02).done or blocked_connections():
            return
    pytest.fail("The erasure neither waits nor ends.")


@pytest.mark.django_db(transaction=True)
def test_a_restoration_that_is_committed_after_the_grace_period_keeps_the_data(api: Api, alice: Account):
    send(api)
    delete_workspace(alice.workspace)
    end_grace_period(alice)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            # As restore_workspace() does, which compared the time before the grace period ended.
            Workspace.objects.filter(id=alice.workspace.id).update(deletes_at=None)
            erasure = pool.submit(erase_in_thread, alice.workspace.id)
            wait_until_blocked_or_done(erasure)
        erasure.result()
    assert Email.objects.filter(workspace=alice.workspace).count() == QueueEntry.objects.count() == 1
