"""The command palette of the staff admin: objects by id or name, pages, and the documentation (docs/decisions/0264)."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.admin import ModelAdmin
from django.contrib.admin.utils import quote
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _

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
from console.dashboard.staff.transports import CHANGE
from console.dashboard.ui.navigation import staff_account_links, staff_sidebar
from core.lib.ids import is_id
from core.lib.model_fields import IdField
from core.workspaces.models import User, Workspace
from domains.models import Domain
from emails.models import Email
from emails.sending.sending_checks import paused_since
from emails.sending.transport_status import drained_transports

# Model → icon and the field by which an object is found: kinds of which an installation has thousands, not millions.
FOUND_BY: dict[type[Model], tuple[str, str]] = {
    Workspace: ("deployed_code", "name"),
    User: ("person", "email"),
    Domain: ("dns", "name"),
}
Registry = Mapping[type[Model], "ModelAdmin[Any]"]


def find_staff_entries(request: HttpRequest, registry: Registry) -> dict[str, Any]:
    """Return the context of the palette's results for the parameter `q`: groups with an entry, the best first.

    registry: the pages of the staff admin by their models; only objects that the member may view are found.
    """
    text = request.GET.get("q", "").replace("\0", "")[:MAX_TEXT_LENGTH].strip()
    actions = PaletteGroup(_("Actions"), matching(text, _actions(request, registry)))
    pages = PaletteGroup(_("Pages"), matching(text, _pages(request)))
    if not text:
        # The first entry is chosen: not one that continues sending at once.
        return palette_context([pages, actions])
    groups = [
        PaletteGroup(_("Found by id"), list(_by_id(request, text, registry))),
        PaletteGroup(_("Found by name"), list(_by_name(request, text, registry))),
        pages,
        actions,
        PaletteGroup(_("Search"), list(_searches(request, text, registry))),
        PaletteGroup(_("Documentation"), find_documentation(text)),
    ]
    return palette_context(groups)


def _by_id(request: HttpRequest, text: str, registry: Registry) -> Iterator[PaletteEntry]:
    for model, page in registry.items():
        key = model._meta.pk  # noqa: SLF001 - a public API of Django
        if not isinstance(key, IdField) or not is_id(text, prefix=key.prefix):
            continue
        if page.has_view_permission(request):
            for row in page.get_queryset(request).filter(pk=text):
                yield _entry(row, str(row), "search")


def _by_name(request: HttpRequest, text: str, registry: Registry) -> Iterator[PaletteEntry]:
    if len(text) < MIN_NAME_LENGTH:
        return
    for model, (icon, name) in FOUND_BY.items():
        if registry[model].has_view_permission(request):
            rows = model._default_manager.filter(**{f"{name}__icontains": text}).order_by(name)  # noqa: SLF001 - as above
            for row in rows.only("pk", name)[:MAX_OBJECTS]:
                yield _entry(row, getattr(row, name), icon)


def _entry(row: Model, title: str, icon: str) -> PaletteEntry:
    options = row._meta  # noqa: SLF001 - as above
    url = reverse(f"admin:{options.app_label}_{options.model_name}_change", args=[quote(row.pk)])
    return PaletteEntry(title, url, icon, capfirst(str(options.verbose_name)))


def _pages(request: HttpRequest) -> Iterator[PaletteEntry]:
    for section in staff_sidebar(request):
        for item in section["items"]:
            yield PaletteEntry(capfirst(str(item["title"])), str(item["link"]), item["icon"])
    if request.user.has_perm("emails.view_email"):
        yield PaletteEntry(_("Transports"), reverse("admin:transports"), "outbox")
    for item in staff_account_links(request):
        yield PaletteEntry(str(item["title"]), str(item["link"]), "account_circle")


def _actions(request: HttpRequest, registry: Registry) -> Iterator[PaletteEntry]:
    """Yield what the member of the staff may do: pause and continue sending, drain and resume transports, add."""
    if request.user.has_perm("emails.change_queueentry"):
        if paused_since():
            yield PaletteEntry(_("Continue sending"), reverse("admin:queue_resume"), "play_arrow", is_post=True)
        else:
            yield PaletteEntry(_("Pause sending"), reverse("admin:queue_pause"), "pause")
    if request.user.has_perm(CHANGE):
        drained = drained_transports()
        for name in settings.TRANSPORTS.transports:
            yield _transport_action(name, is_drained=name in drained)
    for model, (icon, _name) in FOUND_BY.items():
        if registry[model].has_add_permission(request):
            options = model._meta  # noqa: SLF001 - as above
            url = reverse(f"admin:{options.app_label}_{options.model_name}_add")
            yield PaletteEntry(_("New %(name)s") % {"name": options.verbose_name}, url, icon, words=str(NEW))
    yield PaletteEntry(_("Sign out"), reverse("admin:logout"), "logout", is_post=True)


def _transport_action(name: str, *, is_drained: bool) -> PaletteEntry:
    """Return the action that drains a transport, or lets one be used again."""
    if is_drained:
        title, url = _("Resume transport %(name)s"), reverse("admin:transport_resume", args=[name])
        return PaletteEntry(title % {"name": name}, url, "play_arrow", is_post=True)
    title, url = _("Drain transport %(name)s"), reverse("admin:transport_drain", args=[name])
    return PaletteEntry(title % {"name": name}, url, "pause")


def _searches(request: HttpRequest, text: str, registry: Registry) -> Iterator[PaletteEntry]:
    """Yield the search of all emails, which is recorded in the audit log when it is opened."""
    if text and registry[Email].has_view_permission(request):
        url = f"{reverse('admin:emails_email_changelist')}?{urlencode({'q': text})}"
        yield PaletteEntry(_("Search emails for “%(text)s”") % {"text": text}, url, "search")
