"""Rate limits per workspace, per key, and of failed authentications per network.

See docs/specification.md, Rate limits.
"""

from dataclasses import dataclass

from django.conf import settings

from core.api.errors import ProcessorTimeExceeded, RateLimitExceeded
from core.lib.coded_texts import CodedText
from core.lib.network.address_guard import Address
from core.lib.network.client_address import client_network
from core.lib.token_bucket import BucketState, RateLimit, owe_tokens, take_token
from core.lib.ttl_cache import TTLCache
from core.workspaces.models import ApiKey, Workspace

FAILURES = RateLimit(per_second=1, burst=20)
# Limit of requests without a key. Together with owe_tokens, they get a twentieth of a core.
KEYLESS = RateLimit(per_second=5, burst=100)
# With 50 requests per second, a workspace can use half a core all the time.
STEP_SECONDS, TOKENS_PER_STEP = 0.05, 5
# How long a workspace counts as computing after such a request.
COMPUTING_SECONDS = 5.0
computing: TTLCache[str, bool] = TTLCache(ttl_seconds=COMPUTING_SECONDS)
ANY_WORKSPACE = ""


@dataclass(frozen=True)
class KeyRateLimit(RateLimit):
    """The limit of one API key (core.workspaces.key_limits), within that of its workspace."""


def take_key_request(key: ApiKey) -> BucketState | None:
    """Take a token for one request with a key, of the key's own bucket, if it has one, and of its workspace's.

    Returns the bucket that refuses the request, else the one with fewer tokens left.
    """
    per_second = key.limits.requests_per_second
    if per_second is None:
        return take_request(key.workspace)
    of_key = take_token(f"key:{key.id}", limit=KeyRateLimit(per_second, burst=per_second))
    of_workspace = take_request(key.workspace) if of_key.is_allowed else None
    if of_workspace and (not of_workspace.is_allowed or of_workspace.remaining < of_key.remaining):
        return of_workspace
    return of_key


def take_request(workspace: Workspace) -> BucketState | None:
    """Take a token for one request of a workspace. Returns None if rate limits are off (RATE_LIMIT=off)."""
    return take_from(_bucket_of(workspace))


def take_from(bucket: str) -> BucketState | None:
    """Take a token for one request from a bucket. Returns None if rate limits are off."""
    limit = _default_limit()
    return take_token(bucket, limit=limit) if limit else None


def owe_processor_time(workspace: Workspace, seconds: float) -> None:
    """Take TOKENS_PER_STEP tokens for each STEP_SECONDS of processor time that a request has used.

    Most requests use a few milliseconds, and owe nothing.
    """
    steps = int(seconds / STEP_SECONDS)
    if not steps:
        return
    computing.set(workspace.id, True)
    computing.set(ANY_WORKSPACE, True)
    if limit := _default_limit():
        owe_tokens(_bucket_of(workspace), steps * TOKENS_PER_STEP, limit=limit)


def is_computing(workspace_id: str = ANY_WORKSPACE) -> bool:
    """Return whether this process has answered a request of a workspace lately that used much processor time."""
    return computing.get(workspace_id) is not None


def _bucket_of(workspace: Workspace) -> str:
    return f"workspace:{workspace.id}"


def _default_limit() -> RateLimit | None:
    """Return the limit of a workspace; None if rate limits are off."""
    return RateLimit(*settings.RATE_LIMIT) if settings.RATE_LIMIT else None


def refuse_excess(level: BucketState | None) -> None:
    """Raise RateLimitExceeded or ProcessorTimeExceeded if the bucket of take_request was empty."""
    if level and not level.is_allowed:
        limit, seconds = level.limit, level.retry_after_seconds
        code = "workspaces.key_rate_limited" if isinstance(limit, KeyRateLimit) else "workspaces.rate_limited"
        raise _excess(CodedText(code, count=limit.per_second, burst=limit.burst, seconds=seconds), level)


def record_failure(address: Address | None) -> None:
    """Count a failed authentication. Raises RateLimitExceeded after too many failures.

    Called for invalid keys only: a valid key is accepted regardless of other failures from the same address.
    """
    _take_keyless(f"failures:{_network(address)}", limit=FAILURES)


def take_keyless_request(address: Address | None) -> None:
    """Take a token for a request that needs no key. Raises RateLimitExceeded if its network has none left."""
    _take_keyless(f"keyless:{_network(address)}", limit=KEYLESS)


def owe_keyless_time(address: Address | None, seconds: float) -> None:
    """Take tokens for the processor time of a request that needs no key, as owe_processor_time does."""
    if steps := int(seconds / STEP_SECONDS):
        owe_tokens(f"keyless:{_network(address)}", steps * TOKENS_PER_STEP, limit=KEYLESS)


def _take_keyless(bucket: str, *, limit: RateLimit) -> None:
    if settings.RATE_LIMIT is None:
        return
    level = take_token(bucket, limit=limit)
    if not level.is_allowed:
        raise _excess(CodedText("workspaces.too_many_failures", seconds=level.retry_after_seconds), level)


def _network(address: Address | None) -> str:
    return str(client_network(address)) if address else "unknown"


def _excess(detail: CodedText, level: BucketState) -> RateLimitExceeded:
    """Return the problem of an empty bucket. detail: that of too many requests."""
    headers = {"Retry-After": str(level.retry_after_seconds)}
    if level.is_owing:
        text = CodedText("workspaces.processor_time_exceeded", seconds=level.retry_after_seconds)
        return ProcessorTimeExceeded(text, headers=headers)
    return RateLimitExceeded(detail, headers=headers)
