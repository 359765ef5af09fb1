"""Members of responses as the providers publish them: in the OpenAPI documents of Resend and SendGrid, and in the types
of Postmark's library for Node.

A shape is a type ("string?" may be null), a list with the shape of its items, or an object. Members with a colon at the
end of their name may be absent. Requests are those of test_every_endpoint.
"""

from typing import Any

Shape = Any
REFERENCE = {"object": "string", "id": "string"}
DELETED = {**REFERENCE, "deleted": "boolean"}
LIST = {"object": "string", "has_more": "boolean"}
EMAIL = {
    **REFERENCE, "message_id": "string", "to": ["string"], "from": "string", "created_at": "string",
    "subject": "string", "html": "string", "text": "string", "bcc": ["string"], "cc": ["string"],
    "reply_to": ["string"], "last_event": "string",
}  # fmt: skip
DOMAIN_ITEM = {
    "id": "string", "name": "string", "status": "string", "created_at": "string", "region": "string",
    "capabilities": {"sending": "string", "receiving": "string"},
}  # fmt: skip
RECORD = {
    "record": "string", "name": "string", "type": "string", "ttl": "string", "status": "string", "value": "string",
    "priority:": "integer",
}  # fmt: skip
DOMAIN = {
    **DOMAIN_ITEM, "records": [RECORD], "open_tracking": "boolean", "click_tracking": "boolean",
    "tracking_subdomain": "string",
}  # fmt: skip
TEMPLATE_ITEM = {
    "id": "string", "name": "string", "status": "string", "published_at": "string?", "created_at": "string",
    "updated_at": "string", "alias": "string",
}  # fmt: skip
VARIABLE = {
    "id": "string", "key": "string", "type": "string", "fallback_value": "string", "created_at": "string",
    "updated_at": "string",
}  # fmt: skip
WEBHOOK_ITEM = {"id": "string", "endpoint": "string", "events": ["string"], "status": "string", "created_at": "string"}
SUPPRESSION = {
    "id": "string", "email": "string", "origin": "string", "source_id": "string?", "created_at": "string",
}  # fmt: skip
TOPIC = {
    "id": "string", "name": "string", "description": "string", "default_subscription": "string", "visibility": "string",
    "created_at": "string",
}  # fmt: skip
RECEIVED_ATTACHMENT = {
    "id": "string", "filename": "string", "content_type": "string", "content_id": "string",
    "content_disposition": "string", "size": "integer",
}  # fmt: skip
RECEIVED = {
    "id": "string", "to": ["string"], "from": "string", "subject": "string", "message_id": "string", "bcc": ["string"],
    "cc": ["string"], "reply_to": ["string"], "created_at": "string", "attachments": [RECEIVED_ATTACHMENT],
}  # fmt: skip
DOWNLOAD = {**RECEIVED_ATTACHMENT, "download_url": "string", "expires_at": "string"}
RESEND: dict[str, Shape] = {
    "GET /emails/receiving": {**LIST, "data": [RECEIVED]},
    "GET /emails/receiving/:received": {
        "object": "string", **RECEIVED, "html": "string", "text": "string", "headers": {},
    },
    "GET /emails/receiving/:received/attachments": {**LIST, "data": [DOWNLOAD]},
    "GET /emails/receiving/:received/attachments/:attachment": {"object": "string", **DOWNLOAD},
    "POST /emails": {"id": "string"},
    "POST /emails/batch": {"data": [{"id": "string"}]},
    "GET /emails": {**LIST, "data": [EMAIL]},
    "GET /emails/:email": EMAIL,
    "GET /emails/:with_file/attachments": {**LIST, "data": [DOWNLOAD]},
    "GET /emails/:with_file/attachments/:file": {"object": "string", **DOWNLOAD},
    "PATCH /emails/:email": REFERENCE,
    "POST /emails/:email/cancel": REFERENCE,
    "POST /domains": DOMAIN,
    "GET /domains": {**LIST, "data": [DOMAIN_ITEM]},
    "GET /domains/:resend_domain": {"object": "string", **DOMAIN},
    "PATCH /domains/:resend_domain": REFERENCE,
    "DELETE /domains/:resend_domain": DELETED,
    "POST /domains/:resend_domain/verify": REFERENCE,
    "GET /topics": {**LIST, "data": [TOPIC]},
    "POST /topics": REFERENCE,
    "GET /topics/:topic": {"object": "string", **TOPIC},
    "PATCH /topics/:topic": REFERENCE,
    "DELETE /topics/:topic": DELETED,
    "GET /templates": {**LIST, "data": [TEMPLATE_ITEM]},
    "POST /templates": REFERENCE,
    "GET /templates/:template": {
        "object": "string", **TEMPLATE_ITEM, "current_version_id": "string", "from": "string", "subject": "string",
        "reply_to": "string?", "html": "string", "text": "string", "variables": [VARIABLE],
        "has_unpublished_versions": "boolean",
    },
    "PATCH /templates/:template": REFERENCE,
    "DELETE /templates/:template": DELETED,
    "POST /templates/:template/publish": REFERENCE,
    "POST /templates/:template/duplicate": REFERENCE,
    "GET /suppressions": {**LIST, "data": [SUPPRESSION]},
    "POST /suppressions": REFERENCE,
    "GET /suppressions/:bounced": {"object": "string", **SUPPRESSION},
    "DELETE /suppressions/:bounced": DELETED,
    "POST /suppressions/batch/add": {"data": [REFERENCE]},
    "POST /suppressions/batch/remove": {"data": [DELETED]},
    "GET /webhooks": {**LIST, "data": [WEBHOOK_ITEM]},
    "POST /webhooks": {**REFERENCE, "signing_secret": "string"},
    "GET /webhooks/:resend_webhook": {"object": "string", **WEBHOOK_ITEM, "signing_secret": "string"},
    "PATCH /webhooks/:resend_webhook": REFERENCE,
    "DELETE /webhooks/:resend_webhook": DELETED,
    "GET /api-keys": {
        **LIST,
        "data": [{"id": "string", "name": "string", "created_at": "string", "last_used_at": "string?"}],
    },
    "POST /api-keys": {"id": "string", "token": "string"},
    "DELETE /api-keys/:api_key": DELETED,
}  # fmt: skip

