"""Search in the documentation, without an external service."""

import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from console.documentation.excerpts import MAX_LENGTH
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
    "guides/email-delivery guides/dns-providers guides/dmarc-reports": "what is dmarc",
    "guides/deliverability guides/email-delivery": "why do my emails go to spam",
    "guides/bounce-causes": "email does not arrive; full mailbox",
    "guides/bounces guides/bounce-causes": "why do emails bounce",
    "migrate/sendgrid": "move from sendgrid",
    "install-debian troubleshooting install-compose": "port 25 blocked",
    "guides/templates guides/tracking": "unsubscribe link",
    "specification": "rate limit",
    "install-debian troubleshooting guides/email-delivery transports": "reverse dns",
    "guides/testing": "test in CI",
    "guides/staging": "staging system; copy of production",
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
# Questions as people type them, with the pages that answer them.
QUESTIONS = {
    "how do i send an email with curl": "quickstart/curl guides/sending",
    "send email from python script": "quickstart/python",
    "how to verify the webhook signature": "webhooks",
    "why did my email bounce": "guides/bounces guides/bounce-causes",
    "remove an address from the suppression list": "guides/bounces api/suppressions",
    "send an email tomorrow at 9": "guides/schedules",
    "how do I cancel a scheduled email?": "guides/schedules api/emails",
    "how to attach a pdf": "guides/attachments",
    "maximum size of an attachment": "guides/attachments specification",
    "where do I add the dkim record": "domains guides/dns-providers",
    "spf record cloudflare": "guides/dns-providers",
    "emails landing in the spam folder": "guides/deliverability guides/email-delivery",
    "what do i do if an api key was leaked": "guides/keys security",
    "can I restrict an api key to one domain": "guides/keys",
    "send the same email to 1000 people": "guides/batches api/emails",
    "how to avoid sending an email twice": "guides/idempotency",
    "turn off open tracking": "guides/tracking",
    "delete all data of a customer": "guides/privacy api/erasures",
    "which personal data is stored about someone": "guides/privacy guides/data-protection",
    "how do I upgrade to a new version": "upgrades",
    "restore the database from a backup": "backup",
    "run it with docker": "install-compose",
    "high availability with two servers": "scaling",
    "switch from postmark": "migrate/postmark",
    "send mail from laravel": "frameworks/laravel",
    "smtp username and password": "smtp",
    "which port for smtp": "smtp",
    "receive incoming emails with a webhook": "guides/receiving",
    "forward incoming mail to another address": "guides/receiving",
    "test without sending real emails": "guides/testing guides/simulator",
    "429 too many requests": "errors specification",
    "what does domain_not_registered mean": "errors",
    "my webhook is not called": "webhooks troubleshooting",
    "how long are emails stored": "guides/privacy specification guides/data-protection",
    "unsubscribe only from the newsletter": "guides/streams",
    "loop over a list in a template": "guides/templates",
    "templates in several languages": "guides/templates",
    "login with google or azure": "openid-connect",
    "how many emails per second can it send": "performance guides/sending-speed scaling",
    "email stuck in queued": "guides/sending troubleshooting",
}
FIRST = 36
MAX_INDEX_BYTES = 4 * 1024 * 1024


def found(query: str) -> list[str]:
    return [result.entry.url for result in search(query)]


def test_a_query_finds_its_page_first():
    firsts = {query: (found(query) or [""])[0].partition("#")[0].removeprefix("/docs/") for query in PAGES}
    assert {query: first for query, first in firsts.items() if first not in PAGES[query].split()} == {}


def test_questions_find_their_page():
    ranks = {}
    for question, pages in QUESTIONS.items():
        names = [url.partition("#")[0].removeprefix("/docs/") for url in found(question)]
        ranks[question] = next((rank for rank, name in enumerate(names, 1) if name in pages.split()), None)
    assert [question for question, rank in ranks.items() if rank is None or rank > 3] == []
    assert sum(rank == 1 for rank in ranks.values()) >= FIRST, ranks


def test_a_search_finds_the_section():
    for query, url in {
        "idempotency": "/docs/specification#idempotency",
        "recipient_suppressed": "/docs/errors#recipient_suppressed",
        "cancel a scheduled email": "/docs/api/emails#cancelEmail",
        "send many recipients a template": "/docs/api/emails#sendBatch",
        "VERIFY signatures": "/docs/webhooks#verify-signatures",
    }.items():
        assert url in found(query)[:3], query


def test_an_excerpt_is_sentences_or_a_row_of_a_table():
    for query in {*PAGES, *QUESTIONS}:
        for result in search(query):
            assert problems_of_excerpt(result) == [], (query, result.entry.url, result.excerpt)


def problems_of_excerpt(result) -> list[str]:
    shown, is_cut = result.excerpt.removesuffix("…"), result.excerpt.endswith("…")
    if shown == result.entry.summary:
        return []
    paragraph = next((line for line in result.entry.text.splitlines() if shown in line), "")
    before, _, after = paragraph.partition(shown)
    return [
        problem
        for problem, is_one in {
            "not in the section": not paragraph,
            "begins in a sentence": before.strip() and before.rstrip()[-1] not in ".!?",
            "ends in a word": after and not after[0].isspace() and after[0] not in ",;:",
            "ends in a sentence": after.strip() and shown[-1] not in ".!?" and not is_cut,
            "Markdown": re.search(r"\]\(|```|\*\*", shown),
            "long": len(shown) > MAX_LENGTH,
        }.items()
        if is_one
    ]


def test_an_excerpt_has_the_words_of_the_query():
    for query, sentence in {
        "stops the invoices": "stops the invoices and the password resets",
        "recipient_suppressed": "suppress",
        "port 25 blocked": "port 25 is blocked",
    }.items():
        assert sentence in " ".join(result.excerpt for result in search(query)[:3]), query


def test_a_result_contains_every_word():
    for result in search("bounce suppression"):
        entry = result.entry
        text = f"{entry.page} {entry.heading} {entry.text} {entry.other}".lower()
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
