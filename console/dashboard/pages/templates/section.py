"""Templates, layouts and partials: list, editor with live preview and test emails, versions, duplicate, delete.

See docs/decisions/0343.
"""

from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.sending_samples import template_samples
from console.dashboard.pages.templates.comparison import read_comparison
from console.dashboard.pages.templates.drafts import TemplateDraft, apply_color_scheme, check_draft, read_draft
from console.dashboard.pages.templates.forms import TemplateForm
from console.dashboard.pages.templates.history import current_id, read_history
from console.dashboard.pages.templates.initial_values import read_start, template_values
from console.dashboard.pages.templates.kinds import KIND, KIND_TEXTS, read_kind, texts_of
from console.dashboard.pages.templates.languages import common_languages
from console.dashboard.pages.templates.testing import default_sender, send_test
from console.dashboard.pages.templates.version_diff import read_diff
from console.dashboard.ui.confirm import Confirmation, try_action
from console.dashboard.ui.listing import list_page
from console.dashboard.ui.preview import preview_response
from console.dashboard.ui.scoping import ScopedAdmin
from emails.template_usage import read_template_usage
from templates_app.models import Template
from templates_app.serializers import new_template
from templates_app.services import (
    create_template,
    delete_template,
    duplicate_template,
    restore_version,
    update_template,
)
from templates_app.sets import count_users, templates_using


