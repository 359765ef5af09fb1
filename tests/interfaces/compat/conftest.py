"""Clients of the compatibility endpoints: Django's test client with the key in the header of each dialect."""

import json
from typing import Any

import pytest
from django.test import Client

from templates_app.content import TemplateContent
from templates_app.models import Template
from templates_app.services import create_template
from tests.conftest import Account, make_domain, make_key

HEADERS = {
    "resend": lambda key: {"authorization": f"Bearer {key}"},
    "postmark": lambda key: {"x-postmark-server-token": key},
    "sendgrid": lambda key: {"authorization": f"Bearer {key}"},
}


class Dialect:
    """Calls one dialect under /compat/ with an API key."""

    def __init__(self, name: str, key: str | None) -> None:
        self.name, self.client = name, Client(raise_request_exception=False)
        self.headers = HEADERS[name](key) if key else {}

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        extra = {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"/compat/{self.name}{path}"
        return self.client.generic(method, url, data, "application/json", headers={**self.headers, **extra})

    def get(self, path: str, **headers: str) -> Any:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("POST", path, body, **headers)


@pytest.fixture
def key(alice: Account) -> str:
    make_domain(alice.workspace, "alice.example")
    return make_key(alice.workspace)


@pytest.fixture
def template(alice: Account, key: str) -> Template:
    content = TemplateContent("Hi {{name}}", "<p>{{name}}</p>")
    return create_template(alice.workspace, name="T", content=content, alias="hello", strict_variables=False)


@pytest.fixture
def resend(key: str) -> Dialect:
    return Dialect("resend", key)


@pytest.fixture
def postmark(key: str) -> Dialect:
    return Dialect("postmark", key)


@pytest.fixture
def sendgrid(key: str) -> Dialect:
    return Dialect("sendgrid", key)
