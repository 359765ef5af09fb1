"""Confirmation pages, and error messages for refused actions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.utils.functional import Promise

from core.api.errors import Problem
from core.lib.translation import translate


@dataclass(frozen=True)
class Confirmation:
    """A confirmation page.

    lead: the explanation.
    about: the object's name in bold before it.
    label: the button.
    """

    lead: str | Promise
    label: str
    back_url: str
    about: str = ""
    back_label: str = ""
    is_danger: bool = False


def try_action(request: HttpRequest, action: Callable[[], Any]) -> bool:
    """Run an action; if the service refuses it, show the error as a message and return False."""
    try:
        action()
    except Problem as problem:
        messages.error(request, problem_message(problem))
        return False
    return True


def problem_message(problem: Problem) -> str:
    """Return the text to show for a problem: the first field error, otherwise the detail."""
    errors = problem.members.get("errors") or [{}]
    return translate(errors[0].get("detail") or problem.detail)
