"""Exports of people: the content of the file, interruptions, erasures, expiry and access."""

import io
import json
import zipfile
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from console.privacy import exports
from console.privacy.exporting import emails as email_exports
from console.privacy.exporting import erasure as part_deletion
from console.privacy.exporting import parts
from console.privacy.models import SubjectExport, SubjectExportPart
from console.privacy.receipts import EXPORTED, KINDS
from console.privacy.records import RECORDS
from console.privacy.tasks import erase, export
from core.workspaces.audit import AuditAction
from core.workspaces.models import AuditEntry
from emails.models import Recipient
from emails.sending.outgoing_messages import rebuild_message
from emails.upkeep import erasure as email_steps
from suppressions.models import Suppression
from tests.conftest import Account, Api, make_key
from tests.console.dashboard.conftest import make_caught, make_received, signed_in
from tests.console.privacy.people import ADA, tables_containing, use_all
from tests.emails.builders import deliver_all, send
from tests.rows import each

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_rest_between_steps(monkeypatch):
    monkeypatch.setattr("core.workspaces.retention.REST_RATIO", 0.0)


@pytest.fixture
def owner(alice: Account) -> Client:
    return signed_in(alice.owner)


def request(api: Api, email: str = ADA) -> str:
    response = api.post("/subject-exports", {"email": email})
    assert response.status_code == 202, response.content
    return str(response.json()["id"])


def state(api: Api, export_id: str) -> Any:
    return api.get(f"/subject-exports/{export_id}").json()


def download(api: Api, export_id: str) -> dict[str, bytes]:
    """Return the files of an export by name, after a check of their sums."""
    response = api.get(f"/subject-exports/{export_id}/download")
    assert response.status_code == 200, response.content
    with zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content))) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def export_now(api: Api, email: str = ADA) -> dict[str, bytes]:
    export_id = request(api, email)
    export()
    return download(api, export_id)


def rows(files: dict[str, bytes], kind: str) -> list[Any]:
    found: list[Any] = json.loads(files.get(f"{kind}.json", b"[]"))
    return found


