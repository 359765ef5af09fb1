"""Meanings of the reasons of bounces, deferrals and failures: the table of docs/webhooks.md."""

REASONS = {
    "unknown_user": "the mailbox does not exist; the address is suppressed",
    "inactive": "the mailbox is closed; the address is suppressed",
    "bad_domain": "the domain does not accept email; the address is suppressed",
    "bad_address": "the recipient's server rejects the address as invalid; the address is suppressed",
    "rejected": "refused without an explanation; the address is suppressed",
    "mailbox_full": "the mailbox is full",
    "bad_domain_unconfirmed": "the domain was not found; the look-up is repeated to confirm it",
    "smtputf8_required": "the address contains non-ASCII characters and the next server does not support SMTPUTF8",
    "greylisted": "the server asks unknown senders to retry later; this is common",
    "rate_limited": "the server asks for a lower sending rate",
    "too_many_recipients": "the server limits the number of recipients at a time",
    "host_trouble": "the server has an internal problem",
    "reputation": "the sending IP address or domain has a poor reputation at this server",
    "blocklisted": "the sending IP address is on a blocklist; the email is tried again after four hours",
    "reverse_dns": "the sending IP address has no reverse DNS name, or a wrong one",
    "authentication": "SPF, DKIM or DMARC failed: check the domain's records",
    "relay_denied": "the server does not accept email for this domain",
    "spam": "the server classified the content as spam",
    "virus": "the server found malware in the content or an attachment",
    "policy": "a policy of the server forbids this email",
    "too_large": "the message is larger than the server accepts",
    "protocol": "an SMTP protocol error between the two servers",
    "network": "the server could not be reached",
    "dns": "the DNS look-up of the recipient's domain failed",
    "tls": (
        "an encrypted connection could not be established, or not as the sender or the policy of the domain requires; "
        "the message names the policy"
    ),
    "routing_loop": "the message is in a mail loop between servers",
    "target_refused": "the domain's mail host has an address that Postrider does not connect to",
    "expired": (
        "the email expired before it was sent, or the retry period of a server ended; there are no further attempts"
    ),
    "login_refused": "the relay refuses Postrider's credentials, or demands a login or TLS: contact the operator",
    "outcome_unknown": "the connection broke after the message was sent; it may have been delivered",
    "destination_full": "the connection limit for this server is reached; the email waits for a free connection",
    "destination_shut": (
        "several attempts at this server failed in a row; the email waits until the server is tried again"
    ),
    "daily_limit": "the sending servers have reached their limit of the day; the email waits until midnight UTC",
    "provider_refused": "the sending provider refused the email",
    "undetermined": "the server's reply matches no known reason: read message",
    "recipient_suppressed": "the address was suppressed before the email was sent",
    "recipient_not_allowed": "the recipient rules do not allow the address",
    "recipient_capped": "the address has got as many emails as a cap allows",
    "domain_not_registered": "the sending domain was deleted before the email was sent",
    "signing_key_unreadable": "the DKIM key of the sending domain cannot be decrypted: contact the operator",
    "lease_lost": "a worker was interrupted before it sent this email; the email is retried",
    "worker_lost": "a worker stopped while it sent this email; it may have been delivered",
    "sending_was_paused": (
        "the operator paused sending while this email was queued; if the database was restored from a "
        "backup then, it may have been delivered before"
    ),
    "approval": "the email waits until a person or a key approves it",
    "approval_rejected": "a person or a key rejected the email, so it is not sent",
    "approval_expired": "nobody approved the email within seven days, so it is not sent",
    "internal_error": "an error in Postrider; the email itself is fine",
}
