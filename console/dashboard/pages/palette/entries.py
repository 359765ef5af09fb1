"""The command palette (Ctrl-K): emails by id, recipients by address, objects by name, pages, actions, docs.

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

from console.dashboard.auth.current_workspace import current_workspace, is_owner, uses_receiving, workspaces_of
from console.dashboard.pages.emails.recipient_history import find_recipients, parse_recipient_address, recipient_url
from console.dashboard.pages.emails.search import list_query
from console.dashboard.pages.palette.results import (
    MAX_OBJECTS,
    MAX_TEXT_LENGTH,
    MIN_NAME_LENGTH,
    NEW,
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
# URL name → icon, title, and further words by which the action is found.
ACTIONS: dict[str, tuple[str, str | Promise, str | Promise]] = {
    "workspaces_apikey_add": ("add", gettext_lazy("Create an API key"), NEW),
    "domains_domain_add": ("add", gettext_lazy("Add a domain"), NEW),
    "templates_app_template_add": ("add", gettext_lazy("New template"), NEW),
    "webhooks_webhook_add": ("add", gettext_lazy("Add a webhook"), NEW),
    "streams_stream_add": ("add", gettext_lazy("Create a stream"), NEW),
    "alerts_alert_add": ("add", gettext_lazy("Create alert"), NEW),
    "suppressions_suppression_add": ("block", gettext_lazy("Suppress addresses"), gettext_lazy("block")),
    "suppressions_suppression_import": ("upload", gettext_lazy("Import suppressions"), ""),
    "templates_app_template_compare": ("compare_arrows", gettext_lazy("Compare templates and tags"), ""),
    "workspaces_apikey_workspace_rules": ("rule", gettext_lazy("Set recipient rules"), gettext_lazy("allow caps")),
}
# Only for owners, and only for workspaces that receive email.
INVITE = ("workspaces_membership_add", "person_add", gettext_lazy("Invite a member"))
RECEIVE = {
    "receiving_inboundroute_add": ("add", gettext_lazy("Create a route"), NEW),
    "receiving_senderblock_add": ("block", gettext_lazy("Block a sender"), ""),
}


def find_entries(request: HttpRequest, sections: Collection[ScopedAdmin]) -> dict[str, Any]:
    """Return the context of the palette's results for the parameter `q`: groups with an entry, the best first.

    sections: those of the dashboard, in which objects are found by their names.
    """
    text = request.GET.get("q", "")[:MAX_TEXT_LENGTH].strip()
    actions = PaletteGroup(_("Actions"), matching(text, _actions(request)))
    pages = PaletteGroup(_("Pages"), matching(text, _pages(request)))
    if not text:
        return palette_context([actions, pages])
    groups = [
        PaletteGroup(_("Emails"), list(_emails(request, text))),
        PaletteGroup(_("Found by name"), list(_objects(request, text, sections))),
        pages,
        actions,
        PaletteGroup(_("Search"), [_search(text)]),
        PaletteGroup(_("Documentation"), find_documentation(text)),
    ]
    return palette_context(groups)


def _emails(request: HttpRequest, text: str) -> Iterator[PaletteEntry]:
    """Yield the email with an id, or the recipients with an address or a part of one."""
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


def _search(text: str) -> PaletteEntry:
    url = f"{reverse('dashboard:emails_email_changelist')}?{urlencode({'search': text})}"
    return PaletteEntry(_("Search emails for “%(text)s”") % {"text": text}, url, "search")


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


def _actions(request: HttpRequest) -> Iterator[PaletteEntry]:
    for name, (icon, title, words) in (ACTIONS | (RECEIVE if uses_receiving(request) else {})).items():
        yield PaletteEntry(str(title), reverse(f"dashboard:{name}"), icon, words=str(words))
    if is_owner(request):
        name, icon, invite = INVITE
        yield PaletteEntry(str(invite), reverse(f"dashboard:{name}"), icon, words=str(NEW))
    # Not the first: it would be chosen when the palette opens.
    yield PaletteEntry(_("Send a test email"), reverse("dashboard:send_test_email"), "send", is_post=True)
    for workspace in workspaces_of(request):
        if workspace != current_workspace(request):
            title = _("Switch to %(workspace)s") % {"workspace": workspace.name}
            url = reverse("dashboard:switch_workspace")
            yield PaletteEntry(title, url, "swap_horiz", is_post=True, value=workspace.id)
    yield PaletteEntry(_("Sign out"), reverse("dashboard:logout"), "logout", is_post=True)
