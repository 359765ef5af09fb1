"""What a suppression refuses."""

from api.errors import Problem


class RecipientSuppressed(Problem):
    """A recipient is on the workspace's suppression list: the address bounced, complained, unsubscribed or was blocked.

    `recipients` names each with its `field`, its `reason` and its `suppressionId`. Leave the address out; where you
    know better, delete the suppression first. A batch leaves such recipients out by itself and fails only when nobody
    is left.
    """

    status, code, title = 422, "recipient_suppressed", "Recipient suppressed"
