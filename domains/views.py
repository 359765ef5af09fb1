"""`/v1/domains`: register, list, retrieve, change, verify, rotate the DKIM key, delete."""

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.fields import DeletedSerializer
from core.workspaces.api.viewsets import WorkspaceViewSet
from domains.check_queue.verify import verify_domain
from domains.models import Domain
from domains.schema import domains_schema
from domains.serializers import DomainChanges, DomainInput, DomainSerializer
from domains.services import change_domain, delete_domain, register_domain, rotate_dkim_key


@domains_schema
class DomainViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[Domain]):
    queryset = Domain.objects.select_related("tracking_host", "receiving_domain").prefetch_related("dkim_keys")
    serializer_class = DomainSerializer
    sending_actions = frozenset({"list", "retrieve"})

    def create(self, request: Request) -> Response:
        domain = register_domain(self.workspace, name=self.valid(DomainInput)["name"])
        return Response(DomainSerializer(domain).data, status=status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        change_domain(self.get_object(), self.valid(DomainChanges))
        return self.retrieve(request, pk)

    def destroy(self, request: Request, pk: str) -> Response:
        domain = self.get_object()
        delete_domain(domain)
        return Response(DeletedSerializer({"id": pk}).data)

    @action(detail=True, methods=["post"])
    def verify(self, request: Request, pk: str) -> Response:
        verify_domain(self.get_object())
        return self.retrieve(request, pk)

    @action(detail=True, methods=["post"], url_path="rotate-dkim")
    def rotate_dkim(self, request: Request, pk: str) -> Response:
        rotate_dkim_key(self.get_object())
        return self.retrieve(request, pk)
