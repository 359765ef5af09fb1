"""Form to move a scheduled email, or to send it now."""

from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.dashboard.ui.forms import LocalDateTimeField, in_time_zone
from emails.accept.rules.fields import MAX_AHEAD


class ScheduleForm(forms.Form):
    """The new time; None if the form was sent with its button "now"."""

    scheduled_for = LocalDateTimeField(
        label=gettext_lazy("Send at"),
        required=False,
        help_text=in_time_zone(gettext_lazy("In the time zone %(zone)s, at most 30 days ahead.")),
    )

    def clean_scheduled_for(self) -> Any:
        if "now" in self.data:
            return None
        scheduled_for = self.cleaned_data["scheduled_for"]
        if not scheduled_for or not timezone.now() < scheduled_for <= timezone.now() + MAX_AHEAD:
            raise forms.ValidationError(_("Choose a time within the next 30 days."))
        return scheduled_for
