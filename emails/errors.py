"""What accepting an email refuses."""

from api.errors import Problem


class InvalidIdempotencyKey(Problem):
    status, code, title = 400, "invalid_idempotency_key", "Invalid idempotency key"


class IdempotencyKeyReuse(Problem):
    status, code, title = 409, "idempotency_key_reuse", "Idempotency key used before"


class IdempotencyInProgress(Problem):
    status, code, title = 409, "idempotency_in_progress", "Request in progress"


class EmailAlreadySent(Problem):
    status, code, title = 409, "email_already_sent", "Email already sent"


class EmailNotCancellable(Problem):
    status, code, title = 409, "email_not_cancellable", "Email not cancellable"


class EmailNotScheduled(Problem):
    status, code, title = 409, "email_not_scheduled", "Email not scheduled"


class AttachmentsTooLarge(Problem):
    status, code, title = 413, "attachments_too_large", "Attachments too large"


class TooManyAttachments(Problem):
    status, code, title = 422, "too_many_attachments", "Too many attachments"


class TooManyRecipients(Problem):
    status, code, title = 422, "too_many_recipients", "Too many recipients"