SENT = {"To": "string", "SubmittedAt": "string", "MessageID": "string", "ErrorCode": "integer", "Message": "string"}
DONE = {"ErrorCode": "integer", "Message": "string"}
BOUNCE = {
    "RecordType": "string", "ID": "integer", "Type": "string", "TypeCode": "integer", "Name": "string",
    "Tag": "string?", "MessageID": "string", "ServerID": "integer", "Description": "string", "Details": "string",
    "Email": "string", "From": "string", "BouncedAt": "string", "DumpAvailable": "boolean", "Inactive": "boolean",
    "CanActivate": "boolean", "Subject": "string", "Content:": "string", "MessageStream": "string",
}  # fmt: skip
ADDRESS = {"Email": "string", "Name": "string?"}
MESSAGE = {
    "MessageID": "string", "Tag": "string?", "To": [ADDRESS], "Cc": [ADDRESS], "Bcc": [ADDRESS],
    "Recipients": ["string"], "ReceivedAt": "string", "From": "string", "Subject": "string", "Attachments": ["string"],
    "Status": "string", "TrackOpens": "boolean", "TrackLinks": "string", "Metadata": {}, "MessageStream": "string",
    "Sandboxed": "boolean",
}  # fmt: skip
POSTMARK_TEMPLATE_ITEM = {
    "TemplateType": "string", "Active": "boolean", "TemplateId": "integer", "Name": "string", "Alias": "string?",
    "LayoutTemplate": "string?",
}  # fmt: skip
POSTMARK_TEMPLATE = {
    **POSTMARK_TEMPLATE_ITEM, "Subject": "string", "HtmlBody": "string?", "TextBody": "string?",
    "AssociatedServerId": "integer",
}  # fmt: skip
SECTION = {"ContentIsValid": "boolean", "ValidationErrors": [], "RenderedContent": "string"}
TRIGGER = {"Enabled": "boolean"}
POSTMARK_WEBHOOK = {
    "ID": "integer", "Url": "string", "HttpAuth": "object?", "HttpHeaders": [], "MessageStream": "string",
    "Triggers": {
        "Open": {**TRIGGER, "PostFirstOpenOnly": "boolean"}, "Click": TRIGGER, "Delivery": TRIGGER,
        "Bounce": {**TRIGGER, "IncludeContent": "boolean"}, "SpamComplaint": {**TRIGGER, "IncludeContent": "boolean"},
        "SubscriptionChange": TRIGGER,
    },
}  # fmt: skip
SUPPRESSED = {"Suppressions": [{"EmailAddress": "string", "Status": "string", "Message": "string?"}]}
STREAM = {
    "ID": "string", "ServerID": "integer", "Name": "string", "Description": "string", "MessageStreamType": "string",
    "CreatedAt": "string", "UpdatedAt": "string?", "ArchivedAt": "string?", "ExpectedPurgeDate": "string?",
    "SubscriptionManagementConfiguration": {"UnsubscribeHandlingType": "string"},
}  # fmt: skip
PROGRAM = {"Name": "string", "Company": "string", "Family": "string"}
TRACKED = {
    "RecordType": "string", "Client": PROGRAM, "OS": PROGRAM, "Platform": "string", "UserAgent": "string", "Geo": {},
    "MessageID": "string", "ReceivedAt": "string", "Tag": "string", "Recipient": "string", "MessageStream": "string",
}  # fmt: skip
INBOUND_ADDRESS = {"Email": "string", "Name": "string", "MailboxHash": "string"}
INBOUND_MESSAGE = {
    **dict.fromkeys(
        ("From", "FromName", "To", "Cc", "Bcc", "ReplyTo", "OriginalRecipient", "Subject", "Date", "MailboxHash",
         "MessageID", "Status", "MessageStream"), "string"
    ), "FromFull": INBOUND_ADDRESS, "ToFull": [INBOUND_ADDRESS], "CcFull": [INBOUND_ADDRESS],
    "BccFull": [INBOUND_ADDRESS],
    "Tag:": "string",
    "Attachments": [
        {"Name": "string", "ContentID": "string?", "Content": "string", "ContentType": "string",
         "ContentLength:": "integer"}
    ],
}  # fmt: skip
INBOUND_RULE = {"Rule": "string", "ID": "integer"}
POSTMARK_SERVER = {
    "ID": "integer", "Name": "string", "ApiTokens": ["string"], "ServerLink": "string", "Color": "string",
    "SmtpApiActivated": "boolean", "RawEmailEnabled": "boolean", "DeliveryType": "string",
    "InboundAddress": "string", "InboundHookUrl": "string?", "BounceHookUrl": "string?", "OpenHookUrl": "string?",
    "DeliveryHookUrl": "string?", "ClickHookUrl": "string?", "PostFirstOpenOnly": "boolean",
    "InboundDomain": "string?", "InboundHash": "string", "InboundSpamThreshold": "integer",
    "TrackOpens": "boolean", "TrackLinks": "string", "IncludeBounceContentInHook": "boolean",
    "EnableSmtpApiErrorHooks": "boolean",
}  # fmt: skip
POSTMARK: dict[str, Shape] = {
    "GET /messages/inbound": {"TotalCount": "string", "InboundMessages": [INBOUND_MESSAGE]},
    "GET /messages/inbound/:received/details": {
        **INBOUND_MESSAGE, "TextBody": "string", "HtmlBody": "string", "StrippedTextReply": "string",
        "Headers": [{"Name": "string", "Value": "string"}], "BlockedReason": "string",
    },
    "PUT /messages/inbound/:blocked/bypass": DONE,
    "PUT /messages/inbound/:received/retry": DONE,
    "GET /triggers/inboundRules?count=10&offset=0": {"TotalCount": "integer", "InboundRules": [INBOUND_RULE]},
    "POST /triggers/inboundRules": INBOUND_RULE,
    "DELETE /triggers/inboundRules/:rule": DONE,
    "PUT /server": POSTMARK_SERVER,
    "POST /email": SENT,
    "POST /email/batch": [SENT],
    "POST /email/withTemplate": SENT,
    "POST /email/batchWithTemplates": [SENT],
    "POST /email/bulk": {"Id": "string", "Status": "string", "SubmittedAt": "string"},
    "GET /email/bulk/:bulk_request": {
        "Id": "string", "Status": "string", "SubmittedAt": "string", "TotalMessages": "integer",
        "PercentageCompleted": "number", "Subject": "string",
    },
    "GET /deliveryStats": {
        "InactiveMails": "integer", "Bounces": [{"Name": "string", "Count": "integer", "Type:": "string"}],
    },
    "GET /bounces": {"TotalCount": "integer", "Bounces": [BOUNCE]},
    "GET /bounces/:bounce": BOUNCE,
    "GET /bounces/:bounce/dump": {"Body": "string"},
    "PUT /bounces/:bounce/activate": {"Message": "string", "Bounce": BOUNCE},
    "GET /templates": {"TotalCount": "integer", "Templates": [POSTMARK_TEMPLATE_ITEM]},
    "POST /templates": POSTMARK_TEMPLATE_ITEM,
    "GET /templates/:template": POSTMARK_TEMPLATE,
    "PUT /templates/:template": POSTMARK_TEMPLATE_ITEM,
    "DELETE /templates/:template": DONE,
    "PUT /templates/push": {"TotalCount": "integer", "Templates": []},
    "POST /templates/validate": {
        "AllContentIsValid": "boolean", "Subject": SECTION, "HtmlBody": SECTION, "TextBody": SECTION,
        "SuggestedTemplateModel": {},
    },
    "GET /server": POSTMARK_SERVER,
    "GET /messages/outbound": {"TotalCount": "integer", "Messages": [MESSAGE]},
    "GET /messages/outbound/:email/details": {
        **MESSAGE, "TextBody": "string?", "HtmlBody": "string?", "Body": "string", "MessageEvents": [],
    },
    "GET /messages/outbound/opens/:email": {
        "TotalCount": "integer", "Opens": [{**TRACKED, "ReadSeconds": "integer"}],
    },
    "GET /messages/outbound/clicks/:email": {
        "TotalCount": "integer",
        "Clicks": [{**TRACKED, "ClickLocation": "string", "OriginalLink": "string"}],
    },
    "GET /message-streams": {"MessageStreams": [STREAM], "TotalCount": "integer"},
    "POST /message-streams": STREAM,
    "GET /message-streams/:stream": STREAM,
    "PATCH /message-streams/:stream": STREAM,
    # The published type of ID is a number, which no stream has.
    "POST /message-streams/:stream/archive": {"ID": "string", "ServerID": "integer", "ExpectedPurgeDate": "string"},
    "POST /message-streams/:stream/unarchive": STREAM,
    "POST /message-streams/:stream/suppressions": SUPPRESSED,
    "POST /message-streams/:stream/suppressions/delete": SUPPRESSED,
    "GET /message-streams/:stream/suppressions/dump": {
        "Suppressions": [
            {"EmailAddress": "string", "SuppressionReason": "string", "Origin": "string", "CreatedAt": "string"}
        ],
    },
    "GET /webhooks": {"Webhooks": [POSTMARK_WEBHOOK]},
    "POST /webhooks": POSTMARK_WEBHOOK,
    "GET /webhooks/:postmark_webhook": POSTMARK_WEBHOOK,
    "PUT /webhooks/:postmark_webhook": POSTMARK_WEBHOOK,
    "DELETE /webhooks/:postmark_webhook": DONE,
    "GET /stats/outbound": {
        **dict.fromkeys(
            ("Sent", "Bounced", "SMTPApiErrors", "SpamComplaints", "Opens", "UniqueOpens", "Tracked",
             "WithLinkTracking", "WithOpenTracking", "TotalTrackedLinksSent", "UniqueLinksClicked", "TotalClicks",
             "WithClientRecorded", "WithPlatformRecorded", "WithReadTimeRecorded"), "integer"
        ), "BounceRate": "number", "SpamComplaintsRate": "number",
    },
    "GET /stats/outbound/sends": {"Days": [{"Date": "string", "Sent": "integer"}], "Sent": "integer"},
    "GET /stats/outbound/spam": {
        "Days": [{"Date": "string", "SpamComplaint": "integer"}], "SpamComplaint": "integer",
    },
    "GET /stats/outbound/opens": {
        "Days": [{"Date": "string", "Opens": "integer", "Unique": "integer"}], "Opens": "integer", "Unique": "integer",
    },
    "GET /stats/outbound/clicks": {
        "Days": [{"Date": "string", "Clicks": "integer", "Unique": "integer"}], "Clicks": "integer",
        "Unique": "integer",
    },
}  # fmt: skip

