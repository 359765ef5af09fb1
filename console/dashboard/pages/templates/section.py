"""Templates: list, editor with live preview and test emails, starters, versions, duplicate, delete."""

from dataclasses import asdict
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget, UnfoldBooleanWidget

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.sending_samples import template_samples
from console.dashboard.pages.templates.comparison import read_comparison
from console.dashboard.pages.templates.drafts import apply_color_scheme, check_draft, read_draft, sample_data
from console.dashboard.pages.templates.starters import STARTERS, TemplateStarter, find_starter
from console.dashboard.pages.templates.testing import default_sender, send_test
from console.dashboard.pages.templates.version_diff import read_diff
from console.dashboard.ui.confirm import Confirmation, try_action
from console.dashboard.ui.forms import ApiForm
from console.dashboard.ui.listing import list_page
from console.dashboard.ui.preview import preview_response
from console.dashboard.ui.scoping import ScopedAdmin
from emails.template_usage import read_template_usage
from templates_app.content import version_content
from templates_app.models import Template, TemplateVersion
from templates_app.serializers import TemplateInput, new_template
from templates_app.services import (
    create_template,
    delete_template,
    duplicate_template,
    restore_version,
    update_template,
)

CODE = {"spellcheck": "false", "autocapitalize": "none", "autocomplete": "off", "class": "pr-editor", "wrap": "off"}
MAX_SAMPLE_LENGTH = 64 * 1024


