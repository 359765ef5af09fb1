"""Serializer fields and base serializers that all resources share: strict types, times, refused unknown fields."""

import copy
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from functools import cache
from typing import Any, ClassVar, TypeVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from core.api.suggestions import MAX_NAME_LENGTH, suggest_field
from core.lib.coded_texts import CodedText
from core.lib.datetimes import format_datetime, parse_datetime
from core.lib.email_addresses import InvalidAddress, parse_address, parse_recipient
from core.lib.translation import translate

# Limits the work for a body with a million unknown names.
MAX_UNKNOWN_REPORTED = 20

# Not allowed in a header. FORBIDDEN of core.lib.email_addresses without surrogates: JSON cannot carry them, and
# ECMAScript matches halves of emoji.
ONE_LINE = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]*$"
ADDRESS_SCHEMA: dict[str, Any] = {
    "type": "string",
    # The term of RFC 5322; tools ignore formats that they do not know.
    "format": "mailbox",
    "minLength": 1,
    "maxLength": 512,
    "examples": ["ada@example.com", "Ada L <ada@example.com>"],
}
# A field that may be missing or null.
OPTIONAL: Any = {"required": False, "allow_null": True}

T = TypeVar("T")
M = TypeVar("M", bound=models.Model)
FieldErrors = dict[str, list[serializers.ErrorDetail]]


class UtcDateTimeField(serializers.DateTimeField):
    """A datetime, rendered as `2026-11-20T08:30:00.412Z`; a stored response has it as text already."""

    def to_representation(self, value: Any) -> str:
        return value if isinstance(value, str) else format_datetime(value)


class AttributesSerializer(serializers.Serializer[T]):
    """Shows attributes of an object; a name on the wire is the camelCase of the attribute, unless it has a source.

    optional_fields: those that are absent without a value.
    """

    optional_fields: ClassVar[frozenset[str]] = frozenset()

    def to_representation(self, instance: T) -> dict[str, Any]:
        values: dict[str, Any] = super().to_representation(instance)
        for name in self.optional_fields:
            if not values[name]:
                del values[name]
        return values

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        for name, field in fields.items():
            attribute = attribute_of(name)
            if field.source is None and attribute != name:
                field.source = attribute
        return fields


def attribute_of(wire_name: str) -> str:
    """Return the name of an attribute for its name on the wire."""
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", wire_name)


class RowSerializer(AttributesSerializer[M], serializers.ModelSerializer[M]):
    """Shows a row, whose fields of the model need no declaration; see AttributesSerializer.

    A declared field has the help text of the model's field, unless it has another. A subclass that inherits `Meta` has
    its declared fields behind the inherited ones.
    """

    serializer_field_mapping = serializers.ModelSerializer.serializer_field_mapping | {
        models.DateTimeField: UtcDateTimeField
    }

    def build_field(self, field_name: str, *args: Any) -> Any:
        return super().build_field(attribute_of(field_name), *args)

    def get_field_names(self, declared_fields: Mapping[str, Any], info: Any) -> Any:
        owner: Any = next(parent for parent in type(self).__mro__ if "Meta" in vars(parent))
        added = [name for name in declared_fields if name not in owner._declared_fields]  # noqa: SLF001
        listed = {name: field for name, field in declared_fields.items() if name not in added}
        return [*super().get_field_names(listed, info), *added]

    def get_fields(self) -> dict[str, Any]:
        return copy.deepcopy(_row_fields(type(self)))

    def build_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        model: Any = self.Meta.model
        columns = {column.name: column for column in model._meta.fields}  # noqa: SLF001 - a public API of Django
        for name, field in fields.items():
            column = columns.get(attribute_of(name) if field.source in (None, "*") else field.source)
            text = column.help_text if column and field.help_text is None else field.help_text
            # A copy is made from the arguments of a field.
            field._kwargs |= {"source": field.source, "help_text": text}  # noqa: SLF001
        return fields


@cache
def _row_fields(serializer: type[RowSerializer[Any]]) -> dict[str, Any]:
    """Return the fields of a class: building them from the model takes twice as long as copying them."""
    return serializer().build_fields()


class CountField(serializers.IntegerField):
    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0, **options)


class TextListField(serializers.ListField):
    child = serializers.CharField()


