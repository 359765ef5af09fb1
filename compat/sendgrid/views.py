"""SendGrid's API: mail/send, scopes, suppression lists and templates."""

import time
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from api.errors import NotFound
from api.parser import MAX_BODY_BYTES
from compat.sendgrid import requests, resources
from compat.sendgrid.errors import render_error
from compat.views import AbsentEndpointMixin, AcceptingMixin, DialectViewSet, R
from emails.accept.idempotency import StoredResponse, find_response, read_header_key
from emails.accept.services import accept_emails, check_emails
from emails.accept.suppressed import SuppressionPolicy
from emails.models import Email
from lib.email_addresses import normalize_address
from suppressions.models import Suppression
from suppressions.services import delete_suppressions
from templates_app.models import Template
from templates_app.services import find_template
from workspaces.models import ApiKey

OPERATION = "sendgrid"
MAX_LISTED = 500


class SendGridViewSet(AbsentEndpointMixin, DialectViewSet[R]):
    provider = "sendgrid"
    render_error = staticmethod(render_error)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        answer = super().finalize_response(request, response, *args, **kwargs)
        for name, value in self.level.headers().items() if self.level else ():
            # Reset is a time here, and a number of seconds in `/v1`.
            answer[f"X-{name}"] = str(int(time.time()) + int(value)) if name.endswith("Reset") else value
        return answer


class SendGridMailViewSet(AcceptingMixin, SendGridViewSet[Email]):
    queryset = Email.objects.none()
    sending_actions = frozenset({"send", "scopes"})
    accepting_actions = frozenset({"send"})
    body_bytes: ClassVar = {"send": MAX_BODY_BYTES}

    def send(self, request: Request) -> Response:
        if requests.is_sandboxed(self.body):
            check_emails(self.workspace, drafts=requests.read_emails(self.body))
            return Response(status=status.HTTP_200_OK)
        stored = self._accept()
        headers = {**stored.headers, "X-Message-Id": resources.message_id(stored)}
        return Response(status=status.HTTP_202_ACCEPTED, headers=headers)

    def _accept(self) -> StoredResponse:
        key = read_header_key(self.request, operation=OPERATION)
        return find_response(self.workspace, key) or accept_emails(
            self.workspace,
            drafts=requests.read_emails(self.body),
            key=key,
            all_or_nothing=True,
            suppressed=SuppressionPolicy.ACCEPT,
        )

    def scopes(self, request: Request) -> Response:
        key = request.auth
        assert isinstance(key, ApiKey)
        return Response({"scopes": resources.SCOPES[ApiKey.Scope(key.scope)]})


class SendGridSuppressionViewSet(SendGridViewSet[Suppression]):
    """The suppressions of one reason; lists without a reason here are empty."""

    queryset = Suppression.objects.all()

    def get_queryset(self) -> QuerySet[Suppression]:
        reason = resources.LISTS[self.kwargs["name"]]
        rows = super().get_queryset()
        return rows.filter(reason=reason) if reason else rows.none()

    def list(self, request: Request, name: str) -> Response:
        return Response([resources.suppression_resource(row) for row in self.get_queryset()[:MAX_LISTED]])

    def retrieve(self, request: Request, name: str, address: str) -> Response:
        rows = self.get_queryset().filter(address_key=_key(address))
        return Response([resources.suppression_resource(row) for row in rows])

    def destroy(self, request: Request, name: str, address: str) -> Response:
        if not self.get_queryset().filter(address_key=_key(address)).exists():
            raise NotFound("Not found in this workspace.")
        delete_suppressions(self.workspace, addresses=[_key(address)])
        return Response(status=status.HTTP_204_NO_CONTENT)


class SendGridTemplateViewSet(SendGridViewSet[Template]):
    queryset = Template.objects.select_related("version")
    sending_actions = frozenset({"list", "retrieve"})

    def list(self, request: Request) -> Response:
        rows = self.get_queryset().defer("version__html", "version__text")
        items = [resources.template_item(row) for row in rows]
        return Response({"templates": items, "result": items})

    def retrieve(self, request: Request, reference: str) -> Response:
        template = find_template(self.workspace, requests.template_reference(reference) or "")
        return Response(resources.template_resource(template))


def _key(address: str) -> str:
    return normalize_address(address)
