"""Forms whose values the API's own serializers judge, so that both borders take and refuse the same."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from django import forms
from rest_framework.serializers import BaseSerializer

from api.errors import Problem
from dashboard.ui.confirm import sentence_of

T = TypeVar("T")


class WireForm(forms.Form):
    """Hands its values to a serializer, whose errors become its own; `values` is what the serializer made of them."""

    serializer: ClassVar[type[BaseSerializer[Any]]]
    # Form field → field of the serializer.
    wire: ClassVar[dict[str, str]]
    values: Any = None

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.errors:
            return cleaned
        judged = self.serializer(data=self.on_the_wire(cleaned))
        if judged.is_valid():
            self.values = judged.validated_data
        else:
            self._take_over(judged.errors)
        return cleaned

    def on_the_wire(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        """Return the body that a caller of the API would send."""
        return {wire: cleaned[name] for name, wire in self.wire.items()}

    def attempt(self, act: Callable[[], T]) -> T | None:
        """Return what the act makes; None, with the form's error, where the service refuses."""
        try:
            return act()
        except Problem as refusal:
            errors = refusal.members.get("errors") or [{}]
            self.add_error(self._field_of(refusal.members.get("field") or errors[0].get("field")), sentence_of(refusal))
            return None

    def _take_over(self, errors: Any) -> None:
        for name, found in errors.items():
            self.add_error(self._field_of(name), _sentences(found))

    def _field_of(self, wire_name: str | None) -> str | None:
        return next((name for name, wire in self.wire.items() if wire == wire_name), None)


def _sentences(found: Any) -> list[str]:
    """Flatten the errors of a field and of its items, each sentence once."""
    if isinstance(found, dict):
        return list(dict.fromkeys(text for one in found.values() for text in _sentences(one)))
    return list(dict.fromkeys(str(one) for one in found))
