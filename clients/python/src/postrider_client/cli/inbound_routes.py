"""`postrider inbound routes` and `postrider inbound blocks`."""

from operator import attrgetter
from typing import Any, Optional

import click

from postrider_client.cli.commands import PostriderGroup, pass_invocation
from postrider_client.cli.error_messages import UnknownName
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.options import changes_of, facts_of, field_options, given
from postrider_client.cli.output import Column
from postrider_client.inbound_answers import Route


def address_of(route: Route) -> str:
    return f"{route.match}@{route.domain}"


ROUTE_COLUMNS = (
    Column("Id", attrgetter("id")),
    Column("Name", attrgetter("name")),
    Column("Address", address_of),
    Column("Priority", attrgetter("priority")),
    Column("Action", attrgetter("action")),
    Column("Webhooks", lambda route: route.webhook_ids or "all"),
    Column("State", lambda route: "active" if route.active else "inactive"),
)
BLOCK_COLUMNS = (
    Column("Id", attrgetter("id")),
    Column("Sender", attrgetter("sender")),
    Column("Created", attrgetter("created_at")),
)
# The properties of a route beside its name and address, as options of `create` and `update`.
with_properties = field_options(
    "RouteChanges",
    without=("name", "domain", "match"),
    webhookIds={"names": ("--webhook",), "metavar": "ID", "help": "Only this webhook. Repeatable."},
    forwardTo={"metavar": "ADDRESS", "help": "Forward email to this address, which has to confirm it. Repeatable."},
    includeRaw={"names": ("--include-raw/--no-raw",)},
    requireAuthenticated={"names": ("--require-authenticated/--accept-unproven",)},
    spamAbove={"metavar": "SCORE", "help": "Block emails with this spam score or more."},
    repliesOnly={"names": ("--replies-only/--all-emails",)},
    storeDays={"help": "0 deletes an email when it is delivered."},
    active={"names": ("--active/--inactive",)},
)


@click.group(cls=PostriderGroup)
def routes() -> None:
    """Manage routes: the rules for addresses that receive email."""


@routes.command("list")
@click.option("--domain", metavar="DOMAIN", help="Only routes of this domain, or of `shared`.")
@pass_invocation
def list_routes(invocation: Invocation, domain: Optional[str]) -> None:
    """List the routes in the order in which they are tried."""
    with invocation.client() as client:
        invocation.output.show_rows(client.inbound.routes.list(domain=domain), ROUTE_COLUMNS)


@routes.command("show")
@click.argument("route_id", metavar="ID")
@pass_invocation
def show_route(invocation: Invocation, route_id: str) -> None:
    """Show the properties of a route."""
    with invocation.client() as client:
        route = client.inbound.routes.get(route_id)
    invocation.output.show_fields(_fields_of(route), raw=route.raw)


@routes.command("create")
@click.argument("address", metavar="PATTERN@DOMAIN")
@click.option("--name", required=True, metavar="TEXT")
@with_properties
@pass_invocation
def create_route(invocation: Invocation, /, *, address: str, name: str, **properties: Any) -> None:
    """Create a route for the addresses that match a pattern; `@shared` is the domain of the service.

    \b
    postrider inbound routes create 'support*@in.example.com' --name Support
    postrider inbound routes create '*+orders@shared' --name Orders --store-days 7
    """  # noqa: D301 - click keeps the lines after this character
    match, at, domain = address.rpartition("@")
    if not (match and at and domain):
        raise click.BadParameter(f"{address!r} is not a pattern such as support*@in.example.com.")
    with invocation.client() as client:
        route = client.inbound.routes.create(name=name, domain=domain, match=match, **given(properties))
    invocation.output.show_result(f"{route.id} decides about {address_of(route)}.", raw=route.raw)


@routes.command("update")
@click.argument("route_id", metavar="ID")
@click.option("--name", metavar="TEXT")
@click.option("--domain", metavar="DOMAIN")
@click.option("--match", metavar="PATTERN")
@with_properties
@pass_invocation
def update_route(invocation: Invocation, /, *, route_id: str, **properties: Any) -> None:
    """Change the given properties of a route."""
    changes = changes_of(properties)
    with invocation.client() as client:
        route = client.inbound.routes.update(route_id, **changes)
    invocation.output.show_result(f"The route {route.name} is changed.", raw=route.raw)


@routes.command("delete")
@click.argument("route_id", metavar="ID")
@pass_invocation
def delete_route(invocation: Invocation, route_id: str) -> None:
    """Delete a route. Its addresses are refused, unless another route matches."""
    with invocation.client() as client:
        deleted = client.inbound.routes.delete(route_id)
    invocation.output.show_result(f"{route_id} is deleted.", raw=deleted.raw)


@routes.command("match")
@click.argument("address", metavar="ADDRESS")
@pass_invocation
def match_route(invocation: Invocation, address: str) -> None:
    """Show the route that decides about an address, and the reply of the mail server to it."""
    with invocation.client() as client:
        found = client.inbound.routes.match(address)
    route = found.route and f"{found.route.name} ({found.route.id})"
    invocation.output.show_fields({"Reply": found.reply, "Route": route}, raw=found.raw)


@click.group(cls=PostriderGroup)
def blocks() -> None:
    """Manage the senders from which the workspace receives nothing."""


@blocks.command("list")
@pass_invocation
def list_blocks(invocation: Invocation) -> None:
    """List the blocked senders, newest first."""
    with invocation.client() as client:
        invocation.output.show_rows(client.inbound.blocks.list(), BLOCK_COLUMNS)


@blocks.command("add")
@click.argument("sender", metavar="SENDER")
@pass_invocation
def add_block(invocation: Invocation, sender: str) -> None:
    """Block an address, or a domain with all of its addresses."""
    with invocation.client() as client:
        block = client.inbound.blocks.create(sender)
    invocation.output.show_result(f"{block.sender} is blocked.", raw=block.raw)


@blocks.command("remove")
@click.argument("sender", metavar="SENDER")
@pass_invocation
def remove_block(invocation: Invocation, sender: str) -> None:
    """Receive email of a sender again, given as it is listed or by the id of the block."""
    with invocation.client() as client:
        names = (sender, sender.lower())
        found = next((one for one in client.inbound.blocks.list() if one.id in names or one.sender in names), None)
        if found is None:
            raise UnknownName(f"This workspace blocks no sender {sender}.")
        removed = client.inbound.blocks.delete(found.id)
    invocation.output.show_result(f"{removed.sender} is no longer blocked.", raw=removed.raw)


def _fields_of(route: Route) -> dict[str, Any]:
    return {
        "Id": route.id,
        "Name": route.name,
        "Address": address_of(route),
        **facts_of(route, without=("domain", "match"), webhook_ids="Webhooks"),
        "Webhooks": route.webhook_ids or "all",
        "Forward to": route.forward_to or "none",
    }
