"""Sending with a template, and `dryRun`: rendering, warnings, refusals, immutable content."""

import pytest

from core.workspaces.models import Usage
from emails.models import Email
from tests.conftest import Api, code_of, field_codes, mail
from tests.emails.api.test_attachments import received_message
from tests.emails.builders import change_workspace, nothing_was_written
from tests.rows import each

pytestmark = pytest.mark.django_db

TEMPLATE = {
    "name": "Welcome",
    "subject": "Hello {{name}}",
    "htmlContent": "<p>Hi {{name}}</p>",
    "textContent": "Hi {{name}}",
}


def new_template(api: Api, **fields) -> str:
    response = api.post("/templates", TEMPLATE | fields)
    assert response.status_code == 201, response.content
    return response.json()["id"]


def templated(template: str, **fields) -> dict:
    return mail(**{"html": None, "subject": None, "templateId": template, "templateData": {"name": "Ada"}, **fields})


def send_and_get(api: Api, template: str, **fields) -> dict:
    """Send an email and return its detail, with the warnings of the response."""
    response = api.post("/emails/send", templated(template, **fields))
    assert response.status_code == 202, response.content
    body = response.json()
    return api.get(f"/emails/{body['id']}").json() | {"warnings": body.get("warnings", [])}


def contents(email: dict) -> tuple[str, str, str]:
    return email["subject"], email["htmlContent"], email["text"]


def codes(warnings: list[dict]) -> list[str]:
    assert all(warning["message"] for warning in warnings)
    return [warning["code"] for warning in warnings]


class TestRendering:
    @each("name", ["id", "alias"])
    def test_a_template_is_rendered_with_the_data(self, api: Api, name):
        template_id = new_template(api, alias="welcome")
        email = send_and_get(api, template_id if name == "id" else "welcome", templateData={"name": "A<b>"})
        assert contents(email) == ("Hello A<b>", "<p>Hi A&lt;b&gt;</p>", "Hi A<b>")
        assert (email["templateId"], email["warnings"]) == (template_id, [])

    def test_the_rendered_content_arrives_and_values_are_never_rendered_again(self, api: Api):
        email = send_and_get(api, new_template(api), templateData={"name": "Zoë & {{secret}}", "secret": "x"})
        assert contents(email) == ("Hello Zoë & {{secret}}", "<p>Hi Zoë &amp; {{secret}}</p>", "Hi Zoë & {{secret}}")
        message = received_message()
        assert message["Subject"] == "Hello Zoë & {{secret}}"
        assert "<p>Hi Zoë &amp; {{secret}}</p>" in message.get_body(("html",)).get_content()
        assert "Hi Zoë & {{secret}}" in message.get_body(("plain",)).get_content()

    def test_control_characters_of_a_value_cannot_end_the_subject(self, api: Api):
        email = send_and_get(api, new_template(api), templateData={"name": "A\r\nBcc: eve@example.com\t\x07!"})
        assert email["subject"] == "Hello A Bcc: eve@example.com !"
        message = received_message()
        assert (message["Subject"], message["Bcc"]) == (email["subject"], None)

    def test_key_order_and_number_formats_of_the_data_are_kept(self, api: Api):
        source = "{{#each o}}{{@key}}={{this}} {{/each}}{{n}} {{{o}}}"
        data = {"o": {"zeta": 1, "a": 2.0, "bb": 1e300, "Z": -0.0}, "n": 1e22}
        body = templated(new_template(api, subject=source, htmlContent=source), templateData=data)
        tried = api.post("/emails/send", body | {"dryRun": True}).json()
        email = send_and_get(api, body["templateId"], templateData=data)
        assert email["subject"] == email["htmlContent"].replace("&quot;", '"') == tried["subject"]
        assert email["htmlContent"] == tried["html"]
        assert tried["subject"].startswith("zeta=1 a=2.0 bb=1e+300 Z=-0.0 1e+22 ")

    def test_attachments_can_be_combined_with_a_template(self, api: Api):
        email = send_and_get(api, new_template(api), attachments=[{"filename": "a.txt", "content": "QQ=="}])
        assert contents(email) == ("Hello Ada", "<p>Hi Ada</p>", "Hi Ada")
        assert [file["filename"] for file in email["attachments"]] == ["a.txt"]
        message = received_message()
        assert [part.get_filename() for part in message.iter_attachments()] == ["a.txt"]
        assert "<p>Hi Ada</p>" in message.get_body(("html",)).get_content()

    def test_every_recipient_of_one_email_gets_the_same_text(self, api: Api):
        email = send_and_get(api, new_template(api), to=["a@example.com", "b@example.com"])
        assert len(email["recipients"]) == 2
        assert Email.objects.count() == Usage.objects.get().used == 1


