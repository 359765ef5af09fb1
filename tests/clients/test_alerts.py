"""Alerts in the Python library, on the command line, in files of `postrider apply` and for assistants."""

import pytest
from postrider_client import AlertExists

from tests.clients.test_cli_apply import Shop, shop  # noqa: F401 - a fixture
from tests.clients.test_cli_mcp import call, server  # noqa: F401 - a fixture

pytestmark = pytest.mark.stack


@pytest.fixture(autouse=True)
def _no_alerts(client):
    for alert in client.alerts.list():
        client.alerts.delete(alert.id)


def test_the_library_creates_lists_changes_and_deletes_an_alert(client):
    alert = client.alerts.create(metric="bounce_rate", threshold=4.5, stream="main", email_owners=False)
    assert (alert.metric, alert.stream, alert.threshold, alert.email_owners) == ("bounce_rate", "main", 4.5, False)
    assert (alert.triggered_at, alert.last_triggered_at) == (None, None)
    with pytest.raises(AlertExists) as caught:
        client.alerts.create(metric="bounce_rate", threshold=4.5, stream="main")
    assert caught.value.alert_id == alert.id
    quota = client.alerts.create(metric="quota_used", threshold=80)
    assert (quota.stream, quota.email_owners, quota.value) == (None, True, None)
    assert [one.id for one in client.alerts.list(limit=1)] == [quota.id, alert.id]
    assert client.alerts.update(alert.id, threshold=5).threshold == 5
    assert client.alerts.get(alert.id).threshold == 5
    assert client.alerts.delete(alert.id).deleted
    assert [one.id for one in client.alerts.list()] == [quota.id]


def test_commands(cli, client):
    alert = cli.run("alerts", "create", "quota_used", "80", "--no-email-owners").json
    assert (alert["metric"], alert["threshold"], alert["emailOwners"]) == ("quota_used", 80, False)
    (line,) = [line for line in cli.screen("alerts", "list").text.splitlines() if alert["id"] in line]
    assert line.split() == [alert["id"], "quota_used", "80%", "not", "triggered"]
    changed = cli.run("alerts", "update", alert["id"], "--threshold", "90", "--email-owners").json
    assert (changed["threshold"], changed["emailOwners"]) == (90, True)
    assert cli.run("alerts", "update", alert["id"]).code == 2
    silence = cli.run("alerts", "create", "silent", "2").json
    (line,) = [line for line in cli.screen("alerts", "list").text.splitlines() if silence["id"] in line]
    assert "2 usual gaps" in line
    refused = cli.run("alerts", "create", "quota_used", "101")
    assert (refused.code, "100" in refused.errors) == (5, True), refused.errors
    refused = cli.run("alerts", "create", "bounce_rate", "4", "--stream", "unknown")
    assert (refused.code, "unknown" in refused.errors) == (5, True), refused.errors
    assert cli.run("alerts", "delete", alert["id"]).json == {"id": alert["id"], "deleted": True}
    assert cli.run("alerts", "delete", alert["id"]).code == 4


def test_an_assistant_lists_alerts(server, client):  # noqa: F811
    alert = client.alerts.create(metric="complaint_rate", threshold=0.1)
    assert call(server, "list_alerts")["alerts"] == [client.alerts.get(alert.id).raw]


FILE = """
streams:
  - id: newsletter
    name: Newsletter
alerts:
  - metric: bounce_rate
    threshold: 4
    stream: newsletter
  - metric: quota_used
    threshold: 80
    emailOwners: false
  - metric: latency_p95
    threshold: 60
"""


def test_alerts_follow_the_file_and_the_initial_file_has_them(shop: Shop):  # noqa: F811
    assert shop.plan(text=FILE) == [
        ("create", "stream", "newsletter"),
        ("create", "alert", "bounce_rate of newsletter at 4%"),
        ("create", "alert", "quota_used at 80%"),
        ("create", "alert", "latency_p95 at 60 s"),
    ]
    shop.apply("--yes")
    assert shop.plan("--prune") == []
    latency, quota, bounces = shop.client.alerts.list()
    shop.client.alerts.delete(latency.id)
    shop.client.alerts.update(quota.id, email_owners=True)
    shop.client.alerts.update(bounces.id, threshold=5)
    assert shop.plan("--prune") == [
        ("create", "alert", "bounce_rate of newsletter at 4%"),
        ("update", "alert", "quota_used at 80%"),
        ("create", "alert", "latency_p95 at 60 s"),
        ("delete", "alert", "bounce_rate of newsletter at 5%"),
    ]
    shop.apply("--yes", "--prune")
    assert shop.plan("--prune") == []
    assert {(one.metric, one.threshold, one.email_owners) for one in shop.client.alerts.list()} == {
        ("bounce_rate", 4, True), ("quota_used", 80, False), ("latency_p95", 60, True)
    }  # fmt: skip
    assert shop.initial()["alerts"] == [
        {"metric": "quota_used", "threshold": 80.0, "emailOwners": False},
        {"metric": "bounce_rate", "stream": "newsletter", "threshold": 4.0},
        {"metric": "latency_p95", "threshold": 60.0},
    ]
    assert shop.plan("--prune") == []


def test_an_alert_twice_and_a_wrong_threshold_are_errors_of_the_file(shop: Shop):  # noqa: F811
    twice = "alerts:\n  - metric: quota_used\n    threshold: 80\n  - metric: quota_used\n    threshold: 80.0\n"
    result = shop.apply("--yes", text=twice)
    assert (result.code, "The same alert is in line 2 already." in result.errors) == (1, True), result.errors
    result = shop.apply("--yes", text="alerts:\n  - metric: quota_used\n    threshold: lots\n")
    assert "postrider.yaml:3: alerts[0].threshold: This must be a number." in result.errors
