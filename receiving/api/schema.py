"""`/v1/inbound` in the OpenAPI document."""

from drf_spectacular.utils import OpenApiParameter

from core.api.fields import DeletedSerializer
from core.api.schema import Operation, response
from core.workspaces.api.schema import keyed_view
from core.workspaces.errors import PlanLimitReached
from receiving.api.serializers import (
    BlockInput,
    BlockSerializer,
    ForwardedSerializer,
    ForwardInput,
    InboundSerializer,
    ReceivedDetailSerializer,
    RecipientInput,
    RedeliveredSerializer,
    RedeliverInput,
    RereadSerializer,
    RouteChanges,
    RouteInput,
    RouteMatchSerializer,
    RouteSerializer,
    SimulationInput,
    UnblockedSenderSerializer,
)
from receiving.errors import (
    NotBlocked,
    NotForwarded,
    NotPublished,
    NotUnreadable,
    RecipientRefused,
    RereadTooSoon,
    TestKeyRequired,
)
from receiving.rendering import ReceivedItemSerializer

ID = "inb_0Uf7m2kQ9VxHc3NwZrTb4L"
URL = "https://mail.example.com/inbound/AZr3b7Qe0mX1cVbNq8RtYzAZr3b7Qe0mX1cVbNq8RtYzAZr3b7Qe0mX1cVbNq"
UNTIL = "2026-11-20T10:12:31.000Z"
ROUTE = {
    "id": "rt_0Uf7kXT4vB6nM8qWeRtYuI",
    "name": "Support",
    "domain": "shared",
    "match": "*+support",
    "priority": 100,
    "action": "deliver",
    "webhookIds": [],
    "forwardTo": [],
    "attachments": "link",
    "includeRaw": False,
    "requireAuthenticated": False,
    "spamAbove": None,
    "repliesOnly": False,
    "storeDays": None,
    "active": True,
    "createdAt": "2026-11-20T09:12:31.482Z",
}
BLOCK = {"id": "blk_0Uf7kXT4vB6nM8qWeRtYuI", "sender": "spam.example", "createdAt": "2026-11-20T09:12:31.482Z"}
ITEM = {
    "id": ID,
    "status": "processed",
    "routeId": ROUTE["id"],
    "recipient": "support+4711@in.demo.example",
    "tag": "4711",
    "envelopeFrom": "ada@example.com",
    "from": {"email": "ada@example.com", "name": "Ada"},
    "to": [{"email": "support+4711@in.demo.example", "name": ""}],
    "cc": [],
    "replyTo": [],
    "subject": "Re: Order 4711",
    "date": "2026-11-20T09:12:29.000Z",
    "messageId": "<7c1e@example.com>",
    "inReplyTo": "<0Uf7m2kQ9VxHc3NwZrTb4L@demo.example>",
    "references": ["<0Uf7m2kQ9VxHc3NwZrTb4L@demo.example>"],
    "attachments": [
        {
            "id": "att_0Uf7m2kQ8JsDp6YeGiUa1X",
            "filename": "a.pdf",
            "contentType": "application/pdf",
            "size": 48213,
            "contentId": None,
            "inline": False,
            "method": None,
            "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "url": URL,
            "urlExpiresAt": UNTIL,
        }
    ],
    "replyToEmail": {
        "emailId": "0Uf7m2kQ8JsDp6YeGiUa1X",
        "recipient": "ada@example.com",
        "matchedBy": "message_id",
        "fromRecipient": True,
    },
    "authentication": {
        "result": "pass",
        "spf": {"result": "pass", "domain": "example.com"},
        "dkim": [{"result": "pass", "domain": "example.com", "selector": "s1"}],
        "dmarc": {"result": "pass", "policy": "reject", "domain": "example.com"},
        "arc": {"result": "none"},
    },
    "spam": None,
    "automatic": "no",
    "blockedReason": None,
    "parseErrors": [],
    "remote": {"ip": "192.0.2.7", "helo": "mx.example.com", "tls": "TLSv1.3"},
    "size": 61023,
    "receivedAt": "2026-11-20T09:12:31.482Z",
    "expiresAt": "2026-11-27T09:12:31.482Z",
    "test": False,
}
EMAIL = {
    **ITEM,
    "text": "Where is my order?\n\nOn Friday you wrote:\n> Thank you!",
    "textGenerated": False,
    "replyText": "Where is my order?",
    "html": "",
    "truncated": [],
    "headers": [["Subject", "Re: Order 4711"]],
    "raw": {"url": URL, "urlExpiresAt": UNTIL},
    "forwards": [],
}
SIMULATED = {
    **EMAIL,
    "status": "stored",
    "from": None,
    "to": [],
    "subject": "",
    "date": None,
    "messageId": None,
    "inReplyTo": None,
    "references": [],
    "attachments": [],
    "replyToEmail": None,
    "authentication": None,
    "remote": {"ip": None, "helo": "simulated.invalid", "tls": None},
    "text": "",
    "replyText": None,
    "headers": [],
    "test": True,
}
SIMULATION = {
    "recipient": "support+4711@in.demo.example",
    "envelopeFrom": "ada@example.com",
    "raw": "From: Ada <ada@example.com>\r\nTo: support+4711@in.demo.example\r\nSubject: Where is it?\r\n\r\nHello\r\n",
}
INBOUND = {
    "address": "kqzrwplmxtva@in.example.com",
    "mailHosts": ["mx.example.com"],
    "maxMessageBytes": 26_214_400,
    "storage": {"used": 61023, "limit": 100_000_000},
    "messages": {"used": 1, "limit": 10_000},
}
ATTACHMENT = OpenApiParameter("attachment_id", str, OpenApiParameter.PATH, description="The id of the attachment.")
BYTES = {"type": "string", "format": "binary"}

