"""Changes of the OpenAPI document that break programs written for an earlier one, by the rules of oasdiff.

docs/decisions/0288 has the rules that are left out.
"""

import re
from collections.abc import Callable, Iterator

from schema_changes import Change, Comparison, Direction, Place, Schema, changed, component, merged

METHODS = ("get", "put", "post", "patch", "delete")
Compare = Callable[[Schema, Schema, Direction, Place], set[Change]]
REQUEST, RESPONSE = Direction.REQUEST, Direction.RESPONSE


def unannounced_changes(old: Schema, new: Schema, changelog: str) -> list[Change]:
    """Return the breaking changes whose place no entry of the section "Unreleased" has in backticks."""
    entries = [set(re.findall(r"`([^`]+)`", entry)) for entry in unreleased_entries(changelog)]
    return [
        change for change in breaking_changes(old, new) if not any(entry.issuperset(change.place) for entry in entries)
    ]


def unreleased_entries(changelog: str) -> list[str]:
    section = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return [" ".join(entry.split()) for entry in re.split(r"^- ", section[1] if section else "", flags=re.MULTILINE)]


def breaking_changes(old: Schema, new: Schema) -> list[Change]:
    comparison = Comparison(old, new)
    before, after = operations(old), operations(new)
    found = {Change((name,), "was removed") for name in before.keys() - after.keys()}
    for name in before.keys() & after.keys():
        found.update(parameter_changes(comparison, before[name], after[name], name))
        found.update(body_changes(comparison, before[name], after[name], (name,)))
        found.update(response_changes(comparison, before[name], after[name], (name,)))
    return sorted(found)


def operations(document: Schema) -> dict[str, Schema]:
    """Return the operations by their names in the documentation, such as `GET /v1/emails/:id`."""
    return {
        f"{method.upper()} {path.replace('{', ':').replace('}', '')}": {
            **operation,
            "parameters": [*item.get("parameters", ()), *operation.get("parameters", ())],
        }
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in METHODS
    }


def parameter_changes(comparison: Comparison, old: Schema, new: Schema, operation: str) -> Iterator[Change]:
    before, after = parameters(comparison.old, old), parameters(comparison.new, new)
    for where, name in before.keys() - after.keys():
        yield Change((operation, name), f"the {where} parameter was removed")
    for (where, name), parameter in after.items():
        place = (operation, name)
        former = before.get((where, name))
        if parameter.get("required") and not (former and former.get("required")):
            yield Change(place, f"the {where} parameter is required")
        if not former:
            continue
        schemas = former.get("schema", {}), parameter.get("schema", {})
        yield from comparison.compare(*schemas, REQUEST, place)
        before_default = merged(comparison.old, schemas[0]).get("default")
        after_default = merged(comparison.new, schemas[1]).get("default")
        if before_default != after_default:
            yield changed(place, "default", before_default, after_default, REQUEST)


def parameters(document: Schema, operation: Schema) -> dict[tuple[str, str], Schema]:
    found = [resolved(document, parameter) for parameter in operation["parameters"]]
    return {(parameter["in"], parameter["name"]): parameter for parameter in found}


def body_changes(comparison: Comparison, old: Schema, new: Schema, place: Place) -> Iterator[Change]:
    before = resolved(comparison.old, old.get("requestBody", {}))
    after = resolved(comparison.new, new.get("requestBody", {}))
    if before and not after:
        yield Change(place, "the body of requests was removed")
        return
    if after.get("required") and not before.get("required"):
        yield Change(place, "a body of requests is required")
    yield from content_changes(comparison.compare, before, after, REQUEST, place)


def response_changes(comparison: Comparison, old: Schema, new: Schema, place: Place) -> Iterator[Change]:
    for status, response in old["responses"].items():
        is_success = status.startswith("2")
        if status in new["responses"]:
            before, after = resolved(comparison.old, response), resolved(comparison.new, new["responses"][status])
            yield from header_changes(comparison, before, after)
            compare = comparison.compare if is_success else comparison.compare_errors
            yield from content_changes(compare, before, after, RESPONSE, place)
        elif is_success:
            yield Change(place, f"the status {status} was removed")


def header_changes(comparison: Comparison, old: Schema, new: Schema) -> Iterator[Change]:
    for name, header in old.get("headers", {}).items():
        if name not in new.get("headers", {}):
            yield Change((name,), "the header was removed from responses")
            continue
        before, after = resolved(comparison.old, header), resolved(comparison.new, new["headers"][name])
        if before.get("required") and not after.get("required"):
            yield Change((name,), "the header became optional in responses")
        yield from comparison.compare(before.get("schema", {}), after.get("schema", {}), RESPONSE, (name,))


def content_changes(compare: Compare, old: Schema, new: Schema, direction: Direction, place: Place) -> Iterator[Change]:
    after = new.get("content", {})
    for media_type, content in old.get("content", {}).items():
        if media_type in after:
            yield from compare(content.get("schema", {}), after[media_type].get("schema", {}), direction, place)
        else:
            yield Change(place, f"{media_type} was removed from {direction.value}")


def resolved(document: Schema, found: Schema) -> Schema:
    return component(document, found["$ref"]) if "$ref" in found else found
