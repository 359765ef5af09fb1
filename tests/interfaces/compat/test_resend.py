"""Resend's API: requests, errors and resources as its clients expect them."""

import base64
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from emails.models import Attachment, Email, Entrance, Recipient
from suppressions.services import suppress_addresses
from tests.conftest import make_key
from tests.interfaces.compat.conftest import Dialect
from tests.rows import each
from tests.sending_process import send_everything

pytestmark = pytest.mark.django_db


def mail(**fields) -> dict:
    body = {
        "from": "Alice <hi@alice.example>",
        "to": ["ada@example.com"],
        "subject": "Hi",
        "html": "<p>Hi</p>",
        **fields,
    }
    return {name: value for name, value in body.items() if value is not None}


def error(response) -> tuple[int, str]:
    body = response.json()
    assert body.keys() == {"statusCode", "name", "message"}
    assert body["statusCode"] == response.status_code
    assert response["Content-Type"] == "application/json"
    return response.status_code, body["name"]


def in_an_hour() -> str:
    return (datetime.now(UTC) + timedelta(hours=1)).isoformat()


class TestSend:
    def test_an_email_with_everything_is_accepted_and_read_back(self, resend):
        sent = mail(
            to=["Ada <ada@example.com>", "bob@example.com"],
            cc="carol@example.com",
            bcc=["dan@example.com"],
            reply_to=["a@alice.example", "b@alice.example"],
            text="Hi",
            headers={"X-Entity-Ref-ID": "7", "List-Unsubscribe": "<https://alice.example/u>"},
            tags=[{"name": "category", "value": "welcome"}],
            attachments=[
                {"filename": "a.txt", "content": base64.b64encode(b"A").decode()},
                {"filename": "l.png", "content": "iVBORw==", "content_type": "image/png", "content_id": "logo"},
            ],
            scheduled_at=in_an_hour(),
        )
        response = resend.post("/emails", sent)
        assert response.status_code == 200, response.content
        assert response.json().keys() == {"id"}
        assert str(uuid.UUID(response.json()["id"])) == response.json()["id"]
        email = resend.get(f"/emails/{response.json()['id']}").json()
        assert (email["object"], email["to"], email["cc"]) == ("email", sent["to"], ["carol@example.com"])
        assert (email["bcc"], email["reply_to"]) == (["dan@example.com"], ["a@alice.example", "b@alice.example"])
        assert (email["html"], email["text"], email["last_event"]) == ("<p>Hi</p>", "Hi", "scheduled")
        assert email["tags"] == sent["tags"]
        assert email["message_id"].endswith("@alice.example>")
        row = Email.objects.get()
        assert (row.headers, row.entrance) == ({"X-Entity-Ref-ID": "7"}, Entrance.COMPATIBILITY)
        assert list(Attachment.objects.values_list("filename", "cid")) == [("a.txt", None), ("l.png", "logo")]

    def test_the_same_email_is_found_by_both_spellings_of_its_id(self, resend):
        given = resend.post("/emails", mail()).json()["id"]
        assert resend.get(f"/emails/{Email.objects.get().id}").json()["id"] == given

    def test_a_template_is_found_by_alias_and_by_uuid(self, resend, template):
        body = mail(subject=None, html=None, template={"id": "hello", "variables": {"name": "Ada"}})
        assert resend.post("/emails", body).status_code == 200
        assert Email.objects.get().subject == "Hi Ada"

    @each("content", [[65, 66], {"type": "Buffer", "data": [65, 66]}])
    def test_bytes_of_an_attachment_can_be_numbers(self, resend, content):
        assert resend.post("/emails", mail(attachments=[{"filename": "a", "content": content}])).status_code == 200
        assert bytes(Attachment.objects.get().data) == b"AB"

    @each("text", ["in 1 min", "in 2 hours", "in 3 days"])
    def test_a_delay_in_words_is_a_schedule(self, resend, text):
        assert resend.post("/emails", mail(scheduled_at=text)).status_code == 200
        assert Email.objects.get().status == "scheduled"

    def test_a_suppressed_recipient_is_accepted(self, resend, alice):
        suppress_addresses(alice.workspace, addresses=["ada@example.com"], reason="bounce")
        accepted = resend.post("/emails", mail())
        assert accepted.status_code == 200
        path = f"/emails/{accepted.json()['id']}"
        send_everything()
        assert resend.get(path).json()["last_event"] == "suppressed"
        Recipient.objects.update(reason="message_invalid")
        assert resend.get(path).json()["last_event"] == "failed"


