"""`/v1/alerts`."""

import pytest
from django.db import IntegrityError

from alerts.models import Alert
from alerts.services import MAX_ALERTS
from console.system_mail.tasks import check_watched_values
from core.workspaces.models import AuditEntry
from streams.services import create_stream
from tests.alerts.builders import count, make_alert
from tests.conftest import Api, code_of, field_codes
from tests.rows import each

pytestmark = pytest.mark.django_db
BOUNCES = {"metric": "bounce_rate", "threshold": 4}


def create(api: Api, **fields) -> dict:
    response = api.post("/alerts", BOUNCES | fields)
    assert response.status_code == 201, response.json()
    return response.json()


class TestCreate:
    def test_the_response_has_all_fields(self, api, alice):
        body = create(api)
        assert body == {
            "id": body["id"],
            "metric": "bounce_rate",
            "threshold": 4.0,
            "emailOwners": True,
            "value": None,
            "triggeredAt": None,
            "lastTriggeredAt": None,
            "createdAt": body["createdAt"],
        }
        assert body["id"].startswith("alr_")
        assert api.get(f"/alerts/{body['id']}").json() == body
        assert api.get("/alerts").json() == {"data": [body], "total": 1, "page": 1, "limit": 20}
        entry = AuditEntry.objects.get(act="alert_created")
        assert (entry.about, entry.actor_kind) == ("Bounce rate at 4%", "key")

    def test_one_of_a_stream(self, api, alice):
        create_stream(alice.workspace, slug="news", name="News")
        assert create(api, stream="news", emailOwners=False)["stream"] == "news"
        assert create(api, stream="main")["stream"] == "main"
        assert "stream" not in create(api, stream=None)
        assert AuditEntry.objects.filter(about="In the stream news: Bounce rate at 4%").exists()

    @each("threshold", [0.01, 0.1, 33.333, 100])
    def test_thresholds_are_stored_as_given(self, api, alice, threshold):
        assert create(api, threshold=threshold)["threshold"] == threshold

    @each(
        ("fields", "errors"),
        [
            ({"threshold": 0.009}, {"threshold": "min_value"}),
            ({"threshold": 100.01}, {"threshold": "max_value"}),
            ({"metric": "latency_p95", "threshold": 172_800.1}, {"threshold": "max_value"}),
            ({"metric": "deferred_share", "threshold": 100.1}, {"threshold": "max_value"}),
            ({"metric": "waiting", "threshold": 1001}, {"threshold": "max_value"}),
            ({"metric": "silent", "threshold": 101}, {"threshold": "max_value"}),
            ({"metric": "quota_used", "stream": "main", "threshold": 101},
             {"stream": "quota_of_a_stream", "threshold": "max_value"}),
            ({"threshold": "4"}, {"threshold": "invalid"}),
            ({"threshold": True}, {"threshold": "invalid"}),
            ({"threshold": None}, {"threshold": "required"}),
            ({"metric": "open_rate"}, {"metric": "invalid_choice"}),
            ({"emailOwners": "yes"}, {"emailOwners": "invalid"}),
            ({"stream": 1}, {"stream": "invalid"}),
            ({"color": "red"}, {"color": "unknown_field"}),
            ({"metric": "quota_used", "stream": "main"}, {"stream": "quota_of_a_stream"}),
            (
                {"metric": "quota_used", "stream": "main", "threshold": 0},
                {"stream": "quota_of_a_stream", "threshold": "min_value"},
            ),
        ],
    )  # fmt: skip
    def test_invalid_fields_are_refused(self, api, alice, fields, errors):
        assert field_codes(api.post("/alerts", BOUNCES | fields)) == errors
        assert not Alert.objects.exists()

    @each(
        ("metric", "threshold", "name"),
        [
            ("latency_p95", 172_800, "95th percentile of the time to send at 172,800 s"),
            ("latency_p95", 2.5, "95th percentile of the time to send at 2.5 s"),
            ("deferred_share", 100, "Deferred recipients at 100%"),
            ("waiting", 1000, "Waiting emails at 1,000"),
            ("silent", 2, "Silence of 2 usual gaps"),
        ],
    )
    def test_other_metrics_have_other_units(self, api, alice, metric, threshold, name):
        body = create(api, metric=metric, threshold=threshold, stream="main")
        assert (body["metric"], body["threshold"]) == (metric, threshold)
        assert body["value"] == (0 if metric == "waiting" else None)
        assert AuditEntry.objects.get(act="alert_created").about == f"In the stream main: {name}"

    def test_metric_and_threshold_are_required(self, api, alice):
        assert field_codes(api.post("/alerts", {"stream": "main"})) == {"metric": "required", "threshold": "required"}

    @each("stream", ["unknown", "bobs"])
    def test_the_stream_must_be_one_of_the_workspace(self, api, alice, bob, stream):
        create_stream(bob.workspace, slug="bobs", name="Bob's")
        response = api.post("/alerts", BOUNCES | {"stream": stream})
        assert code_of(response) == (422, "stream_not_found")

    def test_the_same_alert_again_is_a_conflict(self, api, alice, bobs_api):
        first = create(api)
        response = api.post("/alerts", BOUNCES | {"threshold": 4.0, "emailOwners": False})
        assert code_of(response) == (409, "alert_exists")
        assert response.json()["alertId"] == first["id"]
        create(api, threshold=5)
        create(api, metric="complaint_rate")
        create(bobs_api)

    def test_the_database_has_each_alert_once(self, alice):
        make_alert(alice.workspace)
        with pytest.raises(IntegrityError):
            Alert.objects.create(workspace=alice.workspace, metric="bounce_rate", threshold=4)

    def test_a_workspace_has_at_most_twenty(self, api, alice, bobs_api):
        for number in range(MAX_ALERTS):
            create(api, threshold=number + 1)
        response = api.post("/alerts", BOUNCES | {"threshold": 50})
        assert code_of(response) == (403, "plan_limit_reached")
        assert (response.json()["resource"], response.json()["limit"]) == ("alerts", 20)
        create(bobs_api)


