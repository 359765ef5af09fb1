"""Every failure under /v1 becomes application/problem+json here: ours, DRF's, Django's and the database's."""

import json
import logging
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import APIView

from api import errors
from api.field_errors import field_errors
from api.request_ids import current_request_id

CONTENT_TYPE = "application/problem+json"
log = logging.getLogger("postrider.errors")

# What the framework raises, and what we say instead.
FRAMEWORK: dict[type[Exception], tuple[type[errors.Problem], str]] = {
    Http404: (errors.NotFound, "There is nothing here, or it is not yours."),
    exceptions.NotFound: (errors.NotFound, "There is nothing here, or it is not yours."),
    exceptions.MethodNotAllowed: (errors.MethodNotAllowed, "This path does not take that method; see Allow."),
    exceptions.NotAcceptable: (errors.NotAcceptable, "Answers are application/json; change the Accept header."),
    exceptions.UnsupportedMediaType: (errors.UnsupportedMediaType, "Send the body as application/json."),
    exceptions.ParseError: (errors.InvalidJson, "The body is not valid JSON."),
    PermissionDenied: (errors.NotFound, "There is nothing here, or it is not yours."),
}


def problem_response(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's EXCEPTION_HANDLER."""
    problem = as_problem(error)
    if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("request failed", exc_info=error)
    return Response(problem_body(problem), status=problem.status, headers=problem.headers, content_type=CONTENT_TYPE)


def as_problem(error: Exception) -> errors.Problem:
    if isinstance(error, errors.Problem):
        return error
    if isinstance(error, exceptions.ValidationError):
        return errors.InvalidFields(
            "Some fields are not valid; see errors.", errors=field_errors(error.get_full_details())
        )
    if isinstance(error, OperationalError | InterfaceError):
        return errors.service_unavailable()
    for framework_error, (problem, detail) in FRAMEWORK.items():
        if isinstance(error, framework_error):
            return problem(detail)
    return errors.internal_error()


def problem_body(problem: errors.Problem) -> dict[str, Any]:
    return {
        "type": f"{settings.PUBLIC_URL}/docs/errors#{problem.code}",
        "title": problem.title,
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
        "requestId": current_request_id(),
        **problem.members,
    }


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, errors.InvalidJson("The request is malformed."), status=400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, errors.NotFound(FRAMEWORK[Http404][1]), status=403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, errors.NotFound(FRAMEWORK[Http404][1]), status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    return _answer(request, errors.internal_error(), status=500)


def _answer(request: HttpRequest, problem: errors.Problem, *, status: int) -> HttpResponse:
    """Answer what failed outside of DRF: JSON under /v1, a plain page elsewhere."""
    if request.path_info.startswith("/v1/") or request.path_info == "/v1":
        return problem_answer(problem)
    return render(request, "api/error.html", {"status": status, "title": HTTPStatus(status).phrase}, status=status)


def problem_answer(problem: errors.Problem) -> HttpResponse:
    """Return the answer of a problem outside of DRF."""
    body = json.dumps(problem_body(problem))
    return HttpResponse(body, status=problem.status, headers=problem.headers, content_type=CONTENT_TYPE)


class NoSuchPath(APIView):
    """What /v1 answers for a path that it does not have; a key is not asked for."""

    authentication_classes = ()
    permission_classes = ()

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        raise errors.NotFound(f"There is no {request.path}; the paths are listed in /v1/openapi.json.")
