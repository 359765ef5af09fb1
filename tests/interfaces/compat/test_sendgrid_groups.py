"""Unsubscribe groups in SendGrid's API: streams by their number."""

import pytest

from core.workspaces.key_limits import read_limits
from emails.models import Email
from streams.models import Stream
from suppressions.models import Suppression
from suppressions.services import suppress_address
from tests.conftest import Account, Api, make_domain, make_key
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_sendgrid import error, mail
from tests.rows import each

pytestmark = pytest.mark.django_db
GROUPS = "/v3/asm/groups"
NEWS = {"name": "News", "description": "Once a week"}
ADA = "ada@example.com"
BYPASS = {"mail_settings": {"bypass_unsubscribe_management": {"enable": True}}}


def asm(group: object, *displayed: object) -> dict:
    return {"asm": {"group_id": group, **({"groups_to_display": [*displayed]} if displayed else {})}}


@pytest.fixture
def news(sendgrid: Dialect) -> int:
    response = sendgrid.post(GROUPS, NEWS)
    assert response.status_code == 201, response.content
    number: int = response.json()["id"]
    return number


class TestGroups:
    def test_a_group_is_a_public_bulk_stream(self, sendgrid, news, key):
        stream = Api(key).get("/streams/news").json()
        assert (stream["kind"], stream["public"], stream["description"]) == ("bulk", True, "Once a week")
        group = {"id": news, **NEWS, "is_default": True, "unsubscribes": 0, "last_email_sent_at": None}
        assert sendgrid.get(GROUPS).json() == [group]
        assert sendgrid.get(f"{GROUPS}/{news}").json() == group

    def test_all_streams_but_main_are_groups(self, sendgrid, news, key):
        api = Api(key)
        api.patch("/streams/main", {"name": "Shop"})
        api.post("/streams", {"id": "receipts", "name": "Receipts"})
        assert [group["name"] for group in sendgrid.get(GROUPS).json()] == ["News", "Receipts"]
        assert [group["name"] for group in sendgrid.get(f"{GROUPS}?id=2&id=9&id=x").json()] == ["Receipts"]
        assert sendgrid.get(f"{GROUPS}/0").status_code == 404

    def test_a_group_is_changed_and_archived(self, sendgrid, news):
        changed = sendgrid.call("PATCH", f"{GROUPS}/{news}", {"name": "Monthly"})
        assert (changed.status_code, changed.json()["name"]) == (201, "Monthly")
        for is_default in (False, True):
            changed = sendgrid.call("PATCH", f"{GROUPS}/{news}", {"is_default": is_default}).json()
            assert (changed["is_default"], Stream.objects.get().public) == (is_default, is_default)
        assert sendgrid.call("DELETE", f"{GROUPS}/{news}").status_code == 204
        assert Stream.objects.get().archived_at
        assert sendgrid.get(GROUPS).json() == []
        for method in ("GET", "PATCH", "DELETE"):
            assert sendgrid.call(method, f"{GROUPS}/{news}", NEWS).status_code == 404
        assert sendgrid.post("/v3/mail/send", mail(**asm(news))).status_code == 400
        assert sendgrid.post(GROUPS, NEWS).json()["id"] == news + 1

    @each(
        ("change", "field"),
        [({"name": None}, "name"), ({"name": "n" * 101}, "name"), ({"is_default": "yes"}, "is_default")],
    )
    def test_an_invalid_group_is_refused(self, sendgrid, change, field):
        assert error(sendgrid.post(GROUPS, NEWS | change)) == (400, field)
        assert not Stream.objects.exists()

    def test_a_group_of_another_workspace_cannot_be_used(self, sendgrid, news, bob: Account):
        make_domain(bob.workspace, "bob.example")
        body = mail(**asm(news)) | {"from": {"email": "hi@bob.example"}}
        stranger = Dialect("sendgrid", make_key(bob.workspace))
        assert error(stranger.post("/v3/mail/send", body)) == (400, "asm.group_id")


