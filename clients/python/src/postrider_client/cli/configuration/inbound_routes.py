"""Routes of received email: a file names their webhooks by URL, which the service knows by id."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from postrider_client.client import Postrider

WEBHOOKS, WEBHOOK_IDS = "webhooks", "webhookIds"
PAGE = 100


@dataclass(frozen=True)
class DescribedRoute:
    """A route with `webhooks`, the URLs of its webhooks, in place of their ids."""

    id: str
    created_at: datetime
    raw: Mapping[str, Any]


def described_routes(client: Postrider) -> Iterator[DescribedRoute]:
    routes = list(client.inbound.routes.list(limit=PAGE))
    is_limited = any(route.webhook_ids for route in routes)
    urls = {one.id: one.url for one in client.webhooks.list(limit=PAGE)} if is_limited else {}
    for route in routes:
        fields = {name: value for name, value in route.raw.items() if name != WEBHOOK_IDS}
        # A deleted webhook has no URL.
        fields[WEBHOOKS] = sorted(urls.get(one, one) for one in route.webhook_ids)
        yield DescribedRoute(route.id, route.created_at, fields)


def with_webhook_ids(client: Postrider, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a route with the ids of its webhooks. Raises click.ClickException for an unknown URL."""
    fields = {name: value for name, value in values.items() if name != WEBHOOKS}
    if values.get(WEBHOOKS) is None:
        return fields
    ids: dict[str, str] = {}
    # The oldest of several webhooks with the same URL is the one in the file.
    for one in sorted(client.webhooks.list(limit=PAGE), key=lambda webhook: webhook.created_at):
        ids.setdefault(one.url, one.id)
    for url in values[WEBHOOKS]:
        if url not in ids:
            raise click.ClickException(f"The workspace has no webhook {url.partition('?')[0]}. Add it to `webhooks`.")
    return {**fields, WEBHOOK_IDS: [ids[url] for url in values[WEBHOOKS]]}


def label_of(values: Mapping[str, Any]) -> str:
    return f"{values['match']}@{values['domain']}"
