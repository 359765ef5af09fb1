"""Forms of streams: a few fields for a new one, all properties of an existing one."""

from typing import Any

from django import forms
from django.utils.translation import gettext, gettext_lazy
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from console.dashboard.pages.streams.purposes import PURPOSES, Purpose
from console.dashboard.ui.forms import ApiForm
from core.workspaces.models import APPROVAL_REQUIRED, Workspace
from streams.models import Stream, stream_priorities, transport_route_choices
from streams.serializers import StreamChanges, StreamInput
from streams.services import FIXED_IN_MAIN

KINDS = {
    Stream.Kind.TRANSACTIONAL: gettext_lazy("Transactional: answers to what somebody did, such as receipts"),
    Stream.Kind.BULK: gettext_lazy("Bulk: newsletters and announcements"),
}
UNSUBSCRIBES = {
    Stream.Unsubscribe.LINK: gettext_lazy("Link in the footer, and button of the mail client"),
    Stream.Unsubscribe.HEADERS: gettext_lazy("Button of the mail client only"),
    Stream.Unsubscribe.NONE: gettext_lazy("None: recipients cannot unsubscribe"),
}
SCOPES = {
    Stream.SuppressionScope.STREAM: gettext_lazy("This stream only"),
    Stream.SuppressionScope.WORKSPACE: gettext_lazy("All streams of the workspace"),
}
TRACKING_DETAILS = {
    Stream.TrackingDetail.FULL: gettext_lazy("Everything: time, URL, and whether it looks automated"),
    Stream.TrackingDetail.COARSE: gettext_lazy("Time and URL, without anything about the reader's program"),
    Stream.TrackingDetail.COUNTS: gettext_lazy("Only that a recipient opened or clicked, without the time"),
}
APPROVALS = {
    "": gettext_lazy("Not needed"),
    APPROVAL_REQUIRED: gettext_lazy("Required: emails wait until somebody approves them"),
}
# Fields of the form → fields of the API.
CHANGEABLE = {
    "name": "name",
    "description": "description",
    "public": "public",
    "unsubscribe": "unsubscribe",
    "scope": "scope",
    "own_bounces": "ownBounces",
    "ignores_unsubscribes": "ignoresUnsubscribes",
    "priority": "priority",
    "track_opens": "trackOpens",
    "track_clicks": "trackClicks",
    "tracking_detail": "trackingDetail",
    "content_retention": "contentRetention",
    "sensitive": "sensitive",
    "deliver_within": "deliverWithin",
    "approval": "approval",
    "transport_route": "transportRoute",
}


def _switch(label: Any, help_text: Any = "") -> forms.BooleanField:
    return forms.BooleanField(label=label, required=False, widget=UnfoldBooleanWidget, help_text=help_text)


def _choice(label: Any, choices: dict[Any, Any], help_text: Any = "") -> forms.ChoiceField:
    return forms.ChoiceField(
        label=label, choices=list(choices.items()), widget=UnfoldAdminSelectWidget, help_text=help_text
    )


class NameForm(ApiForm):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=100,
        widget=UnfoldAdminTextInputWidget({"autofocus": True, "autocomplete": "off", "placeholder": "Newsletter"}),
        help_text=gettext_lazy("Recipients see it when they unsubscribe."),
    )
    description = forms.CharField(
        label=gettext_lazy("Description"),
        required=False,
        max_length=500,
        widget=UnfoldAdminTextareaWidget({"rows": 2}),
        help_text=gettext_lazy("Recipients see it on their preference page."),
    )


class NewStreamForm(NameForm):
    """The fields that a new stream needs; the others have defaults by its kind."""

    serializer = StreamInput
    wire_names = {"name": "name", "slug": "id", "kind": "kind", "description": "description"}

    slug = forms.CharField(
        label=gettext_lazy("ID"),
        max_length=40,
        widget=UnfoldAdminTextInputWidget(
            {"autocomplete": "off", "autocapitalize": "none", "placeholder": "newsletter", "data-proposed-from": "name"}
        ),
        help_text=gettext_lazy("The “stream” of its emails: a-z, 0-9 and hyphens. It cannot be changed later."),
    )
    kind = _choice(gettext_lazy("Kind"), KINDS, gettext_lazy("It cannot be changed later."))
    field_order: tuple[str, ...] = ("name", "slug", "kind", "description")


