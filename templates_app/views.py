"""`/v1/templates`: create, list, retrieve, update, delete and preview."""

from typing import ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.generics import get_object_or_404
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.fields import DeletedSerializer
from core.api.schema import Operation, example, response
from core.workspaces.api.schema import keyed_view
from core.workspaces.api.viewsets import WorkspaceViewSet
from core.workspaces.errors import PlanLimitReached
from templates_app.errors import (
    AliasTaken,
    TemplateInUse,
    TemplateNotFound,
    TemplateOutputTooLarge,
    TemplateSyntaxInvalid,
)
from templates_app.models import Template
from templates_app.serializers import (
    PreviewInput,
    PreviewSerializer,
    TemplateChanges,
    TemplateInput,
    TemplateItemSerializer,
    TemplateSerializer,
    new_template,
)
from templates_app.services import create_template, delete_template, preview_template, template_lookup, update_template

# HTML and text of 1 MiB each, with quotes and line ends escaped.
MAX_TEMPLATE_BODY_BYTES = 5 * 1024 * 1024

ITEM = example(
    TemplateItemSerializer,
    id="tpl_0Uf7mB5hJ8kLpQsVxZaWcE",
    name="Welcome",
    subject="Welcome, {{name}}",
    alias="welcome",
    createdAt="2026-11-19T14:10:52.318Z",
    updatedAt="2026-11-19T14:10:52.318Z",
)
CONTENT = {"htmlContent": "<p>Hello {{name}}!</p>", "textContent": "Hello {{name}}!"}
LANGUAGES = {
    "layoutId": "tpl_0Uf7mA2cD4eFgHiJkLmNoP",
    "locale": "en",
    "locales": {"de": {"subject": "Willkommen, {{name}}", "htmlContent": "<p>Hallo {{name}}!</p>"}},
    "fallback": ["en"],
}
TEMPLATE = {**ITEM, **CONTENT, **LANGUAGES, "usedBy": []}
ID_OR_ALIAS = OpenApiParameter("id", str, OpenApiParameter.PATH, description="The id or the alias of the template.")


