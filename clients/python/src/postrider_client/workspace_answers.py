"""Responses of the management API as dataclasses. `raw` is the unchanged response."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Optional

from postrider_client.answers import KeyLimits, Quota


@dataclass(frozen=True)
class ManagedWorkspace:
    id: str
    name: str
    plan: str
    group: str
    suspended_at: Optional[datetime]
    suspended_reason: Optional[str]
    deletes_at: Optional[datetime]
    created_at: datetime
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class MonthUsage:
    """`month` is the first day of the month in UTC, such as 2026-11-01."""

    month: str
    used: int


@dataclass(frozen=True)
class WorkspaceUsage:
    """The quota of the current month and the usage of the last twelve months."""

    quota: Quota
    months: list[MonthUsage]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class CheckedConfiguration:
    """`domain_names`, `route_domains`, `blocked_senders`: names as the service stores them, in the order given."""

    domain_names: list[str]
    route_domains: Optional[list[str]]
    blocked_senders: Optional[list[str]]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class ConfigurationLease:
    """`expires_at`: the end of the lease; None after its release."""

    expires_at: Optional[datetime]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class ManagedKey:
    """`key`: the API key, only in the response of create, otherwise None."""

    id: str
    name: str
    scope: str
    test: bool
    limits: KeyLimits
    last_four: str
    created_at: datetime
    expires_at: Optional[datetime]
    revoked_at: Optional[datetime]
    last_used_at: Optional[datetime]
    key: Optional[str] = field(repr=False)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Member:
    email: str
    role: str
    created_at: datetime
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class RemovedMember:
    email: str
    deleted: bool
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Invitation:
    id: str
    email: str
    role: str
    created_at: datetime
    expires_at: datetime
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class AuditEntry:
    action: str
    about: str
    actor_kind: str
    actor: str
    address: Optional[str]
    created_at: datetime
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class TransportStatus:
    """The status of a transport.

    `state`: open, paused, probing or draining.
    `per_day`: its limit, None without one.
    """

    name: str
    kind: str
    state: str
    since: Optional[datetime]
    last_error: str
    in_flight: int
    sent_today: int
    per_day: Optional[int]
    routes: list[str]
    unaligned_domains: list[str]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
