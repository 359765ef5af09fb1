"""Templates: write one, and see at once what it makes of sample data."""

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

from dashboard.pages.template_drafts import checked, read_draft, sample_of
from dashboard.ui.confirm import Question, succeeded
from dashboard.ui.current_workspace import current_workspace
from dashboard.ui.forms import WireForm
from dashboard.ui.listing import listed
from dashboard.ui.preview import preview_response
from dashboard.ui.scoping import ScopedAdmin
from templates_app.models import Template
from templates_app.serializers import TemplateInput, new_template
from templates_app.services import content_of, create_template, delete_template, update_template

CODE = {"spellcheck": "false", "autocapitalize": "none", "autocomplete": "off", "class": "pr-editor", "wrap": "off"}


class TemplateForm(WireForm):
    serializer = TemplateInput
    wire = {
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
        help_text=gettext_lazy("May stand in the place of the id."),
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
        help_text=gettext_lazy("Empty: it is made of the HTML when an email is sent."),
    )
    strict_variables = forms.BooleanField(
        label=gettext_lazy("Strict variables"),
        required=False,
        widget=UnfoldBooleanWidget,
        help_text=gettext_lazy("Refuse an email whose data has no value for one of the variables."),
    )

    def on_the_wire(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        # Browsers end lines of a text area with CR LF; the author's own are LF.
        unified = {name: cleaned[name].replace("\r\n", "\n") for name in ("html", "text")}
        return super().on_the_wire({**cleaned, **unified, "alias": cleaned["alias"] or None})


class TemplatePages(ScopedAdmin):
    slug, title = "templates", gettext_lazy("Templates")
    empty = (
        "draft",
        gettext_lazy("No templates yet"),
        gettext_lazy("Write the words once; each email brings its own names and numbers."),
    )
    add_label = gettext_lazy("New template")
    ordering = ("-created_at", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Template]:
        return super().get_queryset(request).select_related("version")

    def routes(self) -> list[URLPattern]:
        return [
            self.route("add/", "add", self.add_view),
            self.act_route("check/", "check", self.check_view),
            self.act_route("preview/", "preview", self.preview_view),
            self.route("<str:object_id>/", "change", self.edit_view),
            self.route("<str:object_id>/delete/", "delete", self.remove_view),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        # A list never reads the texts, which may be a megabyte each.
        rows = self.get_queryset(request).defer("version__html", "version__text")
        return self.page(request, "dashboard/templates/list.html", title=self.title, listing=listed(request, rows))

    def add_view(self, request: HttpRequest, *_args: Any, **_named: Any) -> HttpResponse:
        form = TemplateForm(request.POST or None)
        workspace = current_workspace(request)
        made = (
            form.attempt(lambda: create_template(workspace, **new_template(form.values))) if form.is_valid() else None
        )
        if made is None:
            return self._editor(request, form, title=str(self.add_label), sample="{}")
        self.log_addition(request, made, "Created.")
        messages.success(request, _("The template is saved."))
        return redirect(self.url("change", made.id))

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        template = self.find(request, object_id)
        form = TemplateForm(request.POST or None, initial=_initial(template))
        changed = form.attempt(lambda: update_template(template, changes=form.values)) if form.is_valid() else None
        if changed is None:
            sample = request.POST.get("data") or sample_of(content_of(template.version))
            return self._editor(request, form, title=template.name, sample=sample, edited=template)
        self.log_change(request, changed, "Changed.")
        messages.success(request, _("Saved. Emails that were accepted before keep what the template said then."))
        return redirect(self.url("change", template.id))

    def check_view(self, request: HttpRequest) -> JsonResponse:
        return JsonResponse(checked(read_draft(request)))

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        return preview_response(checked(read_draft(request)).get("html", ""))

    def remove_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        template = self.find(request, object_id)
        if request.method != "POST":
            lead = _("Calls that name it are refused from now on. What was accepted with it is sent as it was.")
            question = Question(
                lead, _("Delete template"), self.url("change", template.id), template.name, is_danger=True
            )
            return self.ask(request, _("Delete template"), question)
        if succeeded(request, lambda: delete_template(template)):
            messages.success(request, _("The template is deleted."))
        return redirect(self.list_url)

    def _editor(self, request: HttpRequest, form: TemplateForm, *, title: str, **context: Any) -> HttpResponse:
        urls = {name: self.url(name) for name in ("check", "preview")}
        return self.page(request, "dashboard/templates/editor.html", title=title, form=form, urls=urls, **context)


def _initial(template: Template) -> dict[str, Any]:
    content = content_of(template.version)
    return {
        "name": template.name,
        "alias": template.alias,
        "subject": content.subject,
        "html": content.html,
        "text": content.text,
        "strict_variables": template.strict_variables,
    }
