"""OpenAPI schemas of serializers and fields, where drf-spectacular cannot derive them.

show_as(BodyField, {"type": "string", "maxLength": 1_048_576})
refine(SendInput, properties={"cc": {"maxItems": 50}}, anyOf=[…])
"""

import copy
from collections.abc import Mapping
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension, OpenApiSerializerFieldExtension
from rest_framework.fields import Field
from rest_framework.serializers import BaseSerializer

from api.fields import AddressField, StrictSerializer, UtcDateTimeField

Schema = dict[str, Any]

# FORBIDDEN of lib.email_addresses without surrogates: JSON cannot carry them, and ECMAScript matches halves of emoji.
ONE_LINE = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]*$"
ADDRESS: Schema = {
    "type": "string",
    # The term of RFC 5322; tools ignore formats that they do not know.
    "format": "mailbox",
    "minLength": 1,
    "maxLength": 512,
    "examples": ["ada@example.com", "Ada L <ada@example.com>"],
}


def set_field_schema(field: type[Field[Any, Any, Any, Any]], schema: Schema) -> None:
    """Use the schema for all fields of exactly this class; validators and null are added to it."""

    def map_serializer_field(self: Any, auto_schema: Any, direction: Any) -> Schema:
        return copy.deepcopy(schema)

    members = {"target_class": field, "map_serializer_field": map_serializer_field}
    type(f"{field.__name__}Extension", (OpenApiSerializerFieldExtension,), members)


def refine_schema(serializer: type[BaseSerializer[Any]], properties: Mapping[str, Schema], **keywords: Any) -> None:
    """Extend the schema of a serializer: its properties, and the schema itself by keywords.

    A property without a serializer field is one that to_representation adds; it is required.
    """

    def map_serializer(self: Any, auto_schema: Any, direction: Any) -> Schema:
        schema = _map(self, auto_schema, direction)
        for name, more in properties.items():
            if name not in schema["properties"]:
                schema["required"] = [*schema["required"], name]
            schema["properties"][name] = {**schema["properties"].get(name, {}), **more}
        return {**schema, **keywords}

    members = {"target_class": serializer, "priority": 1, "map_serializer": map_serializer}
    type(f"{serializer.__name__}Extension", (OpenApiSerializerExtension,), members)


class StrictSerializerExtension(OpenApiSerializerExtension):
    target_class = StrictSerializer
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> Any:
        return _map(self, auto_schema, direction)


def _map(extension: Any, auto_schema: Any, direction: Any) -> Schema:
    schema: Schema = auto_schema._map_serializer(extension.target, direction, bypass_extensions=True)  # noqa: SLF001
    if isinstance(extension.target, StrictSerializer):
        schema["additionalProperties"] = False
    return schema


set_field_schema(AddressField, ADDRESS)
set_field_schema(UtcDateTimeField, {"type": "string", "format": "date-time"})
