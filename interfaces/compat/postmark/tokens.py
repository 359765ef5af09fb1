"""Tokens of Postmark's API: an API key, or the test token, with which emails are validated and not sent."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.api.errors import Problem, problem_members
from core.api.parser import check_body_headers
from core.lib.datetimes import format_datetime
from core.lib.ids import new_id
from core.lib.network.client_address import client_address
from core.workspaces.api.authentication import ApiKeyAuthentication
from core.workspaces.api.throttling import owe_keyless_time, take_keyless_request
from emails.accept.drafts import Draft
from interfaces.compat.drafts import as_list, as_object, read_drafts
from interfaces.compat.postmark import requests
from interfaces.compat.postmark.errors import error_body, render_error
from interfaces.compat.postmark.resources import Resource, sent_resource

TOKEN_HEADERS = ("HTTP_X_POSTMARK_SERVER_TOKEN", "HTTP_X_POSTMARK_ACCOUNT_TOKEN")
TEST_TOKEN = "POSTMARK_API_TEST"  # noqa: S105 - the same for everyone
# Without a key, less may be read: parsing this much takes up to a quarter of a second.
MAX_BODY_BYTES = 64 * 1024
ACCEPTED_MESSAGE = "Test job accepted"


def given_token(meta: Mapping[str, Any]) -> str:
    """Return the token of a request, the first of several."""
    return given_tokens(meta).partition(",")[0].strip()


def given_tokens(meta: Mapping[str, Any]) -> str:
    """Return all tokens: an account is the workspaces whose keys are in the header, separated by commas."""
    return next((str(meta[name]) for name in TOKEN_HEADERS if meta.get(name)), "")


class PostmarkTokenAuthentication(ApiKeyAuthentication):
    """The API key in either of Postmark's headers."""

    def authorization(self, request: Request) -> str:
        token = given_token(request.META)
        return f"Bearer {token}" if token else ""


class PostmarkTestView(APIView):
    """Validates emails for the test token, with a rate limit per network. started: the processor time until then."""

    started: float | None = None

    authentication_classes = ()
    permission_classes = ()
    parser_classes = (requests.PostmarkJSONParser,)

    def get_exception_handler(self) -> Any:
        return render_error

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        check_body_headers(request, max_bytes=MAX_BODY_BYTES)
        take_keyless_request(client_address(request.META))
        self.started = time.thread_time()

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        if self.started is not None:
            owe_keyless_time(client_address(request.META), time.thread_time() - self.started)
        return super().finalize_response(request, response, *args, **kwargs)

    def post(self, request: Request) -> Response:
        if not isinstance(request.data, list) and "Messages" not in as_object(request.data, "Body"):
            return Response(_accepted(request.data, _read(request.data)))
        messages = request.data if isinstance(request.data, list) else request.data["Messages"]
        items = as_list(messages, "Messages", at_most=requests.MAX_BATCH)
        read = zip(items, read_drafts(_read, items), strict=True)
        return Response([_accepted(item, draft) for item, draft in read])


def _read(item: Any) -> Draft:
    if as_object(item, "Body").keys() & {"TemplateId", "TemplateAlias"}:
        return requests.read_email_with_template(item, template_ids={})
    return requests.read_email(item)


def _accepted(item: Any, draft: Draft | Problem) -> Resource:
    if isinstance(draft, Problem):
        return error_body(problem_members(draft))
    result = {"id": new_id(), "createdAt": format_datetime(datetime.now(UTC))}
    return {**sent_resource(item, result), "Message": ACCEPTED_MESSAGE}
