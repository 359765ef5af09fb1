"""`postrider latency`."""

from operator import attrgetter
from typing import Any, Optional

import click

from postrider_client.cli.commands import PostriderCommand, pass_invocation
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.options import range_options
from postrider_client.cli.output import Column, note


def seconds(value: Optional[float]) -> str:
    return "-" if value is None else f"{value:,.1f} s"


def share(value: Optional[float]) -> str:
    return "-" if value is None else f"{value:.1%}"


COLUMNS = (
    Column("Group", lambda one: getattr(one, "name", "All")),
    Column("Recipients", attrgetter("outcome.count")),
    Column("First attempt, 95%", lambda one: seconds(one.first_attempt.p95)),
    Column("Outcome, 50%", lambda one: seconds(one.outcome.p50)),
    Column("95%", lambda one: seconds(one.outcome.p95)),
    Column("99%", lambda one: seconds(one.outcome.p99)),
    Column("Within 10 s", lambda one: share(one.outcome.within10_seconds)),
    Column("60 s", lambda one: share(one.outcome.within60_seconds)),
    Column("10 min", lambda one: share(one.outcome.within10_minutes)),
)


@click.command(cls=PostriderCommand)
@click.option("--by", type=click.Choice(["stream", "receiver"]), help="Also each stream or receiver.")
@range_options
@pass_invocation
def latency(invocation: Invocation, /, **query: Any) -> None:
    """Show how long recipients take to their first attempt and to their outcome."""
    with invocation.client() as client:
        report = client.analytics.latency(**query)
    output = invocation.output
    if not output.is_table:
        output.show_fields({}, raw=report.raw)
        return
    output.show_rows([report, *report.groups], COLUMNS)
    note(f"From {report.from_.astimezone():%Y-%m-%d %H:%M} to {report.to.astimezone():%Y-%m-%d %H:%M}.")
