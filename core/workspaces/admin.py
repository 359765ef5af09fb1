"""Staff admin for users, workspaces and API keys, and the base classes of all staff admin pages."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth import password_validation
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, PaginationInlineFormSet
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget, UnfoldBooleanSwitchWidget

from core.workspaces.account_status import change_limits, change_plan, lift_suspension, suspend_workspace
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.deletion import restore_workspace
from core.workspaces.models import IS_EXPIRED, ApiKey, AuditEntry, Identity, Membership, User, Workspace
from core.workspaces.plans import LARGEST, UNLIMITED, InvalidPlans, read_limit
from core.workspaces.second_factor import end_second_factor

admin.site.unregister(Group)


# State of a row of any model → tone of its badge.
STATE_TONES = {
    **dict.fromkeys(("delivered", "opened", "clicked", "verified", "active", "succeeded", "processed"), "success"),
    **dict.fromkeys(("unreadable", "deferred"), "warning"),
    **dict.fromkeys(("bounced", "failed", "exhausted", "blocked", "temporary_failure", "complained"), "danger"),
    **dict.fromkeys(("suspended", "expired"), "danger"),
    **dict.fromkeys(("pending", "scheduled", "stored", "sent"), "info"),
}


def state_badge(state: str, *, label: str = "") -> SafeString:
    """Return the state as a coloured badge, in the reader's language.

    label: the label of a state that is not the word itself.
    """
    text = label or (gettext(state.replace("_", " ")) if state else "-")
    return format_html('<span class="pr-badge pr-{}">{}</span>', STATE_TONES.get(state, "neutral"), capfirst(text))


def state_column(field: str = "status") -> Callable[[Any, Any], SafeString]:
    """Return a column of a list that shows a field as a badge."""

    @display(description=_("status"), ordering=field)
    def state(admin_page: Any, row: Any) -> SafeString:
        return state_badge(getattr(row, field))

    state.__name__ = f"{field}_badge"
    return state  # type: ignore[no-any-return]


class ParameterFilter(admin.SimpleListFilter):
    """A filter of a list by conditions that are no value of a field.

    choices_by_value: the label of each value of the parameter.
    """

    choices_by_value: ClassVar[Mapping[str, Any]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(self.choices_by_value.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return self.filtered(queryset, value) if value and value in self.choices_by_value else queryset

    def filtered(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Return the rows for a value of choices_by_value."""
        raise NotImplementedError


class StateFilter(ParameterFilter):
    """Rows in a state. conditions: the condition of each value."""

    title, parameter_name = _("status"), "state"
    conditions: ClassVar[Mapping[str, Q]]

    def filtered(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        return rows.filter(self.conditions[value])


class WorkspaceStateFilter(StateFilter):
    choices_by_value: ClassVar = {
        "active": _("Active"),
        "suspended": _("Suspended"),
        "deleted": _("Deleted, in the grace period"),
    }
    conditions: ClassVar = {
        "active": Q(suspended_at=None, deletes_at=None),
        "suspended": Q(suspended_at__isnull=False),
        "deleted": Q(deletes_at__isnull=False),
    }


class KeyStateFilter(StateFilter):
    choices_by_value: ClassVar = {"active": _("Active"), "revoked": _("Revoked"), "expired": _("Expired")}
    conditions: ClassVar = {
        "active": Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=Now())),
        "revoked": Q(revoked_at__isnull=False),
        "expired": Q(revoked_at=None) & IS_EXPIRED,
    }


