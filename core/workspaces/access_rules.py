"""The access that claims of an identity provider give, by the rules of OIDC_ROLES_FILE (docs/openid-connect.md).

Without models: the settings are checked before they are loaded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

from core.lib.ids import is_id

# The domain of an address that the provider has verified; no claim of the provider.
EMAIL_DOMAIN = "email_domain"
MAX_FILE_BYTES = 256 * 1024
MAX_RULES = 1000
RANKS = {"": 0, "member": 1, "owner": 2}
STAFF_KEYS = {"claim", "value", "staff"}
ROLE_KEYS = {"claim", "value", "workspace", "role"}


class InvalidRolesFile(Exception):
    """Raised for a file that cannot be used; the text says why."""


@dataclass(frozen=True)
class ClaimedAccess:
    """Access to the installation. roles: by workspace id."""

    is_staff: bool = False
    roles: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.is_staff or bool(self.roles)


@dataclass(frozen=True)
class Grants:
    """The access that the claims of a person give.

    unsent: the names of claims that rules need, but the provider did not send.
    possible: the access that these rules would give.
    """

    access: ClaimedAccess
    unsent: frozenset[str] = frozenset()
    possible: ClaimedAccess = field(default_factory=ClaimedAccess)


def higher_role(*roles: str) -> str:
    """Return the higher one of roles, of which an empty text is none."""
    return max(roles, key=lambda role: RANKS[role])


@dataclass(frozen=True)
class RoleRule:
    """One entry: a value of a claim gives the permissions of staff, or a role in a workspace."""

    claim: str
    value: str
    workspace_id: str = ""
    role: str = ""

    def matches(self, claims: Mapping[str, Any]) -> bool:
        given = claims.get(self.claim)
        return self.value in given if isinstance(given, list) else self.value == given


def read_rules() -> tuple[RoleRule, ...]:
    """Return the rules of OIDC_ROLES_FILE, none without the setting. Raises InvalidRolesFile."""
    if not settings.OIDC_ROLES_FILE:
        return ()
    path = Path(settings.OIDC_ROLES_FILE)
    try:
        state = path.stat()
        return _read(path, state.st_mtime_ns, state.st_size)
    except OSError as error:
        raise InvalidRolesFile(f"{path} cannot be read: {error.strerror}.") from error


def grants_of(rules: Iterable[RoleRule], claims: Mapping[str, Any]) -> Grants:
    """Return the access that the rules give for the claims.

    claims: those that the provider sent, and email_domain if it verified the address.
    """
    rules = list(rules)
    unsent = [rule for rule in rules if rule.claim not in claims and rule.claim != EMAIL_DOMAIN]
    return Grants(
        access=_access(rule for rule in rules if rule.matches(claims)),
        unsent=frozenset(rule.claim for rule in unsent),
        possible=_access(unsent),
    )


def _access(rules: Iterable[RoleRule]) -> ClaimedAccess:
    roles: dict[str, str] = {}
    is_staff = False
    for rule in rules:
        if rule.workspace_id:
            roles[rule.workspace_id] = higher_role(rule.role, roles.get(rule.workspace_id, ""))
        else:
            is_staff = True
    return ClaimedAccess(is_staff=is_staff, roles=roles)


@lru_cache(maxsize=2)
def _read(path: Path, _changed_at: int, size: int) -> tuple[RoleRule, ...]:
    if size > MAX_FILE_BYTES:
        raise InvalidRolesFile(f"{path} has more than {MAX_FILE_BYTES:,} bytes.")
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidRolesFile(f"{path} is neither YAML nor JSON: {' '.join(str(error).split())}.") from error
    if not isinstance(entries, list) or len(entries) > MAX_RULES:
        raise InvalidRolesFile(f"{path} must have a list of at most {MAX_RULES:,} entries.")
    return tuple(_parse(entry, place=f"{path}, entry {number}") for number, entry in enumerate(entries, 1))


def _parse(entry: Any, *, place: str) -> RoleRule:
    if not isinstance(entry, dict) or set(entry) not in (STAFF_KEYS, ROLE_KEYS):
        raise InvalidRolesFile(f"{place}: write claim, value, and either staff: true or workspace and role.")
    for name in ("claim", "value"):
        if not isinstance(entry[name], str) or not entry[name]:
            raise InvalidRolesFile(f'{place}: {name} must be a text. Quote a value such as "42" or "on".')
    value = entry["value"].lower() if entry["claim"] == EMAIL_DOMAIN else entry["value"]
    if "staff" in entry:
        if entry["staff"] is not True:
            raise InvalidRolesFile(f"{place}: staff can only be true. Remove the entry instead.")
        return RoleRule(entry["claim"], value)
    if entry["role"] not in ("owner", "member"):
        raise InvalidRolesFile(f"{place}: role must be owner or member.")
    if not isinstance(entry["workspace"], str) or not is_id(entry["workspace"], prefix="ws_"):
        raise InvalidRolesFile(f"{place}: workspace must be an id such as ws_…, from /admin/.")
    return RoleRule(entry["claim"], value, entry["workspace"], entry["role"])
