"""Received email in the APIs of Resend, Postmark and SendGrid."""

import base64
import json
from datetime import UTC, datetime

import pytest
from django.test import Client

from core.lib.ids import uuid_text
from core.workspaces.key_limits import read_limits
from core.workspaces.models import Workspace
from domains.receiving.services import active_cache
from interfaces.compat.sendgrid.receiving.format import form_fields
from receiving.inlining import load_inlined
from receiving.models import InboundRoute, ReceivedEmail, SenderBlock
from tests.conftest import make_domain, make_key
from tests.events.feed import publish_committed
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_resend import error
from tests.receiving.builders import arrive, make_route, receive, receive_for
from tests.receiving.test_webhook_formats import BYTES, SOURCE, TO
from tests.rows import each
from webhooks.models import Webhook, WebhookDelivery
from webhooks.serializers import WebhookInput
from webhooks.services import create_webhook

pytestmark = pytest.mark.django_db

HOOK = "https://hooks.example.com/in"


@pytest.fixture(autouse=True)
def _receiving(settings, alice):
    settings.RECEIVING_DOMAIN = "in.demo.example"
    settings.RECEIVING_MX = ["mx.demo.example"]
    active_cache.clear()
    receive_for(make_domain(alice.workspace, "alice.example"))


@pytest.fixture
def key(alice) -> str:
    return make_key(alice.workspace)


@pytest.fixture
def route(alice) -> InboundRoute:
    return make_route(alice.workspace)


def shown(email: ReceivedEmail) -> str:
    return uuid_text(email.id, prefix="inb_")


def download(url: str) -> bytes:
    response = Client().get(url.partition(":8000")[2])
    assert response.status_code == 200
    return b"".join(response.streaming_content) if response.streaming else response.content


def test_resend_reads_a_received_email(resend, route):
    email = receive(SOURCE, TO)
    read = resend.get(f"/emails/receiving/{shown(email)}").json()
    assert (read["object"], read["id"], read["from"]) == ("email", shown(email), '"Lövelace, Ada" <ada@example.com>')
    assert (read["to"], read["cc"], read["bcc"]) == ([TO, "bob@example.com"], ["eve@example.com"], [])
    assert (read["reply_to"], read["received_for"]) == (["ada+back@example.com"], [TO])
    assert (read["subject"], read["message_id"]) == ("Wo ist 4711?", "<one@example.com>")
    assert read["headers"]["from"] == read["from"]
    logo, paper = read["attachments"]
    image = base64.b64encode(BYTES[::-1]).decode()
    assert read["html"].strip() == f'<p>Grüße</p><img src="data:image/png;base64,{image}">'
    assert read["html_format"] == "data_uri"
    as_sent = resend.get(f"/emails/receiving/{shown(email)}?html_format=cid").json()
    assert as_sent["html"].strip() == '<p>Grüße</p><img src="cid:logo@example.com">'
    assert as_sent["html_format"] == "cid"
    assert error(resend.get(f"/emails/receiving/{shown(email)}?html_format=x")) == (422, "validation_error")
    assert download(read["raw"]["download_url"]).endswith(SOURCE)
    path = f"/emails/receiving/{shown(email)}/attachments"
    listed = resend.get(path).json()
    assert [entry["id"] for entry in listed["data"]] == [logo["id"], paper["id"]]
    one = resend.get(f"{path}/{paper['id']}").json()
    assert one == {
        "object": "attachment",
        **listed["data"][1],
        **{name: one[name] for name in ("download_url", "expires_at")},
    }
    assert download(one["download_url"]) == BYTES
    first = resend.get(f"{path}?limit=1").json()
    assert (first["has_more"], len(first["data"])) == (True, 1)
    assert resend.get(f"{path}?after={logo['id']}").json()["data"][0]["id"] == paper["id"]
    assert resend.get(f"{path}?before={paper['id']}").json()["data"][0]["id"] == logo["id"]
    assert error(resend.get(f"{path}?before=x")) == (422, "validation_error")
    assert error(resend.get(f"{path}/{shown(email)}")) == (404, "not_found")


