"""The log of API requests: contents, redaction, bounds, and the buffer of a process."""

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from core.api.latency import observed
from core.lib.ids import from_uuid, to_uuid
from core.request_log import recording, tasks
from core.request_log.models import ApiRequest
from core.request_log.recording import SHARE, RequestRecorder, RequestRow, recorder
from tests.conftest import Api, mail, make_key

pytestmark = pytest.mark.django_db


def logged() -> list[ApiRequest]:
    assert recorder.flush()
    return list(ApiRequest.objects.order_by("created_at"))


def row_of(workspace_id: str, number: int = 0) -> RequestRow:
    id_ = from_uuid(to_uuid("0" * 21 + "1"), prefix="req_")[:-4] + f"{number:04}"
    return RequestRow(
        id_, workspace_id, id_.replace("req_", "key_"), timezone.now(), "GET", "/v1/emails", 200, 1, "", None
    )


def unlogged(reason: str) -> float:
    return observed().get_sample_value("postrider_requests_unlogged_total", {"reason": reason}) or 0.0


def test_an_accepted_email_is_logged_with_its_id_and_the_key(api, alice):
    response = api.post("/emails/send", mail())

    (row,) = logged()
    assert (row.method, row.path, row.status, row.code) == ("POST", "/v1/emails/send", 202, "")
    assert row.id == response.headers["X-Request-Id"]
    assert row.email_id == response.json()["id"]
    assert (row.workspace, row.key) == (alice.workspace, alice.workspace.api_keys.get())
    assert not row.is_error


def test_a_refused_request_is_logged_with_the_code_of_the_problem(api):
    api.post("/emails/send", mail(to="nobody"))
    api.get("/emails/0000000000000000000000")

    assert [(row.status, row.code, row.email_id) for row in logged()] == [
        (422, "validation_error", None),
        (404, "not_found", None),
    ]


def test_other_apis_are_logged_with_the_same_codes(api, alice):
    client, headers = api.client, {"X-Postmark-Server-Token": make_key(alice.workspace)}
    body = {"From": "hi@alice.example", "To": "ada@example.com", "Subject": "Hi", "TextBody": "Hi"}
    sent = client.post("/compat/postmark/email", body, "application/json", headers=headers)
    client.post("/compat/postmark/email", {}, "application/json", headers=headers)

    accepted, refused = logged()
    assert to_uuid(accepted.email_id).hex == sent.json()["MessageID"].replace("-", "")
    assert (refused.status, refused.code) == (422, "validation_error")


def test_reading_an_email_is_linked_to_it(api):
    email_id = api.post("/emails/send", mail()).json()["id"]
    api.get(f"/emails/{email_id}/events")

    assert [row.email_id for row in logged()] == [email_id, email_id]


def test_addresses_and_values_of_the_query_are_not_stored(api):
    api.get("/suppressions", {"email": "ada@example.com"})
    for address in ("ada@example.com", "ada%40example.com", "ada%2540example.com"):
        api.client.get(f"/compat/sendgrid/v3/suppression/bounces/{address}", headers=api.headers)
    api.get("/emails?ada%40example.com=1&limit=2&metadata[user]=7")

    assert [row.path for row in logged()] == [
        "/v1/suppressions?email",
        *["/compat/sendgrid/v3/suppression/bounces/…"] * 3,
        "/v1/emails?…&limit&metadata[user]",
    ]


def test_requests_without_a_valid_key_and_pages_are_not_logged(api):
    Api("pr_unknown").get("/emails")
    Api().get("/emails")
    api.client.get("/dashboard/login/")

    assert logged() == []


def test_a_workspace_with_many_requests_leaves_room_for_others(alice, bob):
    buffer, before = RequestRecorder(), unlogged("share")
    for number in range(SHARE + 7):
        buffer.add(row_of(alice.workspace.id, number))
    buffer.add(row_of(bob.workspace.id, 9_999))

    assert buffer.flush()
    assert ApiRequest.objects.filter(workspace=alice.workspace).count() == SHARE
    assert ApiRequest.objects.filter(workspace=bob.workspace).count() == 1
    assert unlogged("share") - before == 7
    # The next batch has room again.
    buffer.add(row_of(alice.workspace.id, SHARE + 8))
    assert buffer.flush()
    assert ApiRequest.objects.filter(workspace=alice.workspace).count() == SHARE + 1


def test_a_full_buffer_drops_requests_and_never_waits(alice, bob, monkeypatch):
    monkeypatch.setattr(recording, "CAPACITY", 3)
    buffer, before = RequestRecorder(), unlogged("buffer")
    for number in range(5):
        buffer.add(row_of(bob.workspace.id, number))

    assert buffer.flush()
    assert (ApiRequest.objects.count(), unlogged("buffer") - before) == (3, 2)


def test_requests_wait_while_the_database_is_unreachable(alice, monkeypatch):
    buffer = RequestRecorder()
    buffer.add(row_of(alice.workspace.id))

    def fail(*_: object) -> None:
        raise OperationalError

    with monkeypatch.context() as patch:
        patch.setattr(recording, "run_prepared", fail)
        assert not buffer.flush()
    assert ApiRequest.objects.count() == 0
    assert buffer.flush()
    assert ApiRequest.objects.count() == 1


def make_requests(account, *, count: int, days: int = 0) -> None:
    seconds = int((timezone.now() - timedelta(days=days)).timestamp())
    key = account.workspace.api_keys.first()
    for number in range(count):
        id_ = from_uuid(to_uuid_of(seconds, number), prefix="req_")
        ApiRequest.objects.create(
            id=id_, workspace=account.workspace, key=key, created_at=timezone.now() - timedelta(days=days),
            method="GET", path="/v1/emails", status=200, milliseconds=3, code="",
        )  # fmt: skip


def to_uuid_of(seconds: int, number: int):
    from uuid import UUID

    return UUID(int=(seconds << 96) | number)


def test_requests_expire_after_a_week_and_beyond_the_limit(api, alice, monkeypatch):
    monkeypatch.setattr(tasks, "MAX_REQUESTS", 5)
    monkeypatch.setattr(tasks, "BATCH_SIZE", 2)
    make_requests(alice, count=3, days=8)
    make_requests(alice, count=2, days=6)
    make_requests(alice, count=6)

    tasks.expire()

    ages = [(timezone.now() - row.created_at).days for row in ApiRequest.objects.all()]
    assert sorted(ages) == [0] * 5


def test_requests_within_the_limits_stay(api, alice):
    make_requests(alice, count=2, days=6)

    tasks.expire()

    assert ApiRequest.objects.count() == 2
