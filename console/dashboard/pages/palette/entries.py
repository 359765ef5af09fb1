"""The command palette (Ctrl-K): emails by id, recipients by address, pages, actions, docs (docs/decisions/0264)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.emails.recipient_history import parse_recipient_address, recipient_url
from console.dashboard.ui.navigation import account_links, shortcuts
from console.documentation.pages import page_sections
from emails.listing.search import filter_by_id
from emails.models import Email

MAX_ENTRIES = 8
MAX_TEXT_LENGTH = 200
# URL name → icon and title.
ACTIONS: dict[str, tuple[str, str | Promise]] = {
    "templates_app_template_add": ("add", gettext_lazy("New template")),
    "templates_app_template_compare": ("compare_arrows", gettext_lazy("Compare templates and tags")),
    "domains_domain_add": ("add", gettext_lazy("Add a domain")),
    "webhooks_webhook_add": ("add", gettext_lazy("Add a webhook")),
    "workspaces_apikey_add": ("add", gettext_lazy("Create an API key")),
    "suppressions_suppression_add": ("block", gettext_lazy("Suppress addresses")),
    "suppressions_suppression_import": ("upload", gettext_lazy("Import suppressions")),
    "streams_stream_add": ("add", gettext_lazy("Create a stream")),
    "alerts_alert_add": ("add", gettext_lazy("Create alert")),
    "workspaces_membership_add": ("person_add", gettext_lazy("Invite a member")),
}


@dataclass(frozen=True)
class PaletteEntry:
    """A link of the palette."""

    title: str
    url: str
    icon: str


@dataclass(frozen=True)
class PaletteGroup:
    title: str
    entries: list[PaletteEntry]


def find_entries(request: HttpRequest) -> dict[str, Any]:
    """Return the context of the palette's results for the parameter `q`: groups with an entry, the best first."""
    text = request.GET.get("q", "")[:MAX_TEXT_LENGTH].strip()
    groups = [
        PaletteGroup(_("Emails"), list(_emails(request, text))),
        PaletteGroup(_("Pages"), _matching(text, _pages(request))),
        PaletteGroup(_("Actions"), _matching(text, _actions())),
        PaletteGroup(_("Documentation"), _matching(text, _docs()) if text else []),
    ]
    return {"groups": [group for group in groups if group.entries], "text": text}


def _emails(request: HttpRequest, text: str) -> Iterator[PaletteEntry]:
    """Yield the email with an id, the recipient with an address, and the search for any text."""
    if not text:
        return
    emails = Email.objects.filter(workspace=current_workspace(request))
    for email in filter_by_id(emails, text).only("subject"):
        url = reverse("dashboard:emails_email_change", args=[email.id])
        yield PaletteEntry(email.subject or _("(no subject)"), url, "mail")
        return
    if address := parse_recipient_address(text):
        yield PaletteEntry(address, recipient_url(address), "person")
    url = f"{reverse('dashboard:emails_email_changelist')}?{urlencode({'search': text})}"
    yield PaletteEntry(_("Search emails for “%(text)s”") % {"text": text}, url, "search")


def _pages(request: HttpRequest) -> Iterator[PaletteEntry]:
    for item in shortcuts(request):
        yield PaletteEntry(str(item["title"]), str(item["link"]), item["icon"])
    for item in account_links(request):
        if not item["link"].startswith("#"):
            yield PaletteEntry(str(item["title"]), str(item["link"]), "account_circle")


def _actions() -> Iterator[PaletteEntry]:
    for name, (icon, title) in ACTIONS.items():
        yield PaletteEntry(str(title), reverse(f"dashboard:{name}"), icon)


def _docs() -> Iterator[PaletteEntry]:
    for section in page_sections():
        for entry in section.entries:
            yield PaletteEntry(entry.title, entry.url, "menu_book")


def _matching(text: str, entries: Iterator[PaletteEntry]) -> list[PaletteEntry]:
    """Return the first entries whose title has a word that begins with each word of the text."""
    wanted = text.casefold().split()
    found = [entry for entry in entries if _has_words(entry.title, wanted)]
    return found[:MAX_ENTRIES] if wanted else found


def _has_words(title: str, wanted: list[str]) -> bool:
    words = title.casefold().replace("-", " ").split()
    return all(any(word.startswith(one) for word in words) for one in wanted)
