"""Suppressions of erased people: a keyed hash in place of the address (docs/decisions/0354)."""

import hashlib
import hmac

from django.conf import settings
from django.db import transaction

from core.erasing.steps import ERASED
from core.lib.keyring import key_named
from core.workspaces.models import Workspace
from streams.services import read_streams
from suppressions.models import Suppression, suppression_key

PURPOSE = "erased-suppression"
# No address begins like this.
PREFIX = "#"


def hashed_keys(key: str) -> list[str]:
    """Return what stands for a normalized address after its erasure: one hash for each entry of APP_KEYS, newest first.

    A hash that was made with a former entry is found as long as APP_KEYS has it.
    """
    return [_hash(key, key_id) for key_id, _ in settings.APP_KEYS]


def all_keys(address: str, *, stream: str = "") -> list[str]:
    """Return the values of address_key that a suppression of an address has, as it is and erased."""
    key = suppression_key(address)
    suffix = f"\n{stream}" if stream else ""
    return [f"{one}{suffix}" for one in (key, *hashed_keys(key))]


@transaction.atomic
def erase_suppressions(workspace: Workspace, address: str, *, is_kept: bool) -> int:
    """Replace an address by its hash in the suppressions of a workspace, or delete them; return their number."""
    slugs = ("", *read_streams(workspace))
    if not is_kept:
        keys = [key for slug in slugs for key in all_keys(address, stream=slug)]
        return int(workspace.suppressions.filter(address_key__in=keys).delete()[0])
    keys = [suppression_key(address, stream=slug) for slug in slugs]
    rows = list(workspace.suppressions.select_for_update().filter(address_key__in=keys))
    for row in rows:
        _hash_row(row)
    return len(rows)


def _hash_row(row: Suppression) -> None:
    key, _, stream = row.address_key.partition("\n")
    hashed = hashed_keys(key)[0] + (f"\n{stream}" if stream else "")
    if Suppression.objects.filter(workspace=row.workspace_id, address_key=hashed).exists():
        # The address was erased before, and suppressed again since.
        row.delete()
    else:
        Suppression.objects.filter(id=row.id).update(address_key=hashed, email=ERASED)


def _hash(key: str, key_id: str) -> str:
    digest = hmac.digest(key_named(key_id, PURPOSE).secret, key.encode(), hashlib.sha256)
    return PREFIX + digest.hex()
