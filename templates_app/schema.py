"""`/v1/templates` in the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import extend_schema_view
from rest_framework import serializers

from api.schema import (
    NOT_FOUND,
    TEXT,
    VALIDATION_ERROR,
    WHOLE,
    DeletedSerializer,
    answer,
    array_of,
    known,
    page_of,
    paging,
)
from api.schema_fields import show_as
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

TEMPLATE_NOT_FOUND = known(errors.TemplateNotFound, "There is no template 'welcome' in this workspace.")
TEMPLATE_SYNTAX_ERROR = known(
    errors.TemplateSyntaxInvalid,
    "htmlContent, line 3, column 7: {{#if}} is never closed.",
    members={"field": TEXT, "line": WHOLE, "column": WHOLE},
    example={"field": "htmlContent", "line": 3, "column": 7},
)
MISSING_TEMPLATE_VARIABLES = known(
    errors.MissingTemplateVariables,
    "The template is strict, and the data has no value for name.",
    members={"variables": array_of(TEXT), "indexes": array_of(WHOLE)},
    optional=frozenset({"indexes"}),
    example={"variables": ["name"], "indexes": [0, 3]},
)
TEMPLATE_OUTPUT_TOO_LARGE = known(
    errors.TemplateOutputTooLarge,
    "recipients[3]: the email would have more than 2 MiB.",
    members={"field": TEXT},
    optional=frozenset({"field"}),
    example={"field": "recipients[3]"},
)
ALIAS_TAKEN = known(errors.AliasTaken, "Another template of this workspace has the alias 'welcome'.")


show_as(ContentField, {"type": "string", "maxLength": MAX_BYTES})


class TemplateChanges(TemplateInput):
    """The same fields, none of them required."""

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
        "Returns the workspace's templates without their texts, newest first.",
        scope=ANY,
        answers=[
            answer(
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
        "Keeps a subject and texts with variables such as `{{name}}`, to be filled in with an email's `templateData`. "
        'Values are escaped in HTML; `{{{name}}}` is not. Defaults are written `{{name|"there"}}`; there are '
        "`{{#if}}`, `{{#unless}}` and `{{#each}}`. With `strictVariables` an email that lacks a value is refused; "
        "without, the value is empty and the answer warns. An `alias` can stand wherever a template's id can.",
        scope=FULL,
        body=TemplateInput,
        bodies={
            "A template": {"name": "Welcome", "subject": "Welcome, {{name}}", "alias": "welcome", **CONTENT},
            "The least": {"name": "Bye", "subject": "Goodbye", "htmlContent": "<p>Goodbye!</p>"},
        },
        answers=[answer(201, TemplateSerializer, "The template is kept.", example=TEMPLATE)],
        problems=[TEMPLATE_SYNTAX_ERROR, ALIAS_TAKEN, PLAN_LIMIT_REACHED],
    ),
    retrieve=keyed_operation(
        "getTemplate",
        "Get a template",
        "Returns one template with its texts.",
        scope=ANY,
        answers=[answer(200, TemplateSerializer, "The template.", example=TEMPLATE)],
        problems=[NOT_FOUND],
    ),
    partial_update=keyed_operation(
        "updateTemplate",
        "Change a template",
        "Changes the fields that are given. Emails that were accepted before keep what they were accepted with.",
        scope=FULL,
        body=TemplateChanges,
        bodies={"Another subject": {"subject": "Good to see you, {{name}}"}},
        answers=[
            answer(
                200,
                TemplateSerializer,
                "The template as it is now.",
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
        "Deletes the template. Emails that were accepted with it are sent and kept as they are.",
        scope=FULL,
        answers=[answer(200, DeletedSerializer, "The template is gone.", example={"id": ITEM["id"], "deleted": True})],
        problems=[NOT_FOUND],
    ),
    preview=keyed_operation(
        "previewTemplate",
        "Preview a template",
        "Renders the template with the given data and sends nothing. `missingVariables` names the variables that have "
        "no value; they are rendered as nothing. The body may be left out.",
        scope=ANY,
        body=PreviewInput,
        body_may_be_empty=True,
        bodies={"With data": {"data": {"name": "Ada"}}},
        answers=[
            answer(
                200,
                PreviewSerializer,
                "The template, rendered.",
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
