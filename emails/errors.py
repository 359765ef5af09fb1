"""What accepting an email refuses."""

from api.errors import Problem


class InvalidIdempotencyKey(Problem):
    """The `Idempotency-Key` header cannot be used, or differs from the body's `idempotencyKey`.

    Send 1 to 255 printable ASCII characters, in one of the two places.
    """

    status, code, title = 400, "invalid_idempotency_key", "Invalid idempotency key"


class IdempotencyKeyReuse(Problem):
    """The idempotency key was used before, for another request.

    Take a new key for each new email. Repeat a request with exactly the same body, to the same path.
    """

    status, code, title = 409, "idempotency_key_reuse", "Idempotency key used before"


class IdempotencyInProgress(Problem):
    """Another request with this idempotency key is being accepted in this moment.

    Send the same request again after `Retry-After`: it gets the answer of the first.
    """

    status, code, title = 409, "idempotency_in_progress", "Request in progress"


class EmailAlreadySent(Problem):
    """The email was handed over already; it cannot be cancelled.

    Nothing can be done about this email.
    """

    status, code, title = 409, "email_already_sent", "Email already sent"


class EmailNotCancellable(Problem):
    """The email is not scheduled any more: it is queued, or it bounced or failed.

    Only a scheduled email can be cancelled, until its time comes.
    """

    status, code, title = 409, "email_not_cancellable", "Email not cancellable"


class EmailNotScheduled(Problem):
    """The email is not scheduled, or not any more; it cannot be moved.

    Send a new one, or resend this one.
    """

    status, code, title = 409, "email_not_scheduled", "Email not scheduled"


class AttachmentsTooLarge(Problem):
    """The attachments have more than 10 MiB (10,485,760 bytes) in all, once decoded.

    Send fewer or smaller files, or links to them.
    """

    status, code, title = 413, "attachments_too_large", "Attachments too large"


class TooManyAttachments(Problem):
    """The email has more than 10 attachments.

    Send fewer, or put them into one archive.
    """

    status, code, title = 422, "too_many_attachments", "Too many attachments"


class TooManyRecipients(Problem):
    """A list of recipients is too long: `to`, `cc` and `bcc` take 50 each, a batch 500.

    `field` and `limit` tell which. For many separate emails, use a batch and send several of them.
    """

    status, code, title = 422, "too_many_recipients", "Too many recipients"
