"""Pages for requests that fail: the reason, and the next step."""

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.urls import reverse


def refuse(*_: object) -> None:
    raise OperationalError("the connection is lost")


@pytest.mark.parametrize("name", ["logout", "send_test_email", "switch_workspace"])
def test_the_address_of_a_form_that_is_opened_as_a_page_explains_itself(owner, name):
    response = owner.get(reverse(f"dashboard:{name}"))

    assert (response.status_code, response.headers["Allow"].split(", ")[0]) == (405, "POST")
    assert "This address only receives forms" in response.content.decode()
    assert "Content-Security-Policy" in response.headers


@pytest.mark.parametrize("path", ["/dashboard/emails/", "/admin/", "/dashboard/login/?next=/dashboard/"])
def test_a_lost_database_is_a_page_that_says_when_to_try_again(owner, path):
    owner.raise_request_exception = False
    with connection.execute_wrapper(refuse):
        response = owner.get(path, headers={"Accept-Language": "de"})

    assert response.status_code == 503
    assert "Versuchen Sie es in einer Minute noch einmal." in response.content.decode()


def test_an_unexpected_error_is_a_page_that_names_the_operator(owner):
    owner.raise_request_exception = False
    with connection.execute_wrapper(lambda *_: 1 / 0):
        response = owner.get("/dashboard/")

    assert response.status_code == 500
    assert "contact the operator of this server" in response.content.decode()


def test_a_link_to_the_documentation_leads_back_to_it(db):
    page = Client().get("/docs/nowhere").content.decode()

    assert 'href="/docs/">Go to the documentation' in page
