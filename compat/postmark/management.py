"""Postmark's API: suppressions, templates and the server."""

from typing import ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from api.errors import NotFound
from compat.drafts import as_objects, read_address
from compat.postmark import filters, requests, resources
from compat.postmark.template_requests import read_changes, read_template, validate
from compat.postmark.views import PostmarkViewSet
from compat.postmark.webhook_format import STREAM
from suppressions.models import Suppression
from suppressions.services import delete_suppressions, suppress_addresses
from templates_app.models import Template
from templates_app.services import create_template, delete_template, find_template, update_template
from templates_app.views import MAX_TEMPLATE_BODY_BYTES

MAX_SUPPRESSIONS = 50
MAX_DUMPED = 10_000


class PostmarkSuppressionViewSet(PostmarkViewSet[Suppression]):
    """Suppressions of the workspace, whichever stream the path names."""

    queryset = Suppression.objects.all()

    def dump(self, request: Request, stream: str) -> Response:
        query = filters.read_filters(request, known=filters.SUPPRESSIONS)
        rows = filters.filter_suppressions(self.get_queryset(), query)
        return Response({"Suppressions": [resources.suppression_resource(row) for row in rows[:MAX_DUMPED]]})

    def create(self, request: Request, stream: str) -> Response:
        addresses = self._addresses()
        suppress_addresses(self.workspace, addresses=addresses, reason=Suppression.Reason.MANUAL)
        return _statuses(addresses, "Suppressed")

    def delete(self, request: Request, stream: str) -> Response:
        addresses = self._addresses()
        delete_suppressions(self.workspace, addresses=addresses)
        return _statuses(addresses, "Deleted")

    def _addresses(self) -> list[str]:
        entries = as_objects(self.body.get("Suppressions"), "Suppressions", at_most=MAX_SUPPRESSIONS)
        return [read_address(entry.get("EmailAddress"), "EmailAddress") for entry in entries]


class PostmarkTemplateViewSet(PostmarkViewSet[Template]):
    queryset = Template.objects.select_related("version")
    sending_actions = frozenset({"list", "retrieve", "validate"})
    reading_actions = frozenset({"validate"})
    body_bytes: ClassVar = dict.fromkeys(("create", "update", "validate"), MAX_TEMPLATE_BODY_BYTES)

    def list(self, request: Request) -> Response:
        rows: QuerySet[Template] = self.get_queryset().defer("version__html", "version__text")
        items = [resources.template_item(row) for row in rows[requests.read_slice(request)]]
        return Response({"TotalCount": rows.count(), "Templates": items})

    def create(self, request: Request) -> Response:
        template = create_template(self.workspace, **read_template(self.body))
        return Response(resources.template_item(template))

    def retrieve(self, request: Request, reference: str) -> Response:
        return Response(resources.template_resource(self._find(reference)))

    def update(self, request: Request, reference: str) -> Response:
        template = update_template(self._find(reference), changes=read_changes(self.body))
        return Response(resources.template_item(template))

    def destroy(self, request: Request, reference: str) -> Response:
        delete_template(self._find(reference))
        return Response({"ErrorCode": 0, "Message": f"Template {reference} removed."})

    def validate(self, request: Request) -> Response:
        return Response(validate(self.body))

    def _find(self, reference: str) -> Template:
        return find_template(self.workspace, resources.template_ids(self.workspace).get(reference, reference))


class PostmarkServerViewSet(PostmarkViewSet[Template]):
    queryset = Template.objects.none()

    def retrieve(self, request: Request) -> Response:
        return Response(resources.server_resource(self.workspace))


class PostmarkStreamViewSet(PostmarkViewSet[Template]):
    """The only message stream."""

    queryset = Template.objects.none()

    def list(self, request: Request) -> Response:
        return Response({"MessageStreams": [resources.stream_resource(self.workspace)], "TotalCount": 1})

    def retrieve(self, request: Request, stream: str) -> Response:
        if stream != STREAM:
            raise NotFound("Not found: a workspace has one stream, outbound.")
        return Response(resources.stream_resource(self.workspace))


def _statuses(addresses: list[str], status: str) -> Response:
    entries = [{"EmailAddress": address, "Status": status, "Message": None} for address in addresses]
    return Response({"Suppressions": entries})
