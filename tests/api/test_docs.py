"""Documentation pages under /docs/: every error is listed, and nothing is loaded from other servers."""

import re
from importlib import import_module

import pytest
from django.conf import settings
from django.test import Client

from api.docs import problem_text
from api.errors import all_problems
from tests.dashboard.browser import Visit, chromium

# Importing the views loads the errors of all apps.
import_module(settings.ROOT_URLCONF)
PROBLEMS = list(all_problems())


@pytest.mark.parametrize("path", ["/docs/", "/docs/operations", "/docs/api", "/docs/errors", "/docs/errors/"])
def test_the_pages_load_nothing_from_other_servers(path):
    response = Client().get(path)
    assert response.status_code == 200
    assert not re.search(r'(src|href)="(https?:)?//', response.content.decode())
    assert "default-src 'none'; script-src 'self';" in response["Content-Security-Policy"]


def test_docs_without_a_slash_redirects():
    assert Client().get("/docs")["Location"] == "/docs/"


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.code)
def test_each_error_has_a_meaning_and_advice(problem):
    meaning, _, advice = problem_text(problem).partition("\n\n")
    assert meaning.endswith(".")
    assert advice.endswith(".")


def test_each_error_has_an_entry_on_the_page():
    page = Client().get("/docs/errors").content.decode()
    for problem in PROBLEMS:
        assert f'id="{problem.code}"' in page


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("width", [1280, 390])
def test_the_reference_renders_without_other_servers(live_server, width):
    with chromium() as browser:
        visit = Visit(browser.new_context(viewport={"width": width, "height": 900}), live_server.url)
        requested = []
        visit.page.on("request", lambda request: requested.append(request.url))
        visit.go("/docs/api")
        visit.page.locator("h2", has_text="Send an email").first.wait_for(state="attached")
        visit.keep_screenshot(f"docs-{width}")
        assert visit.complaints == []
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    assert [url for url in requested if not url.startswith((live_server.url, f"blob:{live_server.url}"))] == []