def test_resends_list_has_pages(resend, route):
    emails = [shown(receive(SOURCE + str(number).encode(), TO)) for number in range(3)][::-1]
    page = resend.get("/emails/receiving?limit=2").json()
    assert ([item["id"] for item in page["data"]], page["has_more"]) == (emails[:2], True)
    rest = resend.get(f"/emails/receiving?after={emails[1]}").json()
    assert ([item["id"] for item in rest["data"]], rest["has_more"]) == (emails[2:], False)
    assert [item["id"] for item in resend.get(f"/emails/receiving?before={emails[1]}").json()["data"]] == emails[:1]
    assert error(resend.get("/emails/receiving?after=x")) == (404, "not_found")


def test_keys_that_only_send_read_nothing(alice, route):
    email = receive(SOURCE, TO)
    for limits in ({}, {"is_test": True}):
        sender = make_key(alice.workspace, "sending_access", limits=read_limits(**limits))
        assert Dialect("resend", sender).get("/emails/receiving").json()["data"] == []
        assert Dialect("postmark", sender).get("/messages/inbound").json()["TotalCount"] == 0
        assert Dialect("resend", sender).get(f"/emails/receiving/{shown(email)}").status_code == 404


def test_a_domain_of_resend_receives(resend, alice, settings):
    created = resend.post("/domains", {"name": "in.example.com", "capabilities": {"receiving": "enabled"}}).json()
    assert created["capabilities"] == {"sending": "enabled", "receiving": "enabled"}
    (record,) = [entry for entry in created["records"] if entry["record"] == "Receiving"]
    assert record == {
        "record": "Receiving", "name": "@", "type": "MX", "ttl": "3600", "status": "pending",
        "value": "mx.demo.example", "priority": 10,
    }  # fmt: skip
    path = f"/domains/{created['id']}"
    assert resend.call("PATCH", path, {"capabilities": {"receiving": "disabled"}}).status_code == 200
    assert resend.get(path).json()["capabilities"]["receiving"] == "disabled"
    for capabilities in ({"sending": "disabled"}, {"receiving": "yes"}, []):
        assert error(resend.call("PATCH", path, {"capabilities": capabilities}))[0] == 422
    listed = {domain["name"]: domain["capabilities"]["receiving"] for domain in resend.get("/domains").json()["data"]}
    assert listed == {"alice.example": "enabled", "in.example.com": "disabled"}


def test_resends_webhooks_have_received_emails(resend, route):
    created = resend.post("/webhooks", {"endpoint": HOOK, "events": ["email.received"]}).json()
    email = receive(SOURCE, TO)
    publish_committed()
    (event,) = resend.get(f"/webhooks/{created['id']}/events").json()["data"]
    assert event["type"] == "email.received"
    payload = resend.get(f"/webhooks/{created['id']}/events/{event['id']}").json()["payload"]
    assert payload["data"]["email_id"] == shown(email)


def test_postmark_lists_and_filters(postmark, alice, route):
    email = receive(SOURCE, TO)
    SenderBlock.objects.create(workspace=alice.workspace, sender="eve@example.com")
    blocked = receive(SOURCE.replace(b"<ada@example.com>", b"<eve@example.com>"), "other@alice.example")
    arrive(SOURCE, "third@alice.example")

    def listed(**query: str) -> list[str]:
        found = postmark.get("/messages/inbound?" + "&".join(f"{name}={text}" for name, text in query.items())).json()
        assert found["TotalCount"] == len(found["InboundMessages"])
        return [message["OriginalRecipient"] for message in found["InboundMessages"]]

    assert listed(count="10", offset="0") == ["third@alice.example", "other@alice.example", TO]
    assert listed(recipient="OTHER") == listed(fromemail="eve") == listed(status="blocked") == ["other@alice.example"]
    assert listed(mailboxhash="4711") == listed(status="processed") == [TO]
    assert listed(status="queued") == ["third@alice.example"]
    assert listed(subject="4711", fromdate="2020-01-01") == [TO, "other@alice.example"][::-1]
    assert listed(todate="2020-01-01") == listed(status="failed") == listed(tag="x") == []
    assert postmark.get("/messages/inbound?count=501&offset=0").json()["ErrorCode"] == 700
    assert postmark.get("/messages/inbound?foo=1").json()["ErrorCode"] == 700
    details = postmark.get(f"/messages/inbound/{shown(blocked)}/details").json()
    assert (details["Status"], details["BlockedReason"]) == ("Blocked", "The sender is blocked by an inbound rule.")
    read = postmark.get(f"/messages/inbound/{shown(email)}/details").json()
    assert (read["Status"], read["MessageID"], read["MailboxHash"]) == ("Processed", shown(email), "4711")
    assert (read["TextBody"].splitlines()[0], read["Date"]) == ("Grüße,", "Fri, 20 Nov 2026 09:12:29 +0000")
    assert [entry["Name"] for entry in read["Attachments"]] == ["logo.png", 'päper".pdf']
    assert read["Headers"][0] == {"Name": "Return-Path", "Value": "<ada@example.com>"}


