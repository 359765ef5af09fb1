"""What a message carries of its sending domain: the key that signs it and where its bounces go to.

The newest key that the DNS has shown signs; before any was seen, the first one does.
"""

import functools
import logging
from collections.abc import Collection
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from django.conf import settings
from django.db import connection

from delivery.dkim import SigningKey
from domains.models import SEAL_PURPOSE
from keys.ids import from_uuid, to_uuid
from keys.keyring import UnknownKey
from keys.sealed import unseal

log = logging.getLogger("postrider.domains")

# (workspace id, domain name)
Pair = tuple[str, str]

KEYS_AT_HAND = 1000
IDENTITIES = """
SELECT DISTINCT ON (d.workspace_id, d.name)
       d.workspace_id, d.name, d.return_path_seen_at IS NOT NULL, k.id, k.selector, k.sealed_private_key
FROM unnest(%s::uuid[], %s::text[]) AS pair (workspace_id, name)
JOIN domains_domain d ON d.workspace_id = pair.workspace_id AND d.name = pair.name
JOIN domains_dkimkey k ON k.domain_id = d.id
ORDER BY d.workspace_id, d.name, k.seen_at IS NULL,
         CASE WHEN k.seen_at IS NOT NULL THEN k.created_at END DESC, k.created_at, k.id
"""


@dataclass(frozen=True)
class Identity:
    """key is None where it cannot be unsealed, because its entry has left APP_KEYS."""

    key: SigningKey | None
    return_path_domain: str


def identities(pairs: Collection[Pair]) -> dict[Pair, Identity]:
    """Return the identity of each registered domain, with one query; a domain that is gone is left out."""
    wanted = sorted(pairs)
    with connection.cursor() as cursor:
        workspaces = [to_uuid(workspace_id, prefix="ws_") for workspace_id, _ in wanted]
        cursor.execute(IDENTITIES, [workspaces, [name for _, name in wanted]])
        return {
            (from_uuid(workspace, prefix="ws_"), name): Identity(
                key=_signing_key(name, from_uuid(key_id, prefix="dkim_"), selector, sealed),
                return_path_domain=return_path_name(name) if is_seen else settings.RETURN_PATH_DOMAIN,
            )
            for workspace, name, is_seen, key_id, selector, sealed in cursor.fetchall()
        }


def return_path_name(domain_name: str) -> str:
    """Return the name that a domain's owner may point at RETURN_PATH_DOMAIN."""
    return f"bounce.{domain_name}"


def _signing_key(name: str, key_id: str, selector: str, sealed: str) -> SigningKey | None:
    try:
        return SigningKey(name, selector, _private_key(key_id, sealed))
    except (InvalidTag, UnknownKey) as error:
        known = {"domain": name, "key": key_id, "error": type(error).__name__}
        log.error("a DKIM key cannot be unsealed", extra={"data": known})  # noqa: TRY400  # a trace would tell no more
        return None


@functools.lru_cache(maxsize=KEYS_AT_HAND)
def _private_key(key_id: str, sealed: str) -> RSAPrivateKey:
    pem = unseal(sealed, purpose=SEAL_PURPOSE, row=key_id)
    # Checking the primes again takes longer than a hundred signatures; the seal proves that they are ours.
    key = load_pem_private_key(pem, password=None, unsafe_skip_rsa_key_validation=True)
    assert isinstance(key, RSAPrivateKey)
    return key