class TemplateSection(ScopedAdmin):
    slug, title = "templates", gettext_lazy("Templates")
    found_by = ("draft", "name", "alias")
    empty = (
        "draft",
        gettext_lazy("No templates yet"),
        gettext_lazy("Write the content once and fill in variables for each email."),
    )
    add_label = gettext_lazy("Create template")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Template]:
        return super().get_queryset(request).select_related("version")

    def routes(self) -> list[URLPattern]:
        return [
            self.route("add/", "add", self.add_view),
            self.route("compare/", "compare", self.compare_view),
            self.post_route("check/", "check", self.check_view),
            self.post_route("preview/", "preview", self.preview_view),
            self.post_route("test/", "test", self.test_view),
            self.route("<str:object_id>/", "change", self.edit_view),
            self.route("<str:object_id>/changes/", "changes", self.changes_view),
            self.post_route("<str:object_id>/duplicate/", "duplicate", self.duplicate_view),
            self.post_route("<str:object_id>/restore/", "restore", self.restore_view),
            self.route("<str:object_id>/delete/", "delete", self.remove_view),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        # The list does not read the content, which may have a megabyte per part.
        rows = self.get_queryset(request).defer("version__html", "version__text", "version__locales")
        kind = read_kind(request.GET.get("kind", ""))
        listing = list_page(request, rows.filter(kind=kind) if kind else rows)
        usage = read_template_usage(current_workspace(request), [template.id for template in listing.rows])
        users = count_users(listing.rows)
        for template in listing.rows:
            template.usage, template.user_count = usage[template.id], users.get(template.id, 0)
            template.texts = texts_of(template)
        add = KIND_TEXTS[kind or KIND.TEMPLATE].add
        context = {"listing": listing, "kind": kind, "kinds": KIND_TEXTS, "add_label": add}
        return self.page(request, "dashboard/templates/list.html", title=self.title, **context)

    def add_view(self, request: HttpRequest, *_args: Any, **_named: Any) -> HttpResponse:
        kind = read_kind((request.POST or request.GET).get("kind", "")) or KIND.TEMPLATE
        layouts = self._layouts(request)
        start = read_start(request.GET, kind=kind, layouts=layouts)
        form = TemplateForm(request.POST or None, kind=kind, layouts=layouts, initial=start.values)
        made = form.attempt(lambda: self._create(request, form)) if form.is_valid() else None
        if made is None:
            return self._editor(request, form, title=str(KIND_TEXTS[kind].add), kinds=KIND_TEXTS, start=start)
        self.log_addition(request, made, "Created.")
        messages.success(request, str(KIND_TEXTS[kind].saved))
        return redirect(self.url("change", made.id))

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        template = self.find(request, object_id)
        initial = template_values(template)
        form = TemplateForm(request.POST or None, kind=template.kind, layouts=self._layouts(request), initial=initial)
        changed = form.attempt(lambda: update_template(template, changes=form.changes)) if form.is_valid() else None
        if changed is None:
            return self._editor(request, form, title=template.name, **self._details(template, form))
        self.log_change(request, changed, "Changed.")
        messages.success(request, str(texts_of(template).changed))
        return redirect(self.url("change", template.id))

    def compare_view(self, request: HttpRequest) -> HttpResponse:
        comparison = read_comparison(request, current_workspace(request))
        title = _("Compare templates and tags")
        return self.page(request, "dashboard/templates/compare.html", title=title, comparison=comparison)

    def changes_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        template = self.find(request, object_id)
        history = read_history(template)
        query = request.GET
        diff = read_diff(template, history, new_id=query.get("version", ""), old_id=query.get("with", ""))
        title = _("Changes of %(name)s") % {"name": template.name}
        context = {"edited": template, "diff": diff, "history": history, "current": current_id(template)}
        return self.page(request, "dashboard/templates/changes.html", title=title, **context)

    def check_view(self, request: HttpRequest) -> JsonResponse:
        return JsonResponse(check_draft(self._draft(request)))

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        html = check_draft(self._draft(request)).get("html", "")
        return preview_response(apply_color_scheme(html, request.POST.get("scheme", "light")))

    def test_view(self, request: HttpRequest) -> JsonResponse:
        return JsonResponse(send_test(request, self._draft(request)))

    def duplicate_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        template = self.find(request, object_id)
        name = _("%(name)s (copy)") % {"name": template.name[:90]}
        copies: list[Template] = []
        if not try_action(request, lambda: copies.append(duplicate_template(template, name=name))):
            return redirect(self.url("change", template.id))
        (copy,) = copies
        self.log_addition(request, copy, "Duplicated.")
        messages.success(request, _("This is the copy. It has no alias yet."))
        return redirect(self.url("change", copy.id))

    def restore_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        template = self.find(request, object_id)
        version_id = request.POST.get("version", "")
        if version_id not in template.versions.values_list("id", flat=True):
            raise Http404
        restore_version(template, template.versions.get(id=version_id))
        self.log_change(request, template, "Restored a version.")
        messages.success(request, _("The version was restored. Emails already accepted keep their version."))
        return redirect(self.url("change", template.id))

    def remove_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        template = self.find(request, object_id)
        texts = texts_of(template)
        if request.method == "POST":
            if try_action(request, lambda: delete_template(template)):
                messages.success(request, str(texts.deleted))
            return redirect(self.list_url)
        if users := _labelled(templates_using(template)):
            context = {"edited": template, "users": users}
            return self.page(request, "dashboard/templates/in_use.html", title=texts.delete, **context)
        confirmation = Confirmation(
            texts.deleting, str(texts.delete), self.url("change", template.id), template.name, is_danger=True
        )
        return self.confirm(request, str(texts.delete), confirmation)

    def _draft(self, request: HttpRequest) -> TemplateDraft:
        """Return the content of the editor; with `within`, a layout or partial in a template that uses it."""
        workspace, within = current_workspace(request), request.POST.get("within", "")
        if not within:
            return read_draft(request.POST, workspace=workspace)
        part, user = self.find(request, request.POST.get("edited", "")), self.find(request, within)
        if not templates_using(part).sendable().filter(id=user.id).exists():
            raise Http404
        return read_draft(request.POST, workspace=workspace, part=part, user=user)

    def _editor(self, request: HttpRequest, form: TemplateForm, *, title: str, **context: Any) -> HttpResponse:
        context |= {
            "form": form,
            "urls": {name: self.url(name) for name in ("check", "preview", "test")},
            "test": {"sender": default_sender(current_workspace(request)), "recipient": request.user},
            "partials": self._partials(request, edited=context.get("edited")),
            "languages": common_languages(),
        }
        return self.page(request, "dashboard/templates/editor.html", title=title, **context)

    def _layouts(self, request: HttpRequest) -> dict[str, str]:
        """Return the names of the layouts by id."""
        rows = self.get_queryset(request).filter(kind=KIND.LAYOUT).order_by("name", "id")
        return dict(rows.values_list("id", "name"))

    def _partials(self, request: HttpRequest, *, edited: Template | None) -> list[dict[str, str]]:
        """Return the tags that insert partials, with their names."""
        rows = self.get_queryset(request).filter(kind=KIND.PARTIAL).order_by("name", "id")
        return [
            {"before": f"{{{{> {alias or id_}}}}}", "label": name}
            for id_, alias, name in rows.values_list("id", "alias", "name")
            if edited is None or id_ != edited.id
        ]

    def _create(self, request: HttpRequest, form: TemplateForm) -> Template:
        values = new_template(form.values)
        return create_template(current_workspace(request), **values, sample_data=form.cleaned_data["data"])

    def _details(self, template: Template, form: TemplateForm) -> dict[str, Any]:
        """Return the context of a saved template: its use, versions and code, and the templates that it is part of."""
        is_template, users = template.kind == KIND.TEMPLATE, _labelled(templates_using(template))
        return {
            "edited": template,
            "usage": read_template_usage(template.workspace, [template.id])[template.id],
            "history": read_history(template),
            "current": current_id(template),
            "users": users,
            "user_count": sum(user.kind == KIND.TEMPLATE for user in users),
            "samples": template_samples(template, data=str(form["data"].value())) if is_template else [],
        }


def _labelled(templates: QuerySet[Template]) -> list[Template]:
    rows = list(templates)
    for template in rows:
        template.texts = texts_of(template)  # type: ignore[attr-defined]
    return rows