inbound_schema = keyed_view(
    get=Operation(
        "getInbound",
        "Get what can be received",
        "Returns the address that the workspace has without any DNS, the mail hosts for MX records, and the use of its "
        "storage.",
        response(InboundSerializer, "What the workspace can receive.", INBOUND),
    )
)

routes_schema = keyed_view(
    list=Operation(
        "listRoutes",
        "List routes",
        "Returns the routes of the workspace in their order: of those that match a recipient, the first decides.",
        response(RouteSerializer, "A page of routes.", ROUTE),
    ),
    create=Operation(
        "createRoute",
        "Create a route",
        "Creates the rule for the recipient addresses of a receiving domain that match a pattern. A recipient without "
        "a route is refused. A workspace has at most 100 routes.",
        response(RouteSerializer, "The route was created.", ROUTE, status=201),
        problems=[PlanLimitReached],
        body=RouteInput,
        bodies={"Support": {"name": "Support", "domain": "shared", "match": "*+support"}},
    ),
    retrieve=Operation("getRoute", "Get a route", "Returns one route.", response(RouteSerializer, "The route.", ROUTE)),
    partial_update=Operation(
        "updateRoute",
        "Change a route",
        "Changes the given fields; messages that were accepted before are not affected.",
        response(RouteSerializer, "The changed route.", {**ROUTE, "active": False}),
        body=RouteChanges,
        bodies={"Switch off": {"active": False}},
    ),
    destroy=Operation(
        "deleteRoute",
        "Delete a route",
        "Deletes a route. Its recipients are refused, unless another route matches.",
        response(DeletedSerializer, "The route is deleted.", {"id": ROUTE["id"], "deleted": True}),
    ),
    match=Operation(
        "matchRoute",
        "Find the route of an address",
        "Returns the route that decides about a recipient, and the reply of the mail server to it.",
        response(RouteMatchSerializer, "The route and the reply.", {"route": ROUTE, "reply": "250 2.1.5 OK"}),
        body=RecipientInput,
        bodies={"An address": {"recipient": "support+4711@in.demo.example"}},
    ),
)

blocks_schema = keyed_view(
    list=Operation(
        "listBlocks",
        "List blocked senders",
        "Returns the senders from which the workspace receives nothing, newest first.",
        response(BlockSerializer, "A page of blocked senders.", BLOCK),
    ),
    create=Operation(
        "createBlock",
        "Block a sender",
        "Blocks an address, or all addresses of a domain: the mail server refuses it in MAIL FROM, and a message with "
        "it in From is `blocked`. A sender that is blocked already stays so. A workspace has at most 1,000.",
        [
            response(BlockSerializer, "The sender is blocked.", BLOCK, status=201),
            response(BlockSerializer, "The sender was blocked already.", BLOCK),
        ],
        problems=[PlanLimitReached],
        body=BlockInput,
        bodies={"A domain": {"sender": "spam.example"}, "An address": {"sender": "eve@example.com"}},
    ),
    destroy=Operation(
        "deleteBlock",
        "Unblock a sender",
        "Removes a sender from the list.",
        response(
            UnblockedSenderSerializer,
            "The sender is no longer blocked.",
            {"id": BLOCK["id"], "sender": BLOCK["sender"], "deleted": True},
        ),
    ),
)

