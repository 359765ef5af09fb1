"""Idempotency keys of the management API: one effect, and the first response for repeats."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from console.provisioning.models import ManagementResponse
from console.provisioning.tasks import erase
from console.system_mail.models import SystemMail
from core.workspaces.models import ApiKey, Workspace
from tests.conftest import Account, Api, code_of, make_key
from tests.console.provisioning.conftest import management_api

pytestmark = pytest.mark.django_db
KEY = {"name": "Website", "scope": "sending_access"}


def post(api: Api, path: str, body: Any = None, *, key: str = "k") -> Any:
    return api.post(path, body, Idempotency_Key=key)


def test_a_repeat_creates_nothing_and_gets_the_first_response(platform: Api, alice: Account):
    for path, body in (
        ("/admin/workspaces", {"name": "Shop", "ownerEmail": "ada@example.com"}),
        (f"/admin/workspaces/{alice.workspace.id}/api-keys", KEY),
        (f"/admin/workspaces/{alice.workspace.id}/invitations", {"email": "grace@example.com"}),
    ):
        first, again = (post(platform, path, body, key=path[-9:]) for _ in range(2))
        assert (first.status_code, again.status_code) == (201, 201)
        assert first.json() == again.json()
        assert "Idempotent-Replayed" not in first
        assert again["Idempotent-Replayed"] == "true"
    assert Workspace.objects.filter(name="Shop").count() == ApiKey.objects.count() == 1
    assert SystemMail.objects.count() == 2


def test_the_secret_of_a_key_is_sealed(platform: Api, alice: Account):
    path = f"/admin/workspaces/{alice.workspace.id}/api-keys"
    secret = post(platform, path, KEY).json()["key"]
    stored = str([*ManagementResponse.objects.values()])
    assert secret not in stored
    assert secret.split("_")[-1][:12] not in stored
    assert Api(post(platform, path, KEY).json()["key"]).get("/me").status_code == 200


def test_a_late_repeat_of_an_action_does_not_undo_a_later_one(platform: Api, alice: Account):
    path = f"/admin/workspaces/{alice.workspace.id}"
    suspended = post(platform, f"{path}/suspend", {"reason": "unpaid"}).json()
    post(platform, f"{path}/resume", key="paid")
    assert post(platform, f"{path}/suspend", {"reason": "unpaid"}).json() == suspended
    assert platform.get(path).json()["suspendedAt"] is None


def test_a_key_is_for_one_request(platform: Api, alice: Account, bob: Account):
    path = f"/admin/workspaces/{alice.workspace.id}"
    post(platform, f"{path}/suspend", {"reason": "unpaid"})
    for other, body in (
        (f"{path}/suspend", {"reason": "spam"}),
        (f"{path}/resume", None),
        (f"/admin/workspaces/{bob.workspace.id}/suspend", {"reason": "unpaid"}),
        (f"{path}/api-keys", KEY),
    ):
        assert code_of(post(platform, other, body)) == (409, "idempotency_key_reuse")
    assert not bob.workspace.api_keys.exists()


def test_keys_of_different_callers_are_different(platform: Api, alice: Account):
    path = f"/admin/workspaces/{alice.workspace.id}/api-keys"
    callers = [platform, management_api(), *(Api(make_key(alice.workspace, "workspace_admin")) for _ in range(2))]
    ids = {post(caller, path, KEY).json()["id"] for caller in callers}
    assert len(ids) == 4


def test_an_error_does_not_use_up_a_key(platform: Api, alice: Account):
    path = f"/admin/workspaces/{alice.workspace.id}/api-keys"
    assert post(platform, path, {"name": "Website"}).status_code == 422
    assert not ManagementResponse.objects.exists()
    assert post(platform, path, KEY).status_code == 201


def test_an_invalid_key_is_refused(platform: Api):
    assert code_of(post(platform, "/admin/workspaces", {"name": "x"}, key="")) == (400, "invalid_idempotency_key")


def test_a_key_is_free_again_after_a_day(platform: Api):
    post(platform, "/admin/workspaces", {"name": "Shop"})
    ManagementResponse.objects.update(created_at=F("created_at") - timedelta(hours=23))
    erase()
    assert ManagementResponse.objects.count() == 1
    ManagementResponse.objects.update(created_at=F("created_at") - timedelta(hours=1, seconds=1))
    erase()
    assert "Idempotent-Replayed" not in post(platform, "/admin/workspaces", {"name": "Shop"})
