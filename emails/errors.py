"""What accepting an email refuses."""

from api.errors import Problem


class InvalidIdempotencyKey(Problem):
    status, code, title = 400, "invalid_idempotency_key", "Invalid idempotency key"


class IdempotencyKeyReuse(Problem):
    status, code, title = 409, "idempotency_key_reuse", "Idempotency key used before"


class IdempotencyInProgress(Problem):
    status, code, title = 409, "idempotency_in_progress", "Request in progress"


class TooManyRecipients(Problem):
    status, code, title = 422, "too_many_recipients", "Too many recipients"