class TestContent:
    def test_it_equals_a_list_made_by_hand(self, api: Api, alice: Account):
        use_all(api, alice)
        files = export_now(api)
        found = {
            # To the person with their recipient, and naming it without one.
            "emails": Counter((one["subject"], len(one["recipients"])) for one in rows(files, "emails")),
            "events": Counter(one["type"] for one in rows(files, "events")),
            "deliveries": Counter(json.loads(one["body"])["event"] for one in rows(files, "webhookDeliveries")),
            "received": {(one["envelopeFrom"], one["recipient"]) for one in rows(files, "receivedEmails")},
            "caught": [one["recipient"] for one in rows(files, "caughtMessages")],
            "suppressions": [(one["email"], one["reason"]) for one in rows(files, "suppressions")],
            "keys": [one["key"] for one in rows(files, "idempotencyKeys")],
            "audit": [one["action"] for one in rows(files, "auditEntries")],
            "settings": [one["kind"] for one in rows(files, "configuration")],
            "accounts": [(one["kind"], one["role"]) for one in rows(files, "accounts")],
            "reports": [one.get("provider", "mail") for one in rows(files, "reports")],
            "messages": Counter(name.partition("/")[0] for name in files if name.endswith(".eml")),
        }
        assert found == {
            "emails": {
                ("Hi", 1): 1,
                ("Hello", 1): 2,
                ("Secret", 1): 1,
                (f"Order of {ADA}", 0): 1,
                ("Hello", 0): 3,
            },
            "events": {"queued": 8, "sent": 4, "delivered": 4, "suppression.added": 1},
            "deliveries": {"sent": 4, "delivered": 4},
            "received": {(ADA, "support@alice.example"), (ADA, ADA)},
            "caught": [ADA],
            "suppressions": [(ADA, "manual")],
            "keys": ["batch", f"welcome-{ADA}"],
            "audit": ["suppression_added", "sender_blocked"],
            "settings": ["blockedSender", "forwardTarget"],
            "accounts": [("invitation", "member")],
            "reports": ["mail", "mailgun"],
            "messages": {"emails": 3, "received": 2, "caught": 1},
        }

    def test_every_kind_of_record_is_in_use_here_and_has_a_way_out(self, api: Api, alice: Account):
        """Who adds a kind of record that holds people has to add it here, to erasures and to exports."""
        use_all(api, alice)
        api.post("/erasures", {"email": ADA})
        export_id = request(api)
        export()
        counts = state(api, export_id)["records"]
        assert {kind for kind, count in counts.items() if not count} == set()
        files = download(api, export_id)
        assert {kind: len(rows(files, kind)) for kind in EXPORTED} == counts
        assert {kind for records in RECORDS for kind in records.kinds} == {*KINDS, *EXPORTED}

    def test_every_table_with_the_address_has_a_kind(self, api: Api, alice: Account):
        use_all(api, alice)
        request(api)
        api.post("/erasures", {"email": ADA})
        assert tables_containing(ADA) == {
            "emails_acceptance",
            "emails_email",
            "emails_event",
            "emails_recipient",
            "inbound_providerreport",
            "inbox_caughtmail",
            "privacy_erasure",
            "privacy_subjectexport",
            "receiving_forwardtarget",
            "receiving_message",
            "receiving_receivedemail",
            "receiving_senderblock",
            "suppressions_suppression",
            "webhooks_webhookevent",
            "workspaces_auditentry",
            "workspaces_invitation",
        }

    def test_a_message_is_what_the_person_received(self, api: Api):
        send(api, to=ADA, html="<p>Hello</p>", attachments=[{"filename": "a.txt", "content": "QQ=="}])
        deliver_all()
        files = export_now(api)
        recipient = Recipient.objects.get()
        (record,) = rows(files, "emails")
        assert record["messages"] == [f"emails/{recipient.id}.eml"]
        assert files[record["messages"][0]] == rebuild_message(recipient)
        assert record["attachments"] == [{"filename": "a.txt", "contentType": "text/plain", "size": 1}]
        assert record["htmlContent"] == "<p>Hello</p>"

    def test_sensitive_content_is_not_kept(self, api: Api):
        send(api, to=ADA, html="<p>482913-secret</p>", sensitive=True)
        files = export_now(api)
        (record,) = rows(files, "emails")
        names = ("htmlContent", "text", "attachments", "messages", "templateData")
        assert {record[name] for name in names} == {"not kept"}
        assert not [name for name, data in files.items() if b"482913-secret" in data]

    def test_other_recipients_are_shown_as_the_person_saw_them(self, api: Api):
        send(api, to=ADA, cc=["bob@example.com"], bcc=["carol@example.com"])
        deliver_all()
        files = export_now(api)
        (record,) = rows(files, "emails")
        assert (record["cc"], [one["email"] for one in record["recipients"]]) == (["bob@example.com"], [ADA])
        assert not [name for name, data in files.items() if b"carol@example.com" in data]
        assert {one["payload"].get("to", ADA) for one in rows(files, "events")} == {ADA}

    def test_longer_addresses_and_other_workspaces_are_not_in_it(self, api: Api, bobs_api: Api, alice: Account):
        for longer in ("xada@example.com", "ada@example.com.au"):
            send(api, to=longer)
            api.post("/suppressions", {"email": longer})
            make_received(alice.workspace, envelope_from=longer, addresses={"from": [{"email": longer}]})
            make_caught(alice.workspace, f"To: {longer}\r\n\r\n".encode(), recipient=longer)
        send(bobs_api, to=ADA, **{"from": "x@bob.example"})
        bobs_api.post("/suppressions", {"email": ADA})
        assert set(export_now(api)) == {"person.json"}

    def test_it_has_the_actions_of_a_member_and_of_nobody_else(self, api: Api, alice: Account, owner):
        api.post("/suppressions", {"email": "bob@example.com"})
        owner.post(f"/dashboard/suppressions/{Suppression.objects.get().id}/delete/")
        found = rows(export_now(api, alice.owner.email), "auditEntries")
        assert [(one["action"], one["actor"]) for one in found] == [("suppression_removed", alice.owner.email)]

    def test_an_email_is_named_once_whatever_names_the_person_in_it(self, api: Api):
        send(api, to=ADA, subject=f"For {ADA}", metadata={"customer": ADA})
        assert len(rows(export_now(api), "emails")) == 1

    def test_text_of_any_language_and_no_text_at_all_are_valid_json(self, api: Api):
        assert set(export_now(api)) == {"person.json"}
        send(api, to=ADA, subject="Größe 🙂")
        assert rows(export_now(api), "emails")[0]["subject"] == "Größe 🙂"


