"""`/v1/emails`: send, look at one, follow its timeline."""

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.mixins import RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from emails.accept import send_email
from emails.idempotency import Answer, read_key, replay
from emails.models import Email
from emails.permissions import MayAccept
from emails.serializers import EmailSerializer, EventSerializer, SendInput
from workspaces.scopes import HasScope
from workspaces.viewsets import WorkspaceViewSet


class EmailViewSet(RetrieveModelMixin, WorkspaceViewSet[Email]):
    queryset = Email.objects.select_related("content").prefetch_related("recipients")
    serializer_class = EmailSerializer
    permission_classes = (HasScope, MayAccept)
    sending_actions = frozenset({"send", "retrieve", "events"})

    @action(detail=False, methods=["post"])
    def send(self, request: Request) -> Response:
        key = read_key(request, operation="send")
        answer = replay(self.workspace, key)
        if answer is None:
            answer = send_email(self.workspace, draft=self.valid(SendInput), key=key)
        return accepted(answer)

    @action(detail=True)
    def events(self, request: Request, pk: str) -> Response:
        email = self.get_object()
        return Response({"data": EventSerializer(email.events.all(), many=True).data})


def accepted(answer: Answer) -> Response:
    return Response(answer.body, status=status.HTTP_202_ACCEPTED, headers=answer.headers)
