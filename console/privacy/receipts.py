"""Receipts of erasures: the kinds of records that are erased, and those that stay (docs/decisions/0353)."""

# What a receipt counts.
KINDS = {
    "emails": "sent emails, to the person or naming it, with their content",
    "receivedEmails": "received emails to, from and about the person",
    "events": "events",
    "webhookDeliveries": "deliveries of webhooks, with their bodies",
    "apiRequests": "entries of the request log about these emails",
    "idempotencyKeys": "idempotency keys with the address; stored responses are blanked",
    "reports": "reports of mail servers and providers",
    "caughtMessages": "messages in the inbox of a development installation",
    "auditEntries": "entries of the audit log, of which the address was blanked",
    "suppressions": "suppressions: hashed, or deleted with `keepSuppression: false`",
}
# What stays, and why.
KEPT = {
    "suppression": "A keyed hash of a suppressed address stays, so that an import does not mail the person again.",
    "counters": "Analytics, usage and reputation are numbers without addresses.",
    "otherContent": "The HTML, text and attachments of emails to others are not searched.",
    "accounts": "Members of the workspace, their invitations and the log of their actions stay while they are members.",
    "configuration": "Templates, routes, webhooks and blocked senders are settings of the workspace.",
    "backups": "Backups of the operator have the data until backupsUntil.",
}
