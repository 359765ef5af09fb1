"""Search in the documentation, without an external service."""

import time
from collections import Counter

import pytest
from django.test import Client
from selectolax.lexbor import LexborHTMLParser

from documentation.search import MAX_RESULTS, SearchIndex, search, search_index
from documentation.search_terms import STOP_WORDS, SYNONYMS, differ_by_one_character, stem, words_of

# Queries of readers, and the page that each must find first, or one of the pages.
PAGES = {
    # word for word
    "webhooks": "webhooks",
    "idempotency": "guides/idempotency",
    "backup": "backup",
    "tutorial": "tutorial",
    "changelog": "changelog",
    "postmaster tools": "guides/postmaster-tools",
    "snds": "guides/postmaster-tools",
    "greylisting": "guides/email-delivery",
    "receive email": "guides/receiving",
    "test keys": "guides/keys",
    "recipient_suppressed": "errors",
    "RETURN_PATH_DOMAIN": "settings",
    "VERIFY signatures": "webhooks",
    "inline images": "guides/attachments",
    "one-click unsubscribe": "guides/tracking specification",
    # questions
    "warm up": "guides/warm-up",
    "how do I schedule an email": "guides/schedules",
    "how can I send an email later?": "guides/schedules",
    "cancel a scheduled email": "guides/schedules api/emails",
    "send many recipients a template": "api/emails guides/batches",
    "attachments size": "guides/attachments",
    "what is dmarc": "guides/email-delivery guides/dns-providers",
    "why do my emails go to spam": "guides/deliverability guides/email-delivery",
    "email does not arrive": "guides/bounce-causes",
    "why do emails bounce": "guides/bounces guides/bounce-causes",
    "full mailbox": "guides/bounce-causes",
    "how to receive replies": "guides/receiving",
    "move from sendgrid": "migrate/sendgrid",
    "port 25 blocked": "install-debian troubleshooting install-compose",
    "unsubscribe link": "guides/templates guides/tracking",
    "rate limit": "specification",
    "reverse dns": "install-debian troubleshooting guides/email-delivery",
    "test in CI": "guides/testing",
    # other words, and other forms of a word
    "exim": "troubleshooting install-debian",
    "attach a file": "guides/attachments",
    "k8s": "install-kubernetes",
    "docker": "install-compose",
    "sso": "openid-connect",
    "saml": "openid-connect",
    "blacklist": "guides/email-delivery",
    "gdpr": "guides/tracking operations",
    "prometheus": "monitoring",
    "bouncing": "guides/bounces",
    "undeliverable": "guides/bounces",
    "retry a webhook": "webhooks",
    "web hook": "webhooks",
    "rails": "frameworks/rails",
    "wordpress": "smtp",
    "spring boot": "frameworks/spring",
    "next.js": "frameworks/nextjs",
    "nodejs": "quickstart/javascript",
    "typescript": "quickstart/javascript",
    "smart host": "smtp",
    "mfa": "openid-connect",
    "getting started": "tutorial",
    # typing errors, and words that are not complete
    "webhok": "webhooks",
    "templete": "guides/templates",
    "shedule": "guides/schedules",
    "simulater": "guides/simulator",
    "attachmnet": "guides/attachments",
    "bonuces": "guides/bounces",
    "kuberntes": "install-kubernetes",
    "idempotncy key": "guides/idempotency errors",
    "schedul": "guides/schedules",
    "deliverab": "guides/deliverability",
}
MAX_STEMS, MAX_WEIGHTS = 6_000, 80_000


def found(query: str) -> list[str]:
    return [result.entry.url for result in search(query)]


def test_the_table_of_queries_is_long():
    assert len(PAGES) >= 40


@pytest.mark.parametrize(("query", "pages"), PAGES.items())
def test_a_query_finds_its_page_first(query, pages):
    urls = found(query)
    assert urls, query
    assert urls[0].partition("#")[0].removeprefix("/docs/") in pages.split(), urls[:5]


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
        stems = set(map(stem, words_of(f"{result.entry.page} {result.entry.heading} {result.entry.text}")))
        assert any(one.startswith("bounc") for one in stems) or stems & {"reject", "refus"}
        assert any(one.startswith("suppress") for one in stems) or "optout" in stems


def test_a_query_that_no_section_contains_finds_sections_with_most_of_its_words():
    assert found("idempotency zzzzqqqq xylophone")[0] == "/docs/guides/idempotency"


@pytest.mark.parametrize("query", ["", "   ", "zzzzqqqq", "?", "email " * 5000, "ß" * 100, "a" * 5000])
def test_a_search_without_a_match_or_of_any_length_is_answered(query):
    response = Client().get("/docs/search", {"q": query})
    assert response.status_code == 200
    assert len(found(query)) <= MAX_RESULTS


def test_the_query_is_escaped():
    page = Client().get("/docs/search", {"q": '"><script>alert(1)</script>'}).content.decode()
    assert "<script>alert" not in page


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


def test_a_query_takes_no_second():
    search_index()
    started = time.process_time()
    for query in PAGES:
        search(query)
    assert (time.process_time() - started) / len(PAGES) < 0.1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("schedule schedules scheduled scheduling", "schedul"),
        ("bounce bounces bounced bouncing", "bounc"),
        ("retry retries retried retrying", "retry"),
        ("address addresses", "address"),
        ("send sends sent sending", "send"),
        ("stop stops stopped stopping", "stop"),
        ("setting settings", "setting"),
        ("dns", "dns"),
        ("status", "status"),
    ],
)
def test_forms_of_a_word_have_one_stem(words, expected):
    assert {stem(word) for word in words.split()} == {expected}


@pytest.mark.parametrize(
    ("first", "second", "is_near"),
    [
        ("webhok", "webhook", True),
        ("webhoook", "webhook", True),
        ("wabhook", "webhook", True),
        ("wehbook", "webhook", True),
        ("webhooks", "webhook", True),
        ("wehboko", "webhook", False),
        ("webho", "webhook", False),
        ("api", "app", True),
        ("to", "so", False),
    ],
)
def test_words_that_differ_by_one_character(first, second, is_near):
    assert differ_by_one_character(first, second) is is_near
    assert differ_by_one_character(second, first) is is_near


def test_identifiers_are_found_by_their_parts():
    assert words_of("scheduledFor recipient_suppressed e-mail Zoë") == [
        "scheduled", "for", "recipient", "suppressed", "email", "zoe", "scheduledfor", "recipientsuppressed",
    ]  # fmt: skip


def test_synonyms_are_no_stop_words():
    assert not STOP_WORDS & {word for line in SYNONYMS for word in line.split()}
