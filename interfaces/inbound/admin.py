"""Django admin for inbound reports: mail to postmaster and abuse, and reports that need manual review."""

from typing import ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from core.workspaces.admin import ReadOnlyAdmin
from interfaces.inbound.models import MailReport, ProviderReport
from interfaces.inbound.reports.mime import read_message


@admin.register(MailReport)
class MailReportAdmin(ReadOnlyAdmin):
    list_display = ("received_at", "peer", "sender", "verdict")
    list_filter = ("verdict",)
    fields = ("received_at", "peer", "sender", "recipient_id", "verdict", "attempts", "subject", "text")
    readonly_fields = ("recipient_id", "subject", "text")
    help_texts: ClassVar = {
        "peer": _("IP address of the sending host"),
        "sender": _("envelope sender; empty for a delivery report"),
    }

    def get_queryset(self, request: HttpRequest) -> QuerySet[MailReport]:
        reports: QuerySet[MailReport] = super().get_queryset(request)
        return reports.defer("source")

    @admin.display(description=_("subject"))
    def subject(self, report: MailReport) -> str:
        return read_message(bytes(report.source)).header("subject")

    @admin.display(description=_("text"))
    def text(self, report: MailReport) -> str:
        return "\n\n".join(leaf.text for leaf in read_message(bytes(report.source)).leaves[:5])


@admin.register(ProviderReport)
class ProviderReportAdmin(ReadOnlyAdmin):
    list_display = ("received_at", "provider", "message_id", "verdict")
    list_filter = ("provider", "verdict")
    fields = ("received_at", "provider", "message_id", "verdict", "attempts", "event")
    help_texts: ClassVar = {"message_id": _("message ID assigned by the provider")}
