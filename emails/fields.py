"""Serializer fields of an email: addresses, and texts that end up in a header."""

from typing import Any

from rest_framework import serializers

from api.fields import TextField
from emails.addresses import FORBIDDEN, Address, InvalidAddress, parse_address

MAX_SUBJECT_LENGTH = 998


class AddressField(TextField):
    """One address, read into an Address."""

    def to_internal_value(self, data: Any) -> Any:
        text = super().to_internal_value(data)
        try:
            return parse_address(text)
        except InvalidAddress as error:
            raise serializers.ValidationError(str(error), code="invalid_email") from error


class AddressListField(serializers.ListField):
    child = AddressField()


class RecipientsField(AddressListField):
    """`to`: one address, or a list of them."""

    def to_internal_value(self, data: Any) -> list[Address]:
        return super().to_internal_value([data] if isinstance(data, str) else data)


class HeaderField(TextField):
    """A text that becomes a header's value: nothing in it may end the line."""

    default_error_messages = {"control": "This may not contain line breaks or other control characters."}

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if FORBIDDEN.search(text):
            self.fail("control")
        return text


class BodyField(TextField):
    """html or text: at most 1 MiB in UTF-8."""

    max_bytes = 1024 * 1024
    default_error_messages = {"too_long": "This has more than 1 MiB in UTF-8."}

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_blank=True, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if len(text) > self.max_bytes or len(text.encode()) > self.max_bytes:
            self.fail("too_long")
        return text
