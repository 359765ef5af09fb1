"""Test keys: nothing leaves and nothing counts, under every entrance (docs/decisions/0109)."""

import pytest

from core.counters.models import CounterDelta
from core.lib.ids import to_uuid, uuid_text
from core.workspaces.key_limits import NO_LIMITS, KeyLimits
from core.workspaces.models import ApiKey, Usage
from core.workspaces.quota import read_quota
from emails.accept.batches import create_batch
from emails.feedback.reports import ReportedEvent, record_reports
from emails.feedback.unsubscribe import unsubscribe
from emails.links import UnsubscribeLink
from emails.models import Email, EmailBatch, Recipient
from emails.upkeep.reconcile import count_slice_differences, find_differences
from emails.upkeep.retention import delete_emails
from events.kinds import EventKind
from suppressions.models import Suppression
from suppressions.services import suppress_address
from tests.conftest import Account, Api, code_of, field_codes, mail, make_domain, make_key
from tests.emails.builders import event_kinds, send
from tests.entrances import ENTRANCES, TEMPLATED, TO, in_an_hour, make_template, sendgrid_batch, sendgrid_mail
from tests.events.feed import publish_committed
from tests.interfaces.compat.conftest import Dialect
from tests.rows import each
from tests.sending_process import relay_to_mail_host, send_everything
from webhooks.models import WebhookEvent

pytestmark = pytest.mark.django_db

DOMAIN = "alice.example"
SENDS = "/v3/user/scheduled_sends"
TEST = KeyLimits(is_test=True)


@pytest.fixture
def account(alice: Account) -> Account:
    make_domain(alice.workspace, DOMAIN)
    make_template(alice.workspace, "welcome")
    return alice


@pytest.fixture
def key(account: Account) -> str:
    return make_key(account.workspace, "sending_access", limits=TEST)


@pytest.fixture
def ci_api(key: str) -> Api:
    return Api(key)


@pytest.fixture
def live_api(account: Account) -> Api:
    return Api(make_key(account.workspace))


class TestKeys:
    def test_a_test_key_has_its_own_prefix_and_says_so_and_that_of_the_other_kind_is_refused(self, account, key):
        assert key.startswith("pr_test_")
        assert Api(key).get("/me").json()["key"]["test"] is True
        live = make_key(account.workspace)
        assert Api(live).get("/me").json()["key"]["test"] is False
        assert code_of(Api(key.replace("pr_test_", "pr_")).get("/me")) == (401, "invalid_api_key")
        assert code_of(Api(live.replace("pr_", "pr_test_")).get("/me")) == (401, "invalid_api_key")

    @each("scope", ["full_access", "read_only", "workspace_admin"])
    def test_it_requires_a_scope_for_sending(self, account, scope):
        api = Api(make_key(account.workspace, "workspace_admin"))
        path = f"/admin/workspaces/{account.workspace.id}/api-keys"
        body = {"name": "CI", "scope": scope, "test": True}
        assert field_codes(api.post(path, body)) == {"test": "requires_sending_access"}
        created = api.post(path, {**body, "scope": "sending_access", "limits": {"domains": [DOMAIN]}}).json()
        assert (created["test"], created["limits"]["domains"]) == (True, [DOMAIN])
        assert created["key"].startswith("pr_test_")
        assert ApiKey.objects.get(id=created["id"]).is_test

    def test_it_reads_templates_and_domains_and_no_live_data(self, ci_api):
        for path in ("/suppressions", "/webhooks", "/events", "/analytics/overview", "/queue/stats"):
            assert code_of(ci_api.get(path))[0] in {403, 404}, path
        assert [one["alias"] for one in ci_api.get("/templates").json()["data"]] == ["welcome"]
        assert [one["name"] for one in ci_api.get("/domains").json()["data"]] == [DOMAIN]

    def test_its_limits_hold(self, account):
        key = make_key(account.workspace, "sending_access", limits=KeyLimits(domains=("other.example",), is_test=True))
        assert code_of(Api(key).post("/emails/send", mail())) == (403, "domain_not_allowed")


