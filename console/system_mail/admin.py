"""System emails in the admin: their state only. The text is hidden because its links give access to accounts."""

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from console.system_mail.models import SystemMail
from core.workspaces.admin import ReadOnlyAdmin, state_badge


@admin.register(SystemMail)
class SystemMailAdmin(ReadOnlyAdmin):
    list_display = ("kind", "recipient", "shown_state", "attempts", "created_at", "finished_at")
    list_filter = ("kind", "state")
    ordering = ("-created_at", "-id")
    fields = ("id", "kind", "recipient", "subject", "state", "attempts", "reply", "created_at", "due_at", "finished_at")

    @display(description=_("state"), ordering="state")
    def shown_state(self, system_mail: SystemMail) -> SafeString:
        return state_badge(system_mail.state, label=system_mail.get_state_display())
