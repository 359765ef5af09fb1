"""Form to move a scheduled email, or to send it now."""

from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from emails.api.inputs import MAX_AHEAD

WIDGET_FORMAT = "%Y-%m-%dT%H:%M"


class ScheduleForm(forms.Form):
    """The new time; None if the form was sent with its button "now"."""

    scheduled_for = forms.DateTimeField(
        label=gettext_lazy("Send at"),
        required=False,
        widget=forms.DateTimeInput({**UnfoldAdminTextInputWidget().attrs, "type": "datetime-local"}, WIDGET_FORMAT),
        help_text=gettext_lazy("In UTC, at most 30 days ahead."),
    )

    def clean_scheduled_for(self) -> Any:
        if "now" in self.data:
            return None
        scheduled_for = self.cleaned_data["scheduled_for"]
        if not scheduled_for or not timezone.now() < scheduled_for <= timezone.now() + MAX_AHEAD:
            raise forms.ValidationError(_("Choose a time within the next 30 days."))
        return scheduled_for