class TestSubject:
    def test_the_subject_of_the_request_overrides_and_is_rendered(self, api: Api):
        email = send_and_get(api, new_template(api), subject="For {{name}} & {{{name}}}", templateData={"name": "<A>"})
        assert email["subject"] == "For <A> & <A>"
        assert received_message()["Subject"] == "For <A> & <A>"

    def test_an_invalid_subject_template_names_its_position(self, api: Api):
        response = api.post("/emails/send", templated(new_template(api), subject="Hi {{#if x}}"))
        assert code_of(response) == (422, "template_syntax_error")
        assert (response.json()["field"], response.json()["line"], response.json()["column"]) == ("subject", 1, 4)
        assert nothing_was_written()

    def test_without_a_template_nothing_is_rendered(self, api: Api):
        body = mail(subject="Hi {{name}}", html="<p>{{name}} {{#if", templateData={"name": "Ada"})
        response = api.post("/emails/send", body)
        assert response.status_code == 202
        assert codes(response.json()["warnings"]) == ["template_data_unused"]
        email = api.get(f"/emails/{response.json()['id']}").json()
        assert (email["subject"], email["htmlContent"]) == ("Hi {{name}}", "<p>{{name}} {{#if")

    @each("data", [{}, {"a": 1}])
    def test_unused_data_is_a_warning_even_if_empty(self, api: Api, data):
        assert codes(api.post("/emails/send", mail(templateData=data)).json()["warnings"]) == ["template_data_unused"]

    @each("data", [[], "x", 7, True])
    def test_data_that_is_not_an_object_is_refused(self, api: Api, data):
        response = api.post("/emails/send", templated(new_template(api), templateData=data))
        assert field_codes(response) == {"templateData": "invalid_type"}


class TestWarnings:
    @each("own", [{"html": "<p>Mine"}, {"text": "Mine"}, {"html": "<p>Mine", "text": "Mine"}])
    def test_html_and_text_of_the_request_are_ignored(self, api: Api, own):
        email = send_and_get(api, new_template(api), **own)
        assert contents(email) == ("Hello Ada", "<p>Hi Ada</p>", "Hi Ada")
        assert codes(email["warnings"]) == ["content_ignored"]

    def test_variables_without_a_value_are_empty_and_reported(self, api: Api):
        template_id = new_template(api, htmlContent="<p>{{name}} {{user.city}} {{zip|'0'}}".replace("'", '"'))
        email = send_and_get(api, template_id, templateData={"user": {}})
        assert contents(email) == ("Hello", "<p>  0", "Hi ")
        (warning,) = email["warnings"]
        assert (warning["code"], warning["variables"]) == ("missing_template_variables", ["name", "user.city"])

    @each("data", [{"name": None}, {"name": ""}, {"name": 0}, {"name": False}])
    def test_an_empty_value_is_a_value(self, api: Api, data):
        assert send_and_get(api, new_template(api, strictVariables=True), templateData=data)["warnings"] == []

    def test_warnings_are_combined_and_replayed(self, api: Api):
        body = templated(new_template(api), html="<p>x", templateData={}, idempotencyKey="k")
        first = api.post("/emails/send", body)
        assert codes(first.json()["warnings"]) == ["content_ignored", "missing_template_variables"]
        assert api.post("/emails/send", body).json() == first.json()


