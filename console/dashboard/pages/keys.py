"""API keys: create, show once, revoke."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.onboarding import sending_details, sending_domain_name, sending_domains
from console.dashboard.pages.recipient_rules import RulesForm, initial_rules
from console.dashboard.pages.sending_samples import key_samples
from console.dashboard.ui.confirm import problem_message
from console.dashboard.ui.forms import LocalDateTimeField, in_time_zone
from console.dashboard.ui.listing import list_page
from console.dashboard.ui.scoping import ScopedAdmin
from console.dashboard.ui.smtp_settings import smtp_settings
from console.dashboard.ui.streams import streams_of
from core.api.errors import InvalidFields
from core.lib.translation import translate
from core.workspaces.api_key_secrets import KeySecret
from core.workspaces.errors import PlanLimitReached, WorkspaceDeleted
from core.workspaces.key_limits import read_limits
from core.workspaces.models import IS_EXPIRED, ApiKey, Membership, User, Workspace
from core.workspaces.services import change_rules, issue_api_key, revoke_api_key
from streams.models import Stream

CUSTOM = "custom"
# The choice for test keys among the scopes.
TEST = "test"
LIMITS = ("domains", "networks", "templates", "streams", "requests_per_second")
MAX_LIST_LENGTH = 5_000


class ListField(forms.CharField):
    """Entries separated by commas or spaces."""

    def __init__(self, *, placeholder: str, **options: Any) -> None:
        widget = UnfoldAdminTextInputWidget({"autocomplete": "off", "placeholder": placeholder})
        super().__init__(required=False, widget=widget, max_length=MAX_LIST_LENGTH, **options)

    def clean(self, value: Any) -> Any:
        return [entry for entry in re.split(r"[\s,;]+", super().clean(value)) if entry]


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
            (ApiKey.Scope.SENDING_ONLY.value, gettext_lazy("Sending only: send emails, read nothing")),
            (ApiKey.Scope.READ_ONLY.value, gettext_lazy("Read only: read everything, change nothing")),
            (ApiKey.Scope.APPROVALS.value, gettext_lazy("Approvals: approve or reject emails that wait for it")),
            (ApiKey.Scope.FULL_ACCESS.value, gettext_lazy("Full access: all API operations")),
            (TEST, gettext_lazy("Test: like sending access, but nothing is delivered")),
        ],
        widget=UnfoldAdminSelectWidget,
    )
    needs_approval = forms.BooleanField(
        label=gettext_lazy("Approval required"),
        required=False,
        widget=UnfoldBooleanWidget,
        help_text=gettext_lazy(
            "Emails of the key wait until somebody approves them. Requires sending access or sending only."
        ),
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
    expires_at = LocalDateTimeField(
        label=gettext_lazy("Time"),
        required=False,
        help_text=in_time_zone(gettext_lazy("In the time zone %(zone)s.")),
    )

    domains = ListField(
        label=gettext_lazy("Sending domains"),
        help_text=gettext_lazy("Separated by commas. Requires sending access or sending only."),
        placeholder="shop.example",
    )
    networks = ListField(
        label=gettext_lazy("Client networks"),
        help_text=gettext_lazy("Addresses or ranges, IPv4 or IPv6, from which the key can be used."),
        placeholder="203.0.113.0/24, 2001:db8::/32",
    )
    templates = ListField(
        label=gettext_lazy("Templates"),
        help_text=gettext_lazy(
            "IDs or aliases. The key can send only with these. Requires sending access or sending only."
        ),
        placeholder="welcome, receipt",
    )
    streams = forms.MultipleChoiceField(
        label=gettext_lazy("Streams"),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=gettext_lazy("The key can send only in these. Requires sending access or sending only."),
    )
    requests_per_second = forms.IntegerField(
        label=gettext_lazy("Requests per second"),
        required=False,
        widget=UnfoldAdminTextInputWidget({"type": "number", "min": 1}),
        help_text=gettext_lazy("Leave empty for the limit of the workspace."),
    )

    def __init__(self, data: Any, *, streams: Sequence[Stream]) -> None:
        super().__init__(data)
        if streams:
            self.fields["streams"].choices = [(stream.slug, stream.name) for stream in streams]  # type: ignore[attr-defined]
        else:
            del self.fields["streams"]

    @property
    def main_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name not in LIMITS]

    @property
    def limit_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in LIMITS if name in self.fields]

    @property
    def has_limits(self) -> bool:
        """Whether the section with the limits is open."""
        return any(field.value() or field.errors for field in self.limit_fields)

    def clean_expires_at(self) -> Any:
        lifetime = self.cleaned_data.get("lifetime")
        if lifetime != CUSTOM:
            return timezone.now() + timedelta(days=int(lifetime)) if lifetime else None
        expires_at = self.cleaned_data["expires_at"]
        if not expires_at or expires_at <= timezone.now():
            raise forms.ValidationError(_("Choose a time in the future."))
        return expires_at

    def issue(self, workspace: Workspace, *, by: User) -> tuple[ApiKey, KeySecret] | None:
        """Return the new key; None, with form errors, if a limit is invalid or the workspace takes no more keys."""
        values = {name: self.cleaned_data[name] for name in ("name", "scope", "expires_at")}
        is_test = values["scope"] == TEST
        if is_test:
            values["scope"] = ApiKey.Scope.SENDING_ACCESS
        try:
            given = {name: self.cleaned_data[name] for name in LIMITS if name in self.cleaned_data}
            needs_approval = self.cleaned_data["needs_approval"]
            limits = read_limits(**given, is_test=is_test, needs_approval=needs_approval)
            return issue_api_key(workspace, created_by=by, limits=limits, **values)
        except (PlanLimitReached, WorkspaceDeleted) as problem:
            self.add_error(None, problem_message(problem))
        except InvalidFields as problem:
            for error in problem.members["errors"]:
                self.add_error(_form_field(error["field"]), translate(error["detail"]))
        return None


def _form_field(wire_name: str) -> str:
    """Return the form field of an error's field, such as `limits.domains[0]`."""
    name = wire_name.removeprefix("limits.").partition("[")[0]
    return {"requestsPerSecond": "requests_per_second", "approval": "needs_approval"}.get(name, name)