class TestErrors:
    @each(
        ("change", "expected"),
        [
            ({"to": None}, (422, "missing_required_field")),
            ({"subject": None}, (422, "missing_required_field")),
            ({"html": None}, (422, "missing_required_field")),
            ({"to": ["nobody"]}, (422, "validation_error")),
            ({"to": {"email": "a@b.c"}}, (422, "validation_error")),
            ({"from": "nobody"}, (422, "invalid_from_address")),
            ({"from": "hi@elsewhere.example"}, (403, "validation_error")),
            ({"attachments": [{"filename": "a", "content": "%"}]}, (422, "invalid_attachment")),
            ({"attachments": [{"filename": "a", "content": [1, 256]}]}, (422, "invalid_attachment")),
            ({"attachments": [{"path": "http://127.0.0.1/x"}]}, (422, "invalid_attachment")),
            ({"attachments": [{"filename": "a", "content": ""}] * 11}, (422, "invalid_attachment")),
            ({"scheduled_at": "2001-01-01T00:00:00Z"}, (422, "validation_error")),
            ({"tags": [{"name": 7}]}, (422, "validation_error")),
            ({"template": {"id": "none"}}, (404, "not_found")),
            ({"headers": []}, (422, "validation_error")),
        ],
    )
    def test_an_invalid_email_has_resends_name_and_status(self, resend, change, expected):
        assert error(resend.post("/emails", mail(**change))) == expected
        assert not Email.objects.exists()

    def test_tags_may_be_an_object(self, resend):
        """As in the examples of Resend's library for Ruby."""
        sent = resend.post("/emails", mail(tags={"country": "br", "plan": "pro"})).json()
        assert resend.get(f"/emails/{sent['id']}").json()["tags"] == [
            {"name": "country", "value": "br"},
            {"name": "plan", "value": "pro"},
        ]
        assert error(resend.post("/emails", mail(tags={"country": 7}))) == (422, "validation_error")

    def test_a_message_names_the_field_of_resend(self, resend):
        body = resend.post("/emails", mail(reply_to=["x"])).json()
        assert body["message"].startswith("Invalid `reply_to[0]` field. ")

    def test_keys(self, resend, alice, db):
        assert error(Dialect("resend", None).post("/emails", mail())) == (401, "missing_api_key")
        assert error(Dialect("resend", "re_123").post("/emails", mail())) == (403, "invalid_api_key")
        reading = Dialect("resend", make_key(alice.workspace, "read_only"))
        assert error(reading.post("/emails", mail())) == (401, "restricted_api_key")

    @each("path", ["/broadcasts", "/emails/metrics", "/domains/claim", "/emails/x/share"])
    def test_an_absent_endpoint_names_the_page(self, resend, path):
        response = resend.post(path)
        assert error(response) == (501, "application_error")
        assert "/docs/migrate/resend." in response.json()["message"]

    def test_an_absent_endpoint_reads_no_body(self, resend):
        url, file = "/compat/resend/contacts/imports", b"--a\r\n" * 300_000
        response = resend.client.post(url, file, "multipart/form-data; boundary=a", headers=resend.headers)
        assert error(response) == (501, "application_error")

    def test_another_method_and_malformed_json(self, resend):
        assert error(resend.call("DELETE", "/emails/batch")) == (405, "method_not_allowed")
        assert error(resend.client.post("/compat/resend/emails", b"{", "application/json", headers=resend.headers)) == (
            400,
            "validation_error",
        )


