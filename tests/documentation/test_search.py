"""Search in the documentation, without an external service."""

from collections import Counter

import pytest
from django.test import Client
from selectolax.lexbor import LexborHTMLParser

from documentation.search import MAX_RESULTS, search, search_index


def found(query: str) -> list[str]:
    return [result.entry.url for result in search(query)]


@pytest.mark.parametrize(
    ("query", "url"),
    [
        ("idempotency", "/docs/specification#idempotency"),
        ("recipient_suppressed", "/docs/errors#recipient_suppressed"),
        ("cancel a scheduled email", "/docs/api/emails#cancelEmail"),
        ("send many recipients a template", "/docs/api/emails#sendBatch"),
        ("VERIFY signatures", "/docs/webhooks#verify-signatures"),
    ],
)
def test_a_search_finds_the_section(query, url):
    assert url in found(query)[:3]


def test_a_result_contains_every_word():
    for result in search("bounce suppression"):
        text = f"{result.entry.page} {result.entry.heading} {result.entry.text}".lower()
        assert "bounce" in text
        assert "suppression" in text


@pytest.mark.parametrize("query", ["", "   ", "zzzzqqqq", "email " * 5000])
def test_a_search_without_a_match_or_of_any_length_is_answered(query):
    response = Client().get("/docs/search", {"q": query})
    assert response.status_code == 200
    assert len(found(query)) <= MAX_RESULTS


def test_the_query_is_escaped():
    page = Client().get("/docs/search", {"q": '"><script>alert(1)</script>'}).content.decode()
    assert "<script>alert" not in page


def test_every_page_is_in_the_index_and_each_url_once():
    urls = Counter(entry.url for entry in search_index())
    assert [url for url, count in urls.items() if count > 1] == []
    pages = LexborHTMLParser(Client().get("/docs/").content.decode()).css("nav#contents a")
    indexed = {url.partition("#")[0] for url in urls}
    assert {page.attributes["href"] for page in pages} - {"/docs/api"} <= indexed