@keyed_view(
    list=Operation(
        "listTemplates",
        "List templates",
        "Returns the workspace's templates, layouts and partials without their content, newest first.",
        response(TemplateItemSerializer, "A page of templates.", ITEM),
    ),
    retrieve=Operation(
        "getTemplate",
        "Get a template",
        "Returns one template with its content.",
        response(TemplateSerializer, "The template.", TEMPLATE),
        parameters=[ID_OR_ALIAS],
    ),
)
class TemplateViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[Template]):
    queryset = Template.objects.select_related("version", "set")
    sending_actions = frozenset({"list", "retrieve", "preview"})
    reading_actions = frozenset({"preview"})
    # Unlike ids, aliases may contain dots.
    lookup_value_regex = "[^/]+"
    body_bytes: ClassVar = {"create": MAX_TEMPLATE_BODY_BYTES, "partial_update": MAX_TEMPLATE_BODY_BYTES}

    def get_object(self) -> Template:
        template: Template = get_object_or_404(self.get_queryset(), **template_lookup(self.kwargs["pk"]))
        return template

    def get_queryset(self) -> QuerySet[Template]:
        # Lists skip the content, up to a megabyte per field.
        templates = super().get_queryset()
        large = ("version__html", "version__text", "version__locales")
        return templates.defer(*large) if self.action == "list" else templates

    def get_serializer_class(self) -> type[TemplateItemSerializer]:
        return TemplateItemSerializer if self.action == "list" else TemplateSerializer

    @Operation(
        "createTemplate",
        "Create a template",
        "Stores a subject, HTML and text with variables such as `{{name}}`, which an email's `templateData` fills in. "
        'Values are escaped in HTML, except with `{{{name}}}`. Defaults are written `{{name|"there"}}`; the sections '
        "are `{{#if}}`, `{{#unless}}`, `{{#each}}`, `{{#with}}` and comparisons such as `{{#equals}}`. With "
        "`strictVariables`, an email that lacks a value is refused; "
        "otherwise the value is empty and the response has a warning. An `alias` can be used in place of a template's "
        "id, also in a path.\n\n"
        "A template can have a layout, whose HTML and text contain `{{{content}}}` once, and insert partials: "
        "`{{> footer}}` or `{{> footer company=shop.name}}`. Its texts in other languages are in `locales`; the "
        "`locale` of an email selects one. `{{formatNumber x}}`, "
        '`{{formatCurrency x "EUR"}}` and `{{formatDate x "long"}}` write a value in the form of that language.',
        response(TemplateSerializer, "The template was created.", TEMPLATE, status=201),
        problems=[TemplateSyntaxInvalid, TemplateNotFound, AliasTaken, PlanLimitReached],
        body=TemplateInput,
        bodies={
            "A template": {"name": "Welcome", "subject": "Welcome, {{name}}", "alias": "welcome", **CONTENT},
            "A minimal template": {"name": "Bye", "subject": "Goodbye", "htmlContent": "<p>Goodbye!</p>"},
            "A layout": {
                "kind": "layout",
                "name": "Brand",
                "alias": "brand",
                "htmlContent": "<html><body>{{{content}}}{{> footer}}</body></html>",
                "textContent": "{{{content}}}",
            },
            "Two languages": {
                "name": "Welcome",
                "subject": "Welcome, {{name}}",
                "layoutId": "brand",
                **CONTENT,
                "locale": "en",
                "locales": LANGUAGES["locales"],
            },
        },
    )
    def create(self, request: Request) -> Response:
        template = create_template(self.workspace, **new_template(self.valid(TemplateInput)))
        return Response(TemplateSerializer(template).data, status=status.HTTP_201_CREATED)

    @Operation(
        "updateTemplate",
        "Change a template",
        "Changes the given fields. Emails accepted before the change keep the old content, also that of a layout or "
        "partial. `usedBy` lists the templates that change with a layout or partial.",
        response(
            TemplateSerializer,
            "The updated template.",
            {**TEMPLATE, "subject": "Good to see you, {{name}}", "updatedAt": "2026-11-20T08:01:00.277Z"},
        ),
        problems=[TemplateSyntaxInvalid, TemplateNotFound, AliasTaken, TemplateInUse],
        body=TemplateChanges,
        bodies={"Another subject": {"subject": "Good to see you, {{name}}"}},
        parameters=[ID_OR_ALIAS],
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        template = self.get_object()
        changed = update_template(template, changes=self.valid(TemplateChanges))
        return Response(TemplateSerializer(changed).data)

    @Operation(
        "deleteTemplate",
        "Delete a template",
        "Deletes the template. Emails already accepted with it are not affected. A layout or partial that templates "
        "use cannot be deleted.",
        response(DeletedSerializer, "The template was deleted.", example(DeletedSerializer, id=ITEM["id"])),
        problems=[TemplateInUse],
        parameters=[ID_OR_ALIAS],
    )
    def destroy(self, request: Request, pk: str) -> Response:
        template = self.get_object()
        delete_template(template)
        return Response(DeletedSerializer(template).data)

    @Operation(
        "previewTemplate",
        "Preview a template",
        "Renders the template with the given data and language without sending. `missingVariables` lists the variables "
        "without a value, which are rendered as empty. The request body is optional.",
        response(
            PreviewSerializer,
            "The rendered template.",
            {
                "subject": "Welcome, Ada",
                "html": "<p>Hello Ada!</p>",
                "text": "Hello Ada!",
                "missingVariables": [],
                "locale": "en",
            },
        ),
        problems=[TemplateOutputTooLarge],
        body=PreviewInput,
        body_may_be_empty=True,
        bodies={"With data": {"data": {"name": "Ada"}}},
        parameters=[ID_OR_ALIAS],
    )
    @action(detail=True, methods=["post"])
    def preview(self, request: Request, pk: str) -> Response:
        values = self.valid(PreviewInput, may_be_empty=True)
        data, locale = values.get("data") or {}, values.get("locale")
        return Response(PreviewSerializer(preview_template(self.get_object(), data=data, locale=locale)).data)
