"""The command palette (Ctrl-K): emails by id, recipients by a part of their address, objects by name, pages, docs.

See docs/decisions/0264.
"""

from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.emails.recipient_history import find_recipients, parse_recipient_address, recipient_url
from console.dashboard.pages.emails.search import list_query
from console.dashboard.pages.palette.results import (
    MAX_OBJECTS,
    MAX_TEXT_LENGTH,
    MIN_NAME_LENGTH,
    PaletteEntry,
    PaletteGroup,
    find_documentation,
    matching,
    palette_context,
)
from console.dashboard.ui.navigation import account_links, shortcuts
from console.dashboard.ui.scoping import ScopedAdmin, rows_in_workspace
from emails.listing.pages import read_page
from emails.listing.search import filter_by_id, has_trigrams
from emails.models import Email

# The newest emails with a part of an address.
READ_EMAILS = 20
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


def find_entries(request: HttpRequest, sections: Collection[ScopedAdmin]) -> dict[str, Any]:
    """Return the context of the palette's results for the parameter `q`: groups with an entry, the best first.

    sections: those of the dashboard, in which objects are found by their names.
    """
    text = request.GET.get("q", "")[:MAX_TEXT_LENGTH].strip()
    groups = [
        PaletteGroup(_("Emails"), list(_emails(request, text))),
        PaletteGroup(_("Found by name"), list(_objects(request, text, sections))),
        PaletteGroup(_("Pages"), matching(text, _pages(request))),
        PaletteGroup(_("Actions"), matching(text, _actions())),
        PaletteGroup(_("Documentation"), find_documentation(text) if text else []),
    ]
    return palette_context(text, groups)


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
    elif "@" in text and has_trigrams(text.lower()):
        query = list_query(
            request, Email.objects.filter(workspace=current_workspace(request)), filters={"search": text}
        )
        for hit in find_recipients(text, read_page(query, start=0, limit=READ_EMAILS).emails):
            yield PaletteEntry(hit.address, hit.url, "person")
    url = f"{reverse('dashboard:emails_email_changelist')}?{urlencode({'search': text})}"
    yield PaletteEntry(_("Search emails for “%(text)s”") % {"text": text}, url, "search")


def _objects(request: HttpRequest, text: str, sections: Collection[ScopedAdmin]) -> Iterator[PaletteEntry]:
    """Yield the objects of the workspace whose name contains the text."""
    if len(text) < MIN_NAME_LENGTH:
        return
    for section in sections:
        if not section.found_by or not section.has_view_permission(request):
            continue
        icon, *names = section.found_by
        rows = rows_in_workspace(current_workspace(request), section.model.objects.only("pk", *names))
        matching = rows.filter(Q(*((f"{name}__icontains", text) for name in names), _connector=Q.OR))
        for row in matching.order_by(*section.ordering)[:MAX_OBJECTS]:
            yield PaletteEntry(getattr(row, names[0]), section.object_url(row), icon, str(section.title))


def _pages(request: HttpRequest) -> Iterator[PaletteEntry]:
    for item in shortcuts(request):
        yield PaletteEntry(str(item["title"]), str(item["link"]), item["icon"])
    for item in account_links(request):
        if not item["link"].startswith("#"):
            yield PaletteEntry(str(item["title"]), str(item["link"]), "account_circle")


def _actions() -> Iterator[PaletteEntry]:
    for name, (icon, title) in ACTIONS.items():
        yield PaletteEntry(str(title), reverse(f"dashboard:{name}"), icon)