class StrictAdmin(ModelAdmin):
    """Allows query string lookups only for the fields of `list_filter`.

    By default, Django lets staff filter a list by any column: ?secret_hash__startswith=… would reveal a secret
    one character at a time.
    help_texts: notes for staff by field; the help texts of models are sentences of the API.
    """

    list_filter: ClassVar[Sequence[Any]] = ()
    help_texts: ClassVar[Mapping[str, Any]] = {}
    list_max_show_all = 0
    show_facets = admin.ShowFacets.NEVER

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list with the name of the model as its title; Django's is an instruction, such as to select one."""
        title = capfirst(str(self.opts.verbose_name_plural))
        response: HttpResponse = super().changelist_view(request, {"title": title, **(extra_context or {})})
        return response

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **named: Any
    ) -> HttpResponse:
        """Show a form with one button to save it."""
        context |= {"show_save_and_add_another": False, "show_save_and_continue": False}
        response: HttpResponse = super().render_change_form(request, context, *args, **named)
        return response

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:  # noqa: FBT001, FBT002
        texts = {**dict.fromkeys((field.name for field in self.opts.fields), ""), **self.help_texts}
        return super().get_form(request, obj, change=change, help_texts=texts, **options)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        names = {getattr(one, "parameter_name", one) for one in self.list_filter}
        return lookup.removesuffix("__exact").removesuffix("__isnull") in names

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        return bool(to_field == self.opts.pk.name)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the object of an id. An empty `_to_field` is none; Django fails for it."""
        return super().get_object(request, object_id, from_field or None)


class ReadOnlyAdmin(StrictAdmin):
    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class NewUserForm(forms.ModelForm):  # type: ignore[type-arg]  # django-stubs' ModelForm takes no [] at run time
    password = forms.CharField(
        max_length=1024, strip=False, widget=UnfoldAdminPasswordWidget({"autocomplete": "new-password"})
    )

    class Meta:
        model = User
        fields = ("email", "is_staff")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if settings.PASSWORDS == "off":
            del self.fields["password"]

    def clean_email(self) -> str:
        """Lowercase the address: addresses are unique regardless of case."""
        email = str(self.cleaned_data["email"]).lower()
        if User.objects.filter(email=email).exists():
            raise forms.ValidationError(_("An account with this address already exists."))
        return email

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # not in the stubs
        if "password" not in self.fields:
            return
        try:
            password_validation.validate_password(self.cleaned_data.get("password", ""), self.instance)
        except forms.ValidationError as error:
            self.add_error("password", error)


class IdentityInline(TabularInline):
    """Identities at the identity provider, which staff can unlink."""

    model = Identity
    extra = 0
    fields = readonly_fields = ("issuer", "subject", "created_at", "last_sign_in_at")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class PagedFormSet(PaginationInlineFormSet):
    def get_page_num(self) -> int:
        """Return the requested page; the first one for digits that are no number, such as ²."""
        try:
            return int(super().get_page_num())
        except ValueError:
            return 1


class MembershipInline(TabularInline):
    model = Membership
    formset = PagedFormSet
    extra = 0
    # Each row takes 5 ms.
    per_page = 10
    hide_title = True
    autocomplete_fields = ("workspace", "user")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        memberships: QuerySet[Membership] = super().get_queryset(request)
        return memberships.select_related("workspace", "user").order_by("user__email", "workspace__name")


class MemberInline(MembershipInline):
    verbose_name, verbose_name_plural = _("member"), _("members")


@admin.register(User)
class StaffUserAdmin(StrictAdmin, UserAdmin):  # type: ignore[type-arg]  # it takes no [] at run time
    add_form = NewUserForm
    form = forms.ModelForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("email", "is_staff", "is_superuser", "is_active", "created_at", "last_login")
    list_filter = ("is_staff", "is_active")
    search_fields = ("email",)
    ordering = ("email",)
    filter_horizontal = ()
    readonly_fields = ("created_at", "last_login", "second_factor_at", "staff_from_claims")
    help_texts: ClassVar = {
        "is_staff": _("May sign in to the staff admin."),
        "is_superuser": User._meta.get_field("is_superuser").help_text,  # noqa: SLF001 - a public API of Django
    }
    inlines = (MembershipInline,)
    actions = ("end_second_factors",)
    # No password field: even a masked hash is of no use here.
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "email",
                    "is_active",
                    "is_staff",
                    "is_superuser",
                    "staff_from_claims",
                    "second_factor_at",
                    "created_at",
                    "last_login",
                )
            },
        ),
    )
    add_fieldsets = ((None, {"fields": ("email", "password", "is_staff")}),)

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return (*self.inlines, IdentityInline) if obj and obj.identities.exists() else self.inlines

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None and settings.PASSWORDS == "off":
            return ((None, {"fields": ("email", "is_staff")}),)
        return super().get_fieldsets(request, obj)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:  # noqa: A002 - Django's name
        if settings.PASSWORDS == "off":
            raise Http404
        response: HttpResponse = super().user_change_password(request, id, form_url)
        return response

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:  # noqa: FBT001
        if not change:
            # None, without passwords, cannot be used.
            obj.set_password(form.cleaned_data.get("password"))
        super().save_model(request, obj, form, change)

    @admin.action(description=_("Turn off two-factor authentication (lost phone)"), permissions=["change"])
    def end_second_factors(self, request: HttpRequest, users: QuerySet[User]) -> None:
        for user in users:
            end_second_factor(user)
            self.log_change(request, user, "Turned off two-factor authentication.")
        messages.success(request, _("Two-factor authentication was turned off for the selected users."))


class LimitField(forms.CharField):
    """A limit in place of that of the plan: a list of one value, or an empty list for that of the plan."""

    def __init__(self, limit: str, **options: Any) -> None:
        super().__init__(required=False, widget=UnfoldAdminTextInputWidget, **options)
        self.limit = limit

    def clean(self, value: Any) -> Any:
        text = super().clean(value).strip().lower()
        if not text:
            return []
        try:
            return [read_limit(self.limit, int(text) if text.isdecimal() else text, place=self.limit)]
        except InvalidPlans as error:
            message = _("Enter a whole number from %(lowest)s to %(largest)s.")
            if self.limit != "retentionDays":
                message = _("Enter a whole number from %(lowest)s to %(largest)s, or unlimited.")
            values = {"lowest": int(self.limit == "retentionDays"), "largest": LARGEST[self.limit]}
            raise forms.ValidationError(message % values) from error


LIMIT_FIELDS = {
    "emails_per_month": LimitField("emailsPerMonth", label=_("Emails per month")),
    "domain_limit": LimitField("domains", label=_("Verified domains")),
    "retention_days": LimitField("retentionDays", label=_("Days of retention")),
    "storage_bytes": LimitField("storageBytes", label=_("Bytes of received email")),
}


class WorkspaceForm(forms.ModelForm):  # type: ignore[type-arg]  # as above
    # Compared with the value that the page showed, so that saving an outdated page does not lift a new suspension.
    suspended = forms.BooleanField(
        label=_("Suspended"),
        required=False,
        show_hidden_initial=True,
        widget=UnfoldBooleanSwitchWidget,
        help_text=_("New emails are refused and queued emails are paused until the suspension is lifted."),
    )

    class Meta:
        model = Workspace
        fields = ("name", "plan", "is_proven", "suspended_reason")

    emails_per_month, domain_limit, retention_days, storage_bytes = LIMIT_FIELDS.values()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["suspended"].initial = self.instance.is_suspended
        for name, field in LIMIT_FIELDS.items():
            if field.limit in self.instance.own_limits:
                value = self.instance.own_limits[field.limit]
                self.fields[name].initial = UNLIMITED if value is None else value

    def own_limits(self) -> dict[str, int | None]:
        """Return the limits of the valid form that replace those of the plan."""
        given = {field.limit: self.cleaned_data[name] for name, field in LIMIT_FIELDS.items()}
        return {limit: value[0] for limit, value in given.items() if value}

    def clean(self) -> dict[str, Any] | None:
        if self.cleaned_data.get("suspended") and not self.cleaned_data.get("suspended_reason"):
            self.add_error("suspended_reason", _("Enter a reason. It is shown to the workspace."))
        return super().clean()


@admin.register(Workspace)
class WorkspaceAdmin(StrictAdmin):
    form = WorkspaceForm
    list_display = ("name", "plan", "state", "is_proven", "deletes_at", "created_at")
    list_filter = (WorkspaceStateFilter, "plan", "is_proven")
    search_fields = ("name",)
    ordering = ("name",)
    fieldsets = (
        (_("Name and plan"), {"fields": ("name", "plan", "is_proven", "id", "created_at", "deletes_at")}),
        (_("Suspension"), {"fields": ("suspended", "suspended_reason")}),
        (_("Recipient rules"), {"fields": ("recipient_rules",)}),
        (
            _("Limits of this workspace"),
            {
                "fields": tuple(LIMIT_FIELDS),
                "description": _("They replace those of the plan. A number, or unlimited; empty: that of the plan."),
            },
        ),
    )
    add_fieldsets = (
        (_("Name and plan"), {"fields": ("name", "plan", "is_proven")}),
        (_("Suspension"), {"fields": ("suspended", "suspended_reason")}),
    )
    readonly_fields = ("id", "deletes_at", "created_at", "recipient_rules")
    actions = ("restore",)
    inlines = (MemberInline,)

    @admin.action(description=_("Restore deleted workspaces"), permissions=["change"])
    def restore(self, request: HttpRequest, workspaces: QuerySet[Workspace]) -> None:
        for workspace in workspaces:
            restore_workspace(workspace)
        message = _("The selected workspaces are restored, except for those whose grace period ended.")
        messages.success(request, message)

    @display(description=_("status"))
    def state(self, workspace: Workspace) -> SafeString:
        if workspace.is_deleted:
            return state_badge("expired", label=gettext("being deleted"))
        return state_badge("suspended", label=gettext("suspended")) if workspace.is_suspended else state_badge("active")

    def save_model(self, request: HttpRequest, obj: Workspace, form: Any, change: bool) -> None:  # noqa: FBT001
        if not change:
            super().save_model(request, obj, form, change)
            record_action(obj, AuditAction.WORKSPACE_CREATED, about=f"{obj.name}, {obj.plan}")
        else:
            Workspace.objects.filter(id=obj.id).update(name=obj.name, is_proven=obj.is_proven)
        change_plan(obj, plan=form.cleaned_data["plan"])
        if change:
            change_limits(obj, limits=form.own_limits())
        is_changed, is_suspended = "suspended" in form.changed_data, form.cleaned_data["suspended"]
        if is_suspended and (is_changed or obj.is_suspended):
            suspend_workspace(obj, reason=form.cleaned_data["suspended_reason"])
        elif is_changed:
            lift_suspension(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The management API deletes workspaces, with a grace period."""
        return False


