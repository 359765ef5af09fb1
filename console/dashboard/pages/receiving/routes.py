"""Routes of received email: list with a question about an address, create, change and delete."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.receiving.forms import ACTIONS, RouteForm, domain_choices
from console.dashboard.ui.confirm import Confirmation, try_action
from console.dashboard.ui.scoping import ScopedAdmin
from core.workspaces.models import Workspace
from receiving.api.serializers import MAX_ADDRESS
from receiving.arrival import replies
from receiving.arrival.routing import find_route
from receiving.arrival.shared_addresses import shared_address
from receiving.models import SHARED, InboundRoute
from receiving.services import create_route, delete_route, update_route

# Reply of the mail server to a recipient → what happens, as text.
OUTCOMES: dict[str, str | Promise] = {
    replies.ACCEPTED: gettext_lazy("The email is delivered to all webhooks that subscribe to received."),
    replies.NO_SUCH_ADDRESS: gettext_lazy("The email is refused: no route matches, or the domain does not receive."),
    replies.REJECTED: gettext_lazy("The email is refused, and its sender gets an error."),
    replies.SUSPENDED: gettext_lazy("The email waits at its sender, because this workspace is inactive."),
    replies.DAY_IS_FULL: gettext_lazy("The email waits at its sender until tomorrow: the limit of today is reached."),
    replies.STORAGE_FULL: gettext_lazy("The email waits at its sender: the storage of this workspace is full."),
}
ROUTED = {
    InboundRoute.RouteAction.DELIVER: gettext_lazy("The email is delivered to webhooks."),
    InboundRoute.RouteAction.DISCARD: gettext_lazy("The email is accepted, and nothing is kept."),
}


class RouteSection(ScopedAdmin):
    slug, title = "routes", gettext_lazy("Routes")
    empty = (
        "rule",
        gettext_lazy("No routes yet"),
        gettext_lazy("A route decides which addresses of a receiving domain accept email, and where it goes."),
    )
    add_label = gettext_lazy("Create route")
    example = "support+4711@in.example.com"
    # The order in which they are asked.
    ordering = ("priority", "-literals", "created_at", "id")

    def routes(self) -> list[URLPattern]:
        return [
            self.route("add/", "add", self.add_view),
            self.route("<str:object_id>/", "change", self.edit_view),
            self.route("<str:object_id>/delete/", "delete", self.remove_view),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        workspace = current_workspace(request)
        recipient = request.GET.get("recipient", "").strip().replace("\0", "")[:MAX_ADDRESS]
        # At most 100 per workspace, so no pagination.
        return self.page(
            request,
            "dashboard/routes/list.html",
            title=self.title,
            inbound_routes=self.get_queryset(request).order_by(*self.ordering),
            actions=ACTIONS,
            shared_domain=settings.RECEIVING_DOMAIN or SHARED,
            address=shared_address(workspace),
            can_add=bool(domain_choices(workspace)),
            recipient=recipient,
            answer=answer(workspace, recipient) if recipient else None,
        )

    def add_view(self, request: HttpRequest, *_args: Any, **_named: Any) -> HttpResponse:
        workspace = current_workspace(request)
        form = RouteForm(request.POST or None, workspace=workspace)
        route = form.attempt(lambda: create_route(workspace, values=form.values)) if form.is_valid() else None
        if route is None:
            return self.page(request, "dashboard/routes/new.html", title=self.add_label, form=form)
        self.log_addition(request, route, "Created.")
        messages.success(request, _("%(name)s was created.") % {"name": route.name})
        return redirect(self.list_url)

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        route = self.find(request, object_id)
        form = RouteForm(request.POST or None, workspace=current_workspace(request), route=route)
        changed = form.attempt(lambda: update_route(route, changes=form.values)) if form.is_valid() else None
        if changed is None:
            delete_url = self.url("delete", route.id)
            return self.page(request, "dashboard/routes/edit.html", title=route.name, form=form, delete_url=delete_url)
        self.log_change(request, changed, "Changed.")
        messages.success(request, _("The route was saved. It applies to emails that arrive from now on."))
        return redirect(self.list_url)

    def remove_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        route = self.find(request, object_id)
        if request.method != "POST":
            lead = _("Emails to its addresses are refused, unless another route matches. Received emails stay.")
            back = self.url("change", route.id)
            confirmation = Confirmation(lead, _("Delete"), back, about=route.name, is_danger=True)
            return self.confirm(request, _("Delete route"), confirmation)
        name = route.name
        if try_action(request, lambda: delete_route(route)):
            messages.success(request, _("%(name)s was deleted.") % {"name": name})
        return redirect(self.list_url)


def answer(workspace: Workspace, recipient: str) -> dict[str, Any]:
    """Return the reply of the mail server to an address of a workspace, in words, and the route that decides."""
    found = find_route(workspace, recipient)
    route: InboundRoute | None = found["route"]
    is_routed = route is not None and found["reply"] == replies.ACCEPTED
    text = ROUTED[InboundRoute.RouteAction(route.action)] if route and is_routed else OUTCOMES.get(found["reply"], "")
    return {**found, "text": text, "is_accepted": found["reply"] == replies.ACCEPTED}