class TestRefusing:
    @each("data", [{}, {"nmae": "Ada"}, None])
    def test_a_strict_template_refuses_missing_variables(self, api: Api, data):
        template_id = new_template(api, strictVariables=True)
        response = api.post("/emails/send", templated(template_id, templateData=data, idempotencyKey="k"))
        assert code_of(response) == (422, "missing_template_variables")
        assert response.json()["variables"] == ["name"]
        assert nothing_was_written()
        assert send_and_get(api, template_id, idempotencyKey="k")["subject"] == "Hello Ada", "no key was used up"

    @each("name", ["tpl_" + "0" * 22, "unknown", "tpl_", "Welcome", "x" * 100])
    def test_an_unknown_template_is_422(self, api: Api, name):
        new_template(api, alias="welcome")
        assert code_of(api.post("/emails/send", templated(name))) == (422, "template_not_found")
        assert nothing_was_written()

    def test_a_deleted_template_and_one_of_another_workspace_are_unknown(self, api: Api, bobs_api: Api):
        foreign, deleted = new_template(bobs_api, alias="theirs"), new_template(api, alias="welcome")
        api.delete(f"/templates/{deleted}")
        for name in (foreign, "theirs", deleted, "welcome"):
            assert code_of(api.post("/emails/send", templated(name))) == (422, "template_not_found"), name

    def test_an_alias_follows_its_template(self, api: Api):
        first, second = new_template(api, alias="welcome"), new_template(api)
        api.patch(f"/templates/{first}", {"alias": None})
        api.patch(f"/templates/{second}", {"alias": "welcome"})
        assert send_and_get(api, "welcome")["templateId"] == second

    @each("field", ["htmlContent", "textContent"])
    def test_2_mib_of_output_pass_and_one_byte_more_does_not(self, api: Api, field):
        template_id = new_template(api, **{field: "{{{a}}}{{{a}}}"})
        half = "x" * 1024 * 1024
        assert api.post("/emails/send", templated(template_id, templateData={"a": half})).status_code == 202
        response = api.post("/emails/send", templated(template_id, templateData={"a": half + "x"}))
        assert code_of(response) == (422, "template_output_too_large")
        assert response.json()["field"] == "templateData"
        assert Email.objects.count() == 1

    def test_the_checks_run_in_the_order_domain_template_suppressions(self, api: Api):
        api.post("/suppressions", {"email": "ada@example.com"})
        body = templated("unknown", **{"from": "x@other.example"})
        assert code_of(api.post("/emails/send", body)) == (422, "domain_not_registered")
        body["from"] = "x@alice.example"
        assert code_of(api.post("/emails/send", body)) == (422, "template_not_found")
        body["templateId"] = new_template(api)
        assert code_of(api.post("/emails/send", body)) == (422, "recipient_suppressed")


class TestStoredContent:
    CHANGE = {"subject": "New", "htmlContent": "<p>New {{other}}", "textContent": "", "strictVariables": True}

    @each("end", ["edited", "deleted"])
    def test_an_accepted_email_keeps_its_content_when_the_template_changes_also_when_resent(self, api: Api, end):
        template_id = new_template(api)
        email = send_and_get(api, template_id)
        if end == "edited":
            assert api.patch(f"/templates/{template_id}", self.CHANGE).status_code == 200
        else:
            assert api.delete(f"/templates/{template_id}").status_code == 200
        assert api.get(f"/emails/{email['id']}").json() == {name: email[name] for name in email if name != "warnings"}
        message = received_message()
        assert message["Subject"] == "Hello Ada"
        assert "<p>Hi Ada</p>" in message.get_body(("html",)).get_content()
        assert "Hi Ada" in message.get_body(("plain",)).get_content()
        again = api.post(f"/emails/{email['id']}/resend").json()["id"]
        assert contents(api.get(f"/emails/{again}").json()) == contents(email)

    @each("end", ["edited", "deleted"])
    def test_a_batch_keeps_its_content_when_the_template_changes(self, api: Api, end):
        template_id = new_template(api)
        body = {"from": "x@alice.example", "templateId": template_id}
        recipients = [{"to": "a@example.com", "templateData": {"name": "A"}}]
        (email_id,) = api.post("/emails/batch", body | {"recipients": recipients}).json()["ids"]
        if end == "edited":
            api.patch(f"/templates/{template_id}", self.CHANGE)
        else:
            api.delete(f"/templates/{template_id}")
        assert contents(api.get(f"/emails/{email_id}").json()) == ("Hello A", "<p>Hi A</p>", "Hi A")
        assert "<p>Hi A</p>" in received_message().get_body(("html",)).get_content()

    def test_the_next_email_has_the_new_content(self, api: Api):
        template_id = new_template(api)
        send_and_get(api, template_id)
        api.patch(f"/templates/{template_id}", {"subject": "New {{name}}"})
        assert contents(send_and_get(api, template_id)) == ("New Ada", "<p>Hi Ada</p>", "Hi Ada")


