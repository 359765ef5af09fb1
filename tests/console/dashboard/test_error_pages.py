"""Pages for requests that fail: the reason, and the next step."""

import re

from django.db import OperationalError, connection
from django.test import Client
from django.urls import reverse

from core.workspaces.models import User
from tests.console.dashboard.conftest import make_email, signed_in


def refuse(*_: object) -> None:
    raise OperationalError("the connection is lost")


def test_the_address_of_a_form_that_is_opened_as_a_page_explains_itself(owner):
    for name in ("logout", "send_test_email", "switch_workspace"):
        response = owner.get(reverse(f"dashboard:{name}"))
        assert (response.status_code, response.headers["Allow"].split(", ")[0]) == (405, "POST"), name
        assert "This address only receives forms" in response.text
        assert "Content-Security-Policy" in response.headers


def test_a_lost_database_is_a_page_that_says_when_to_try_again(owner):
    owner.raise_request_exception = False
    for path in ("/dashboard/emails/", "/admin/", "/dashboard/login/?next=/dashboard/"):
        with connection.execute_wrapper(refuse):
            response = owner.get(path, headers={"Accept-Language": "de"})
        assert response.status_code == 503, path
        assert "Versuchen Sie es in einer Minute noch einmal." in response.text


def test_an_unexpected_error_is_a_page_that_names_the_operator(owner):
    owner.raise_request_exception = False
    with connection.execute_wrapper(lambda *_: 1 / 0):
        response = owner.get("/dashboard/")

    assert response.status_code == 500
    assert "contact the operator of this server" in response.content.decode()


def test_a_page_that_does_not_exist_keeps_the_frame_of_the_dashboard(owner):
    texts = (
        "This page does not exist in this workspace",
        "You are in the workspace alice.",
        'href="/dashboard/emails/"',
    )
    for path in ("emails/em_00000000000000000000000000/", "nowhere/", "domains/x/", "keys/a/b/c/"):
        response = owner.get(f"/dashboard/{path}")
        assert response.status_code == 404, path
        assert [text for text in texts if text not in response.text] == [], path
        assert "Content-Security-Policy" in response.headers
    User.objects.update(language="de")
    german = owner.get("/dashboard/nowhere/", headers={"Accept-Language": "en"})
    assert "Diese Seite gibt es in diesem Arbeitsbereich nicht" in german.text


def test_the_page_for_an_object_of_another_workspace_is_that_for_an_unknown_one(owner, alice, bob):
    email = make_email(bob.workspace)
    pages = {owner.get(f"/dashboard/emails/{key}/").content.decode() for key in (email.id, email.id[::-1])}

    assert len({re.sub(r"csrfmiddlewaretoken[^>]*|/dashboard/emails/\w+/", "", page) for page in pages}) == 1


def test_a_program_gets_a_problem_and_a_visitor_the_sign_in(owner):
    response = owner.post("/dashboard/nowhere/", "{}", content_type="application/json")

    assert response.json()["code"] == "not_found"
    assert Client().get("/dashboard/nowhere/").status_code == 302


def test_a_page_that_does_not_exist_keeps_the_frame_of_the_staff_admin(staff, helper):
    for path in ("nope/", "emails/nope/", "queue/nope/", "search/?s=x&page=2"):
        response = staff.get(f"/admin/{path}")
        assert response.status_code == 404, path
        texts = ("This page does not exist", 'href="/admin/">Go to the operations page', 'href="/admin/emails/email/"')
        assert [text for text in texts if text not in response.text] == [], path
        assert "Go to the dashboard" not in response.text
    assert staff.get("/admin/nope/", CONTENT_TYPE="application/json").json()["code"] == "not_found"
    refused = signed_in(helper).get("/admin/queue/")
    assert (refused.status_code, "Go to the operations page" in refused.text) == (403, True)
    assert Client().get("/admin/nope/").status_code == 302


def test_a_page_that_does_not_exist_keeps_the_frame_of_the_documentation(db):
    for path in ("nowhere", "guides/api-kyes", "api/nothing", "api/a/b", "../x", "²"):
        response = Client().get(f"/docs/{path}")
        assert response.status_code == 404, path
        texts = ('href="/docs/">Go to the documentation', 'action="/docs/search"', 'href="/docs/webhooks"')
        assert [text for text in texts if text not in response.text] == [], path
        assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert "Cache-Control" not in response.headers
    assert 'href="/docs/guides/keys"><strong>API keys' in Client().get("/docs/guides/api-kyes").text
    assert Client().get("/docs/nowhere", CONTENT_TYPE="application/json").json()["code"] == "not_found"
    assert Client().get("/docs/nowhere.md").status_code == 404
