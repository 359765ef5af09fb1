"""Every page with collected static files in Chromium: small, and smaller when it is opened again."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test.testcases import LiveServerThread
from playwright.sync_api import Response

from core.workspaces.models import Usage
from tests.conftest import make_account
from tests.console.dashboard.browser import sign_in, visited
from tests.console.dashboard.conftest import make_email
from tests.console.dashboard.page_weight import FIRST_VISIT, REPEAT_VISIT, weigh
from tests.console.dashboard.routes import PAGES, paths_of
from tests.console.dashboard.scenario import fill_workspace

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
DOCUMENTATION = ("/docs/", "/docs/errors", "/docs/webhooks", "/docs/api", "/docs/api/emails")


@pytest.fixture
def server(collected):
    """Serve the application alone, so that WhiteNoise answers the requests for static files."""
    thread = LiveServerThread("127.0.0.1", static_handler=lambda application: application)
    thread.start()
    thread.is_ready.wait()
    if thread.error:
        raise thread.error
    yield f"http://127.0.0.1:{thread.port}"
    thread.terminate()


@pytest.fixture
def visit(browser, server):
    with visited(browser, server, viewport={"width": 1280, "height": 800}) as visit:
        yield visit


# Each page with other scripts or styles than the lists and forms.
HEAVIEST = ("index", "usage", "emails_email_changelist", "emails_email_change", "templates_app_template_add")


@pytest.mark.parametrize("names", [HEAVIEST, pytest.param(PAGES, marks=pytest.mark.long)], ids=["heaviest", "all"])
def test_every_page_is_small(visit, names):
    account = make_account("alice", plan="pro")
    for number in range(60):
        make_email(account.workspace, subject=f"Your receipt for the order {number}")
    filled = paths_of(fill_workspace(account))
    paths = [*(filled[name] for name in names), *DOCUMENTATION]
    sign_in(visit, account.owner.email)
    weights = {path: weigh(visit.page, visit.base_url + path) for path in paths}

    assert {path: one for path, one in weights.items() if one.first > FIRST_VISIT or one.repeat > REPEAT_VISIT} == {}
    # An empty result would also be small.
    assert min(one.first for one in weights.values()) > 20_000
    assert not visit.complaints


def test_static_files_are_hashed_compressed_and_kept_for_ever(visit):
    responses: list[Response] = []
    visit.page.on("response", lambda response: responses.append(response))  # noqa: PLW0108 - playwright marks it
    sign_in(visit, make_account("alice").owner.email)
    files = {one.url: one.all_headers() for one in responses if "/static/" in one.url}

    assert len(files) > 10
    for url, headers in files.items():
        assert re.search(r"\.[0-9a-f]{12}\.\w+$", url), url
        assert headers["cache-control"] == "max-age=315360000, public, immutable", url
        assert headers.get("content-encoding") == "gzip" or not url.endswith((".css", ".js")), url
    assert len([url for url in files if url.endswith(".woff2")]) == 2
    assert not visit.complaints


def test_scripts_of_few_pages_are_loaded_only_there(visit):
    account = make_account("alice")
    sign_in(visit, account.owner.email)
    # A single month has no chart.
    month = (datetime.now(UTC).replace(day=1) - timedelta(days=1)).date().replace(day=1)
    Usage.objects.create(workspace=account.workspace, month=month, used=1)
    scripts = {}
    for path in ("emails/", "usage/", "templates/add/"):
        page = visit.go(f"/dashboard/{path}")
        scripts[path] = page.evaluate("[...document.scripts].map((script) => script.src).join(' ')")

    assert ["chart" in names for names in scripts.values()] == [False, True, False]
    assert ["editor" in names for names in scripts.values()] == [False, False, True]
