"""Postmark's API: emails and messages."""

from collections.abc import Callable
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from api.errors import Problem
from api.parser import MAX_BODY_BYTES
from compat.drafts import as_list, read_drafts
from compat.postmark import requests, resources
from compat.postmark.errors import render_error
from compat.views import AbsentEndpointMixin, AcceptingMixin, DialectViewSet, R
from emails.accept.drafts import Draft
from emails.accept.idempotency import StoredResponse, find_response, read_header_key
from emails.accept.services import accept_emails
from emails.accept.suppressed import SuppressionPolicy
from emails.api.search import filter_by_text
from emails.models import Email, Recipient
from emails.states import EmailStatus
from suppressions.models import Suppression
from workspaces.api.authentication import ApiKeyAuthentication

OPERATION = "postmark"
TOKEN_HEADERS = ("HTTP_X_POSTMARK_SERVER_TOKEN", "HTTP_X_POSTMARK_ACCOUNT_TOKEN")
Reader = Callable[[Any], Draft]


class PostmarkTokenAuthentication(ApiKeyAuthentication):
    """The API key in either of Postmark's headers."""

    def authorization(self, request: Request) -> str:
        token = next((request.META[name] for name in TOKEN_HEADERS if request.META.get(name)), "")
        return f"Bearer {token}" if token else ""


class PostmarkViewSet(AbsentEndpointMixin, DialectViewSet[R]):
    provider = "postmark"
    render_error = staticmethod(render_error)
    authentication_classes = (PostmarkTokenAuthentication,)


class PostmarkEmailViewSet(AcceptingMixin, PostmarkViewSet[Email]):
    queryset = Email.objects.all()
    sending_actions = frozenset({"send", "batch", "send_template", "batch_templates"})
    accepting_actions = sending_actions
    body_bytes: ClassVar = dict.fromkeys(sending_actions, MAX_BODY_BYTES)

    def send(self, request: Request) -> Response:
        return self._accept_one(requests.read_email)

    def send_template(self, request: Request) -> Response:
        return self._accept_one(self._template_reader())

    def batch(self, request: Request) -> Response:
        return self._accept_many(self.items, requests.read_email)

    def batch_templates(self, request: Request) -> Response:
        return self._accept_many(self.body.get("Messages"), self._template_reader())

    def _template_reader(self) -> Reader:
        template_ids = resources.template_ids(self.workspace)
        return lambda item: requests.read_email_with_template(item, template_ids=template_ids)

    def _accept_one(self, read: Reader) -> Response:
        stored = self._accept(lambda: [read(self.request.data)], all_or_nothing=True)
        return Response(resources.sent_resource(self.body, stored.body["results"][0]), headers=stored.headers)

    def _accept_many(self, given: Any, read: Reader) -> Response:
        items = as_list(given, "Messages", at_most=requests.MAX_BATCH)
        stored = self._accept(lambda: read_drafts(read, items), all_or_nothing=False)
        pairs = zip(items, stored.body["results"], strict=True)
        results = [resources.sent_resource(item if isinstance(item, dict) else {}, result) for item, result in pairs]
        return Response(results, headers=stored.headers)

    def _accept(self, read: Callable[[], list[Draft | Problem]], *, all_or_nothing: bool) -> StoredResponse:
        key = read_header_key(self.request, operation=OPERATION)
        return find_response(self.workspace, key) or accept_emails(
            self.workspace, drafts=read(), key=key, all_or_nothing=all_or_nothing, suppressed=SuppressionPolicy.REPORT
        )


class PostmarkMessageViewSet(PostmarkViewSet[Email]):
    queryset = Email.objects.all()
    sending_actions = frozenset({"list", "details"})

    def list(self, request: Request) -> Response:
        page = requests.read_slice(request)
        rows = self._filtered(request.query_params.dict()).defer("template_data")
        messages = [resources.message_resource(email) for email in rows[page]]
        return Response({"TotalCount": rows.order_by().count(), "Messages": messages})

    def _filtered(self, query: dict[str, str]) -> QuerySet[Email]:
        rows = self.get_queryset()
        for name in ("recipient", "subject"):
            rows = filter_by_text(rows, query[name].casefold()) if query.get(name) else rows
        return rows.filter(tags__contains=[query["tag"]]) if query.get("tag") else rows

    def details(self, request: Request, pk: str) -> Response:
        return Response(resources.details_resource(self.find(pk)))


class PostmarkBounceViewSet(PostmarkViewSet[Email]):
    """Bounces of emails that no recipient received."""

    queryset = Email.objects.filter(status=EmailStatus.BOUNCED)

    def list(self, request: Request) -> Response:
        emails = self.get_queryset()
        page = list(emails.values_list("id", flat=True)[requests.read_slice(request)])
        rows = Recipient.objects.filter(email__in=page, state=EmailStatus.BOUNCED).select_related("email")
        rows = rows.defer("email__template_data", "email__metadata")
        bounces = [resources.bounce_resource(row) for row in rows.order_by("-bounced_at", "-id")]
        return Response({"TotalCount": emails.order_by().count(), "Bounces": bounces})

    def delivery_stats(self, request: Request) -> Response:
        count = self.get_queryset().order_by().count()
        inactive = Suppression.objects.filter(workspace=self.workspace).count()
        return Response({"InactiveMails": inactive, "Bounces": [{"Name": "All", "Count": count}]})
