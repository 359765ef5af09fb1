"""The form of a domain's tracking: the host of its links, opens and clicks."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget, UnfoldBooleanWidget

from console.dashboard.ui.forms import ApiForm
from domains.models import Domain
from domains.serializers import DomainSettingsInput


class TrackingForm(ApiForm):
    serializer = DomainSettingsInput
    wire_names = {"subdomain": "tracking", "open_tracking": "openTracking", "click_tracking": "clickTracking"}

    subdomain = forms.CharField(
        label=gettext_lazy("Subdomain for links"),
        required=False,
        max_length=63,
        widget=UnfoldAdminTextInputWidget({"placeholder": "links", "autocapitalize": "none", "autocomplete": "off"}),
        help_text=gettext_lazy("If empty, links lead to this service."),
    )
    open_tracking = forms.BooleanField(label=gettext_lazy("Track opens"), required=False, widget=UnfoldBooleanWidget)
    click_tracking = forms.BooleanField(
        label=gettext_lazy("Track clicks"),
        required=False,
        widget=UnfoldBooleanWidget,
        help_text=gettext_lazy("An email can decide otherwise with trackOpens and trackClicks."),
    )

    def request_body(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        subdomain = cleaned["subdomain"]
        return {**super().request_body(cleaned), "tracking": {"subdomain": subdomain} if subdomain else None}


def tracking_form(domain: Domain, data: Any) -> TrackingForm:
    """Return the form with the present settings of a domain."""
    host = domain.links_host
    initial = {
        "subdomain": host.name.partition(".")[0] if host else "",
        "open_tracking": domain.open_tracking,
        "click_tracking": domain.click_tracking,
    }
    return TrackingForm(data, initial=initial)
