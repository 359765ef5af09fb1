"""Rate limit of invitations: emails to addresses that anybody may choose."""

from typing import Any

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from api.errors import RateLimitExceeded
from lib.token_bucket import RateLimit, take_token

INVITATIONS = RateLimit(per_second=1 / 60, burst=20)


class InvitationThrottle(BaseThrottle):
    """Refuses invitations of a workspace above the limit."""

    def allow_request(self, request: Request, view: Any) -> bool:
        if view.action == "create":
            _take_invitation(view.workspace.id)
        return True


def _take_invitation(workspace_id: str) -> None:
    level = take_token(f"invitations:{workspace_id}", limit=INVITATIONS)
    if not level.is_allowed:
        seconds = str(level.retry_after_seconds)
        raise RateLimitExceeded("Too many invitations. Try again later.", headers={"Retry-After": seconds})
