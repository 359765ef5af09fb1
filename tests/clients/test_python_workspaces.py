"""The management API through the Python library, against the running service."""

from uuid import uuid4

import pytest
from postrider_client import NotFound, Postrider

pytestmark = pytest.mark.stack


def test_the_workspaces_of_a_management_key_are_managed(manager):
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


def test_keys_of_a_managed_workspace_are_created_and_revoked_and_repeats_are_safe(service, manager):
    name, workspaces = f"customer-{uuid4()}", manager.workspaces
    workspace, again = (workspaces.create(name="Keys", idempotency_key=name) for _ in range(2))
    assert workspace == again
    fields = {"name": "Website", "scope": "full_access", "idempotency_key": f"{name}-key"}
    key, repeated = (workspaces.keys.create(workspace.id, **fields) for _ in range(2))
    assert key.key == repeated.key is not None
    assert key.key not in repr(key)
    with Postrider(key.key, base_url=service.stack.url) as client:
        assert client.me().workspace.id == workspace.id
    assert workspaces.keys.revoke(workspace.id, key.id).revoked_at is not None
    assert [one.id for one in workspaces.keys.list(workspace.id)] == [key.id]
    person = {"email": f"{uuid4()}@example.com", "idempotency_key": f"{name}-person"}
    sent = [workspaces.invitations.create(workspace.id, **person) for _ in range(2)]
    assert sent[0] == sent[1]


def test_members_and_invitations_of_a_managed_workspace_are_listed_changed_and_removed(client, manager):
    me, workspaces = client.me().workspace.id, manager.workspaces
    invitation = workspaces.invitations.create(me, email=f"{uuid4()}@example.com", role="owner")
    assert invitation in list(workspaces.invitations.list(me))
    assert workspaces.invitations.withdraw(me, invitation.id).deleted
    (member,) = workspaces.members.list(me, limit=1)
    assert workspaces.members.update(me, member.email, role="owner") == member
    with pytest.raises(NotFound):
        workspaces.members.remove(me, "nobody@example.com")