VERSION_ITEM = {
    "id": "string", "template_id": "string", "active": "integer", "name": "string", "subject": "string",
    "updated_at": "string", "editor": "string", "generate_plain_content": "boolean", "thumbnail_url": "string",
}  # fmt: skip
VERSION = {
    **VERSION_ITEM, "html_content": "string", "plain_content": "string", "test_data": "string", "warnings": [],
}  # fmt: skip
SENDGRID_TEMPLATE_ITEM = {
    "id": "string", "name": "string", "generation": "string", "updated_at": "string", "versions": [VERSION_ITEM],
}  # fmt: skip
SENDGRID_TEMPLATE = {**SENDGRID_TEMPLATE_ITEM, "versions": [VERSION]}
LISTED = {"created": "integer", "email": "string"}
BOUNCED = {**LISTED, "reason": "string", "status": "string"}
COMPLAINED = {**LISTED, "ip": "string"}
EVENT_SETTINGS = {
    **dict.fromkeys(
        ("enabled", "account_status_change", "group_resubscribe", "delivered", "group_unsubscribe", "spam_report",
         "bounce", "deferred", "unsubscribe", "processed", "open", "click", "dropped"), "boolean"
    ), "url": "string", "friendly_name": "string?", "id": "string", "oauth_client_id": "string?",
    "oauth_token_url": "string?", "public_key": "string", "created_date": "string?", "updated_date": "string?",
}  # fmt: skip
SENDGRID_DOMAIN = {
    "id": "integer", "user_id": "integer", "subdomain": "string", "domain": "string", "username": "string",
    "ips": ["string"], "custom_spf": "boolean", "default": "boolean", "legacy": "boolean",
    "automatic_security": "boolean", "valid": "boolean", "dns": {}, "subusers": [],
    "last_validation_attempt_at": "integer?",
}  # fmt: skip
METRICS = dict.fromkeys(
    ("blocks", "bounce_drops", "bounces", "clicks", "deferred", "delivered", "invalid_emails", "opens", "processed",
     "requests", "spam_report_drops", "spam_reports", "unique_clicks", "unique_opens", "unsubscribe_drops",
     "unsubscribes"), "integer"
)  # fmt: skip
TEMPLATES = "/v3/templates"
SETTINGS = "/v3/user/webhooks/event/settings"
SENDS = "/v3/user/scheduled_sends"
DOMAINS = "/v3/whitelabel/domains"
BATCH = {"batch_id": "string"}
CLOSED_BATCH = {**BATCH, "status": "string"}
KEY = {"id": "string", "public_key": "string"}
GROUPS = "/v3/asm/groups"
GROUP = {"id": "integer", "name": "string", "description": "string", "is_default": "boolean"}
COUNTED_GROUP = {**GROUP, "unsubscribes": "integer"}
PARSE = "/v3/user/webhooks/parse"
PARSE_SETTING = {"url": "string", "hostname": "string", "spam_check": "boolean", "send_raw": "boolean"}
SENDGRID: dict[str, Shape] = {
    f"GET {PARSE}/settings": {"result": [PARSE_SETTING]},
    f"POST {PARSE}/settings": PARSE_SETTING,
    f"GET {PARSE}/settings/:hostname": PARSE_SETTING,
    f"PATCH {PARSE}/settings/:hostname": PARSE_SETTING,
    f"GET {PARSE}/stats?start_date=2026-01-01&end_date=2026-01-02": [
        {"date": "string", "stats": [{"metrics": {"received": "integer"}}]}
    ],
    "POST /v3/mail/batch": BATCH,
    "GET /v3/mail/batch/:open_batch": BATCH,
    f"POST {SENDS}": CLOSED_BATCH,
    f"GET {SENDS}": [CLOSED_BATCH],
    f"GET {SENDS}/:paused_batch": [CLOSED_BATCH],
    "GET /v3/scopes": {"scopes": ["string"]},
    f"GET {TEMPLATES}": {
        "result": [SENDGRID_TEMPLATE_ITEM], "_metadata": {"self": "string", "count": "integer"},
    },
    f"POST {TEMPLATES}": SENDGRID_TEMPLATE,
    f"GET {TEMPLATES}/:sendgrid_template": SENDGRID_TEMPLATE,
    f"PATCH {TEMPLATES}/:sendgrid_template": SENDGRID_TEMPLATE,
    f"POST {TEMPLATES}/:sendgrid_template/versions": VERSION,
    f"GET {TEMPLATES}/:sendgrid_template/versions/:version": VERSION,
    f"PATCH {TEMPLATES}/:sendgrid_template/versions/:version": VERSION,
    f"POST {TEMPLATES}/:sendgrid_template/versions/:version/activate": VERSION,
    "GET /v3/suppression/bounces": [BOUNCED],
    "GET /v3/suppression/bounces/:bounced": [BOUNCED],
    "GET /v3/suppression/blocks": [BOUNCED],
    "GET /v3/suppression/blocks/:bounced": [BOUNCED],
    "GET /v3/suppression/invalid_emails": [{**LISTED, "reason": "string"}],
    "GET /v3/suppression/invalid_emails/:bounced": [{**LISTED, "reason": "string"}],
    "GET /v3/suppression/spam_reports": [COMPLAINED],
    "GET /v3/suppression/spam_reports/:complained": [COMPLAINED],
    "GET /v3/suppression/unsubscribes": [LISTED],
    f"GET {GROUPS}": [COUNTED_GROUP],
    f"POST {GROUPS}": GROUP,
    f"GET {GROUPS}/:group": COUNTED_GROUP,
    f"PATCH {GROUPS}/:group": {**GROUP, "unsubscribes:": "integer"},
    f"GET {GROUPS}/:group/suppressions": ["string"],
    f"POST {GROUPS}/:group/suppressions": {"recipient_emails": ["string"]},
    f"POST {GROUPS}/:group/suppressions/search": ["string"],
    "GET /v3/asm/suppressions": [
        {"email": "string", "group_id": "integer", "group_name": "string", "created_at": "integer"}
    ],
    "GET /v3/asm/suppressions/:left": {"suppressions": [{**GROUP, "suppressed": "boolean"}]},
    "POST /v3/asm/suppressions/global": {"recipient_emails": ["string"]},
    "GET /v3/asm/suppressions/global/:unsubscribed": {"recipient_email": "string"},
    f"GET {DOMAINS}": [SENDGRID_DOMAIN],
    f"POST {DOMAINS}": SENDGRID_DOMAIN,
    f"GET {DOMAINS}/:sendgrid_domain": SENDGRID_DOMAIN,
    f"POST {DOMAINS}/:sendgrid_domain/validate": {
        "id": "integer", "valid": "boolean", "validation_results": {},
    },
    f"GET {SETTINGS}": EVENT_SETTINGS,
    f"PATCH {SETTINGS}": EVENT_SETTINGS,
    f"POST {SETTINGS}": EVENT_SETTINGS,
    f"GET {SETTINGS}/all": {"max_allowed": "integer", "webhooks": [EVENT_SETTINGS]},
    f"GET {SETTINGS}/:event_webhook": EVENT_SETTINGS,
    f"PATCH {SETTINGS}/:event_webhook": EVENT_SETTINGS,
    f"GET {SETTINGS}/signed": KEY,
    f"PATCH {SETTINGS}/signed": KEY,
    f"GET {SETTINGS}/signed/:event_webhook": KEY,
    f"PATCH {SETTINGS}/signed/:event_webhook": KEY,
    "GET /v3/stats?start_date=2026-01-01&end_date=2026-01-02": [{"date": "string", "stats": [{"metrics": METRICS}]}],
}  # fmt: skip
SHAPES = {"resend": RESEND, "postmark": POSTMARK, "sendgrid": SENDGRID}
# Deliberate differences: request, path of the member (each item of a list is []), and what differs.
DIFFERENCES: dict[str, set[tuple[str, str, str]]] = {
    "resend": {
        # A list has no contents: rendering a page of templates costs seconds.
        *(("GET /emails", f".data[].{name}", "missing") for name in ("object", "html", "text")),
        # Libraries expect null, and the members that follow.
        *(("GET /emails", f".data[].{name}", "null") for name in ("bcc", "cc", "reply_to")),
        *(("GET /emails/:email", f".{name}", "null") for name in ("html", "bcc", "cc", "reply_to")),
        ("GET /emails", ".data[].scheduled_at", "extra"),
        ("GET /emails/:email", ".scheduled_at", "extra"),
        ("GET /emails/:email", ".tags", "extra"),
        ("POST /domains", ".object", "extra"),
        # A domain without a host for its links.
        *((line, ".tracking_subdomain", "null") for line in ("POST /domains", "GET /domains/:resend_domain")),
        ("GET /emails/:email", ".topic_id", "extra"),
        # In Resend's library for Node.
        ("GET /emails/receiving", ".data[].received_for", "extra"),
        *(("GET /emails/receiving/:received", f".{name}", "extra") for name in ("received_for", "raw", "html_format")),
        # The sender belongs to the email.
        ("GET /templates/:template", ".from", "null"),
    },
    # The published type of the total is a text, and a number in all examples.
    "postmark": {("GET /messages/inbound", ".TotalCount", "is int")},
    "sendgrid": {
        # The name of the list in requests without page_size.
        (f"GET {TEMPLATES}", ".templates", "extra"),
        # In examples of SendGrid's reference, and always null here.
        (f"GET {GROUPS}", "[].last_email_sent_at", "extra"),
        (f"GET {GROUPS}/:group", ".last_email_sent_at", "extra"),
    },
}  # fmt: skip
