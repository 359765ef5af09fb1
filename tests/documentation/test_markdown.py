"""/llms.txt, and the Markdown of every page."""

import functools
import re

import pytest
from django.test import Client

from documentation.pages import page_names
from documentation.reference import reference_pages

NAMES = [*sorted(page_names()), "api", *(f"api/{page.name}" for page in reference_pages())]


@functools.cache
def status_of(path):
    return Client().get(path).status_code


@pytest.mark.parametrize("name", NAMES)
def test_every_page_has_markdown_whose_links_work(name):
    response = Client().get(f"/docs/{name}.md")
    assert response.status_code == 200
    assert response["Content-Type"] == "text/markdown; charset=utf-8"
    text = response.content.decode()
    assert text.startswith("# ")
    for target in re.findall(r"\]\((/[^)#]+)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if not target.startswith("/dashboard/"):
            assert status_of(target) == 200, target


@pytest.mark.parametrize("name", ["nothing", "README", "faults", "api/nothing", "../README", "decisions/README"])
def test_other_files_are_not_served(name):
    assert Client().get(f"/docs/{name}.md").status_code == 404


def test_the_list_for_language_models_links_to_every_page():
    response = Client().get("/llms.txt")
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    text = response.content.decode()
    assert text.startswith("# Postrider\n\n> ")
    assert {f"/docs/{name}.md" for name in NAMES} == set(re.findall(r"\]\(https?://[^/)]+(/[^)]+\.md)\): \w", text))


def test_a_page_links_to_its_markdown():
    page = Client().get("/docs/webhooks").content.decode()
    assert '<link rel="alternate" type="text/markdown" href="/docs/webhooks.md">' in page


def test_the_markdown_has_no_references_to_decisions():
    for name in page_names():
        assert not re.search(r"\(\[\d{4}\]", Client().get(f"/docs/{name}.md").content.decode()), name