@each("name", [name for name in ENTRANCES if name != "dry run"])
def test_nothing_leaves_under_any_entrance(key, settings, name):
    with relay_to_mail_host(settings) as host:
        response = ENTRANCES[name](key, DOMAIN, "welcome" if name in TEMPLATED else None, TO)
        assert response.status_code in {200, 202}, response.content
        assert send_everything() == 1
        assert (host.connections, host.recipients) == (0, [])
    email = Email.objects.get()
    assert (email.is_test, email.status) == (True, "delivered")


def test_a_live_email_leaves_with_the_same_host(live_api, settings):
    with relay_to_mail_host(settings) as host:
        email_id = send(live_api)
        assert send_everything() == 1
        assert (host.connections, host.recipients) == (1, [TO])
    assert live_api.get(f"/emails/{email_id}").json()["test"] is False


@each(("to", "status", "events"), [
    ("ada@example.com", "delivered", ["queued", "sent", "delivered"]),
    ("bounced+label@example.com", "bounced", ["queued", "bounced"]),
    ("complained+a@example.com", "delivered", ["queued", "sent", "delivered", "complained"]),
    ("clicked@example.com", "clicked", ["queued", "sent", "delivered", "opened", "clicked"]),
    ("unsubscribed+a@example.com", "delivered", ["queued", "sent", "delivered", "unsubscribed"]),
    ("nobody@simulator.test", "bounced", ["queued", "bounced"]),
])  # fmt: skip
def test_every_address_behaves_as_the_simulators_and_is_not_suppressed(ci_api, settings, to, status, events):
    with relay_to_mail_host(settings) as host:
        email_id = send(ci_api, to=to)
        send_everything()
        assert host.connections == 0
    found = ci_api.get(f"/emails/{email_id}").json()
    assert (found["status"], found["test"], event_kinds(email_id)) == (status, True, events)
    assert not Suppression.objects.exists()


class TestSuppressions:
    def test_live_suppressions_are_not_applied_to_test_emails(self, account, ci_api, live_api, settings):
        suppress_address(account.workspace, address=TO, reason="bounce")
        assert code_of(live_api.post("/emails/send", mail())) == (422, "recipient_suppressed")
        assert ci_api.post("/emails/send", mail(dryRun=True)).status_code == 200
        batch = {"from": f"hi@{DOMAIN}", "templateId": "welcome", "recipients": [{"to": TO}]}
        assert ci_api.post("/emails/batch", batch).json()["rejected"] == []
        email_id = send(ci_api)
        with relay_to_mail_host(settings):
            send_everything()
        assert ci_api.get(f"/emails/{email_id}").json()["status"] == "delivered"
        assert ci_api.post(f"/emails/{email_id}/resend").status_code == 202

    @each("name", ["resend", "resend batch", "postmark", "postmark bulk", "sendgrid"])
    def test_nor_under_the_compatibility_endpoints(self, account, key, settings, name):
        suppress_address(account.workspace, address=TO, reason="bounce")
        assert ENTRANCES[name](key, DOMAIN, None, TO).status_code in {200, 202}
        with relay_to_mail_host(settings):
            send_everything()
        assert Email.objects.get().status == "delivered"

    def test_reports_and_unsubscribes_of_test_emails_suppress_nobody(self, account, ci_api, settings):
        email_id = send(ci_api)
        with relay_to_mail_host(settings):
            send_everything()
        recipient = Recipient.objects.get()
        record_reports([ReportedEvent(recipient.id, EventKind.COMPLAINED)])
        record_reports([ReportedEvent(recipient.id, EventKind.BOUNCED, is_recipient_fault=True)])
        unsubscribe(UnsubscribeLink(recipient_id=recipient.id, workspace_id=account.workspace.id, address=TO))
        assert {"complained", "bounced", "unsubscribed"} <= {*event_kinds(email_id)}
        assert not Suppression.objects.exists()
        assert not CounterDelta.objects.filter(key__startswith="rated.").exists()


