"""Webhooks in Postmark's API: endpoints with the format `postmark`."""

import pytest

from core.lib.ids import id_number
from tests.interfaces.compat.test_postmark import error
from tests.rows import each
from webhooks.models import Webhook
from webhooks.services import create_webhook

pytestmark = pytest.mark.django_db

URL = "https://hooks.example.com/postmark"


def triggers(**enabled: bool) -> dict:
    return {"Url": URL, "Triggers": {name: {"Enabled": value} for name, value in enabled.items()}}


def test_a_webhook_is_created_listed_changed_and_deleted(postmark):
    created = postmark.post("/webhooks", {"MessageStream": "outbound", **triggers(Open=True, Bounce=True, Click=False)})
    body = created.json()
    assert (body["Url"], body["MessageStream"]) == (URL, "outbound")
    assert [name for name, trigger in body["Triggers"].items() if trigger["Enabled"]] == ["Open", "Bounce"]
    row = Webhook.objects.get()
    assert (row.format, set(row.events)) == ("postmark", {"opened", "bounced", "failed", "deferred"})
    path = f"/webhooks/{body['ID']}"
    assert postmark.get(path).json() == body
    assert postmark.get("/webhooks?MessageStream=outbound").json() == {"Webhooks": [body]}
    changes = triggers(Open=False, Delivery=True) | {"Url": f"{URL}/2"}
    changed = postmark.call("PUT", path, changes).json()
    assert changed["Url"] == f"{URL}/2"
    assert [name for name, one in changed["Triggers"].items() if one["Enabled"]] == ["Delivery", "Bounce"]
    assert postmark.call("DELETE", path).json()["ErrorCode"] == 0
    assert error(postmark.call("DELETE", path)) == (404, 404)


def test_a_webhook_gets_the_events_of_its_stream(postmark):
    postmark.post("/message-streams", {"ID": "news", "Name": "News", "MessageStreamType": "Broadcasts"})
    every = postmark.post("/webhooks", triggers(Open=True)).json()
    news = postmark.post("/webhooks", {"MessageStream": "news", **triggers(Open=True)}).json()
    assert (every["MessageStream"], news["MessageStream"]) == ("outbound", "news")
    assert sorted(Webhook.objects.values_list("streams", flat=True)) == [[], ["news"]]
    for stream, found in (("news", [news, every]), ("outbound", [every])):
        assert postmark.get(f"/webhooks?messageStream={stream}").json()["Webhooks"] == found
    moved = postmark.call("PUT", f"/webhooks/{news['ID']}", {"MessageStream": "outbound"}).json()
    assert (moved["MessageStream"], Webhook.objects.filter(streams=["main"]).count()) == ("outbound", 1)
    for method, path in (("POST", "/webhooks"), ("PUT", f"/webhooks/{news['ID']}")):
        assert error(postmark.call(method, path, {"MessageStream": "no", **triggers(Open=True)})) == (422, 1235)


@each(
    "body",
    [
        triggers(Open=True) | {"Url": None},
        triggers(Open=True) | {"Url": "ftp://hooks.example.com/"},
        triggers(Open=True) | {"HttpAuth": {"Username": "a:b", "Password": "c"}},
        triggers(Open=True) | {"HttpAuth": {"Username": "a", "Password": 1}},
        triggers(Open=True) | {"HttpAuth": "a:b"},
        triggers(Open=True) | {"HttpAuth": {"Username": "a", "Password": "********"}, "HttpHeaders": [{}]},
        triggers(Open=True) | {"HttpHeaders": {"a": "b"}},
        triggers(Open=True) | {"HttpHeaders": ["a"]},
        triggers(Open=True) | {"HttpHeaders": [{"Name": "a", "Value": None}]},
        triggers(Open=True) | {"HttpHeaders": [{"Name": "a", "Value": "b\r\nc: d"}]},
        triggers(Open=True) | {"HttpHeaders": [{"Name": "X-A", "Value": "b"}, {"Name": "x-a", "Value": "c"}]},
        triggers(Open=True) | {"HttpHeaders": [{"Name": "X-A", "Value": "********"}]},
        triggers(Open=True) | {"HttpHeaders": [{"Name": "Host", "Value": "b"}]},
        triggers(Open=True) | {"Url": "https://[hooks.example.com/"},
        {"Url": URL, "Triggers": {"Open": True}},
    ],
)
def test_an_invalid_webhook_is_refused(postmark, body):
    assert error(postmark.post("/webhooks", body)) == (422, 300)
    assert not Webhook.objects.exists()


@each("body", [{"Url": URL}, triggers(), triggers(Open=False), {"Url": URL, "Triggers": None}])
def test_a_webhook_may_have_no_triggers_yet(postmark, body):
    created = postmark.post("/webhooks", body)
    assert created.status_code == 200, created.content
    assert not any(trigger["Enabled"] for trigger in created.json()["Triggers"].values())
    path = f"/webhooks/{created.json()['ID']}"
    assert postmark.call("PUT", path, {"Url": f"{URL}/2"}).json()["Url"] == f"{URL}/2"
    assert postmark.call("PUT", path, triggers(Click=True)).json()["Triggers"]["Click"]["Enabled"]
    assert Webhook.objects.get().events == ["clicked"]