def test_postmarks_status_is_that_of_the_webhook(postmark, alice, route):
    postmark.call("PUT", "/server", {"InboundHookUrl": HOOK})
    email = receive(SOURCE, TO)
    publish_committed()
    path = f"/messages/inbound/{shown(email)}"
    states = []
    for status in ("pending", "exhausted", "succeeded"):
        WebhookDelivery.objects.update(status=status)
        shown_status = postmark.get(f"{path}/details").json()["Status"]
        states.append(shown_status)
        assert postmark.get(f"/messages/inbound?status={shown_status.lower()}").json()["TotalCount"] == 1
    assert states == ["Scheduled", "Failed", "Processed"]
    answer = postmark.call("PUT", f"{path}/retry").json()
    assert answer == {"ErrorCode": 0, "Message": f"Successfully rescheduled failed message: {shown(email)}."}
    assert WebhookDelivery.objects.get().status == "pending"


def test_postmark_bypasses_a_blocked_message_once(postmark, alice, route):
    SenderBlock.objects.create(workspace=alice.workspace, sender="ada@example.com")
    email = receive(SOURCE, TO, envelope_from="other@example.com")
    path = f"/messages/inbound/{shown(email)}/bypass"
    assert postmark.call("PUT", path).json()["ErrorCode"] == 0
    again = postmark.call("PUT", path)
    assert (again.status_code, again.json()["ErrorCode"]) == (422, 702)
    stored = arrive(SOURCE, "other@alice.example", envelope_from="other@example.com")
    assert postmark.call("PUT", f"/messages/inbound/{shown(stored)}/retry").json()["ErrorCode"] == 703


def test_postmarks_rules_are_blocked_senders(postmark):
    rule = postmark.post("/triggers/inboundRules", {"Rule": "Spam.Example"}).json()
    assert rule["Rule"] == "spam.example"
    assert postmark.get("/triggers/inboundRules?count=5&offset=0").json() == {"TotalCount": 1, "InboundRules": [rule]}
    removed = postmark.call("DELETE", f"/triggers/inboundRules/{rule['ID']}").json()
    assert removed == {"ErrorCode": 0, "Message": "Rule spam.example removed."}
    assert postmark.call("DELETE", f"/triggers/inboundRules/{rule['ID']}").status_code == 404
    assert postmark.post("/triggers/inboundRules", {"Rule": "a b"}).status_code == 422


def test_the_server_of_postmark_has_its_inbound_settings(postmark, alice):
    before = postmark.get("/server").json()
    assert before["InboundAddress"] == f"{before['InboundHash']}@in.demo.example"
    url = "https://user:secret@hooks.example.com/in"
    changes = {
        "InboundHookUrl": url,
        "InboundDomain": "alice.example",
        "RawEmailEnabled": True,
        "InboundSpamThreshold": 7,
    }
    after = postmark.call("PUT", "/server", changes).json()
    assert after == {**before, **changes, "InboundHookUrl": HOOK}
    assert postmark.get("/server").json() == after
    webhook = Webhook.objects.get()
    assert (webhook.format, webhook.events, webhook.url) == ("postmark", ["received"], HOOK)
    assert webhook.headers == {"Authorization": "Basic dXNlcjpzZWNyZXQ="}
    routes = {route.domain: route for route in InboundRoute.objects.all()}
    assert routes.keys() == {"shared", "alice.example"}
    for route in routes.values():
        assert (route.match, route.webhook_ids, route.include_raw, route.spam_above) == ("*", [webhook.id], True, 7)
    # The endpoint of received emails is none of the events.
    assert postmark.get("/webhooks").json() == {"Webhooks": []}
    email = receive(SOURCE, before["InboundAddress"])
    assert email.includes_raw
    off = postmark.call("PUT", "/server", {"InboundHookUrl": "", "InboundDomain": "", "RawEmailEnabled": False}).json()
    assert (off["InboundHookUrl"], off["InboundDomain"], off["RawEmailEnabled"]) == ("", "", False)
    assert [*InboundRoute.objects.values_list("domain", "webhook_ids")] == [("shared", [])]
    assert not Webhook.objects.exists()


