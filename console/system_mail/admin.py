"""System emails in the admin: their state only. The text is hidden because its links give access to accounts.

Canaries are a list with their stages.
"""

from datetime import datetime

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from console.system_mail.models import CanaryRun, SystemMail, SystemMailState
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


@admin.register(CanaryRun)
class CanaryRunAdmin(ReadOnlyAdmin):
    list_display = (
        "transport", "shown_stage", "started_at", "sent_at", "returned_at", "verified_at", "late_at",
    )  # fmt: skip
    list_filter = ("transport",)
    list_select_related = ("mail",)
    ordering = ("-started_at", "-id")
    fields = ("id", "transport", "shown_stage", "explanation", "started_at", "sent_at", "returned_at", "signature",
              "verified_at", "late_at", "pinged_at")  # fmt: skip
    readonly_fields = ("shown_stage", "explanation", "sent_at")

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Show the page only in an installation with canaries."""
        return bool(settings.CANARY_MINUTES) and bool(super().has_module_permission(request))

    @display(description=_("last stage"))
    def shown_stage(self, run: CanaryRun) -> SafeString:
        return state_badge(run.stage, label=str(run.stage.label))

    @display(description=_("accepted by the host"))
    def sent_at(self, run: CanaryRun) -> datetime | None:
        return run.mail.finished_at if run.mail.state == SystemMailState.SENT else None

    @display(description=_("reply"))
    def explanation(self, run: CanaryRun) -> str:
        return run.explanation
