"""Starter templates: complete emails to begin a template with."""

import functools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from templates_app.content import TemplateContent

FOLDER = Path(__file__).resolve().parents[2] / "starters"
URL = "https://app.example.com/"
LOCALE = "en"


@dataclass(frozen=True)
class TemplateStarter:
    """A starter.

    slug: its name in the URL and the name of its file.
    preheader: the line that inboxes show after the subject.
    """

    slug: str
    title: str | Promise
    subject: str
    preheader: str
    text: str
    sample: dict[str, Any] = field(default_factory=dict)

    @property
    def content(self) -> TemplateContent:
        """The email with a frame of its own."""
        return TemplateContent(self.subject, _html(self.slug, self.subject, self.preheader), self.text, locale=LOCALE)

    def framed_content(self, layout_id: str) -> TemplateContent:
        """Return the email for a layout, which has the frame."""
        return TemplateContent(self.subject, _source(self.slug), self.text, locale=LOCALE, layout_id=layout_id)

    @property
    def sample_data(self) -> str:
        return json.dumps(self.sample, ensure_ascii=False, indent=2)


@functools.cache
def _html(slug: str, title: str, preheader: str) -> str:
    layout = _source("layout").replace("TITLE", title).replace("PREHEADER", preheader)
    return layout.replace("CONTENT\n", _source(slug) if slug else "{{{content}}}\n")


def _source(name: str) -> str:
    return (FOLDER / f"{name}.html").read_text("utf-8")


STARTERS = (
    TemplateStarter(
        "welcome",
        _("Welcome"),
        'Welcome to {{company|"Acme"}}',
        "Your account is ready.",
        'Welcome, {{name|"there"}}!\n\nYour account is ready. The best first step takes two minutes:\n{{{url}}}\n\n'
        "Questions? Reply to this email, and a person answers.\n",
        {"company": "Acme", "name": "Ada", "action": "Set up your profile", "url": f"{URL}start"},
    ),
    TemplateStarter(
        "password_reset",
        _("Password reset"),
        "Choose a new password",
        'The link is valid for {{minutes|"60"}} minutes.',
        "Somebody asked to reset the password of {{{email}}}. Open this link to choose a new one; it is valid for "
        '{{minutes|"60"}} minutes:\n{{{url}}}\n\nIf it was not you, ignore this email.\n',
        {"company": "Acme", "email": "ada@example.com", "minutes": 60, "url": f"{URL}reset/3fK9"},
    ),
    TemplateStarter(
        "receipt",
        _("Receipt"),
        "Your receipt for order {{order}}",
        "Thank you. Total: {{total}}",
        "Thank you for your order {{order}} of {{date}}.\n\n{{#each items}}\n"
        '{{quantity|"1"}} x {{title}}: {{price}}\n{{/each}}\nTotal: {{total}}\n{{#if url}}\n{{{url}}}\n{{/if}}',
        {
            "company": "Acme",
            "order": "A-1042",
            "date": "22 November 2026",
            "items": [
                {"quantity": 2, "title": "Notebook, dotted", "price": "$18.00"},
                {"quantity": 1, "title": "Fountain pen", "price": "$42.50"},
            ],
            "total": "$60.50",
            "url": f"{URL}orders/A-1042",
        },
    ),
    TemplateStarter(
        "verification_code",
        _("Verification code"),
        "{{code}} is your verification code",
        'It is valid for {{minutes|"10"}} minutes.',
        'Your verification code is {{code}}. It is valid for {{minutes|"10"}} minutes.\n\n'
        "Never share the code. If you did not request it, ignore this email.\n",
        {"company": "Acme", "code": "482 913", "minutes": 10},
    ),
    TemplateStarter(
        "invitation",
        _("Invitation"),
        "{{inviter}} invites you to {{workspace}}",
        "Accept the invitation to work together.",
        "{{inviter}} invites you to {{workspace}}.{{#if role}} You join as {{role}}.{{/if}}\n\n"
        'Accept the invitation within {{days|"7"}} days:\n{{{url}}}\n',
        {"company": "Acme", "inviter": "Grace Hopper", "workspace": "Research", "role": "editor", "days": 7,
         "url": f"{URL}join/7Qx2"},
    ),
)  # fmt: skip

# The frame of the starters. A layout has no subject: it is the title of the document.
LAYOUT_STARTER = TemplateStarter(
    "",
    _("Layout"),
    '{{company|"Acme"}}',
    '{{preheader|""}}',
    '{{{content}}}\n\n--\n{{company|"Acme"}}\n',
    {"company": "Acme"},
)


def find_starter(slug: str) -> TemplateStarter | None:
    return next((starter for starter in STARTERS if starter.slug == slug), None)
