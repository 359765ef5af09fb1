"""Pages outside of the dashboard's lists: steps of signing in, links of emails, errors, and pages for recipients."""

import pytest

from tests.conftest import make_account
from tests.console.dashboard.axe import page_problems
from tests.console.dashboard.browser import Visit, visited
from tests.console.dashboard.conftest import signed_in
from tests.console.dashboard.guests import PAGES, Guest
from tests.interfaces.tracking.conftest import make_reader
from tests.interfaces.tracking.test_without_database import database_url, web
from tests.stack.stack import free_port

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# Browsers log a line for each error response.
STATUS_MESSAGE = "the server responded with a status of"
LOOKS = {
    "desktop": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light", "locale": "en-GB"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "locale": "de-DE"},
}


def problems_of(visit: Visit, name: str, *, status: int) -> list[str]:
    """Return the problems of the page, errors in the console, and an unexpected status."""
    problems = [text for text in visit.complaints if STATUS_MESSAGE not in text]
    found = visit.page.evaluate("performance.getEntriesByType('navigation')[0].responseStatus")
    if found != status:
        problems.append(f"{name}: status {found} instead of {status}")
    return problems + page_problems(visit, f"outside-{name}")


# Axe needs scripts, which the pages for recipients forbid.
@pytest.mark.parametrize("look", LOOKS)
def test_pages_are_accessible(browser, live_server, look):
    """Half of the pages on a desktop, the others on a phone."""
    problems = []
    for name, (open_page, status) in list(PAGES.items())[list(LOOKS).index(look) :: len(LOOKS)]:
        with visited(browser, live_server.url, **LOOKS[look], bypass_csp=True) as visit:
            open_page(Guest(visit, make_account(name)))
            problems += problems_of(visit, name, status=status)

    assert not problems, "\n".join(problems)


@pytest.mark.stack
@pytest.mark.parametrize("look", ["phone", pytest.param("desktop", marks=pytest.mark.long)])
def test_pages_without_a_database_are_accessible(browser, tmp_path, look):
    account = make_account("alice")
    reader, session = make_reader(account.workspace), signed_in(account.owner).cookies["session"].value
    with (
        web(tmp_path, database_url(free_port())) as url,
        visited(browser, url, **LOOKS[look], bypass_csp=True) as visit,
    ):
        visit.go(reader.unsubscribe_path)
        with visit.page.expect_navigation():
            visit.page.get_by_role("button").click()
        problems = problems_of(visit, f"unsubscribe-later-{look}", status=503)
        visit.page.context.add_cookies([{"name": "session", "value": session, "url": url}])
        visit.go("/dashboard/")
        problems += problems_of(visit, f"503-{look}", status=503)

    assert not problems, "\n".join(problems)
