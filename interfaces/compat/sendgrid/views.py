"""SendGrid's API: mail/send and scopes."""

import time
from typing import Any, ClassVar

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import Problem
from core.api.parser import MAX_BODY_BYTES
from core.workspaces.api.authentication import key_of
from core.workspaces.models import ApiKey
from emails.accept.drafts import Draft
from emails.accept.services import check_emails
from emails.models import Email
from interfaces.compat.sendgrid import requests, resources
from interfaces.compat.sendgrid.errors import render_error
from interfaces.compat.sendgrid.group_ids import read_stream
from interfaces.compat.views import DialectViewSet, R


class SendGridViewSet(DialectViewSet[R]):
    provider = "sendgrid"
    render_error = staticmethod(render_error)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        answer = super().finalize_response(request, response, *args, **kwargs)
        for name, value in self.level.headers().items() if self.level else ():
            # Reset is a time here, and a number of seconds in `/v1`.
            answer[f"X-{name}"] = str(int(time.time()) + int(value)) if name.endswith("Reset") else value
        return answer


class SendGridMailViewSet(SendGridViewSet[Email]):
    queryset = Email.objects.none()
    sending_actions = sending_only_actions = frozenset({"send", "scopes"})
    accepting_actions = frozenset({"send"})
    body_bytes: ClassVar = {"send": MAX_BODY_BYTES}

    def send(self, request: Request) -> Response:
        if requests.is_sandboxed(self.body):
            check_emails(self.workspace, drafts=self._read_emails(), limits=self.limits)
            return Response(status=status.HTTP_200_OK)
        stored = self.accept(self._read_emails)
        headers = {**stored.headers, "X-Message-Id": resources.message_id(stored)}
        return Response(status=status.HTTP_202_ACCEPTED, headers=headers)

    def scopes(self, request: Request) -> Response:
        return Response({"scopes": sorted(resources.SCOPES[ApiKey.Scope(key_of(request).scope)])})

    def _read_emails(self) -> list[Draft | Problem]:
        stream = read_stream(self.body, workspace=self.workspace, limits=self.limits)
        return requests.read_emails(self.body, stream=stream)
