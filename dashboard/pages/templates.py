"""Templates: list, editor with live preview, delete."""

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget, UnfoldBooleanWidget

from dashboard.pages.template_drafts import check_draft, read_draft, sample_data
from dashboard.ui.confirm import Confirmation, try_action
from dashboard.ui.current_workspace import current_workspace
from dashboard.ui.forms import ApiForm
from dashboard.ui.listing import list_page
from dashboard.ui.preview import preview_response
from dashboard.ui.scoping import ScopedAdmin
from templates_app.models import Template
from templates_app.serializers import TemplateInput, new_template
from templates_app.services import create_template, delete_template, update_template, version_content

CODE = {"spellcheck": "false", "autocapitalize": "none", "autocomplete": "off", "class": "pr-editor", "wrap": "off"}


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
        help_text=gettext_lazy("Can be used instead of the id."),
    )
    subject = forms.CharField(
        label=gettext_lazy("Subject"), strip=False, max_length=998, widget=UnfoldAdminTextInputWidget
    )
    html = forms.CharField(label="HTML", strip=False, widget=UnfoldAdminTextareaWidget({**CODE, "rows": 18}))
    text = forms.CharField(
        label=gettext_lazy("Text"),
        strip=False,
        required=False,
        widget=UnfoldAdminTextareaWidget({**CODE, "rows": 6}),
        help_text=gettext_lazy("If empty, the text version is generated from the HTML."),
    )
    strict_variables = forms.BooleanField(
        label=gettext_lazy("Strict variables"),
        required=False,
        widget=UnfoldBooleanWidget,
        help_text=gettext_lazy("Reject emails whose data is missing a variable."),
    )

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
    ordering = ("-created_at", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Template]:
        return super().get_queryset(request).select_related("version")

    def routes(self) -> list[URLPattern]:
        return [
            self.route("add/", "add", self.add_view),
            self.post_route("check/", "check", self.check_view),
            self.post_route("preview/", "preview", self.preview_view),
            self.route("<str:object_id>/", "change", self.edit_view),
            self.route("<str:object_id>/delete/", "delete", self.remove_view),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        # The list does not read the content, which may have a megabyte per part.
        rows = self.get_queryset(request).defer("version__html", "version__text")
        return self.page(request, "dashboard/templates/list.html", title=self.title, listing=list_page(request, rows))

    def add_view(self, request: HttpRequest, *_args: Any, **_named: Any) -> HttpResponse:
        form = TemplateForm(request.POST or None)
        workspace = current_workspace(request)
        made = (
            form.attempt(lambda: create_template(workspace, **new_template(form.values))) if form.is_valid() else None
        )
        if made is None:
            return self._editor(request, form, title=str(self.add_label), sample="{}")
        self.log_addition(request, made, "Created.")
        messages.success(request, _("The template was saved."))
        return redirect(self.url("change", made.id))

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        template = self.find(request, object_id)
        form = TemplateForm(request.POST or None, initial=_initial(template))
        changed = form.attempt(lambda: update_template(template, changes=form.values)) if form.is_valid() else None
        if changed is None:
            sample = request.POST.get("data") or sample_data(version_content(template.version))
            return self._editor(request, form, title=template.name, sample=sample, edited=template)
        self.log_change(request, changed, "Changed.")
        messages.success(request, _("The template was saved. Emails already accepted keep the previous version."))
        return redirect(self.url("change", template.id))

    def check_view(self, request: HttpRequest) -> JsonResponse:
        return JsonResponse(check_draft(read_draft(request)))

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        return preview_response(check_draft(read_draft(request)).get("html", ""))

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
        urls = {name: self.url(name) for name in ("check", "preview")}
        return self.page(request, "dashboard/templates/editor.html", title=title, form=form, urls=urls, **context)


def _initial(template: Template) -> dict[str, Any]:
    content = version_content(template.version)
    return {
        "name": template.name,
        "alias": template.alias,
        "subject": content.subject,
        "html": content.html,
        "text": content.text,
        "strict_variables": template.strict_variables,
    }
