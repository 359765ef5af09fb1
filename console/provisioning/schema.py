"""`/v1/admin` in the OpenAPI document."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter

from console.provisioning.leases import ConfigurationInProgress
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
from core.api.errors import NotFound
from core.api.fields import DeletedSerializer
from core.api.schema import ID, Access, Operation, describe_view, example, response
from core.workspaces.api.schema import EXCESS, KEY_LIMITS, UNAUTHENTICATED
from core.workspaces.errors import (
    InsufficientScope,
    NetworkNotAllowed,
    PlanLimitReached,
    WorkspaceDeleted,
    WorkspaceSuspended,
)
from core.workspaces.members import AlreadyMember, LastOwner
from emails.api.openapi import IDEMPOTENCY, IDEMPOTENCY_KEY

CREATED_AT = "2026-11-20T08:12:44.102Z"
WORKSPACE = example(
    ManagedWorkspaceSerializer,
    id="ws_0Uf7kWQ2mX1cVbNq8RtYzA",
    name="Shop",
    plan="pro",
    group="customers",
    suspendedReason=None,
    createdAt=CREATED_AT,
)
KEY = example(
    ManagedKeySerializer,
    id="key_0Uf7kWRb3nC5xZaLs9DfGh",
    name="Website",
    scope="sending_access",
    test=False,
    limits=KEY_LIMITS,
    lastFour="4xQz",
    createdAt=CREATED_AT,
)
RULES = {"allow": ["ada@example.com", "@example.org", "@*.staging.example.com"], "otherwise": "capture"}
SECRET = "pr_0Uf7kWRb3nC5xZaLs9DfGh_8fK2mQ0vZr5sT7uWxYzAbCdEfGhIjKlMnOpQrStUvWx4xQz"  # noqa: S105 - an example
MEMBER = {"email": "ada@example.com", "role": "owner", "createdAt": CREATED_AT}
INVITATION = {
    "id": "inv_0Uf7kWTc4pD6yXbMt0EgHi",
    "email": "grace@example.com",
    "role": "member",
    "createdAt": CREATED_AT,
    "expiresAt": "2026-11-27T08:12:44.102Z",
}
ENTRY = {
    "action": "key_created",
    "about": "Website (pr_…4xQz), sending_access",
    "actorKind": "key",
    "actor": "Platform (pra_…9bTd)",
    "address": "192.0.2.7",
    "createdAt": CREATED_AT,
}
USAGE = {
    "quota": {"limit": 50_000, "used": 1_204, "remaining": 48_796, "resetsAt": "2026-12-01T00:00:00.000Z"},
    "months": [{"month": "2026-10-01", "used": 40_112}, {"month": "2026-11-01", "used": 1_204}],
}
TRANSPORT = {
    "name": "own",
    "kind": "direct",
    "state": "paused",
    "since": CREATED_AT,
    "lastError": "Could not connect: Connection refused",
    "inFlight": 0,
    "sentToday": 12_045,
    "perDay": 50_000,
    "routes": ["default"],
    "unalignedDomains": ["news.example.com"],
}
RECEIVER = {
    "receiver": "google",
    "name": "Google",
    "sourceAddress": "192.0.2.10",
    "state": "limited",
    "since": CREATED_AT,
    "until": None,
    "connections": 3,
    "allowedConnections": 3,
    "perMinute": 240.0,
    "pinnedPerMinute": None,
    "waiting": 1_204,
    "acceptedToday": 18_310,
    "warmUpDay": None,
    "perDay": None,
    "listed": False,
    "slowedToday": 2,
    "reply": "421 4.7.28 Gmail has detected an unusual rate of unsolicited mail",
    "repliedAt": CREATED_AT,
}
CONFIGURATION = {
    "name": "Shop",
    "domains": [{"name": "mail.example.com", "tls": "required"}],
    "webhooks": [{"url": "https://shop.example.com/events", "events": ["bounced", "complained"]}],
    "routes": [{"name": "Support", "domain": "mail.example.com", "match": "support*"}],
    "blocks": [{"sender": "spam.example"}],
}
CHECKED = {
    "domainNames": ["mail.example.com"],
    "routeDomains": ["mail.example.com"],
    "blockedSenders": ["spam.example"],
}
LEASE = {"token": "8fK2mQ0vZr5sT7uWxYzAbCdEf"}
WORKSPACE_ID = OpenApiParameter(
    "workspace_id", {"type": "string", "pattern": f"^ws_{ID}$"}, OpenApiParameter.PATH, description="The workspace."
)
IDEMPOTENT = OpenApiParameter(
    IDEMPOTENCY_KEY.name,
    IDEMPOTENCY_KEY.type,
    OpenApiParameter.HEADER,
    description="A key for one request, such as a UUID. A repeat within 24 hours receives the response to the first "
    "request, including the secret of an API key.",
)
EMAIL = OpenApiParameter("email", {"type": "string"}, OpenApiParameter.PATH, description="The address of the member.")


def _access(view: Any, name: str) -> Access:
    """Derive the note, problems, parameters and headers from the viewset and from the decorator `idempotent`."""
    is_within = hasattr(view, "workspace")
    is_idempotent = hasattr(getattr(view, name), "is_idempotent")
    note = "Requires a management key, or an API key of the workspace with scope `workspace_admin`."
    return Access(
        "Requires a management key." if name in view.management_actions else note,
        problems=[
            *UNAUTHENTICATED,
            NetworkNotAllowed,
            InsufficientScope,
            *EXCESS,
            WorkspaceDeleted,
            WorkspaceSuspended,
            *([NotFound] if is_within else []),
            *(IDEMPOTENCY if is_idempotent else []),
        ],
        parameters=[*([WORKSPACE_ID] if is_within else []), *([IDEMPOTENT] if is_idempotent else [])],
        headers=["Idempotent-Replayed"] if is_idempotent else [],
    )


def _configuration_access(view: Any, name: str) -> Access:
    problems = (*UNAUTHENTICATED, InsufficientScope, NotFound, *EXCESS, WorkspaceSuspended)
    scope = "may read its workspace" if name == "check" else "has the scope `full_access` or `workspace_admin`"
    return Access(f"Requires a management key, or an API key that {scope}.", problems)


def _installation_access(view: Any, name: str) -> Access:
    problems = (*UNAUTHENTICATED, NetworkNotAllowed, InsufficientScope, *EXCESS)
    return Access("Requires a management key without a group.", problems)


def managed_view(**operations: Operation) -> Any:
    """Describe the methods of a view of the management API; see core.api.schema.describe_view."""
    return describe_view(_access, **operations)


class ManagementKeyExtension(OpenApiAuthenticationExtension):
    target_class = "console.provisioning.access.ManagementAuthentication"
    name = "Management"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        description = "A management key from the operator, `Authorization: Bearer pra_…`, or an API key."
        return {"type": "http", "scheme": "bearer", "bearerFormat": "pra_…", "description": description}


workspaces = managed_view(
    list=Operation(
        "listWorkspaces",
        "List workspaces",
        "Returns the workspaces that the key manages, newest first.",
        response(ManagedWorkspaceSerializer, "A page of workspaces.", WORKSPACE),
    ),
    create=Operation(
        "createWorkspace",
        "Create a workspace",
        "Creates a workspace in the group of the key. It has no members; with `ownerEmail`, a person is invited as an "
        "owner by email.",
        response(ManagedWorkspaceSerializer, "The workspace was created.", WORKSPACE, status=201),
        body=NewWorkspaceInput,
        bodies={"A workspace": {"name": "Shop", "plan": "pro", "ownerEmail": "ada@example.com"}},
    ),
    retrieve=Operation(
        "getWorkspace",
        "Get a workspace",
        "Returns one workspace.",
        response(ManagedWorkspaceSerializer, "The workspace.", WORKSPACE),
    ),
    partial_update=Operation(
        "updateWorkspace",
        "Change a workspace",
        "Changes the given fields. Changing the plan requires a management key. `recipientRules` replaces all rules, "
        "null removes them; emails that were accepted before obey as well.",
        response(ManagedWorkspaceSerializer, "The updated workspace.", WORKSPACE),
        body=WorkspaceChangesInput,
        bodies={"Another plan": {"plan": "enterprise"}, "Recipient rules": {"recipientRules": RULES}},
    ),
    suspend=Operation(
        "suspendWorkspace",
        "Suspend a workspace",
        "Refuses new emails and holds queued ones. Suspending again changes the reason.",
        response(ManagedWorkspaceSerializer, "The workspace.", {**WORKSPACE, "suspendedAt": CREATED_AT}),
        body=SuspensionInput,
        bodies={"With a reason": {"reason": "The invoice is overdue."}},
    ),
    resume=Operation(
        "resumeWorkspace",
        "Resume a workspace",
        "Ends the suspension; queued emails are sent. Resuming again changes nothing.",
        response(ManagedWorkspaceSerializer, "The workspace.", WORKSPACE),
    ),
    destroy=Operation(
        "deleteWorkspace",
        "Delete a workspace",
        "Stops the API keys of the workspace within a second and holds queued emails. Until `deletesAt`, seven days "
        "later by default, the workspace can be restored; then all of its data is deleted. Deleting again changes "
        "nothing.",
        response(ManagedWorkspaceSerializer, "The workspace.", {**WORKSPACE, "deletesAt": "2026-11-27T08:12:44.102Z"}),
    ),
    restore=Operation(
        "restoreWorkspace",
        "Restore a workspace",
        "Ends the deletion of a workspace; queued emails are sent. Restoring again changes nothing.",
        response(ManagedWorkspaceSerializer, "The workspace.", WORKSPACE),
    ),
    usage=Operation(
        "getUsage",
        "Get the usage of a workspace",
        "Returns the quota of the current month and the usage of the last twelve months.",
        response(UsageSerializer, "The usage.", USAGE),
    ),
)
api_keys = managed_view(
    list=Operation(
        "listApiKeys",
        "List API keys",
        "Returns the API keys of a workspace, including revoked ones, newest first.",
        response(ManagedKeySerializer, "A page of API keys.", KEY),
    ),
    create=Operation(
        "createApiKey",
        "Create an API key",
        "Creates an API key and returns it in `key`, once. A new key that an API key creates must not be "
        "broader: it expires no later and keeps within the networks and requests per second of the other.",
        response(NewKeySerializer, "The API key was created.", {**KEY, "key": SECRET}, status=201),
        problems=[PlanLimitReached],
        body=ApiKeyInput,
        bodies={
            "A key": {"name": "Website", "scope": "sending_access"},
            "A key with limits": {
                "name": "Shop",
                "scope": "sending_access",
                "limits": {"domains": ["shop.example"], "networks": ["203.0.113.0/24"], "requestsPerSecond": 10},
            },
            "A key for staging": {"name": "Staging", "scope": "sending_access", "recipientRules": RULES},
            "A test key": {"name": "CI", "scope": "sending_access", "test": True},
        },
    ),
    partial_update=Operation(
        "updateApiKey",
        "Change an API key",
        "Replaces the recipient rules of an API key, or removes them with null. Emails that the key accepted before "
        "obey as well. Other fields of a key cannot be changed.",
        response(ManagedKeySerializer, "The updated API key.", {**KEY, "recipientRules": RULES}),
        body=KeyChangesInput,
        bodies={"Recipient rules": {"recipientRules": RULES}},
    ),
    destroy=Operation(
        "revokeApiKey",
        "Revoke an API key",
        "Revokes an API key permanently, within a second. Revoking again changes nothing.",
        response(ManagedKeySerializer, "The revoked API key.", {**KEY, "revokedAt": CREATED_AT}),
    ),
)
members = managed_view(
    list=Operation(
        "listMembers",
        "List members",
        "Returns the members of a workspace by address.",
        response(MemberSerializer, "A page of members.", MEMBER),
    ),
    partial_update=Operation(
        "updateMember",
        "Change a member's role",
        "Changes the role of a member. The last owner cannot become a member.",
        response(MemberSerializer, "The updated member.", MEMBER),
        problems=[LastOwner],
        body=RoleInput,
        bodies={"An owner": {"role": "owner"}},
        parameters=[EMAIL],
    ),
    destroy=Operation(
        "removeMember",
        "Remove a member",
        "Ends a membership. The last owner cannot be removed. API keys stay active: they belong to the workspace.",
        response(
            RemovedMemberSerializer, "The member was removed.", example(RemovedMemberSerializer, email=MEMBER["email"])
        ),
        problems=[LastOwner],
        parameters=[EMAIL],
    ),
)
invitations = managed_view(
    list=Operation(
        "listInvitations",
        "List invitations",
        "Returns the invitations that were not accepted, including expired ones until they are deleted.",
        response(InvitationSerializer, "A page of invitations.", INVITATION),
    ),
    create=Operation(
        "createInvitation",
        "Invite a member",
        "Sends an email with a link that is valid for seven days. An open invitation of the same address is replaced.",
        response(InvitationSerializer, "The invitation was created.", INVITATION, status=201),
        problems=[AlreadyMember, PlanLimitReached],
        body=InvitationInput,
        bodies={"A member": {"email": "grace@example.com"}},
    ),
    destroy=Operation(
        "withdrawInvitation",
        "Withdraw an invitation",
        "Deletes an invitation; its link stops working.",
        response(DeletedSerializer, "The invitation was deleted.", example(DeletedSerializer, id=INVITATION["id"])),
    ),
)
audit = managed_view(
    list=Operation(
        "listAuditEntries",
        "List the audit log",
        "Returns the actions on a workspace, newest first, for 400 days.",
        response(AuditEntrySerializer, "A page of audit entries.", ENTRY),
    )
)
transports = managed_view(
    list=Operation(
        "listTransports",
        "List transports",
        "Returns the operator's transports, in the order of `TRANSPORTS_FILE`; without it, only `default`. Each has "
        "the state of the worker process that fares worst with it.",
        response(TransportSerializer, "A page of transports.", TRANSPORT),
    )
)
receivers = describe_view(
    _installation_access,
    list=Operation(
        "listReceivers",
        "List receivers",
        "Returns the pace of each source address at each receiver that a direct transport delivers to: those that "
        "nothing is sent to come first, then those with the most messages accepted today.",
        response(ReceiverPaceSerializer, "A page of receivers.", RECEIVER),
        parameters=[ReceiversQuery],
    ),
)
configuration = describe_view(
    _configuration_access,
    check=Operation(
        "checkConfiguration",
        "Check a configuration",
        "Checks the description of a workspace as `postrider apply` reads it, and changes nothing. The error "
        "lists every invalid field, including syntax errors of templates. Existing objects, limits and the addresses "
        "of webhook hosts are not checked.",
        response(CheckedConfigurationSerializer, "The configuration is valid.", CHECKED),
        body=ConfigurationInput,
        bodies={"A workspace": CONFIGURATION},
    ),
    lease=Operation(
        "leaseConfiguration",
        "Lease a configuration",
        "Takes the lease of a workspace for two minutes, or renews it with the same token. `postrider apply` makes its "
        "plan and its changes with the lease, so that two runs do not create the same objects. Other requests are not "
        "restricted by it.",
        response(LeaseSerializer, "The lease was taken.", {"expiresAt": CREATED_AT}),
        body=LeaseInput,
        bodies={"All workspaces of the key": LEASE},
        problems=[ConfigurationInProgress],
    ),
    release=Operation(
        "releaseConfiguration",
        "Release a configuration",
        "Ends the lease with this token. A lease of another run stays.",
        response(LeaseSerializer, "The lease has ended.", {"expiresAt": None}),
        body=LeaseInput,
        bodies={"All workspaces of the key": LEASE},
    ),
)
