"""Changes of schemas that break programs written for an earlier OpenAPI document (docs/decisions/0288).

A request must still accept everything that it accepted, and a response contain nothing that it could not contain.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

Schema = dict[str, Any]
# Names in backticks: an operation and its parameter, or the member of a schema.
Place = tuple[str, ...]
ANNOTATIONS = {"title", "description", "example", "examples", "default", "deprecated", "discriminator"}
# Compared by functions. Any other keyword that restricts values may only be removed from requests, or be added to
# responses.
STRUCTURE = {"properties", "required", "additionalProperties", "items", "enum", "const"}
TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
# The meaning of a text: any change of them breaks programs.
ENCODINGS = {"contentEncoding", "contentMediaType"}
MAXIMA = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
MINIMA = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")


class Direction(Enum):
    REQUEST = "requests"
    RESPONSE = "responses"


@dataclass(frozen=True, order=True)
class Change:
    place: Place
    text: str

    def __str__(self) -> str:
        return f"{' '.join(f'`{name}`' for name in self.place)}: {self.text}"


@dataclass(frozen=True)
class Choice:
    """One alternative of a schema, without references and combinations at its top.

    name: the component that contains it, or an empty string.
    label: the name, title or type by which its counterpart is found.
    """

    schema: Schema
    name: str
    label: str


@dataclass(frozen=True)
class Comparison:
    """A comparison of the schemas of two documents; pairs of components are compared once in each direction."""

    old: Schema
    new: Schema
    compared: dict[tuple[str, str, Direction], set[Change]] = field(default_factory=dict)

    def compare(self, old: Schema, new: Schema, direction: Direction, place: Place) -> set[Change]:
        if "$ref" not in old or "$ref" not in new:
            return self._compare_choices(old, new, direction, place)
        key = (old["$ref"], new["$ref"], direction)
        if key not in self.compared:
            # A component that contains itself is equal as far as it is compared already.
            self.compared[key] = set()
            self.compared[key] = self._compare_choices(old, new, direction, place)
        return self.compared[key]

    def _compare_choices(self, old: Schema, new: Schema, direction: Direction, place: Place) -> set[Change]:
        """Return the changes of each old choice of a request, or new one of a response, that is within no other."""
        before, after = [*choices(self.old, old)], [*choices(self.new, new)]
        is_request = direction is Direction.REQUEST
        inner, outer = (before, after) if is_request else (after, before)
        found: set[Change] = set()
        for choice in inner:
            pairs = [(choice, other) if is_request else (other, choice) for other in outer]
            changes = [self._compare_choice(*pair, direction, place) for pair in pairs]
            if all(changes):
                index = counterpart(choice, inner, outer)
                text = "is no longer accepted in requests" if is_request else "was added to responses"
                found |= {Change(place, f"{choice.label} {text}")} if index is None else changes[index]
        return found

    def compare_errors(self, old: Schema, new: Schema, direction: Direction, place: Place) -> set[Change]:
        """Return the changes of errors that both documents have: operations may gain and lose errors."""
        after = {choice.name: choice for choice in choices(self.new, new)}
        pairs = ((choice, after[choice.name]) for choice in choices(self.old, old) if choice.name in after)
        return {change for pair in pairs for change in self._compare_choice(*pair, direction, place)}

    def _compare_choice(self, old: Choice, new: Choice, direction: Direction, place: Place) -> set[Change]:
        place = (old.name,) if old.name else place
        schemas = old.schema, new.schema
        return {
            *keyword_changes(*schemas, direction, place),
            *value_changes(*schemas, direction, place),
            *self._member_changes(*schemas, direction, place),
            *required_changes(*schemas, direction, place),
            *self._other_member_changes(*schemas, direction, place),
            *self._item_changes(*schemas, direction, place),
        }

    def _member_changes(self, old: Schema, new: Schema, direction: Direction, place: Place) -> Iterator[Change]:
        after = new.get("properties", {})
        for name, schema in old.get("properties", {}).items():
            if name in after:
                yield from self.compare(schema, after[name], direction, member(place, name))
            else:
                yield Change(member(place, name), f"was removed from {direction.value}")

    def _other_member_changes(self, old: Schema, new: Schema, direction: Direction, place: Place) -> set[Change]:
        before, after = (schema.get("additionalProperties", True) for schema in (old, new))
        if before is False or (after is False and direction is Direction.RESPONSE):
            return set()
        if after is False:
            return {Change(place, "other members are no longer accepted in requests")}
        before, after = ({} if schema is True else schema for schema in (before, after))
        return self.compare(before, after, direction, place) if before or after else set()

    def _item_changes(self, old: Schema, new: Schema, direction: Direction, place: Place) -> set[Change]:
        if "items" not in old and "items" not in new:
            return set()
        return self.compare(old.get("items", {}), new.get("items", {}), direction, place)


def required_changes(old: Schema, new: Schema, direction: Direction, place: Place) -> Iterator[Change]:
    before, after = (set(schema.get("required", ())) for schema in (old, new))
    if direction is Direction.REQUEST:
        yield from (Change(member(place, name), "is required in requests") for name in after - before)
        return
    # Removed members have a change of their own already.
    optional = (before - after) & new.get("properties", {}).keys()
    yield from (Change(member(place, name), "became optional in responses") for name in optional)


def keyword_changes(old: Schema, new: Schema, direction: Direction, place: Place) -> Iterator[Change]:
    """Yield a change for each keyword that permits fewer values in requests, or more values in responses."""
    wide, narrow = (old, new) if direction is Direction.REQUEST else (new, old)
    # Programs do not depend on the pattern of a response.
    ignored = STRUCTURE | ANNOTATIONS | ({"pattern"} if direction is Direction.RESPONSE else set())
    for keyword in sorted({"type", *ENCODINGS, *narrow} - ignored):
        if is_narrower(keyword, value_of(wide, keyword), value_of(narrow, keyword)):
            yield changed(place, keyword, value_of(old, keyword), value_of(new, keyword), direction)


def value_changes(old: Schema, new: Schema, direction: Direction, place: Place) -> Iterator[Change]:
    before, after = permitted_values(old), permitted_values(new)
    if direction is Direction.REQUEST:
        if after is not None and (before is None or any(value not in after for value in before)):
            yield changed(place, "enum", before, after, direction)
    # Programs must expect further values of an enum in a response.
    elif "const" in old and before != after:
        yield changed(place, "const", before, after, direction)


def is_narrower(keyword: str, before: Any, after: Any) -> bool:
    if keyword in ENCODINGS or (after is not None and keyword not in NARROWS):
        return bool(before != after)
    return after is not None and NARROWS[keyword](before, after)


# Whether a value of a keyword permits less than the one before, which may be unset.
NARROWS: dict[str, Callable[[Any, Any], bool]] = {
    **dict.fromkeys(MAXIMA, lambda before, after: before is None or before > after),
    **dict.fromkeys(MINIMA, lambda before, after: before is None or before < after),
    "minLength": lambda before, after: (before or 0) < after,
    "minItems": lambda before, after: (before or 0) < after,
    "type": lambda before, after: before != after and (before, after) != ("integer", "number"),
    "pattern": lambda before, after: after not in (before, ".*"),
}


def permitted_values(schema: Schema) -> list[Any] | None:
    values: list[Any] | None = [schema["const"]] if "const" in schema else schema.get("enum")
    return values


def value_of(schema: Schema, keyword: str) -> Any:
    """Return the value of a keyword; without a type, it is that of the permitted values."""
    if keyword in schema or keyword != "type":
        return schema.get(keyword)
    types = {TYPES.get(type(value), "null") for value in permitted_values(schema) or ()}
    return types.pop() if len(types) == 1 else None


def changed(place: Place, keyword: str, old: Any, new: Any, direction: Direction) -> Change:
    after, before = ("unset" if value is None else json.dumps(value, ensure_ascii=False) for value in (new, old))
    return Change(place, f"{keyword} of {direction.value} is {after} instead of {before}")


def member(place: Place, name: str) -> Place:
    """Return the place of a member: `Stream.counts` of a component, `GET /v1/me` and `name` of an operation."""
    *outer, last = place
    return (*place, name) if " " in last else (*outer, f"{last}.{name}")


def counterpart(choice: Choice, inner: list[Choice], outer: list[Choice]) -> int | None:
    """Return the index of the choice with the same label, or of the only one beside null."""
    same = [index for index, other in enumerate(outer) if other.label == choice.label]
    others = [index for index, other in enumerate(outer) if other.label != "null"]
    is_only = choice.label != "null" and sum(other.label != "null" for other in inner) == 1 == len(others)
    return next(iter(same or (others if is_only else [])), None)


def choices(document: Schema, schema: Schema) -> Iterator[Choice]:
    """Yield the alternatives of a schema; several types are alternatives, too."""
    name = schema.get("$ref", "").rpartition("/")[2]
    schema = merged(document, schema)
    keyword = next((keyword for keyword in ("anyOf", "oneOf") if keyword in schema), None)
    if keyword:
        rest = {key: value for key, value in schema.items() if key not in {keyword, *ANNOTATIONS}}
        for alternative in schema[keyword]:
            for choice in choices(document, {"allOf": [rest, alternative]} if rest else alternative):
                yield replace(choice, name=choice.name or name)
        return
    types = schema.get("type")
    for one in types if isinstance(types, list) else [types]:
        label = name or schema.get("title") or one or schema.get("format") or "a value"
        yield Choice(of_type(schema, one), name, label)


def merged(document: Schema, schema: Schema) -> Schema:
    """Return a schema with the keywords of its reference and of all parts of allOf."""
    parts = [{key: value for key, value in schema.items() if key not in ("$ref", "allOf")}]
    parts += [merged(document, part) for part in schema.get("allOf", ())]
    if "$ref" in schema:
        parts.append(merged(document, component(document, schema["$ref"])))
    result: Schema = {}
    for part in parts:
        both = result.get("properties", {}).keys() & part.get("properties", {}).keys()
        properties = {**result.get("properties", {}), **part.get("properties", {})}
        properties |= {name: {"allOf": [result["properties"][name], part["properties"][name]]} for name in both}
        required = [*result.get("required", ()), *part.get("required", ())]
        result |= part
        result |= {"properties": properties} if properties else {}
        result |= {"required": required} if required else {}
    return result


def of_type(schema: Schema, name: str | None) -> Schema:
    """Return a schema with one of its types."""
    if name is None:
        return schema
    if name == "null":
        return {"type": "null"}
    values = {"enum": [value for value in schema["enum"] if value is not None]} if "enum" in schema else {}
    return {**schema, "type": name, **values}


def component(document: Schema, reference: str) -> Schema:
    found = document
    for name in reference.removeprefix("#/").split("/"):
        found = found[name]
    return found
