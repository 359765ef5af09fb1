"""`/servingz`, `/readyz` and `/metrics`: their content, with and without internal access."""

from datetime import timedelta
from functools import partial

import psycopg
import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from redis import Redis

from config.heartbeats import PREFIX, send_heartbeat
from config.metrics import METRIC_READERS
from config.web import stop
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.workspaces.models import Workspace
from emails.models import QueueEntry
from tests.emails.builders import BOUNCED, LATER, OK, claim_entries, deliver, send
from tests.emails.test_stats import later
from tests.rows import each

pytestmark = pytest.mark.django_db

TOKEN = "a-token-of-twenty-characters"
EXTERNAL = {"REMOTE_ADDR": "203.0.113.9"}
UNREACHABLE_REDIS = "redis://127.0.0.1:1/0"


@pytest.fixture(autouse=True)
def _worker():
    send_heartbeat(None)


def probe(path, **meta):
    response = Client().get(path, **meta)
    return response.status_code, response.json()


readyz, servingz = partial(probe, "/readyz"), partial(probe, "/servingz")


def metrics(**meta):
    response = Client().get("/metrics", **meta)
    assert response.status_code == 200, response.content
    families = text_string_to_metric_families(response.content.decode())
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value for family in families for sample in family.samples
    }


def make_due(**ago):
    QueueEntry.objects.update(due_at=timezone.now() - timedelta(**ago))


def test_probes_answer_to_any_host_name_and_the_details_do_not(settings):
    settings.ALLOWED_HOSTS = ["mail.example.com"]
    paths = {"/healthz": 200, "/servingz": 200, "/readyz": 400, "/metrics": 400}
    found = {path: Client().get(path, headers={"host": "10.0.0.1:8000"}).status_code for path in paths}
    assert found == paths


class TestServingz:
    def test_overdue_email_and_a_missing_redis_do_not_matter(self, api, settings):
        settings.REDIS_URL = UNREACHABLE_REDIS
        send(api)
        make_due(hours=1)
        assert readyz()[0] == 503
        assert servingz() == servingz(**EXTERNAL) == (200, {"status": "serving"})

    def test_a_server_that_is_stopping_gets_no_new_requests(self, monkeypatch):
        monkeypatch.setattr(stop, "_stage", bytearray([stop.WAITING_FOR_PROXY]))
        assert servingz() == (503, {"status": "not serving"})


class TestReadyz:
    def test_external_requests_see_the_status_only(self, api):
        assert readyz(**EXTERNAL) == (200, {"status": "ready"})
        send(api)
        make_due(hours=1)
        assert readyz(**EXTERNAL) == (503, {"status": "not ready"})

    def test_local_requests_see_the_details(self):
        assert readyz() == (200, {"status": "ready", "complaints": [], "broker": True})

    @each("name", ["HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_FORWARDED", "HTTP_VIA"])
    def test_a_request_through_a_local_proxy_is_not_local(self, settings, name):
        assert readyz(**{name: "127.0.0.1"}) == (200, {"status": "ready"})

    @each("token", ["", TOKEN[:-1], TOKEN + "x"])
    def test_a_wrong_token_gives_no_access(self, settings, token):
        settings.METRICS_TOKEN = TOKEN
        assert readyz(**EXTERNAL, HTTP_AUTHORIZATION=f"Bearer {token}") == (200, {"status": "ready"})
        assert "broker" in readyz(**EXTERNAL, HTTP_AUTHORIZATION=f"Bearer {TOKEN}")[1]

    def test_an_empty_token_gives_no_access(self):
        assert readyz(**EXTERNAL, HTTP_AUTHORIZATION="Bearer ") == (200, {"status": "ready"})

    def test_unreachable_redis_is_shown_and_changes_nothing(self, settings):
        settings.REDIS_URL = UNREACHABLE_REDIS
        assert readyz() == (200, {"status": "ready", "complaints": [], "broker": False})

    @each(("seconds", "status"), [(880, 200), (920, 503)])
    def test_it_is_503_when_recipients_are_overdue(self, api, seconds, status):
        send(api)
        make_due(seconds=seconds)
        assert readyz()[0] == status

    def test_it_is_503_when_scheduled_emails_are_not_promoted(self, api):
        send(api, scheduledFor=later(hours=1))
        assert readyz()[0] == 200
        make_due(hours=1)
        assert readyz()[0] == 503

    @pytest.mark.parametrize(("is_embedded", "status"), [(True, 503), (False, 200)])
    def test_a_missing_worker_matters_in_embedded_mode_only(self, settings, is_embedded, status):
        settings.EMBEDDED = is_embedded
        Redis.from_url(settings.REDIS_URL).delete(*Redis.from_url(settings.REDIS_URL).keys(f"{PREFIX}*"))
        assert readyz()[0] == status

    def test_it_is_200_while_a_worker_processes_a_long_queue(self, api):
        for _ in range(2):
            send(api)
        make_due(hours=1)
        claim_entries(1)
        assert readyz()[0] == 200

    def test_suspended_workspaces_do_not_count(self, api):
        send(api)
        make_due(hours=1)
        Workspace.objects.update(suspended_at=timezone.now())
        assert readyz()[0] == 200