class TestMaking:
    @each("size", [1, 2, 100])
    def test_pages_of_any_size_find_everything(self, api: Api, alice: Account, monkeypatch, size):
        for name in ("SCANNED_EMAILS", "SCANNED_ROWS"):
            monkeypatch.setattr(email_steps, name, size)
        monkeypatch.setattr(email_exports, "EMAILS", size)
        monkeypatch.setattr("receiving.deletion.SCANNED_EMAILS", size)
        monkeypatch.setattr("core.erasing.audit_log.ENTRIES", size)
        monkeypatch.setattr("interfaces.inbound.queue.FOUND_REPORTS", size)
        monkeypatch.setattr(parts, "PIECE_BYTES", 100 * size)
        use_all(api, alice)
        files = export_now(api)
        assert (len(rows(files, "emails")), len(rows(files, "receivedEmails"))) == (8, 2)

    def test_an_interrupted_export_continues_and_is_the_same(self, api: Api, alice: Account, monkeypatch):
        monkeypatch.setattr(email_exports, "EMAILS", 2)
        use_all(api, alice)
        whole = export_now(api)
        export_id = request(api)
        for number, records in enumerate(RECORDS):
            failing = [*RECORDS[:number], Failing(records.export), *RECORDS[number + 1 :]]
            monkeypatch.setattr(exports, "RECORDS", failing)
            with pytest.raises(InterruptedError):
                export()
            SubjectExport.objects.update(due_at=timezone.now() - timedelta(days=1))
            monkeypatch.setattr(exports, "RECORDS", RECORDS)
        export()
        files = download(api, export_id)
        for name in whole.keys() - {"person.json", "privacyRequests.json"}:
            assert files[name] == whole[name], name
        assert files.keys() - {"privacyRequests.json"} == whole.keys()

    def test_an_error_of_one_export_delays_no_other(self, api: Api, bobs_api: Api, bob: Account, monkeypatch):
        ids = request(api), request(bobs_api)
        first = RECORDS[0]

        class FailsForAlice:
            @staticmethod
            def export(scope, place, writer):
                if scope.workspace_id != bob.workspace.id:
                    raise InterruptedError
                return first.export(scope, place, writer)

        monkeypatch.setattr(exports, "RECORDS", [FailsForAlice, *RECORDS[1:]])
        with pytest.raises(InterruptedError):
            export()
        export()
        assert [state(api, ids[0])["status"], state(bobs_api, ids[1])["status"]] == ["processing", "completed"]

    def test_the_number_of_statements_is_linear(self, api: Api):
        numbers = []
        for count in (20, 20):
            for _ in range(count):
                send(api, to=ADA)
            deliver_all()
            request(api)
            with CaptureQueriesContext(
                connection,
            ) as queries:
                export()
            numbers.append(len(queries))
        assert numbers[1] < 2.2 * numbers[0]

    def test_messages_beyond_the_limit_are_left_out_and_counted(self, api: Api, monkeypatch):
        monkeypatch.setattr(parts, "MAX_BYTES", 3_000)
        for _ in range(5):
            send(api, to=ADA, html=f"<p>{'x' * 900}</p>")
        deliver_all()
        export_id = request(api)
        export()
        body, files = state(api, export_id), download(api, export_id)
        messages = [name for name in files if name.endswith(".eml")]
        assert len(rows(files, "emails")) == 5
        assert body["messagesLeftOut"] == 5 - len(messages) > 0
        assert json.loads(files["person.json"])["messagesLeftOut"] == body["messagesLeftOut"]

    @each("missing", [0, 1])
    def test_a_message_may_fill_the_limit(self, api: Api, monkeypatch, missing):
        send(api, to=ADA)
        deliver_all()
        # Messages are the first files of an export.
        size = len(rebuild_message(Recipient.objects.get()))
        monkeypatch.setattr(parts, "MAX_BYTES", size - missing)
        export_id = request(api)
        export()
        assert state(api, export_id)["messagesLeftOut"] == missing

    def test_all_exports_of_a_workspace_have_a_limit(self, api: Api, bobs_api: Api, monkeypatch):
        for who, sender in ((api, "x@alice.example"), (bobs_api, "x@bob.example")):
            for to in (ADA, "bob@example.com"):
                send(who, to=to, **{"from": sender})
        deliver_all()
        request(api)
        export()
        monkeypatch.setattr(parts, "MAX_KEPT_BYTES", SubjectExport.objects.get().size + 100)
        found = [(who, request(who, "bob@example.com")) for who in (api, bobs_api)]
        export()
        assert [state(who, export_id)["messagesLeftOut"] for who, export_id in found] == [1, 0]

    def test_the_same_request_returns_the_same_export_until_it_is_completed(self, api: Api):
        first = request(api)
        assert request(api, "ADA@example.com") == first
        assert state(api, first)["downloadUrl"] is None
        response = api.get(f"/subject-exports/{first}/download")
        assert (response.status_code, response.json()["code"]) == (409, "export_not_ready")
        export()
        assert state(api, first)["downloadUrl"].endswith(f"/v1/subject-exports/{first}/download")
        assert request(api) != first

    def test_the_number_of_exports_is_limited(self, api: Api, monkeypatch):
        monkeypatch.setattr(exports, "MAX_KEPT", 2)
        request(api, "a@example.com")
        request(api, "b@example.com")
        response = api.post("/subject-exports", {"email": "c@example.com"})
        assert (response.status_code, response.json()["code"]) == (403, "plan_limit_reached")
        SubjectExport.objects.update(email="")
        request(api, "c@example.com")


