"""The alert rules and the dashboard in deploy/monitoring/ are valid and query metrics that exist."""

import json
import re
import subprocess
from ipaddress import ip_address

import pytest
import yaml
from django.db.models.functions import Now
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from config.heartbeats import send_heartbeat
from console.system_mail.canary.runs import start_due
from console.system_mail.models import CanaryRun
from core.api import latency
from core.delivery.bounces.replies import DeliveryStatus
from core.delivery.sources.answers import ListingAnswer
from core.delivery.transports.transports_file import TransportRoute, Transports, TransportSpec
from emails.sources.watch import SourceFinding, record_findings
from tests.emails.receivers.builders import make_limited
from tests.stack.stack import REPOSITORY
from tests.standards.tools import program

MONITORING = REPOSITORY / "deploy" / "monitoring"
RULES = yaml.safe_load((MONITORING / "prometheus-rules.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]
DASHBOARD = json.loads((MONITORING / "grafana-dashboard.json").read_text(encoding="utf-8"))
PAGE = (REPOSITORY / "docs" / "monitoring.md").read_text(encoding="utf-8")
QUERIES = [rule["expr"] for rule in RULES] + [
    target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]
]
NAME = re.compile(r"\bpostrider_\w+")

# Two web servers that return the same outcomes, and one of them stops after ten minutes.
SERIES = [
    ('up{job="postrider",instance="web1"}', "1x9 0x50"),
    ('postrider_up{instance="web1"}', "1x60"),
    ('postrider_event_delay_seconds{instance="web1",reader="feed"}', "0x9 90x50"),
    ('postrider_event_delay_seconds{instance="web1",reader="webhooks"}', "50x60"),
    ('postrider_queue_oldest_due_seconds{instance="web1"}', "0x9 360x50"),
    ('postrider_queue_oldest_due_seconds{instance="web2"}', "0x9 360x50"),
    ('postrider_transport_state{instance="web1",transport="own",state="paused"}', "0x9 1x50"),
    ('postrider_transport_state{instance="web1",transport="relay",state="paused"}', "0x60"),
    ('postrider_source_listed{instance="web1",address="192.0.2.10",list="zen.spamhaus.org"}', "0x9 1x50"),
    ('postrider_source_listed{instance="web2",address="192.0.2.10",list="zen.spamhaus.org"}', "0x9 1x50"),
    ('postrider_source_listed{instance="web1",address="192.0.2.10",list="bl.spamcop.net"}', "0x60"),
    ('postrider_receiver_pairs{instance="web1",receiver="yahoo",state="suspended"}', "0x9 1x50"),
    ('postrider_receiver_pairs{instance="web1",receiver="apple",state="suspended"}', "0x9 1x50"),
    ('postrider_receiver_waiting_recipients{instance="web1",receiver="yahoo"}', "0x9 12x50"),
    ('postrider_receiver_waiting_recipients{instance="web2",receiver="yahoo"}', "0x9 12x50"),
    ('postrider_receiver_waiting_recipients{instance="web1",receiver="apple"}', "0x60"),
    ('postrider_receiver_waiting_recipients{instance="web1",receiver="google"}', "2000x90"),
    ('postrider_outcomes_total{instance="web1",transport="smtp",verdict="deferred",reason="network"}', "0+10x60"),
    ('postrider_outcomes_total{instance="web2",transport="smtp",verdict="deferred",reason="network"}', "0+10x60"),
    ('postrider_outcomes_total{instance="web1",transport="smtp",verdict="sent",reason=""}', "0+6x60"),
    ('postrider_canary_late{instance="web1",transport="own"}', "0x9 1x50"),
    ('postrider_canary_late{instance="web2",transport="own"}', "0x9 1x50"),
    ('postrider_canary_late{instance="web1",transport="relay"}', "0x60"),
    ('postrider_canary_seconds{instance="web1",transport="relay"}', "20x9 330x50"),
    ('postrider_canary_missing{instance="web1"}', "0x9 1x50"),
    ('postrider_inbound_oldest_seconds{instance="web1"}', "0x9 330x50"),
    ('postrider_privacy_oldest_due_seconds{instance="web1",kind="erasure"}', "0x9 21660x50"),
    ('postrider_privacy_oldest_due_seconds{instance="web1",kind="export"}', "20000x60"),
    ('postrider_inbound_messages_total{instance="web1",reply="no_memory"}', "0+2x60"),
    ('postrider_inbound_messages_total{instance="web2",reply="no_memory"}', "0+2x60"),
    ('postrider_inbound_messages_total{instance="web1",reply="stored"}', "0+10x60"),
]
# Time, alert, and the labels and values of its text; None if the alert must not fire.
EXPECTED = [
    ("11m", "PostriderWebDown", None),
    ("14m", "PostriderWebDown", {"labels": {"job": "postrider", "instance": "web1"}}),
    ("12m", "PostriderRecipientsOverdue", None),
    ("20m", "PostriderRecipientsOverdue", {"value": "6m 0s"}),
    ("30m", "PostriderNotSending", None),
    ("30m", "PostriderDatabaseDown", None),
    ("11m", "PostriderEventsLate", None),
    ("14m", "PostriderEventsLate", {"labels": {"reader": "feed"}, "value": "1m 30s"}),
    ("12m", "PostriderTransportPaused", None),
    ("20m", "PostriderTransportPaused", {"labels": {"transport": "own"}}),
    ("12m", "PostriderSourceListed", None),
    ("20m", "PostriderSourceListed", {"labels": {"address": "192.0.2.10", "list": "zen.spamhaus.org"}}),
    ("30m", "PostriderReceiverSuspended", None),
    ("45m", "PostriderReceiverSuspended", {"labels": {"receiver": "yahoo"}}),
    ("50m", "PostriderReceiverSlow", None),
    ("70m", "PostriderReceiverSlow", {"labels": {"receiver": "google"}, "value": "2000"}),
    ("13m", "PostriderReceivedNotRead", None),
    ("16m", "PostriderReceivedNotRead", {"value": "5m 30s"}),
    ("10m", "PostriderReceivingRefused", None),
    ("50m", "PostriderReceivingRefused", {}),
    ("20m", "PostriderPrivacyRequestsLate", None),
    ("30m", "PostriderPrivacyRequestsLate", {"labels": {"kind": "erasure"}, "value": "6h 1m 0s"}),
    ("9m", "PostriderCanaryLate", None),
    ("15m", "PostriderCanaryLate", {"labels": {"transport": "own"}}),
    ("9m", "PostriderCanarySlow", None),
    ("15m", "PostriderCanarySlow", {"labels": {"transport": "relay"}, "value": "5m 30s"}),
    ("9m", "PostriderCanaryMissing", None),
    ("15m", "PostriderCanaryMissing", {}),
    ("10m", "PostriderDeferrals", None),
    ("50m", "PostriderDeferrals", {}),
]


@pytest.fixture
def exposed(api, settings):
    """Return the names of the samples that /metrics exposes after a request."""
    send_heartbeat(None)
    note_listing(settings)
    latency.begin_at_zero()
    make_limited("google", accepted=1)
    end_canary(settings)
    settings.TLSRPT_DOMAIN = "example.com"
    assert api.get("/me").status_code == 200
    families = list(text_string_to_metric_families(Client().get("/metrics").content.decode()))
    # A counter without samples is declared, but has no rate.
    return {sample.name for family in families for sample in family.samples}


def end_canary(settings):
    """Let a canary have come back."""
    settings.CANARY_MINUTES, settings.CANARY_ADDRESS = 15, "canary@in.demo.example"
    start_due()
    CanaryRun.objects.update(returned_at=Now(), verified_at=Now())


def note_listing(settings):
    """Let a block list have an own address."""
    address = ip_address("9.9.9.9")
    spec = TransportSpec(name="own", kind="direct", source_addresses=(address,))
    settings.TRANSPORTS = Transports(
        {"own": spec}, {"default": TransportRoute("default", ("own",))}, {"default": ("default",)}
    )
    settings.BLOCKLISTS = ["zen.spamhaus.org", "bl.spamcop.net"]
    answers = {"zen.spamhaus.org": ListingAnswer(True, ("127.0.0.2",)), "bl.spamcop.net": ListingAnswer(False)}
    record_findings({address: SourceFinding(answers=answers)})


def test_listings_are_those_of_the_settings(settings, db):
    note_listing(settings)
    lines = [line for line in scrape() if line.startswith("postrider_source_listed")]
    assert lines == [
        'postrider_source_listed{address="9.9.9.9",list="bl.spamcop.net"} 0.0',
        'postrider_source_listed{address="9.9.9.9",list="zen.spamhaus.org"} 1.0',
    ]
    settings.BLOCKLISTS = ["bl.spamcop.net"]
    record_findings({ip_address("9.9.9.9"): SourceFinding(answers={"bl.spamcop.net": ListingAnswer(None, error="x")})})
    assert sum(line.startswith("postrider_source_listed") for line in scrape()) == 1
    settings.BLOCKLISTS = []
    assert not any(line.startswith("postrider_source_listed") for line in scrape())


def scrape():
    return Client().get("/metrics").content.decode().splitlines()


def test_every_query_names_metrics_that_exist(exposed):
    used = {name for query in QUERIES for name in NAME.findall(query)}
    assert used <= exposed
    assert len(used) >= 7


def test_every_metric_is_documented_and_queried(exposed):
    families = {re.sub(r"_(bucket|count|sum|created)$", "", name) for name in exposed if name.startswith("postrider_")}
    for name in families:
        assert f"`{name}" in PAGE
        assert name in " ".join(QUERIES)


def test_verdicts_in_queries_exist():
    found = set(re.findall(r'verdict=~?"([\w|]+)"', " ".join(QUERIES)))
    assert {verdict for one in found for verdict in one.split("|")} <= {status.value for status in DeliveryStatus}
    assert found


def test_every_alert_is_documented_with_a_summary_and_an_action():
    for rule in RULES:
        assert f"| `{rule['alert']}` | {rule['labels']['severity']} |" in PAGE
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["annotations"]["action"].endswith(".")
    assert len(set(re.findall(r"^\| `(Postrider\w+)`", PAGE, re.MULTILINE))) == len(RULES)


def test_the_panels_of_the_dashboard_do_not_overlap():
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.mark.full
def test_promtool_accepts_the_rules_the_configuration_and_every_query(tmp_path):
    promtool = program("promtool", package="prometheus")
    queries = [query.replace("$__rate_interval", "5m").replace("$job", "postrider") for query in QUERIES]
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
    (tmp_path / "queries.yml").write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    for file in (MONITORING / "prometheus-rules.yml", tmp_path / "queries.yml"):
        check(promtool, "check", "rules", str(file))
    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text(encoding="utf-8"))
    config["rule_files"] = [str(MONITORING / name) for name in config["rule_files"]]
    (tmp_path / "token").write_text("token")
    config["scrape_configs"][0]["authorization"]["credentials_file"] = str(tmp_path / "token")
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    check(promtool, "check", "config", str(tmp_path / "prometheus.yml"))


@pytest.mark.full
def test_alerts_fire_on_their_condition_and_not_before(tmp_path):
    promtool = program("promtool", package="prometheus")
    scenario = {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in SERIES],
        "alert_rule_test": [
            {"eval_time": time, "alertname": name, "exp_alerts": [] if alert is None else [expected(name, **alert)]}
            for time, name, alert in EXPECTED
        ],
    }
    rules = [str(MONITORING / "prometheus-rules.yml")]
    (tmp_path / "test.yml").write_text(
        yaml.safe_dump({"rule_files": rules, "evaluation_interval": "1m", "tests": [scenario]})
    )
    check(promtool, "test", "rules", str(tmp_path / "test.yml"))


def expected(name, *, labels=None, value=""):
    (rule,) = (rule for rule in RULES if rule["alert"] == name)
    summary = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda label: labels[label[1]], rule["annotations"]["summary"])
    summary = re.sub(r"\{\{ \$value .*?\}\}", value, summary)
    return {
        "exp_labels": {**rule["labels"], **(labels or {})},
        "exp_annotations": {**rule["annotations"], "summary": summary},
    }


def check(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