class TemplateForm(ApiForm):
    serializer = TemplateInput
    wire_names = {
        "name": "name",
        "alias": "alias",
        "subject": "subject",
        "html": "htmlContent",
        "text": "textContent",
        "strict_variables": "strictVariables",
    }

    name = forms.CharField(label=gettext_lazy("Name"), max_length=100, widget=UnfoldAdminTextInputWidget)
    alias = forms.CharField(
        label=gettext_lazy("Alias"),
        required=False,
        max_length=100,
        widget=UnfoldAdminTextInputWidget({"placeholder": "receipt", "autocapitalize": "none"}),
        help_text=gettext_lazy("Can be used instead of the ID."),
    )
    subject = forms.CharField(
        label=gettext_lazy("Subject"), strip=False, max_length=998, widget=UnfoldAdminTextInputWidget
    )
    html = forms.CharField(
        label="HTML", strip=False, widget=UnfoldAdminTextareaWidget({**CODE, "rows": 18, "data-language": "html"})
    )
    text = forms.CharField(
        label=gettext_lazy("Text"),
        strip=False,
        required=False,
        widget=UnfoldAdminTextareaWidget({**CODE, "rows": 6, "data-language": "text"}),
        help_text=gettext_lazy("If empty, the text version is generated from the HTML."),
    )
    strict_variables = forms.BooleanField(
        label=gettext_lazy("Strict variables"),
        required=False,
        widget=UnfoldBooleanWidget,
        help_text=gettext_lazy("Reject emails whose data is missing a variable."),
    )

    data = forms.CharField(  # type: ignore[assignment]
        label=gettext_lazy("Sample data (JSON)"),
        required=False,
        max_length=MAX_SAMPLE_LENGTH,
        widget=UnfoldAdminTextareaWidget({**CODE, "rows": 9, "data-language": "json"}),
        help_text=gettext_lazy("For the preview and test emails; saved with the template."),
    )

    @property
    def changes(self) -> dict[str, Any]:
        return {**self.values, "sample_data": self.cleaned_data["data"]}

    def request_body(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        # Browsers submit text areas with CRLF line ends; templates use LF.
        normalized = {name: cleaned[name].replace("\r\n", "\n") for name in ("html", "text")}
        return super().request_body({**cleaned, **normalized, "alias": cleaned["alias"] or None})


class TemplateSection(ScopedAdmin):
    slug, title = "templates", gettext_lazy("Templates")
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
        rows = self.get_queryset(request).defer("version__html", "version__text")
        listing = list_page(request, rows)
        usage = read_template_usage(current_workspace(request), [template.id for template in listing.rows])
        for template in listing.rows:
            template.usage = usage[template.id]
        return self.page(request, "dashboard/templates/list.html", title=self.title, listing=listing)

    def add_view(self, request: HttpRequest, *_args: Any, **_named: Any) -> HttpResponse:
        starter = find_starter(request.GET.get("starter", ""))
        form = TemplateForm(request.POST or None, initial=_from_starter(starter) if starter else {"data": "{}"})
        made = form.attempt(lambda: self._create(request, form)) if form.is_valid() else None
        if made is None:
            return self._editor(request, form, title=str(self.add_label), starters=STARTERS, starter=starter)
        self.log_addition(request, made, "Created.")
        messages.success(request, _("The template was saved."))
        return redirect(self.url("change", made.id))

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        template = self.find(request, object_id)
        form = TemplateForm(request.POST or None, initial=_initial(template))
        changed = form.attempt(lambda: update_template(template, changes=form.changes)) if form.is_valid() else None
        if changed is None:
            return self._editor(request, form, title=template.name, **self._details(template, form))
        self.log_change(request, changed, "Changed.")
        messages.success(request, _("The template was saved. Emails already accepted keep the previous version."))
        return redirect(self.url("change", template.id))

    def compare_view(self, request: HttpRequest) -> HttpResponse:
        comparison = read_comparison(request, current_workspace(request))
        title = _("Compare templates and tags")
        return self.page(request, "dashboard/templates/compare.html", title=title, comparison=comparison)

    def changes_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        template = self.find(request, object_id)
        diff = read_diff(template, new_id=request.GET.get("version", ""), old_id=request.GET.get("with", ""))
        title = _("Changes of %(name)s") % {"name": template.name}
        context = {"edited": template, "diff": diff, "versions": _versions(template)}
        return self.page(request, "dashboard/templates/changes.html", title=title, **context)

    def check_view(self, request: HttpRequest) -> JsonResponse:
        return JsonResponse(check_draft(read_draft(request)))

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        html = check_draft(read_draft(request)).get("html", "")
        return preview_response(apply_color_scheme(html, request.POST.get("scheme", "light")))

    def test_view(self, request: HttpRequest) -> JsonResponse:
        return JsonResponse(send_test(request))

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
        if request.method != "POST":
            lead = _("API requests that use this template will be refused. Emails already accepted are still sent.")
            confirmation = Confirmation(
                lead, _("Delete template"), self.url("change", template.id), template.name, is_danger=True
            )
            return self.confirm(request, _("Delete template"), confirmation)
        if try_action(request, lambda: delete_template(template)):
            messages.success(request, _("The template was deleted."))
        return redirect(self.list_url)

    def _editor(self, request: HttpRequest, form: TemplateForm, *, title: str, **context: Any) -> HttpResponse:
        urls = {name: self.url(name) for name in ("check", "preview", "test")}
        test = {"sender": default_sender(current_workspace(request)), "recipient": request.user}
        return self.page(
            request, "dashboard/templates/editor.html", title=title, form=form, urls=urls, test=test, **context
        )

    def _create(self, request: HttpRequest, form: TemplateForm) -> Template:
        values = new_template(form.values)
        return create_template(current_workspace(request), **values, sample_data=form.cleaned_data["data"])

    def _details(self, template: Template, form: TemplateForm) -> dict[str, Any]:
        """Return the context of a saved template: its use, versions and code."""
        return {
            "edited": template,
            "usage": read_template_usage(template.workspace, [template.id])[template.id],
            "versions": _versions(template),
            "samples": template_samples(template, data=str(form["data"].value())),
        }


def _versions(template: Template) -> QuerySet[TemplateVersion]:
    """Return the versions without their content, newest first."""
    return template.versions.defer("html", "text").order_by("-created_at", "-id")


def _initial(template: Template) -> dict[str, Any]:
    content = version_content(template.version)
    return {
        "name": template.name,
        "alias": template.alias,
        "subject": content.subject,
        "html": content.html,
        "text": content.text,
        "strict_variables": template.strict_variables,
        "data": template.sample_data or sample_data(content),
    }


def _from_starter(starter: TemplateStarter) -> dict[str, Any]:
    return {"name": str(starter.title), **asdict(starter.content), "data": starter.sample_data}
