# Generated from workspaces.py by bin/async_client.py.
"""The management API: `client.workspaces`.

It requires a management key, or an API key with scope workspace_admin for the workspace of the key.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Optional

from postrider_client.aio.listing import AsyncListing
from postrider_client.aio.transport import AsyncTransport
from postrider_client.answers import Deleted
from postrider_client.transport import Call
from postrider_client.wire import body_of, read
from postrider_client.workspace_answers import (
    AuditEntry,
    CheckedConfiguration,
    ConfigurationLease,
    Invitation,
    ManagedKey,
    ManagedWorkspace,
    Member,
    RemovedMember,
    TransportStatus,
    WorkspaceUsage,
)
from postrider_client.workspaces import _path


class AsyncWorkspaces:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self.keys = AsyncWorkspaceKeys(transport)
        self.members = AsyncWorkspaceMembers(transport)
        self.invitations = AsyncWorkspaceInvitations(transport)
        self.audit = AsyncWorkspaceAudit(transport)

    async def create(
        self,
        *,
        name: str,
        plan: Optional[str] = None,
        group: Optional[str] = None,
        owner_email: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> ManagedWorkspace:
        """Create a workspace. owner_email: the address of a person to invite as an owner.

        A repeat with the same idempotency_key within 24 hours creates nothing and returns the first response.
        """
        body = body_of(name=name, plan=plan, group=group, owner_email=owner_email)
        call = Call("POST", _path(), body=body, is_keyed=True, idempotency_key=idempotency_key)
        return read(ManagedWorkspace, await self._transport.json(call))

    def list(self, *, page: Optional[int] = None, limit: Optional[int] = None) -> AsyncListing[ManagedWorkspace]:
        return AsyncListing(self._transport, _path(), kind=ManagedWorkspace, query=body_of(page=page, limit=limit))

    async def get(self, workspace_id: str) -> ManagedWorkspace:
        return read(ManagedWorkspace, await self._transport.json(Call("GET", _path(workspace_id))))

    async def update(
        self, workspace_id: str, *, name: Optional[str] = None, plan: Optional[str] = None
    ) -> ManagedWorkspace:
        call = Call("PATCH", _path(workspace_id), body=body_of(name=name, plan=plan))
        return read(ManagedWorkspace, await self._transport.json(call))

    async def suspend(self, workspace_id: str, *, reason: str) -> ManagedWorkspace:
        """Refuse new emails and hold queued ones. The members see the reason."""
        call = Call("POST", _path(workspace_id, "suspend"), body={"reason": reason}, is_keyed=True)
        return read(ManagedWorkspace, await self._transport.json(call))

    async def resume(self, workspace_id: str) -> ManagedWorkspace:
        """End the suspension. Queued emails are sent."""
        call = Call("POST", _path(workspace_id, "resume"), is_keyed=True)
        return read(ManagedWorkspace, await self._transport.json(call))

    async def delete(self, workspace_id: str) -> ManagedWorkspace:
        """Delete a workspace. Until `deletes_at` of the response it can be restored."""
        return read(ManagedWorkspace, await self._transport.json(Call("DELETE", _path(workspace_id))))

    async def restore(self, workspace_id: str) -> ManagedWorkspace:
        """Restore a deleted workspace. Queued emails are sent."""
        call = Call("POST", _path(workspace_id, "restore"), is_keyed=True)
        return read(ManagedWorkspace, await self._transport.json(call))

    async def usage(self, workspace_id: str) -> WorkspaceUsage:
        return read(WorkspaceUsage, await self._transport.json(Call("GET", _path(workspace_id, "usage"))))

    async def check_configuration(self, configuration: Mapping[str, Any]) -> CheckedConfiguration:
        """Check a description of a workspace, with the names of the API, and change nothing."""
        call = Call("POST", ["admin", "configuration", "check"], body=configuration, is_repeatable=True)
        return read(CheckedConfiguration, await self._transport.json(call))

    async def lease_configuration(self, *, token: str, workspace_id: Optional[str] = None) -> ConfigurationLease:
        """Take the lease of a workspace for two minutes, or renew it with the same token.

        workspace_id: by default the key's own workspace, or for a management key the list of workspaces.
        token: a random text of 22 to 100 characters.
        """
        body = body_of(token=token, workspace_id=workspace_id)
        call = Call("POST", ["admin", "configuration", "lease"], body=body, is_repeatable=True)
        return read(ConfigurationLease, await self._transport.json(call))

    async def release_configuration(self, *, token: str, workspace_id: Optional[str] = None) -> ConfigurationLease:
        """End the lease with this token."""
        body = body_of(token=token, workspace_id=workspace_id)
        call = Call("POST", ["admin", "configuration", "release"], body=body, is_repeatable=True)
        return read(ConfigurationLease, await self._transport.json(call))


class AsyncWorkspaceKeys:
    """API keys of a workspace: `client.workspaces.keys`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self,
        workspace_id: str,
        *,
        name: str,
        scope: str,
        expires_at: Optional[datetime] = None,
        test: Optional[bool] = None,
        limits: Optional[Mapping[str, Any]] = None,
        idempotency_key: Optional[str] = None,
    ) -> ManagedKey:
        """Create an API key. Store `key` of the response: it cannot be read again.

        test: create a test key: its emails are not sent.
        limits: such as {"domains": ["shop.example"], "networks": ["203.0.113.0/24"], "requests_per_second": 10}.
        A repeat with the same idempotency_key within 24 hours creates nothing and returns the same key.
        """
        wire_limits = body_of(**limits) if limits else None
        body = body_of(name=name, scope=scope, expires_at=expires_at, test=test, limits=wire_limits)
        path = _path(workspace_id, "api-keys")
        call = Call("POST", path, body=body, is_keyed=True, idempotency_key=idempotency_key)
        return read(ManagedKey, await self._transport.json(call))

    def list(
        self, workspace_id: str, *, page: Optional[int] = None, limit: Optional[int] = None
    ) -> AsyncListing[ManagedKey]:
        return _listing(self._transport, workspace_id, "api-keys", kind=ManagedKey, page=page, limit=limit)

    async def revoke(self, workspace_id: str, key_id: str) -> ManagedKey:
        """Revoke an API key permanently."""
        return read(ManagedKey, await self._transport.json(Call("DELETE", _path(workspace_id, "api-keys", key_id))))