@extend_schema_field(
    {"anyOf": [*({"type": "string", "format": one} for one in ("date", "date-time")), {"type": "string", "const": ""}]}
)
class DateTimeBoundField(serializers.CharField):
    """One end of a range in a query: an RFC 3339 timestamp, or a date that covers the whole day; empty if open.

    is_end: a date means the last microsecond of that day instead of the first.
    """

    default_error_messages = {
        "invalid": "This must be a date or a timestamp, such as 2026-11-21 or 2026-11-21T06:20:00Z."
    }

    def __init__(self, *, is_end: bool, **options: Any) -> None:
        self.is_end = is_end
        super().__init__(required=False, allow_blank=True, **options)

    def to_internal_value(self, data: Any) -> Any:
        text = super().to_internal_value(data)
        # An unescaped plus sign in a query string arrives as a space.
        bound = parse_datetime(text) or parse_datetime(text.replace(" ", "+")) or self._parse_date(text)
        if bound is None:
            self.fail("invalid")
        return bound

    def _parse_date(self, text: str) -> datetime | None:
        try:
            day, zone = date.fromisoformat(text), timezone.get_current_timezone()
            return datetime.combine(day, time.max if self.is_end else time.min, zone).astimezone(UTC)
        except (ValueError, OverflowError):
            return None


def is_reversed(values: Mapping[str, Any]) -> bool:
    """Return whether `from` is later than `to`."""
    return bool(values.get("from") and values.get("to") and values["from"] > values["to"])


def invalid_range() -> serializers.ErrorDetail:
    return serializers.ErrorDetail(gettext("from must not be later than to."), code="invalid_range")


class TextField(serializers.CharField):
    """A JSON string, unchanged: DRF would turn 12 into "12" and trim white space."""

    default_error_messages = {"invalid": "This must be a string."}

    def __init__(self, **options: Any) -> None:
        options.setdefault("trim_whitespace", False)
        super().__init__(**options)
        # The parser refuses surrogates already; a second check takes 25 ms per megabyte.
        self.validators = [
            validator
            for validator in self.validators
            if not isinstance(validator, ProhibitSurrogateCharactersValidator)
        ]

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class OptionalTextField(TextField):
    """A JSON string that may be missing or empty; null is an empty one."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, allow_null=True, allow_blank=True, **options)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        return "" if data is None else super().run_validation(data)


@extend_schema_field(ADDRESS_SCHEMA)
class AddressField(TextField):
    """One email address, parsed into an Address."""

    parse = staticmethod(parse_address)
    default_error_messages = {
        "invalid": 'This must be a string with one address, such as "ada@example.com" or "Ada L <ada@example.com>".'
    }

    def to_internal_value(self, data: Any) -> Any:
        text = super().to_internal_value(data)
        try:
            return self.parse(text)
        except InvalidAddress as error:
            raise serializers.ValidationError(translate(str(error)), code="invalid_email") from error


class RecipientField(AddressField):
    """One address of a recipient, which may be internationalized."""

    parse = staticmethod(parse_recipient)


class OptionField(serializers.ChoiceField):
    """One of a few strings."""

    default_error_messages = {"invalid_choice": "This must be one of {options}."}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            self.fail("invalid_choice", options=", ".join(self.choices))
        return data


class StrictBooleanField(serializers.BooleanField):
    """A JSON boolean; DRF would also accept "yes" and 1."""

    default_error_messages = {"invalid": "This must be true or false."}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class WholeNumberField(serializers.IntegerField):
    """A JSON number without a fraction, such as 5 or 5.0, an integer in JSON Schema; DRF would also accept "5"."""

    default_error_messages = {"invalid": "This must be a whole number."}

    def to_internal_value(self, data: Any) -> int:
        if type(data) is float and data.is_integer():
            return int(data)
        if type(data) is not int:
            self.fail("invalid")
        return data


MIN_DELIVER_WITHIN, MAX_DELIVER_WITHIN = 30, 604_800


class DeliverWithinField(WholeNumberField):
    """The seconds from acceptance, or from the scheduled time, after which an email is not sent any more."""

    def __init__(self, **options: Any) -> None:
        options |= {"min_value": MIN_DELIVER_WITHIN, "max_value": MAX_DELIVER_WITHIN}
        super().__init__(required=False, allow_null=True, **options)


class NumberField(serializers.FloatField):
    """A JSON number; DRF would also accept "5"."""

    default_error_messages = {"invalid": "This must be a number."}

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        return float(super().to_internal_value(data))


class ObjectField(serializers.DictField):
    """A JSON object, stored unchanged."""

    default_error_messages = {"not_a_dict": "This must be an object."}


class EntriesField(serializers.ListField):
    """A JSON array. Its length is checked before its entries: of too many entries, none is validated."""

    default_error_messages = {
        "not_a_list": "This must be a list.",
        "empty": gettext_lazy("This list must not be empty."),
        "max_length": "At most {max_length:,} entries are allowed.",
        "min_length": "This list must have {min_length:,} or more entries.",
    }

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, list) and self.max_length is not None and len(data) > self.max_length:
            detail = CodedText("api.too_many_entries", limit=f"{self.max_length:,}")
            raise serializers.ValidationError(translate(detail), code="max_length")
        return super().to_internal_value(data)


class DeletedSerializer(serializers.Serializer[Any]):
    """The id of a deleted object."""

    id = serializers.CharField()
    deleted = serializers.BooleanField(read_only=True, default=True, help_text="Always true.")


class StrictSerializer(serializers.Serializer[Any]):
    """An input that refuses unknown fields: an ignored `scheduledfor` would send immediately."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            message = serializers.ErrorDetail("This must be an object.", code="invalid_type")
            raise serializers.ValidationError({"non_field_errors": [message]})
        others = {**self.combination_errors(data), **self._unknown_field_errors(data)}
        try:
            value: dict[str, Any] = super().to_internal_value(data)
        except serializers.ValidationError as error:
            # The error of a field itself comes first, and instead of one about its combination with others.
            own: dict[str, Any] = error.detail  # type: ignore[assignment]
            raise serializers.ValidationError({**own, **others, **own}) from error
        if others:
            raise serializers.ValidationError(others)
        return value

    def combination_errors(self, data: Mapping[str, Any]) -> FieldErrors:
        """Return the errors of fields that depend on others; `data` is not validated.

        They are reported together with those of single fields, unlike the errors that `validate` would raise.
        """
        return {}

    def _unknown_field_errors(self, data: dict[str, Any]) -> FieldErrors:
        unknown = [name for name in data if name not in self.fields]
        return {name: [self._unknown_field_error(name)] for name in unknown[:MAX_UNKNOWN_REPORTED]}

    def _unknown_field_error(self, name: str) -> serializers.ErrorDetail:
        hint = suggest_field(name, self.fields.keys())
        return serializers.ErrorDetail(f"Unknown field {name[:MAX_NAME_LENGTH]!r}.{hint}", code="unknown_field")


