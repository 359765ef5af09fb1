"""`/v1/admin`: workspaces, and the keys, members, invitations, usage and audit log of each."""

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from django.conf import settings
from django.db.models import Model, QuerySet
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.generics import get_object_or_404
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from console.provisioning import schema
from console.provisioning.access import (
    ManagementAuthentication,
    ManagesInstallation,
    ManagesWorkspaces,
    ReadsConfiguration,
    managed_workspaces,
    managing_key,
)
from console.provisioning.idempotency import idempotent
from console.provisioning.leases import ALL_WORKSPACES, end_lease, take_lease
from console.provisioning.models import ManagementKey
from console.provisioning.serializers import (
    ApiKeyInput,
    AuditEntrySerializer,
    CheckedConfigurationSerializer,
    ConfigurationInput,
    InvitationInput,
    InvitationSerializer,
    KeyChangesInput,
    LeaseInput,
    LeaseSerializer,
    ManagedKeySerializer,
    ManagedWorkspaceSerializer,
    MemberSerializer,
    NewKeySerializer,
    NewWorkspaceInput,
    ReceiverPaceSerializer,
    ReceiversQuery,
    RemovedMemberSerializer,
    RoleInput,
    SuspensionInput,
    TransportSerializer,
    UsageSerializer,
    WorkspaceChangesInput,
)
from console.provisioning.services import change_workspace, invite, provision_workspace
from console.provisioning.throttling import take_invitation
from core.api.fields import DeletedSerializer
from core.api.pagination import PagePagination
from core.workspaces.account_status import lift_suspension, refuse_inactive, suspend_workspace
from core.workspaces.api.throttling import take_from, take_key_request
from core.workspaces.api.viewsets import KeyedView
from core.workspaces.deletion import delete_workspace, restore_workspace
from core.workspaces.members import change_role, remove_member, withdraw_invitation
from core.workspaces.models import ApiKey, AuditEntry, Invitation, Membership, Workspace, normalize_identity
from core.workspaces.quota import read_quota
from core.workspaces.services import change_rules, issue_key_for, revoke_api_key, usage_history
from domains.models import Domain
from emails.receivers.pair_status import find_pairs, read_pair_statuses
from emails.sending.transport_status import read_statuses
from templates_app.views import MAX_TEMPLATE_BODY_BYTES

M = TypeVar("M", bound=Model)


class ManagementViewSet(KeyedView, GenericViewSet[M]):
    """A viewset of the management API. Only management keys may use its `management_actions`."""

    authentication_classes = (ManagementAuthentication,)
    permission_classes: Sequence[type[BasePermission]] = (ManagesWorkspaces,)
    management_actions: ClassVar[frozenset[str]] = frozenset()

    def perform_authentication(self, request: Request) -> None:
        super().perform_authentication(request)
        key = managing_key(request)
        if isinstance(key, ManagementKey):
            self.level = take_from(f"management:{key.id}")
            return
        self.level = take_key_request(key)
        refuse_inactive(key.workspace)


class WithinWorkspaceViewSet(ManagementViewSet[M]):
    """The rows of one managed workspace, whose id is in the path."""

    @property
    def workspace(self) -> Workspace:
        managed = managed_workspaces(managing_key(self.request))
        return get_object_or_404(managed, id=self.kwargs["workspace_id"])

    def get_queryset(self) -> QuerySet[M]:
        return super().get_queryset().filter(workspace=self.workspace)


