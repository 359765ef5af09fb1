"""`postrider streams`."""

from operator import attrgetter
from typing import Any

import click

from postrider_client.answers import Stream
from postrider_client.cli.commands import PostriderGroup, pass_invocation
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.options import changes_of, facts_of, field_options, given
from postrider_client.cli.output import Column


def state_of(stream: Stream) -> str:
    if stream.archived_at:
        return "archived"
    return "paused" if stream.paused_at else "active"


STREAM_COLUMNS = (
    Column("Id", attrgetter("id"), is_whole=True),
    Column("Name", attrgetter("name")),
    Column("Kind", attrgetter("kind")),
    Column("Unsubscribe", attrgetter("unsubscribe")),
    Column("Priority", attrgetter("priority")),
    Column("State", state_of),
    Column("Emails in 30 days", lambda stream: stream.counts.total),
)
# The properties that can be changed, as options of `create` and `update`.
with_properties = field_options(
    "StreamChanges",
    without=("name",),
    ownBounces={"names": ("--own-bounces/--shared-bounces",)},
    ignoresUnsubscribes={"names": ("--ignores-unsubscribes/--obeys-unsubscribes",)},
    public={"names": ("--public/--private",)},
    transportRoute={"metavar": "NAME", "help": 'One of the operator\'s routes; "" for the usual one.'},
)


@click.group(cls=PostriderGroup)
def streams() -> None:
    """Manage streams: kinds of email, each with its own unsubscribes and complaints."""


@streams.command("list")
@pass_invocation
def list_streams(invocation: Invocation) -> None:
    """List the streams: `main`, which every workspace has, and others."""
    with invocation.client() as client:
        invocation.output.show_rows(client.streams.list(), STREAM_COLUMNS)


@streams.command("show")
@click.argument("stream_id", metavar="ID")
@pass_invocation
def show_stream(invocation: Invocation, stream_id: str) -> None:
    """Show the properties of a stream."""
    with invocation.client() as client:
        stream = client.streams.get(stream_id)
    invocation.output.show_fields(_fields_of(stream), raw=stream.raw)


@streams.command("create")
@click.argument("stream_id", metavar="ID")
@click.option("--name", required=True, metavar="TEXT", help="Recipients see it.")
@click.option("--kind", type=click.Choice(["transactional", "bulk"]), help="It cannot be changed later.")
@with_properties
@pass_invocation
def create_stream(invocation: Invocation, /, *, stream_id: str, **properties: Any) -> None:
    """Create a stream.

    \b
    postrider streams create newsletter --name Newsletter --kind bulk
    postrider streams create alerts --name Alerts --unsubscribe none
    """  # noqa: D301 - click keeps the lines after this character
    with invocation.client() as client:
        stream = client.streams.create(id=stream_id, **given(properties))
    message = f"The stream {stream.id} is created. Send in it with `postrider send --stream {stream.id}`."
    invocation.output.show_result(message, raw=stream.raw)


@streams.command("update")
@click.argument("stream_id", metavar="ID")
@click.option("--name", metavar="TEXT", help="Recipients see it.")
@with_properties
@pass_invocation
def update_stream(invocation: Invocation, /, *, stream_id: str, **properties: Any) -> None:
    """Change the given properties of a stream."""
    changes = changes_of(properties)
    with invocation.client() as client:
        stream = client.streams.update(stream_id, **changes)
    invocation.output.show_result(f"The stream {stream.id} is changed.", raw=stream.raw)


@streams.command("archive")
@click.argument("stream_id", metavar="ID")
@pass_invocation
def archive_stream(invocation: Invocation, stream_id: str) -> None:
    """Stop accepting emails of a stream. Its suppressions and counts stay."""
    with invocation.client() as client:
        stream = client.streams.archive(stream_id)
    invocation.output.show_result(f"The stream {stream.id} is archived.", raw=stream.raw)


@streams.command("unarchive")
@click.argument("stream_id", metavar="ID")
@pass_invocation
def unarchive_stream(invocation: Invocation, stream_id: str) -> None:
    """Let a stream accept emails again."""
    with invocation.client() as client:
        stream = client.streams.unarchive(stream_id)
    invocation.output.show_result(f"The stream {stream.id} accepts emails.", raw=stream.raw)


def _fields_of(stream: Stream) -> dict[str, Any]:
    counts = {f"{name.capitalize()} in 30 days": count for name, count in stream.raw["counts"].items()}
    facts = facts_of(stream, without=("archived_at", "paused_at", "counts"), paused_reason="Reason")
    return {**facts, "State": state_of(stream), **counts}
