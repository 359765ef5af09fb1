"""OpenAPI examples of `/v1/emails`: requests and responses."""

from typing import Any

from emails.listing.export import COLUMNS

ID = "0Uf7m2kQ9VxHc3NwZrTb4L"
OTHER_ID = "0Uf7m2kQ8JsDp6YeGiUa1X"
TEMPLATE_ID = "tpl_0Uf7mB5hJ8kLpQsVxZaWcE"
FROM = "Demo <hello@demo.example>"
CREATED_AT = "2026-11-20T08:30:00.412Z"

SEND: dict[str, Any] = {
    "One email": {
        "from": FROM,
        "to": "Ada L <ada@example.com>",
        "subject": "Your order 1042",
        "html": "<p>Thank you, Ada!</p>",
        "tags": ["order"],
        "metadata": {"orderId": 1042},
        "idempotencyKey": "order-1042",
    },
    "With a template, at a time": {
        "from": FROM,
        "to": ["ada@example.com", "grace@example.com"],
        "replyTo": "support@demo.example",
        "templateId": "welcome",
        "templateData": {"name": "you two"},
        "scheduledFor": "2026-11-21T06:20:00Z",
    },
    "In ten minutes or not at all": {
        "from": FROM,
        "to": "ada@example.com",
        "subject": "Your code is 482913",
        "text": "It is valid for ten minutes.",
        "deliverWithin": 600,
    },
    "With a file": {
        "from": FROM,
        "to": "ada@example.com",
        "subject": "Your invoice",
        "text": "The invoice is attached.",
        "attachments": [
            {"filename": "invoice.txt", "content": "MTA0MjogNDIuMDAgRVVSCg==", "contentType": "text/plain"}
        ],
    },
    "A dry run": {
        "from": FROM,
        "to": "ada@example.com",
        "templateId": TEMPLATE_ID,
        "templateData": {"name": "Ada"},
        "dryRun": True,
    },
}
ACCEPTED: dict[str, Any] = {
    "Queued": {"id": ID, "status": "queued", "createdAt": CREATED_AT},
    "Scheduled": {"id": ID, "status": "scheduled", "createdAt": CREATED_AT},
    "Waiting for approval": {
        "id": ID,
        "status": "queued",
        "createdAt": CREATED_AT,
        "held": {"reason": "approval", "since": CREATED_AT, "expiresAt": "2026-11-27T08:30:00.412Z"},
    },
    "With a warning": {
        "id": ID,
        "status": "queued",
        "createdAt": CREATED_AT,
        "warnings": [
            {
                "code": "missing_template_variables",
                "message": "The data has no value for this template variable; it was rendered as an empty string.",
                "variables": ["name"],
            }
        ],
    },
}
DRY_RUN = {
    "valid": True,
    "subject": "Welcome, Ada",
    "html": "<p>Hello Ada!</p>",
    "text": "Hello Ada!",
    "warnings": [],
}
BATCH: dict[str, Any] = {
    "Three recipients": {
        "from": FROM,
        "templateId": "welcome",
        "recipients": [
            {"to": "ada@example.com", "templateData": {"name": "Ada"}},
            {"to": "grace@example.com", "templateData": {"name": "Grace"}, "metadata": {"seat": 7}},
            {"to": "blocked@example.com", "templateData": {"name": "Nobody"}},
        ],
        "tags": ["welcome"],
    }
}
BATCH_ACCEPTED = {
    "queued": 2,
    "ids": [ID, OTHER_ID],
    "emails": [
        {"index": 0, "to": "ada@example.com", "id": ID},
        {"index": 1, "to": "grace@example.com", "id": OTHER_ID},
    ],
    "rejected": [{"index": 2, "to": "blocked@example.com", "code": "recipient_suppressed"}],
}
ITEM = {
    "id": ID,
    "to": "Ada L <ada@example.com>",
    "from": FROM,
    "subject": "Your order 1042",
    "status": "delivered",
    "createdAt": CREATED_AT,
    "sentAt": "2026-11-20T08:30:00.967Z",
}
EMAIL = {
    **ITEM,
    "test": False,
    "htmlContent": "<p>Thank you, Ada!</p>",
    "text": "",
    "scheduledFor": None,
    "expiresAt": None,
    "deliveredAt": "2026-11-20T08:30:01.204Z",
    "errorMessage": None,
    "tags": ["order"],
    "retryCount": 0,
    "replyTo": None,
    "cc": [],
    "bcc": [],
    "metadata": {"orderId": 1042},
    "templateId": None,
    "headers": {},
    "attachments": [],
    "recipients": [
        {
            "email": "ada@example.com",
            "type": "to",
            "status": "delivered",
            "sentAt": "2026-11-20T08:30:00.967Z",
            "deliveredAt": "2026-11-20T08:30:01.204Z",
            "errorMessage": None,
            "reason": None,
            "receiver": "google",
        }
    ],
    "waitingFor": None,
    "locale": None,
    "localeUsed": None,
}
APPROVAL = {
    "decision": "approved",
    "by": {"kind": "key", "name": "Approvals (pr_…x7Qa)"},
    "decidedAt": "2026-11-20T09:12:31.000Z",
}
REJECTION = {**APPROVAL, "decision": "rejected", "reason": "The price is wrong."}
APPROVED = {"id": ID, "status": "queued", "decision": APPROVAL}
REJECTED = {"id": ID, "status": "cancelled", "decision": REJECTION}
TIMELINE = {
    "data": [
        {
            "id": "evt_0Uf7m2kQ5RwLn8XcVbAs2D",
            "eventType": "queued",
            "createdAt": CREATED_AT,
            "sentToWebhook": False,
            "payload": {"emailId": ID},
        },
        {
            "id": "evt_0Uf7m2lT4HyKm7ZxQoPe9F",
            "eventType": "delivered",
            "createdAt": "2026-11-20T08:30:01.204Z",
            "sentToWebhook": True,
            "payload": {
                "emailId": ID,
                "to": "ada@example.com",
                "tls": {"version": "TLSv1.3", "policy": "dane", "verified": True},
            },
        },
    ]
}
RESCHEDULED = {
    "id": ID,
    "status": "scheduled",
    "createdAt": CREATED_AT,
    "scheduledFor": "2026-11-25T07:00:00.000Z",
    "expiresAt": None,
}
CSV_ROW = (
    *(ID, "ada@example.com", "", "", FROM, "", "Your order 1042", "delivered", "order", CREATED_AT, ""),
    *("2026-11-20T08:30:00.967Z", "2026-11-20T08:30:01.204Z", "", "0", '{""orderId"": 1042}'),
)
CSV = "".join(",".join(f'"{cell}"' for cell in row) + "\r\n" for row in (COLUMNS, CSV_ROW))

STATS = {"waiting": 12, "active": 4, "delayed": 250, "completed": 48_211, "failed": 96, "paused": 0}

ATTACHMENTS = {
    "data": [
        {
            "id": "att_0Uf7m2kQ8JsDp6YeGiUa1X",
            "filename": "invoice.pdf",
            "contentType": "application/pdf",
            "size": 48213,
            "contentId": None,
            "url": "https://mail.example.com/attachments/AZr3b7Qe0mX1cVbNq8RtYzAZr3b7Qe0mX1cVbNq8RtYzAZr3b7Qe0mX1cVb",
            "urlExpiresAt": "2026-11-20T10:12:31.000Z",
        }
    ]
}
