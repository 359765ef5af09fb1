"""The management API through the Python library, against the running service."""

from uuid import uuid4

import pytest
from postrider_client import NotFound, Postrider

pytestmark = pytest.mark.stack


def test_the_workspaces_of_a_management_key_are_managed(service):
    with Postrider(service.management_key, base_url=service.stack.url) as manager:
        workspaces = manager.workspaces
        workspace = workspaces.create(name="Shop", plan="pro", owner_email="ada@example.com")
        assert workspaces.update(workspace.id, name="Store").name == "Store"
        assert workspaces.suspend(workspace.id, reason="The invoice is overdue.").suspended_reason is not None
        assert workspaces.resume(workspace.id).suspended_at is None
        assert workspaces.delete(workspace.id).deletes_at is not None
        assert workspaces.restore(workspace.id).deletes_at is None
        assert workspaces.get(workspace.id) in list(workspaces.list(limit=1))
        usage = workspaces.usage(workspace.id)
        assert (usage.quota.used, usage.months[-1].used) == (0, 0)
        assert {entry.actor_kind for entry in workspaces.audit.list(workspace.id)} == {"key"}


def test_keys_of_a_managed_workspace_are_created_and_revoked(service):
    with Postrider(service.management_key, base_url=service.stack.url) as manager:
        workspace = manager.workspaces.create(name="Keys")
        key = manager.workspaces.keys.create(workspace.id, name="Website", scope="full_access")
        assert key.key is not None
        assert key.key not in repr(key)
        with Postrider(key.key, base_url=service.stack.url) as client:
            assert client.me().workspace.id == workspace.id
        assert manager.workspaces.keys.revoke(workspace.id, key.id).revoked_at is not None
        assert [one.id for one in manager.workspaces.keys.list(workspace.id)] == [key.id]


def test_a_key_of_the_caller_makes_a_repeat_safe(service):
    with Postrider(service.management_key, base_url=service.stack.url) as manager:
        name = f"customer-{uuid4()}"
        first, again = (manager.workspaces.create(name="Repeated", idempotency_key=name) for _ in range(2))
        assert first == again
        keys = manager.workspaces.keys
        made = [
            keys.create(first.id, name="Website", scope="read_only", idempotency_key=f"{name}-key") for _ in range(2)
        ]
        assert made[0].key == made[1].key
        assert len(list(keys.list(first.id))) == 1
        invitations, email = manager.workspaces.invitations, f"{uuid4()}@example.com"
        sent = [invitations.create(first.id, email=email, idempotency_key=f"{name}-person") for _ in range(2)]
        assert sent[0] == sent[1]


def test_members_and_invitations_of_a_managed_workspace_are_listed_changed_and_removed(service):
    me = service.stack.call("GET", "/me").body["workspace"]["id"]
    with Postrider(service.management_key, base_url=service.stack.url) as manager:
        invitation = manager.workspaces.invitations.create(me, email=f"{uuid4()}@example.com", role="owner")
        assert invitation in list(manager.workspaces.invitations.list(me))
        assert manager.workspaces.invitations.withdraw(me, invitation.id).deleted
        (member,) = manager.workspaces.members.list(me, limit=1)
        assert manager.workspaces.members.update(me, member.email, role="owner") == member
        with pytest.raises(NotFound):
            manager.workspaces.members.remove(me, "nobody@example.com")
