"""The HTML version of a system email, made of its text when it is sent: only the text is stored.

See docs/decisions/0138.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext_lazy as _

from system_mail.models import SystemMailKind

# The label of the button that opens the link.
LABELS = {
    SystemMailKind.INVITATION: _("Join the workspace"),
    SystemMailKind.RESET: _("Choose a new password"),
    SystemMailKind.PROOF: _("Confirm the address"),
    SystemMailKind.NOTICE: _("Open Postrider"),
}


@dataclass(frozen=True)
class Paragraph:
    """text: without line breaks. is_link: it is a URL."""

    text: str

    @property
    def is_link(self) -> bool:
        return self.text.startswith(("http://", "https://")) and " " not in self.text


def render_html(*, kind: str, language: str, subject: str, text: str) -> str:
    """Return an HTML document in the product's look: a paragraph that is a URL becomes a button."""
    context = {"subject": subject, "paragraphs": list(_paragraphs(text)), "label": LABELS[SystemMailKind(kind)]}
    with translation.override(language):
        return render_to_string("system_mail/email.html", context)


def _paragraphs(text: str) -> Iterator[Paragraph]:
    for paragraph in text.split("\n\n"):
        words = " ".join(paragraph.split())
        if words:
            yield Paragraph(words)
