"""Transports file: the operator's named transports, the routes that use them, and the routes of workspaces.

Read once when a process starts (docs/decisions/0215). Secrets are in files that it names.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar

import yaml

from core.delivery.transports.smtp.smtp_url import InvalidSmtpUrl, RelayUrl, parse_smtp_url
from core.lib.ids import is_id
from core.lib.network.address_guard import Address

T = TypeVar("T")

# The transport and the route of an installation without a file, and the entry for all other workspaces in one.
DEFAULT = "default"
NAME = re.compile(r"[a-z0-9-]{1,30}")
HOST_NAME = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})+")
MAX_TRANSPORTS, MAX_ROUTES = 10, 20
MAX_PER_DAY = 1_000_000_000
MAX_PACED_SECONDS = 86_400
MAX_FILE_BYTES = 256 * 1024
WEBHOOK_PREFIX = "webhook_"
SHARED_KEYS = frozenset({"kind", "perDay", "spf"})
KIND_KEYS = {
    "direct": SHARED_KEYS | {"sourceAddresses", "overflow", "leaveWhenListed", "ehloName"},
    "smtp": SHARED_KEYS | {"url", "urlFile", "ehloName"},
    "anymail": SHARED_KEYS | {"backend", "settingsFile"},
}


class InvalidTransportsFile(Exception):
    """Raised for a file that cannot be used; the text says why, without secrets."""


class FailoverKind(StrEnum):
    """The kinds of certain failures after which a route may try its next transport.

    PACED: no failure, but a wait for the pace of a receiver (docs/decisions/0370).
    """

    UNREACHABLE = "unreachable"
    LOGIN = "login"
    RATE_LIMITED = "rate_limited"
    BLOCKLISTED = "blocklisted"
    TLS = "tls"
    PACED = "paced"


class Overflow(StrEnum):
    """Where email goes that exceeds the messages of a day of a new address (docs/decisions/0366).

    NEXT: to the other addresses of the transport, then to the next transport of the route.
    WAIT: it waits for the next day.
    """

    NEXT = "next"
    WAIT = "wait"


USUAL_FAILOVER = frozenset(FailoverKind) - {FailoverKind.BLOCKLISTED, FailoverKind.PACED}


@dataclass(frozen=True, kw_only=True)
class TransportSpec:
    """A named transport.

    per_day: messages in a UTC day, None for no limit.
    spf: the mechanisms of its servers.
    source_addresses, ehlo_name: for direct and smtp; empty for those of the system and of EHLO_NAME.
    since: the first day of each new source address, which warms up.
    overflow: of new source addresses.
    leave_when_listed: whether new messages avoid source addresses that a block list has.
    relay: for smtp.
    backend, options: for anymail.
    """

    name: str
    kind: str
    per_day: int | None = None
    spf: str = ""
    ehlo_name: str = ""
    source_addresses: tuple[Address, ...] = ()
    since: Mapping[Address, date] = field(default_factory=dict)
    overflow: Overflow = Overflow.NEXT
    leave_when_listed: bool = False
    relay: RelayUrl | None = field(default=None, repr=False)
    backend: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def backend_options(self) -> dict[str, Any]:
        """The arguments of the provider's backend; the other settings of its file are for its webhooks."""
        return {name: value for name, value in self.options.items() if not name.startswith(WEBHOOK_PREFIX)}

    def has_provider(self, provider: str) -> bool:
        """Return whether webhooks of a provider may be about its messages; a backend of one's own may be any."""
        module = self.backend.rpartition(".")[0]
        package, _, name = module.rpartition(".")
        return self.kind == "anymail" and (package != "anymail.backends" or name == provider)


@dataclass(frozen=True)
class TransportRoute:
    """A list of transports.

    use: their names, the preferred one first.
    paced_after_seconds: the longest wait for the pace of a receiver, with PACED in failover_on; None without it.
    """

    name: str
    use: tuple[str, ...]
    failover_on: frozenset[FailoverKind] = USUAL_FAILOVER
    paced_after_seconds: int | None = None