class RowInput(StrictSerializer, RowSerializer[Any]):
    """An input for a row; fields of the model need no declaration.

    A field is required unless the model has a default, or a blank or null value is valid. No row is read or saved.
    """

    serializer_field_mapping: ClassVar = {
        models.CharField: TextField,
        models.TextField: TextField,
        models.BooleanField: StrictBooleanField,
        models.FloatField: NumberField,
        models.IntegerField: WholeNumberField,
    }
    serializer_choice_field = OptionField

    def build_standard_field(self, field_name: str, model_field: Any) -> Any:
        field_class, options = super().build_standard_field(field_name, model_field)
        return field_class, options | ({"required": False} if model_field.has_db_default() else {})


class NotEmpty(serializers.Serializer[Any]):
    """An input with at least one of its fields."""

    def combination_errors(self, data: Mapping[str, Any]) -> FieldErrors:
        if data:
            return {}
        names = ", ".join(self.fields)
        return {"non_field_errors": [serializers.ErrorDetail(f"Give one of {names}.", code="required")]}


class AllOptional(serializers.Serializer[Any]):
    """The fields of another input, none of them required."""

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        for field in fields.values():
            field.required = False
        return fields


DISPLAY_NAME_LENGTH = 100
# Without control characters, which PostgreSQL, logs and emails would show differently.
PLAIN = re.compile(r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*\Z")


class PatternField(serializers.RegexField, TextField):
    """A JSON string that matches a pattern."""


class NameField(PatternField):
    """One line of text."""

    default_error_messages = {"invalid": "This must be a string without control characters."}

    def __init__(self, **options: Any) -> None:
        options.setdefault("max_length", DISPLAY_NAME_LENGTH)
        super().__init__(PLAIN.pattern, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        # str.strip() would remove some control characters at the ends.
        if not PLAIN.match(text):
            self.fail("invalid")
        return text.strip() or self.fail("blank")
