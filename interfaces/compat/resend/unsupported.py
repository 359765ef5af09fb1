"""Features of Resend's API that Postrider lacks, or has in another way: https://resend.com/docs/api-reference."""

# Paths by the methods that are absent.
ABSENT = {
    ("GET",): (
        "/automations/:id/runs", "/automations/:id/runs/:run", "/broadcasts/:id/clicked-links",
        "/broadcasts/:id/recipients", "/contacts/:id/segments", "/contacts/imports/:id", "/domains/:id/claim",
        "/emails/metrics", "/inboxes/:id/threads",
        "/inboxes/:id/threads/:thread/emails", "/inboxes/:id/threads/:thread/emails/:email",
        "/inboxes/:id/threads/search", "/logs", "/logs/:id", "/oauth/grants", "/segments/:id/contacts", "/usage",
    ),
    ("POST",): (
        "/automations/:id/duplicate", "/automations/:id/stop", "/broadcasts/:id/cancel", "/broadcasts/:id/duplicate",
        "/broadcasts/:id/send", "/domains/:id/claim/verify", "/domains/claim", "/emails/:id/share", "/events/send",
        "/inboxes/:id/drafts/:draft/send", "/inboxes/:id/threads/:thread/emails/:email/forward",
        "/inboxes/:id/threads/:thread/emails/:email/reply",
    ),
    ("PATCH",): ("/api-keys/:id",),
    ("DELETE",): ("/inboxes/:id/threads/:thread/labels/:label", "/oauth/grants/:id"),
    ("GET", "POST"): (
        "/automations", "/broadcasts", "/contact-properties", "/contacts", "/contacts/imports", "/events", "/inboxes",
        "/inboxes/:id/drafts", "/inboxes/:id/labels", "/segments",
    ),
    ("GET", "PATCH"): ("/contacts/:id/topics", "/inboxes/:id/agent"),
    ("PATCH", "DELETE"): ("/inboxes/:id/labels/:label",),
    ("POST", "DELETE"): ("/contacts/:id/segments/:segment",),
    ("POST", "PUT"): ("/inboxes/:id/threads/:thread/labels",),
    ("GET", "PATCH", "DELETE"): (
        "/audiences/:id/contacts/:contact", "/automations/:id", "/broadcasts/:id", "/contact-properties/:id",
        "/contacts/:id", "/events/:id", "/inboxes/:id", "/inboxes/:id/drafts/:draft", "/inboxes/:id/threads/:thread",
        "/segments/:id",
    ),
}  # fmt: skip
# Events that never happen here, or the beginnings of their names. A subscription to them is ignored.
ABSENT_EVENTS = (
    "contact.", "domain.", "email.scheduled", "inbox.", "suppression.removed", "topic.",
)  # fmt: skip
# The difference of each endpoint, or the reason of its absence.
NOTES = {
    "POST /emails": "see above",
    "GET /emails/metrics": "`GET /v1/analytics`",
    "GET /emails/receiving/:id": "a header that is repeated is one text",
    "POST /domains": "sets the name, `tls`, receiving, and what is tracked; opens and clicks are tracked by default",
    "GET /domains/:id": "the DMARC record is only in `/v1`",
    "PATCH /domains/:id": "changes `tls`, receiving and what is tracked",
    "POST /domains/claim": "a domain can be in several workspaces",
    "POST /templates": "without `from` and `reply_to`",
    "GET /templates/:id": "without `from` and `reply_to`",
    "PATCH /templates/:id": "published at once",
    "POST /templates/:id/publish": "changes nothing: a template has no draft",
    "GET /topics": "the public bulk streams",
    "POST /topics": "`default_subscription` is `opt_in`, `visibility` is `public`",
    "DELETE /topics/:id": "archives the stream",
    "GET /suppressions": "`source_id` is null; those of a topic are only in `/v1`",
    "GET /suppressions/:id": "`source_id` is null",
    "POST /webhooks": "events that never happen here are ignored",
    "GET /webhooks/:id": "without `signing_secret`",
    "GET /webhooks/:webhook_id/events/:id/attempts": "the last 20, without pages",
    "GET /usage": "`GET /v1/me`",
    "GET /logs": "the log of the server",
}
