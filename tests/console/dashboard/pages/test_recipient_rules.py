"""The recipient rules of a workspace and of a key in the dashboard."""

from core.workspaces.models import ApiKey, AuditEntry, Workspace
from tests.conftest import make_account, make_key

FORM = {"otherwise": "capture", "allow": "Ada@Example.com\n@example.org, @*.example.net", "redirect_to": "", "caps": ""}
STORED = {"allow": ["ada@example.com", "@example.org", "@*.example.net"], "otherwise": "capture"}


def test_the_rules_of_the_workspace_are_saved_shown_and_removed(owner, alice):
    assert "@*.example.net" not in owner.get("/dashboard/keys/").text
    saved = owner.post("/dashboard/keys/rules/", FORM)
    assert (saved.status_code, saved.url) == (302, "/dashboard/keys/")
    assert Workspace.objects.get(id=alice.workspace.id).recipient_rules == STORED
    assert AuditEntry.objects.get(act="rules_changed").actor == alice.owner.email
    make_key(alice.workspace)
    assert "<code>@*.example.net</code>" in owner.get("/dashboard/keys/").text
    assert "ada@example.com\n@example.org" in owner.get("/dashboard/keys/rules/").text
    owner.post("/dashboard/keys/rules/", {**FORM, "otherwise": ""})
    assert Workspace.objects.get(id=alice.workspace.id).recipient_rules is None


def test_the_rules_of_a_key_are_saved_and_shown(owner, alice):
    make_key(alice.workspace)
    key = ApiKey.objects.get()
    path = f"/dashboard/keys/{key.id}/"
    redirecting = {**FORM, "otherwise": "redirect", "redirect_to": "qa@example.org"}
    assert owner.post(f"{path}rules/", redirecting).url == path
    key.refresh_from_db()
    assert key.recipient_rules == {**STORED, "otherwise": "redirect", "redirectTo": "qa@example.org"}
    assert "qa@example.org" in owner.get(path).text


def test_caps_are_saved_and_shown(owner, alice):
    caps = "5/3600\n1 / 86400 template drop"
    owner.post("/dashboard/keys/rules/", {**FORM, "otherwise": "", "allow": "", "caps": caps})
    assert Workspace.objects.get(id=alice.workspace.id).recipient_rules["caps"] == [
        {"count": 5, "seconds": 3600, "per": "recipient", "exceeding": "refuse"},
        {"count": 1, "seconds": 86400, "per": "recipient_and_template", "exceeding": "drop"},
    ]
    assert "5/3600\n1/86400 template drop" in owner.get("/dashboard/keys/rules/").text
    shown = owner.get("/dashboard/keys/").text
    assert "At most 5 an hour to one recipient<br>" in shown
    assert "At most 1 in 24 hours to one recipient, for each template, further ones are cancelled" in shown
    owner.post("/dashboard/keys/rules/", {**FORM, "otherwise": "", "allow": "", "caps": "2/600"})
    assert "At most 2 in 600 seconds to one recipient" in owner.get("/dashboard/keys/").text
    assert "such as 5/3600." in owner.post("/dashboard/keys/rules/", {**FORM, "caps": "five a day"}).text


def test_invalid_rules_are_shown_with_their_reason(owner, alice):
    page = owner.post("/dashboard/keys/rules/", {**FORM, "allow": "nobody"}).text
    assert "nobody" in page
    assert "is not an email address" in page
    missing = owner.post("/dashboard/keys/rules/", {**FORM, "otherwise": "redirect"}).text
    assert "Give redirectTo" in missing
    assert Workspace.objects.get(id=alice.workspace.id).recipient_rules is None


def test_a_key_of_another_workspace_is_not_found(owner):
    make_key(make_account("bob").workspace)
    assert owner.post(f"/dashboard/keys/{ApiKey.objects.get().id}/rules/", FORM).status_code == 404
    assert ApiKey.objects.get().recipient_rules is None
