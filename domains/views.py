"""`/v1/domains`: register, list, look at one."""

from rest_framework import status
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from domains.models import Domain
from domains.schema import domains_schema
from domains.serializers import DomainInput, DomainSerializer
from domains.services import register_domain
from workspaces.viewsets import WorkspaceViewSet


@domains_schema
class DomainViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[Domain]):
    queryset = Domain.objects.prefetch_related("dkim_keys")
    serializer_class = DomainSerializer
    sending_actions = frozenset({"list", "retrieve"})

    def create(self, request: Request) -> Response:
        domain = register_domain(self.workspace, name=self.valid(DomainInput)["name"])
        return Response(DomainSerializer(domain).data, status=status.HTTP_201_CREATED)