class TestSuppressions:
    def test_an_unsubscribe_from_a_group_leaves_other_emails(self, sendgrid, news):
        added = sendgrid.post(f"{GROUPS}/{news}/suppressions", {"recipient_emails": [ADA, "bob@example.com"]})
        assert (added.status_code, added.json()) == (201, {"recipient_emails": [ADA, "bob@example.com"]})
        assert {*Suppression.objects.values_list("stream", flat=True)} == {"news"}
        assert sorted(sendgrid.get(f"{GROUPS}/{news}/suppressions").json()) == [ADA, "bob@example.com"]
        assert sendgrid.get(f"{GROUPS}/{news}").json()["unsubscribes"] == 2
        found = sendgrid.post(
            f"{GROUPS}/{news}/suppressions/search", {"recipient_emails": ["ADA@example.com", "x@x.example"]}
        )
        assert found.json() == [ADA]
        assert sendgrid.get("/v3/suppression/unsubscribes").json() == []
        assert sendgrid.get(f"/v3/asm/suppressions/global/{ADA}").json() == {}
        assert sendgrid.call("DELETE", f"/v3/asm/suppressions/global/{ADA}").status_code == 404
        path = f"{GROUPS}/{news}/suppressions/{ADA}"
        assert [sendgrid.call("DELETE", path).status_code for _ in range(2)] == [204, 404]
        assert sendgrid.get(f"{GROUPS}/{news}/suppressions").json() == ["bob@example.com"]

    def test_an_address_shows_its_groups(self, sendgrid, news, alice):
        other = sendgrid.post(GROUPS, {"name": "Offers", "description": ""}).json()["id"]
        suppress_address(alice.workspace, address=ADA, reason="unsubscribe", stream="news")
        suppress_address(alice.workspace, address="bob@example.com", reason="unsubscribe")
        groups = sendgrid.get(f"/v3/asm/suppressions/{ADA}").json()["suppressions"]
        assert {group["id"]: group["suppressed"] for group in groups} == {news: True, other: False}
        (entry,) = sendgrid.get("/v3/asm/suppressions").json()
        assert (entry["email"], entry["group_id"], entry["group_name"]) == (ADA, news, "News")

    @each("body", [{}, {"recipient_emails": []}, {"recipient_emails": ["nobody"]}])
    def test_addresses_are_required(self, sendgrid, news, body):
        assert sendgrid.post(f"{GROUPS}/{news}/suppressions", body).status_code == 400
        assert sendgrid.post(f"{GROUPS}/{news}/suppressions/search", body).status_code == 400

    def test_lists_are_bounded(self, sendgrid, news, alice, monkeypatch):
        for module in ("interfaces.compat.sendgrid.groups", "interfaces.compat.views"):
            monkeypatch.setattr(f"{module}.MAX_COUNTED", 2)
        for number in range(3):
            suppress_address(alice.workspace, address=f"a{number}@example.com", reason="unsubscribe", stream="news")
        assert len(sendgrid.get(f"{GROUPS}/{news}/suppressions").json()) == 2
        assert len(sendgrid.get("/v3/asm/suppressions").json()) == 2
        assert sendgrid.get(f"{GROUPS}/{news}").json()["unsubscribes"] == 2


class TestSend:
    def test_an_email_is_in_the_stream_of_its_group(self, sendgrid, news):
        assert sendgrid.post("/v3/mail/send", mail(**asm(news, news))).status_code == 202
        assert Email.objects.get().stream == "news"

    @each(
        ("fields", "field"),
        [
            (asm(9), "asm.group_id"),
            (asm("1"), "asm.group_id"),
            (asm(True), "asm.group_id"),
            (asm(0), "asm.group_id"),
            ({"asm": {"groups_to_display": [1]}}, "asm.group_id"),
            ({"asm": 7}, "asm"),
            (asm(1, 9), "asm.groups_to_display.0"),
            (asm(1, 1, 2), "asm.groups_to_display.1"),
            (asm(1, *[1] * 26), "asm.groups_to_display"),
        ],
    )
    def test_unknown_and_hidden_groups_are_refused(self, sendgrid, news, key, fields, field):
        Api(key).post("/streams", {"id": "receipts", "name": "Receipts"})
        assert error(sendgrid.post("/v3/mail/send", mail(**fields))) == (400, field)
        assert not Email.objects.exists()

    def test_the_page_of_an_email_shows_its_own_group(self, sendgrid, key):
        Api(key).post("/streams", {"id": "receipts", "name": "Receipts"})
        assert sendgrid.post("/v3/mail/send", mail(**asm(1, 1))).status_code == 202

    def test_unsubscribes_are_bypassed_only_where_they_are_ignored(self, sendgrid, news, key):
        field = "mail_settings.bypass_unsubscribe_management"
        assert error(sendgrid.post("/v3/mail/send", mail(**BYPASS))) == (400, field)
        assert error(sendgrid.post("/v3/mail/send", mail(**BYPASS, **asm(news)))) == (400, field)
        off = {"mail_settings": {"bypass_unsubscribe_management": {"enable": False}}}
        assert sendgrid.post("/v3/mail/send", mail(**off)).status_code == 202
        Api(key).post("/streams", {"id": "alerts", "name": "Alerts", "unsubscribe": "none"})
        assert sendgrid.post("/v3/mail/send", mail(**BYPASS, **asm(2))).status_code == 202
        assert Email.objects.filter(stream="alerts").count() == 1

    def test_the_stream_of_the_key_counts_as_the_group(self, sendgrid, key, alice):
        Api(key).post("/streams", {"id": "alerts", "name": "Alerts", "unsubscribe": "none"})
        limits = read_limits(streams=["alerts"])
        sender = Dialect("sendgrid", make_key(alice.workspace, "sending_access", limits=limits))
        assert sender.post("/v3/mail/send", mail(**BYPASS)).status_code == 202
        assert Email.objects.get().stream == "alerts"

    def test_a_sandboxed_email_is_checked_alike(self, sendgrid, news):
        sandbox = {"mail_settings": {"sandbox_mode": {"enable": True}}}
        assert sendgrid.post("/v3/mail/send", mail(**sandbox, **asm(news))).status_code == 200
        assert error(sendgrid.post("/v3/mail/send", mail(**sandbox, **asm(9)))) == (400, "asm.group_id")
