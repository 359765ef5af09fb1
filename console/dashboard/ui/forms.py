"""Forms validated by the API's serializers, so that both accept the same values, and times in the member's zone."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from django import forms
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise, lazy
from django.utils.translation import gettext_lazy, gettext_noop
from rest_framework.serializers import BaseSerializer
from unfold.widgets import UnfoldAdminTextInputWidget

from console.dashboard.ui.confirm import problem_message
from core.api.errors import Problem
from core.lib.datetimes import to_utc

T = TypeVar("T")
# The format of <input type="datetime-local">
WIDGET_FORMAT = "%Y-%m-%dT%H:%M"
SKIPPED = gettext_lazy("%(time)s does not exist in the time zone %(zone)s: the clocks go forward. Choose another time.")
REPEATED = gettext_lazy("%(time)s happens twice in the time zone %(zone)s: the clocks go back. Choose another time.")
# Errors of Django for which DRF has informal German texts. Ours take precedence.
FRAMEWORK_ERRORS = (gettext_noop("Enter a valid URL."), gettext_noop("Enter a valid email address."))


class LocalDateTimeField(forms.DateTimeField):
    """A time in the member's time zone. Refuses a time that its clocks skip or repeat (docs/decisions/0133)."""

    def __init__(self, **options: Any) -> None:
        attributes = {**UnfoldAdminTextInputWidget().attrs, "type": "datetime-local"}
        super().__init__(widget=forms.DateTimeInput(attributes, WIDGET_FORMAT), **options)

    def to_python(self, value: Any) -> datetime | None:
        try:
            given = super().to_python(value)
        except forms.ValidationError as error:
            raise _clock_change(error) from error
        time = given and to_utc(given)
        if given and not time:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return time


def _clock_change(error: forms.ValidationError) -> forms.ValidationError:
    """Return a clearer error for a time that Django cannot interpret in the time zone; the same error otherwise."""
    if getattr(error, "code", "") != "ambiguous_timezone" or error.params is None:
        return error
    time, zone = error.params["datetime"], error.params["current_timezone"]
    # A repeated time has two offsets, the later one with standard time; a skipped time has them the other way round.
    before, after = (time.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    values = {"time": date_format(time, "DATETIME_FORMAT"), "zone": str(zone)}
    return forms.ValidationError((REPEATED if before > after else SKIPPED) % values)


def _in_time_zone(text: Promise) -> str:
    return str(text) % {"zone": timezone.get_current_timezone()}


# A text with the name of the member's time zone as %(zone)s.
in_time_zone = lazy(_in_time_zone, str)


class ApiForm(forms.Form):
    """A form validated by a serializer: takes over its errors; `values` is its validated data."""

    serializer: ClassVar[type[BaseSerializer[Any]]]
    # Form field → serializer field.
    wire_names: ClassVar[dict[str, str]]
    values: Any = None

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.errors:
            return cleaned
        serializer = self.serializer(data=self.request_body(cleaned))
        if serializer.is_valid():
            self.values = serializer.validated_data
        else:
            for name, errors in self.wire_errors(dict(serializer.errors)):
                self.add_error(self._form_field(name), _flatten(errors))
        return cleaned

    def wire_errors(self, errors: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        """Return the errors of the serializer with the names of their fields on the wire."""
        return errors.items()

    def request_body(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        """Return the equivalent body of an API request, without the fields that this form has removed."""
        return {wire: cleaned[name] for name, wire in self.wire_names.items() if name in self.fields}

    def attempt(self, action: Callable[[], T]) -> T | None:
        """Return the result of an action; None, with a form error, if the service refuses it."""
        try:
            return action()
        except Problem as problem:
            errors = problem.members.get("errors") or [{}]
            self.add_error(
                self._form_field(problem.members.get("field") or errors[0].get("field")), problem_message(problem)
            )
            return None

    def _form_field(self, wire_name: str | None) -> str | None:
        field = (wire_name or "").partition(".")[0]
        return next((name for name, wire in self.wire_names.items() if wire == field), None)


def _flatten(errors: Any) -> list[str]:
    """Flatten the errors of a field and its items, without duplicates."""
    if isinstance(errors, dict):
        return list(dict.fromkeys(text for item in errors.values() for text in _flatten(item)))
    return list(dict.fromkeys(str(error) for error in errors))