class PropertiesForm(NameForm):
    """The properties that a purpose sets, which can be changed later."""

    unsubscribe = _choice(gettext_lazy("Unsubscribing"), UNSUBSCRIBES)
    public = _switch(gettext_lazy("Public"), gettext_lazy("The preference page of recipients lists the stream."))
    priority = _choice(
        gettext_lazy("Priority"),
        dict(stream_priorities()),
        gettext_lazy("The order in which waiting emails of the workspace are sent."),
    )
    track_opens = _switch(gettext_lazy("Track opens"))
    track_clicks = _switch(gettext_lazy("Track clicks"), gettext_lazy("Emails can set both for themselves."))
    deliver_within = forms.IntegerField(
        label=gettext_lazy("Send within (seconds)"),
        required=False,
        widget=UnfoldAdminTextInputWidget({"inputmode": "numeric"}),
        help_text=gettext_lazy("Later, an email fails instead of being sent. If empty, there is no limit."),
    )
    content_retention = forms.IntegerField(
        label=gettext_lazy("Keep the content for (hours)"),
        required=False,
        min_value=0,
        widget=UnfoldAdminTextInputWidget({"inputmode": "numeric"}),
        help_text=gettext_lazy("After the last outcome. If empty, as long as the email; also of accepted emails."),
    )


PROPERTIES = [name for name in PropertiesForm.base_fields if name not in NameForm.base_fields]


class PurposeForm(NewStreamForm, PropertiesForm):
    """The form of a new stream with the properties of a purpose, which are shown before they are saved."""

    wire_names = NewStreamForm.wire_names | {name: CHANGEABLE[name] for name in PROPERTIES}
    field_order = (*NewStreamForm.field_order, *PROPERTIES)

    def __init__(self, data: Any, *, purpose: Purpose, workspace: Workspace) -> None:
        super().__init__(data, initial=purpose.initial(workspace))


def new_stream_form(data: Any, *, purpose: str, workspace: Workspace) -> NewStreamForm:
    """Return the form of a new stream: with the properties of a known purpose, or with those of its kind."""
    if purpose in PURPOSES:
        return PurposeForm(data, purpose=PURPOSES[purpose], workspace=workspace)
    return NewStreamForm(data)


class StreamForm(PropertiesForm):
    serializer, wire_names = StreamChanges, CHANGEABLE

    scope = _choice(gettext_lazy("Unsubscribes and complaints block"), SCOPES)
    own_bounces = _switch(
        gettext_lazy("Own bounces"), gettext_lazy("A hard bounce blocks this stream only, instead of the workspace.")
    )
    ignores_unsubscribes = _switch(
        gettext_lazy("Ignore unsubscribes from the workspace"),
        gettext_lazy("Bounces, complaints and manual suppressions block in any case."),
    )
    tracking_detail = _choice(
        gettext_lazy("Detail of opens and clicks"),
        TRACKING_DETAILS,
        gettext_lazy("Without the time there are no events and webhooks of them. Also of accepted emails."),
    )
    sensitive = _switch(
        gettext_lazy("Sensitive"),
        gettext_lazy("Nobody can read the content of its emails; it is removed after the last outcome."),
    )

    approval = _choice(
        gettext_lazy("Approval"),
        APPROVALS,
        gettext_lazy("An owner, or a key with the scope approvals, decides before an email leaves."),
    )

    field_order = tuple(CHANGEABLE)

    def __init__(self, data: Any, *, stream: Stream) -> None:
        super().__init__(data, initial={name: getattr(stream, name) for name in CHANGEABLE})
        for name in FIXED_IN_MAIN.keys() & self.fields.keys() if stream.is_main else ():
            del self.fields[name]
        self.fields["approval"].required = False
        routes = dict(transport_route_choices(stream.workspace_id))
        # The usual one, and that of the workspace under its name.
        if len(routes) > 2:
            help_text = gettext("The way by which the operator's servers send its emails.")
            self.fields["transport_route"] = _choice(gettext("Route"), routes, help_text)
            self.fields["transport_route"].required = False

    def request_body(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        body = {CHANGEABLE[name]: cleaned[name] for name in self.fields}
        return {**body, "approval": cleaned["approval"] or None}
