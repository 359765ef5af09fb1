"""Search: the index is queried for selective parts only, and the result matches a substring scan."""

import re

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from core.lib.ids import to_uuid
from emails.listing import search
from emails.listing.search import common_trigrams, filter_by_text, has_trigrams, selective_parts
from emails.models import Email
from tests.conftest import Account
from tests.plans import prefer_indexes
from tests.rows import each

COMMON = {"  u", " us", "use", "ser", "  c", " co", "com"}
# 3,000 emails of users at three domains: few enough for ANALYZE to sample every row.
FILL = """
INSERT INTO emails_email (id, workspace_id, sender, from_domain, "to", cc, bcc, subject, search_text, tags, headers,
                          track_opens, track_clicks, created_at, status, retry_count)
SELECT gen_random_uuid(), %s, 'a@demo.example', 'demo.example', ARRAY[address], '{}', '{}', 'Receipt ' || n,
       address || E'\n' || 'receipt ' || n, '{}', '{}', true, true, now() - n * interval '1 second', 'sent', 0
  FROM (SELECT n, 'user' || n || '@' || (ARRAY['corp.com', '100%%_sure.com', 'mail.example'])[1 + n %% 3] AS address
          FROM generate_series(1, 3000) n) made
"""

TEXTS = (
    *("user77@", "user77@corp", "77@corp.com", "100%_sure", "0%_sur", "0%_s", "receipt 299", "com\nrec", "user", "x"),
    *("user77@corp.com\nreceipt 77", "usercorp", "corpuser", "er7 ", "%", "_", "\\", "er1%orp"),
)


class TestSelectiveParts:
    @each(("text", "parts"), [
        ("user77@corp", ["er77@", "corp"]),
        ("77@corp.com", ["77@", "corp."]),
        ("user #29994", ["er #29994"]),
        ("re: #12", ["re:", " #12"]),
        # No part is selective.
        ("user", []),
        ("@com", []),
        ("---", []),
        # Every part is selective.
        ("corp", []),
        ("ab", []),
        ("", []),
    ])  # fmt: skip
    def test_common_trigrams_are_omitted(self, text, parts):
        assert selective_parts(text, common=COMMON) == parts

    @given(st.text("use r@co1-_é", max_size=30), st.sets(st.text("use rco1", min_size=3, max_size=3), max_size=20))
    def test_an_email_that_contains_the_text_contains_its_parts_in_order(self, text, common):
        parts = selective_parts(text, common=common)
        assert re.search(".*".join(map(re.escape, parts)), text)


@each(
    ("text", "expected"),
    [("zz", False), ("a b", True), ("ab c", True), ("----", False), ("é@", False), ("", False), ("abc", True)],
)
def test_a_trigram_is_three_characters_of_a_word_or_an_end_of_one(text, expected):
    assert has_trigrams(text) == expected


@pytest.mark.django_db
class TestFilter:
    @pytest.fixture(autouse=True)
    def emails(self, alice: Account) -> None:
        with connection.cursor() as cursor:
            cursor.execute(FILL, [to_uuid(alice.workspace.id, prefix="ws_")])
            cursor.execute("ANALYZE emails_email")
        search._statistics.cache_clear()

    def test_trigrams_of_half_of_the_emails_are_common(self):
        common = common_trigrams()
        assert {"  u", "use", "com", "rec"} <= common
        assert not {"cor", "sur", "er7"} & common

    @each("text", TEXTS)
    def test_a_search_matches_a_substring_scan(self, text):
        expected = [email.id for email in Email.objects.all() if text in email.search_text]
        assert [email.id for email in filter_by_text(Email.objects.all(), text)] == expected

    def test_the_index_is_not_queried_for_common_trigrams(self):
        prefer_indexes()
        plan = filter_by_text(Email.objects.order_by(), "user77@corp").explain()
        assert "Index Cond: (search_text ~~ '%er77@%corp%'::text)" in plan


@pytest.mark.django_db
@each("text", ["zz", "----"])
def test_the_index_is_not_read_for_a_text_without_trigrams(text):
    prefer_indexes()
    assert "email_search" not in filter_by_text(Email.objects.order_by(), text).explain()


@pytest.mark.django_db
def test_without_statistics_the_index_is_queried_for_the_whole_text():
    search._statistics.cache_clear()
    prefer_indexes()
    plan = filter_by_text(Email.objects.order_by(), "user77@corp").explain()
    assert "Index Cond: (search_text ~~ '%user77@corp%'::text)" in plan
