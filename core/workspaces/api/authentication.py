"""API key authentication with the Authorization header (docs/specification.md, Authentication).

Each process reads a key from the database at most once a second: most requests need no query, and a revoked key is
refused within one second.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from core.lib.network.address_guard import Address
from core.lib.network.client_address import client_address
from core.lib.ttl_cache import TTLCache
from core.workspaces.api.throttling import record_failure
from core.workspaces.api_key_secrets import hash_secret, parse_key, secret_matches
from core.workspaces.errors import (
    ExpiredApiKey,
    InvalidApiKey,
    MissingApiKey,
    NetworkNotAllowed,
    RevokedApiKey,
    Unauthenticated,
)
from core.workspaces.models import ApiKey, SecretKey, Workspace

LAST_USED_INTERVAL = timedelta(minutes=1)
API_KEY_PREFIXES = frozenset({"pr_", "pr_test_"})
NO_KEY = "Invalid API key format. A key begins with pr_."
INCOMPLETE_KEY = "Invalid API key format. This key is incomplete or has other characters: copy it again."
# Returns the address of the client. Called only for keys that are limited to networks.
ReadAddress = Callable[[], Address | None]

cache: TTLCache[str, ApiKey] = TTLCache()
# The ids of workspaces by the hashes of accepted keys. A key never changes its workspace.
workspace_ids: TTLCache[int, str] = TTLCache(ttl_seconds=float("inf"))


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer pr_…`; request.auth is the ApiKey, request.user stays None."""

    def authenticate(self, request: Request) -> tuple[Any, Any]:
        try:
            return None, self.find(self.authorization(request), client=partial(client_address, request.META))
        except (Unauthenticated, NetworkNotAllowed):
            record_failure(client_address(request.META))
            raise

    def find(self, header: str, *, client: ReadAddress) -> Any:
        """Return the key of an Authorization header; a subclass may accept other keys."""
        return authenticate_key(header, client=client)

    def authorization(self, request: Request) -> str:
        """Return the Authorization header; a subclass may read the key from another header."""
        return str(request.META.get("HTTP_AUTHORIZATION", ""))

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="postrider"'


def authenticate_key(header: str, *, client: ReadAddress) -> ApiKey:
    """Return the API key of an Authorization header. Raises a subclass of Unauthenticated, NetworkNotAllowed."""
    return find_key(read_bearer(header), client=client)


def read_bearer(header: str) -> str:
    """Return the key in an Authorization header. Raises a subclass of Unauthenticated."""
    scheme, _, text = header.strip().partition(" ")
    if not header.strip():
        raise MissingApiKey("Send your API key as Authorization: Bearer pr_….")
    if scheme.lower() != "bearer":
        raise InvalidApiKey("Invalid API key format. Send Authorization: Bearer pr_….")
    return text.strip()


def find_key(text: str, *, client: ReadAddress) -> ApiKey:
    """Return an API key by its text. Raises a subclass of Unauthenticated, NetworkNotAllowed."""
    presented = parse_key(text)
    if presented is None:
        raise InvalidApiKey(INCOMPLETE_KEY if text.startswith("pr_") else NO_KEY)
    if presented.prefix not in API_KEY_PREFIXES:
        raise InvalidApiKey("A management key works below /v1/admin only. Use an API key, which begins with pr_.")
    key = cache.get(presented.id) or _read_key(presented.id)
    # An unknown id takes as long as a wrong secret.
    is_match = secret_matches(presented.secret, key.secret_hash if key else hash_secret(""))
    if key is None or not is_match or presented.prefix != key.prefix:
        raise InvalidApiKey("This API key does not exist. Check that you copied the complete key.")
    refuse_ended_key(key, kind="API key", advice=" Create a new one in the dashboard.")
    if key.limits.networks:
        _refuse_other_networks(key, client())
    workspace_ids.set(hash(text), key.workspace_id)
    record_use(key)
    return key


def is_active_key(key_id: str) -> bool:
    """Return whether requests with a key that was accepted before would still be accepted."""
    key = cache.get(key_id) or _read_key(key_id)
    is_expired = key is not None and key.expires_at is not None and key.expires_at <= datetime.now(UTC)
    is_usable = key is not None and key.workspace.is_proven and not key.workspace.is_deleted
    return key is not None and is_usable and not key.is_revoked and not is_expired


def workspace_of_key(text: str) -> str | None:
    """Return the id of a key's workspace, if this process has accepted the key before."""
    return workspace_ids.get(hash(text))


def _read_key(key_id: str) -> ApiKey | None:
    key = ApiKey.objects.select_related("workspace").filter(id=key_id).first()
    if key:
        cache.set(key_id, key)
    return key


def refuse_ended_key(key: SecretKey, *, kind: str, advice: str = "") -> None:
    """Refuse a revoked or expired API key or management key. Raises RevokedApiKey, ExpiredApiKey."""
    if key.is_revoked:
        raise RevokedApiKey(f"This {kind} was revoked.{advice}")
    if key.expires_at and key.expires_at <= datetime.now(UTC):
        raise ExpiredApiKey(f"This {kind} expired at {key.expires_at.isoformat()}.{advice}")


def _refuse_other_networks(key: ApiKey, address: Address | None) -> None:
    networks = key.limits.networks
    if not key.limits.includes_address(address):
        text = str(address) if address else "an unknown address"
        detail = f"This API key can be used from {', '.join(networks)} only; this request came from {text}."
        raise NetworkNotAllowed(detail, address=text, allowedNetworks=list(networks))


def record_use(key: Any) -> None:
    """Update last_used_at of an API key or a management key at most once a minute, across all processes."""
    if key.last_used_at and datetime.now(UTC) - key.last_used_at < LAST_USED_INTERVAL:
        return
    unused = Q(last_used_at=None) | Q(last_used_at__lt=Now() - LAST_USED_INTERVAL)
    type(key).objects.filter(unused, id=key.id).update(last_used_at=Now())
    key.last_used_at = datetime.now(UTC)


def key_of(request: Request) -> ApiKey:
    key = request.auth
    assert isinstance(key, ApiKey)
    return key


def workspace_of(request: Request) -> Workspace:
    return key_of(request).workspace
