"""Forms of receiving: a route, a blocked sender, and the address to ask for."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from console.dashboard.ui.forms import ApiForm
from core.workspaces.models import Workspace
from domains.models import ReceivingDomain
from receiving.api.serializers import BlockInput, RouteInput
from receiving.arrival.patterns import MAX_LENGTH
from receiving.models import SHARED, InboundRoute
from webhooks.models import Webhook

ACTIONS = {
    InboundRoute.RouteAction.DELIVER: gettext_lazy("Deliver to webhooks"),
    InboundRoute.RouteAction.REJECT: gettext_lazy("Refuse: the sender gets an error"),
    InboundRoute.RouteAction.DISCARD: gettext_lazy("Discard: accept it and keep nothing"),
}
# Fields of the form → fields of the API. Those about formats of other services are left to the API.
FIELDS = {
    "name": "name",
    "match": "match",
    "domain": "domain",
    "action": "action",
    "webhook_ids": "webhookIds",
    "forward_to": "forwardTo",
    "replies_only": "repliesOnly",
    "require_authenticated": "requireAuthenticated",
    "spam_above": "spamAbove",
    "store_days": "storeDays",
    "priority": "priority",
    "active": "active",
}


def _switch(label: Any, help_text: Any = "", *, initial: bool = False) -> forms.BooleanField:
    return forms.BooleanField(
        label=label, required=False, initial=initial, widget=UnfoldBooleanWidget, help_text=help_text
    )


class RouteForm(ApiForm):
    serializer, wire_names = RouteInput, FIELDS

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=100,
        widget=UnfoldAdminTextInputWidget(
            {"autofocus": True, "autocomplete": "off", "placeholder": gettext_lazy("Support")}
        ),
    )
    match = forms.CharField(
        label=gettext_lazy("Local part"),
        max_length=MAX_LENGTH,
        widget=UnfoldAdminTextInputWidget({"autocomplete": "off", "autocapitalize": "none", "placeholder": "support*"}),
        help_text=gettext_lazy("The part before the @. * is any text, ? one character; * alone is every address."),
    )
    domain = forms.ChoiceField(label=gettext_lazy("Domain"), widget=UnfoldAdminSelectWidget)
    action = forms.ChoiceField(
        label=gettext_lazy("Action"), choices=list(ACTIONS.items()), widget=UnfoldAdminSelectWidget
    )
    webhook_ids = forms.MultipleChoiceField(
        label=gettext_lazy("Webhooks"),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=gettext_lazy("Without a choice, all that subscribe to received."),
    )
    forward_to = forms.CharField(
        label=gettext_lazy("Forward to"),
        required=False,
        widget=UnfoldAdminTextareaWidget({"rows": 2, "autocapitalize": "none", "placeholder": "ada@example.com"}),
        help_text=gettext_lazy("Addresses, one in each line. Each one has to confirm it by a link that is sent to it."),
    )
    replies_only = _switch(
        gettext_lazy("Answers only"), gettext_lazy("Other emails than answers to emails of this workspace are blocked.")
    )
    require_authenticated = _switch(
        gettext_lazy("Proven origin only"),
        gettext_lazy("Emails that are not proven to come from their sender's domain are blocked."),
    )
    spam_above = forms.FloatField(
        label=gettext_lazy("Spam score"),
        required=False,
        widget=UnfoldAdminDecimalFieldWidget({"step": "any"}),
        help_text=gettext_lazy("Emails with this score or a higher one are blocked. Leave empty for no limit."),
    )
    store_days = forms.IntegerField(
        label=gettext_lazy("Days to keep"),
        required=False,
        widget=UnfoldAdminIntegerFieldWidget({"min": 0}),
        help_text=gettext_lazy(
            "Leave empty to keep them as long as the plan allows. 0 deletes them after the webhooks got them."
        ),
    )
    priority = forms.IntegerField(
        label=gettext_lazy("Priority"),
        initial=100,
        widget=UnfoldAdminIntegerFieldWidget({"min": 0, "max": 1000}),
        help_text=gettext_lazy("The route with the lowest number decides if several match an address."),
    )
    active = _switch(gettext_lazy("Active"), gettext_lazy("An inactive route is skipped."), initial=True)

    def __init__(self, data: Any, *, workspace: Workspace, route: InboundRoute | None = None) -> None:
        initial = {name: getattr(route, name) for name in FIELDS} if route else None
        if initial:
            initial["forward_to"] = "\n".join(initial["forward_to"])
        super().__init__(data, initial=initial)
        fields: dict[str, Any] = self.fields
        fields["domain"].choices = domain_choices(workspace, route)
        webhooks = Webhook.objects.filter(workspace=workspace).order_by("url", "id")
        fields["webhook_ids"].choices = list(webhooks.values_list("id", "url"))
        hidden = [] if fields["webhook_ids"].choices else ["webhook_ids"]
        # Without a spam filter, no email has a score.
        hidden += [] if settings.RSPAMD_URL or (route and route.spam_above is not None) else ["spam_above"]
        for name in hidden:
            del self.fields[name]

    def request_body(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        return {**super().request_body(cleaned), "forwardTo": cleaned["forward_to"].split()}


def domain_choices(workspace: Workspace, route: InboundRoute | None = None) -> Sequence[tuple[str, Any]]:
    """Return the domains of routes: those that receive, the shared one, and that of an existing route."""
    names = set(ReceivingDomain.objects.filter(workspace=workspace).values_list("name", flat=True))
    names |= {route.domain} if route else set()
    shared = settings.RECEIVING_DOMAIN or SHARED in names
    choices = [(name, name) for name in sorted(names - {SHARED})]
    return [*choices, (SHARED, settings.RECEIVING_DOMAIN or SHARED)] if shared else choices


class BlockForm(ApiForm):
    serializer, wire_names = BlockInput, {"sender": "sender"}

    sender = forms.CharField(
        label=gettext_lazy("Sender"),
        max_length=254,
        widget=UnfoldAdminTextInputWidget(
            {"autofocus": True, "autocomplete": "off", "autocapitalize": "none", "placeholder": "spam.example"}
        ),
        help_text=gettext_lazy("An address, or a domain for all of its addresses."),
    )