class AsyncWorkspaceMembers:
    """Members of a workspace, identified by their address: `client.workspaces.members`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(
        self, workspace_id: str, *, page: Optional[int] = None, limit: Optional[int] = None
    ) -> AsyncListing[Member]:
        return _listing(self._transport, workspace_id, "members", kind=Member, page=page, limit=limit)

    async def update(self, workspace_id: str, email: str, *, role: str) -> Member:
        call = Call("PATCH", _path(workspace_id, "members", email), body={"role": role})
        return read(Member, await self._transport.json(call))

    async def remove(self, workspace_id: str, email: str) -> RemovedMember:
        """End a membership. API keys stay active: they belong to the workspace."""
        return read(RemovedMember, await self._transport.json(Call("DELETE", _path(workspace_id, "members", email))))


class AsyncWorkspaceInvitations:
    """Invitations that were not accepted yet: `client.workspaces.invitations`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self, workspace_id: str, *, email: str, role: Optional[str] = None, idempotency_key: Optional[str] = None
    ) -> Invitation:
        """Send an invitation by email. An open invitation of the same address is replaced.

        A repeat with the same idempotency_key within 24 hours sends nothing and returns the first response.
        """
        path, body = (_path(workspace_id, "invitations"), body_of(email=email, role=role))
        call = Call("POST", path, body=body, is_keyed=True, idempotency_key=idempotency_key)
        return read(Invitation, await self._transport.json(call))

    def list(
        self, workspace_id: str, *, page: Optional[int] = None, limit: Optional[int] = None
    ) -> AsyncListing[Invitation]:
        return _listing(self._transport, workspace_id, "invitations", kind=Invitation, page=page, limit=limit)

    async def withdraw(self, workspace_id: str, invitation_id: str) -> Deleted:
        """Delete an invitation. Its link stops working."""
        return read(
            Deleted, await self._transport.json(Call("DELETE", _path(workspace_id, "invitations", invitation_id)))
        )


class AsyncWorkspaceAudit:
    """The audit log of a workspace: `client.workspaces.audit`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(
        self, workspace_id: str, *, page: Optional[int] = None, limit: Optional[int] = None
    ) -> AsyncListing[AuditEntry]:
        """List the actions on a workspace, newest first."""
        return _listing(self._transport, workspace_id, "audit", kind=AuditEntry, page=page, limit=limit)


class AsyncTransports:
    """The operator's transports: `client.transports`. They require a management key."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(self, *, page: Optional[int] = None, limit: Optional[int] = None) -> AsyncListing[TransportStatus]:
        """List the transports with their states, in the order in which the operator wrote them."""
        query = body_of(page=page, limit=limit)
        return AsyncListing(self._transport, ["admin", "transports"], kind=TransportStatus, query=query)


def _listing(transport: AsyncTransport, *segments: str, kind: type[Any], **query: Optional[int]) -> AsyncListing[Any]:
    return AsyncListing(transport, _path(*segments), kind=kind, query=body_of(**query))
