"""The catalogue of error codes, from the classes of errors."""

import functools
import importlib
import inspect
import json
from dataclasses import dataclass

from django.conf import settings
from django.utils.safestring import SafeString

from console.documentation.markdown import render_markdown
from core.api.errors import Problem, all_problems, documented_problems
from core.api.openapi import problem_example


@dataclass(frozen=True)
class ErrorEntry:
    """An entry of the error catalogue. text: the meaning and the advice, in Markdown."""

    status: int
    code: str
    text: str
    html: SafeString
    example: str


@functools.cache
def error_entries() -> tuple[ErrorEntry, ...]:
    # Importing the views loads the errors of all apps.
    importlib.import_module(settings.ROOT_URLCONF)
    # A subclass may have the code of its parent, which describes it.
    problems = {problem.code: problem for problem in all_problems()} | documented_problems()
    entries = (_error_entry(problem) for problem in problems.values())
    return tuple(sorted(entries, key=lambda entry: (entry.status, entry.code)))


def problem_text(problem: type[Problem]) -> str:
    """Return the docstring of the problem class itself, not an inherited one: the meaning, then the advice."""
    return inspect.cleandoc(problem.__dict__.get("__doc__") or "")


def _error_entry(problem: type[Problem]) -> ErrorEntry:
    example = json.dumps(problem_example(problem), indent=2, ensure_ascii=False) if problem.example else ""
    text = problem_text(problem)
    return ErrorEntry(problem.status, problem.code, text, render_markdown(text), example)
