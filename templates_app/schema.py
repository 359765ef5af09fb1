"""`/v1/templates` in the OpenAPI document."""

from drf_spectacular.utils import OpenApiParameter

from core.api.fields import DeletedSerializer
from core.api.schema import Operation, response
from core.workspaces.api.schema import keyed_view
from core.workspaces.errors import PlanLimitReached
from templates_app.errors import AliasTaken, TemplateOutputTooLarge, TemplateSyntaxInvalid
from templates_app.serializers import (
    PreviewInput,
    PreviewSerializer,
    TemplateChanges,
    TemplateInput,
    TemplateItemSerializer,
    TemplateSerializer,
)

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

ID_OR_ALIAS = OpenApiParameter("id", str, OpenApiParameter.PATH, description="The id or the alias of the template.")

templates_schema = keyed_view(
    list=Operation(
        "listTemplates",
        "List templates",
        "Returns the workspace's templates without their content, newest first.",
        response(TemplateItemSerializer, "A page of templates.", ITEM),
    ),
    create=Operation(
        "createTemplate",
        "Create a template",
        "Stores a subject, HTML and text with variables such as `{{name}}`, which an email's `templateData` fills in. "
        'Values are escaped in HTML, except with `{{{name}}}`. Defaults are written `{{name|"there"}}`; the sections '
        "are `{{#if}}`, `{{#unless}}`, `{{#each}}`, `{{#with}}` and comparisons such as `{{#equals}}`. With "
        "`strictVariables`, an email that lacks a value is refused; "
        "otherwise the value is empty and the response has a warning. An `alias` can be used in place of a template's "
        "id, also in a path.",
        response(TemplateSerializer, "The template was created.", TEMPLATE, status=201),
        problems=[TemplateSyntaxInvalid, AliasTaken, PlanLimitReached],
        body=TemplateInput,
        bodies={
            "A template": {"name": "Welcome", "subject": "Welcome, {{name}}", "alias": "welcome", **CONTENT},
            "A minimal template": {"name": "Bye", "subject": "Goodbye", "htmlContent": "<p>Goodbye!</p>"},
        },
    ),
    retrieve=Operation(
        "getTemplate",
        "Get a template",
        "Returns one template with its content.",
        response(TemplateSerializer, "The template.", TEMPLATE),
        parameters=[ID_OR_ALIAS],
    ),
    partial_update=Operation(
        "updateTemplate",
        "Change a template",
        "Changes the given fields. Emails accepted before the change keep the old content.",
        response(
            TemplateSerializer,
            "The updated template.",
            {**TEMPLATE, "subject": "Good to see you, {{name}}", "updatedAt": "2026-11-20T08:01:00.277Z"},
        ),
        problems=[TemplateSyntaxInvalid, AliasTaken],
        body=TemplateChanges,
        bodies={"Another subject": {"subject": "Good to see you, {{name}}"}},
        parameters=[ID_OR_ALIAS],
    ),
    destroy=Operation(
        "deleteTemplate",
        "Delete a template",
        "Deletes the template. Emails already accepted with it are not affected.",
        response(DeletedSerializer, "The template was deleted.", {"id": ITEM["id"], "deleted": True}),
        parameters=[ID_OR_ALIAS],
    ),
    preview=Operation(
        "previewTemplate",
        "Preview a template",
        "Renders the template with the given data without sending. `missingVariables` lists the variables without a "
        "value, which are rendered as empty. The request body is optional.",
        response(
            PreviewSerializer,
            "The rendered template.",
            {"subject": "Welcome, Ada", "html": "<p>Hello Ada!</p>", "text": "Hello Ada!", "missingVariables": []},
        ),
        problems=[TemplateOutputTooLarge],
        body=PreviewInput,
        body_may_be_empty=True,
        bodies={"With data": {"data": {"name": "Ada"}}},
        parameters=[ID_OR_ALIAS],
    ),
)
