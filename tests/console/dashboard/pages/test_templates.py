import json

from console.dashboard.pages.templates.drafts import sample_data
from console.dashboard.ui.preview import PREVIEW_POLICY
from templates_app.content import TemplateContent
from templates_app.models import Template

LIST = "/dashboard/templates/"
FORM = {"name": "Receipt", "alias": "receipt", "subject": "Order {{order}}", "html": "<p>{{name}}</p>", "text": ""}


def add(owner, **fields):
    return owner.post(f"{LIST}add/", {**FORM, **fields})


def check(owner, **fields):
    return owner.post(f"{LIST}check/", {**FORM, "data": '{"name": "Ada", "order": 7}', **fields}).json()


def test_a_template_is_created_and_changed(owner, alice):
    response = add(owner, html="<p>\r\n{{name}}</p>", strict_variables="on", deliver_within="600")

    template = Template.objects.get()
    assert response.url == f"{LIST}{template.id}/"
    assert (template.workspace, template.alias, template.strict_variables) == (alice.workspace, "receipt", True)
    assert (template.version.html, template.deliver_within) == ("<p>\n{{name}}</p>", 600)

    owner.post(f"{LIST}{template.id}/", {**FORM, "name": "Bill", "alias": ""})
    template.refresh_from_db()
    assert (template.name, template.alias, template.strict_variables) == ("Bill", None, False)
    assert template.deliver_within is None


def test_an_invalid_value_is_an_error_of_its_field(owner):
    for name, value in (
        ("name", ""),
        ("subject", "x" * 999),
        ("alias", "no blanks"),
        ("deliver_within", "29"),
        ("html", "x" * (1024 * 1024 + 1)),
        ("html", "{{#if a}}"),
    ):
        assert list(add(owner, **{name: value}).context["form"].errors) == [name], value[:20]
    assert "line 2, column 3" in add(owner, html="<p>\n  {{/if}}").text
    assert not Template.objects.exists()
    add(owner)
    assert "alias" in str(add(owner).context["form"].errors)
    assert Template.objects.count() == 1


def test_the_check_renders_unsaved_content(owner):
    result = check(owner)

    assert result == {"subject": "Order 7", "html": "<p>Ada</p>", "text": "", "locale": None, "missing": []}
    assert not Template.objects.exists()


def test_the_check_reports_errors(owner):
    long = json.dumps({"a": [1] * 200, "b": [1] * 200})
    for fields, expected in (
        ({"data": "{}"}, {"missing": ["order", "name"]}),
        ({"data": "{nonsense"}, {"field": "data"}),
        ({"data": "[1]"}, {"field": "data"}),
        ({"data": "[" * 100_000}, {"field": "data"}),
        ({"html": "a\n{{#each x}}"}, {"field": "html", "line": 2, "column": 1}),
        ({"subject": "{{"}, {"field": "subject"}),
        (
            {"html": "{{#each a}}{{#each b}}{{#each a}}x{{/each}}{{/each}}{{/each}}", "data": long},
            {"field": "data"},
        ),
    ):
        result = check(owner, **fields)
        assert {name: result[name] for name in expected} == expected


def test_the_preview_is_sandboxed(owner):
    response = owner.post(f"{LIST}preview/", {**FORM, "html": "<script>alert(1)</script>{{name}}", "data": ""})

    assert response.content == b"<script>alert(1)</script>"
    assert response["Content-Security-Policy"] == PREVIEW_POLICY
    assert PREVIEW_POLICY.startswith("sandbox allow-same-origin; default-src 'none'")


def test_deleting_requires_confirmation(owner):
    add(owner)
    path = f"{LIST}{Template.objects.get().id}/delete/"

    assert owner.get(path).status_code == 200
    assert Template.objects.exists()
    assert owner.post(path).url == LIST
    assert not Template.objects.exists()


def test_a_sample_has_a_value_for_every_variable(owner):
    content = TemplateContent(
        "{{user.name}}",
        "{{#if vip}}{{code}}{{/if}}{{#each items}}{{title}} {{@index}}{{/each}}{{#each x}}{{this}}{{/each}}",
    )

    sample = json.loads(sample_data(content, workspace=None, kind="template"))

    assert sample == {
        "user": {"name": "name"},
        "vip": True,
        "code": "code",
        "items": [{"title": "title"}, {"title": "title"}],
        "x": ["one", "two"],
    }
