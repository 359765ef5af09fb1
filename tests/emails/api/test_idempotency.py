"""Idempotency: one key accepts one email, under any number of repeats and any concurrency."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from core.workspaces.models import Usage
from emails.models import Email
from tests.conftest import Api, mail, make_account, make_domain, make_key
from tests.rows import each
from tests.threads import own_connection


@pytest.mark.django_db
class TestRepeats:
    def test_a_repeat_gets_the_first_response(self, api: Api):
        first = api.post("/emails/send", mail(idempotencyKey="k"))
        again = api.post("/emails/send", mail(idempotencyKey="k"))
        assert (again.status_code, again.json()) == (202, first.json())
        assert again["Idempotent-Replayed"] == "true"
        assert "Idempotent-Replayed" not in first
        assert "Idempotency-Body-Mismatch" not in again
        assert Email.objects.count() == Usage.objects.get().used == 1

    def test_a_different_body_with_the_field_is_replayed_and_flagged(self, api: Api):
        first = api.post("/emails/send", mail(idempotencyKey="k"))
        again = api.post("/emails/send", {"idempotencyKey": "k", "nonsense": True})
        assert again.json() == first.json()
        assert again["Idempotency-Body-Mismatch"] == "true"
        assert Email.objects.count() == 1

    def test_a_different_body_with_the_header_is_409(self, api: Api):
        api.post("/emails/send", mail(), Idempotency_Key="k")
        same = api.post("/emails/send", mail(), Idempotency_Key="k")
        other = api.post("/emails/send", mail(subject="Other"), Idempotency_Key="k")
        assert same["Idempotent-Replayed"] == "true"
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reuse")

    def test_header_and_field_share_a_namespace(self, api: Api):
        first = api.post("/emails/send", mail(), Idempotency_Key='"k"')
        again = api.post("/emails/send", mail(idempotencyKey="k"))
        assert again.json() == first.json()

    def test_header_and_field_that_differ_are_400(self, api: Api):
        response = api.post("/emails/send", mail(idempotencyKey="a"), Idempotency_Key="b")
        assert (response.status_code, response.json()["code"]) == (400, "invalid_idempotency_key")

    @each("header", ["", "k" * 256, "é"])
    def test_a_malformed_header_is_400(self, api: Api, header):
        response = api.post("/emails/send", mail(), Idempotency_Key=header)
        assert (response.status_code, response.json()["code"]) == (400, "invalid_idempotency_key")

    @each("field", ["", 7, [], "k" * 256])
    def test_a_malformed_field_is_422(self, api: Api, field):
        response = api.post("/emails/send", mail(idempotencyKey=field))
        assert response.json()["errors"][0]["field"] == "idempotencyKey"
        assert not Email.objects.exists()

    def test_a_key_belongs_to_its_workspace(self, api: Api, bobs_api: Api):
        api.post("/emails/send", mail(idempotencyKey="k"))
        response = bobs_api.post("/emails/send", mail(idempotencyKey="k", **{"from": "b@bob.example"}))
        assert "Idempotent-Replayed" not in response
        assert Email.objects.count() == 2

    def test_a_refused_request_does_not_use_up_its_key(self, api: Api):
        assert api.post("/emails/send", mail(idempotencyKey="k", to="bad")).status_code == 422
        assert api.post("/emails/send", mail(idempotencyKey="k", **{"from": "a@b.example"})).status_code == 422
        assert "Idempotent-Replayed" not in api.post("/emails/send", mail(idempotencyKey="k"))


def send_concurrently(count: int, key: str, body: dict) -> list:
    send = own_connection(lambda _: Api(key).post("/emails/send", body))
    # Not at exactly the same time: PostgreSQL allows 100 connections.
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(send, range(count)))


@pytest.mark.django_db(transaction=True)
class TestConcurrency:
    @pytest.fixture
    def key(self) -> str:
        workspace = make_account("alice", plan="free").workspace
        make_domain(workspace, "alice.example")
        return make_key(workspace)

    def test_50_requests_with_one_key_make_one_email(self, key):
        answers = send_concurrently(50, key, mail(idempotencyKey="same"))
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.content for answer in answers}) == 1
        assert sum("Idempotent-Replayed" not in answer for answer in answers) == 1
        assert Email.objects.count() == Usage.objects.get().used == 1

    def test_100_requests_with_quota_for_10_accept_10(self, key):
        Api(key).post("/emails/send", mail())
        Usage.objects.update(used=490)
        answers = send_concurrently(100, key, mail())
        codes = [answer.status_code for answer in answers]
        assert (codes.count(202), codes.count(429)) == (10, 90)
        assert Usage.objects.get().used == 500
        assert Email.objects.count() == 11
