"""API keys: create, show once, revoke."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from dashboard.pages.onboarding import sending_domain_name
from dashboard.ui.current_workspace import current_workspace
from dashboard.ui.key_samples import key_samples
from dashboard.ui.scoping import ScopedAdmin
from dashboard.ui.smtp_settings import smtp_settings
from workspaces.api_key_secrets import KeySecret
from workspaces.errors import PlanLimitReached, WorkspaceDeleted
from workspaces.models import ApiKey, User, Workspace
from workspaces.services import issue_api_key, revoke_api_key

CUSTOM = "custom"


class KeyForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=100,
        widget=UnfoldAdminTextInputWidget(
            {"autofocus": True, "autocomplete": "off", "placeholder": gettext_lazy("Shop, production")}
        ),
        help_text=gettext_lazy("Describes where the key is used."),
    )
    scope = forms.ChoiceField(
        label=gettext_lazy("Scope"),
        choices=[
            (ApiKey.Scope.SENDING_ACCESS.value, gettext_lazy("Sending access: send emails and read sent emails")),
            (ApiKey.Scope.READ_ONLY.value, gettext_lazy("Read only: read everything, change nothing")),
            (ApiKey.Scope.FULL_ACCESS.value, gettext_lazy("Full access: all API operations")),
        ],
        widget=UnfoldAdminSelectWidget,
    )
    lifetime = forms.ChoiceField(
        label=gettext_lazy("Expires"),
        required=False,
        choices=[
            ("", gettext_lazy("Never")),
            ("30", gettext_lazy("In 30 days")),
            ("90", gettext_lazy("In 90 days")),
            ("365", gettext_lazy("In a year")),
            (CUSTOM, gettext_lazy("At a time of your choice")),
        ],
        widget=UnfoldAdminSelectWidget,
    )
    expires_at = forms.DateTimeField(
        label=gettext_lazy("Time"),
        required=False,
        widget=UnfoldAdminTextInputWidget({"type": "datetime-local"}),
        help_text=gettext_lazy("In UTC."),
    )

    def clean_expires_at(self) -> Any:
        lifetime = self.cleaned_data.get("lifetime")
        if lifetime != CUSTOM:
            return timezone.now() + timedelta(days=int(lifetime)) if lifetime else None
        expires_at = self.cleaned_data["expires_at"]
        if not expires_at or expires_at <= timezone.now():
            raise forms.ValidationError(_("Choose a time in the future."))
        return expires_at

    def issue(self, workspace: Workspace, *, by: User) -> tuple[ApiKey, KeySecret] | None:
        """Return the new key; None, with a form error, if the limit is reached or the workspace deleted."""
        values = {name: self.cleaned_data[name] for name in ("name", "scope", "expires_at")}
        try:
            return issue_api_key(workspace, created_by=by, **values)
        except (PlanLimitReached, WorkspaceDeleted) as problem:
            self.add_error(None, problem.detail)
            return None


class KeySection(ScopedAdmin):
    slug, title = "keys", gettext_lazy("API keys")
    empty = (
        "key",
        gettext_lazy("No API keys yet"),
        gettext_lazy("Create a key to send emails through the API."),
    )
    ordering = ("-created_at", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        keys: QuerySet[ApiKey] = super().get_queryset(request).annotate(is_expired=Q(expires_at__lte=Now()))
        return keys.select_related("created_by")

    def routes(self) -> list[URLPattern]:
        return [
            self.route("add/", "add", self.add_view),
            self.route("<str:object_id>/revoke/", "revoke", self.revoke_view),
        ]

    def add_view(self, request: HttpRequest, *_args: Any, **_named: Any) -> HttpResponse:
        form = KeyForm(request.POST or None)
        workspace = current_workspace(request)
        assert isinstance(request.user, User)
        issued = form.issue(workspace, by=request.user) if form.is_valid() else None
        if issued is None:
            return self.page(request, "dashboard/keys/new.html", title=_("Create API key"), form=form)
        key, secret = issued
        self.log_addition(request, key, "Issued.")
        # The secret appears in this response only: never in a session, message or log.
        may_send = key.scope != ApiKey.Scope.READ_ONLY
        return self.page(
            request,
            "dashboard/keys/created.html",
            title=key.name,
            key=key,
            secret=secret.text,
            samples=key_samples(secret.text, domain=sending_domain_name(workspace), may_send=may_send),
            smtp=smtp_settings() if may_send else None,
        )

    def revoke_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        key = self.find(request, object_id)
        if request.method != "POST":
            return self.page(
                request, "dashboard/keys/revoke.html", title=_("Revoke %(name)s") % {"name": key.name}, key=key
            )
        revoke_api_key(key)
        self.log_change(request, key, "Revoked.")
        messages.success(
            request, _("%(name)s was revoked. API requests with this key are now refused.") % {"name": key.name}
        )
        return redirect(self.list_url)
