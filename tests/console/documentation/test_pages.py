"""The documentation at /docs/ and its Markdown: every page is listed, and every link works on the site and in files."""

import functools
import re

from django.test import Client
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser

from console.documentation import pages as documentation_pages
from console.documentation.language_models import reference_markdown
from console.documentation.markdown import Anchors
from console.documentation.navigation import navigation
from console.documentation.pages import directory, documentation_page, markdown_page, page_file, page_names
from console.documentation.reference import reference_pages
from tests.stack.stack import REPOSITORY

NAMES = sorted(page_names())
WITH_MARKDOWN = [*NAMES, "api", *(f"api/{page.name}" for page in reference_pages())]
PATHS = ["/docs/", *(f"/docs/{name}" for name in WITH_MARKDOWN), "/docs/errors"]
OTHER_PARTS = ("/docs/", "/v1/openapi.json", "/dashboard/", "/llms.txt")


@functools.cache
def response_to(path):
    """Return the response with a page; each test process renders it once."""
    return Client().get(path)


@functools.cache
def parsed(path):
    return LexborHTMLParser(response_to(path).content.decode())


@functools.cache
def anchors(path):
    return frozenset(node.attributes["id"] for node in parsed(path).css("[id]"))


def test_the_index_lists_every_file():
    listed = set(re.findall(r"\]\(([\w/-]+\.md)\)", (directory() / "README.md").read_text(encoding="utf-8")))
    files = {str(path.relative_to(directory())) for path in directory().rglob("*.md")} - {"README.md"}
    decisions = {name for name in files if name.startswith("decisions/")}
    assert files - decisions | {"decisions/README.md"} == listed, "List the page in docs/README.md."


def test_files_for_developers_are_not_served():
    assert "faults" not in NAMES
    names = ("faults", "README", "../README", "decisions", "decisions/README", "nothing", "migrate", "api/nothing")
    for name in (*names, "migrate/../faults"):
        assert [Client().get(f"/docs/{name}{suffix}").status_code for suffix in ("", ".md")] == [404, 404], name


def test_names_that_are_no_pages_take_no_memory():
    for name in ("guides/nothing", "guides/nothing.md", "api/nothing", "api/nothing.md"):
        assert Client().get(f"/docs/{name}").status_code == 404
    for number in range(200):
        names = (f"guides/nothing-{number}", f"api/nothing-{number}")
        assert not any(find(name) for find in (documentation_page, markdown_page, reference_markdown) for name in names)
    caches = (documentation_pages._render_page, documentation_pages._rewritten_page, reference_markdown)
    assert all(cache.cache_info().currsize <= len(PATHS) for cache in caches)


def test_each_page_has_a_title_one_heading_the_navigation_and_links_that_work():
    assert [f"{path}: {problem}" for path in PATHS for problem in problems_of_page(path)] == []


def problems_of_page(path):
    page = parsed(path)
    titles, (current, listed) = page.css("h1"), (page.css(f"nav#contents a{one}") for one in ("[aria-current]", ""))
    if response_to(path).status_code != 200 or len(titles) != 1:
        yield "status or headings"
    if not page.css_first("title").text().startswith(titles[0].text()):
        yield "title"
    if len(listed) < len(NAMES) or [link.attributes["href"] for link in current] != [path][path == "/docs/" :]:
        yield "navigation"
    if re.search(r"\(\d{4}\)", page.css_first("main").text()):
        yield "a decision"
    links = [link.attributes["href"] for link in page.css("main a, nav a")]
    yield from (href for href in links if not href.startswith("http") and not leads_to_a_section(href, path))


def leads_to_a_section(href, path):
    target, _, anchor = href.partition("#")
    target = target or path
    if target.startswith("/dashboard/"):
        return True
    is_page = target.startswith(OTHER_PARTS) and response_to(target).status_code == 200
    return is_page and (not anchor or anchor in anchors(target))


def test_the_navigation_calls_a_page_by_its_thing():
    titles = {entry.name: entry.title for section in navigation() for entry in section.entries}
    assert (titles["guides/streams"], titles["guides/batches"]) == ("Streams", "Batches")


def test_each_page_links_to_the_one_before_and_after_it():
    urls = [entry.url for section in navigation() for entry in section.entries]
    for number, url in enumerate(urls):
        links = {link.attributes["rel"]: link.attributes["href"] for link in parsed(url).css("main .page-links a")}
        expected = {"prev": urls[number - 1] if number else None, "next": [*urls, None][number + 1]}
        assert links == {relation: other for relation, other in expected.items() if other}, url
    for path in ("/docs/", "/docs/search?q=email"):
        assert parsed(path).css(".page-links") == [], path