class TestMetrics:
    def test_external_requests_are_refused(self, settings):
        settings.METRICS_TOKEN = TOKEN
        assert Client().get("/metrics", **EXTERNAL).status_code == 403
        assert ("postrider_up",) in metrics(**EXTERNAL, HTTP_AUTHORIZATION=f"Bearer {TOKEN}")

    def test_the_queue_depth_is_reported_by_stage(self, api):
        for _ in range(4):
            send(api)
        send(api, scheduledFor=later(hours=1))
        deliver(LATER)
        claim_entries(1)
        values = metrics()
        stages = {stage: values["postrider_queue_recipients", stage] for stage in ("ready", "leased", "waiting")}
        assert stages == {"ready": 2, "leased": 1, "waiting": 1}
        assert values["postrider_queue_recipients", "scheduled"] == 1

    def test_the_oldest_due_recipient_is_reported(self, api, bobs_api):
        assert metrics()["postrider_queue_oldest_due_seconds",] == 0
        send(api)
        make_due(seconds=4000)
        send(bobs_api, **{"from": "x@bob.example"})
        assert 3900 < metrics()["postrider_queue_oldest_due_seconds",] < 4100

    def test_outcomes_are_counted_by_transport_status_and_reason(self, api):
        for _ in range(4):
            send(api)
        deliver(OK, OK, BOUNCED, DeliveryOutcome(DeliveryStatus.FAILED, Reply(0, "x"), "recipient_suppressed"))
        values = metrics()
        expected = {("delivered", "", 2), ("bounced", "rejected", 1), ("failed", "recipient_suppressed", 1)}
        for status, reason, count in expected:
            assert values["postrider_outcomes_total", *sorted(["inbox", status, reason])] == count

    def test_requests_are_timed_by_operation(self, api):
        key = ("postrider_request_seconds_count", "2xx", "email-send")
        before = metrics().get(key, 0)
        for _ in range(3):
            send(api)
        assert metrics()[key] == before + 3

    @each(
        ("method", "path", "status", "operation"),
        [
            ("get", "/compat/resend/emails", "2xx", "resend-email-list"),
            ("post", "/compat/sendgrid/v3/mail/send", "4xx", "sendgrid-mail-send"),
            ("put", "/compat/sendgrid/v3/mail/send", "5xx", "sendgrid-mail-other"),
        ],
    )
    def test_requests_to_compatibility_endpoints_are_timed_too(self, api, method, path, status, operation):
        key = ("postrider_request_seconds_count", status, operation)
        before = metrics().get(key, 0)
        getattr(api.client, method)(path, headers=api.headers)
        assert metrics()[key] == before + 1

    def test_no_label_contains_a_workspace_or_an_address(self, api, alice):
        send(api, to="ada@example.com")
        deliver(OK)
        text = Client().get("/metrics").content.decode()
        assert not any(secret in text for secret in (alice.workspace.id, "ada@", "example.com", "ws_"))

    def test_unreachable_redis_is_reported(self, settings):
        assert metrics()["postrider_redis_up",] == 1
        settings.REDIS_URL = UNREACHABLE_REDIS
        assert metrics()["postrider_redis_up",] == 0

    def test_a_failing_metric_is_left_out(self, monkeypatch):
        monkeypatch.setattr(
            "emails.sending.delivery_health.QUEUE_DEPTH", "SELECT stage, count(*) FROM nowhere GROUP BY 1"
        )
        # Only this metric: after an error, nothing can be read in the test's transaction.
        monkeypatch.setattr("config.metrics.METRIC_READERS", METRIC_READERS[:1])
        values = metrics()
        assert values["postrider_up",] == 1
        assert not [name for name, *_ in values if name.startswith("postrider_queue")]


@pytest.mark.django_db(transaction=True)
def test_all_respond_while_the_database_is_down(monkeypatch):
    def refuse(*args, **options):
        raise psycopg.OperationalError("connection refused")

    connection.close()
    monkeypatch.setattr(connection, "get_new_connection", refuse)
    assert readyz() == (503, {"status": "not ready", "complaints": ["The database is not responding."], "broker": True})
    assert readyz(**EXTERNAL) == (503, {"status": "not ready"})
    assert servingz() == (503, {"status": "not serving"})
    values = metrics()
    assert values["postrider_up",] == 0
    assert not [name for name, *_ in values if name.startswith("postrider_queue")]


def test_a_paused_transport_makes_readyz_503():
    send_heartbeat("The relay refuses the login of SMTP_URL.")
    try:
        status, body = readyz()
    finally:
        send_heartbeat(None)
    assert (status, body["complaints"]) == (503, ["The relay refuses the login of SMTP_URL."])
    assert readyz()[0] == 200