received_schema = keyed_view(
    list=Operation(
        "listReceivedEmails",
        "List received emails",
        "Returns the emails that the workspace received, newest first, without text, HTML and headers.",
        response(ReceivedItemSerializer, "A page of received emails.", ITEM),
    ),
    create=Operation(
        "simulateReceivedEmail",
        "Simulate a received email",
        "Stores a message as if a mail server had delivered it, for tests without an MX record. Requires a test key. "
        "The email is read like any other; its `test` is true, and it matches test emails only.",
        response(ReceivedDetailSerializer, "The message is stored.", SIMULATED, status=202),
        problems=[TestKeyRequired, RecipientRefused],
        body=SimulationInput,
        bodies={"A message": SIMULATION},
    ),
    retrieve=Operation(
        "getReceivedEmail",
        "Get a received email",
        "Returns one received email. Its URLs work for an hour.",
        response(ReceivedDetailSerializer, "The received email.", EMAIL),
    ),
    raw=Operation(
        "getReceivedSource",
        "Get the source of a received email",
        "Returns the message as it was received, with the fields Received and Authentication-Results of this service "
        "in front.",
        response(BYTES, "The message.", SIMULATION["raw"], media_type="message/rfc822"),
    ),
    attachments=Operation(
        "getReceivedAttachment",
        "Get an attachment of a received email",
        "Returns the decoded bytes of an attachment.",
        response(BYTES, "The file.", "Hello", media_type="application/octet-stream"),
        parameters=[ATTACHMENT],
    ),
    bypass=Operation(
        "bypassBlock",
        "Release a blocked email",
        "Publishes an email that a rule of its route, or a block of its sender, has kept back. The request has no "
        "body.",
        response(ReceivedDetailSerializer, "The email is published.", EMAIL),
        problems=[NotBlocked],
    ),
    forward=Operation(
        "forwardReceivedEmail",
        "Forward a received email",
        "Sends a new email with the received one attached to an address that has confirmed it. Automatic emails, "
        "delivery reports, spam and forwards are not forwarded.",
        response(
            ForwardedSerializer,
            "The new email is accepted.",
            {"id": ID, "to": "grace@example.org", "emailId": "0Uf7m2kQ8JsDp6YeGiUa1X"},
            status=202,
        ),
        problems=[NotForwarded, PlanLimitReached],
        body=ForwardInput,
        bodies={"To a colleague": {"to": "grace@example.org"}},
    ),
    redeliver=Operation(
        "redeliverReceivedEmail",
        "Deliver a received email again",
        "Posts its event again with the same bytes: to the webhooks that got it, or to those of `webhookIds`.",
        response(RedeliveredSerializer, "The deliveries are made.", {"id": ID, "deliveries": 1}, status=202),
        problems=[NotPublished],
        body=RedeliverInput,
        body_may_be_empty=True,
        bodies={"To one webhook": {"webhookIds": ["wh_0Uf7kXT4vB6nM8qWeRtYuI"]}},
    ),
    reread=Operation(
        "rereadReceivedEmail",
        "Read an unreadable email again",
        "Queues the message of an email that could not be read to be read again. Until then, the email keeps its "
        "status. Once the message is read, the email is `processed` and a second `received` event with its content is "
        "posted; a blocked email is judged again by its route. If the message is unreadable again, nothing changes, "
        "and it can be reread an hour later. The request has no body; a message that is queued already stays so.",
        response(RereadSerializer, "The message is queued.", {"id": ID, "queuedAt": UNTIL}, status=202),
        problems=[NotUnreadable, RereadTooSoon],
    ),
    destroy=Operation(
        "deleteReceivedEmail",
        "Delete a received email",
        "Deletes an email with its content and the deliveries of its event.",
        response(DeletedSerializer, "The email is deleted.", {"id": ID, "deleted": True}),
    ),
)
