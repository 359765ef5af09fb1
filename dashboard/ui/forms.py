"""Forms validated by the API's serializers, so that the dashboard and the API accept the same values."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from django import forms
from rest_framework.serializers import BaseSerializer

from api.errors import Problem
from dashboard.texts.service_messages import translate_message
from dashboard.ui.confirm import problem_message

T = TypeVar("T")


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
            for name, errors in dict(serializer.errors).items():
                self.add_error(self._form_field(name), _flatten(errors))
        return cleaned

    def request_body(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        """Return the equivalent body of an API request."""
        return {wire: cleaned[name] for name, wire in self.wire_names.items()}

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
        return next((name for name, wire in self.wire_names.items() if wire == wire_name), None)


def _flatten(errors: Any) -> list[str]:
    """Flatten the errors of a field and its items, without duplicates."""
    if isinstance(errors, dict):
        return list(dict.fromkeys(text for item in errors.values() for text in _flatten(item)))
    return list(dict.fromkeys(translate_message(str(error)) for error in errors))
