"""Signing identities: DKIM key, return path domain, TLS policy and host of the links of each sending domain.

The newest published key signs; before any key was found in DNS, the first one does.
"""

import functools
import logging
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from django.conf import settings

from core.delivery.message.dkim import SigningKey
from core.lib.ids import from_uuid, to_uuid
from core.lib.keyring import UnknownKey
from core.lib.sealed import unseal
from core.lib.sql import run_replanned
from domains.models import SEAL_PURPOSE, Domain
from domains.tracking_hosts import links_url

log = logging.getLogger("postrider.domains")

# (workspace id, domain name)
WorkspaceDomain = tuple[str, str]

KEY_CACHE_SIZE = 1000
# A tracking host is used a minute after it was proven: by then all web processes know it (interfaces.tracking.hosts).
# LATERAL uses the unique index for each pair; a plain join reads the whole table until it is very large.
IDENTITIES = """
SELECT pair.place, found.*
FROM unnest(%s::uuid[], %s::text[]) WITH ORDINALITY AS pair (workspace_id, name, place)
CROSS JOIN LATERAL (
  SELECT d.return_path_seen_at IS NOT NULL, d.tls,
         (SELECT h.name FROM domains_trackinghost h
           WHERE h.domain_id = d.id AND h.status = 'active' AND h.proven_at <= now() - interval '1 minute'),
         k.id, k.selector, k.sealed_private_key
  FROM domains_domain d JOIN domains_dkimkey k ON k.domain_id = d.id
  WHERE d.workspace_id = pair.workspace_id AND d.name = pair.name
  ORDER BY k.seen_at IS NULL, CASE WHEN k.seen_at IS NOT NULL THEN k.created_at END DESC, k.created_at, k.id
  LIMIT 1
) AS found
"""


@dataclass(frozen=True)
class SigningIdentity:
    """The identity of a sending domain.

    key: None if it cannot be unsealed, because its entry was removed from APP_KEYS or the row is damaged.
    requires_tls: required by the domain or by DELIVERY_TLS.
    links_url: the start of the links in its emails; empty for PUBLIC_URL.
    """

    key: SigningKey | None
    return_path_domain: str
    requires_tls: bool
    links_url: str = ""


def load_identities(pairs: Collection[WorkspaceDomain]) -> dict[WorkspaceDomain, SigningIdentity]:
    """Return the identity of each registered domain, in one query. Deleted domains are left out."""
    wanted = sorted(pairs)
    workspaces = [to_uuid(workspace_id, prefix="ws_") for workspace_id, _ in wanted]
    rows = run_replanned(IDENTITIES, [workspaces, [name for _, name in wanted]])
    return {wanted[place - 1]: _identity(wanted[place - 1][1], *columns) for place, *columns in rows}


def _identity(  # the columns of IDENTITIES
    name: str,
    is_return_path_seen: bool,  # noqa: FBT001
    tls: str,
    host: str | None,
    key_id: UUID,
    *sealed: str,
) -> SigningIdentity:
    domain = return_path_name(name) if is_return_path_seen else settings.RETURN_PATH_DOMAIN
    requires_tls = Domain.TlsPolicy.REQUIRED in (tls, settings.DELIVERY_TLS)
    return SigningIdentity(
        _signing_key(name, key_id, *sealed), domain, requires_tls, links_url=links_url(host) if host else ""
    )


def return_path_name(domain_name: str) -> str:
    """Return the name for a CNAME to RETURN_PATH_DOMAIN."""
    return f"bounce.{domain_name}"


def _signing_key(name: str, key_id: UUID, selector: str, sealed: str) -> SigningKey | None:
    try:
        return SigningKey(name, selector, _private_key(key_id, sealed))
    except (InvalidTag, UnknownKey, ValueError) as error:
        data = {"domain": name, "key": from_uuid(key_id, prefix="dkim_"), "error": type(error).__name__}
        log.error("a DKIM key cannot be unsealed", extra={"data": data})  # noqa: TRY400  # a traceback adds nothing
        return None


@functools.lru_cache(maxsize=KEY_CACHE_SIZE)
def _private_key(key_id: UUID, sealed: str) -> RSAPrivateKey:
    pem = unseal(sealed, purpose=SEAL_PURPOSE, row=from_uuid(key_id, prefix="dkim_"))
    # Validating the primes takes longer than 100 signatures; the seal already proves that the key is unchanged.
    key = load_pem_private_key(pem, password=None, unsafe_skip_rsa_key_validation=True)
    assert isinstance(key, RSAPrivateKey)
    return key
