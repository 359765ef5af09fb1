"""Fields of requests and responses, described from the schemas of the OpenAPI document."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from console.documentation.markdown import render_markdown

Schema = Mapping[str, Any]
MAX_DEPTH = 4
FORMATS = {"date-time": "timestamp", "date": "date", "mailbox": "address", "uri": "URL", "idn-hostname": "domain"}
# The limits of a value: keywords of the schema for both ends, and the unit.
LIMITS = (
    ("minLength", "maxLength", "characters"),
    ("minItems", "maxItems", "items"),
    ("minProperties", "maxProperties", "entries"),
    ("minimum", "maximum", ""),
)


@dataclass(frozen=True)
class FieldDescription:
    """A field.

    text: its description, in Markdown.
    limits: a sentence about the permitted values; may be empty.
    values: those of an enumeration.
    fields: those of an object or of its items.
    """

    name: str
    type: str
    is_required: bool
    text: str
    limits: str
    values: tuple[str, ...] = ()
    fields: tuple["FieldDescription", ...] = ()

    @property
    def description(self) -> SafeString:
        return render_markdown(self.text)


@dataclass(frozen=True)
class SchemaReader:
    """Reads schemas, whose references lead to `components`."""

    components: Mapping[str, Schema]

    def fields(self, schema: Schema, *, depth: int = 0) -> tuple[FieldDescription, ...]:
        """Return the fields of an object, or of the items of a list: required ones first."""
        described_object = self._object_in(schema)
        required = set(described_object.get("required", ()))
        described = [
            self.describe(name, member, is_required=name in required, depth=depth)
            for name, member in described_object.get("properties", {}).items()
        ]
        return tuple(sorted(described, key=lambda field: not field.is_required))

    def describe(self, name: str, schema: Schema, *, is_required: bool, depth: int = 0) -> FieldDescription:
        whole = self.resolve(schema)
        text = schema.get("description") or whole.get("description") or ""
        inner = self.fields(whole, depth=depth + 1) if depth < MAX_DEPTH else ()
        return FieldDescription(
            name,
            self.type_of(schema),
            is_required,
            text,
            limits_of(whole),
            tuple(str(value) for value in self._values(whole)),
            inner,
        )

    def resolve(self, schema: Schema) -> Schema:
        """Follow references."""
        return self.resolve(self.components[schema["$ref"].rpartition("/")[2]]) if "$ref" in schema else schema

    def type_of(self, schema: Schema) -> str:
        whole = self.resolve(schema)
        choices = whole.get("anyOf") or whole.get("oneOf")
        if choices and "properties" not in whole:
            return " or ".join(dict.fromkeys(self.type_of(choice) for choice in choices))
        if "const" in whole:
            return repr(whole["const"]).lower() if isinstance(whole["const"], bool) else str(whole["const"])
        return " or ".join(self._name(kind, whole) for kind in _kinds(whole))

    def _name(self, kind: str, schema: Schema) -> str:
        if kind == "array":
            return f"{self.type_of(schema.get('items', {}))}[]"
        return FORMATS.get(schema.get("format", ""), kind) if kind == "string" else kind

    def _object_in(self, schema: Schema) -> Schema:
        """Return the object that a schema describes, also as an item of a list or as one of several choices."""
        whole = self.resolve(schema)
        for candidate in (whole, *map(self.resolve, whole.get("anyOf", ()))):
            if "items" in candidate:
                return self._object_in(candidate["items"])
            if candidate.get("properties"):
                return candidate
        return {}

    def _values(self, schema: Schema) -> Iterator[Any]:
        yield from (value for value in schema.get("enum", ()) if value is not None)
        if "items" in schema:
            yield from self._values(self.resolve(schema["items"]))


def limits_of(schema: Schema) -> str:
    """Return the permitted lengths and numbers, and the default, as text."""
    parts = [_range(schema.get(low), schema.get(high), unit) for low, high, unit in LIMITS]
    if schema.get("default") is not None:
        parts.append(f"Default: {_word(schema['default'])}.")
    return " ".join(part for part in parts if part)


def _range(low: int | None, high: int | None, unit: str) -> str:
    unit = f" {unit}" if unit else ""
    if high is not None:
        return f"{low:,} to {high:,}{unit}." if low is not None else f"At most {high:,}{unit}."
    # At least one character is not worth a sentence.
    return f"At least {low:,}{unit}." if low and unit != " characters" else ""


def _kinds(schema: Schema) -> list[str]:
    kind = schema.get("type") or ("object" if "properties" in schema else "string" if "enum" in schema else "any")
    return [kind] if isinstance(kind, str) else list(kind)


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