class Failing:
    """A kind of records whose export fails after its work, which is rolled back."""

    def __init__(self, export_step: Any) -> None:
        self.export_step = export_step

    def export(self, scope: Any, place: Any, writer: Any) -> None:
        self.export_step(scope, place, writer)
        raise InterruptedError


class TestEnd:
    def test_after_seven_days_the_file_and_the_address_are_deleted(self, api: Api, monkeypatch):
        monkeypatch.setattr(part_deletion, "PARTS", 1)
        send(api, to=ADA)
        export_id = request(api)
        export()
        made = SubjectExport.objects.get()
        assert made.expires_at - made.completed_at == timedelta(days=7)
        SubjectExport.objects.update(expires_at=timezone.now())
        assert api.get(f"/subject-exports/{export_id}/download").status_code == 404
        assert state(api, export_id)["status"] == "expired"
        export()
        assert not SubjectExportPart.objects.exists()
        body = state(api, export_id)
        assert (body["status"], body["email"], body["downloadUrl"]) == ("expired", "", None)

    @each("is_made", [True, False])
    def test_an_erasure_deletes_the_exports_of_the_person(self, api: Api, is_made):
        send(api, to=ADA)
        deliver_all()
        export_id = request(api)
        if is_made:
            export()
        else:
            next(exports.make_exports())
        erasure_id = api.post("/erasures", {"email": ADA}).json()["id"]
        erase()
        assert api.get(f"/erasures/{erasure_id}").json()["deleted"]["subjectExports"] == 1
        export()
        assert state(api, export_id)["status"] == "expired"
        assert not SubjectExportPart.objects.exists()

    def test_an_erasure_makes_exports_of_others_again_that_have_a_part_of_it(
        self, api: Api, alice: Account, monkeypatch
    ):
        monkeypatch.setattr(part_deletion, "PARTS", 1)
        send(api, to="bob@example.com", cc=[ADA])
        kept = send(api, to="bob@example.com")
        make_received(alice.workspace, sender="carol@example.com")
        deliver_all()
        bobs, carols = request(api, "bob@example.com"), request(api, "carol@example.com")
        export()
        expires_at = state(api, bobs)["expiresAt"]
        before = SubjectExport.objects.get(id=carols).edition
        api.post("/erasures", {"email": ADA})
        erase()
        assert state(api, bobs)["status"] == "processing"
        assert not SubjectExportPart.objects.filter(export=bobs).exists()
        assert SubjectExport.objects.get(id=carols).edition == before
        export()
        files = download(api, bobs)
        assert [one["id"] for one in rows(files, "emails")] == [kept]
        assert not [name for name, data in files.items() if ADA.encode() in data]
        # Its time does not begin again.
        assert state(api, bobs)["expiresAt"] == expires_at