def test_an_unknown_webhook_has_postmarks_sentence(postmark):
    refused = postmark.get("/webhooks/1")
    assert error(refused) == (404, 404)
    assert refused.json()["Message"] == "The webhook for the provided 'ID' was not found."


def test_endpoints_of_other_formats_and_workspaces_are_not_found(postmark, alice, bob):
    standard, _ = create_webhook(alice.workspace, url=URL, events=["opened"])
    foreign, _ = create_webhook(bob.workspace, url=URL, events=["opened"], format="postmark")
    assert postmark.get("/webhooks").json() == {"Webhooks": []}
    for webhook in (standard, foreign):
        path = f"/webhooks/{id_number(webhook.id, prefix='wh_')}"
        for method in ("GET", "PUT", "DELETE"):
            assert error(postmark.call(method, path, {})) == (404, 404)
    assert Webhook.objects.count() == 2


AUTH = {"Username": "hook", "Password": "Pässwort:1"}
BASIC = "Basic aG9vazpQw6Rzc3dvcnQ6MQ=="
HEADERS = [{"Name": "X-Team", "Value": "mail"}, {"Name": "X-Key", "Value": "opaque"}]


def test_authentication_and_headers_are_sealed_and_shown_masked(postmark):
    created = postmark.post("/webhooks", triggers(Open=True) | {"HttpAuth": AUTH, "HttpHeaders": HEADERS}).json()
    assert created["HttpAuth"] == {"Username": "hook", "Password": "********"}
    assert created["HttpHeaders"] == [{"Name": name, "Value": "********"} for name in ("X-Team", "X-Key")]
    path = f"/webhooks/{created['ID']}"
    assert postmark.get(path).json() == created
    row = Webhook.objects.get()
    assert row.headers == {"X-Team": "mail", "X-Key": "opaque", "Authorization": BASIC}
    assert "opaque" not in str(Webhook.objects.values()[0])


def test_authentication_and_headers_change_one_by_one(postmark):
    created = postmark.post("/webhooks", triggers(Open=True) | {"HttpAuth": AUTH, "HttpHeaders": HEADERS}).json()
    path = f"/webhooks/{created['ID']}"

    def change(**fields) -> dict:
        assert postmark.call("PUT", path, fields).status_code == 200
        return Webhook.objects.get().headers

    assert change(**created) == {"X-Team": "mail", "X-Key": "opaque", "Authorization": BASIC}
    assert change(HttpAuth=None, HttpHeaders=None, Url=f"{URL}/2")["Authorization"] == BASIC
    kept = [{"Name": "x-team", "Value": "********"}]
    assert change(HttpHeaders=kept) == {"x-team": "mail", "Authorization": BASIC}
    assert change(HttpHeaders=[]) == {"Authorization": BASIC}
    assert change(HttpHeaders=[{"Name": "authorization", "Value": "Bearer b"}], HttpAuth={"Username": ""}) == {
        "authorization": "Bearer b"
    }
    assert postmark.get(path).json()["HttpHeaders"] == [{"Name": "authorization", "Value": "********"}]
    assert postmark.get(path).json()["HttpAuth"] is None
    assert change(HttpAuth={"Username": "", "Password": ""}, HttpHeaders=[]) == {}
    assert postmark.get(path).json()["HttpHeaders"] == []


def test_user_and_password_of_a_url_are_the_authentication(postmark):
    url = "https://hook:P%C3%A4sswort:1@hooks.example.com/postmark?a=b@c"
    created = postmark.post("/webhooks", triggers(Open=True) | {"Url": url}).json()
    assert (created["Url"], created["HttpAuth"]["Username"]) == ("https://hooks.example.com/postmark?a=b@c", "hook")
    assert Webhook.objects.get().headers == {"Authorization": BASIC}
    changed = postmark.call("PUT", f"/webhooks/{created['ID']}", {"Url": "https://a:b@hooks.example.com"}).json()
    assert (changed["Url"], changed["HttpAuth"]["Username"]) == ("https://hooks.example.com", "a")


def test_another_host_does_not_get_the_password(postmark):
    path = f"/webhooks/{postmark.post('/webhooks', triggers(Open=True) | {'HttpAuth': AUTH}).json()['ID']}"
    for fields in ({}, {"HttpAuth": {"Username": "hook", "Password": "********"}}):
        refused = postmark.call("PUT", path, {"Url": "https://other.example.com/", **fields})
        assert error(refused) == (422, 300)
    assert Webhook.objects.get().url == URL
    assert postmark.call("PUT", path, {"Url": "https://other.example.com/", "HttpAuth": AUTH}).status_code == 200
