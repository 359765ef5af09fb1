"""DRF's nested error details as one flat list with a path for each field."""

from collections.abc import Iterator
from typing import Any

# DRF's codes that say less than they could, or say it in its own words.
CODES = {"null": "required", "not_a_list": "invalid_type", "not_a_dict": "invalid_type", "empty": "required"}

BODY = "body"


def field_errors(details: Any) -> list[dict[str, str]]:
    """Flatten `get_full_details()`, to `[{"field": "attachments[2].content", "code": …, "detail": …}]`."""
    return list(_walk(details, path=""))


def _walk(details: Any, *, path: str) -> Iterator[dict[str, str]]:
    if _is_leaf(details):
        code = str(details["code"])
        yield {"field": path or BODY, "code": CODES.get(code, code), "detail": str(details["message"])}
    elif isinstance(details, dict):
        for name, inner in details.items():
            yield from _walk(inner, path=_joined(path, name))
    else:
        for index, inner in enumerate(details):
            # A list of leaves belongs to one field; a list of dicts is one entry per item of a list field.
            yield from _walk(inner, path=path if _is_leaf(inner) else f"{path}[{index}]")


def _is_leaf(details: Any) -> bool:
    return (
        isinstance(details, dict)
        and details.keys() == {"message", "code"}
        and not isinstance(details["code"], dict | list)
    )


def _joined(path: str, name: Any) -> str:
    if name == "non_field_errors":
        return path
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else str(name)
