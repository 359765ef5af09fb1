"""Search in the documentation, without an external service."""

import time
from collections import Counter

import pytest
from django.test import Client
from selectolax.lexbor import LexborHTMLParser

from console.documentation.search import MAX_RESULTS, SearchIndex, search, search_index
from console.documentation.search_terms import STOP_WORDS, SYNONYMS, differ_by_one_character, stem, words_of

# Pages, and the queries of readers that find one of them first: words, questions, other forms, typing errors.
QUERIES = {
    "webhooks": "webhooks; VERIFY signatures; retry a webhook; web hook; webhok",
    "guides/idempotency": "idempotency",
    "backup": "backup",
    "tutorial": "tutorial; getting started",
    "changelog": "changelog",
    "guides/postmaster-tools": "postmaster tools; snds",
    "guides/email-delivery": "greylisting; blacklist",
    "guides/receiving": "receive email; how to receive replies",
    "guides/keys": "test keys",
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
    "install-debian troubleshooting guides/email-delivery": "reverse dns",
    "guides/testing": "test in CI",
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
MAX_STEMS, MAX_WEIGHTS = 6_000, 80_000


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
        stems = set(map(stem, words_of(f"{result.entry.page} {result.entry.heading} {result.entry.text}")))
        assert any(one.startswith("bounc") for one in stems) or stems & {"reject", "refus"}
        assert any(one.startswith("suppress") for one in stems) or "optout" in stems


def test_a_query_that_no_section_contains_finds_sections_with_most_of_its_words():
    assert found("idempotency zzzzqqqq xylophone")[0] == "/docs/guides/idempotency"


def test_any_query_is_answered_and_escaped():
    for query in ("", "   ", "zzzzqqqq", "?", "email " * 5000, "ß" * 100, "a" * 5000, '"><script>alert(1)</script>'):
        response = Client().get("/docs/search", {"q": query})
        assert response.status_code == 200, query[:20]
        assert len(found(query)) <= MAX_RESULTS, query[:20]
        assert "<script>alert" not in response.content.decode()


def test_every_page_is_in_the_index_and_each_url_once():
    urls = Counter(entry.url for entry in search_index().entries)
    assert [url for url, count in urls.items() if count > 1] == []
    pages = LexborHTMLParser(Client().get("/docs/").content.decode()).css("nav#contents a")
    indexed = {url.partition("#")[0] for url in urls}
    assert {page.attributes["href"] for page in pages} - {"/docs/api"} <= indexed


def test_the_index_is_small_and_readers_download_none_of_it():
    index: SearchIndex = search_index()
    assert len(index.weights) < MAX_STEMS
    assert sum(map(len, index.weights.values())) < MAX_WEIGHTS
    assert len(Client().get("/docs/search", {"q": "email"}).content) < 64 * 1024


@pytest.mark.long
def test_a_query_takes_no_second():
    search_index()
    started = time.process_time()
    for query in PAGES:
        search(query)
    assert (time.process_time() - started) / len(PAGES) < 0.1


def test_forms_of_a_word_have_one_stem():
    for words, expected in (
        ("schedule schedules scheduled scheduling", "schedul"),
        ("bounce bounces bounced bouncing", "bounc"),
        ("retry retries retried retrying", "retry"),
        ("address addresses", "address"),
        ("send sends sent sending", "send"),
        ("stop stops stopped stopping", "stop"),
        ("setting settings", "setting"),
        ("dns", "dns"),
        ("status", "status"),
    ):
        assert {stem(word) for word in words.split()} == {expected}


def test_words_that_differ_by_one_character():
    near = {"webhook": "webhok webhoook wabhook wehbook webhooks", "app": "api"}
    other = {"webhook": "wehboko webho", "so": "to"}
    for words, is_near in ((near, True), (other, False)):
        for first, second in ((first, second) for first, seconds in words.items() for second in seconds.split()):
            assert differ_by_one_character(first, second) is is_near, second
            assert differ_by_one_character(second, first) is is_near, second


def test_identifiers_are_found_by_their_parts():
    assert words_of("scheduledFor recipient_suppressed e-mail Zoë") == [
        "scheduled", "for", "recipient", "suppressed", "email", "zoe", "scheduledfor", "recipientsuppressed",
    ]  # fmt: skip


def test_synonyms_are_no_stop_words():
    assert not STOP_WORDS & {word for line in SYNONYMS for word in line.split()}