class TestBatch:
    def test_a_strict_batch_is_all_or_nothing(self, resend):
        response = resend.post("/emails/batch", [mail(), mail(to=["nobody"])], x_batch_validation="strict")
        assert error(response) == (422, "validation_error")
        assert not Email.objects.exists()

    def test_a_permissive_batch_reports_each_error(self, resend):
        items = [mail(), mail(to=["nobody"]), mail(**{"from": "x@elsewhere.example"}), mail(subject="Last"), 7]
        body = resend.post("/emails/batch", items, x_batch_validation="permissive").json()
        assert [error["index"] for error in body["errors"]] == [1, 2, 4]
        assert len(body["data"]) == Email.objects.count() == 2

    def test_100_emails_pass_and_101_do_not(self, resend):
        assert len(resend.post("/emails/batch", [mail()] * 100).json()["data"]) == 100
        assert error(resend.post("/emails/batch", [mail()] * 101)) == (422, "validation_error")
        assert error(resend.post("/emails/batch", [])) == (422, "validation_error")
        assert error(resend.post("/emails/batch", mail())) == (400, "validation_error")
        assert Email.objects.count() == 100


class TestIdempotency:
    def test_a_repeated_key_returns_the_first_response(self, resend):
        first = resend.post("/emails", mail(), idempotency_key="k")
        again = resend.post("/emails", mail(), idempotency_key="k")
        assert again.json() == first.json()
        assert again["Idempotent-Replayed"] == "true"
        batch = resend.post("/emails/batch", [mail()], idempotency_key="b")
        assert resend.post("/emails/batch", [mail()], idempotency_key="b").json() == batch.json()
        assert Email.objects.count() == 2

    def test_a_key_used_for_another_email_is_refused_in_every_entrance(self, resend):
        resend.post("/emails", mail(), idempotency_key="k")
        other = resend.post("/emails", mail(subject="Other"), idempotency_key="k")
        assert error(other) == (409, "invalid_idempotent_request")
        native = resend.client.post(
            "/v1/emails/send", mail(), "application/json", headers={**resend.headers, "Idempotency-Key": "k"}
        )
        assert (native.status_code, native.json()["code"]) == (409, "idempotency_key_reuse")
        assert Email.objects.count() == 1

    def test_an_overlong_key_is_refused(self, resend):
        assert error(resend.post("/emails", mail(), idempotency_key="k" * 257)) == (400, "invalid_idempotency_key")


class TestManage:
    def test_a_scheduled_email_is_rescheduled_and_cancelled(self, resend):
        given = resend.post("/emails", mail(scheduled_at=in_an_hour())).json()["id"]
        answer = {"object": "email", "id": given}
        assert resend.call("PATCH", f"/emails/{given}", {"scheduled_at": "in 2 days"}).json() == answer
        assert resend.post(f"/emails/{given}/cancel").json() == answer
        assert resend.get(f"/emails/{given}").json()["last_event"] == "canceled"
        assert error(resend.call("PATCH", f"/emails/{given}", {"scheduled_at": in_an_hour()})) == (
            409,
            "validation_error",
        )

    def test_the_list_is_paged_in_both_directions(self, resend):
        ids = [resend.post("/emails", mail()).json()["id"] for _ in range(5)][::-1]
        Email.objects.update(created_at=datetime.now(UTC))
        ids = [str(one) for one in sorted(map(uuid.UUID, ids), reverse=True)]

        def page(query: str) -> tuple[list[str], bool]:
            body = resend.get(f"/emails?{query}").json()
            assert body["object"] == "list"
            return [email["id"] for email in body["data"]], body["has_more"]

        assert page("limit=2") == (ids[:2], True)
        assert page(f"limit=2&after={ids[1]}") == (ids[2:4], True)
        assert page(f"limit=2&after={ids[3]}") == (ids[4:], False)
        assert page(f"limit=2&before={ids[4]}") == (ids[2:4], True)
        assert page(f"limit=10&before={ids[2]}") == (ids[:2], False)
        for limit in ("0", "101", "x"):
            assert error(resend.get(f"/emails?limit={limit}")) == (422, "validation_error")


def test_rate_limits_have_resends_headers(resend, settings):
    settings.RATE_LIMIT = (1, 1)
    assert resend.get("/emails")["ratelimit-limit"] == "1"
    refused = resend.get("/emails")
    assert error(refused) == (429, "rate_limit_exceeded")
    assert refused["retry-after"] == "1"