@dataclass(frozen=True)
class Transports:
    """workspaces: the routes that the streams of a workspace may name, by its id; the first is that of the others.

    is_named: whether there is a file; without one there is only the transport that DELIVERY_TRANSPORT selects.
    """

    transports: Mapping[str, TransportSpec]
    routes: Mapping[str, TransportRoute]
    workspaces: Mapping[str, tuple[str, ...]]
    is_named: bool = True

    def routes_of(self, workspace_id: str) -> tuple[str, ...]:
        """Return the names of the routes that a workspace may use; the first is the usual one."""
        return self.workspaces.get(workspace_id) or self.workspaces[DEFAULT]

    def route_of(self, workspace_id: str, *, chosen: str = "") -> str:
        """Return the name of the route of an email. chosen: by its stream."""
        return chosen if chosen in self.routes else self.routes_of(workspace_id)[0]

    @property
    def spf(self) -> tuple[str, ...]:
        """The SPF mechanisms of all transports."""
        return tuple(dict.fromkeys(word for spec in self.transports.values() for word in spec.spf.split()))

    def all_are(self, kind: str, *, workspace_id: str) -> bool:
        """Return whether a workspace can use no transport of another kind."""
        names = {name for route in self.routes_of(workspace_id) for name in self.routes[route].use}
        return all(self.transports[name].kind == kind for name in names)


def single_transport(kind: str) -> Transports:
    """Return the transports of an installation without a file."""
    return Transports(
        {DEFAULT: TransportSpec(name=DEFAULT, kind=kind)},
        {DEFAULT: TransportRoute(DEFAULT, (DEFAULT,))},
        {DEFAULT: (DEFAULT,)},
        is_named=False,
    )


def read_transports(path: Path) -> Transports:
    """Read a file. Raises InvalidTransportsFile."""
    document = _mapping(_load(path), place=str(path))
    _refuse_unknown(document, {"transports", "routes", "workspaces"}, place=str(path))
    transports = _section(
        document, "transports", MAX_TRANSPORTS, lambda name, entry: _transport(name, entry, path.parent)
    )
    routes = _section(document, "routes", MAX_ROUTES, _route)
    for route in routes.values():
        _check_route(route, transports, routes)
    _check_days(transports)
    return Transports(transports, routes, _workspaces(document.get("workspaces", {DEFAULT: DEFAULT}), routes))