class TestAccess:
    @each("scope", ["read_only", "sending_access", "sending_only"])
    def test_only_full_access_requests_and_downloads(self, api: Api, alice: Account, scope):
        export_id = request(api)
        export()
        other = Api(make_key(alice.workspace, scope))
        for response in (
            other.post("/subject-exports", {"email": ADA}),
            other.get(f"/subject-exports/{export_id}/download"),
        ):
            assert (response.status_code, response.json()["code"]) == (403, "insufficient_scope")
            assert response.json()["requiredScope"] == "full_access"
        assert other.get(f"/subject-exports/{export_id}").status_code == (200 if scope == "read_only" else 403)

    def test_a_foreign_export_is_not_found(self, api: Api, bobs_api: Api):
        export_id = request(api)
        export()
        for path in (f"/subject-exports/{export_id}", f"/subject-exports/{export_id}/download"):
            assert bobs_api.get(path).status_code == 404
            assert Api().get(path).status_code == 401
        assert Api().post("/subject-exports", {"email": ADA}).status_code == 401

    @each("body", [{}, {"email": "nobody"}, {"email": ADA, "all": True}])
    def test_invalid_fields_are_refused(self, api: Api, body):
        assert api.post("/subject-exports", body).json()["code"] == "validation_error"

    def test_the_audit_log_has_requests_and_downloads_without_the_address(self, api: Api, alice: Account):
        export_id = request(api)
        export()
        download(api, export_id)
        entries = AuditEntry.objects.filter(workspace=alice.workspace, about=export_id)
        assert [entry.act for entry in entries.order_by("id")] == [
            AuditAction.EXPORT_REQUESTED,
            AuditAction.EXPORT_DOWNLOADED,
        ]


class TestDashboard:
    def test_an_owner_exports_a_person_and_downloads_the_file(self, api: Api, owner):
        send(api, to=ADA)
        deliver_all()
        page = f"/dashboard/emails/recipient/export-person/?address={ADA}"
        assert page in owner.get(f"/dashboard/emails/recipient/?address={ADA}").content.decode().replace("%40", "@")
        assert "seven days" in owner.get(page).content.decode()
        assert not SubjectExport.objects.exists()
        response = owner.post(page, follow=True)
        assert "The file is being made" in response.content.decode()
        export()
        shown = owner.get(response.redirect_chain[-1][0]).content.decode()
        assert "The file is ready" in shown
        export_id = SubjectExport.objects.get().id
        file = owner.get(f"/dashboard/emails/recipient/subject-export/file/?id={export_id}")
        with zipfile.ZipFile(io.BytesIO(b"".join(file.streaming_content))) as archive:
            assert "emails.json" in archive.namelist()
        assert AuditEntry.objects.filter(act=AuditAction.EXPORT_DOWNLOADED, actor_kind="person").count() == 1

    def test_members_and_owners_of_others_do_not(self, api: Api, alice: Account, bob: Account):
        export_id = request(api)
        export()
        alice.workspace.memberships.update(role="member")
        member, other = signed_in(alice.owner), signed_in(bob.owner)
        for name in ("subject-export", "subject-export/file"):
            for client in (member, other):
                assert client.get(f"/dashboard/emails/recipient/{name}/?id={export_id}").status_code == 404
        assert member.post(f"/dashboard/emails/recipient/export-person/?address={ADA}").status_code == 404
        page = member.get(f"/dashboard/emails/recipient/?address={ADA}").content.decode()
        assert "export-person" not in page
        assert not AuditEntry.objects.filter(act=AuditAction.EXPORT_DOWNLOADED).exists()

    def test_an_expired_file_is_not_found(self, api: Api, owner):
        export_id = request(api)
        export()
        SubjectExport.objects.update(expires_at=timezone.now())
        assert owner.get(f"/dashboard/emails/recipient/subject-export/file/?id={export_id}").status_code == 404
        page = owner.get(f"/dashboard/emails/recipient/subject-export/?id={export_id}").content.decode()
        assert "The file is deleted" in page
