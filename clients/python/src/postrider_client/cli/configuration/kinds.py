"""The kinds of objects that a file describes: how each is identified, read, compared, created, changed and deleted."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Callable, Optional
from urllib.parse import urlsplit

from postrider_client.answers import Webhook
from postrider_client.cli.configuration import inbound_routes
from postrider_client.client import Postrider
from postrider_client.wire import argument_name
from postrider_client.workspace_answers import ManagedKey

PAGE = 100
Values = Mapping[str, Any]
# The name of the API keys that `postrider apply` creates for itself with a management key.
TEMPORARY_KEY = "postrider apply"
# The stream that every workspace has, and the fields of a stream that cannot be changed.
MAIN = "main"
FIXED = ("id", "kind")
# The units of alerts that are not in percent.
UNITS = {"latency_p95": " s", "waiting": " emails", "silent": " usual gaps"}


@dataclass(frozen=True)
class Place:
    """A workspace with the clients that manage it.

    client: a client with an API key.
    manager: a client for the management API.
    """

    workspace_id: str
    client: Postrider
    manager: Postrider


@dataclass(frozen=True)
class Kind:
    """A kind of object.

    section: the list of these objects in a file.
    identity: the fields that identify an object.
    optional: fields of identity that may be absent.
    fixed: fields that are set at the creation only.
    unchangeable: fields whose change is an error.
    defaults: values of an existing object that the file does not mention.
    normal: functions that make equal values of a field equal.
    order: the place of an object among those of its kind when they are created; they are deleted in reverse.
    is_surplus: whether an object that is not in the file is deleted with `--prune`.
    archives: whether it is archived instead.
    """

    name: str
    section: str
    identity: tuple[str, ...]
    list: Callable[[Place], Iterable[Any]]
    create: Callable[[Place, Values], Any]
    update: Callable[[Place, str, Values], Any]
    delete: Callable[[Place, str], Any]
    read: Callable[[Place, Any], Values] = lambda _, item: item.raw
    optional: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    unchangeable: tuple[str, ...] = ()
    defaults: Values = field(default_factory=dict)
    is_surplus: Callable[[Any], bool] = lambda _: True
    archives: bool = False
    normal: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    label: Callable[[Values], str] = lambda values: str(values["name"])
    order: Callable[[Values], int] = lambda _: 0

    def identity_of(self, values: Values) -> tuple[Any, ...]:
        return tuple(self.normalized(name, values.get(name)) for name in self.identity)

    def normalized(self, name: str, value: Any) -> Any:
        return self.normal[name](value) if name in self.normal else value


def arguments(values: Values) -> dict[str, Any]:
    """Return fields of the API as arguments of the library: htmlContent is html_content."""
    return {argument_name(name): value for name, value in values.items()}


def displayed_url(values: Values) -> str:
    """Return the URL of a webhook without the parts that may contain a secret."""
    url = urlsplit(values["url"])
    return f"{url.scheme}://{url.hostname}{f':{url.port}' if url.port else ''}{url.path}{'?…' if url.query else ''}"


def decimal(number: Any) -> Any:
    """Return 4 and 4.0 as the same number; the service refuses anything else."""
    return float(number) if isinstance(number, int) else number


def displayed_alert(values: Values) -> str:
    stream = f" of {values['stream']}" if values.get("stream") else ""
    return f"{values['metric']}{stream} at {displayed_threshold(values['metric'], float(values['threshold']))}"


def displayed_threshold(metric: str, number: float) -> str:
    """Return a threshold, or a value, of an alert with its unit."""
    return f"{number:,.10g}{UNITS.get(metric, '%')}"


def subdomain_of(tracking: Optional[Mapping[str, Any]]) -> Optional[str]:
    """Return the first label of a tracking host, as a file or the service describes it."""
    if not tracking:
        return None
    return str(tracking["subdomain"] if "subdomain" in tracking else tracking["host"].partition(".")[0])


def _create_domain(place: Place, values: Values) -> None:
    domain = place.client.domains.create(values["name"])
    present = domain.raw
    changes = {name: value for name, value in values.items() if name != "name" and value != present.get(name)}
    if changes:
        place.client.domains.update(domain.id, **arguments(changes))


def is_received(receiving: Any) -> bool:
    """Return whether email to a domain is received, as a file or the service describes it."""
    return bool(receiving["enabled"] if isinstance(receiving, Mapping) else receiving)


def _create_route(place: Place, values: Values) -> None:
    place.client.inbound.routes.create(**arguments(inbound_routes.with_webhook_ids(place.client, values)))


def _update_route(place: Place, route_id: str, changes: Values) -> None:
    fields = arguments(inbound_routes.with_webhook_ids(place.client, changes))
    place.client.inbound.routes.update(route_id, **fields)


def _create_webhook(place: Place, values: Values) -> Webhook:
    fields = {name: value for name, value in values.items() if name != "active"}
    webhook = place.client.webhooks.create(**fields)
    if values.get("active", True):
        return webhook
    place.client.webhooks.update(webhook.id, active=False)
    return webhook


def _create_stream(place: Place, values: Values) -> None:
    """Create a stream. A new workspace has the stream `main` already."""
    fields = {name: value for name, value in values.items() if name != "archived"}
    if values["id"] == MAIN:
        place.client.streams.update(MAIN, **arguments({name: fields[name] for name in fields if name not in FIXED}))
        return
    place.client.streams.create(**arguments(fields))
    if values.get("archived"):
        place.client.streams.archive(values["id"])


def _update_stream(place: Place, stream_id: str, changes: Values) -> None:
    fields = {name: value for name, value in changes.items() if name != "archived"}
    if fields:
        place.client.streams.update(stream_id, **arguments(fields))
    if changes.get("archived") is True:
        place.client.streams.archive(stream_id)
    if changes.get("archived") is False:
        place.client.streams.unarchive(stream_id)


def _active_keys(place: Place) -> Iterable[ManagedKey]:
    now = datetime.now(timezone.utc)
    for key in place.manager.workspaces.keys.list(place.workspace_id, limit=PAGE):
        is_expired = key.expires_at is not None and key.expires_at <= now
        if key.revoked_at is None and not is_expired and key.name != TEMPORARY_KEY:
            yield key


def normal_rules(rules: Optional[Values]) -> Optional[Values]:
    """Return recipient rules as the service stores them; null is none."""
    if rules is None:
        return None
    given = {name: value for name, value in rules.items() if value is not None}
    allow = given.get("allow")
    entries: dict[str, Any] = (
        {} if allow is None else {"allow": list(dict.fromkeys(_normal_entry(str(entry)) for entry in allow))}
    )
    if caps := given.pop("caps", None):
        entries["caps"] = [{"per": "recipient", "exceeding": "refuse", **cap} for cap in caps]
    return {"otherwise": "refuse", **given, **entries}


def _normal_entry(entry: str) -> str:
    local, at, domain = entry.strip().casefold().rpartition("@")
    wildcard = "*." if domain.startswith("*.") else ""
    with suppress(UnicodeError):
        domain = wildcard + domain.removeprefix(wildcard).encode("idna").decode()
    return f"{local}{at}{domain}"


def _update_nothing(place: Place, object_id: str, changes: Values) -> None:
    """Blocked senders have no other fields than their identity."""


def _read_template(place: Place, item: Any) -> Values:
    """Return the fields of a template; the layout by its alias, as in the file."""
    values = place.client.templates.get(item.id).raw
    layout = values.get("layoutId")
    return {**values, "layoutId": place.client.templates.get(layout).alias or layout} if layout else values


def _event_names(events: Optional[Iterable[str]]) -> list[str]:
    return sorted({name.removeprefix("email.") for name in events or ()})


def _header_names(headers: Optional[Iterable[str]]) -> list[str]:
    """The service does not show the values."""
    return sorted(name.lower() for name in headers or ())


def _read_stream(_: Place, item: Any) -> Values:
    return {**item.raw, "archived": item.archived_at is not None}


# In the order of creation; objects are deleted in the reverse order.
KINDS = (
    Kind(
        "domain",
        "domains",
        identity=("name",),
        list=lambda place: place.client.domains.list(limit=PAGE),
        create=_create_domain,
        update=lambda place, domain_id, changes: place.client.domains.update(domain_id, **arguments(changes)),
        delete=lambda place, domain_id: place.client.domains.delete(domain_id),
        normal={"name": lambda name: str(name).lower().rstrip("."), "tracking": subdomain_of, "receiving": is_received},
    ),
    Kind(
        "template",
        "templates",
        identity=("alias",),
        unchangeable=("kind",),
        list=lambda place: place.client.templates.list(limit=PAGE),
        create=lambda place, values: place.client.templates.create(**arguments(values)),
        update=lambda place, template_id, changes: place.client.templates.update(template_id, **arguments(changes)),
        delete=lambda place, template_id: place.client.templates.delete(template_id),
        read=_read_template,
        normal={
            "textContent": lambda text: text or "",
            "subject": lambda text: text or "",
            "locales": lambda texts: texts or {},
            "fallback": lambda locales: list(locales or ()),
        },
        label=lambda values: str(values["alias"] or values["name"]),
        order=lambda values: {"partial": 0, "layout": 1}.get(str(values.get("kind")), 2),
    ),
    Kind(
        "stream",
        "streams",
        identity=("id",),
        unchangeable=("kind",),
        defaults={"archived": False},
        list=lambda place: place.client.streams.list(limit=PAGE),
        create=_create_stream,
        update=_update_stream,
        delete=lambda place, stream_id: place.client.streams.archive(stream_id),
        read=_read_stream,
        is_surplus=lambda stream: stream.id != MAIN and stream.archived_at is None,
        archives=True,
        label=lambda values: str(values["id"]),
    ),
    Kind(
        "alert",
        "alerts",
        identity=("metric", "stream", "threshold"),
        optional=("stream",),
        list=lambda place: place.client.alerts.list(limit=PAGE),
        create=lambda place, values: place.client.alerts.create(**arguments(values)),
        update=lambda place, alert_id, changes: place.client.alerts.update(alert_id, **arguments(changes)),
        delete=lambda place, alert_id: place.client.alerts.delete(alert_id),
        normal={"stream": lambda stream: stream or None, "threshold": decimal},
        label=displayed_alert,
    ),
    Kind(
        "webhook",
        "webhooks",
        identity=("url",),
        list=lambda place: place.client.webhooks.list(limit=PAGE),
        create=_create_webhook,
        update=lambda place, webhook_id, changes: place.client.webhooks.update(webhook_id, **changes),
        delete=lambda place, webhook_id: place.client.webhooks.delete(webhook_id),
        normal={"events": _event_names, "streams": lambda names: sorted(names or ()), "headers": _header_names},
        label=displayed_url,
    ),
    Kind(
        "route",
        "routes",
        identity=("domain", "match"),
        list=lambda place: inbound_routes.described_routes(place.client),
        create=_create_route,
        update=_update_route,
        delete=lambda place, route_id: place.client.inbound.routes.delete(route_id),
        normal={"webhooks": lambda urls: sorted(urls or ()), "match": lambda pattern: str(pattern).lower()},
        label=inbound_routes.label_of,
    ),
    Kind(
        "blocked sender",
        "blocks",
        identity=("sender",),
        list=lambda place: place.client.inbound.blocks.list(limit=PAGE),
        create=lambda place, values: place.client.inbound.blocks.create(values["sender"]),
        update=_update_nothing,
        delete=lambda place, block_id: place.client.inbound.blocks.delete(block_id),
        label=lambda values: str(values["sender"]),
    ),
    Kind(
        "API key",
        "apiKeys",
        identity=("name", "scope"),
        fixed=("test", "limits", "approval"),
        normal={"name": lambda name: str(name).strip(), "recipientRules": normal_rules},
        list=_active_keys,
        create=lambda place, values: place.manager.workspaces.keys.create(place.workspace_id, **arguments(values)),
        update=lambda place, key_id, changes: place.manager.workspaces.keys.update(
            place.workspace_id, key_id, **arguments(changes)
        ),
        delete=lambda place, key_id: place.manager.workspaces.keys.revoke(place.workspace_id, key_id),
        label=lambda values: f"{values['name']} ({values['scope']})",
    ),
)