def test_code_that_names_an_operation_leads_to_it():
    found = [code for name in NAMES for code in parsed(f"/docs/{name}").css("main :not(pre) > code")]
    operations = [code for code in found if re.match(r"(GET|POST|PATCH|PUT|DELETE) /v1/", code.text())]
    assert {code.text() for code in operations if code.parent.tag not in {"a", "h2", "h3"}} == set()
    links = {code.text(): code.parent.attributes.get("href") for code in operations}
    assert "/docs/api" not in links.values()
    for operation, url in {
        "POST /v1/erasures": "erasures#createErasure",
        "GET /v1/emails/:id": "emails#getEmail",
        "GET /v1/emails/export": "emails#exportEmails",
        "GET /v1/emails?test=false": "emails#listEmails",
        "PATCH /v1/domains/:id {receiving: true}": "domains#updateDomain",
        "PATCH /v1/streams/newsletter": "streams#updateStream",
    }.items():
        assert links[operation] == f"/docs/api/{url}"


def test_a_diagram_has_a_text_and_colors_for_dark_pages():
    found = {image.attributes["src"]: image for name in NAMES for image in parsed(f"/docs/{name}").css("main img")}
    assert "/docs/images/deployment.svg" in found
    assert "/docs/images/life-of-an-email.svg" in found
    for path in found:
        response = response_to(path)
        assert (response.status_code, response["Content-Type"]) == (200, "image/svg+xml")
        assert response["Content-Security-Policy"].startswith("default-src 'none';")
        text = response.content.decode()
        assert all(part in text for part in ("<title", "<desc", "prefers-color-scheme: dark")), path
    assert all(image.attributes["alt"].endswith(".") for image in found.values())
    for name in ("nothing", "dashboard"):
        assert Client().get(f"/docs/images/{name}.svg").status_code == 404


def test_every_page_has_markdown_whose_links_work():
    assert [f"{name}: {problem}" for name in WITH_MARKDOWN for problem in problems_of_markdown(name)] == []
    for name in WITH_MARKDOWN:
        page = parsed(f"/docs/{name}")
        assert page.css_first("link[rel=alternate]").attributes["href"] == f"/docs/{name}.md"
        assert page.css_first("button.copy-page").attributes["data-source"] == f"/docs/{name}.md"


def problems_of_markdown(name):
    response = response_to(f"/docs/{name}.md")
    text = response.content.decode()
    if (response.status_code, response["Content-Type"], text[:2]) != (200, "text/markdown; charset=utf-8", "# "):
        yield "no Markdown"
    if re.search(r"\(\[\d{4}\]", text):
        yield "a decision"
    targets = re.findall(r"\]\((/[^)#]+)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    others = [target for target in targets if not target.startswith("/dashboard/")]
    yield from (target for target in others if response_to(target).status_code != 200)


def test_the_list_for_language_models_links_to_every_page():
    response = response_to("/llms.txt")
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    text = response.content.decode()
    assert text.startswith("# Postrider\n\n> ")
    links = set(re.findall(r"\]\(https?://[^/)]+(/[^)]+\.md)\): \w", text))
    assert links == {f"/docs/{name}.md" for name in WITH_MARKDOWN}


def test_each_link_of_a_file_leads_to_a_file_and_its_section():
    assert [f"{name}: {href}" for name in ("README", *NAMES) for href in broken_links(page_file(name))] == []


def broken_links(source):
    for token in MarkdownIt("commonmark").enable("table").parse(source.read_text(encoding="utf-8")):
        hrefs = [str(child.attrGet("href")) for child in token.children or [] if child.type == "link_open"]
        for href in hrefs:
            path, _, anchor = href.partition("#")
            target = (source.parent / path).resolve() if path else source
            is_found = target.is_relative_to(REPOSITORY) and target.exists()
            is_found = is_found and (not anchor or anchor in headings_of(target))
            if not is_found and not href.startswith(("http", "mailto:", "/")):
                yield href


@functools.cache
def headings_of(file):
    found = Anchors()
    headings = re.findall(r"^#{1,6} (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {found.add(heading.replace("`", "")) for heading in headings}


def test_links_of_a_page_in_a_folder_are_relative_to_it():
    targets = [link.attributes["href"] for link in parsed("/docs/migrate/resend").css("main a")]
    assert "/docs/specification#templates" in targets
    assert "/docs/webhooks#formats" in targets


def test_a_page_is_cached_and_not_sent_again_unchanged():
    for path in ("/docs/operations", "/docs/api/emails", "/docs/operations.md", "/llms.txt"):
        response = Client().get(path)
        assert "max-age=300" in response["Cache-Control"], path
        assert "Cookie" not in response.get("Vary", ""), path
        again = Client().get(path, headers={"if-none-match": response["ETag"]})
        assert (again.status_code, again.content) == (304, b""), path


def test_pages_need_no_database(django_assert_num_queries, db):
    with django_assert_num_queries(0):
        assert Client().get("/docs/").status_code == 200


def test_the_root_leads_to_the_dashboard_and_docs_to_their_index():
    assert Client().get("/")["Location"] == "/dashboard/"
    assert Client().get("/docs")["Location"] == "/docs/"


def test_the_navigation_has_sections():
    assert [section.title for section in navigation()][-1] != "Development"
    assert all(section.entries for section in navigation())
