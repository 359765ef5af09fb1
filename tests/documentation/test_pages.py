"""The documentation at /docs/: every page is listed, and every link works on the site and in the repository."""

import functools
import re
from pathlib import Path

import pytest
from django.test import Client
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser

from documentation import pages as documentation_pages
from documentation.language_models import reference_markdown
from documentation.markdown import Anchors
from documentation.navigation import navigation
from documentation.pages import directory, page_file, page_names
from documentation.reference import reference_pages
from tests.dashboard import axe
from tests.dashboard.browser import LOOKS, Visit, chromium
from tests.stack.stack import REPOSITORY

NAMES = sorted(page_names())
REFERENCE = ["/docs/api", *(page.url for page in reference_pages()), "/docs/errors"]
PATHS = ["/docs/", *(f"/docs/{name}" for name in NAMES), *REFERENCE]


@functools.cache
def content(path):
    """Return the HTML of a page; each test process renders it once."""
    response = Client().get(path)
    assert response.status_code == 200, path
    return response.content.decode()


@functools.cache
def anchors(path):
    return frozenset(node.attributes["id"] for node in parsed(path).css("[id]"))


def parsed(path):
    return LexborHTMLParser(content(path))


def test_the_index_lists_every_file():
    listed = set(re.findall(r"\]\(([\w/-]+\.md)\)", (directory() / "README.md").read_text(encoding="utf-8")))
    files = {str(path.relative_to(directory())) for path in directory().rglob("*.md")} - {"README.md"}
    decisions = {name for name in files if name.startswith("decisions/")}
    assert files - decisions | {"decisions/README.md"} == listed, "List the page in docs/README.md."


def test_files_for_developers_are_not_served():
    assert "faults" not in NAMES
    for name in ("faults", "README", "decisions", "decisions/README", "nothing", "migrate", "migrate/../faults"):
        assert Client().get(f"/docs/{name}").status_code == 404


@pytest.mark.parametrize("suffix", ["", ".md"])
def test_names_that_are_no_pages_take_no_memory(suffix):
    caches = (documentation_pages._render_page, documentation_pages._rewritten_page, reference_markdown)
    for number in range(100):
        assert Client().get(f"/docs/guides/nothing-{number}{suffix}").status_code == 404
        assert Client().get(f"/docs/api/nothing-{number}{suffix}").status_code == 404

    assert all(cache.cache_info().currsize <= len(PATHS) for cache in caches)


@pytest.mark.parametrize("path", PATHS)
def test_each_page_has_a_title_one_heading_and_the_navigation(path):
    page = parsed(path)
    (heading,) = page.css("h1")
    assert page.css_first("title").text().startswith(heading.text())
    assert len(page.css("nav#contents a")) >= len(NAMES)
    current = page.css("nav#contents a[aria-current]")
    assert [link.attributes["href"] for link in current] == ([] if path == "/docs/" else [path])


@pytest.mark.parametrize("path", PATHS)
def test_each_link_of_the_site_leads_to_a_page_and_its_section(path):
    for link in parsed(path).css("main a, nav a"):
        target, _, anchor = link.attributes["href"].partition("#")
        if target.startswith("http"):
            continue
        assert (target or path).startswith(("/docs/", "/v1/openapi.json", "/dashboard/", "/llms.txt")), target
        if target.startswith("/dashboard/"):
            continue
        assert content(target or path), target
        assert not anchor or anchor in anchors(target or path), link.attributes["href"]


@pytest.mark.parametrize("name", ["README", *NAMES])
def test_each_link_of_the_file_leads_to_a_file_and_its_section(name):
    source = page_file(name)
    for token in MarkdownIt("commonmark").enable("table").parse(source.read_text(encoding="utf-8")):
        for child in token.children or []:
            if child.type == "link_open" and not str(child.attrGet("href")).startswith(("http", "mailto:", "/")):
                check_file_link(source, str(child.attrGet("href")))


def check_file_link(source: Path, href: str) -> None:
    path, _, anchor = href.partition("#")
    target = (source.parent / path).resolve() if path else source
    assert target.is_relative_to(REPOSITORY), href
    assert target.exists(), f"{source.name}: {href}"
    if anchor:
        anchors = Anchors()
        headings = re.findall(r"^#{1,6} (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in {anchors.add(heading.replace("`", "")) for heading in headings}, f"{source.name}: {href}"


def test_links_of_a_page_in_a_folder_are_relative_to_it():
    targets = [link.attributes["href"] for link in parsed("/docs/migrate/resend").css("main a")]
    assert "/docs/specification#templates" in targets
    assert "/docs/webhooks#formats" in targets


def test_pages_show_no_references_to_decisions():
    for path in PATHS:
        main = parsed(path).css_first("main")
        assert not re.search(r"\(\d{4}\)", main.text()), path


@pytest.mark.parametrize("path", ["/docs/operations", "/docs/api/emails", "/docs/operations.md", "/llms.txt"])
def test_a_page_is_cached_and_not_sent_again_unchanged(path):
    response = Client().get(path)
    assert "max-age=300" in response["Cache-Control"]
    assert "Cookie" not in response.get("Vary", "")
    again = Client().get(path, headers={"if-none-match": response["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_pages_need_no_database(django_assert_num_queries, db):
    with django_assert_num_queries(0):
        assert Client().get("/docs/").status_code == 200


def test_the_root_leads_to_the_dashboard():
    assert Client().get("/")["Location"] == "/dashboard/"


def test_the_navigation_has_sections():
    assert [section.title for section in navigation()][-1] != "Development"
    assert all(section.entries for section in navigation())


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("look", LOOKS)
def test_the_pages_are_accessible_and_fit_the_screen(live_server, look):
    width, scheme = look
    with chromium() as browser:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
        visit = Visit(context, live_server.url)
        for path in PATHS:
            page = visit.go(path)
            assert axe.violations(page) == [], path
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        visit.go("/docs/monitoring")
        visit.keep_screenshot(f"documentation-{width}-{scheme}")
        assert visit.complaints == []


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_the_contents_open_on_a_narrow_screen_and_the_theme_of_the_dashboard_applies(live_server):
    with chromium() as browser:
        context = browser.new_context(viewport={"width": 390, "height": 900}, color_scheme="light")
        context.add_init_script("localStorage.setItem('adminTheme', JSON.stringify('dark'))")
        visit = Visit(context, live_server.url)
        page = visit.go("/docs/")
        page.get_by_role("button", name="Contents").click()
        page.get_by_role("navigation", name="Contents").get_by_role("link", name="Settings").click()
        page.get_by_role("heading", name="Settings", exact=True).wait_for()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert visit.complaints == []
