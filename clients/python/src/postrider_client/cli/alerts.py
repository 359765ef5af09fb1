"""`postrider alerts`."""

from operator import attrgetter
from typing import Any, Optional

import click

from postrider_client.answers import Alert
from postrider_client.cli.commands import PostriderGroup, pass_invocation
from postrider_client.cli.configuration.kinds import displayed_threshold
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.options import changes_of, field_options, given
from postrider_client.cli.output import Column

METRICS = (
    "bounce_rate", "complaint_rate", "failure_rate", "quota_used", "latency_p95", "deferred_share", "waiting", "silent",
)  # fmt: skip


def amount(alert: Alert, number: Optional[float]) -> str:
    return "" if number is None else displayed_threshold(alert.metric, number)


def state_of(alert: Alert) -> str:
    return "triggered" if alert.triggered_at else "not triggered"


ALERT_COLUMNS = (
    Column("Id", attrgetter("id"), is_whole=True),
    Column("Metric", attrgetter("metric")),
    Column("Stream", lambda alert: alert.stream or ""),
    Column("Threshold", lambda alert: amount(alert, alert.threshold)),
    Column("Now", lambda alert: amount(alert, alert.value)),
    Column("State", state_of),
)


@click.group(cls=PostriderGroup)
def alerts() -> None:
    """Manage alerts on values such as rates and the quota, about which owners and webhooks are notified."""


@alerts.command("list")
@pass_invocation
def list_alerts(invocation: Invocation) -> None:
    """List the alerts with their present values."""
    with invocation.client() as client:
        invocation.output.show_rows(client.alerts.list(), ALERT_COLUMNS)


@alerts.command("create")
@click.argument("metric", type=click.Choice(METRICS))
@click.argument("threshold", type=float, metavar="NUMBER")
@click.option("--stream", metavar="ID", help="Only emails of this stream count.")
@field_options("AlertChanges", without=("threshold",))
@pass_invocation
def create_alert(invocation: Invocation, /, *, metric: str, threshold: float, **options: Any) -> None:
    """Create an alert that begins when a value reaches a threshold.

    It is a percentage; of latency_p95 seconds, of waiting a number of emails, and of silent one of usual gaps.

    \b
    postrider alerts create quota_used 80
    postrider alerts create bounce_rate 4 --stream newsletter
    postrider alerts create silent 2 --stream receipts
    """  # noqa: D301 - click keeps the lines after this character
    with invocation.client() as client:
        alert = client.alerts.create(metric=metric, threshold=threshold, **given(options))
    invocation.output.show_result(f"The alert {alert.id} is created.", raw=alert.raw)


@alerts.command("update")
@click.argument("alert_id", metavar="ID")
@field_options("AlertChanges", threshold={"metavar": "NUMBER"})
@pass_invocation
def update_alert(invocation: Invocation, /, *, alert_id: str, **options: Any) -> None:
    """Change the threshold or the emails of an alert."""
    changes = changes_of(options)
    with invocation.client() as client:
        alert = client.alerts.update(alert_id, **changes)
    invocation.output.show_result(f"The alert {alert.id} is changed.", raw=alert.raw)


@alerts.command("delete")
@click.argument("alert_id", metavar="ID")
@pass_invocation
def delete_alert(invocation: Invocation, alert_id: str) -> None:
    """Delete an alert. Nobody is notified."""
    with invocation.client() as client:
        deleted = client.alerts.delete(alert_id)
    invocation.output.show_result(f"The alert {deleted.id} is deleted.", raw=deleted.raw)
