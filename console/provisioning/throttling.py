"""Rate limit of invitations: emails to addresses that anybody may choose."""

from core.api.errors import RateLimitExceeded
from core.lib.token_bucket import RateLimit, take_token

INVITATIONS = RateLimit(per_second=1 / 60, burst=20)


def take_invitation(workspace_id: str) -> None:
    """Take a token for an invitation of a workspace. Raises RateLimitExceeded."""
    level = take_token(f"invitations:{workspace_id}", limit=INVITATIONS)
    if not level.is_allowed:
        seconds = str(level.retry_after_seconds)
        raise RateLimitExceeded("Too many invitations. Try again later.", headers={"Retry-After": seconds})