class TestCounts:
    def test_quota_analytics_and_reputation_do_not_change(self, account, ci_api, live_api, settings):
        for api in (ci_api, live_api):
            for to in ("ada@example.com", "clicked@simulator.test"):
                send(api, to=to, tags=["news"])
        send(ci_api, to="bounced@example.com", tags=["news"])
        scheduled = send(ci_api, scheduledFor=in_an_hour())
        assert ci_api.delete(f"/emails/{scheduled}").status_code == 200
        with relay_to_mail_host(settings):
            send_everything()
        assert read_quota(account.workspace).used == Usage.objects.get().used == 2
        deltas = CounterDelta.objects.filter(workspace_id=account.workspace.id)
        counted = {row.key for row in deltas if row.slices}
        assert not any(key.startswith("test.") for key in counted)
        accepted = [row.change for row in deltas.filter(key="status.queued", change__gt=0)]
        assert sum(accepted) == 2
        assert sum(row.change for row in deltas.filter(key="rated.sent")) == 1
        assert find_differences(account.workspace.id) == []
        assert count_slice_differences(account.workspace.id) == 0

    # 501: the plan was changed to a smaller one during the month.
    @each("used", [500, 501])
    def test_a_quota_that_is_used_up_does_not_stop_test_emails(self, account, ci_api, used):
        account.workspace.plan = "free"
        account.workspace.save(update_fields=["plan"])
        send(ci_api)
        Usage.objects.update(used=used)
        send(ci_api)
        assert Usage.objects.get().used == used

    def test_deleted_test_emails_leave_the_counters_right(self, account, ci_api, live_api, settings):
        ids = [send(ci_api, tags=["a"]), send(live_api, to="x@simulator.test", tags=["a"])]
        with relay_to_mail_host(settings):
            send_everything()
        assert len(delete_emails(account.workspace.id, [to_uuid(one) for one in ids])) == 2
        assert find_differences(account.workspace.id) == []
        assert live_api.get("/emails").json()["total"] == 0


