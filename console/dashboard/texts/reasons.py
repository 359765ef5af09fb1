"""Explanations of delivery failures: the meaning of each reason, and the remedy if there is one."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from core.delivery.bounces.reasons import FailureReason
from emails.states import WaitCause

EXPLANATIONS: dict[str, str | Promise] = {
    FailureReason.UNKNOWN_USER: _("This mailbox does not exist."),
    FailureReason.INACTIVE: _("This mailbox is inactive."),
    FailureReason.BAD_DOMAIN: _("The recipient's domain does not accept email. Check the address for typos."),
    FailureReason.BAD_ADDRESS: _("The receiving server does not accept this address format."),
    FailureReason.REJECTED: _("The receiving server rejected the email without giving a reason."),
    FailureReason.MAILBOX_FULL: _("The mailbox is full."),
    FailureReason.BAD_DOMAIN_UNCONFIRMED: _("The recipient's domain was not found. The lookup will be retried."),
    FailureReason.SMTPUTF8_REQUIRED: _(
        "The address contains international characters that the receiving server does not support."
    ),
    FailureReason.GREYLISTED: _("The receiving server asks unknown senders to try again later. This is normal."),
    FailureReason.RATE_LIMITED: _("The receiving server is limiting the sending rate."),
    FailureReason.TOO_MANY_RECIPIENTS: _("The receiving server limits the number of recipients at once."),
    FailureReason.HOST_TROUBLE: _("The receiving server has a temporary problem."),
    FailureReason.REPUTATION: _(
        "The sending IP address or your domain has a poor reputation with the receiving server."
    ),
    FailureReason.BLOCKLISTED: _("The sending IP address is on a blocklist."),
    FailureReason.REVERSE_DNS: _("The sending IP address has no valid reverse DNS record."),
    FailureReason.AUTHENTICATION: _("SPF, DKIM or DMARC checks failed. Check the DNS records of your domain."),
    FailureReason.RELAY_DENIED: _("The receiving server does not accept email for this domain."),
    FailureReason.SPAM: _("The receiving server classified the content as spam."),
    FailureReason.VIRUS: _("The receiving server found malware in the content or an attachment."),
    FailureReason.POLICY: _("The email violates a policy of the receiving server."),
    FailureReason.TOO_LARGE: _("The email is larger than the receiving server allows."),
    FailureReason.PROTOCOL: _("The SMTP conversation with the receiving server failed."),
    FailureReason.NETWORK: _("Could not connect to the receiving server."),
    FailureReason.DNS: _("The DNS lookup of the recipient's domain failed."),
    FailureReason.TLS: _("Could not establish an encrypted connection."),
    FailureReason.ROUTING_LOOP: _("The receiving servers are forwarding the email in a loop."),
    FailureReason.TARGET_REFUSED: _(
        "The recipient's mail server has an IP address that this service does not connect to, such as a private one."
    ),
    FailureReason.EXPIRED: _("The email was not delivered in time: it expired, or a server ended its attempts."),
    FailureReason.LOGIN_REFUSED: _(
        "The SMTP relay rejected this service's credentials, or demands a login or encryption. Contact the operator."
    ),
    FailureReason.OUTCOME_UNKNOWN: _(
        "The connection was lost before the server confirmed receipt. The email may have been delivered."
    ),
    FailureReason.DESTINATION_FULL: _("Many emails are being sent to this server. This one will be sent shortly."),
    FailureReason.DESTINATION_SHUT: _(
        "This server rejected several emails in a row, so sending to it is paused briefly."
    ),
    FailureReason.DAILY_LIMIT: _(
        "The sending servers have reached their limit of the day. The email waits until midnight UTC."
    ),
    FailureReason.PROVIDER_REFUSED: _("The email provider rejected the email."),
    FailureReason.UNDETERMINED: _("The receiving server gave a reason that Postrider does not recognize."),
    # Reasons set by the emails app rather than by a transport.
    "recipient_suppressed": _("The address was added to the suppression list before the email was sent."),
    "recipient_not_allowed": _("The recipient rules of the workspace or of the API key do not allow the address."),
    "recipient_capped": _("The recipient has got as many emails as a cap of the recipient rules allows."),
    "domain_not_registered": _("The sending domain was deleted before the email was sent."),
    "signing_key_unreadable": _("The DKIM key of the sending domain cannot be read. Contact the operator."),
    "lease_lost": _("A worker was interrupted before sending. Another worker will send the email."),
    "worker_lost": _("A worker stopped while sending. The email may have been delivered."),
    "sending_was_paused": _("Sending was paused while this email was queued. It may have been delivered before."),
    "internal_error": _("An internal error occurred while sending. The email itself is valid."),
}
# Reasons that are no failures.
APPROVALS: dict[str, str | Promise] = {
    "approval": _("An owner of the workspace or an approving key decides whether it is sent."),
    "approval_rejected": _("The email was rejected, so it is not sent."),
    "approval_expired": _("Nobody approved the email within seven days."),
}


# What an email waited for when it expired, by its WaitCause.
WAITS: dict[str, Promise] = {
    WaitCause.APPROVAL: _("Nobody had approved it."),
    WaitCause.SENDING_PAUSED: _("All sending was paused."),
    WaitCause.WORKSPACE_SUSPENDED: _("The workspace was suspended."),
    WaitCause.WORKSPACE_DELETED: _("The workspace was deleted."),
    WaitCause.BATCH_PAUSED: _("Its batch was paused."),
    WaitCause.STREAM_PAUSED: _("Its stream was paused."),
    WaitCause.MEMORY: _("The worker had no memory for its attachments."),
    WaitCause.SIGNING_KEY: _("The DKIM key of its domain could not be read."),
    WaitCause.TRANSPORT: _("No transport could send it."),
    WaitCause.DAILY_LIMIT: _("The transports had sent their messages of the day."),
    WaitCause.RECEIVER_PACE: _("It waited for the pace of its receiver."),
    WaitCause.DESTINATION: _("The receiving server was at its limit of connections, or paused after failures."),
    WaitCause.RETRY: _("It waited for another attempt."),
}


def explain_wait(cause: object) -> str:
    """Return the explanation of a wait that ended with the expiry; empty for none, or one of another version."""
    return str(WAITS[cause]) if isinstance(cause, str) and cause in WAITS else ""


def explain_reason(reason: object) -> str:
    """Return the explanation of a reason; empty for an unknown reason, such as one of another version."""
    text = (EXPLANATIONS.get(reason) or APPROVALS.get(reason)) if isinstance(reason, str) else None
    return str(text or "")