def _load(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidTransportsFile(f"{path} cannot be read: {error.strerror}.") from error
    if len(data) > MAX_FILE_BYTES:
        raise InvalidTransportsFile(f"{path} has more than {MAX_FILE_BYTES:,} bytes.")
    try:
        return yaml.safe_load(data)
    except (yaml.YAMLError, ValueError) as error:
        # The message of the parser quotes the file, which may be one of secrets.
        line = getattr(getattr(error, "problem_mark", None), "line", -1) + 1
        raise InvalidTransportsFile(f"{path} is neither YAML nor JSON (line {line}).") from None


def _mapping(value: Any, *, place: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InvalidTransportsFile(f"{place} must have names with values (name: value).")
    return value


def _refuse_unknown(entry: Mapping[str, Any], known: Iterable[str], *, place: str) -> None:
    if unknown := sorted(entry.keys() - set(known)):
        raise InvalidTransportsFile(f"{place}: {unknown[0]!r} is unknown. Use {', '.join(sorted(known))}.")


def _section(document: Mapping[str, Any], name: str, limit: int, parse: Callable[[str, Any], T]) -> dict[str, T]:
    entries = _mapping(document.get(name), place=name)
    if not 0 < len(entries) <= limit:
        raise InvalidTransportsFile(f"{name}: there must be 1 to {limit} of them, not {len(entries)}.")
    for key in entries:
        if not NAME.fullmatch(key):
            raise InvalidTransportsFile(f"{name}: {key!r} must have 1 to 30 characters of a-z, 0-9 and hyphens.")
    return {key: parse(key, entry) for key, entry in entries.items()}


def _transport(name: str, entry: Any, directory: Path) -> TransportSpec:
    place = f"transports, {name}"
    entry = _mapping(entry, place=place)
    kind = entry.get("kind")
    if kind not in KIND_KEYS:
        raise InvalidTransportsFile(f"{place}: kind must be one of {', '.join(KIND_KEYS)}.")
    _refuse_unknown(entry, KIND_KEYS[kind], place=f"{place} ({kind})")
    sources, since = _addresses(entry.get("sourceAddresses", []), place=place)
    spf = _text(entry, "spf", place=place) or " ".join(f"ip{one.version}:{one}" for one in sources)
    ehlo_name = _text(entry, "ehloName", place=place)
    if ehlo_name and not HOST_NAME.fullmatch(ehlo_name):
        raise InvalidTransportsFile(f"{place}: ehloName must be a host name such as mta1.example.com.")
    return TransportSpec(
        name=name,
        kind=kind,
        per_day=_per_day(entry.get("perDay"), place=place),
        spf=spf,
        ehlo_name=ehlo_name,
        source_addresses=sources,
        since=since,
        overflow=_overflow(entry, place=place),
        leave_when_listed=_leave_when_listed(entry, sources, place=place),
        relay=_relay(entry, directory, place=place) if kind == "smtp" else None,
        backend=_backend(entry, place=place) if kind == "anymail" else "",
        options=_options(entry, directory, place=place),
    )


def _text(entry: Mapping[str, Any], key: str, *, place: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str):
        raise InvalidTransportsFile(f"{place}: {key} must be a text.")
    return value.strip()


def _per_day(value: Any, *, place: str) -> int | None:
    if value is None or (type(value) is int and 0 < value <= MAX_PER_DAY):
        return value
    raise InvalidTransportsFile(f"{place}: perDay must be a whole number from 1 to {MAX_PER_DAY:,}.")


def _addresses(values: Any, *, place: str) -> tuple[tuple[Address, ...], dict[Address, date]]:
    """Return the addresses in their order, and the first day of those that have one."""
    text = 'sourceAddresses must be a list such as ["192.0.2.10", {address: "192.0.2.11", since: 2026-12-01}]'
    if not isinstance(values, list):
        raise InvalidTransportsFile(f"{place}: {text}.")
    since: dict[Address, date] = {}
    addresses = []
    for value in values:
        entry = _mapping(value, place=f"{place}, sourceAddresses") if isinstance(value, dict) else {"address": value}
        _refuse_unknown(entry, {"address", "since"}, place=f"{place}, sourceAddresses")
        try:
            address = ip_address(entry["address"] if isinstance(entry["address"], str) else "")
        except (KeyError, ValueError) as error:
            raise InvalidTransportsFile(f"{place}: {text}.") from error
        addresses.append(address)
        if "since" in entry:
            since[address] = _day(entry["since"], place=f"{place}, {address}")
    return tuple(addresses), since


def _day(value: Any, *, place: str) -> date:
    """Return a day, which YAML reads as a date and JSON as a text."""
    try:
        # A datetime is a date, too.
        day = date.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(day, date) and not isinstance(day, datetime):
            return day
    except ValueError:
        pass
    raise InvalidTransportsFile(f"{place}: since must be a day such as 2026-12-01.")


def _overflow(entry: Mapping[str, Any], *, place: str) -> Overflow:
    value = entry.get("overflow", Overflow.NEXT)
    if value not in [*Overflow]:
        raise InvalidTransportsFile(f"{place}: overflow must be one of {', '.join(Overflow)}.")
    return Overflow(value)


def _check_days(transports: Mapping[str, TransportSpec]) -> None:
    """Refuse an address that is new in one transport and not in another: receivers see one address."""
    known: dict[Address, date | None] = {}
    for name, spec in transports.items():
        for address in spec.source_addresses:
            if known.setdefault(address, spec.since.get(address)) != spec.since.get(address):
                raise InvalidTransportsFile(f"transports, {name}: {address} has another since elsewhere.")


def _leave_when_listed(entry: Mapping[str, Any], sources: Sequence[Address], *, place: str) -> bool:
    value = entry.get("leaveWhenListed", False)
    if not isinstance(value, bool):
        raise InvalidTransportsFile(f"{place}: leaveWhenListed must be true or false.")
    if value and not sources:
        raise InvalidTransportsFile(f"{place}: leaveWhenListed needs the addresses in sourceAddresses.")
    return value


def _relay(entry: Mapping[str, Any], directory: Path, *, place: str) -> RelayUrl:
    if ("url" in entry) == ("urlFile" in entry):
        raise InvalidTransportsFile(f"{place}: set urlFile to the path of a file with smtp://user:password@host.")
    try:
        if "urlFile" in entry:
            return parse_smtp_url(_secret(entry, "urlFile", directory, place=place))
        url = parse_smtp_url(_text(entry, "url", place=place))
    except InvalidSmtpUrl as error:
        raise InvalidTransportsFile(f"{place}: {error}") from error
    if url.login:
        raise InvalidTransportsFile(f"{place}: a URL with a password belongs into a file. Set urlFile instead of url.")
    return url


def _secret(entry: Mapping[str, Any], key: str, directory: Path, *, place: str) -> str:
    """Return the content of a file that the entry names, relative to the transports file."""
    path = directory / _text(entry, key, place=place)
    try:
        value = path.read_text(encoding="utf-8")[:MAX_FILE_BYTES].strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InvalidTransportsFile(f"{place}: {key} {path} cannot be read: {reason}.") from error
    if not value:
        raise InvalidTransportsFile(f"{place}: {key} {path} is empty.")
    return value


def _backend(entry: Mapping[str, Any], *, place: str) -> str:
    if not (backend := _text(entry, "backend", place=place)):
        raise InvalidTransportsFile(f"{place}: set backend to the path of a class, as ANYMAIL_BACKEND.")
    return backend


def _options(entry: Mapping[str, Any], directory: Path, *, place: str) -> dict[str, Any]:
    if "settingsFile" not in entry:
        return {}
    path = directory / _text(entry, "settingsFile", place=place)
    _secret(entry, "settingsFile", directory, place=place)
    return {name.lower(): value for name, value in _mapping(_load(path), place=str(path)).items()}


def _route(name: str, entry: Any) -> TransportRoute:
    place = f"routes, {name}"
    entry = _mapping(entry, place=place)
    _refuse_unknown(entry, {"use", "failoverOn", "pacedAfterSeconds"}, place=place)
    use = _names(entry.get("use"), place=f"{place}, use")
    kinds = _names(entry.get("failoverOn", sorted(USUAL_FAILOVER)), place=f"{place}, failoverOn", may_be_empty=True)
    if unknown := set(kinds) - set(FailoverKind):
        raise InvalidTransportsFile(f"{place}: {min(unknown)!r} is unknown. Use {', '.join(FailoverKind)}.")
    failover_on = frozenset(map(FailoverKind, kinds))
    return TransportRoute(name, use, failover_on, _paced_after(entry, failover_on, place=place))


def _paced_after(entry: Mapping[str, Any], failover_on: frozenset[FailoverKind], *, place: str) -> int | None:
    value = entry.get("pacedAfterSeconds")
    if FailoverKind.PACED not in failover_on:
        if value is None:
            return None
        raise InvalidTransportsFile(f"{place}: pacedAfterSeconds needs paced in failoverOn.")
    if type(value) is int and 0 < value <= MAX_PACED_SECONDS:
        return value
    text = f"with paced in failoverOn, pacedAfterSeconds must be a whole number from 1 to {MAX_PACED_SECONDS:,}"
    raise InvalidTransportsFile(f"{place}: {text}.")


def _names(value: Any, *, place: str, may_be_empty: bool = False) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value) or not (value or may_be_empty):
        raise InvalidTransportsFile(f"{place} must be a list of names, such as [own, relay].")
    return tuple(value)


def _check_route(route: TransportRoute, transports: Mapping[str, Any], routes: Mapping[str, Any]) -> None:
    """Refuse a cycle: a route that leads to a route, or twice to one transport."""
    for name in route.use:
        if name not in transports and name in routes:
            raise InvalidTransportsFile(f"routes, {route.name}: {name!r} is a route. List transports only.")
        if name not in transports:
            raise InvalidTransportsFile(f"routes, {route.name}: there is no transport {name!r}.")
        if route.use.count(name) > 1:
            raise InvalidTransportsFile(f"routes, {route.name}: {name!r} is listed twice.")


def _workspaces(value: Any, routes: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    entries = _mapping(value, place="workspaces")
    if DEFAULT not in entries:
        raise InvalidTransportsFile(f"workspaces: set {DEFAULT} to the route of all other workspaces.")
    named = {
        key: _names([entry] if isinstance(entry, str) else entry, place=f"workspaces, {key}")
        for key, entry in entries.items()
    }
    for key, names in named.items():
        if key != DEFAULT and not is_id(key, prefix="ws_"):
            raise InvalidTransportsFile(f"workspaces: {key!r} must be {DEFAULT}, or an id such as ws_…, from /admin/.")
        if unknown := [name for name in names if name not in routes]:
            raise InvalidTransportsFile(f"workspaces, {key}: there is no route {unknown[0]!r}.")
    return named
