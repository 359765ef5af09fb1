"""Who is calling: the API key of the Authorization header.

A key is read from the database at most once a second per process, so that a busy caller costs no query
and a revoked key is refused within one second (CONTRACT section 2).
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from lib.ttl_cache import Recent
from workspaces.api.throttling import note_failure
from workspaces.api_key_secrets import hash_secret, matches, read_key
from workspaces.errors import ExpiredApiKey, InvalidApiKey, MissingApiKey, RevokedApiKey, Unauthenticated
from workspaces.models import ApiKey, Workspace

USED_EVERY = timedelta(minutes=1)


cache: Recent[str, ApiKey] = Recent()


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer pr_…`; request.auth is the ApiKey, request.user stays None."""

    def authenticate(self, request: Request) -> tuple[Any, ApiKey]:
        try:
            return None, authenticated_key(request.META.get("HTTP_AUTHORIZATION", ""))
        except Unauthenticated:
            note_failure(request)
            raise

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="postrider"'


def authenticated_key(header: str) -> ApiKey:
    """Return the key that a header names. Raises one of the four refusals of CONTRACT's 401."""
    scheme, _, text = header.strip().partition(" ")
    if not header.strip():
        raise MissingApiKey("Send your API key as Authorization: Bearer pr_….")
    given = read_key(text.strip()) if scheme.lower() == "bearer" else None
    if given is None:
        raise InvalidApiKey("This is not an API key; it must be Bearer pr_… as shown when it was made.")
    key = cache.get(given.id) or _read(given.id)
    # An unknown id costs the same comparison as a wrong secret.
    if not matches(given.secret, key.secret_hash if key else hash_secret("")) or key is None:
        raise InvalidApiKey("This API key does not exist.")
    _refuse_ended(key)
    _note_use(key)
    return key


def _read(key_id: str) -> ApiKey | None:
    key = ApiKey.objects.select_related("workspace").filter(id=key_id).first()
    if key:
        cache.keep(key_id, key)
    return key


def _refuse_ended(key: ApiKey) -> None:
    if key.is_revoked:
        raise RevokedApiKey("This API key was revoked.")
    if key.expires_at and key.expires_at <= datetime.now(UTC):
        raise ExpiredApiKey(f"This API key expired at {key.expires_at.isoformat()}.")


def _note_use(key: ApiKey) -> None:
    """Write lastUsedAt at most once a minute, whatever the number of processes."""
    if key.last_used_at and datetime.now(UTC) - key.last_used_at < USED_EVERY:
        return
    unused = Q(last_used_at=None) | Q(last_used_at__lt=Now() - USED_EVERY)
    ApiKey.objects.filter(unused, id=key.id).update(last_used_at=Now())
    key.last_used_at = datetime.now(UTC)


def workspace_of(request: Request) -> Workspace:
    key = request.auth
    assert isinstance(key, ApiKey)
    return key.workspace
