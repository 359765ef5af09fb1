"""How fast a workspace may call, and how often a client may fail to say who it is (CONTRACT section 1)."""

from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from api.errors import RateLimitExceeded
from lib.client_address import client_address, network_of
from lib.token_bucket import Level, Limit, take_token
from workspaces.models import Workspace

FAILURES = Limit(per_second=1, burst=20)


class WorkspaceThrottle(BaseThrottle):
    """Refuses a call that found its workspace's bucket empty; the view took the token when it knew the key."""

    def allow_request(self, request: Request, view: Any) -> bool:
        level: Level | None = view.level
        if level and not level.is_allowed:
            speed = f"{level.limit.per_second} requests a second, in bursts of up to {level.limit.burst}"
            raise _too_fast(f"A workspace may make {speed}.", level)
        return True


def take_request(workspace: Workspace) -> Level | None:
    """Take a token for one request. Returns None where nothing is limited (RATE_LIMIT=off)."""
    if settings.RATE_LIMIT is None:
        return None
    per_second, burst = settings.RATE_LIMIT
    return take_token(f"workspace:{workspace.id}", limit=Limit(per_second, burst))


def note_failure(request: Request) -> None:
    """Count a failed authentication; raises RateLimitExceeded in its place when there were too many.

    It is only called when the key is not good: a good one passes, however many others failed from its address.
    """
    if settings.RATE_LIMIT is None:
        return
    address = client_address(request.META)
    level = take_token(f"failures:{network_of(address) if address else 'unknown'}", limit=FAILURES)
    if not level.is_allowed:
        raise _too_fast("Too many calls without a valid API key came from your address.", level)


def _too_fast(sentence: str, level: Level) -> RateLimitExceeded:
    seconds = level.retry_after_seconds
    return RateLimitExceeded(
        f"{sentence} Try again in {seconds} s; see Retry-After.", headers={"Retry-After": str(seconds)}
    )
