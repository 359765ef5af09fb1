"""Documentation: the OpenAPI document, and below `/docs/` the API reference and the error catalogue. All offline."""

import inspect
import json
import re
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from rest_framework.request import Request
from rest_framework.views import APIView

from api.errors import Problem, all_problems
from api.openapi import openapi_document, problem_example
from api.schema import Operation, describe_view, response

# Redoc's styled-components inserts <style> elements, and its search index is built by a worker from a blob URL.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; worker-src blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


@describe_view(
    get=Operation(
        "getOpenApi",
        "Get the OpenAPI document",
        "Returns this description of the API in OpenAPI 3.1. No API key is required.",
        response({"type": "object"}, "The document.", {"openapi": "3.1.1", "info": {}, "paths": {}}),
    )
)
class OpenApiView(APIView):
    authentication_classes = ()
    permission_classes = ()

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(openapi_document(), content_type="application/json")


@dataclass(frozen=True)
class ErrorEntry:
    """An entry of the error catalogue."""

    status: int
    code: str
    paragraphs: list[SafeString]
    example: str


def reference(request: HttpRequest) -> HttpResponse:
    return render_page(request, "api/docs.html")


def errors(request: HttpRequest) -> HttpResponse:
    problems = sorted(all_problems(), key=lambda problem: (problem.status, problem.code))
    return render_page(request, "api/errors.html", errors=[_error_entry(problem) for problem in problems])


def problem_text(problem: type[Problem]) -> str:
    """Return the docstring of the problem class itself, not an inherited one: the meaning, then the advice."""
    return inspect.cleandoc(problem.__dict__.get("__doc__") or "")


def _error_entry(problem: type[Problem]) -> ErrorEntry:
    example = json.dumps(problem_example(problem), indent=2, ensure_ascii=False) if problem.example else ""
    return ErrorEntry(
        problem.status, problem.code, [_to_html(text) for text in problem_text(problem).split("\n\n")], example
    )


def _to_html(text: str) -> SafeString:
    """Escape a paragraph and turn text in backquotes into <code>."""
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text.replace("\n", " ")))
    return mark_safe(html)  # noqa: S308 - escaped above


def render_page(request: HttpRequest, template: str, **values: object) -> HttpResponse:
    """Return a page of the documentation, which loads nothing from other servers."""
    response = render(request, template, values)
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return response
