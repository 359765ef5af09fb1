"""`postrider bounces`."""

from operator import attrgetter
from typing import Any, Union

import click

from postrider_client.answers import BounceReason, BouncingHost
from postrider_client.cli.commands import PostriderCommand, pass_invocation
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.options import range_options
from postrider_client.cli.output import Column, note


def share_of(one: Union[BounceReason, BouncingHost]) -> str:
    return f"{one.share:.1%}"


REASON_COLUMNS = (
    Column("Reason", attrgetter("reason")),
    Column("Recipients", attrgetter("recipients")),
    Column("Share", share_of),
    Column("Advice", attrgetter("advice")),
    Column("Reply", attrgetter("sample.message")),
)
HOST_COLUMNS = (
    Column("Host", attrgetter("name")),
    Column("Recipients", attrgetter("recipients")),
    Column("Share", share_of),
    Column("Mostly", attrgetter("top_reason")),
    Column("Advice", attrgetter("advice")),
)


@click.command(cls=PostriderCommand)
@click.option("--event", type=click.Choice(["bounced", "failed", "deferred"]), default="bounced", show_default=True)
@click.option("--stream", metavar="ID", help="Only emails of this stream.")
@range_options
@pass_invocation
def bounces(invocation: Invocation, /, **query: Any) -> None:
    """Show why and where email bounces: the most frequent reasons and receiving hosts."""
    with invocation.client() as client:
        causes = client.analytics.bounces(**query)
    output = invocation.output
    if not output.is_table:
        output.show_fields({}, raw=causes.raw)
        return
    output.show_rows(causes.reasons, REASON_COLUMNS)
    output.show_rows(causes.hosts, HOST_COLUMNS)
    if causes.other_hosts:
        note(f"{causes.other_hosts:,} recipients at other hosts.")
    if causes.counted_from > causes.from_:
        note(f"Only the newest events are counted, since {causes.counted_from.astimezone():%Y-%m-%d %H:%M:%S}.")
