"""Templates in the staff admin: read only, without their texts."""

from collections.abc import Iterable
from typing import ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from core.workspaces.admin import ReadOnlyAdmin
from templates_app.models import Template, TemplateSet
from templates_app.sets import templates_using

LARGE = ("version__html", "version__text", "version__locales")


@admin.register(Template)
class TemplateAdmin(ReadOnlyAdmin):
    list_display = ("name", "workspace", "kind", "alias", "updated_at", "created_at")
    list_filter = ("kind",)
    list_select_related = ("workspace",)
    search_fields = ("name", "alias")
    ordering = ("-created_at", "-id")
    help_texts: ClassVar = {"set": _("versions of the layout and of the partials")}
    fields = (
        "id", "workspace", "kind", "name", "alias", "layout", "languages", "fallback", "partials", "users", "set",
        "version", "strict_variables", "created_at", "updated_at",
    )  # fmt: skip
    readonly_fields = ("layout", "languages", "fallback", "partials", "users")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Template]:
        templates: QuerySet[Template] = super().get_queryset(request)
        return templates.select_related("version", "set").defer(*LARGE)

    @admin.display(description=_("layout"))
    def layout(self, template: Template) -> str:
        layout = Template.objects.filter(id=template.version.layout_id or None).first()
        return layout.name if layout else "-"

    @admin.display(description=_("languages"))
    def languages(self, template: Template) -> str:
        return _joined([template.version.locale, *template.version.locales])

    @admin.display(description=_("fallback"))
    def fallback(self, template: Template) -> str:
        return _joined(template.version.fallback)

    @admin.display(description=_("partials"))
    def partials(self, template: Template) -> str:
        return _joined(name for name in (template.set.names if template.set else ()) if name != TemplateSet.LAYOUT)

    @admin.display(description=_("used by"))
    def users(self, template: Template) -> str:
        return _joined(user.name for user in templates_using(template))


def _joined(names: Iterable[str]) -> str:
    return ", ".join(filter(None, names)) or "-"