class TestReading:
    def test_a_test_key_finds_test_emails_only(self, ci_api, live_api):
        test_id, live_id = send(ci_api), send(live_api, attachments=[{"filename": "a.txt", "content": "QQ=="}])
        (file,) = live_api.get(f"/emails/{live_id}/attachments").json()["data"]
        page = ci_api.get("/emails").json()
        assert ([one["id"] for one in page["data"]], page["total"]) == ([test_id], 1)
        exported = b"".join(ci_api.get("/emails/export").streaming_content).decode()
        assert (test_id in exported, live_id in exported) == (True, False)
        reading = ("", "/events", "/attachments", f"/attachments/{file['id']}")
        changing = [("POST", "/resend"), ("DELETE", ""), ("PATCH", "")]
        for method, path in [*(("GET", path) for path in reading), *changing]:
            response = ci_api.raw(method, f"/emails/{live_id}{path}", b'{"scheduledFor": null}')
            assert code_of(response) == (404, "not_found"), (method, path)

    def test_lists_are_filtered_by_test(self, ci_api, live_api):
        test_id, live_id = send(ci_api), send(live_api)
        expected = {None: {test_id, live_id}, "true": {test_id}, "false": {live_id}, "": {test_id, live_id}}
        for value, ids in expected.items():
            page = live_api.get("/emails", {} if value is None else {"test": value}).json()
            assert ({one["id"] for one in page["data"]}, page["total"]) == (ids, len(ids)), value
            assert all(one.get("test", False) is (one["id"] == test_id) for one in page["data"])
        searched = live_api.get("/emails", {"test": "true", "search": "ada"}).json()
        assert ([one["id"] for one in searched["data"]], searched["total"]) == ([test_id], 1)
        assert ci_api.get("/emails", {"test": "false"}).json()["total"] == 0
        assert field_codes(live_api.get("/emails", {"test": "maybe"})) == {"test": "invalid_choice"}

    @each("status", ["pause", "cancel"])
    def test_a_batch_with_live_emails_is_not_found(self, account, key, live_api, status):
        batch_id = sendgrid_batch(make_key(account.workspace), DOMAIN)
        body = {"batch_id": batch_id, "status": status}
        assert Dialect("sendgrid", key).post(SENDS, body).status_code == 404
        own = {**body, "batch_id": sendgrid_batch(key, DOMAIN)}
        assert Dialect("sendgrid", key).post(SENDS, own).status_code == 201
        assert Usage.objects.get().used == 1

    @each("status", ["pause", "cancel"])
    def test_an_empty_live_batch_is_not_found(self, account, key, status):
        live, test = Dialect("sendgrid", make_key(account.workspace)), Dialect("sendgrid", key)
        batch_id = live.post("/v3/mail/batch").json()["batch_id"]
        body = {"batch_id": batch_id, "status": status}
        assert test.get(f"/v3/mail/batch/{batch_id}").status_code == 404
        assert test.post(SENDS, body).status_code == 404
        assert live.post(SENDS, body).status_code == 201
        assert test.get(SENDS).json() == []
        assert test.call("PATCH", f"{SENDS}/{batch_id}", {"status": "cancel"}).status_code == 404
        assert test.call("DELETE", f"{SENDS}/{batch_id}").status_code == 404
        assert EmailBatch.objects.get().state == {"pause": "paused", "cancel": "cancelled"}[status]

    def test_a_batch_has_emails_of_one_kind(self, account, key):
        keys = make_key(account.workspace), key
        batches = [Dialect("sendgrid", one).post("/v3/mail/batch").json()["batch_id"] for one in keys]
        reasons = []
        for one, batch_id in zip(keys, reversed(batches), strict=True):
            refused = Dialect("sendgrid", one).post("/v3/mail/send", sendgrid_mail(DOMAIN, batch_id=batch_id))
            reasons.append((refused.status_code, refused.json()["errors"][0]["message"]))
        assert reasons == [(400, "This batch is for test emails."), (400, "This batch does not exist.")]
        assert not Email.objects.exists()
        assert [*EmailBatch.objects.values_list("size", flat=True)] == [0, 0]

    def test_a_live_key_changes_a_batch_of_test_emails(self, account, key):
        live = Dialect("sendgrid", make_key(account.workspace))
        body = {"batch_id": sendgrid_batch(key, DOMAIN), "status": "cancel"}
        assert live.post(SENDS, body).status_code == 201
        assert live.get(SENDS).json() == Dialect("sendgrid", key).get(SENDS).json() == [body]
        assert Email.objects.get().status == "cancelled"

    def test_the_progress_of_a_live_bulk_request_is_not_found(self, account, key):
        batch = create_batch(account.workspace, limits=NO_LIMITS)
        path = f"/email/bulk/{uuid_text(batch.id, prefix='bat_')}"
        assert Dialect("postmark", key).get(path).status_code == 404
        assert Dialect("postmark", make_key(account.workspace)).get(path).status_code == 200

    def test_a_copy_of_a_test_email_is_a_test_email(self, ci_api, live_api):
        copy = live_api.post(f"/emails/{send(ci_api)}/resend").json()["id"]
        assert Email.objects.get(id=copy).is_test


def test_idempotency_keys_of_test_and_live_emails_are_separate(ci_api, live_api):
    ids = [api.post("/emails/send", mail(), idempotency_key="k" * 255).json()["id"] for api in (ci_api, live_api) * 2]
    assert (ids[:2], len({*ids})) == (ids[2:], 2)
    in_body = [api.post("/emails/send", mail(idempotencyKey="order-1")).json()["id"] for api in (ci_api, live_api)]
    assert len({*in_body}) == 2


def test_webhooks_say_that_an_event_is_test_data(account, ci_api, live_api, settings):
    hook = {"url": "http://127.0.0.1:9/hook", "events": ["delivered"]}
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True
    assert live_api.post("/webhooks", hook).status_code == 201
    send(ci_api, subject="test"), send(live_api, subject="live", to="delivered@simulator.test")
    with relay_to_mail_host(settings):
        send_everything()
    publish_committed()
    bodies = [event.body for event in WebhookEvent.objects.all()]
    assert {('"subject": "test"' in one or '"subject":"test"' in one, '"test":true' in one.replace(": ", ":")) for one
            in bodies} == {(True, True), (False, False)}  # fmt: skip
