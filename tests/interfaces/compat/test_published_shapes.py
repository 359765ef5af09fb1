"""Responses of every endpoint against the members that the providers publish, with a list of deliberate differences."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.interfaces.compat.published_shapes import DIFFERENCES, SHAPES, Shape
from tests.interfaces.compat.test_every_endpoint import EMPTY_LISTS, REQUESTS, Objects, own
from tests.rows import each

__all__ = ["own"]

pytestmark = pytest.mark.django_db

TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict,
}  # fmt: skip
CALLS = [(dialect, request) for dialect, requests in REQUESTS.items() for request in requests]
# The length in SendGrid's published pattern.
MAX_TEMPLATE_ID = 36


def differences(value: Any, shape: Shape, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the kind of each difference."""
    if isinstance(shape, str):
        yield from _of_type(value, shape, path)
    elif value is None:
        yield path, "null"
    elif type(value) is not type(shape):
        yield path, f"is {type(value).__name__}"
    elif isinstance(shape, list):
        for item in value if shape else ():
            yield from differences(item, shape[0], f"{path}[]")
    elif shape:
        yield from _of_members(value, shape, path)


def _of_type(value: Any, shape: str, path: str) -> Iterator[tuple[str, str]]:
    name = shape.removesuffix("?")
    if value is None:
        if name == shape:
            yield path, "null"
    elif not isinstance(value, TYPES[name]) or (isinstance(value, bool) and name != "boolean"):
        yield path, f"is {type(value).__name__}"


def _of_members(value: dict[str, Any], shape: dict[str, Shape], path: str) -> Iterator[tuple[str, str]]:
    names = {name.removesuffix(":"): name for name in shape}
    for name, published in names.items():
        if name in value:
            yield from differences(value[name], shape[published], f"{path}.{name}")
        elif name == published:
            yield f"{path}.{name}", "missing"
    for name in value.keys() - names.keys():
        yield f"{path}.{name}", "extra"


@each(("dialect", "line"), CALLS)
def test_an_available_endpoint_succeeds_with_the_published_members(own: Objects, dialect: str, line: str):
    response = own.send(dialect, line, REQUESTS[dialect][line])
    assert response.status_code in ({404} if line in EMPTY_LISTS else {200, 201, 202, 204}), response.content
    if line in SHAPES[dialect]:
        found = {(line, *difference) for difference in differences(response.json(), SHAPES[dialect][line])}
        assert found == {expected for expected in DIFFERENCES[dialect] if expected[0] == line}


@each("dialect", SHAPES)
def test_every_response_with_a_body_has_a_shape(dialect: str):
    """Requests without a shape are those whose answers are empty, or that the documents do not describe."""
    assert SHAPES[dialect].keys() <= REQUESTS[dialect].keys()
    others = REQUESTS[dialect].keys() - SHAPES[dialect].keys()
    assert {line for line in others - UNDESCRIBED[dialect] if not line.startswith("DELETE")} == set()


UNDESCRIBED = {
    "resend": {
        "POST /webhooks/:resend_webhook/signing-secret/rotate",
        *(f"GET /webhooks/:resend_webhook/events{path}" for path in ("", "/:event", "/:event/attempts")),
        "POST /webhooks/:resend_webhook/events/:event/replay",
    },
    # Without types in Postmark's library.
    "postmark": {"GET /bounces/tags", "GET /stats/outbound/bounces"},
    # Empty responses, and one whose content the document leaves open.
    "sendgrid": {
        "POST /v3/mail/send",
        "PATCH /v3/user/scheduled_sends/:paused_batch",
        "POST /v3/user/webhooks/event/test",
    },
}


def test_an_id_of_a_template_has_the_published_length(own: Objects):
    (template,) = own.made("sendgrid", "GET /v3/templates?generations=dynamic")["result"] or [
        own.made("sendgrid", "POST /v3/templates", {"name": "A", "generation": "dynamic"})
    ]
    assert len(template["id"]) <= MAX_TEMPLATE_ID
    assert own.made("sendgrid", f"GET /v3/templates/{template['id']}")["id"] == template["id"]
