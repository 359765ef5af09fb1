"""How serializers and their fields stand in the OpenAPI document, where drf-spectacular cannot see it.

show_as(BodyField, {"type": "string", "maxLength": 1_048_576})
refine(SendInput, properties={"cc": {"maxItems": 50}}, anyOf=[…])
"""

import copy
from collections.abc import Mapping
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension, OpenApiSerializerFieldExtension
from rest_framework.fields import Field
from rest_framework.serializers import BaseSerializer

from api.fields import AddressField, StrictSerializer, WireTimeField

Schema = dict[str, Any]

# FORBIDDEN of lib.email_addresses without the surrogates, which JSON cannot carry and ECMA would read as half an emoji.
ONE_LINE = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]*$"
ADDRESS: Schema = {
    "type": "string",
    # RFC 5322's own name for it; a format that a reader does not know is only a note.
    "format": "mailbox",
    "minLength": 1,
    "maxLength": 512,
    "examples": ["ada@example.com", "Ada L <ada@example.com>"],
}


def show_as(field: type[Field[Any, Any, Any, Any]], schema: Schema) -> None:
    """Show all fields of this very class as the schema; validators and null are added to it."""

    def map_serializer_field(self: Any, auto_schema: Any, direction: Any) -> Schema:
        return copy.deepcopy(schema)

    members = {"target_class": field, "map_serializer_field": map_serializer_field}
    type(f"{field.__name__}Extension", (OpenApiSerializerFieldExtension,), members)


def refine(serializer: type[BaseSerializer[Any]], properties: Mapping[str, Schema], **keywords: Any) -> None:
    """Add to the schema of a serializer: to its properties, and keywords to itself.

    A property that the serializer does not have is one that its to_representation adds; it is always there.
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


show_as(AddressField, ADDRESS)
show_as(WireTimeField, {"type": "string", "format": "date-time"})