@each(
    "body",
    [
        {"Color": "Red"}, {"Name": "Other"}, {"InboundDomain": "unknown.example"}, {"RawEmailEnabled": "yes"},
        {"InboundSpamThreshold": 31}, {"InboundSpamThreshold": True}, {"InboundHookUrl": "ftp://example.com"},
        {"Foo": 1},
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_changed_is_refused(postmark, alice, body):
    response = postmark.call("PUT", "/server", body)
    assert response.status_code == 422, response.content
    assert not InboundRoute.objects.exists()
    current = postmark.get("/server").json()
    assert postmark.call("PUT", "/server", {"Name": current["Name"], "Color": current["Color"]}).status_code == 200


@each("is_named", [True, False])
def test_an_endpoint_of_another_route_is_left_alone(postmark, alice, is_named):
    """is_named: whether the route names the endpoint; otherwise it posts to all that subscribe."""
    other, _ = create_webhook(alice.workspace, **hook_values("https://other.example.com/"))
    make_route(alice.workspace, match="billing", webhook_ids=[other.id] if is_named else [])
    assert postmark.get("/server").json()["InboundHookUrl"] == ""
    for url in (HOOK, f"{HOOK}/2", ""):
        changed = postmark.call("PUT", "/server", {"InboundHookUrl": url})
        assert changed.json()["InboundHookUrl"] == url
        assert Webhook.objects.get(id=other.id).url == "https://other.example.com/"
        assert Webhook.objects.count() == (2 if url else 1)


def test_an_endpoint_that_another_route_shares_is_replaced_and_not_deleted(postmark, alice):
    postmark.call("PUT", "/server", {"InboundHookUrl": HOOK})
    hook = Webhook.objects.get()
    make_route(alice.workspace, match="billing", webhook_ids=[hook.id])
    assert postmark.call("PUT", "/server", {"InboundHookUrl": f"{HOOK}/2"}).json()["InboundHookUrl"] == f"{HOOK}/2"
    assert {*Webhook.objects.values_list("url", flat=True)} == {HOOK, f"{HOOK}/2"}
    assert postmark.call("PUT", "/server", {"InboundHookUrl": ""}).json()["InboundHookUrl"] == ""
    assert Webhook.objects.get() == hook


def test_without_a_shared_domain_the_hook_needs_an_inbound_domain(postmark, settings):
    settings.RECEIVING_DOMAIN = ""
    refused = postmark.call("PUT", "/server", {"InboundHookUrl": HOOK})
    assert (refused.status_code, refused.json()["Message"].partition(":")[0]) == (422, "InboundHookUrl")
    assert not Webhook.objects.exists()
    both = {"InboundHookUrl": HOOK, "InboundDomain": "alice.example"}
    assert postmark.call("PUT", "/server", both).json()["InboundHookUrl"] == HOOK
    assert InboundRoute.objects.get().webhook_ids == [Webhook.objects.get().id]


def test_an_administrators_key_renames_the_server(postmark, alice):
    refused = postmark.call("PUT", "/server", {"Name": "Shop", "color": "Blue"})
    assert refused.status_code == 422
    assert "workspace_admin" in refused.json()["Message"]
    admin = Dialect("postmark", make_key(alice.workspace, "workspace_admin"))
    assert (
        admin.call("PUT", "/server", {"name": "Shop", "color": "Blue", "smtpApiActivated": False}).json()["Name"]
        == "Shop"
    )
    assert admin.call("PUT", "/server", {"Name": ""}).status_code == 422
    assert Workspace.objects.get(id=alice.workspace.id).name == "Shop"


def hook_values(url: str) -> dict:
    return WebhookInput().run_validation({"url": url, "events": ["received"], "format": "postmark"})


PARSE = "/v3/user/webhooks/parse/settings"


def test_a_parse_setting_switches_the_spam_score_off(sendgrid, settings):
    settings.RSPAMD_URL = "http://127.0.0.1:9"
    setting = {"hostname": "alice.example", "url": HOOK, "spam_check": False, "send_raw": False}
    assert sendgrid.post(PARSE, setting).json() == setting
    email = receive(SOURCE, TO)
    email.message.spam = {"score": 4.5, "action": "add header", "symbols": ["BAYES_SPAM"]}
    email.message.save(update_fields=["spam"])
    for spam_check in (False, True):
        changed = sendgrid.call("PATCH", f"{PARSE}/alice.example", {"spam_check": spam_check}).json()
        assert changed == {**setting, "spam_check": spam_check}
        fields = form_fields(load_inlined({"id": email.id}))
        assert ("spam_score" in fields, "spam_report" in fields) == (spam_check, spam_check)


def test_a_parse_setting_of_sendgrid_is_a_route_with_an_endpoint(sendgrid, alice, settings):
    setting = {"hostname": "alice.example", "url": HOOK, "spam_check": False, "send_raw": True}
    created = sendgrid.post(PARSE, setting)
    assert (created.status_code, created.json()) == (201, setting)
    assert sendgrid.get(PARSE).json() == {"result": [setting]}
    assert sendgrid.get(f"{PARSE}/alice.example").json() == setting
    route, webhook = InboundRoute.objects.get(), Webhook.objects.get()
    assert (route.match, route.domain, route.webhook_ids, route.include_raw) == (
        "*",
        "alice.example",
        [webhook.id],
        True,
    )
    assert (webhook.format, webhook.events) == ("sendgrid", ["received"])
    again = sendgrid.post(PARSE, setting)
    assert (again.status_code, again.json()["errors"][0]["field"]) == (400, "hostname")
    changed = sendgrid.call("PATCH", f"{PARSE}/alice.example", {"url": f"{HOOK}/2", "send_raw": False}).json()
    assert changed == {**setting, "url": f"{HOOK}/2", "send_raw": False}
    settings_of_events = sendgrid.get("/v3/user/webhooks/event/settings/all").json()
    assert settings_of_events["webhooks"] == []
    email = receive(SOURCE, TO)
    publish_committed()
    assert WebhookDelivery.objects.get().webhook_id == webhook.id
    today = datetime.now(UTC).date().isoformat()
    assert sendgrid.get(f"/v3/user/webhooks/parse/stats?start_date={today}&end_date={today}").json() == [
        {"date": today, "stats": [{"metrics": {"received": 1}}]}
    ]
    assert email.route_id == route.id
    assert sendgrid.call("DELETE", f"{PARSE}/alice.example").status_code == 204
    assert sendgrid.get(f"{PARSE}/alice.example").status_code == 404
    assert not InboundRoute.objects.exists()
    assert not Webhook.objects.exists()


@each(
    ("field", "value"),
    [
        ("hostname", "unknown.example"),
        ("hostname", None),
        ("url", "ftp://x"),
        ("send_raw", "yes"),
        ("spam_check", True),
    ],
)
def test_an_invalid_parse_setting_is_refused(sendgrid, alice, field, value):
    response = sendgrid.post(PARSE, {"hostname": "alice.example", "url": HOOK, field: value})
    assert response.status_code == 400, response.content
    assert response.json()["errors"][0]["field"] == field
    assert not InboundRoute.objects.exists()
    assert not Webhook.objects.exists()


def test_a_registered_domain_begins_to_receive(sendgrid, alice):
    make_domain(alice.workspace, "in.alice.example")
    assert sendgrid.post(PARSE, {"hostname": "IN.alice.example", "url": HOOK}).json()["hostname"] == "in.alice.example"
    assert alice.workspace.domains.get(name="in.alice.example").receiving
    assert json.loads(json.dumps(sendgrid.get(PARSE).json()))["result"][0]["spam_check"] is False
