"""Staff's pages for people, workspaces and keys."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.db.models.functions import Now
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldBooleanSwitchWidget

from workspaces.models import ApiKey, Membership, User, Workspace


class ReadOnlyAdmin(ModelAdmin):
    """Shows rows and changes none. Only fields of `filters` may be looked up from the address bar.

    Django lets anybody who sees a list filter by any column of it: ?secret_hash__startswith=… would
    give a secret away letter by letter.
    """

    filters: ClassVar[Sequence[str]] = ()
    list_max_show_all = 0
    show_facets = admin.ShowFacets.NEVER
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        return lookup.removesuffix("__exact") in self.filters

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        return False


class NewUserForm(forms.ModelForm[User]):
    password = forms.CharField(
        max_length=1024, strip=False, widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"})
    )

    class Meta:
        model = User
        fields = ("email", "is_staff")

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"].lower()
        if User.objects.filter(email=email).exists():
            raise forms.ValidationError("This address is in use.")
        return email

    def save(self, commit: bool = True) -> User:  # noqa: FBT001, FBT002 - Django's signature
        self.instance.set_password(self.cleaned_data["password"])
        return super().save(commit=commit)


class MembershipInline(TabularInline):
    model = Membership
    extra = 0
    autocomplete_fields = ("workspace", "user")
