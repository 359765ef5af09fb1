"""Acts of a page: asked about before they are done, and refused in the words of the service."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest

from api.errors import Problem


@dataclass(frozen=True)
class Question:
    """What is asked before an act. about: whose name stands in bold before the sentence, if anybody's."""

    lead: str
    label: str
    back: str
    about: str = ""
    keep: str = ""
    is_danger: bool = False


def succeeded(request: HttpRequest, act: Callable[[], Any]) -> bool:
    """Do an act; where the service refuses it, leave the reason as a message and return False."""
    try:
        act()
    except Problem as refusal:
        messages.error(request, sentence_of(refusal))
        return False
    return True


def sentence_of(refusal: Problem) -> str:
    """Return what a refusal tells a person: of fields the first sentence, else its detail."""
    errors = refusal.members.get("errors") or [{}]
    return str(errors[0].get("detail") or refusal.detail)
