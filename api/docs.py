"""`/docs/`: the reference, and a page of all errors; both work without the internet."""

import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from api.errors import Problem
from api.openapi import problem_example
from api.schema import KNOWN

# styled-components, which Redoc is written with, puts its styles into <style> elements; the search index is
# built by a worker that Redoc makes out of a blob.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; worker-src blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True)
class ToldError:
    """An error as its page tells it."""

    status: int
    code: str
    paragraphs: list[SafeString]
    example: str


def reference(request: HttpRequest) -> HttpResponse:
    return _page(request, "api/docs.html")


def errors(request: HttpRequest) -> HttpResponse:
    problems = sorted(all_problems(Problem), key=lambda problem: (problem.status, problem.code))
    return _page(request, "api/errors.html", errors=[_told(problem) for problem in problems])


def all_problems(parent: type[Problem]) -> Iterator[type[Problem]]:
    """Walk the kinds of problem that have a code."""
    for problem in parent.__subclasses__():
        if hasattr(problem, "code"):
            yield problem
        yield from all_problems(problem)


def text_of(problem: type[Problem]) -> str:
    """Return the problem's own docstring: what it means, then what to do. It is not inherited."""
    return inspect.cleandoc(problem.__dict__.get("__doc__") or "")


def _told(problem: type[Problem]) -> ToldError:
    known = KNOWN.get(problem.code)
    example = json.dumps(problem_example(known), indent=2, ensure_ascii=False) if known else ""
    return ToldError(problem.status, problem.code, [_html(text) for text in text_of(problem).split("\n\n")], example)


def _html(text: str) -> SafeString:
    """Escape a paragraph; `words` in backquotes become code."""
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text.replace("\n", " ")))
    return mark_safe(marked)  # noqa: S308 - escaped above


def _page(request: HttpRequest, template: str, **values: object) -> HttpResponse:
    response = render(request, template, values)
    response.headers["Content-Security-Policy"] = POLICY
    return response