class TestValues:
    def test_a_list_shows_present_values(self, api, alice):
        create(api)
        create(api, metric="quota_used", threshold=80)
        count(alice.workspace, rated_sent=300, rated_bounced=20)
        check_watched_values()
        shown = {one["metric"]: one for one in api.get("/alerts").json()["data"]}
        assert shown["bounce_rate"]["value"] == 6.66
        assert shown["bounce_rate"]["triggeredAt"] == shown["bounce_rate"]["lastTriggeredAt"]
        assert shown["quota_used"]["value"] is None

    def test_pages(self, api, alice):
        ids = [create(api, threshold=number)["id"] for number in (1, 2, 3)]
        pages = [api.get(f"/alerts?limit=2&page={page}").json() for page in (1, 2, 3)]
        assert [[one["id"] for one in page["data"]] for page in pages] == [[ids[2], ids[1]], [ids[0]], []]
        assert {page["total"] for page in pages} == {3}


class TestChange:
    def test_threshold_and_emails_change(self, api, alice):
        alert = create(api)
        body = api.patch(f"/alerts/{alert['id']}", {"threshold": 5.5, "emailOwners": False}).json()
        assert body == alert | {"threshold": 5.5, "emailOwners": False}
        assert api.get(f"/alerts/{alert['id']}").json() == body
        assert AuditEntry.objects.get(act="alert_changed").about == "Bounce rate at 5.5%"

    def test_a_change_to_the_same_values_is_allowed(self, api, alice):
        alert = create(api)
        for _ in range(2):
            assert api.patch(f"/alerts/{alert['id']}", {"threshold": 4}).json() == alert

    @each("fields", [{"metric": "quota_used"}, {"stream": "main"}, {"threshold": 0}])
    def test_other_changes_are_refused(self, api, alice, fields):
        alert = create(api)
        field_codes(api.patch(f"/alerts/{alert['id']}", fields))
        assert api.get(f"/alerts/{alert['id']}").json() == alert

    def test_a_threshold_has_the_limits_of_the_metric(self, api, alice):
        alert = create(api)
        assert field_codes(api.patch(f"/alerts/{alert['id']}", {"threshold": 101})) == {"threshold": "max_value"}
        assert api.get(f"/alerts/{alert['id']}").json() == alert
        latency = create(api, metric="latency_p95")
        assert api.patch(f"/alerts/{latency['id']}", {"threshold": 101}).json()["threshold"] == 101

    def test_it_cannot_become_another_one(self, api, alice):
        first, second = create(api), create(api, threshold=5)
        response = api.patch(f"/alerts/{second['id']}", {"threshold": 4})
        assert (response.status_code, response.json()["alertId"]) == (409, first["id"])

    def test_a_triggered_alert_ends_with_a_higher_threshold(self, api, alice):
        alert = create(api)
        count(alice.workspace, rated_sent=100, rated_bounced=10)
        check_watched_values()
        assert api.patch(f"/alerts/{alert['id']}", {"threshold": 20}).json()["triggeredAt"]
        check_watched_values()
        assert api.get(f"/alerts/{alert['id']}").json()["triggeredAt"] is None


def test_deleting(api, alice):
    alert = create(api)
    assert api.delete(f"/alerts/{alert['id']}").json() == {"id": alert["id"], "deleted": True}
    assert api.delete(f"/alerts/{alert['id']}").status_code == 404
    assert AuditEntry.objects.get(act="alert_deleted").about == "Bounce rate at 4%"
    create(api)
