"""Senders from which the workspace receives nothing: list, add and remove."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.receiving.forms import BlockForm
from console.dashboard.ui.confirm import Confirmation, try_action
from console.dashboard.ui.scoping import ScopedAdmin
from receiving.services import block_sender, unblock_sender


class BlockSection(ScopedAdmin):
    slug, title = "blocks", gettext_lazy("Blocked senders")
    empty = (
        "block",
        gettext_lazy("No blocked senders"),
        gettext_lazy("Emails of a blocked sender are refused, or kept back if only their From shows it."),
    )
    add_label = gettext_lazy("Block sender")

    def routes(self) -> list[URLPattern]:
        return [
            self.route("add/", "add", self.add_view),
            self.route("<str:object_id>/delete/", "delete", self.remove_view),
        ]

    def add_view(self, request: HttpRequest, *_args: Any, **_named: Any) -> HttpResponse:
        form = BlockForm(request.POST or None, initial={"sender": request.GET.get("sender", "")[:254]})
        workspace = current_workspace(request)
        added = form.attempt(lambda: block_sender(workspace, **form.values)) if form.is_valid() else None
        if added is None:
            return self.page(request, "dashboard/blocks/new.html", title=self.add_label, form=form)
        self.log_addition(request, added[0], "Blocked.")
        messages.success(request, _("%(sender)s is blocked.") % {"sender": added[0].sender})
        return redirect(self.list_url)

    def remove_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        block = self.find(request, object_id)
        if request.method != "POST":
            lead = _("Emails from this sender are received again.")
            return self.confirm(
                request, _("Unblock sender"), Confirmation(lead, _("Unblock"), self.list_url, about=block.sender)
            )
        if try_action(request, lambda: unblock_sender(block)):
            messages.success(request, _("%(sender)s is no longer blocked.") % {"sender": block.sender})
        return redirect(self.list_url)
