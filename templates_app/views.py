"""`/v1/templates`: create, list, retrieve, update, delete and preview."""

from django.db.models import QuerySet
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from templates_app.models import Template
from templates_app.schema import templates_schema
from templates_app.serializers import (
    PreviewInput,
    TemplateInput,
    TemplateItemSerializer,
    TemplateSerializer,
    new_template,
)
from templates_app.services import create_template, delete_template, preview_template, update_template
from workspaces.api.viewsets import WorkspaceViewSet


@templates_schema
class TemplateViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[Template]):
    queryset = Template.objects.select_related("version")
    sending_actions = frozenset({"list", "retrieve", "preview"})
    reading_actions = frozenset({"preview"})

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
        changed = update_template(template, changes=self.valid(TemplateInput, partial=True))
        return Response(TemplateSerializer(changed).data)

    def destroy(self, request: Request, pk: str) -> Response:
        template = self.get_object()
        delete_template(template)
        return Response({"id": template.id, "deleted": True})

    @action(detail=True, methods=["post"])
    def preview(self, request: Request, pk: str) -> Response:
        data = self.valid(PreviewInput, may_be_empty=True).get("data") or {}
        rendered = preview_template(self.get_object(), data=data)
        body = {"subject": rendered.subject, "html": rendered.html, "text": rendered.text}
        return Response({**body, "missingVariables": list(rendered.missing)})
