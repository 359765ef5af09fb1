"""Staff admin of management keys: create, show the secret once, revoke. Django's history records by whom."""

from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.provisioning.models import ManagementKey
from console.provisioning.services import revoke_management_key, save_new_key
from core.workspaces.admin import StrictAdmin


class ManagementKeyForm(forms.ModelForm):  # type: ignore[type-arg]  # django-stubs' ModelForm takes no [] at run time
    def clean_expires_at(self) -> datetime | None:
        expires_at: datetime | None = self.cleaned_data["expires_at"]
        if expires_at and expires_at <= timezone.now():
            raise forms.ValidationError(_("Choose a time in the future."))
        return expires_at


@admin.register(ManagementKey)
class ManagementKeyAdmin(StrictAdmin):
    form = ManagementKeyForm
    list_display = ("__str__", "managed", "created_at", "last_used_at", "expires_at", "revoked_at")
    ordering = ("-created_at",)
    fields = ("id", "name", "group", "last_four", "created_at", "last_used_at", "expires_at", "revoked_at")
    add_fieldsets = ((None, {"fields": ("name", "group", "expires_at")}),)
    actions = ("revoke",)
    help_texts: ClassVar = {"group": _("the group of workspaces; empty for all workspaces")}

    @admin.display(description=_("workspaces"))
    def managed(self, key: ManagementKey) -> str:
        return key.group or gettext("all")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return bool(super().has_change_permission(request))

    def save_model(self, request: HttpRequest, obj: ManagementKey, form: Any, change: bool) -> None:  # noqa: FBT001
        save_new_key(obj)

    def response_add(self, request: HttpRequest, obj: ManagementKey, post_url_continue: Any = None) -> HttpResponse:
        # The secret appears in this response only: never in a session, message or log.
        context = {**self.admin_site.each_context(request), "title": obj.name, "key": obj, "opts": self.opts}
        return TemplateResponse(request, "provisioning/created_key.html", context)

    @admin.action(description=_("Revoke the selected management keys"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, keys: QuerySet[ManagementKey]) -> None:
        for key in keys:
            revoke_management_key(key)
            self.log_change(request, key, "Revoked.")
        messages.success(request, _("The selected management keys are revoked. Requests with them are refused."))
