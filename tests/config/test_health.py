"""`/readyz` and `/metrics`: what they say, and to whom."""

from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from config.heartbeats import say_present
from config.metrics import FIGURES
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from emails.models import Pending
from tests.emails.test_stats import BOUNCED, LATER, OK, claim, moment, send, work
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db

TOKEN = "a-token-of-twenty-characters"
STRANGER = {"REMOTE_ADDR": "203.0.113.9"}
NOWHERE = "redis://127.0.0.1:1/0"


def readyz(**meta):
    response = Client().get("/readyz", **meta)
    return response.status_code, response.json()


def metrics(**meta):
    response = Client().get("/metrics", **meta)
    assert response.status_code == 200, response.content
    families = text_string_to_metric_families(response.content.decode())
    return {(sample.name, *sorted(sample.labels.values())): sample.value for one in families for sample in one.samples}


def make_due(**ago):
    Pending.objects.update(due_at=timezone.now() - timedelta(**ago))


class TestReadyz:
    def test_strangers_learn_no_more_than_yes_or_no(self, api):
        assert readyz(**STRANGER) == (200, {"status": "ready"})
        send(api)
        make_due(hours=1)
        assert readyz(**STRANGER) == (503, {"status": "not ready"})

    def test_neighbours_are_told_more(self):
        assert readyz() == (200, {"status": "ready", "complaints": [], "broker": True})

    @pytest.mark.parametrize("name", ["HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_FORWARDED", "HTTP_VIA"])
    def test_a_proxy_on_this_machine_is_no_neighbour(self, settings, name):
        assert readyz(**{name: "127.0.0.1"}) == (200, {"status": "ready"})

    @pytest.mark.parametrize("token", ["", TOKEN[:-1], TOKEN + "x"])
    def test_a_token_must_be_right(self, settings, token):
        settings.METRICS_TOKEN = TOKEN
        assert readyz(**STRANGER, HTTP_AUTHORIZATION=f"Bearer {token}") == (200, {"status": "ready"})
        assert "broker" in readyz(**STRANGER, HTTP_AUTHORIZATION=f"Bearer {TOKEN}")[1]

    def test_without_a_token_an_empty_one_opens_nothing(self):
        assert readyz(**STRANGER, HTTP_AUTHORIZATION="Bearer ") == (200, {"status": "ready"})

    def test_redis_out_of_reach_is_told_and_changes_nothing(self, settings):
        settings.REDIS_URL = NOWHERE
        assert readyz() == (200, {"status": "ready", "complaints": [], "broker": False})

    @pytest.mark.parametrize(("seconds", "status"), [(880, 200), (920, 503)])
    def test_mail_that_nobody_sends_turns_it_red(self, api, seconds, status):
        send(api)
        make_due(seconds=seconds)
        assert readyz()[0] == status

    def test_so_does_a_schedule_that_nobody_promotes(self, api):
        send(api, scheduledFor=moment(hours=1))
        assert readyz()[0] == 200
        make_due(hours=1)
        assert readyz()[0] == 503

    def test_a_long_queue_that_is_worked_at_does_not(self, api):
        for _ in range(2):
            send(api)
        make_due(hours=1)
        claim(1)
        assert readyz()[0] == 200

    def test_what_a_suspension_holds_does_not(self, api):
        send(api)
        make_due(hours=1)
        Workspace.objects.update(suspended_at=timezone.now())
        assert readyz()[0] == 200


class TestMetrics:
    def test_strangers_see_nothing(self, settings):
        settings.METRICS_TOKEN = TOKEN
        assert Client().get("/metrics", **STRANGER).status_code == 403
        assert ("postrider_up",) in metrics(**STRANGER, HTTP_AUTHORIZATION=f"Bearer {TOKEN}")

    def test_the_queue_is_told_by_stage(self, api):
        for _ in range(4):
            send(api)
        send(api, scheduledFor=moment(hours=1))
        work(LATER)
        claim(1)
        found = metrics()
        stages = {stage: found["postrider_queue_recipients", stage] for stage in ("ready", "leased", "waiting")}
        assert stages == {"ready": 2, "leased": 1, "waiting": 1}
        assert found["postrider_queue_recipients", "scheduled"] == 1

    def test_the_oldest_due_recipient_is_told(self, api, bobs_api):
        assert metrics()["postrider_queue_oldest_due_seconds",] == 0
        send(api)
        make_due(seconds=40)
        send(bobs_api, **{"from": "x@bob.example"})
        assert 39 < metrics()["postrider_queue_oldest_due_seconds",] < 60

    def test_outcomes_are_counted_by_transport_verdict_and_reason(self, api):
        for _ in range(4):
            send(api)
        work(OK, OK, BOUNCED, DeliveryOutcome(DeliveryStatus.FAILED, Reply(0, "x"), "recipient_suppressed"))
        found = metrics()
        expected = {("delivered", "", 2), ("bounced", "rejected", 1), ("failed", "recipient_suppressed", 1)}
        for verdict, reason, count in expected:
            assert found["postrider_outcomes_total", *sorted(["inbox", verdict, reason])] == count

    def test_requests_are_timed_by_operation(self, api):
        key = ("postrider_request_seconds_count", "2xx", "email-send")
        before = metrics().get(key, 0)
        for _ in range(3):
            send(api)
        assert metrics()[key] == before + 3

    def test_no_label_names_a_workspace_or_an_address(self, api, alice):
        send(api, to="ada@example.com")
        work(OK)
        text = Client().get("/metrics").content.decode()
        assert not any(secret in text for secret in (alice.workspace.id, "ada@", "example.com", "ws_"))

    def test_redis_out_of_reach_is_told(self, settings):
        assert metrics()["postrider_redis_up",] == 1
        settings.REDIS_URL = NOWHERE
        assert metrics()["postrider_redis_up",] == 0

    def test_a_figure_that_cannot_be_read_is_left_out(self, monkeypatch):
        monkeypatch.setattr("emails.sending.delivery_health.DEPTH", "SELECT stage, count(*) FROM nowhere GROUP BY 1")
        # Alone: inside of a test's transaction nothing can be read behind an error.
        monkeypatch.setattr("config.metrics.FIGURES", FIGURES[:1])
        found = metrics()
        assert found["postrider_up",] == 1
        assert not [name for name, *_ in found if name.startswith("postrider_queue")]


@pytest.mark.django_db(transaction=True)
def test_with_the_database_down_both_still_answer(monkeypatch):
    def refuse(*args, **options):
        raise psycopg.OperationalError("connection refused")

    connection.close()
    monkeypatch.setattr(connection, "get_new_connection", refuse)
    assert readyz() == (503, {"status": "not ready", "complaints": ["The database does not answer."], "broker": True})
    assert readyz(**STRANGER) == (503, {"status": "not ready"})
    found = metrics()
    assert found["postrider_up",] == 0
    assert not [name for name, *_ in found if name.startswith("postrider_queue")]


def test_a_transport_that_is_paused_turns_readyz_red(client, db):
    say_present("The relay refuses the login of SMTP_URL.")
    try:
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["complaints"] == ["The relay refuses the login of SMTP_URL."]
    finally:
        say_present(None)
    assert client.get("/readyz").status_code == 200
