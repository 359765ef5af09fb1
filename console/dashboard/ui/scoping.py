"""Workspace scoping for the dashboard: the only place that decides which rows a page may access.

Each section is a ModelAdmin that inherits ScopedAdmin. By default it allows no adding, changing or deleting and no
lookups from the query string, and its only URLs are the listed ones. An object of another workspace raises Http404,
like an unknown id.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.views.decorators.http import require_POST

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.ui.confirm import Confirmation
from console.dashboard.ui.listing import list_page
from core.workspaces.admin import ReadOnlyAdmin
from core.workspaces.models import Workspace


def rows_in_workspace(workspace: Workspace, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return the rows of the workspace."""
    if rows.model is Workspace:
        return rows.filter(id=workspace.id)
    # Raises FieldError for a model without a workspace field, which is a programming error.
    return rows.filter(workspace=workspace)


class ScopedAdmin(ReadOnlyAdmin):
    """A section of the dashboard: the list at /dashboard/<slug>/, and the URLs that `routes()` adds."""

    slug: ClassVar[str]
    title: ClassVar[str | Promise]
    # The empty state of the list: icon, title, text.
    empty: ClassVar[tuple[str, str | Promise, str | Promise]]
    # The icon and the fields by which the command palette finds an object; none for objects without a name.
    found_by: ClassVar[tuple[str, ...]] = ()

    ordering: ClassVar[Sequence[str]] = ("-created_at", "-id")
    actions = None

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(self.admin_site.has_permission(request))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if not self.admin_site.has_permission(request):
            return False
        return obj is None or self.get_queryset(request).filter(pk=obj.pk).exists()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return rows_in_workspace(current_workspace(request), super().get_queryset(request))

    def get_field_queryset(self, db: str | None, db_field: Any, request: HttpRequest) -> QuerySet[Any]:
        """Limit the choices of foreign keys to the same workspace."""
        rows = super().get_field_queryset(db, db_field, request)
        return rows_in_workspace(
            current_workspace(request), db_field.remote_field.model.objects.all() if rows is None else rows
        )

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        return False

    def find(self, request: HttpRequest, object_id: str) -> Any:
        """Return the workspace's object. Raises Http404 for any other."""
        instance = self.get_object(request, object_id)
        if instance is None:
            raise Http404
        return instance

    def page(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse:
        response: HttpResponse = self.admin_site.page(request, template, section=self, **context)
        return response

    def confirm(self, request: HttpRequest, title: str, confirmation: Confirmation, **context: Any) -> HttpResponse:
        """Return a confirmation page; its form posts to the same URL."""
        return self.page(request, "dashboard/confirm.html", title=title, confirmation=confirmation, **context)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Return a page of the list; the section's ordering follows an index."""
        listing = list_page(request, self.get_queryset(request))
        return self.page(request, f"dashboard/{self.slug}/list.html", title=self.title, listing=listing)

    def get_urls(self) -> list[URLPattern]:
        return [self.route("", "changelist", self.changelist_view), *self.routes()]

    def routes(self) -> list[URLPattern]:
        """Return the section's URLs besides the list; an object's id is <str:object_id>."""
        return []

    def post_route(self, route: str, name: str, view: Callable[..., HttpResponseBase]) -> URLPattern:
        """Return a route that accepts only POST."""
        return self.route(route, name, require_POST(view))

    def route(self, route: str, name: str, view: Callable[..., HttpResponseBase]) -> URLPattern:
        guarded: Callable[..., HttpResponseBase] = self.admin_site.admin_view(view)
        return path(route, guarded, name=f"{self.opts.app_label}_{self.opts.model_name}_{name}")

    def url(self, name: str, *arguments: str) -> str:
        return reverse(f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_{name}", args=arguments)

    def object_url(self, instance: Any) -> str:
        return self.url("change", instance.pk)

    @property
    def list_url(self) -> str:
        return self.url("changelist")

    @property
    def add_url(self) -> str:
        return self.url("add")
