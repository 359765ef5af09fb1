"""Domains: register one, copy the records that it needs, see what the DNS says of them."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from dashboard.ui.confirm import Question, succeeded
from dashboard.ui.current_workspace import current_workspace
from dashboard.ui.labels import DOMAIN_TONES
from dashboard.ui.scoping import ScopedAdmin
from domains.errors import DomainAlreadyExists
from domains.models import Domain
from domains.names import InvalidDomainName, registrable_name
from domains.records import records_of, warnings_of
from domains.services import delete_domain, register_domain, rotate_dkim_key
from domains.verify import verify_domain
from workspaces.errors import PlanLimitReached
from workspaces.models import Workspace


class DomainForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Domain"),
        max_length=253,
        widget=UnfoldAdminTextInputWidget(
            {"autofocus": True, "autocomplete": "off", "autocapitalize": "none", "placeholder": "mail.example.com"}
        ),
        help_text=gettext_lazy("What stands behind the @ of your From addresses."),
    )

    def clean_name(self) -> str:
        try:
            return registrable_name(self.cleaned_data["name"])
        except InvalidDomainName as error:
            raise forms.ValidationError(str(error)) from error

    def register(self, workspace: Workspace) -> Domain | None:
        """Return the new domain; None, with the form's error, where it is refused."""
        try:
            return register_domain(workspace, name=self.cleaned_data["name"])
        except (DomainAlreadyExists, PlanLimitReached) as refusal:
            self.add_error("name", refusal.detail)
            return None


class DomainPages(ScopedAdmin):
    slug, title = "domains", gettext_lazy("Domains")
    empty = (
        "dns",
        gettext_lazy("No domains yet"),
        gettext_lazy("Register the domain that your mail comes from, then publish its records."),
    )
    ordering = ("-created_at", "-id")

    def page(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse:
        return super().page(request, template, tones=DOMAIN_TONES, **context)

    def routes(self) -> list[URLPattern]:
        return [
            self.route("add/", "add", self.add_view),
            self.route("<str:object_id>/", "change", self.detail_view),
            self.act_route("<str:object_id>/verify/", "verify", self.verify_view),
            self.route("<str:object_id>/rotate/", "rotate", self.rotate_view),
            self.route("<str:object_id>/delete/", "delete", self.remove_view),
        ]

    def add_view(self, request: HttpRequest, *_args: Any, **_named: Any) -> HttpResponse:
        form = DomainForm(request.POST or None)
        domain = form.register(current_workspace(request)) if form.is_valid() else None
        if domain is None:
            return self.page(request, "dashboard/domains/new.html", title=_("New domain"), form=form)
        self.log_addition(request, domain, "Registered.")
        messages.success(request, _("%(name)s is registered. Publish the records below.") % {"name": domain.name})
        return redirect(self.url("change", domain.id))

    def detail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        domain = self.find(request, object_id)
        return self.page(
            request,
            "dashboard/domains/detail.html",
            title=domain.name,
            domain=domain,
            records=records_of(domain),
            warnings=warnings_of(domain),
            urls={name: self.url(name, domain.id) for name in ("verify", "rotate", "delete")},
        )

    def verify_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        domain = self.find(request, object_id)
        if succeeded(request, lambda: verify_domain(domain)):
            domain.refresh_from_db()
            self._tell(request, domain)
        return redirect(self.url("change", domain.id))

    def rotate_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        domain = self.find(request, object_id)
        back = self.url("change", domain.id)
        if request.method != "POST":
            lead = _("A second key is made. The old one signs until the record of the new one is found in the DNS.")
            question = Question(lead, _("Make a new key"), back, about=domain.name)
            return self.ask(request, _("Rotate the DKIM key"), question)
        if succeeded(request, lambda: rotate_dkim_key(domain)):
            self.log_change(request, domain, "Rotated the DKIM key.")
            messages.success(request, _("Publish the new DKIM record, and keep the old one for now."))
        return redirect(back)

    def remove_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        domain = self.find(request, object_id)
        if request.method != "POST":
            lead = _(
                "Mail from it is refused from now on, what waits is not sent, and its DKIM keys are gone for good."
            )
            question = Question(lead, _("Delete domain"), self.url("change", domain.id), domain.name, is_danger=True)
            return self.ask(request, _("Delete domain"), question)
        name = domain.name
        if succeeded(request, lambda: delete_domain(domain)):
            messages.success(request, _("%(name)s is deleted.") % {"name": name})
        return redirect(self.list_url)

    def _tell(self, request: HttpRequest, domain: Domain) -> None:
        if domain.status == Domain.Status.VERIFIED:
            messages.success(request, _("%(name)s is verified.") % {"name": domain.name})
            return
        messages.warning(request, _("Not everything is in place yet; see the records below."))
