"""`/v1/templates` in the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import extend_schema_view
from rest_framework import serializers

from api.schema import (
    INTEGER,
    NOT_FOUND,
    TEXT,
    VALIDATION_ERROR,
    DeletedSerializer,
    array_of,
    describe_problem,
    page_of,
    paging,
    response,
)
from api.schema_fields import set_field_schema
from templates_app import errors
from templates_app.serializers import (
    MAX_BYTES,
    ContentField,
    PreviewInput,
    TemplateInput,
    TemplateItemSerializer,
    TemplateSerializer,
)
from workspaces.api.schema import ANY, FULL, PLAN_LIMIT_REACHED, keyed_operation

TEMPLATE_NOT_FOUND = describe_problem(errors.TemplateNotFound, "There is no template with the id or alias 'welcome'.")
TEMPLATE_SYNTAX_ERROR = describe_problem(
    errors.TemplateSyntaxInvalid,
    "htmlContent, line 3, column 7: {{#if name}} is not closed: {{/if}} is missing.",
    members={"field": TEXT, "line": INTEGER, "column": INTEGER},
    example={"field": "htmlContent", "line": 3, "column": 7},
)
MISSING_TEMPLATE_VARIABLES = describe_problem(
    errors.MissingTemplateVariables,
    "The data has no value for name, and the template has strictVariables. Add a value or a default.",
    members={"variables": array_of(TEXT), "indexes": array_of(INTEGER)},
    optional=frozenset({"indexes"}),
    example={"variables": ["name"], "indexes": [0, 3]},
)
TEMPLATE_OUTPUT_TOO_LARGE = describe_problem(
    errors.TemplateOutputTooLarge,
    "recipients[3]: The email would be larger than 2 MiB.",
    members={"field": TEXT},
    optional=frozenset({"field"}),
    example={"field": "recipients[3]"},
)
ALIAS_TAKEN = describe_problem(errors.AliasTaken, "Another template of this workspace has the alias 'welcome'.")


set_field_schema(ContentField, {"type": "string", "maxLength": MAX_BYTES})


class TemplateChanges(TemplateInput):
    """The fields of TemplateInput, none of them required."""

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        for field in fields.values():
            field.required = False
        return fields


class PreviewSerializer(serializers.Serializer[Any]):
    subject = serializers.CharField()
    html = serializers.CharField()
    text = serializers.CharField()
    missingVariables = serializers.ListField(child=serializers.CharField())  # noqa: N815


ITEM = {
    "id": "tpl_0Uf7mB5hJ8kLpQsVxZaWcE",
    "name": "Welcome",
    "subject": "Welcome, {{name}}",
    "alias": "welcome",
    "strictVariables": False,
    "createdAt": "2026-11-19T14:10:52.318Z",
    "updatedAt": "2026-11-19T14:10:52.318Z",
}
CONTENT = {"htmlContent": "<p>Hello {{name}}!</p>", "textContent": "Hello {{name}}!"}
TEMPLATE = {**ITEM, **CONTENT}

templates_schema = extend_schema_view(
    list=keyed_operation(
        "listTemplates",
        "List templates",
        "Returns the workspace's templates without their content, newest first.",
        scope=ANY,
        responses=[
            response(
                200,
                page_of(TemplateItemSerializer, name="TemplatePage"),
                "A page of templates.",
                example={"data": [ITEM], "total": 1, "page": 1, "limit": 20},
            )
        ],
        problems=[VALIDATION_ERROR],
        parameters=paging(default=20),
    ),
    create=keyed_operation(
        "createTemplate",
        "Create a template",
        "Stores a subject, HTML and text with variables such as `{{name}}`, which an email's `templateData` fills in. "
        'Values are escaped in HTML, except with `{{{name}}}`. Defaults are written `{{name|"there"}}`; the sections '
        "are `{{#if}}`, `{{#unless}}` and `{{#each}}`. With `strictVariables`, an email that lacks a value is refused; "
        "otherwise the value is empty and the response has a warning. An `alias` can be used in place of a template's "
        "id.",
        scope=FULL,
        body=TemplateInput,
        bodies={
            "A template": {"name": "Welcome", "subject": "Welcome, {{name}}", "alias": "welcome", **CONTENT},
            "A minimal template": {"name": "Bye", "subject": "Goodbye", "htmlContent": "<p>Goodbye!</p>"},
        },
        responses=[response(201, TemplateSerializer, "The template was created.", example=TEMPLATE)],
        problems=[TEMPLATE_SYNTAX_ERROR, ALIAS_TAKEN, PLAN_LIMIT_REACHED],
    ),
    retrieve=keyed_operation(
        "getTemplate",
        "Get a template",
        "Returns one template with its content.",
        scope=ANY,
        responses=[response(200, TemplateSerializer, "The template.", example=TEMPLATE)],
        problems=[NOT_FOUND],
    ),
    partial_update=keyed_operation(
        "updateTemplate",
        "Change a template",
        "Changes the given fields. Emails accepted before the change keep the old content.",
        scope=FULL,
        body=TemplateChanges,
        bodies={"Another subject": {"subject": "Good to see you, {{name}}"}},
        responses=[
            response(
                200,
                TemplateSerializer,
                "The updated template.",
                example={
                    **TEMPLATE,
                    "subject": "Good to see you, {{name}}",
                    "updatedAt": "2026-11-20T08:01:00.277Z",
                },
            )
        ],
        problems=[NOT_FOUND, TEMPLATE_SYNTAX_ERROR, ALIAS_TAKEN],
    ),
    destroy=keyed_operation(
        "deleteTemplate",
        "Delete a template",
        "Deletes the template. Emails already accepted with it are not affected.",
        scope=FULL,
        responses=[
            response(200, DeletedSerializer, "The template was deleted.", example={"id": ITEM["id"], "deleted": True})
        ],
        problems=[NOT_FOUND],
    ),
    preview=keyed_operation(
        "previewTemplate",
        "Preview a template",
        "Renders the template with the given data without sending. `missingVariables` lists the variables without a "
        "value, which are rendered as empty. The request body is optional.",
        scope=ANY,
        body=PreviewInput,
        body_may_be_empty=True,
        bodies={"With data": {"data": {"name": "Ada"}}},
        responses=[
            response(
                200,
                PreviewSerializer,
                "The rendered template.",
                example={
                    "subject": "Welcome, Ada",
                    "html": "<p>Hello Ada!</p>",
                    "text": "Hello Ada!",
                    "missingVariables": [],
                },
            )
        ],
        problems=[NOT_FOUND, TEMPLATE_OUTPUT_TOO_LARGE],
    ),
)
