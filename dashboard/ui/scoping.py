"""The one place that decides which rows an owner's page may touch: those of the current workspace.

A page is a ModelAdmin that inherits ScopedAdmin. It begins closed: nothing can be added, changed or
deleted, nothing is looked up by the address bar, and its only URLs are those it names.
An object of another workspace does not exist here: Http404, as for an id that nobody has.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin

from dashboard.ui.confirm import Question
from dashboard.ui.current_workspace import current_workspace
from dashboard.ui.listing import listed, refuse_unknown
from workspaces.models import Workspace


def within(workspace: Workspace, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return the rows of the workspace."""
    if rows.model is Workspace:
        return rows.filter(id=workspace.id)
    # FieldError for a model that does not say whose its rows are: a mistake of ours, and a loud one.
    return rows.filter(workspace=workspace)


class ScopedAdmin(ModelAdmin):
    """A section of the dashboard: /dashboard/<slug>/ with its list, and what its `urls()` adds."""

    slug: ClassVar[str]
    title: ClassVar[str | Promise]
    # What the list says while it has no rows: an icon, a title, a sentence.
    empty: ClassVar[tuple[str, str | Promise, str | Promise]]

    actions = None

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(self.admin_site.has_permission(request))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if not self.admin_site.has_permission(request):
            return False
        return obj is None or self.get_queryset(request).filter(pk=obj.pk).exists()

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return within(current_workspace(request), super().get_queryset(request))

    def get_field_queryset(self, db: str | None, db_field: Any, request: HttpRequest) -> QuerySet[Any]:
        """Offer a form's foreign keys, choices and all, from the same workspace."""
        rows = super().get_field_queryset(db, db_field, request)
        return within(current_workspace(request), db_field.remote_field.model.objects.all() if rows is None else rows)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        return False

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        return False

    def find(self, request: HttpRequest, object_id: str) -> Any:
        """Return the workspace's object. Raises Http404 for any other."""
        found = self.get_object(request, object_id)
        if found is None:
            raise Http404
        return found

    def page(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse:
        response: HttpResponse = self.admin_site.page(request, template, section=self, **context)
        return response

    def ask(self, request: HttpRequest, title: str, question: Question, **context: Any) -> HttpResponse:
        """Return the page that asks before an act; its form posts to the same address."""
        return self.page(request, "dashboard/confirm.html", title=title, question=question, **context)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Answer with a page of the list, along the index that the section's ordering follows."""
        refuse_unknown(request, set())
        listing = listed(request, self.get_queryset(request))
        return self.page(request, f"dashboard/{self.slug}/list.html", title=self.title, listing=listing)

    def get_urls(self) -> list[URLPattern]:
        return [self.route("", "changelist", self.changelist_view), *self.routes()]

    def routes(self) -> list[URLPattern]:
        """Return the section's URLs beside its list; a route with an object takes it as <str:object_id>."""
        return []

    def act_route(self, route: str, name: str, view: Callable[..., HttpResponseBase]) -> URLPattern:
        """Return a route for what has no page of its own: only a POST reaches it."""
        return self.route(route, name, require_POST(view))

    def route(self, route: str, name: str, view: Callable[..., HttpResponseBase]) -> URLPattern:
        guarded: Callable[..., HttpResponseBase] = self.admin_site.admin_view(view)
        return path(route, guarded, name=f"{self.opts.app_label}_{self.opts.model_name}_{name}")

    def url(self, name: str, *arguments: str) -> str:
        return reverse(f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_{name}", args=arguments)

    @property
    def list_url(self) -> str:
        return self.url("changelist")

    @property
    def add_url(self) -> str:
        return self.url("add")
