"""Search in the documentation, without an external service."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from console.documentation.search import MAX_QUERY_LENGTH, MAX_RESULTS, search, search_index
from console.documentation.search_terms import STOP_WORDS, SYNONYMS

# Pages, and the queries of readers that find one of them first: words, questions, other forms, typing errors.
QUERIES = {
    "webhooks": "webhooks; VERIFY signatures; retry a webhook; web hook; webhok; webhoook; wabhook; wehbook",
    "guides/idempotency": "idempotency",
    "backup": "backup",
    "tutorial": "tutorial; getting started",
    "changelog": "changelog",
    "guides/postmaster-tools": "postmaster tools; snds",
    "guides/email-delivery": "greylisting",
    "guides/email-delivery settings": "blacklist",
    "guides/receiving": "receive email; how to receive replies",
    "guides/keys": "test keys; api kyes; apy keys",
    "errors": "recipient_suppressed",
    "settings": "RETURN_PATH_DOMAIN",
    "guides/attachments": "inline images; attachments size; attach a file; attachmnet",
    "guides/tracking specification": "one-click unsubscribe",
    "guides/warm-up": "warm up",
    "guides/schedules": "how do I schedule an email; how can I send an email later?; shedule; schedul",
    "guides/schedules api/emails": "cancel a scheduled email",
    "api/emails guides/batches": "send many recipients a template",
    "guides/email-delivery guides/dns-providers": "what is dmarc",
    "guides/deliverability guides/email-delivery": "why do my emails go to spam",
    "guides/bounce-causes": "email does not arrive; full mailbox",
    "guides/bounces guides/bounce-causes": "why do emails bounce",
    "migrate/sendgrid": "move from sendgrid",
    "install-debian troubleshooting install-compose": "port 25 blocked",
    "guides/templates guides/tracking": "unsubscribe link",
    "specification": "rate limit",
    "install-debian troubleshooting guides/email-delivery transports": "reverse dns",
    "guides/testing": "test in CI",
    "guides/generated-clients": "generate a client; openapi generator",
    "troubleshooting install-debian": "exim",
    "install-kubernetes": "k8s; kuberntes",
    "install-compose": "docker",
    "openid-connect": "sso; saml; mfa",
    "guides/tracking operations": "gdpr",
    "monitoring": "prometheus",
    "guides/bounces": "bouncing; undeliverable; bonuces",
    "frameworks/rails": "rails",
    "smtp": "wordpress; smart host",
    "frameworks/spring": "spring boot",
    "frameworks/nextjs": "next.js",
    "quickstart/javascript": "nodejs; typescript",
    "guides/templates": "templete",
    "guides/simulator": "simulater",
    "guides/idempotency errors": "idempotncy key",
    "guides/deliverability": "deliverab",
}
PAGES = {query: pages for pages, queries in QUERIES.items() for query in queries.split("; ")}
MAX_INDEX_BYTES = 4 * 1024 * 1024


def found(query: str) -> list[str]:
    return [result.entry.url for result in search(query)]


def test_a_query_finds_its_page_first():
    firsts = {query: (found(query) or [""])[0].partition("#")[0].removeprefix("/docs/") for query in PAGES}
    assert {query: first for query, first in firsts.items() if first not in PAGES[query].split()} == {}


def test_a_search_finds_the_section():
    for query, url in {
        "idempotency": "/docs/specification#idempotency",
        "recipient_suppressed": "/docs/errors#recipient_suppressed",
        "cancel a scheduled email": "/docs/api/emails#cancelEmail",
        "send many recipients a template": "/docs/api/emails#sendBatch",
        "VERIFY signatures": "/docs/webhooks#verify-signatures",
    }.items():
        assert url in found(query)[:3], query


def test_a_result_contains_every_word():
    for result in search("bounce suppression"):
        text = f"{result.entry.page} {result.entry.heading} {result.entry.text}".lower()
        assert any(word in text for word in ("bounc", "reject", "refus", "undeliverable"))
        assert any(word in text for word in ("suppress", "optout"))


def test_a_query_that_no_section_contains_finds_sections_with_most_of_its_words():
    assert found("idempotency zzzzqqqq xylophone")[0] == "/docs/guides/idempotency"


def test_any_query_is_answered_and_escaped():
    syntax = (
        '"',
        "NEAR(a b, 2)",
        "AND",
        "a OR NOT b",
        "web*",
        "heading:email",
        "^a",
        "-a",
        "{text}: a",
        "a\0b",
        "' --",
    )
    for query in ("", " ", "zzzzqqqq", "?", *syntax, "email " * 5000, "ß" * 100, "a" * 5000, '"><script>alert(1)'):
        response = Client().get("/docs/search", {"q": query})
        assert response.status_code == 200, query[:20]
        assert len(found(query)) <= MAX_RESULTS, query[:20]
        assert "<script>alert" not in response.content.decode()


@given(st.text(max_size=MAX_QUERY_LENGTH))
def test_any_text_is_a_query(query):
    assert len(search(query)) <= MAX_RESULTS


def test_threads_share_the_index():
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(found, PAGES)) == list(map(found, PAGES))


def test_every_page_is_in_the_index_and_each_url_once():
    urls = Counter(entry.url for entry in search_index().entries)
    assert [url for url, count in urls.items() if count > 1] == []
    pages = LexborHTMLParser(Client().get("/docs/").content.decode()).css("nav#contents a")
    indexed = {url.partition("#")[0] for url in urls}
    assert {page.attributes["href"] for page in pages} - {"/docs/api"} <= indexed


def test_the_index_is_small_and_readers_download_none_of_it():
    assert len(search_index().database.serialize()) < MAX_INDEX_BYTES
    assert len(Client().get("/docs/search", {"q": "email"}).content) < 64 * 1024


@pytest.mark.long
def test_a_query_takes_no_second():
    search_index()
    started = time.process_time()
    for query in PAGES:
        search(query)
    assert (time.process_time() - started) / len(PAGES) < 0.1


def test_forms_and_parts_of_a_word_are_found():
    scores = search_index().scores
    for words in (
        "schedule schedules scheduled scheduling",
        "bounce bounced bouncing",
        "retry retries",
        "stop stopped",
    ):
        rows = {frozenset(scores({word: 1.0})) for word in words.split()}
        assert len(rows) == 1, words
    for name, part in (("scheduledFor", "scheduled"), ("recipient_suppressed", "suppressed")):
        assert set() < scores({f'"{name}"': 1.0}).keys() <= scores({part: 1.0}).keys()


def test_synonyms_are_no_stop_words():
    assert not STOP_WORDS & {word for line in SYNONYMS for word in line.split()}
