"""SendGrid's API: authenticated domains, which are the sending domains of the workspace."""

from django.db.models import QuerySet
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from domains.check_queue.verify import verify_domain
from domains.models import Domain
from domains.serializers import DomainInput
from domains.services import delete_domain, register_domain
from interfaces.compat.drafts import validate_field
from interfaces.compat.sendgrid import requests, resources
from interfaces.compat.sendgrid.views import SendGridViewSet


class SendGridDomainViewSet(SendGridViewSet[Domain]):
    queryset = Domain.objects.select_related("tracking_host", "receiving_domain").prefetch_related("dkim_keys")
    sending_actions = frozenset({"list", "retrieve"})
    id_prefix = "dom_"

    def list(self, request: Request) -> Response:
        rows: QuerySet[Domain] = self.get_queryset()
        if name := request.query_params.get("domain"):
            rows = rows.filter(name__contains=name.lower())
        return Response([resources.domain_resource(domain) for domain in rows[requests.read_slice(request)]])

    def create(self, request: Request) -> Response:
        name = validate_field(DomainInput().fields["name"], self.body.get("domain"), name="domain")
        domain = register_domain(self.workspace, name=name)
        return Response(resources.domain_resource(domain), status=status.HTTP_201_CREATED)

    def retrieve(self, request: Request, number: str) -> Response:
        return Response(resources.domain_resource(self.find_number(number)))

    def destroy(self, request: Request, number: str) -> Response:
        delete_domain(self.find_number(number))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def verify(self, request: Request, number: str) -> Response:
        verify_domain(self.find_number(number))
        return Response(resources.validation_resource(self.find_number(number)))
