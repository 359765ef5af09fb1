"""`/v1/templates`: create, list, retrieve, update, delete and preview."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from templates_app.models import Template, TemplateVersion
from templates_app.services import MAX_TEMPLATES
from tests.conftest import Account, Api, code_of, field_codes
from tests.rows import each

pytestmark = pytest.mark.django_db

MIB = 1024 * 1024
BODY = {"name": "Welcome", "subject": "Hello {{name}}", "htmlContent": "<p>Hi {{name}}</p>"}


def create(api: Api, **fields):
    body = {name: value for name, value in (BODY | fields).items() if value is not None}
    return api.post("/templates", body)


def created(api: Api, **fields) -> str:
    response = create(api, **fields)
    assert response.status_code == 201, response.content
    return response.json()["id"]


def get(api: Api, template_id: str) -> dict:
    return api.get(f"/templates/{template_id}").json()


class TestCreating:
    def test_the_response_has_the_id(self, api: Api):
        response = create(api)
        body = response.json()
        assert response.status_code == 201
        assert body.keys() >= {"id", "name", "subject", "createdAt"}
        assert body["id"].startswith("tpl_")
        assert (body["name"], body["subject"]) == ("Welcome", "Hello {{name}}")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", body["createdAt"])
        assert get(api, body["id"]) == body

    def test_all_fields_are_returned_unchanged(self, api: Api):
        given = {
            "name": "Grüße 😀",
            "subject": " Hallo\n{{ name }} ",
            "htmlContent": "<p>\r\n{{#if a}}{{{b}}}{{/if}}\t</p> ",
            "textContent": "  {{! nothing }}\n",
            "alias": "Welcome_mail-2.de",
            "strictVariables": True,
        }
        body = get(api, api.post("/templates", given).json()["id"])
        assert {name: body[name] for name in given} == given

    @each("text", [None, ""])
    def test_omitted_fields_are_empty(self, api: Api, text):
        body = get(api, api.post("/templates", BODY | {"textContent": text, "alias": None}).json()["id"])
        assert (body["textContent"], body["alias"], body["strictVariables"]) == ("", None, False)

    @each(
        ("fields", "errors"),
        [
            ({"name": None}, {"name": "required"}),
            ({"name": ""}, {"name": "blank"}),
            ({"name": "a\nb"}, {"name": "invalid"}),
            ({"name": "a\u0085b"}, {"name": "invalid"}),
            ({"subject": None, "htmlContent": None}, {"subject": "required", "htmlContent": "required"}),
            ({"subject": ""}, {"subject": "blank"}),
            ({"htmlContent": ""}, {"htmlContent": "blank"}),
            ({"htmlContent": 7}, {"htmlContent": "invalid"}),
            ({"textContent": ["x"]}, {"textContent": "invalid"}),
            ({"strictVariables": "true"}, {"strictVariables": "invalid"}),
            ({"html": "<p>"}, {"html": "unknown_field"}),
            ({"htmlcontent": "<p>"}, {"htmlcontent": "unknown_field"}),
        ],
    )
    def test_an_invalid_field_is_reported(self, api: Api, fields, errors):
        assert field_codes(create(api, **fields)) == errors
        assert not TemplateVersion.objects.exists()

    @each(
        ("field", "longest", "too_long"),
        [
            ("name", "n" * 100, "n" * 101),
            ("subject", "s" * 998, "s" * 999),
            ("alias", "a" * 100, "a" * 101),
            ("htmlContent", "h" * MIB, "h" * (MIB + 1)),
            ("htmlContent", "é" * (MIB // 2), "é" * (MIB // 2) + "e"),
            ("textContent", "t" * MIB, "t" * (MIB + 1)),
            ("textContent", "😀" * (MIB // 4), "😀" * (MIB // 4) + "e"),
        ],
    )
    def test_a_limit_accepts_its_maximum_and_rejects_one_more(self, api: Api, field, longest, too_long):
        template_id = created(api, **{field: longest})
        assert get(api, template_id)[field] == longest
        assert field_codes(create(api, **{field: too_long})).keys() == {field}
        assert field_codes(api.patch(f"/templates/{template_id}", {field: too_long})).keys() == {field}
        assert Template.objects.count() == 1

    def test_1000_templates_are_the_limit_and_deleting_one_allows_another(self, api: Api, alice: Account):
        template_id = created(api)
        version = TemplateVersion.objects.get()
        Template.objects.bulk_create(
            Template(workspace=alice.workspace, name="n", version=version) for _ in range(MAX_TEMPLATES - 2)
        )
        assert MAX_TEMPLATES == 1000
        created(api)
        response = create(api)
        assert code_of(response) == (403, "plan_limit_reached")
        assert (response.json()["resource"], response.json()["limit"]) == ("templates", 1000)
        assert Template.objects.count() == 1000
        api.delete(f"/templates/{template_id}")
        created(api)

    def test_another_workspaces_templates_do_not_count(self, api: Api, bobs_api: Api, bob: Account):
        created(api)
        version = TemplateVersion.objects.get()
        Template.objects.bulk_create(
            Template(workspace=bob.workspace, name="n", version=version) for _ in range(MAX_TEMPLATES)
        )
        created(api)


class TestSyntax:
    @each(
        ("field", "source", "line", "column"),
        [
            ("subject", "Hi {{", 1, 4),
            ("htmlContent", "<p>\n  {{#if x}}\n</p>", 2, 3),
            ("textContent", "a\r\nb\n\n {{{x}}", 4, 2),
        ],
    )
    def test_an_error_has_its_field_line_and_column_and_changes_nothing(self, api: Api, field, source, line, column):
        template_id = created(api)
        before = get(api, template_id)
        changed = api.patch(f"/templates/{template_id}", {"name": "New", field: source})
        for response in (create(api, **{field: source}), changed):
            body = response.json()
            assert code_of(response) == (422, "template_syntax_error")
            assert (body["field"], body["line"], body["column"]) == (field, line, column)
            assert field in body["detail"]
        assert get(api, template_id) == before
        assert TemplateVersion.objects.count() == 1


class TestAliases:
    def test_an_alias_is_unique_in_a_workspace(self, api: Api, bobs_api: Api):
        first = created(api, alias="welcome")
        assert code_of(create(api, alias="welcome")) == (409, "alias_taken")
        second = created(api)
        assert code_of(api.patch(f"/templates/{second}", {"alias": "welcome"})) == (409, "alias_taken")
        assert get(api, second)["alias"] is None
        assert api.patch(f"/templates/{first}", {"alias": "welcome"}).status_code == 200, (
            "a template may keep its alias"
        )
        assert create(bobs_api, alias="welcome").status_code == 201
        assert Template.objects.filter(workspace__name="alice").count() == 2

    def test_a_rejected_change_of_the_alias_changes_nothing_else(self, api: Api):
        created(api, alias="welcome")
        second = created(api)
        before = get(api, second)
        response = api.patch(f"/templates/{second}", {"alias": "welcome", "name": "New", "subject": "New"})
        assert code_of(response) == (409, "alias_taken")
        assert get(api, second) == before

    @each("end", ["removed", "renamed", "deleted"])
    def test_a_free_alias_can_be_used(self, api: Api, end):
        first = created(api, alias="welcome")
        if end == "deleted":
            api.delete(f"/templates/{first}")
        else:
            api.patch(f"/templates/{first}", {"alias": None if end == "removed" else "other"})
        assert create(api, alias="welcome").status_code == 201

    @each("alias", ["welcome", "Welcome_mail-2.de"])
    def test_an_alias_works_wherever_an_id_does(self, api: Api, alias):
        template_id = created(api, alias=alias)
        path = f"/templates/{alias}"
        assert api.get(path).json() == get(api, template_id)
        assert api.patch(path, {"subject": "Hi {{name}}"}).json()["subject"] == "Hi {{name}}"
        assert api.post(f"{path}/preview", {"data": {"name": "Ada"}}).json()["subject"] == "Hi Ada"
        recipients = [{"to": "ada@example.com", "templateData": {"name": "Ada"}}]
        sender = {"from": "hi@alice.example", "templateId": alias}
        assert api.post("/emails/send", {**sender, **recipients[0]}).status_code == 202
        assert api.post("/emails/batch", {**sender, "recipients": recipients}).status_code == 202
        assert api.delete(path).json() == {"id": template_id, "deleted": True}
        assert api.get(path).status_code == 404

    @each("reference", ["welcome", "Welcome", "tpl_", "tpl_welcome", "wel%00come", "%00", "a b", "ä"])
    def test_an_alias_of_another_workspace_and_an_unknown_one_are_404(self, api: Api, bobs_api: Api, reference):
        created(bobs_api, alias="welcome")
        for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/preview")):
            response = api.raw(method, f"/templates/{reference}{path}", b"" if method in {"GET", "DELETE"} else b"{}")
            assert code_of(response) == (404, "not_found")

    def test_aliases_are_case_sensitive(self, api: Api):
        created(api, alias="welcome")
        created(api, alias="Welcome")

    @each(
        "alias",
        ["", " ", "1st", "-a", "_a", ".a", "a b", "a/b", "é", "a\n", "a\u2028", "tpl_x", "tpl_", "a{{b}}", 7, True],
    )
    def test_an_invalid_alias_is_rejected(self, api: Api, alias):
        assert field_codes(create(api, alias=alias)).keys() == {"alias"}
        assert not Template.objects.exists()


class TestListing:
    def test_templates_are_listed_newest_first_without_their_content(self, api: Api):
        ids = [created(api, name=name, alias=name) for name in ("a", "b", "c")]
        for day, template_id in enumerate(ids, start=1):
            Template.objects.filter(id=template_id).update(created_at=f"2026-01-0{day}T00:00:00Z")
        body = api.get("/templates").json()
        assert (body["total"], body["page"], body["limit"]) == (3, 1, 20)
        assert [item["id"] for item in body["data"]] == ids[::-1]
        detail = get(api, ids[0])
        content = {"htmlContent", "textContent", "layoutId", "locale", "locales", "fallback", "usedBy"}
        assert body["data"][2] == {name: detail[name] for name in detail.keys() - content}

    def test_a_list_reads_no_content_and_takes_two_statements(self, api: Api):
        for _ in range(5):
            created(api)
        with CaptureQueriesContext(connection) as queries:
            assert len(api.get("/templates").json()["data"]) == 5
        assert len(queries) == 2
        assert not any('"html"' in query["sql"] for query in queries)

    @each(
        ("query", "expected"),
        [
            ({"limit": 2}, (2, 1, 2)),
            ({"limit": 2, "page": 2}, (1, 2, 2)),
            ({"page": 9}, (0, 9, 20)),
            ({"limit": 101}, (3, 1, 100)),
        ],
    )
    def test_the_requested_page_is_returned(self, api: Api, query, expected):
        for _ in range(3):
            created(api)
        body = api.get("/templates", query).json()
        assert (len(body["data"]), body["page"], body["limit"]) == expected
        assert body["total"] == 3


class TestChanging:
    @each(
        "change",
        [
            {"name": "New"},
            {"subject": "New {{x}}"},
            {"htmlContent": "<b>New</b>"},
            {"textContent": "New"},
            {"alias": "new"},
            {"strictVariables": True},
            {"name": "New", "htmlContent": "<b>", "textContent": "", "alias": None},
            {},
        ],
    )
    def test_given_fields_change_and_the_rest_stays(self, api: Api, change):
        template_id = created(api, textContent="Hi", alias="welcome")
        before = get(api, template_id)
        response = api.patch(f"/templates/{template_id}", change)
        assert response.status_code == 200
        assert response.json() == get(api, template_id)
        assert {**response.json(), "updatedAt": ""} == {**before, **change, "updatedAt": ""}

    def test_null_removes_text_and_alias(self, api: Api):
        template_id = created(api, textContent="Hi", alias="welcome")
        body = api.patch(f"/templates/{template_id}", {"textContent": None, "alias": None}).json()
        assert (body["textContent"], body["alias"]) == ("", None)

    @each("field", ["name", "subject", "htmlContent", "strictVariables"])
    def test_null_is_rejected_for_required_fields(self, api: Api, field):
        template_id = created(api)
        before = get(api, template_id)
        assert field_codes(api.patch(f"/templates/{template_id}", {field: None})).keys() == {field}
        assert get(api, template_id) == before

    @each("field", ["id", "createdAt", "Name"])
    def test_an_unknown_field_is_rejected(self, api: Api, field):
        template_id = created(api)
        assert field_codes(api.patch(f"/templates/{template_id}", {field: "x"})) == {field: "unknown_field"}

    def test_an_unchanged_content_creates_no_version(self, api: Api):
        template_id = created(api)
        api.patch(f"/templates/{template_id}", {"name": "New", "subject": BODY["subject"]})
        assert TemplateVersion.objects.count() == 1
        api.patch(f"/templates/{template_id}", {"subject": "New"})
        assert TemplateVersion.objects.count() == 2


class TestDeleting:
    def test_a_deleted_template_is_gone_and_deleting_again_is_404(self, api: Api):
        template_id = created(api)
        response = api.delete(f"/templates/{template_id}")
        assert (response.status_code, response.json()) == (200, {"id": template_id, "deleted": True})
        assert not Template.objects.exists()
        assert code_of(api.get(f"/templates/{template_id}")) == (404, "not_found")
        assert code_of(api.delete(f"/templates/{template_id}")) == (404, "not_found")
        assert code_of(api.patch(f"/templates/{template_id}", {"name": "x"})) == (404, "not_found")
        assert code_of(api.post(f"/templates/{template_id}/preview")) == (404, "not_found")


class TestPreview:
    def test_a_preview_has_the_rendered_parts_and_missing_variables(self, api: Api):
        template_id = created(api, textContent="Hi {{name}} of {{city}} {{user.zip}}")
        response = api.post(f"/templates/{template_id}/preview", {"data": {"name": "<Ada>"}})
        assert (response.status_code, response.json()) == (
            200,
            {
                "subject": "Hello <Ada>",
                "html": "<p>Hi &lt;Ada&gt;</p>",
                "text": "Hi <Ada> of  ",
                "missingVariables": ["city", "user.zip"],
                "locale": None,
            },
        )

    @each("body", [None, {}, {"data": None}, {"data": {}}])
    def test_data_is_optional(self, api: Api, body):
        response = api.post(f"/templates/{created(api)}/preview", body)
        assert (response.status_code, response.json()["missingVariables"]) == (200, ["name"])
        assert response.json()["text"] == ""

    def test_a_strict_template_reports_missing_variables(self, api: Api):
        response = api.post(f"/templates/{created(api, strictVariables=True)}/preview", {"data": {}})
        assert (response.status_code, response.json()["missingVariables"]) == (200, ["name"])

    @each(
        ("body", "field", "code"),
        [
            ({"data": []}, "data", "invalid_type"),
            ({"data": "x"}, "data", "invalid_type"),
            ({"templateData": {}}, "templateData", "unknown_field"),
            ({"name": "Ada"}, "name", "unknown_field"),
        ],
    )
    def test_an_invalid_body_is_rejected(self, api: Api, body, field, code):
        assert field_codes(api.post(f"/templates/{created(api)}/preview", body)) == {field: code}

    def test_an_output_that_is_too_large_is_422(self, api: Api):
        template_id = created(api, htmlContent="{{{a}}}" * 4)
        quarter = "x" * (MIB // 2)
        assert api.post(f"/templates/{template_id}/preview", {"data": {"a": quarter}}).status_code == 200
        response = api.post(f"/templates/{template_id}/preview", {"data": {"a": quarter + "x"}})
        assert code_of(response) == (422, "template_output_too_large")

    def test_the_preview_shows_the_newest_version(self, api: Api):
        template_id = created(api)
        api.patch(f"/templates/{template_id}", {"subject": "New"})
        assert api.post(f"/templates/{template_id}/preview").json()["subject"] == "New"

    def test_the_preview_changes_nothing(self, api: Api):
        template_id = created(api)
        before = get(api, template_id)
        api.post(f"/templates/{template_id}/preview", {"data": {"name": "x"}})
        assert get(api, template_id) == before
        assert TemplateVersion.objects.count() == 1
