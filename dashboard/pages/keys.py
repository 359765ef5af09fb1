"""API keys: issue, see once, revoke."""

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils import timezone
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from dashboard.choice import current_workspace
from dashboard.scoping import ScopedAdmin
from workspaces.errors import PlanLimitReached
from workspaces.models import ApiKey, Workspace
from workspaces.secrets import KeySecret
from workspaces.services import issue_api_key, revoke_api_key


class KeyForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        widget=UnfoldAdminTextInputWidget(
            {"autofocus": True, "autocomplete": "off", "placeholder": "Shop, production"}
        ),
        help_text="Where it is used: you will want to know when you revoke it.",
    )
    scope = forms.ChoiceField(
        choices=[
            (ApiKey.Scope.SENDING_ACCESS.value, "Sending access: send, and read what was sent"),
            (ApiKey.Scope.READ_ONLY.value, "Read only: see everything, change nothing"),
            (ApiKey.Scope.FULL_ACCESS.value, "Full access: everything the API can do"),
        ],
        widget=UnfoldAdminSelectWidget,
    )
    expires_at = forms.DateTimeField(
        label="Expires",
        required=False,
        widget=UnfoldAdminTextInputWidget({"type": "datetime-local"}),
        help_text="In UTC. Empty: it works until you revoke it.",
    )

    def clean_expires_at(self) -> Any:
        expires_at = self.cleaned_data["expires_at"]
        if expires_at and expires_at <= timezone.now():
            raise forms.ValidationError("Choose a moment in the future.")
        return expires_at

    def issue(self, workspace: Workspace) -> tuple[ApiKey, KeySecret] | None:
        """Return the new key; None, with the form's error, where the plan has no room."""
        try:
            return issue_api_key(workspace, **self.cleaned_data)
        except PlanLimitReached as refusal:
            self.add_error(None, refusal.detail)
            return None


class KeyPages(ScopedAdmin):
    slug, title = "keys", "API keys"
    empty = ("key", "No keys yet", "A program needs one to send email through this workspace.")
    ordering = ("-created_at", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        keys: QuerySet[ApiKey] = super().get_queryset(request).annotate(is_expired=Q(expires_at__lte=Now()))
        return keys

    def routes(self) -> list[URLPattern]:
        return [
            self.route("add/", "add", self.add_view),
            self.route("<str:object_id>/revoke/", "revoke", self.revoke_view),
        ]

    def add_view(self, request: HttpRequest, *_: Any, **__: Any) -> HttpResponse:
        form = KeyForm(request.POST or None)
        issued = form.issue(current_workspace(request)) if form.is_valid() else None
        if issued is None:
            return self.page(request, "dashboard/keys/new.html", title="New API key", form=form)
        key, secret = issued
        self.log_addition(request, key, "Issued.")
        # Shown in this very answer and kept nowhere: no session, message or log ever holds it.
        return self.page(request, "dashboard/keys/issued.html", title=key.name, key=key, secret=secret.text)

    def revoke_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        key = self.find(request, object_id)
        if request.method != "POST":
            return self.page(request, "dashboard/keys/revoke.html", title=f"Revoke {key.name}", key=key)
        revoke_api_key(key)
        self.log_change(request, key, "Revoked.")
        messages.success(request, f"{key.name} is revoked; calls with it are refused from now on.")
        return redirect(self.list_url)
