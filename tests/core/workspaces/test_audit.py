from datetime import timedelta

import pytest
from django.db.models.functions import Now

from core.workspaces.account_status import (
    InvalidConfirmationLink,
    change_plan,
    confirm_address,
    confirmation_token,
    lift_suspension,
    read_confirmation_token,
    suspend_workspace,
)
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import ApiKey, AuditEntry, Workspace
from core.workspaces.services import revoke_api_key
from core.workspaces.tasks import expire
from tests.conftest import Api, make_domain, make_key

pytestmark = pytest.mark.django_db


def entries(workspace, exclude=("key_created", "workspace_created")) -> list[tuple[str, str]]:
    found = AuditEntry.objects.filter(workspace=workspace).exclude(act__in=exclude).order_by("id")
    return [(entry.act, entry.about) for entry in found]


def test_an_api_key_is_recorded_as_actor_with_the_client_address(alice, api):
    api.post("/suppressions", {"email": "ada@example.com"})

    entry = AuditEntry.objects.latest("id")
    key = ApiKey.objects.get()
    assert (entry.act, entry.about) == ("suppression_added", "ada@example.com")
    assert (entry.actor_kind, entry.actor, entry.address) == ("key", f"test (pr_…{key.last_four})", "127.0.0.1")


def test_outside_of_requests_the_actor_is_the_service(alice):
    record_action(alice.workspace, AuditAction.PLAN_CHANGED, about="pro")

    entry = AuditEntry.objects.latest("id")
    assert (entry.actor_kind, entry.actor, entry.address) == ("service", "", None)


def test_the_actor_of_a_request_does_not_leak_into_later_actions(alice, api):
    api.get("/me")

    record_action(alice.workspace, AuditAction.PLAN_CHANGED)

    assert AuditEntry.objects.latest("id").actor_kind == "service"


def test_domains(alice, api):
    domain_id = api.post("/domains", {"name": "mail.alice.example"}).json()["id"]
    api.post(f"/domains/{domain_id}/rotate-dkim")
    api.delete(f"/domains/{domain_id}")

    # The first key has not been found in the DNS yet, so rotating creates no second one.
    assert entries(alice.workspace) == [
        ("domain_added", "mail.alice.example"),
        ("domain_deleted", "mail.alice.example"),
    ]


def test_webhooks(alice, api, settings):
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True
    url = "http://127.0.0.1:9/hook"
    webhook_id = api.post("/webhooks", {"url": url, "events": ["delivered"]}).json()["id"]
    api.patch(f"/webhooks/{webhook_id}", {"active": False})
    secret = api.post(f"/webhooks/{webhook_id}/rotate-secret").json()["secret"]
    api.delete(f"/webhooks/{webhook_id}")

    found = entries(alice.workspace)
    assert found == [
        ("webhook_created", url),
        ("webhook_changed", f"{url}: active"),
        ("webhook_rotated", url),
        ("webhook_deleted", url),
    ]
    assert secret not in str(found)


def test_suppressions_one_by_one_and_many(alice, api):
    added = api.post("/suppressions", {"email": "ada@example.com"}).json()
    api.post("/suppressions", {"email": "ada@example.com"})
    api.post("/suppressions", {"emails": ["a@example.com", "b@example.com"]})
    api.delete(f"/suppressions/{added['id']}")

    assert entries(alice.workspace) == [
        ("suppression_added", "ada@example.com"),
        ("suppression_added", "2 addresses"),
        ("suppression_removed", "ada@example.com"),
    ]


def test_keys_without_their_secrets(alice):
    text = make_key(alice.workspace)
    key = ApiKey.objects.get()
    revoke_api_key(key)
    revoke_api_key(key)

    found = entries(alice.workspace, exclude=["workspace_created"])
    assert [action for action, _ in found] == ["key_created", "key_revoked"]
    assert found[0][1] == f"test (pr_…{key.last_four}), full_access"
    assert text not in str(found)


def test_a_limited_key_says_so(alice):
    make_key(alice.workspace, "sending_access", limits=KeyLimits(domains=("alice.example",)))
    make_key(alice.workspace, "sending_access", limits=KeyLimits(is_test=True))
    limited, of_tests = (about for _, about in entries(alice.workspace, exclude=["workspace_created"]))
    assert "limited" in limited
    assert "limited" not in of_tests


def test_suspension_and_plan_change_once(alice):
    for _ in range(2):
        suspend_workspace(alice.workspace, reason="Spam.")
    for _ in range(2):
        lift_suspension(alice.workspace)
        change_plan(alice.workspace, plan="pro")

    assert entries(alice.workspace) == [
        ("workspace_suspended", "Spam."),
        ("suspension_lifted", ""),
        ("plan_changed", "pro"),
    ]
    alice.workspace.refresh_from_db()
    assert (alice.workspace.is_suspended, alice.workspace.suspended_reason) == (False, "")


def test_a_rolled_back_action_is_not_recorded(alice, api):
    make_domain(alice.workspace, "twice.example")
    before = AuditEntry.objects.count()

    assert api.post("/domains", {"name": "twice.example"}).status_code == 409

    assert AuditEntry.objects.count() == before


def test_entries_are_kept_for_four_hundred_days(alice):
    record_action(alice.workspace, AuditAction.PLAN_CHANGED, about="old")
    AuditEntry.objects.filter(about="old").update(created_at=Now() - timedelta(days=401))

    expire()

    assert not AuditEntry.objects.filter(about="old").exists()
    assert AuditEntry.objects.exists()


def test_no_key_of_an_unconfirmed_workspace_works(alice):
    Workspace.objects.filter(id=alice.workspace.id).update(is_proven=False)
    api = Api(make_key(alice.workspace))
    refused = api.get("/me")
    assert (refused.status_code, refused.json()["code"]) == (403, "workspace_suspended")
    assert "confirm" in refused.json()["detail"]

    confirm_address(read_confirmation_token(confirmation_token(alice.owner)))

    assert Api(make_key(alice.workspace)).get("/me").status_code == 200
    token = confirmation_token(alice.owner)
    alice.owner.email = "other@example.com"
    alice.owner.save()
    with pytest.raises(InvalidConfirmationLink):
        read_confirmation_token(token)
