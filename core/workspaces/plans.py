"""Plans and their limits: the built-in ones, those of PLANS_FILE, and the limits of single workspaces.

See docs/specification.md (Plans and quota) and docs/decisions/0256. The file is read once when a process starts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

NAME = re.compile(r"[a-z][a-z0-9-]{0,15}")
MAX_FILE_BYTES = 64 * 1024
MAX_PLANS = 100
UNLIMITED = "unlimited"
# The largest value of each limit; storage and emails are columns of 8 bytes.
LARGEST = {"emailsPerMonth": 10**15, "domains": 10**6, "retentionDays": 36_500, "storageBytes": 2**60}
MAX_KEYS = 100
# Domains that may be registered beyond the verified ones of a plan, while their records are published.
PENDING_DOMAINS = 3


class InvalidPlans(Exception):
    """Raised for plans or limits that cannot be used; the text says why."""


@dataclass(frozen=True)
class Plan:
    """Limits of a plan; None is unlimited.

    domains: verified ones.
    storage_bytes: received email.
    """

    name: str
    emails_per_month: int | None
    domains: int | None
    retention: timedelta
    storage_bytes: int | None = None

    def with_limits(self, limits: Mapping[str, int | None]) -> "Plan":
        """Return the plan with other limits, by their names in the file."""
        changes: dict[str, Any] = {FIELDS[name]: value for name, value in limits.items() if name in FIELDS}
        if "retention_days" in changes:
            changes["retention"] = timedelta(days=changes.pop("retention_days"))
        return replace(self, **changes)


FIELDS = {
    "emailsPerMonth": "emails_per_month",
    "domains": "domains",
    "retentionDays": "retention_days",
    "storageBytes": "storage_bytes",
}
BUILT_IN = {
    plan.name: plan
    for plan in (
        Plan("free", emails_per_month=500, domains=1, retention=timedelta(days=7), storage_bytes=100 * 10**6),
        Plan("pro", emails_per_month=50_000, domains=10, retention=timedelta(days=90), storage_bytes=5 * 10**9),
        Plan("enterprise", emails_per_month=None, domains=None, retention=timedelta(days=365)),
    )
}


def read_plans(path: Path) -> dict[str, Plan]:
    """Return the built-in plans with the changes and additions of a file. Raises InvalidPlans."""
    try:
        text = path.read_text(encoding="utf-8") if path.stat().st_size <= MAX_FILE_BYTES else ""
        entries = yaml.safe_load(text)
    except OSError as error:
        raise InvalidPlans(f"{path} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidPlans(f"{path} is neither YAML nor JSON: {' '.join(str(error).split())}.") from error
    if not isinstance(entries, dict) or not 1 <= len(entries) <= MAX_PLANS:
        raise InvalidPlans(f"{path} must have 1 to {MAX_PLANS} plans, each with its limits.")
    return BUILT_IN | {name: _read_plan(name, limits, place=f"{path}, {name}") for name, limits in entries.items()}


def find_plan(name: str, plans: Mapping[str, Plan], *, default: str) -> Plan:
    """Return a plan. One that the file no longer has gets the limits of the default, and the longest retention.

    So nothing is deleted because of a missing entry; `manage.py doctor` names the workspaces.
    """
    if name in plans:
        return plans[name]
    return replace(plans[default], name=name, retention=max(plan.retention for plan in plans.values()))


def read_limits(values: Any, *, place: str) -> dict[str, int | None]:
    """Return limits by their names in the file; None is unlimited. Raises InvalidPlans."""
    if not isinstance(values, dict):
        raise InvalidPlans(f"{place}: write the limits as name: value, such as emailsPerMonth: 100000.")
    if unknown := [name for name in values if name not in FIELDS]:
        raise InvalidPlans(f"{place}: {unknown[0]!r} is unknown. The limits are {', '.join(FIELDS)}.")
    return {name: read_limit(name, value, place=place) for name, value in values.items()}


def read_limit(name: str, value: Any, *, place: str) -> int | None:
    """Return a limit from a whole number or `unlimited`. Raises InvalidPlans."""
    if value == UNLIMITED and name != "retentionDays":
        return None
    lowest = 1 if name == "retentionDays" else 0
    if isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= LARGEST[name]:
        return value
    form = f"a whole number from {lowest} to {LARGEST[name]}"
    form += "" if name == "retentionDays" else f", or {UNLIMITED}"
    raise InvalidPlans(f"{place}: {name} must be {form}, not {value!r}.")


def _read_plan(name: Any, values: Any, *, place: str) -> Plan:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidPlans(f"{place}: the name of a plan has 1 to 16 characters a-z, 0-9 and hyphens.")
    limits = read_limits(values, place=place)
    if name in BUILT_IN:
        return BUILT_IN[name].with_limits(limits)
    if missing := [limit for limit in FIELDS if limit not in limits]:
        raise InvalidPlans(f"{place}: {missing[0]} is missing.")
    return Plan(name, None, None, timedelta()).with_limits(limits)