class TestDryRun:
    def test_a_dry_run_shows_the_rendered_content_and_writes_nothing(self, api: Api):
        body = templated(new_template(api), html="<p>x", templateData={"nmae": 1}, dryRun=True)
        response = api.post("/emails/send", body)
        assert response.status_code == 200
        result = response.json()
        assert result.keys() == {"valid", "subject", "html", "text", "warnings"}
        shown = result["valid"], result["subject"], result["html"], result["text"]
        assert shown == (True, "Hello", "<p>Hi </p>", "Hi ")
        assert codes(result["warnings"]) == ["content_ignored", "missing_template_variables"]
        assert nothing_was_written()

    def test_a_dry_run_without_a_template_shows_the_request_and_false_sends(self, api: Api):
        files = [{"filename": "a.txt", "content": "QQ=="}]
        response = api.post("/emails/send", mail(text="Hi", attachments=files, dryRun=True))
        shown = {"subject": "Hello", "html": "<p>Hi</p>", "text": "Hi"}
        assert response.json() == {"valid": True, **shown, "warnings": []}
        assert nothing_was_written()
        assert api.post("/emails/send", mail(dryRun=False)).status_code == 202

    @each("value", ["true", 1, None, "yes"])
    def test_a_dry_run_that_is_not_a_boolean_is_refused(self, api: Api, value):
        response = api.post("/emails/send", mail() | {"dryRun": value})
        assert field_codes(response).keys() == {"dryRun"}
        assert nothing_was_written()

    def test_a_dry_run_does_not_use_up_a_key(self, api: Api):
        api.post("/emails/send", mail(idempotencyKey="k", dryRun=True))
        api.post("/emails/send", mail(dryRun=True), Idempotency_Key="h")
        assert nothing_was_written()
        for response in (
            api.post("/emails/send", mail(idempotencyKey="k")),
            api.post("/emails/send", mail(), Idempotency_Key="h"),
        ):
            assert response.status_code == 202
            assert "Idempotent-Replayed" not in response

    def test_a_dry_run_reports_the_errors_of_sending(self, api: Api):
        api.post("/suppressions", {"email": "blocked@example.com"})
        strict = new_template(api, strictVariables=True)
        large = new_template(api, htmlContent="{{{name}}}{{{name}}}{{{name}}}")
        file = {"filename": "a.txt", "content": "QQ=="}
        bodies = {
            "validation_error": mail(to="nobody"),
            "too_many_recipients": mail(to=["a@example.com"] * 51),
            "too_many_attachments": mail(attachments=[file] * 11),
            "domain_not_registered": mail(**{"from": "x@other.example"}),
            "template_not_found": templated("unknown"),
            "template_syntax_error": templated(strict, subject="{{"),
            "missing_template_variables": templated(strict, templateData={}),
            "template_output_too_large": templated(large, templateData={"name": "x" * 1024 * 1024}),
            "recipient_suppressed": mail(bcc=["blocked@example.com"]),
        }
        for code, body in bodies.items():
            real, dry = (api.post("/emails/send", body | {"dryRun": value}) for value in (False, True))
            assert code_of(dry) == code_of(real) == (422, code)
            assert {**dry.json(), "requestId": ""} == {**real.json(), "requestId": ""}
        assert nothing_was_written()

    def test_a_dry_run_reports_an_exceeded_quota(self, api: Api, alice):
        change_workspace(alice.workspace, plan="free")
        api.post("/emails/send", mail())
        Usage.objects.update(used=499)
        for _ in range(3):
            assert api.post("/emails/send", mail(dryRun=True)).status_code == 200
        assert Usage.objects.get().used == 499
        Usage.objects.update(used=500)
        assert code_of(api.post("/emails/send", mail(dryRun=True))) == (429, "quota_exceeded")
