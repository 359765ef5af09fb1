"""Examples of received emails in the OpenAPI document."""

ID = "inb_0Uf7m2kQ9VxHc3NwZrTb4L"
URL = "https://mail.example.com/inbound/AZr3b7Qe0mX1cVbNq8RtYzAZr3b7Qe0mX1cVbNq8RtYzAZr3b7Qe0mX1cVbNq"
UNTIL = "2026-11-20T10:12:31.000Z"
ITEM = {
    "id": ID,
    "status": "processed",
    "routeId": "rt_0Uf7kXT4vB6nM8qWeRtYuI",
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
