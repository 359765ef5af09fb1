"""`/v1/templates`: create, list, retrieve, update, delete and preview."""

from typing import ClassVar

from django.db.models import QuerySet
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.generics import get_object_or_404
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.fields import DeletedSerializer
from core.workspaces.api.viewsets import WorkspaceViewSet
from templates_app.models import Template
from templates_app.schema import templates_schema
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


@templates_schema
class TemplateViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[Template]):
    queryset = Template.objects.select_related("version")
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
        return templates.defer("version__html", "version__text") if self.action == "list" else templates

    def get_serializer_class(self) -> type[TemplateItemSerializer]:
        return TemplateItemSerializer if self.action == "list" else TemplateSerializer

    def create(self, request: Request) -> Response:
        template = create_template(self.workspace, **new_template(self.valid(TemplateInput)))
        return Response(TemplateSerializer(template).data, status=status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        template = self.get_object()
        changed = update_template(template, changes=self.valid(TemplateChanges))
        return Response(TemplateSerializer(changed).data)

    def destroy(self, request: Request, pk: str) -> Response:
        template = self.get_object()
        delete_template(template)
        return Response(DeletedSerializer(template).data)

    @action(detail=True, methods=["post"])
    def preview(self, request: Request, pk: str) -> Response:
        data = self.valid(PreviewInput, may_be_empty=True).get("data") or {}
        return Response(PreviewSerializer(preview_template(self.get_object(), data=data)).data)
