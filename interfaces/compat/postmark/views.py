"""Postmark's API: emails and messages."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from core.api.parser import MAX_BODY_BYTES
from emails.accept.drafts import Draft
from emails.accept.suppressed import SuppressionPolicy
from emails.listing.counts import count_by_status
from emails.models import Email
from emails.states import EmailStatus
from events.kinds import EventKind
from interfaces.compat.drafts import as_list, read_drafts
from interfaces.compat.postmark import filters, requests, resources
from interfaces.compat.postmark.errors import MESSAGE_QUERY, query_error_handler, render_error
from interfaces.compat.postmark.tokens import TEST_TOKEN, PostmarkTestView, PostmarkTokenAuthentication, given_token
from interfaces.compat.views import DialectViewSet, R, bounded_count

Reader = Callable[[Any], Draft]


class PostmarkViewSet(DialectViewSet[R]):
    provider = "postmark"
    render_error = staticmethod(render_error)
    authentication_classes = (PostmarkTokenAuthentication,)
    parser_classes = (requests.PostmarkJSONParser,)
    suppressed = SuppressionPolicy.REPORT
    # The error code of invalid parameters, by action.
    query_errors: ClassVar[Mapping[str, int]] = {}

    def get_exception_handler(self) -> Any:
        code = self.query_errors.get(self.action or "")
        return query_error_handler(code) if code else super().get_exception_handler()


class PostmarkEmailViewSet(PostmarkViewSet[Email]):
    queryset = Email.objects.all()
    sending_actions = frozenset({"send", "batch", "send_template", "batch_templates"})
    accepting_actions = sending_only_actions = sending_actions
    body_bytes: ClassVar = dict.fromkeys(sending_actions, MAX_BODY_BYTES)

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        if given_token(request.META) == TEST_TOKEN and self.action_map.get("post") in self.sending_actions:
            return PostmarkTestView.as_view()(request)
        return super().dispatch(request, *args, **kwargs)

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
        stored = self.accept(lambda: [read(self.request.data)], about=self.operation)
        return Response(resources.sent_resource(self.body, stored.body["results"][0]), headers=stored.headers)

    def _accept_many(self, messages: Any, read: Reader) -> Response:
        items = as_list(messages, "Messages", at_most=requests.MAX_BATCH)
        stored = self.accept(lambda: read_drafts(read, items), all_or_nothing=False, about=self.operation)
        pairs = zip(items, stored.body["results"], strict=True)
        results = [resources.sent_resource(item if isinstance(item, dict) else {}, result) for item, result in pairs]
        return Response(results, headers=stored.headers)


class PostmarkMessageViewSet(PostmarkViewSet[Email]):
    queryset = Email.objects.all()
    sending_actions = frozenset({"list", "details", "opens", "clicks"})
    query_errors: ClassVar = dict.fromkeys(("list", "opens", "clicks"), MESSAGE_QUERY)

    def list(self, request: Request) -> Response:
        page, query = requests.read_slice(request), filters.read_filters(request, known=filters.MESSAGES)
        rows = filters.filter_emails(self.get_queryset(), query, known=filters.MESSAGES).defer("template_data")
        # The counters know no key.
        is_counted = query or self.limits.is_test or self.limits.restricts_emails
        total = bounded_count(rows) if is_counted else count_by_status(self.workspace, statuses=EmailStatus.values)
        return Response({"TotalCount": total, "Messages": [resources.message_resource(email) for email in rows[page]]})

    def details(self, request: Request, pk: str) -> Response:
        return Response(resources.details_resource(self.find(pk)))

    def opens(self, request: Request, pk: str) -> Response:
        return self._events(pk, kind=EventKind.OPENED, name="Opens")

    def clicks(self, request: Request, pk: str) -> Response:
        return self._events(pk, kind=EventKind.CLICKED, name="Clicks")

    def _events(self, pk: str, *, kind: EventKind, name: str) -> Response:
        email, page = self.find(pk), requests.read_slice(self.request)
        events = email.events.filter(kind=kind)
        items = [resources.tracking_resource(event, email) for event in events[page]]
        return Response({"TotalCount": bounded_count(events), name: items})
