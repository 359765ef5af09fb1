"""Error responses under /v1: exceptions of the service, DRF and Django as application/problem+json."""

import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost, PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.translation import get_language_from_request, gettext, gettext_noop, override
from rest_framework import exceptions
from rest_framework.response import Response

from core.api import errors
from core.api.request_ids import current_request_id

CONTENT_TYPE = "application/problem+json"
log = logging.getLogger("postrider.errors")

# Exceptions of the frameworks, and the problem and detail of their responses.
FRAMEWORK_PROBLEMS: dict[type[Exception], tuple[type[errors.Problem], str]] = {
    Http404: (errors.NotFound, errors.NotFound.example),
    exceptions.NotFound: (errors.NotFound, errors.NotFound.example),
    exceptions.MethodNotAllowed: (errors.MethodNotAllowed, errors.METHOD_NOT_ALLOWED_DETAIL),
    exceptions.NotAcceptable: (errors.NotAcceptable, errors.NOT_ACCEPTABLE_DETAIL),
    exceptions.UnsupportedMediaType: (errors.UnsupportedMediaType, "Send the body as application/json."),
    exceptions.ParseError: (errors.InvalidJson, "The body is not valid JSON."),
    UnreadablePostError: (errors.InvalidJson, "The body did not arrive completely."),
    PermissionDenied: (errors.NotFound, errors.NotFound.example),
}
# Codes of DRF that the API names more precisely.
FIELD_CODES = {"null": "required", "not_a_list": "invalid_type", "not_a_dict": "invalid_type", "empty": "required"}
BODY = "body"
MAX_SHOWN_HOST = 253
UNKNOWN_HOST_TITLE = gettext_noop("This host is not configured")
UNKNOWN_HOST = gettext_noop("The host %(host)s is not configured.")
UNKNOWN_HOST_ADVICE = gettext_noop(
    "If you operate this service: add the host to ALLOWED_HOSTS and restart web, or make the reverse proxy keep the "
    "Host header of the request."
)
# Titles of pages, by status.
PAGE_TITLES = {
    400: gettext_noop("Bad request"),
    403: gettext_noop("Forbidden"),
    404: gettext_noop("Page not found"),
    405: gettext_noop("This is not a page"),
    413: gettext_noop("Request too large"),
    500: gettext_noop("Internal server error"),
    503: gettext_noop("Temporarily unavailable"),
}
PAGE_ADVICE = {
    403: gettext_noop("Your account has no permission for this page."),
    405: gettext_noop("This address only receives forms. If you had to sign in first, submit the form again."),
    413: gettext_noop("A form can have at most 2 MiB."),
    500: gettext_noop("Try again. If the error remains, contact the operator of this server."),
    503: gettext_noop("Try again in a minute."),
}
# Characters of one name in a path: names are keys of the body, up to megabytes long.
MAX_NAME_LENGTH = 100


class ProblemResponse(Response):
    """The response to a request that failed. problem_code: the code in the request log, in every dialect."""

    def __init__(self, problem: errors.Problem, data: Any, **options: Any) -> None:
        super().__init__(data, **options)
        self.problem_code = problem.code


def problem_response(error: Exception, context: dict[str, Any]) -> Response:
    """Return the response for an exception; DRF's EXCEPTION_HANDLER."""
    problem = logged_problem(error)
    body, options = problem_body(problem), {"status": problem.status, "headers": problem.headers}
    return ProblemResponse(problem, body, content_type=CONTENT_TYPE, **options)


def logged_problem(error: Exception) -> errors.Problem:
    """Return the problem of an error that ends a request; the server's own errors are logged."""
    problem = to_problem(error)
    if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("request failed", exc_info=error)
    return problem


def to_problem(error: Exception) -> errors.Problem:
    if isinstance(error, errors.Problem):
        return error
    if isinstance(error, exceptions.ValidationError):
        return errors.InvalidFields(field_errors(error.get_full_details()))
    if isinstance(error, OperationalError | InterfaceError):
        return errors.service_unavailable()
    for framework_error, (problem, detail) in FRAMEWORK_PROBLEMS.items():
        if isinstance(error, framework_error):
            return problem(detail)
    return errors.internal_error()