@schema.workspaces
class ManagedWorkspaceViewSet(ListModelMixin, RetrieveModelMixin, ManagementViewSet[Workspace]):
    serializer_class = ManagedWorkspaceSerializer
    queryset = Workspace.objects.all()
    management_actions = frozenset({"create", "suspend", "resume", "destroy", "restore"})

    def get_queryset(self) -> QuerySet[Workspace]:
        return managed_workspaces(managing_key(self.request)).order_by("-created_at", "-id")

    @idempotent
    def create(self, request: Request) -> Response:
        assert isinstance(request.auth, ManagementKey)
        fields = {"plan": settings.DEFAULT_PLAN, **self.valid(NewWorkspaceInput)}
        workspace = provision_workspace(request.auth, **fields)
        return Response(ManagedWorkspaceSerializer(workspace).data, status=status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        changes = self.valid(WorkspaceChangesInput)
        change_workspace(self.get_object(), creator=managing_key(request), changes=changes)
        return self.retrieve(request, pk)

    @action(detail=True, methods=["post"])
    @idempotent
    def suspend(self, request: Request, pk: str) -> Response:
        suspend_workspace(self.get_object(), reason=self.valid(SuspensionInput)["reason"])
        return self.retrieve(request, pk)

    @action(detail=True, methods=["post"])
    @idempotent
    def resume(self, request: Request, pk: str) -> Response:
        lift_suspension(self.get_object())
        return self.retrieve(request, pk)

    def destroy(self, request: Request, pk: str) -> Response:
        delete_workspace(self.get_object())
        return self.retrieve(request, pk)

    @action(detail=True, methods=["post"])
    @idempotent
    def restore(self, request: Request, pk: str) -> Response:
        restore_workspace(self.get_object())
        return self.retrieve(request, pk)

    @action(detail=True)
    def usage(self, request: Request, pk: str) -> Response:
        workspace = self.get_object()
        usage = {"quota": read_quota(workspace), "months": usage_history(workspace)}
        return Response(UsageSerializer(usage).data)


@schema.api_keys
class ManagedKeyViewSet(ListModelMixin, WithinWorkspaceViewSet[ApiKey]):
    queryset = ApiKey.objects.order_by("-created_at", "-id")
    serializer_class = ManagedKeySerializer

    @idempotent
    def create(self, request: Request, workspace_id: str) -> Response:
        workspace = self.workspace
        key, secret = issue_key_for(workspace, creator=managing_key(request), **self.valid(ApiKeyInput))
        key.refresh_from_db()
        body = NewKeySerializer(key, context={"secret": secret.text}).data
        return Response(body, status=status.HTTP_201_CREATED)

    def partial_update(self, request: Request, workspace_id: str, pk: str) -> Response:
        change_rules(self.get_object(), **self.valid(KeyChangesInput))
        return Response(ManagedKeySerializer(self.get_object()).data)

    def destroy(self, request: Request, workspace_id: str, pk: str) -> Response:
        key = self.get_object()
        revoke_api_key(key)
        key.refresh_from_db()
        return Response(ManagedKeySerializer(key).data)


@schema.members
class ManagedMemberViewSet(ListModelMixin, WithinWorkspaceViewSet[Membership]):
    queryset = Membership.objects.select_related("user", "workspace").order_by("user__email")
    serializer_class = MemberSerializer
    lookup_field = "user__email"
    lookup_url_kwarg = "email"
    lookup_value_regex = r"[^/\x00]+"

    def get_object(self) -> Membership:
        self.kwargs["email"] = normalize_identity(self.kwargs["email"])
        return super().get_object()

    def partial_update(self, request: Request, workspace_id: str, email: str) -> Response:
        member = self.get_object()
        change_role(member, role=self.valid(RoleInput)["role"])
        return Response(MemberSerializer(self.get_object()).data)

    def destroy(self, request: Request, workspace_id: str, email: str) -> Response:
        member = self.get_object()
        remove_member(member)
        return Response(RemovedMemberSerializer({"email": member.user.email}).data)


@schema.invitations
class InvitationViewSet(ListModelMixin, WithinWorkspaceViewSet[Invitation]):
    queryset = Invitation.objects.order_by("-created_at", "-id")
    serializer_class = InvitationSerializer

    def check_throttles(self, request: Request) -> None:
        super().check_throttles(request)
        if self.action == "create":
            take_invitation(self.workspace.id)

    @idempotent
    def create(self, request: Request, workspace_id: str) -> Response:
        workspace = self.workspace
        fields: dict[str, Any] = {"role": Membership.Role.MEMBER, **self.valid(InvitationInput)}
        invitation = invite(workspace, **fields)
        invitation.refresh_from_db()
        return Response(InvitationSerializer(invitation).data, status=status.HTTP_201_CREATED)

    def destroy(self, request: Request, workspace_id: str, pk: str) -> Response:
        withdraw_invitation(self.get_object())
        return Response(DeletedSerializer({"id": pk}).data)


@schema.audit
class AuditViewSet(ListModelMixin, WithinWorkspaceViewSet[AuditEntry]):
    queryset = AuditEntry.objects.order_by("-id")
    serializer_class = AuditEntrySerializer


# Members of the response: the names of a section that are stored in another form.
STORED_NAMES = (
    ("domainNames", "domains", "name"),
    ("routeDomains", "routes", "domain"),
    ("blockedSenders", "blocks", "sender"),
)


@schema.transports
class TransportViewSet(ManagementViewSet[Any]):
    serializer_class = TransportSerializer
    # They have no rows; for the description of the view.
    queryset = Workspace.objects.none()
    management_actions = frozenset({"list"})

    def list(self, request: Request) -> Response:
        pages = PagePagination()
        statuses = pages.paginate_queryset(read_statuses(), request)
        domains = Domain.objects.filter(workspace__in=managed_workspaces(managing_key(request)))
        rows = [TransportSerializer(status, context={"domains": domains}).data for status in statuses]
        return pages.get_paginated_response(rows)


@schema.receivers
class ReceiverViewSet(ManagementViewSet[Any]):
    permission_classes = (ManagesInstallation,)
    serializer_class = ReceiverPaceSerializer
    # For the description of the view; emails.receivers reads them.
    queryset = Workspace.objects.none()
    management_actions = frozenset({"list"})

    def list(self, request: Request) -> Response:
        pages = PagePagination()
        rows = pages.paginate_queryset(find_pairs(**self.valid_query(ReceiversQuery)), request)
        return pages.get_paginated_response([ReceiverPaceSerializer(one).data for one in read_pair_statuses(rows)])


@schema.configuration
class ConfigurationViewSet(ManagementViewSet[Workspace]):
    permission_classes = (ReadsConfiguration,)
    reading_actions = frozenset({"check"})
    body_bytes: ClassVar = {"check": MAX_TEMPLATE_BODY_BYTES}
    # For OPTIONS.
    serializer_class = ConfigurationInput

    @action(detail=False, methods=["post"])
    def check(self, request: Request) -> Response:
        values = self.valid(ConfigurationInput)
        names = {name: [one[field] for one in values.get(section, ())] for name, section, field in STORED_NAMES}
        return Response(CheckedConfigurationSerializer(names).data)

    @action(detail=False, methods=["post"])
    def lease(self, request: Request) -> Response:
        values = self.valid(LeaseInput)
        expires_at = take_lease(self._subject(values), token=values["token"])
        return Response(LeaseSerializer({"expiresAt": expires_at}).data)

    @action(detail=False, methods=["post"])
    def release(self, request: Request) -> Response:
        values = self.valid(LeaseInput)
        end_lease(self._subject(values), token=values["token"])
        return Response(LeaseSerializer({"expiresAt": None}).data)

    def _subject(self, values: dict[str, Any]) -> str:
        """Return what a lease is about: a managed workspace, or the list of workspaces."""
        key, workspace_id = managing_key(self.request), values.get("workspaceId")
        if isinstance(key, ManagementKey) and workspace_id is None:
            return ALL_WORKSPACES
        managed = managed_workspaces(key)
        return get_object_or_404(managed, id=workspace_id).id if workspace_id else managed.get().id
