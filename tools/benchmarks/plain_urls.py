"""Plain DRF view with the same writes as POST /v1/emails/send: a serializer, the ORM, one row per statement."""

from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.urls import path
from django.utils import timezone
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config import health
from core.counters.models import CounterDelta
from core.lib.worker.stages import Stage
from core.workspaces.api_key_secrets import parse_key, secret_matches
from core.workspaces.models import ApiKey, Usage
from domains.models import Domain
from emails.models import Content, Email, QueueEntry, Recipient
from events.models import Event
from suppressions.models import Suppression


class PlainKey(BaseAuthentication):
    def authenticate(self, request: Request) -> Any:
        given = parse_key(request.META["HTTP_AUTHORIZATION"].partition(" ")[2])
        key = ApiKey.objects.select_related("workspace").get(id=given.id if given else None)
        assert given
        assert secret_matches(given.secret, key.secret_hash)
        return None, key


class SendSerializer(serializers.Serializer[Any]):
    locals()["from"] = serializers.EmailField()
    to = serializers.ListField(child=serializers.EmailField(), max_length=50)
    subject = serializers.CharField(max_length=998)
    html = serializers.CharField()


class PlainSend(APIView):
    authentication_classes = (PlainKey,)
    permission_classes = ()
    parser_classes = (JSONParser,)

    def post(self, request: Request) -> Response:
        body = SendSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        with transaction.atomic():
            email = self.create(request.auth.workspace, body.validated_data)  # type: ignore[union-attr]
        return Response({"id": email.id, "status": email.status, "createdAt": email.created_at}, status=202)

    def create(self, workspace: Any, values: dict[str, Any]) -> Email:
        now = timezone.now()
        Domain.objects.get(workspace=workspace, name=values["from"].partition("@")[2])
        assert not Suppression.objects.filter(workspace=workspace, address_key__in=values["to"]).exists()
        email = Email.objects.create(
            workspace=workspace,
            content=Content.objects.create(html=values["html"], text=""),
            sender=values["from"],
            from_domain=values["from"].partition("@")[2],
            to=values["to"],
            cc=[],
            bcc=[],
            subject=values["subject"],
            search_text=f"{', '.join(values['to'])}\n{values['subject']}".lower(),
            tags=[],
            created_at=now,
            status="queued",
        )
        for position, address in enumerate(values["to"]):
            recipient = Recipient.objects.create(
                email=email, kind="to", position=position, address=address, state="queued"
            )
            QueueEntry.objects.create(
                recipient=recipient,
                workspace_id=workspace.id,
                domain=address.partition("@")[2],
                stage=Stage.READY,
                due_at=now,
                since=now,
            )
        Event.objects.create(email=email, kind="queued", payload={"emailId": email.id}, created_at=now)
        CounterDelta.objects.create(
            workspace_id=workspace.id,
            hour=now.replace(minute=0, second=0, microsecond=0),
            key="status.queued",
            change=1,
        )
        usage, _ = Usage.objects.select_for_update().get_or_create(
            workspace=workspace, month=now.date().replace(day=1), defaults={"used": 0}
        )
        Usage.objects.filter(id=usage.id).update(used=F("used") + 1)
        ApiKey.objects.filter(id=self.request.auth.id).update(last_used_at=Now())  # type: ignore[union-attr]
        return email


urlpatterns = [path("v1/emails/send", PlainSend.as_view()), path("healthz", health.healthz)]