def problem_body(problem: errors.Problem) -> dict[str, Any]:
    return {
        "type": f"{settings.PUBLIC_URL}/docs/errors#{problem.code}",
        **errors.problem_members(problem),
        "requestId": current_request_id(),
    }


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not isinstance(exception, DisallowedHost):
        return _error_response(request, errors.InvalidJson("The request is malformed."), status=400)
    values = {"host": request.META.get("HTTP_HOST", "")[:MAX_SHOWN_HOST]}
    problem = errors.InvalidJson(UNKNOWN_HOST % values)
    texts = (UNKNOWN_HOST, UNKNOWN_HOST_ADVICE)
    return _error_response(request, problem, status=400, title=UNKNOWN_HOST_TITLE, texts=texts, values=values)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error_response(request, errors.NotFound(), status=403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    url = settings.PUBLIC_URL
    detail = (
        f"This path does not exist. The API is at {url}/v1, and the APIs of other services are below {url}/compat. "
        f"See {url}/docs/api."
    )
    return _error_response(request, errors.NotFound(detail), status=404)


def method_not_allowed(request: HttpRequest, *, allowed: str) -> HttpResponse:
    """Return the page for a form's address that was opened as a page, for example after signing in again."""
    problem = errors.MethodNotAllowed(errors.METHOD_NOT_ALLOWED_DETAIL, headers={"Allow": allowed})
    return _error_response(request, problem, status=405)


def too_large(request: HttpRequest) -> HttpResponse:
    return _error_response(request, errors.PayloadTooLarge("The body is too large."), status=413)


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the response for the exception being handled: 503 if the database is unavailable, otherwise 500."""
    is_unavailable = isinstance(sys.exception(), OperationalError | InterfaceError)
    problem = errors.service_unavailable() if is_unavailable else errors.internal_error()
    return _error_response(request, problem, status=problem.status)


def _error_response(
    request: HttpRequest,
    problem: errors.Problem,
    *,
    status: int,
    title: str = "",
    texts: Sequence[str] = (),
    values: Mapping[str, str] | None = None,
) -> HttpResponse:
    """Return the response for an error outside of DRF: JSON under /v1 and for JSON requests, otherwise a page.

    The page has the language that PagePreferencesMiddleware chose, otherwise that of the browser.
    title, texts: those of the page, with the values; by default those of the status.
    """
    if f"{request.path_info}/".startswith("/v1/") or request.content_type == "application/json":
        return problem_http_response(problem)
    with override(getattr(request, "LANGUAGE_CODE", None) or get_language_from_request(request)):
        advice = texts or ([PAGE_ADVICE[status]] if status in PAGE_ADVICE else [])
        shown = [gettext(text) % (values or {}) for text in advice]
        response = error_page(request, title=gettext(title or PAGE_TITLES[status]), texts=shown, status=status)
    for name, value in problem.headers.items():
        response.headers[name] = value
    patch_vary_headers(response, ["Accept-Language"])
    return response


def error_page(request: HttpRequest, *, title: str, texts: Sequence[str] = (), status: int) -> HttpResponse:
    """Return the HTML page for an error, with paragraphs that explain it."""
    return render(request, "api/error.html", {"status": status, "title": title, "texts": texts}, status=status)


def problem_http_response(problem: errors.Problem) -> HttpResponse:
    """Return the response for a problem outside of DRF."""
    body = json.dumps(problem_body(problem))
    return HttpResponse(body, status=problem.status, headers=problem.headers, content_type=CONTENT_TYPE)


def field_errors(details: Any) -> list[dict[str, str]]:
    """Flatten `get_full_details()` into `[{"field": "attachments[2].content", "code": …, "detail": …}]`."""
    return list(_walk_details(details, path=""))


def _walk_details(details: Any, *, path: str) -> Iterator[dict[str, str]]:
    if _is_leaf(details):
        code = str(details["code"])
        yield {"field": path or BODY, "code": FIELD_CODES.get(code, code), "detail": str(details["message"])}
    elif isinstance(details, dict):
        for name, inner in details.items():
            yield from _walk_details(inner, path=_join_path(path, name))
    else:
        for index, inner in enumerate(details):
            # A list of leaves belongs to one field; a list of dicts has one entry per item of a list field.
            yield from _walk_details(inner, path=path if _is_leaf(inner) else f"{path}[{index}]")


def _is_leaf(details: Any) -> bool:
    return (
        isinstance(details, dict)
        and details.keys() == {"message", "code"}
        and not isinstance(details["code"], dict | list)
    )


def _join_path(path: str, name: Any) -> str:
    if name == "non_field_errors":
        return path
    if isinstance(name, int):
        return f"{path}[{name}]"
    name = str(name)[:MAX_NAME_LENGTH]
    return f"{path}.{name}" if path else name