@admin.register(Membership)
class MembershipAdmin(StrictAdmin):
    list_display = ("user", "workspace", "role", "created_at")
    list_filter = ("role",)
    list_select_related = ("user", "workspace")
    autocomplete_fields = ("workspace", "user")


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "workspace", "state", "scope", "created_at", "last_used_at", "expires_at")
    list_filter = (KeyStateFilter, "scope")
    list_select_related = ("workspace",)
    ordering = ("-created_at",)
    fields = (
        "id", "workspace", "name", "scope", "restrictions", "recipient_rules", "last_four", "created_at",
        "last_used_at", "expires_at", "revoked_at",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        keys: QuerySet[ApiKey] = super().get_queryset(request).annotate(is_expired=IS_EXPIRED)
        return keys

    @display(description=_("status"))
    def state(self, key: Any) -> SafeString:
        if key.revoked_at:
            return state_badge("revoked", label=gettext("revoked"))
        return state_badge("expired", label=gettext("expired")) if key.is_expired else state_badge("active")


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    paginator = InfinitePaginator
    show_full_result_count = False
    list_display = ("created_at", "workspace", "act", "about", "actor_kind", "actor", "address")
    list_filter = ("act", "actor_kind")
    list_select_related = ("workspace",)
    sortable_by = ()
    ordering = ("-id",)
