"""Sending domains: add a domain, show its DNS records, verify it."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.domains.dmarc import SourceForm, dmarc_context
from console.dashboard.pages.domains.records import is_published, records_context, records_refresh, zone_line
from console.dashboard.pages.tracking_settings import tracking_form
from console.dashboard.ui.confirm import Confirmation, problem_message, try_action
from console.dashboard.ui.labels import DOMAIN_TONES, REPORT_TONES
from console.dashboard.ui.scoping import ScopedAdmin
from core.lib.translation import translate
from core.workspaces.errors import PlanLimitReached
from core.workspaces.models import Workspace
from domains.check_queue.simulated_dns import is_simulated
from domains.check_queue.verify import verify_domain
from domains.errors import DomainAlreadyExists
from domains.models import Domain
from domains.names import InvalidDomainName, parse_registrable_name
from domains.records import find_receiving_error, find_tracking_error, list_records
from domains.services import change_domain, delete_domain, is_dns_optional, register_domain, rotate_dkim_key
from domains.shared_records import LINK_LIFETIME, share_records, shared_records_token, stop_sharing_records

STOPPED = gettext_lazy("Email to addresses of this domain is refused now.")
REGIONS = ("checked", "state", "summary", "records", "provider", "links", "receiving")
# Pages and actions of a domain.
PAGES = ("dmarc", "verify", "zone", "share", "tls", "tracking", "receiving", "rotate", "delete")


class DomainForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Domain"),
        max_length=253,
        widget=UnfoldAdminTextInputWidget(
            {"autofocus": True, "autocomplete": "off", "autocapitalize": "none", "placeholder": "mail.example.com"}
        ),
        help_text=gettext_lazy("The part after the @ in your From addresses."),
    )

    def clean_name(self) -> str:
        try:
            return parse_registrable_name(self.cleaned_data["name"])
        except InvalidDomainName as error:
            raise forms.ValidationError(translate(str(error))) from error

    def register(self, workspace: Workspace) -> Domain | None:
        """Return the new domain; None, with a form error, if it is refused."""
        try:
            return register_domain(workspace, name=self.cleaned_data["name"])
        except (DomainAlreadyExists, PlanLimitReached) as problem:
            self.add_error("name", problem_message(problem))
            return None


class DomainSection(ScopedAdmin):
    slug, title = "domains", gettext_lazy("Domains")
    found_by = ("dns", "name")
    empty = (
        "dns",
        gettext_lazy("No domains yet"),
        gettext_lazy("Add the domain you send from, then publish its DNS records."),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("tracking_host", "receiving_domain")

    def page(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse:
        return super().page(request, template, tones=DOMAIN_TONES, **context)

    def routes(self) -> list[URLPattern]:
        return [
            self.route("add/", "add", self.add_view),
            self.route("<str:object_id>/", "change", self.detail_view),
            self.route("<str:object_id>/dmarc/", "dmarc", self.dmarc_view),
            self.route("<str:object_id>/zone/", "zone", self.zone_view),
            self.route("<str:object_id>/share/", "share", self.share_view),
            self.post_route("<str:object_id>/verify/", "verify", self.verify_view),
            self.post_route("<str:object_id>/tls/", "tls", self.tls_view),
            self.route("<str:object_id>/tracking/", "tracking", self.tracking_view),
            self.route("<str:object_id>/receiving/", "receiving", self.receiving_view),
            self.route("<str:object_id>/rotate/", "rotate", self.rotate_view),
            self.route("<str:object_id>/delete/", "delete", self.remove_view),
        ]

    def add_view(self, request: HttpRequest, *_args: Any, **_named: Any) -> HttpResponse:
        form = DomainForm(request.POST or None)
        domain = form.register(current_workspace(request)) if form.is_valid() else None
        if domain is None:
            return self.page(request, "dashboard/domains/new.html", title=_("Add domain"), form=form)
        self.log_addition(request, domain, "Registered.")
        text = (
            _("%(name)s was added. You can send from it now.")
            if is_dns_optional()
            else _("%(name)s was added. Publish the DNS records below.")
        )
        messages.success(request, text % {"name": domain.name})
        return redirect(self.url("change", domain.id))

    def detail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        domain = self.find(request, object_id)
        refresh = records_refresh(domain, regions=REGIONS)
        host, receiving = domain.links_host, domain.receiving
        return refresh.unchanged(request) or self.page(
            request,
            "dashboard/domains/detail.html",
            title=domain.name,
            refresh=refresh,
            **records_context(domain),
            host=host,
            host_error=host and translate(find_tracking_error(host) or ""),
            receiving=receiving,
            receiving_error=receiving and translate(find_receiving_error(receiving) or ""),
            is_dns_optional=is_dns_optional(),
            is_dns_simulated=is_simulated(domain.name),
            is_shared=bool(shared_records_token(domain)),
            urls={name: self.url(name, domain.id) for name in PAGES},
        )

    def zone_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the records as a zone file (RFC 1035, section 5), which DNS providers import.

        Records that exist already, or must be merged by hand, are comments.
        """
        domain = self.find(request, object_id)
        lines = [f"{'; ' if is_published(record) else ''}{zone_line(record)}" for record in list_records(domain)]
        headers = {"Content-Disposition": f'attachment; filename="{domain.name}.zone.txt"'}
        return HttpResponse("\n".join([f"$ORIGIN {domain.name}.", *lines, ""]), "text/plain", headers=headers)

    def share_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the link for a colleague; a POST creates it, or ends it with `end`."""
        domain = self.find(request, object_id)
        if request.method == "POST":
            act = stop_sharing_records if "end" in request.POST else share_records
            act(domain)
            return redirect(self.url("share", domain.id))
        token = shared_records_token(domain)
        return self.page(
            request,
            "dashboard/domains/share.html",
            title=_("Send the records to a colleague"),
            domain=domain,
            link=token and f"{settings.PUBLIC_URL}{reverse('dashboard:shared_records')}?token={token}",
            days=LINK_LIFETIME.days,
            back_url=self.url("change", domain.id),
        )

    def dmarc_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the reports about a domain, and name one of its sources."""
        domain = self.find(request, object_id)
        form = SourceForm(request.POST or None)
        if form.is_valid() and try_action(request, lambda: form.save(domain)):
            self.log_change(request, domain, "Named a source.")
            messages.success(request, _("The source was saved. Stored reports follow it."))
            return redirect(self.url("dmarc", domain.id))
        context = {**dmarc_context(domain), "tones": REPORT_TONES, "back_url": self.url("change", domain.id)}
        return super().page(request, "dashboard/domains/dmarc.html", title=_("DMARC reports"), form=form, **context)

    def verify_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        domain = self.find(request, object_id)
        if try_action(request, lambda: verify_domain(domain)):
            self._report_check(request, self.find(request, object_id), before=domain)
        return redirect(self.url("change", domain.id))

    def tls_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        domain = self.find(request, object_id)
        tls = request.POST.get("tls", "")
        if tls in Domain.TlsPolicy.values and try_action(request, lambda: change_domain(domain, {"tls": tls})):
            self.log_change(request, domain, f"Set TLS to {tls}.")
        return redirect(self.url("change", domain.id))

    def tracking_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        domain = self.find(request, object_id)
        form = tracking_form(domain, request.POST or None)
        changed = form.attempt(lambda: change_domain(domain, form.values)) if form.is_valid() else None
        if changed is None:
            return self.page(request, "dashboard/domains/tracking.html", title=_("Links and tracking"), form=form)
        self.log_change(request, domain, "Changed links and tracking.")
        messages.success(request, _("The settings were saved. They apply to new emails."))
        return redirect(self.url("change", domain.id))

    def receiving_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Begin to receive the email of a domain, or end it, after a confirmation."""
        domain = self.find(request, object_id)
        back = self.url("change", domain.id)
        if request.method != "POST":
            return self._confirm_receiving(request, domain, back)
        wanted = request.POST.get("receiving") == "on"
        if try_action(request, lambda: change_domain(domain, {"receiving": wanted})):
            self.log_change(request, domain, f"Set receiving to {wanted}.")
            text = _("Publish the MX record below. Email is received once it is found.") if wanted else STOPPED
            messages.success(request, text)
        return redirect(back)

    def _confirm_receiving(self, request: HttpRequest, domain: Domain, back: str) -> HttpResponse:
        if domain.receiving:
            lead = _("Email to addresses of this domain is refused from now on. Received emails and routes stay.")
            confirmation = Confirmation(lead, _("Stop receiving"), back, about=domain.name, is_danger=True)
            return self.confirm(request, _("Stop receiving"), confirmation, hidden=[("receiving", "off")])
        lead = _(
            "All email to addresses of this domain comes here once its MX record names this service. If people have "
            "mailboxes at the domain, use a subdomain such as in.%(name)s instead."
        ) % {"name": domain.name}
        confirmation = Confirmation(lead, _("Receive email"), back, about=domain.name)
        return self.confirm(request, _("Receive email"), confirmation, hidden=[("receiving", "on")])

    def rotate_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        domain = self.find(request, object_id)
        back = self.url("change", domain.id)
        if request.method != "POST":
            lead = _("This creates a second key. The current key keeps signing until the new DNS record is found.")
            confirmation = Confirmation(lead, _("Create new key"), back, about=domain.name)
            return self.confirm(request, _("Rotate DKIM key"), confirmation)
        if try_action(request, lambda: rotate_dkim_key(domain)):
            self.log_change(request, domain, "Rotated the DKIM key.")
            messages.success(request, _("Publish the new DKIM record. Keep the old record for now."))
        return redirect(back)

    def remove_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        domain = self.find(request, object_id)
        if request.method != "POST":
            lead = _(
                "Emails from this domain will be refused, queued emails will not be sent, and its DKIM keys will be "
                "permanently deleted."
            )
            confirmation = Confirmation(
                lead, _("Delete domain"), self.url("change", domain.id), domain.name, is_danger=True
            )
            return self.confirm(request, _("Delete domain"), confirmation)
        name = domain.name
        if try_action(request, lambda: delete_domain(domain)):
            messages.success(request, _("%(name)s was deleted.") % {"name": name})
        return redirect(self.list_url)

    def _report_check(self, request: HttpRequest, domain: Domain, *, before: Domain) -> None:
        if domain.last_checked_at == before.last_checked_at:
            messages.info(request, _("The check is still running. Reload this page in a few seconds."))
            return
        if domain.status == Domain.DomainStatus.VERIFIED:
            messages.success(request, _("%(name)s is verified. You can send from it now.") % {"name": domain.name})
            return
        messages.info(request, _("The records were checked just now."))
