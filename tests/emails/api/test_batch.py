"""`POST /v1/emails/batch`: one template, up to 500 emails, all of them or none."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.lib.worker.stages import Stage
from core.workspaces.models import Usage
from emails.models import Content, Email, QueueEntry, Recipient
from events.models import Event
from templates_app.models import TemplateVersion
from tests.conftest import Api, code_of, field_codes, mail
from tests.emails.api.test_templates import new_template
from tests.emails.builders import change_workspace, nothing_was_written, send
from tests.rows import each

pytestmark = pytest.mark.django_db


@pytest.fixture
def template_id(api: Api) -> str:
    return new_template(api)


def many(count: int) -> list[dict]:
    return [{"to": f"a{number}@example.com", "templateData": {"name": f"N{number}"}} for number in range(count)]


def batch(template_id: str, recipients: list, **fields) -> dict:
    return {"from": "Alice <hi@alice.example>", "templateId": template_id, "recipients": recipients, **fields}


def suppress(api: Api, *addresses: str) -> None:
    api.post("/suppressions", {"emails": list(addresses)})


class TestAcceptance:
    def test_ids_come_in_the_order_of_the_recipients_and_the_template_is_stored_once(self, api: Api, template_id):
        response = api.post("/emails/batch", batch(template_id, many(30)))
        body = response.json()
        assert response.status_code == 202
        assert body.keys() == {"queued", "ids", "emails", "rejected"}
        assert (body["queued"], len(body["ids"]), body["rejected"]) == (30, 30, [])
        assert [Email.objects.get(id=email_id).to for email_id in body["ids"]] == [[one["to"]] for one in many(30)]
        assert body["emails"] == [
            {"index": index, "to": f"a{index}@example.com", "id": email_id}
            for index, email_id in enumerate(body["ids"])
        ]
        assert not Content.objects.exists()
        assert TemplateVersion.objects.count() == 1
        assert set(Email.objects.values_list("template_version", flat=True)) == {TemplateVersion.objects.get().id}

    def test_every_recipient_gets_an_email_with_its_own_data_an_event_and_uses_a_quota_unit(self, api, template_id):
        ids = api.post("/emails/batch", batch(template_id, many(3))).json()["ids"]
        for index, email_id in enumerate(ids):
            email = api.get(f"/emails/{email_id}").json()
            content = f"Hello N{index}", f"<p>Hi N{index}</p>", f"Hi N{index}"
            assert (email["subject"], email["htmlContent"], email["text"]) == content
            assert (email["to"], email["cc"], email["bcc"]) == (f"a{index}@example.com", [], [])
            assert (email["templateId"], email["status"]) == (template_id, "queued")
            assert [recipient["email"] for recipient in email["recipients"]] == [email["to"]]
        assert set(QueueEntry.objects.values_list("stage", flat=True)) == {Stage.READY}
        assert QueueEntry.objects.count() == Recipient.objects.count() == Usage.objects.get().used == 3
        assert {(event.kind, event.email_id, event.payload["emailId"]) for event in Event.objects.all()} == {
            ("queued", email_id, email_id) for email_id in ids
        }
        assert api.get("/emails", {"status": "queued"}).json()["total"] == 3

    def test_a_template_is_found_by_alias(self, api: Api):
        template_id = new_template(api, alias="welcome")
        response = api.post("/emails/batch", batch("welcome", many(1)))
        assert response.status_code == 202
        assert Email.objects.get().template_id == template_id

    def test_a_repeated_address_gets_two_emails(self, api: Api, template_id):
        body = api.post("/emails/batch", batch(template_id, [*many(1), *many(1)])).json()
        assert (body["queued"], len(set(body["ids"]))) == (2, 2)
        assert [email["index"] for email in body["emails"]] == [0, 1]

    def test_fields_beside_the_recipients_are_shared(self, api: Api, template_id):
        shared = {
            "subject": "For {{name}}",
            "tags": ["a", "b"],
            "metadata": {"run": 7},
            "replyTo": "Help <help@alice.example>",
        }
        ids = api.post("/emails/batch", batch(template_id, many(2), **shared)).json()["ids"]
        for index, email_id in enumerate(ids):
            email = api.get(f"/emails/{email_id}").json()
            assert email["subject"] == f"For N{index}"
            assert (email["tags"], email["metadata"]) == (["a", "b"], {"run": 7})
            assert (email["replyTo"], email["from"]) == ("Help <help@alice.example>", "Alice <hi@alice.example>")

    def test_metadata_of_a_recipient_overrides_shared_metadata_and_is_null_by_default(self, api: Api, template_id):
        recipients = [{"to": "a@example.com", "metadata": {"order": 1, "run": 8}}, {"to": "b@example.com"}]
        ids = api.post("/emails/batch", batch(template_id, recipients, metadata={"run": 7})).json()["ids"]
        found = [api.get(f"/emails/{email_id}").json()["metadata"] for email_id in ids]
        assert found == [{"run": 8, "order": 1}, {"run": 7}]
        (email_id,) = api.post("/emails/batch", batch(template_id, many(1))).json()["ids"]
        assert api.get(f"/emails/{email_id}").json()["metadata"] is None

    def test_all_emails_are_scheduled_for_the_same_time(self, api: Api, template_id):
        scheduled_for = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
        body = api.post("/emails/batch", batch(template_id, many(3), scheduledFor=scheduled_for.isoformat())).json()
        assert body["queued"] == 3
        assert set(Email.objects.values_list("status", "scheduled_for")) == {("scheduled", scheduled_for)}
        assert set(QueueEntry.objects.values_list("stage", "due_at")) == {(Stage.SCHEDULED, scheduled_for)}
        assert set(Event.objects.values_list("kind", flat=True)) == {"scheduled"}

    def test_500_recipients_pass_and_501_do_not(self, api: Api, template_id):
        assert api.post("/emails/batch", batch(template_id, many(500))).json()["queued"] == 500
        response = api.post("/emails/batch", batch(template_id, many(501)))
        assert code_of(response) == (422, "too_many_recipients")
        assert Email.objects.count() == Usage.objects.get().used == 500

    def test_500_emails_take_as_many_statements_as_10(self, api: Api, template_id):
        api.post("/emails/batch", batch(template_id, many(1)))
        counts = []
        for count in (10, 500):
            with CaptureQueriesContext(connection) as queries:
                body = batch(template_id, many(count), idempotencyKey=f"k{count}")
                assert api.post("/emails/batch", body).status_code == 202
            counts.append(len(queries))
        assert counts[0] == counts[1]
        # Includes savepoints of the test transaction.
        assert counts[0] <= 12


class TestSuppressed:
    def test_suppressed_recipients_are_skipped_and_reported(self, api: Api, template_id):
        suppress(api, "A1@example.com", "a3@example.com")
        recipients = many(4)
        recipients[3]["to"] = "Ada <a3@example.com>"
        body = api.post("/emails/batch", batch(template_id, recipients)).json()
        assert body["queued"] == len(body["ids"]) == 2
        assert [(email["index"], email["to"]) for email in body["emails"]] == [
            (0, "a0@example.com"),
            (2, "a2@example.com"),
        ]
        assert body["rejected"] == [
            {"index": 1, "to": "a1@example.com", "code": "recipient_suppressed"},
            {"index": 3, "to": "Ada <a3@example.com>", "code": "recipient_suppressed"},
        ]
        assert Recipient.objects.count() == Usage.objects.get().used == 2

    def test_a_batch_of_suppressed_recipients_is_refused(self, api: Api, template_id):
        suppress(api, "a0@example.com", "a1@example.com")
        response = api.post("/emails/batch", batch(template_id, many(2), idempotencyKey="k"))
        assert code_of(response) == (422, "recipient_suppressed")
        suppressed = response.json()["recipients"]
        assert [(one["email"], one["field"], one["reason"]) for one in suppressed] == [
            ("a0@example.com", "recipients[0].to", "manual"),
            ("a1@example.com", "recipients[1].to", "manual"),
        ]
        assert all(one["suppressionId"].startswith("sup_") for one in suppressed)
        assert nothing_was_written()


class TestRefusing:
    @each(("item", "field", "code"), [
        ({"to": "bad"}, "recipients[3].to", "invalid_email"),
        ({"to": None}, "recipients[3].to", "required"),
        ({}, "recipients[3].to", "required"),
        ({"to": ["a@example.com"]}, "recipients[3].to", "invalid"),
        ({"to": "a@example.com\r\nBcc: eve@example.com"}, "recipients[3].to", "invalid_email"),
        ({"to": "a@example.com", "templateData": []}, "recipients[3].templateData", "invalid_type"),
        ({"to": "a@example.com", "metadata": "x"}, "recipients[3].metadata", "invalid_type"),
        ({"to": "a@example.com", "metadata": {"k": "v" * 9993}}, "recipients[3].metadata", "too_large"),
        ({"to": "a@example.com", "templatedata": {}}, "recipients[3].templatedata", "unknown_field"),
        ({"to": "a@example.com", "cc": ["b@example.com"]}, "recipients[3].cc", "unknown_field"),
        ("a@example.com", "recipients[3]", "invalid_type"),
        (None, "recipients[3]", "required"),
    ])  # fmt: skip
    def test_a_malformed_recipient_refuses_the_batch_with_its_field(self, api: Api, template_id, item, field, code):
        response = api.post("/emails/batch", batch(template_id, [*many(3), item, *many(2)]))
        assert field_codes(response) == {field: code}
        assert nothing_was_written()

    def test_all_invalid_recipients_are_reported_together(self, api: Api, template_id):
        recipients = [{"to": "bad"}, *many(1), {"to": "worse", "x": 1}]
        response = api.post("/emails/batch", batch(template_id, recipients, tags=[1]))
        assert field_codes(response) == {
            "recipients[0].to": "invalid_email",
            "recipients[2].to": "invalid_email",
            "recipients[2].x": "unknown_field",
            "tags[0]": "invalid",
        }

    @each(("fields", "field", "code"), [
        ({"recipients": []}, "recipients", "required"),
        ({"recipients": None}, "recipients", "required"),
        ({"recipients": {"to": "a@example.com"}}, "recipients", "invalid_type"),
        ({"templateId": None}, "templateId", "required"),
        ({"templateId": 7}, "templateId", "invalid"),
        ({"from": None}, "from", "required"),
        ({"html": "<p>"}, "html", "unknown_field"),
        ({"templateData": {}}, "templateData", "unknown_field"),
        ({"subject": "a\nb"}, "subject", "control"),
        ({"replyTo": "x"}, "replyTo", "invalid_email"),
        ({"tags": ["t"] * 11}, "tags", "max_length"),
        ({"metadata": {"k": "v" * 9993}}, "metadata", "too_large"),
        ({"scheduledFor": "2020-01-01T00:00:00Z"}, "scheduledFor", "in_past"),
        ({"idempotencyKey": ""}, "idempotencyKey", "blank"),
    ])  # fmt: skip
    def test_a_malformed_shared_field_refuses_the_batch(self, api: Api, template_id, fields, field, code):
        response = api.post("/emails/batch", batch(template_id, many(2)) | fields)
        found = field_codes(response)
        assert found.keys() == {field}
        assert found[field] in {code, "min_length"}
        assert nothing_was_written()

    @each("name", ["tpl_" + "0" * 22, "nonsense", "x" * 100])
    def test_an_unknown_template_is_422(self, api: Api, name):
        assert code_of(api.post("/emails/batch", batch(name, many(1)))) == (422, "template_not_found")
        assert nothing_was_written()

    def test_a_domain_that_is_not_registered_is_422(self, api: Api, template_id):
        response = api.post("/emails/batch", batch(template_id, many(1)) | {"from": "x@other.example"})
        assert code_of(response) == (422, "domain_not_registered")
        assert response.json()["domain"] == "other.example"
        assert nothing_was_written()

    def test_an_invalid_subject_template_names_its_position(self, api: Api, template_id):
        response = api.post("/emails/batch", batch(template_id, many(1), subject="Hi {{"))
        assert code_of(response) == (422, "template_syntax_error")
        assert (response.json()["field"], response.json()["line"], response.json()["column"]) == ("subject", 1, 4)
        assert nothing_was_written()

    def test_500_recipients_exceed_a_quota_of_499(self, api: Api, template_id, alice):
        change_workspace(alice.workspace, plan="free")
        api.post("/emails/send", mail())
        response = api.post("/emails/batch", batch(template_id, many(500), idempotencyKey="k"))
        problem = response.json()
        assert code_of(response) == (429, "quota_exceeded")
        assert (problem["limit"], problem["used"], problem["requested"]) == (500, 1, 500)
        assert Email.objects.count() == Usage.objects.get().used == 1
        response = api.post("/emails/batch", batch(template_id, many(499), idempotencyKey="k"))
        assert response.json()["queued"] == 499, "a refused batch does not use up its key"
        assert Usage.objects.get().used == 500

    def test_suppressed_recipients_use_no_quota(self, api: Api, template_id, alice):
        change_workspace(alice.workspace, plan="free")
        suppress(api, "a7@example.com")
        api.post("/emails/send", mail())
        assert api.post("/emails/batch", batch(template_id, many(500))).json()["queued"] == 499
        assert Usage.objects.get().used == 500


class TestVariables:
    def test_a_variable_without_a_value_is_one_warning_with_indexes(self, api: Api):
        template_id = new_template(api, htmlContent="{{name}} {{city}} {{zip}}")
        recipients = [
            {"to": "a@example.com", "templateData": {"name": "A", "zip": 1}},
            {"to": "b@example.com", "templateData": {"name": "B", "city": "X", "zip": 2}},
            {"to": "c@example.com"},
        ]
        response = api.post("/emails/batch", batch(template_id, recipients))
        warnings = {warning["variable"]: warning for warning in response.json()["warnings"]}
        assert response.status_code == 202
        assert len(response.json()["warnings"]) == len(warnings) == 3
        wanted = {"name": [2], "city": [0, 2], "zip": [2]}
        assert {name: warning["indexes"] for name, warning in warnings.items()} == wanted
        assert {warning["code"] for warning in warnings.values()} == {"missing_template_variables"}

    def test_a_strict_template_refuses_before_anything_is_written(self, api: Api):
        template_id = new_template(api, strictVariables=True)
        recipients = many(5)
        del recipients[2]["templateData"]
        recipients[4]["templateData"] = {"nmae": "x"}
        response = api.post("/emails/batch", batch(template_id, recipients, idempotencyKey="k"))
        assert code_of(response) == (422, "missing_template_variables")
        assert response.json()["variables"] == ["name"]
        assert response.json()["indexes"] == [2, 4]
        assert nothing_was_written()

    def test_strict_variables_apply_to_a_shared_subject(self, api: Api):
        template_id = new_template(api, strictVariables=True)
        response = api.post("/emails/batch", batch(template_id, many(1), subject="{{title}}"))
        assert response.json()["variables"] == ["title"]

    def test_an_oversized_output_names_its_recipient(self, api: Api):
        template_id = new_template(api, htmlContent="{{#each items}}{{{text}}}{{/each}}")
        recipients = many(3)
        recipients[1]["templateData"]["text"] = "x" * 1024
        recipients[1]["templateData"]["items"] = [1] * 2048
        assert api.post("/emails/batch", batch(template_id, recipients)).status_code == 202
        recipients[1]["templateData"]["items"] = [1] * 2049
        response = api.post("/emails/batch", batch(template_id, recipients))
        assert code_of(response) == (422, "template_output_too_large")
        assert response.json()["detail"].startswith("recipients[1]")
        assert response.json()["field"] == "recipients[1]"
        assert Email.objects.count() == 3

    def test_rendering_has_one_budget_per_request(self, api: Api):
        template_id = new_template(api, htmlContent="{{#each a}}{{#each b}}{{/each}}{{/each}}")
        data = {"a": [0] * 200, "b": [0] * 200}
        recipients = [{"to": f"a{number}@example.com", "templateData": data} for number in range(500)]
        started = time.process_time()
        response = api.post("/emails/batch", batch(template_id, recipients, idempotencyKey="k"))
        # 500 recipients at 40,000 steps each took 7 s.
        assert time.process_time() - started < 4
        assert code_of(response) == (422, "template_output_too_large")
        assert response.json()["field"] == "recipients[61]"
        assert response.json()["detail"].startswith("recipients[61]: This request takes more than 2,500,000 steps")
        assert nothing_was_written()

    def test_five_hundred_recipients_with_large_data_are_accepted(self, api: Api):
        template_id = new_template(api, htmlContent="{{#each rows}}<p>{{sku}} {{name}} {{price}}</p>{{/each}}")
        rows = [{"sku": f"s{number}", "name": "A chair, in oak", "price": 12.5} for number in range(60)]
        recipients = [{"to": f"a{number}@example.com", "templateData": {"rows": rows}} for number in range(500)]
        assert api.post("/emails/batch", batch(template_id, recipients)).status_code == 202

    def test_templates_are_rendered_before_the_transaction(self, api: Api, template_id):
        send = {"from": "hi@alice.example", "to": "a@example.com", "templateId": template_id}
        requests = {
            "/emails/send": send | {"idempotencyKey": "s"},
            "/emails/send?": send | {"dryRun": True},
            "/emails/batch": batch(template_id, many(2), idempotencyKey="b"),
        }
        for path, body in requests.items():
            with CaptureQueriesContext(connection) as queries:
                assert api.post(path, body).status_code in {200, 202}
            statements = [query["sql"] for query in queries]
            reads = [at for at, sql in enumerate(statements) if 'FROM "templates_app_template"' in sql]
            begins = [at for at, sql in enumerate(statements) if sql.startswith("SAVEPOINT")]
            assert reads, path
            assert reads[-1] < begins[0], path


class TestRepeating:
    def test_a_repeat_gets_the_same_bytes(self, api: Api):
        body = batch(new_template(api, htmlContent="{{city}}"), many(3), idempotencyKey="k")
        first, again = api.post("/emails/batch", body), api.post("/emails/batch", body)
        assert "warnings" in first.json()
        assert (again.status_code, again.content) == (202, first.content)
        assert again["Idempotent-Replayed"] == "true"
        assert "Idempotency-Body-Mismatch" not in again
        assert Email.objects.count() == Usage.objects.get().used == 3

    def test_a_replay_ignores_later_suppressions_and_template_changes(self, api: Api):
        template_id = new_template(api, htmlContent="{{city}}")
        suppress(api, "a0@example.com")
        body = batch(template_id, many(2), idempotencyKey="k")
        first = api.post("/emails/batch", body).json()
        assert first["rejected"]
        assert first["warnings"]
        suppress(api, "a1@example.com")
        api.delete(f"/templates/{template_id}")
        assert api.post("/emails/batch", body).json() == first

    def test_a_different_body_is_flagged_or_with_the_header_refused(self, api: Api, template_id):
        first = api.post("/emails/batch", batch(template_id, many(1), idempotencyKey="k"))
        other = api.post("/emails/batch", batch(template_id, many(2), idempotencyKey="k"))
        assert (other.json(), other["Idempotency-Body-Mismatch"]) == (first.json(), "true")
        strict = api.post("/emails/batch", batch(template_id, many(2)), Idempotency_Key="k")
        assert code_of(strict) == (409, "idempotency_key_reuse")

    def test_a_key_of_another_operation_is_409(self, api: Api, template_id):
        email_id = send(api, idempotencyKey="sent")
        api.post("/emails/batch", batch(template_id, many(1), idempotencyKey="batched"))
        api.post(f"/emails/{email_id}/resend", {"idempotencyKey": "resent"})
        calls = {
            "sent": lambda key: api.post("/emails/send", mail(idempotencyKey=key)),
            "batched": lambda key: api.post("/emails/batch", batch(template_id, many(1), idempotencyKey=key)),
            "resent": lambda key: api.post(f"/emails/{email_id}/resend", {"idempotencyKey": key}),
        }
        for own, call in calls.items():
            assert call(own)["Idempotent-Replayed"] == "true"
            for key in calls.keys() - {own}:
                assert code_of(call(key)) == (409, "idempotency_key_reuse")
        assert Email.objects.count() == 3
