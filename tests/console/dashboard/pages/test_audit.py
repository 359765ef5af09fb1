from django.test import Client

from console.dashboard.pages.audit import CATEGORIES
from core.lib.coded_texts import CodedText
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.identities import end_sessions
from core.workspaces.models import AuditEntry, Membership, User
from core.workspaces.services import create_workspace
from tests.conftest import PASSWORD, make_key
from tests.console.dashboard.conftest import csv_rows

PAGE = "/dashboard/audit/"


def acts(owner, query: str = "") -> list[str]:
    return [entry.act for entry in owner.get(f"{PAGE}{query}").context["listing"].rows]


def export(owner, query: str = "") -> list[dict[str, str]]:
    return csv_rows(owner.get(f"{PAGE}export/{query}"))


def test_every_action_has_one_category():
    found = [action for category in CATEGORIES.values() for action in category.actions]

    assert sorted(found) == sorted(AuditEntry.Action.values)


def test_a_category_filters_the_list(owner, alice):
    make_key(alice.workspace)

    assert acts(owner) == ["key_created", "workspace_created"]
    assert acts(owner, "?category=keys") == ["key_created"]
    assert acts(owner, "?category=webhooks") == []
    assert acts(owner, "?category=nonsense") == ["key_created", "workspace_created"]


def test_the_export_has_the_entries_of_the_category(owner, alice, monkeypatch):
    monkeypatch.setattr("console.dashboard.pages.audit.PAGE_ROWS", 2)
    for _ in range(5):
        make_key(alice.workspace)

    assert len(export(owner)) == 6
    rows = export(owner, "?category=keys")
    assert {(row["action"], row["actorKind"]) for row in rows} == {("key_created", "service")}
    assert len(rows) == 5


def test_the_export_identifies_no_staff_and_contains_no_formula(owner, alice):
    fields = {"workspace": alice.workspace, "act": "plan_changed", "address": "192.0.2.1"}
    AuditEntry.objects.create(**fields, about="=1+1", actor_kind="staff", actor="grace@staff.example")

    row = export(owner)[0]

    assert (row["about"], row["actorKind"], row["actor"], row["ipAddress"]) == ("'=1+1", "staff", "", "")


def test_the_export_has_entries_of_the_workspace_for_its_owners(owner, alice, bob):
    make_key(bob.workspace)
    assert {row["action"] for row in export(owner)} == {"workspace_created"}
    alice.workspace.memberships.update(role="member")
    assert owner.get(f"{PAGE}export/").status_code == 403


class TestSigningIn:
    def test_is_recorded_in_each_workspace_of_the_member(self, client, alice, bob):
        second = create_workspace(name="second", plan="free", owner=alice.owner)

        client.post("/dashboard/login/", {"username": alice.owner.email, "password": PASSWORD})

        entries = AuditEntry.objects.filter(act="signed_in")
        assert {entry.workspace for entry in entries} == {alice.workspace, second}
        assert {(entry.actor_kind, entry.actor, entry.address) for entry in entries} == {
            ("person", alice.owner.email, "127.0.0.1")
        }

    def test_of_those_without_a_workspace_and_of_staff_is_recorded_for_the_installation(self, client, alice):
        staff = User.objects.create_superuser("staff@postrider.example", PASSWORD)
        credentials = {"username": staff.email, "password": PASSWORD}
        client.post("/admin/login/", credentials)
        (entry,) = AuditEntry.objects.filter(act="signed_in")
        recorded = (entry.workspace, entry.actor_kind, entry.actor, entry.address)
        assert recorded == (None, "staff", staff.email, "127.0.0.1")

        Membership.objects.create(workspace=alice.workspace, user=staff, role="member")
        Client().post("/dashboard/login/", credentials)
        entries = AuditEntry.objects.filter(act="signed_in").exclude(id=entry.id)
        assert {entry.workspace for entry in entries} == {None, alice.workspace}

        end_sessions(staff)
        entries = AuditEntry.objects.filter(act="sign_out_by_provider")
        assert {entry.workspace for entry in entries} == {None, alice.workspace}

    def test_with_a_wrong_password_is_not(self, client, alice):
        client.post("/dashboard/login/", {"username": alice.owner.email, "password": "wrong"})

        assert not AuditEntry.objects.filter(act="signed_in").exists()


def test_templates_are_recorded(owner, api):
    template = api.post("/templates", {"name": "Receipt", "subject": "Thanks", "htmlContent": "<p>Hi</p>"}).json()["id"]
    api.patch(f"/templates/{template}", {"subject": "Thank you"})
    api.patch(f"/templates/{template}", {})
    api.delete(f"/templates/{template}")

    entries = AuditEntry.objects.filter(act__startswith="template_").order_by("id")
    assert [(entry.act, entry.about) for entry in entries] == [
        ("template_created", "Receipt"),
        ("template_changed", "Receipt: subject"),
        ("template_deleted", "Receipt"),
    ]
    assert acts(owner, "?category=templates") == ["template_deleted", "template_changed", "template_created"]


def test_details_are_shown_in_the_language_of_the_page(owner, alice):
    change = CodedText("workspaces.change", about="Receipt: subject", words=["subject", "sample_data"])
    texts = (
        (
            CodedText("workspaces.key_created", about="a: b (pr_x…y)", words=["full_access", "limited"]),
            "a: b (pr_x…y), full_access, limited",
            "a: b (pr_x…y), Vollzugriff, eingeschränkt",
        ),
        (
            CodedText("workspaces.tls_change", about="shop.example", words=["required"]),
            "shop.example: TLS required",
            "shop.example: TLS erforderlich",
        ),
        (change, "Receipt: subject: subject, sample_data", "Receipt: subject: Betreff, Beispieldaten"),
        (CodedText("workspaces.address_count", count=12), "12 addresses", "12 Adressen"),
        (
            CodedText("workspaces.invited", about="bo@shop.example", words=["owner"]),
            "bo@shop.example as owner",
            "bo@shop.example als Inhaber",
        ),
        (
            CodedText("workspaces.workspace_created", about="Bank, of, pro", owner="bo@shop.example"),
            "Bank, of, pro, of bo@shop.example",
            "Bank, of, pro, von bo@shop.example",
        ),
        ("13 addresses", "13 addresses", "13 addresses"),
        ("subject", "subject", "subject"),
    )
    for about, english, _ in texts:
        record_action(alice.workspace, AuditAction.TEMPLATE_CHANGED, about=about)
        assert AuditEntry.objects.latest("id").about == english

    pages = (owner.get(PAGE).text, owner.get(PAGE, headers={"accept-language": "de"}).text)
    for _, *shown in texts:
        assert [f"<bdi>{text}</bdi>" in page for text, page in zip(shown, pages, strict=True)] == [True, True], shown
