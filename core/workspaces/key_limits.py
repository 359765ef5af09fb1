"""Limits of API keys: the domains, templates, streams and networks of a key, and its requests per second.

Networks and requests are checked with the key (core.workspaces.api), domains, templates and streams where emails are
accepted (emails.accept.checks) and changed (emails.key_limits). See docs/decisions/0104.
"""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Self, TypeVar

from django.db.models import Model, QuerySet

from core.api.errors import InvalidFields
from core.lib.coded_texts import CodedText
from core.lib.email_addresses import InvalidAddress, parse_address
from core.lib.network.address_guard import Address
from core.workspaces.recipients.rules import RecipientRules

M = TypeVar("M", bound=Model)
Network = IPv4Network | IPv6Network
FieldError = dict[str, str]

MAX_LIMIT_ENTRIES = 100
MAX_REQUESTS_PER_SECOND = 1000
MAX_TEMPLATE_LENGTH = 100
MAX_ENTRY_LENGTH = 253
# The ids of streams.models.
MAX_STREAM_LENGTH = 40
STREAM = re.compile(rf"[a-z0-9-]{{1,{MAX_STREAM_LENGTH}}}")


@dataclass(frozen=True)
class KeyLimits:
    """The limits of one key; an empty value is no limit.

    templates: ids or aliases.
    key_id: of the key, which the emails that it accepts remember.
    rules: who may get its emails.
    is_test: the key accepts, reads and changes test emails only (docs/decisions/0109).
    needs_approval: its emails wait until a person approves them (docs/decisions/0390).
    """

    domains: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    requests_per_second: int | None = None
    is_test: bool = False
    streams: tuple[str, ...] = ()
    needs_approval: bool = False
    key_id: str = field(default="", compare=False)
    rules: RecipientRules | None = None

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "KeyLimits":
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        return cls(**fields)

    def to_json(self) -> dict[str, Any]:
        """Return the limits that are set."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items() if value}

    @property
    def restricts_emails(self) -> bool:
        return bool(self.domains or self.templates or self.streams)

    def includes_address(self, address: Address | None) -> bool:
        """Return whether a client has an address in the networks; an unknown address has none."""
        return address is not None and any(address in _parse_network(network) for network in self.networks)


class LimitedQuerySet(QuerySet[M]):
    """Rows of which a key sees only those within its limits."""

    def within(self, limits: KeyLimits, *, workspace_id: str) -> Self:
        """Return the rows that a key of the workspace may read and change."""
        raise NotImplementedError


# The limits in the dashboard, whose users have no key.
NO_LIMITS = KeyLimits()


def read_limits(
    *,
    domains: Sequence[str] = (),
    networks: Sequence[str] = (),
    templates: Sequence[str] = (),
    streams: Sequence[str] = (),
    requests_per_second: int | None = None,
    is_test: bool = False,
    needs_approval: bool = False,
) -> KeyLimits:
    """Return the limits in the form in which they are compared. Raises InvalidFields with all errors."""
    errors: list[FieldError] = []
    limits = KeyLimits(
        domains=_read_entries("domains", domains, _normalize_domain, errors),
        networks=_read_entries("networks", networks, _normalize_network, errors),
        templates=_read_entries("templates", templates, _normalize_template, errors),
        streams=_read_entries("streams", streams, _normalize_stream, errors),
        requests_per_second=requests_per_second,
        is_test=is_test,
        needs_approval=needs_approval,
    )
    if requests_per_second is not None and not 1 <= requests_per_second <= MAX_REQUESTS_PER_SECOND:
        detail = CodedText("workspaces.out_of_range", limit=f"{MAX_REQUESTS_PER_SECOND:,}")
        errors.append(_error("requestsPerSecond", detail))
    if errors:
        raise InvalidFields(errors)
    return limits


def refuse_broader(limits: KeyLimits, *, creator: KeyLimits) -> None:
    """Refuse limits of a new key that allow more than those of the key that creates it. Raises InvalidFields."""
    errors = list(_broader_fields(limits, creator))
    if errors:
        raise InvalidFields(errors)


def refuse_scope(limits: KeyLimits, *, can_only_send: bool) -> None:
    """Refuse limits of a key whose scope could change what they limit, or does not send.

    Those are domains, templates, streams, approval and being a test key.

    Raises InvalidFields.
    """
    if can_only_send:
        return
    detail = CodedText("workspaces.limit_scope")
    names = [name for name in ("domains", "templates", "streams") if getattr(limits, name)]
    errors = [_error(name, detail, code="requires_sending_access") for name in names]
    if limits.is_test:
        detail = CodedText("workspaces.test_key_scope")
        errors.append({"field": "test", "code": "requires_sending_access", "detail": detail})
    if limits.needs_approval:
        detail = CodedText("workspaces.approval_scope")
        errors.append({"field": "approval", "code": "requires_sending_access", "detail": detail})
    if errors:
        raise InvalidFields(errors)


def _broader_fields(limits: KeyLimits, creator: KeyLimits) -> Iterator[FieldError]:
    is_within = limits.networks and all(_is_within(network, creator.networks) for network in limits.networks)
    if creator.networks and not is_within:
        detail = f"The key that creates this one is limited to {', '.join(creator.networks)}. Give networks within it."
        yield _error("networks", detail, code="too_broad")
    most = creator.requests_per_second
    if most and not (limits.requests_per_second and limits.requests_per_second <= most):
        detail = f"The key that creates this one is limited to {most} requests per second. Give at most as many."
        yield _error("requestsPerSecond", detail, code="too_broad")


def _is_within(text: str, networks: Sequence[str]) -> bool:
    network = _parse_network(text)
    others = map(_parse_network, networks)
    return any(network.version == other.version and network.subnet_of(other) for other in others)  # type: ignore[arg-type]


def _read_entries(
    name: str, entries: Sequence[str], normalize: Callable[[str], str], errors: list[FieldError]
) -> tuple[str, ...]:
    """Return the entries of a list, each once; add an error for each invalid one."""
    if len(entries) > MAX_LIMIT_ENTRIES:
        errors.append(_error(name, CodedText("api.too_many_entries", limit=MAX_LIMIT_ENTRIES), code="max_length"))
        return ()
    normalized: dict[str, None] = {}
    for index, entry in enumerate(entries):
        try:
            normalized[normalize(entry.strip())] = None
        except ValueError as error:
            errors.append(_error(f"{name}[{index}]", str(error), code="invalid_entry"))
    return tuple(normalized)


def _normalize_domain(text: str) -> str:
    """Return the domain as the senders of emails have it."""
    try:
        return parse_address(f"a@{text}").domain
    except InvalidAddress as error:
        raise ValueError(CodedText("workspaces.not_a_domain", name=repr(text[:80]))) from error


def _normalize_network(text: str) -> str:
    try:
        network = ip_network(text[:MAX_ENTRY_LENGTH])
    except ValueError as error:
        raise ValueError(_explain_network(text)) from error
    if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped:
        raise ValueError(CodedText("workspaces.mapped_network", text=repr(text[:80])))
    return str(network)


def _explain_network(text: str) -> CodedText:
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        return CodedText("workspaces.not_a_network", text=repr(text[:80]))
    return CodedText("workspaces.address_in_network", text=repr(text[:80]), network=network)


def _normalize_template(text: str) -> str:
    if not 1 <= len(text) <= MAX_TEMPLATE_LENGTH or not text.isprintable():
        raise ValueError(CodedText("workspaces.not_a_template"))
    return text


def _normalize_stream(text: str) -> str:
    if not STREAM.fullmatch(text):
        raise ValueError(CodedText("workspaces.not_a_stream"))
    return text


@functools.lru_cache(maxsize=1024)
def _parse_network(text: str) -> Network:
    return ip_network(text)


def _error(name: str, detail: str, *, code: str = "invalid") -> FieldError:
    return {"field": f"limits.{name}", "code": code, "detail": detail}
