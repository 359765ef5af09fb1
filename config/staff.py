"""Admin site of the staff at /admin/; its front page shows the state of operations."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.core.paginator import InvalidPage
from django.db.models import Count, Min
from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from config.health import has_broker
from config.heartbeats import live_workers
from console.dashboard.auth.access import TwoFactorSite
from console.dashboard.auth.signin import has_provider_factor
from console.dashboard.staff.connections import connections_page
from console.dashboard.staff.palette import find_staff_entries
from console.dashboard.staff.queue import pause_page, queue_page, resume_page
from console.dashboard.staff.receivers import pin_page, receivers_page, release_page, suspend_page
from console.dashboard.staff.sources import count_listed, sources_page
from console.dashboard.staff.transports import drain_page, transports_page
from console.dashboard.staff.transports import resume_page as resume_transport_page
from console.system_mail.models import SystemMail, SystemMailState
from core.workspaces.account_status import must_have_second_factor
from core.workspaces.models import Workspace
from emails.sending.delivery_health import is_sending, oldest_due_seconds, queue_depth, read_outcome_counts
from emails.sending.transport_status import read_statuses
from interfaces.inbound.routed import read_reply_counts
from receiving.arrival.usage import total_stored_bytes
from receiving.processing import oldest_stored_seconds

RECEIVER_PAGES = {"suspend": suspend_page, "release": release_page, "pin": pin_page}


class StaffSite(TwoFactorSite):
    site_title = _("Postrider staff")
    site_header = _("Postrider staff")
    index_title = _("Operations")
    welcome = _("For the staff of this service.")
    index_template = "dashboard/operations.html"
    not_found_template = "dashboard/staff/not_found.html"

    def has_permission(self, request: HttpRequest) -> bool:
        return bool(super().has_permission(request)) and not lacks_second_factor(request)

    def get_urls(self) -> list[URLPattern | URLResolver]:
        transports = [
            path("transports/", self.admin_view(self.transports), name="transports"),
            path("transports/<str:name>/drain/", self.admin_view(self.drain), name="transport_drain"),
            path(
                "transports/<str:name>/resume/",
                require_POST(self.admin_view(self.resume_transport)),
                name="transport_resume",
            ),
        ]
        connections = path("connections/", self.admin_view(self.connections), name="connections")
        sources = path("sources/", self.admin_view(self.sources), name="sources")
        queue = [
            path("queue/", self.admin_view(self.queue), name="queue"),
            path("queue/pause/", self.admin_view(self.pause), name="queue_pause"),
            path("queue/resume/", require_POST(self.admin_view(self.resume)), name="queue_resume"),
        ]
        receivers = [
            path("receivers/", self.admin_view(self.receivers), name="receivers"),
            *(
                path(
                    f"receivers/<int:number>/{name}/",
                    self.admin_view(partial(self.receiver, page)),
                    name=f"receiver_{name}",
                )
                for name, page in RECEIVER_PAGES.items()
            ),
        ]
        palette = path("palette/", self.admin_view(self.palette), name="palette")
        pages = [*transports, connections, sources, *queue, *receivers, palette]
        return [*pages, *self.account_urls(), *super().get_urls()]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        palette = reverse("admin:palette") if self.has_permission(request) else ""
        return {**super().each_context(request), "palette_url": palette}

    def palette(self, request: HttpRequest) -> HttpResponse:
        """Return the entries of the command palette as a fragment."""
        return render(request, "dashboard/parts/palette_entries.html", find_staff_entries(request, self._registry))

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Redirect staff without the required second factor to the page that sets it up."""
        if request.method == "GET" and super().has_permission(request) and lacks_second_factor(request):
            return redirect("admin:security")
        return super().login(request, extra_context)

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Return the search of the sidebar. Raises Http404 for a page that does not exist."""
        try:
            response: HttpResponse = super().search(request, extra_context)
        except (InvalidPage, ValueError) as error:
            raise Http404 from error
        return response

    def transports(self, request: HttpRequest) -> HttpResponse:
        return transports_page(request, self.each_context(request))

    def drain(self, request: HttpRequest, name: str) -> HttpResponse:
        return drain_page(request, self.each_context(request), name)

    def resume_transport(self, request: HttpRequest, name: str) -> HttpResponse:
        return resume_transport_page(request, name)

    def sources(self, request: HttpRequest) -> HttpResponse:
        return sources_page(request, self.each_context(request))

    def connections(self, request: HttpRequest) -> HttpResponse:
        return connections_page(request, self.each_context(request))

    def receivers(self, request: HttpRequest) -> HttpResponse:
        return receivers_page(request, self.each_context(request))

    def receiver(self, page: Callable[..., HttpResponse], request: HttpRequest, number: int) -> HttpResponse:
        """Show a page of RECEIVER_PAGES about one source at one receiver."""
        return page(request, self.each_context(request), number)

    def queue(self, request: HttpRequest) -> HttpResponse:
        return queue_page(request, self.each_context(request))

    def pause(self, request: HttpRequest) -> HttpResponse:
        return pause_page(request, self.each_context(request))

    def resume(self, request: HttpRequest) -> HttpResponse:
        return resume_page(request)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        response: HttpResponse = super().index(request, {**operations_context(), **(extra_context or {})})
        return response


def lacks_second_factor(request: HttpRequest) -> bool:
    user: Any = request.user
    return must_have_second_factor(user) and user.second_factor_at is None and not has_provider_factor(request)


def operations_context() -> dict[str, Any]:
    """Return the context of the operations page; computed per visit, a few tenths of a second at a million rows."""
    waiting = SystemMail.objects.filter(state=SystemMailState.WAITING, due_at__lte=Now())
    workers = live_workers()
    return {
        "queue": queue_depth(),
        "oldest_due_seconds": round(oldest_due_seconds()),
        "is_sending": is_sending(),
        "has_broker": has_broker(),
        "workers": workers,
        "trouble": sorted({worker.trouble for worker in workers if worker.trouble}),
        "outcomes": [outcome for outcome in read_outcome_counts() if outcome.count],
        "transports": read_statuses(),
        "listings": count_listed(),
        "inbound_replies": [(reply, count) for (reply,), count in read_reply_counts() if count],
        "oldest_stored_seconds": round(oldest_stored_seconds()),
        "stored_bytes": total_stored_bytes(),
        "system_mail": waiting.aggregate(due=Count("id"), oldest=Min("created_at")),
        "suspended": Workspace.objects.filter(suspended_at__isnull=False).count(),
        "workspace_count": Workspace.objects.count(),
    }
