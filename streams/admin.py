"""Streams in the staff admin, where staff pause and resume them."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget, UnfoldBooleanSwitchWidget

from core.lib.coded_texts import CodedText
from core.lib.translation import translate
from core.workspaces.admin import StateFilter, StrictAdmin, state_badge
from streams.models import Stream, transport_route_choices
from streams.services import pause_stream, resume_stream, update_stream


class PauseForm(forms.ModelForm):  # type: ignore[type-arg]  # django-stubs' ModelForm takes no [] at run time
    # Compared with the value that the page showed, so that saving an outdated page does not resume a new pause.
    paused = forms.BooleanField(
        label=_("Paused"),
        required=False,
        show_hidden_initial=True,
        widget=UnfoldBooleanSwitchWidget,
        help_text=_("New emails are refused and queued emails wait until the stream is resumed."),
    )
    reason = forms.CharField(label=_("Reason"), required=False, max_length=500, widget=UnfoldAdminTextInputWidget)

    class Meta:
        model = Stream
        fields = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["paused"].initial = self.instance.paused_at is not None
        self.fields["transport_route"] = forms.ChoiceField(
            label=_("Route"),
            required=False,
            widget=UnfoldAdminSelectWidget,
            choices=transport_route_choices(self.instance.workspace_id),
            initial=self.instance.transport_route,
        )
        self.fields["reason"].initial = translate(self.instance.pause_reason)

    def clean(self) -> dict[str, Any] | None:
        if self.cleaned_data.get("paused") and self.instance.is_main:
            self.add_error("paused", translate(CodedText("streams.main_sends")))
        elif self.cleaned_data.get("paused") and not self.cleaned_data.get("reason"):
            self.add_error("reason", _("Enter a reason. It is shown to the workspace."))
        return super().clean()


class StreamStateFilter(StateFilter):
    choices_by_value: ClassVar = {"active": _("Active"), "paused": _("Paused"), "archived": _("Archived")}
    conditions: ClassVar = {
        "active": Q(paused_at=None, archived_at=None),
        "paused": Q(paused_at__isnull=False),
        "archived": Q(archived_at__isnull=False),
    }


@admin.register(Stream)
class StreamAdmin(StrictAdmin):
    form = PauseForm
    list_display = ("slug", "workspace", "name", "kind", "state", "reason", "paused_at", "archived_at", "created_at")
    list_filter = (StreamStateFilter, "kind")
    list_select_related = ("workspace",)
    search_fields = ("slug", "name")
    ordering = ("-created_at", "-id")
    fields = (
        "id", "slug", "workspace", "name", "kind", "priority", "transport_route", "paused", "reason", "paused_at",
        "archived_at", "created_at",
    )  # fmt: skip
    readonly_fields = (
        "id", "slug", "workspace", "name", "kind", "priority", "paused_at", "archived_at", "created_at",
    )  # fmt: skip
    actions = ("resume",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.action(description=_("Resume paused streams"), permissions=["change"])
    def resume(self, request: HttpRequest, streams: QuerySet[Stream]) -> None:
        for stream in streams.select_related("workspace"):
            resume_stream(stream.workspace, stream.slug)
        messages.success(request, _("The selected streams are sent again."))

    @display(description=_("status"))
    def state(self, stream: Stream) -> SafeString:
        if stream.paused_at:
            return state_badge("suspended", label=gettext("paused"))
        return state_badge("archived", label=gettext("archived")) if stream.archived_at else state_badge("active")

    @display(description=_("reason"))
    def reason(self, stream: Stream) -> str:
        return translate(stream.pause_reason)

    def save_model(self, request: HttpRequest, obj: Stream, form: Any, change: bool) -> None:  # noqa: FBT001
        is_changed, is_paused = "paused" in form.changed_data, form.cleaned_data["paused"]
        if is_paused and (is_changed or (obj.paused_at and "reason" in form.changed_data)):
            pause_stream(obj.workspace, obj.slug, reason=form.cleaned_data["reason"])
        elif is_changed and not is_paused:
            resume_stream(obj.workspace, obj.slug)
        if "transport_route" in form.changed_data:
            changes = {"transport_route": form.cleaned_data["transport_route"]}
            update_stream(obj.workspace, obj.slug, changes=changes)
