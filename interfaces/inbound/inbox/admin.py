"""Django admin for the inbox: caught system email only. Only its members can see a workspace's email."""

from typing import ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from core.workspaces.admin import ReadOnlyAdmin
from interfaces.inbound.inbox.models import CaughtMail
from interfaces.inbound.inbox.reading import read_mail


@admin.register(CaughtMail)
class CaughtMailAdmin(ReadOnlyAdmin):
    list_display = ("subject", "recipient", "is_captured", "received_at")
    fields = ("subject", "sender", "recipient", "is_captured", "received_at", "text")
    readonly_fields = ("text",)
    help_texts: ClassVar = {"sender": _("decoded From header")}

    def get_queryset(self, request: HttpRequest) -> QuerySet[CaughtMail]:
        messages: QuerySet[CaughtMail] = super().get_queryset(request)
        return messages.filter(workspace=None).defer("source")

    @admin.display(description=_("text"))
    def text(self, mail: CaughtMail) -> str:
        return read_mail(bytes(mail.source)).text
