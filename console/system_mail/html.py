"""The HTML version of a system email, made of its text when it is sent: only the text is stored.

See docs/decisions/0138, and 0269 for the name, logo and color of the service.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext_lazy as _

from console.system_mail.models import SystemMailKind

# The label of the button that opens the link.
LABELS = {
    SystemMailKind.INVITATION: _("Join the workspace"),
    SystemMailKind.RESET: _("Choose a new password"),
    SystemMailKind.PROOF: _("Confirm the address"),
    SystemMailKind.NOTICE: _("Open the dashboard"),
    SystemMailKind.CANARY: _("Open the dashboard"),
    SystemMailKind.APPROVAL: _("Read and decide"),
}
WHITE, BLACK = "#ffffff", "#000000"


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of the text.

    text: a text without line breaks.
    is_link: it is a URL.
    """

    text: str

    @property
    def is_link(self) -> bool:
        return self.text.startswith(("http://", "https://")) and " " not in self.text


def render_html(*, kind: str, language: str, subject: str, text: str) -> str:
    """Return an HTML document in the look of the service: a paragraph that is a URL becomes a button."""
    context = {
        "subject": subject,
        "paragraphs": list(_paragraphs(text)),
        "label": LABELS[SystemMailKind(kind)],
        "service": settings.SYSTEM_NAME,
        "logo_url": settings.SYSTEM_LOGO_URL,
        "color": settings.SYSTEM_COLOR,
        "text_color": readable_on(settings.SYSTEM_COLOR),
    }
    with translation.override(language):
        return render_to_string("system_mail/email.html", context)


def readable_on(color: str) -> str:
    """Return white or black, whichever has more contrast with a color #rrggbb: at least 4.58 to 1 (WCAG 2, 1.4.3)."""
    luminance = _luminance(color)
    return WHITE if 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.05 else BLACK


def _luminance(color: str) -> float:
    """Return the relative luminance of a color, from 0 to 1 (WCAG 2)."""
    channels = (int(color[start : start + 2], 16) / 255 for start in (1, 3, 5))
    linear = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels)
    return sum(share * value for share, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _paragraphs(text: str) -> Iterator[Paragraph]:
    for paragraph in text.split("\n\n"):
        words = " ".join(paragraph.split())
        if words:
            yield Paragraph(words)
