"""OpenAPI schemas of serializers, where drf-spectacular cannot derive them.

refine_schema(SendInput, properties={"attachments": {"maxItems": 10}}, **one_given("html", "text"))

Members that are required together are described with `if`: generators of clients read `anyOf` and `oneOf` beside
properties as a choice between types, and lose the properties (docs/decisions/0299).
"""

from collections.abc import Mapping
from typing import Any

from django_filters import BaseCSVFilter
from drf_spectacular.contrib.django_filters import DjangoFilterExtension
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.plumbing import build_parameter_type
from rest_framework.serializers import BaseSerializer

from core.api.fields import StrictSerializer

Schema = dict[str, Any]


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


def given(name: str) -> Schema:
    """Return a schema that requires a text that is not empty."""
    return {"required": [name], "properties": {name: {"type": "string", "minLength": 1}}}


def one_given(name: str, *others: str) -> Schema:
    """Return a schema that requires at least one of several texts."""
    return {"if": given(name), "else": one_given(*others)} if others else given(name)


class StrictSerializerExtension(OpenApiSerializerExtension):
    target_class = StrictSerializer
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> Any:
        return _map(self, auto_schema, direction)


class FieldFilterExtension(DjangoFilterExtension):
    """Describes the query parameters of filtersets by their serializer fields."""

    target_class = "core.api.filters.FilterBackend"
    priority = 1

    def resolve_filter_field(
        self, auto_schema: Any, model: Any, filterset_class: Any, field_name: str, filter_field: Any
    ) -> list[Schema]:
        field = filter_field.parameter
        schema: Schema = auto_schema._map_serializer_field(field, "request")  # noqa: SLF001
        auto_schema._insert_field_validators(field, schema)  # noqa: SLF001
        options = {"name": field_name, "location": "query", "description": schema.pop("description")}
        if isinstance(filter_field, BaseCSVFilter):
            options |= {"explode": False, "style": "form"}
            schema = {"type": "array", "items": schema}
        return [build_parameter_type(schema=schema, **options)]


def _map(extension: Any, auto_schema: Any, direction: Any) -> Schema:
    schema: Schema = auto_schema._map_serializer(extension.target, direction, bypass_extensions=True)  # noqa: SLF001
    if isinstance(extension.target, StrictSerializer):
        schema["additionalProperties"] = False
    return schema
