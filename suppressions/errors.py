"""API errors of suppressions."""

from api.errors import Problem


class RecipientSuppressed(Problem):
    """A recipient is on the workspace's suppression list: the address bounced, complained, unsubscribed or was blocked.

    `recipients` lists each one with its `field`, `reason` and `suppressionId`. Leave the address out, or delete its
    suppression first. A batch skips such recipients and fails only when none is left.
    """

    status, code, title = 422, "recipient_suppressed", "Recipient suppressed"