class KeySection(ScopedAdmin):
    slug, title = "keys", gettext_lazy("API keys")
    found_by = ("key", "name")
    empty = (
        "key",
        gettext_lazy("No API keys yet"),
        gettext_lazy("Create a key to send emails through the API."),
    )

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        listing, workspace = list_page(request, self.get_queryset(request)), current_workspace(request)
        details = sending_details(sending_domains(workspace)) if listing.rows else {}
        return self.page(
            request, "dashboard/keys/list.html", title=self.title, listing=listing, workspace=workspace, **details
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        members = Membership.objects.filter(workspace=OuterRef("workspace"), user=OuterRef("created_by"))
        keys: QuerySet[ApiKey] = (
            super().get_queryset(request).annotate(is_expired=IS_EXPIRED, has_member=Exists(members))
        )
        return keys.select_related("created_by")

    def routes(self) -> list[URLPattern]:
        return [
            self.route("add/", "add", self.add_view),
            self.route("rules/", "workspace_rules", self.workspace_rules_view),
            self.route("<str:object_id>/rules/", "rules", self.rules_view),
            self.route("<str:object_id>/", "change", self.detail_view),
            self.route("<str:object_id>/revoke/", "revoke", self.revoke_view),
        ]

    def add_view(self, request: HttpRequest, *_args: Any, **_named: Any) -> HttpResponse:
        form = KeyForm(request.POST or None, streams=streams_of(request))
        workspace = current_workspace(request)
        assert isinstance(request.user, User)
        issued = form.issue(workspace, by=request.user) if form.is_valid() else None
        if issued is None:
            return self.page(request, "dashboard/keys/new.html", title=_("Create API key"), form=form)
        key, secret = issued
        self.log_addition(request, key, "Issued.")
        # The secret appears in this response only: never in a session, message or log.
        may_send = key.scope not in {ApiKey.Scope.READ_ONLY, ApiKey.Scope.APPROVALS}
        return self.page(
            request,
            "dashboard/keys/created.html",
            title=key.name,
            key=key,
            secret=secret.text,
            samples=key_samples(secret.text, domain=sending_domain_name(workspace), may_send=may_send),
            smtp=smtp_settings() if may_send else None,
        )

    def detail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        key = self.find(request, object_id)
        return self.page(request, "dashboard/keys/detail.html", title=key.name, key=key)

    def workspace_rules_view(self, request: HttpRequest) -> HttpResponse:
        return self._edit_rules(request, current_workspace(request), back_url=self.list_url)

    def rules_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        key = self.find(request, object_id)
        return self._edit_rules(request, key, back_url=self.object_url(key))

    def _edit_rules(self, request: HttpRequest, owner: Workspace | ApiKey, *, back_url: str) -> HttpResponse:
        form = RulesForm(request.POST or None, initial=initial_rules(owner))
        saved = form.attempt(lambda: change_rules(owner, rules=form.values)) if form.is_valid() else None
        if saved is None:
            title = _("Recipient rules of %(name)s") % {"name": owner.name}
            is_workspace = isinstance(owner, Workspace)
            page = {"form": form, "back_url": back_url, "is_workspace": is_workspace}
            return self.page(request, "dashboard/keys/rules.html", title=title, **page)
        messages.success(request, _("The recipient rules were saved."))
        return redirect(back_url)

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
