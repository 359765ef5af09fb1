"""API errors of suppressions."""

from typing import ClassVar

from core.api.errors import Member, Problem, field_path
from suppressions.models import Suppression


class RecipientSuppressed(Problem):
    """A recipient is on the workspace's suppression list: the address bounced, complained, unsubscribed or was blocked.

    `recipients` lists each one with its `field`, `reason` and `suppressionId`. Leave the address out, or delete its
    suppression first. A batch skips such recipients and fails only when none is left.
    """

    status, code, title = 422, "recipient_suppressed", "Recipient suppressed"
    example = "ada@example.com is on the suppression list (bounce)."
    added_members: ClassVar = {
        "recipients": Member(
            "The suppressed recipients.",
            [
                {
                    "email": Member("The address.", "ada@example.com"),
                    "field": field_path("to[0]"),
                    "reason": Member("The reason of the suppression.", Suppression.Reason.BOUNCE),
                    "suppressionId": Member("The id of the suppression.", "sup_0Uf7n3Kp8WqYzR5vTbLcMd"),
                    "stream": Member("The only stream that is blocked.", "newsletter", is_optional=True),
                }
            ],
        )
    }
