"""Kinds of records of people: those that a receipt counts or keeps (docs/decisions/0353), and those of an export."""

# The counts of a receipt.
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
    "subjectExports": "exports of the person that were not deleted yet",
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
# What an export has.
EXPORTED = {
    "emails": "sent emails, to the person or naming it",
    "receivedEmails": "received emails to, from and about the person",
    "events": "events of these emails, and others about the person",
    "webhookDeliveries": "deliveries of webhooks about these events, with their bodies",
    "apiRequests": "entries of the request log about these emails",
    "idempotencyKeys": "idempotency keys of requests that named the person",
    "reports": "reports of mail servers and providers",
    "caughtMessages": "messages in the inbox of a development installation",
    "auditEntries": "entries of the audit log about the person, and about what it did as a member",
    "suppressions": "suppressions of the address",
    "privacyRequests": "other exports of the person that are kept, and erasures that are not completed",
    "accounts": "memberships and invitations of the person",
    "configuration": "blocked senders, addresses to forward to, and routes with the address",
}
