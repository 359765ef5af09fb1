"""What a suppression refuses."""

from api.errors import Problem


class RecipientSuppressed(Problem):
    """Raised with `recipients`: {"email", "field", "reason", "suppressionId"} of each that is blocked."""

    status, code, title = 422, "recipient_suppressed", "Recipient suppressed"
