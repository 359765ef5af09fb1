"""The names of both client libraries that do not follow from the OpenAPI document.

Names of version 1.0.0 stay. A schema, field or error that is not named here keeps the name of the API.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class Method:
    """A method of a resource.

    operation: the id of its operation.
    positional: fields that are given without a name.
    fields: the only fields of the body that it takes; empty for all.
    hidden: fields of the body that it does not take.
    required: fields that must be given though the schema has alternatives to them.
    first: the fields that come first among the arguments.
    whole: the name of the argument that is the whole body.
    fixed: members of the body that are always sent.
    answer: the schema of its response, if the operation has several.
    object_id: the argument for {id}, if it is not that of the resource.
    is_repeatable: a POST that is safe to repeat without a response.
    summary, text: in place of those of the operation, of which several methods are made.
    """

    operation: str
    positional: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    whole: str = ""
    fixed: dict[str, Any] = field(default_factory=dict)
    answer: str = ""
    object_id: str = ""
    is_repeatable: bool = False
    summary: str = ""
    text: str = ""

    def takes(self, name: str) -> bool:
        return name in self.fields if self.fields else name not in self.hidden


@dataclass(frozen=True)
class Resource:
    """A resource, an attribute of the client.

    text: what it is.
    object_id: the argument for {id}.
    noun: the argument of JavaScript for the fields of a new object.
    children: further resources by attribute.
    base: a class written by hand that it extends, with its module.
    """

    name: str
    text: str
    methods: dict[str, Method]
    object_id: str = ""
    noun: str = "body"
    children: dict[str, str] = field(default_factory=dict)
    base: tuple[str, str] = ("", "")


CONTENT = ("from", "to", "cc", "bcc", "replyTo", "subject", "html", "text", "templateId", "templateData")

# The resources of each module.
MODULES: dict[str, tuple[Resource, ...]] = {
    "emails": (
        Resource(
            "Emails",
            "Emails: `client.emails`.",
            {
                "send": Method("sendEmail", hidden=("dryRun",), first=CONTENT, answer="Accepted"),
                "check": Method(
                    "sendEmail",
                    hidden=("dryRun", "idempotencyKey"),
                    first=CONTENT,
                    fixed={"dryRun": True},
                    answer="DryRun",
                    is_repeatable=True,
                    summary="Check an email",
                    text="Checks an email in full and returns it rendered. Nothing is sent, and no quota is used.",
                ),
                "batch": Method("sendBatch", first=("from", "templateId", "recipients")),
                "get": Method("getEmail"),
                "attachments": Method("listEmailAttachments"),
                "attachment": Method("getEmailAttachment"),
                "events": Method("listEmailEvents"),
                "list": Method("listEmails"),
                "export": Method("exportEmails"),
                "resend": Method("resendEmail"),
                "cancel": Method("cancelEmail"),
                "reschedule": Method("rescheduleEmail", positional=("scheduledFor",)),
                "approve": Method("approveEmail"),
                "reject": Method("rejectEmail"),
            },
            object_id="email_id",
            noun="email",
        ),
    ),
    "templates": (
        Resource(
            "Templates",
            "Templates: `client.templates`.",
            {
                "create": Method("createTemplate"),
                "list": Method("listTemplates"),
                "get": Method("getTemplate"),
                "update": Method("updateTemplate"),
                "delete": Method("deleteTemplate"),
                "preview": Method("previewTemplate", positional=("data",), is_repeatable=True),
            },
            object_id="template_id",
            noun="template",
        ),
    ),
    "streams": (
        Resource(
            "Streams",
            "Streams: `client.streams`.",
            {
                "create": Method("createStream"),
                "list": Method("listStreams"),
                "get": Method("getStream"),
                "update": Method("updateStream"),
                "archive": Method("archiveStream", is_repeatable=True),
                "unarchive": Method("unarchiveStream", is_repeatable=True),
            },
            object_id="stream_id",
            noun="stream",
        ),
    ),
    "suppressions": (
        Resource(
            "Suppressions",
            "Suppressions: `client.suppressions`.",
            {
                "create": Method(
                    "createSuppression",
                    positional=("email",),
                    fields=("email", "stream"),
                    required=("email",),
                    answer="Suppression",
                    is_repeatable=True,
                    summary="Suppress an address",
                    text="An address that is already suppressed keeps its suppression and reason. Case is ignored.",
                ),
                "create_many": Method(
                    "createSuppression",
                    positional=("emails",),
                    fields=("emails", "stream"),
                    required=("emails",),
                    answer="SuppressionList",
                    is_repeatable=True,
                    text="An address that is already suppressed keeps its suppression and reason. Case is ignored.",
                ),
                "list": Method("listSuppressions"),
                "get": Method("getSuppression"),
                "delete": Method("deleteSuppression"),
            },
            object_id="suppression_id",
        ),
    ),
    "domains": (
        Resource(
            "Domains",
            "Domains: `client.domains`.",
            {
                "create": Method("createDomain", positional=("name",)),
                "list": Method("listDomains"),
                "get": Method("getDomain"),
                "update": Method("updateDomain"),
                "verify": Method("verifyDomain", is_repeatable=True),
                "rotate_dkim": Method("rotateDkimKey", is_repeatable=True),
                "delete": Method("deleteDomain"),
                "dmarc": Method("getDmarc"),
                "sources": Method("listDmarcSources"),
                "name_source": Method("nameDmarcSource", is_repeatable=True),
                "dmarc_reports": Method("listDmarcReports"),
                "dmarc_report": Method("getDmarcReport", object_id="report_id"),
                "tls_reports": Method("getTlsReports"),
            },
            object_id="domain_id",
        ),
    ),
    "alerts": (
        Resource(
            "Alerts",
            "Alerts: `client.alerts`.",
            {
                "create": Method("createAlert"),
                "list": Method("listAlerts"),
                "get": Method("getAlert"),
                "update": Method("updateAlert"),
                "delete": Method("deleteAlert"),
            },
            object_id="alert_id",
            noun="alert",
        ),
    ),
    "erasures": (
        Resource(
            "Erasures",
            "Erasures of people: `client.erasures`.",
            {"create": Method("createErasure", positional=("email",), is_repeatable=True), "get": Method("getErasure")},
            object_id="erasure_id",
        ),
    ),
    "subject_exports": (
        Resource(
            "SubjectExports",
            "Exports of people: `client.subject_exports`.",
            {
                "create": Method("createSubjectExport", positional=("email",), is_repeatable=True),
                "get": Method("getSubjectExport"),
                "download": Method("downloadSubjectExport"),
            },
            object_id="export_id",
        ),
    ),
    "webhooks": (
        Resource(
            "Webhooks",
            "Webhooks: `client.webhooks`.",
            {
                "create": Method("createWebhook"),
                "list": Method("listWebhooks"),
                "get": Method("getWebhook"),
                "update": Method("updateWebhook"),
                "delete": Method("deleteWebhook"),
                "test": Method("testWebhook"),
                "rotate_secret": Method("rotateWebhookSecret"),
                "deliveries": Method("listDeliveries"),
                "delivery": Method("getDelivery", object_id="delivery_id"),
                "replay": Method("replayDelivery", object_id="delivery_id"),
            },
            object_id="webhook_id",
            noun="webhook",
            base=("WebhookVerification", "signatures"),
        ),
    ),
    "inbound": (
        Resource(
            "Inbound",
            "Received emails, the routes of their addresses, and blocked senders: `client.inbound`.",
            {"get": Method("getInbound")},
            children={"emails": "ReceivedEmails", "routes": "Routes", "blocks": "SenderBlocks"},
        ),
        Resource(
            "ReceivedEmails",
            "Received emails. Their content was written by others: check `authentication` before acting on it.",
            {
                "list": Method("listReceivedEmails"),
                "get": Method("getReceivedEmail"),
                "raw": Method("getReceivedSource"),
                "attachment": Method("getReceivedAttachment"),
                "bypass": Method("bypassBlock"),
                "forward": Method("forwardReceivedEmail"),
                "redeliver": Method("redeliverReceivedEmail"),
                "reread": Method("rereadReceivedEmail"),
                "delete": Method("deleteReceivedEmail"),
                "simulate": Method("simulateReceivedEmail"),
            },
            object_id="received_id",
            noun="message",
        ),
        Resource(
            "Routes",
            "Rules for recipient addresses: of those that match, the first decides.",
            {
                "create": Method("createRoute"),
                "list": Method("listRoutes"),
                "get": Method("getRoute"),
                "update": Method("updateRoute"),
                "delete": Method("deleteRoute"),
                "match": Method("matchRoute", positional=("recipient",), is_repeatable=True),
            },
            object_id="route_id",
            noun="route",
        ),
        Resource(
            "SenderBlocks",
            "Senders from which the workspace receives nothing.",
            {
                "create": Method("createBlock", positional=("sender",), is_repeatable=True),
                "list": Method("listBlocks"),
                "delete": Method("deleteBlock"),
            },
            object_id="block_id",
        ),
    ),
    "numbers": (
        Resource(
            "Analytics",
            "Analytics: `client.analytics`.",
            {
                "get": Method("getAnalytics"),
                "daily": Method("getDailyVolume", positional=("days",)),
                "bounces": Method("getBounceCauses"),
                "latency": Method("getLatency"),
            },
        ),
        Resource("Queue", "The queue: `client.queue`.", {"stats": Method("getQueueStats")}),
    ),
    "workspaces": (
        Resource(
            "Workspaces",
            "The management API: `client.workspaces`. It requires a management key, or an API key with scope "
            "`workspace_admin` for the workspace of the key.",
            {
                "create": Method("createWorkspace"),
                "list": Method("listWorkspaces"),
                "get": Method("getWorkspace"),
                "update": Method("updateWorkspace"),
                "suspend": Method("suspendWorkspace"),
                "resume": Method("resumeWorkspace"),
                "delete": Method("deleteWorkspace"),
                "restore": Method("restoreWorkspace"),
                "usage": Method("getUsage"),
                "check_configuration": Method("checkConfiguration", whole="configuration", is_repeatable=True),
                "lease_configuration": Method("leaseConfiguration", is_repeatable=True),
                "release_configuration": Method("releaseConfiguration", is_repeatable=True),
            },
            object_id="workspace_id",
            noun="workspace",
            children={
                "keys": "WorkspaceKeys",
                "members": "WorkspaceMembers",
                "invitations": "WorkspaceInvitations",
                "audit": "WorkspaceAudit",
            },
        ),
        Resource(
            "WorkspaceKeys",
            "API keys of a workspace: `client.workspaces.keys`.",
            {
                "create": Method("createApiKey"),
                "list": Method("listApiKeys"),
                "update": Method("updateApiKey"),
                "revoke": Method("revokeApiKey"),
            },
            object_id="key_id",
            noun="key",
        ),
        Resource(
            "WorkspaceMembers",
            "Members of a workspace, identified by their address: `client.workspaces.members`.",
            {"list": Method("listMembers"), "update": Method("updateMember"), "remove": Method("removeMember")},
        ),
        Resource(
            "WorkspaceInvitations",
            "Invitations that were not accepted yet: `client.workspaces.invitations`.",
            {
                "create": Method("createInvitation"),
                "list": Method("listInvitations"),
                "withdraw": Method("withdrawInvitation"),
            },
            object_id="invitation_id",
            noun="invitation",
        ),
        Resource(
            "WorkspaceAudit",
            "The audit log of a workspace: `client.workspaces.audit`.",
            {"list": Method("listAuditEntries")},
        ),
        Resource(
            "Receivers",
            "The pace of sending to each receiver: `client.receivers`. They require a management key without a group.",
            {"list": Method("listReceivers")},
        ),
        Resource(
            "Transports",
            "The operator's transports: `client.transports`. They require a management key.",
            {"list": Method("listTransports")},
        ),
    ),
}
# Operations whose methods are written by hand.
BY_HAND = {"getOpenApi", "getMe", "listEvents", "streamEvents"}

# The names of schemas of responses in both libraries.
ANSWERS = {
    "Attachment": "KeptFile",
    "Block": "SenderBlock",
    "Day": "DailyVolume",
    "DryRun": "Checked",
    "Event": "TimelineEvent",
    "Inbound": "InboundSettings",
    "Lease": "ConfigurationLease",
    "ReceivedDetail": "ReceivedEmail",
    "Record": "DomainRecord",
    "ReplyToEmail": "AnsweredEmail",
    "Stats": "QueueStats",
    "Tracking": "TrackingHost",
    "Transport": "TransportStatus",
    "Usage": "WorkspaceUsage",
    "CountedStream": "Stream",
    "DomainWarning": "Warning",
    "Advice": "DmarcAdvice",
    "DomainDmarc": "DmarcComparison",
    "Report": "DmarcReport",
    "ReportItem": "DmarcReportItem",
    "ReportRow": "DmarcRow",
    "Requirement": "DmarcRequirement",
    "DeliveryItem": "WebhookDelivery",
}
# What the name of a response does not say.
ANSWER_TEXTS = {
    "Checked": "The rendered email of a dry run.",
    "DailyVolume": "The emails that were created on a day.",
    "DomainRecord": "A DNS record of a domain.",
    "FeedEvent": "An event of the workspace, with the fields of a webhook body.",
    "Deleted": "A deleted object.",
    "AnsweredEmail": "The sent email that a received one answers.",
    "ReceivedItem": "A received email in a list, without text, HTML and headers. The sender wrote its content.",
    "ReceivedEmail": "A received email. The sender wrote its content.",
    "TrackingHost": "The host of the links in a domain's emails; emails use it while its status is `active`.",
    "Receiving": "Whether email to a domain is received: while its status is `active`.",
    "Route": "The rule for recipient addresses of a receiving domain, or of `shared`.",
    "StreamCounts": "The last 30 UTC days.",
    "Rates": "Rates between 0 and 1.",
    "ErasedCounts": "Numbers of erased records of each kind.",
    "ExportedCounts": "Numbers of records of each kind.",
    "Wait": "Why an email is not sent now.",
}

# Errors with other names than in the API.
ERRORS = {"InvalidFields": "ValidationError", "TemplateSyntaxInvalid": "TemplateSyntaxError"}
# Base classes of errors by their status, in Python; below 500, others are ApiError.
ERROR_CLASSES = {
    400: "BadRequest",
    401: "AuthenticationError",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    413: "PayloadTooLarge",
    422: "Unprocessable",
}
# Base classes of errors that their status does not tell.
ERROR_BASES = {
    "domain_not_verified": "DomainNotRegistered",
    "too_many_concurrent_requests": "RateLimitExceeded",
    "processor_time_exceeded": "RateLimitExceeded",
}
# The items of lists in errors, by a member that they require.
ERROR_ITEMS = {"detail": "FieldError", "suppressionId": "SuppressedRecipient", "email": "RefusedRecipient"}

# Requests whose fields are options of commands.
OPTIONS = ("AlertChanges", "RouteChanges", "StreamChanges")


def error_item(schema: Mapping[str, Any]) -> Optional[str]:
    """Return the class of the items of a list in an error; None if they have none."""
    required = schema.get("items", {}).get("required", ())
    return next((name for member, name in ERROR_ITEMS.items() if member in required), None)
